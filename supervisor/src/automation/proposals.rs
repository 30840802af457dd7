//! Proposals: who makes them, and whom they may name.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{NewProposal, Profile, ProposalKind, TaskId, Tenant};

use crate::config::Config;
use crate::config::definitions::Found;
use crate::roster::Roster;

/// What is asked of one profile, for any task.
pub(crate) struct Maker {
    kind: ProposalKind,
    /// Who makes it.
    pub(crate) assignee: Profile,
    staff: BTreeMap<Profile, String>,
    /// All names that there are.
    taken: BTreeSet<Profile>,
}

impl Maker {
    /// Finds who makes proposals of a kind; none where nobody does.
    pub(crate) fn find(kind: ProposalKind, roster: &Roster, config: &Config) -> Option<Self> {
        let assignee = config.triage.assignee(kind).filter(|name| roster.knows(name))?;
        let taken = roster.names().iter().filter_map(|name| name.parse().ok()).collect();
        Some(Maker { kind, assignee, staff: staff(roster, config), taken })
    }

    /// What is asked of it for a task of a tenant.
    pub(crate) fn asked(
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

/// The profiles that a proposal may name, each with what it is for: not those that make proposals.
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
