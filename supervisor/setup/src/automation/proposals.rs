//! Requests for proposals: the profile that makes a proposal, and the profiles that it may name.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{NewProposal, Profile, ProposalKind, TaskId, Tenant};

use crate::config::Config;
use crate::config::definitions::Lookup;
use crate::roster::Roster;

/// Maker of proposals of one kind, for any task.
#[derive(Debug)]
pub struct Maker {
    kind: ProposalKind,
    /// Profile that makes the proposal.
    pub assignee: Profile,
    staff: BTreeMap<Profile, String>,
    /// Profiles of the staff whose policy confines no run.
    unconfined: BTreeSet<Profile>,
    /// All existing names.
    taken: BTreeSet<Profile>,
}

impl Maker {
    /// Finds the maker of proposals of a kind; none if no existing profile is configured.
    pub fn find(kind: ProposalKind, roster: &Roster, config: &Config) -> Option<Self> {
        let assignee = config.triage.assignee(kind).filter(|name| roster.knows(name))?;
        let taken = roster.names().iter().filter_map(|name| name.parse().ok()).collect();
        let staff = staff(roster, config);
        let unconfined = unconfined(staff.keys(), roster, config);
        Some(Maker { kind, assignee, staff, unconfined, taken })
    }

    /// Returns the request for a proposal about a task of a tenant.
    pub fn asked(
        &self,
        subject: TaskId,
        tenant: Option<&Tenant>,
        author: Option<String>,
        config: &Config,
    ) -> NewProposal {
        let tenant_config = tenant.and_then(|tenant| config.tenants.get(tenant));
        NewProposal {
            kind: self.kind,
            subject,
            assignee: self.assignee.clone(),
            staff: self.staff.clone(),
            unconfined: self.unconfined.clone(),
            taken: self.taken.clone(),
            policy: tenant_config.and_then(|tenant_config| tenant_config.policy.clone()),
            author,
        }
    }
}

/// Returns the profiles that no confined run may give a task that names no policy: their own policy does not confine,
/// and is not the default.
pub fn unconfined<'a>(
    names: impl Iterator<Item = &'a Profile>,
    roster: &Roster,
    config: &Config,
) -> BTreeSet<Profile> {
    let is_open = |name: &&Profile| {
        let policy = roster.policy_name(name, None, config);
        policy != config.worker.policy && !roster.policies().confines(&policy)
    };
    names.filter(is_open).cloned().collect()
}

/// Returns the profiles that a proposal may name, with their descriptions. Makers of proposals are excluded.
fn staff(roster: &Roster, config: &Config) -> BTreeMap<Profile, String> {
    let makers: Vec<Profile> =
        ProposalKind::ALL.iter().filter_map(|kind| config.triage.assignee(*kind)).collect();
    let described = roster.profiles().filter_map(|(name, found)| match found {
        Lookup::Usable(definition) => {
            Some((name.parse().ok()?, definition.settings.description.clone().unwrap_or_default()))
        }
        Lookup::Disabled(_) | Lookup::Absent => None,
    });
    described.filter(|(name, _)| !makers.contains(name)).collect()
}
