//! Requests for proposals: the profile that makes a proposal, and the profiles that it may name.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{NewProposal, Profile, ProposalKind, TaskId, Tenant};

use crate::config::Config;
use crate::config::definitions::Found;
use crate::roster::Roster;

/// Maker of proposals of one kind, for any task.
#[derive(Debug)]
pub struct Maker {
    kind: ProposalKind,
    /// Profile that makes the proposal.
    pub assignee: Profile,
    staff: BTreeMap<Profile, String>,
    /// All existing names.
    taken: BTreeSet<Profile>,
}

impl Maker {
    /// Finds the maker of proposals of a kind; none if no existing profile is configured.
    pub fn find(kind: ProposalKind, roster: &Roster, config: &Config) -> Option<Self> {
        let assignee = config.triage.assignee(kind).filter(|name| roster.knows(name))?;
        let taken = roster.names().iter().filter_map(|name| name.parse().ok()).collect();
        Some(Maker { kind, assignee, staff: staff(roster, config), taken })
    }

    /// Returns the request for a proposal about a task of a tenant.
    pub fn asked(
        &self,
        subject: TaskId,
        tenant: Option<&Tenant>,
        author: Option<String>,
        config: &Config,
    ) -> NewProposal {
        let own = tenant.and_then(|tenant| config.tenants.get(tenant));
        NewProposal {
            kind: self.kind,
            subject,
            assignee: self.assignee.clone(),
            staff: self.staff.clone(),
            taken: self.taken.clone(),
            policy: own.and_then(|own| own.policy.clone()),
            author,
        }
    }
}

/// Returns the profiles that a proposal may name, with their descriptions. Makers of proposals are excluded.
fn staff(roster: &Roster, config: &Config) -> BTreeMap<Profile, String> {
    let makers: Vec<Profile> =
        ProposalKind::ALL.iter().filter_map(|kind| config.triage.assignee(*kind)).collect();
    let described = roster.profiles().filter_map(|(name, found)| match found {
        Found::Usable(persona) => {
            Some((name.parse().ok()?, persona.settings.description.clone().unwrap_or_default()))
        }
        Found::Disabled(_) | Found::Absent => None,
    });
    described.filter(|(name, _)| !makers.contains(name)).collect()
}
