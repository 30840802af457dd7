//! Whose turn it is: fair between tenants, then by priority and age.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::error::Error;
use crate::hold::{HoldScope, Stance, Within};
use crate::id::{Profile, TaskId, Tenant};
use crate::store::queue;
use crate::view::{Candidate, View};

/// What the caller cannot start now, so that it does not stand in the way of the rest.
#[derive(Clone, Debug, Default)]
pub struct Skip {
    /// Profiles that are full or that nothing can spawn.
    pub assignees: BTreeSet<Profile>,
    /// Tenants that are full; none stands for tasks without a tenant.
    pub tenants: BTreeSet<Option<Tenant>>,
    /// Single tasks.
    pub tasks: BTreeSet<TaskId>,
    /// Which profiles share the limits of an account, so that a hold on it is a hold on them.
    pub accounts: Accounts,
}

/// The account of each profile that has one.
pub type Accounts = BTreeMap<Profile, String>;

pub(crate) fn ready(view: &View<'_>, limit: usize, skip: &Skip) -> Result<Vec<Candidate>, Error> {
    let mut queues: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    let holds = Closed::read(view)?;
    let mut after = (String::new(), String::new());
    while let Some(lane) = queue::next_lane(view.conn, (&after.0, &after.1))? {
        after.clone_from(&lane);
        if skip.assignees.iter().any(|profile| profile.as_str() == lane.1)
            || holds.lane(&lane.0, &lane.1, &skip.accounts)
        {
            continue;
        }
        let fetched = queue::ready(
            view.conn,
            (&lane.0, &lane.1),
            limit.saturating_add(skip.tasks.len() + holds.tasks.len()),
        )?;
        let allowed = fetched.into_iter().filter(|candidate| {
            !skip.tenants.contains(&candidate.tenant)
                && !skip.tasks.contains(&candidate.task)
                && !holds.tasks.contains(candidate.task.as_str())
        });
        queues.entry(lane.0.clone()).or_default().extend(allowed);
    }
    after = (String::new(), String::new());
    while let Some(lane) = queue::next_review_lane(view.conn, (&after.0, &after.1))? {
        after.clone_from(&lane);
        if skip.assignees.iter().any(|profile| profile.as_str() == lane.1)
            || holds.lane(&lane.0, &lane.1, &skip.accounts)
        {
            continue;
        }
        let most = limit.saturating_add(skip.tasks.len() + holds.tasks.len());
        let fetched = queue::in_review(view.conn, (&lane.0, &lane.1), most, view.now())?;
        let allowed = fetched.into_iter().filter(|candidate| {
            !skip.tenants.contains(&candidate.tenant)
                && !skip.tasks.contains(&candidate.task)
                && !holds.tasks.contains(candidate.task.as_str())
        });
        queues.entry(lane.0.clone()).or_default().extend(allowed);
    }
    if queues.is_empty() {
        return Ok(Vec::new());
    }
    let running: BTreeMap<String, u32> = queue::running(view.conn)?.into_iter().collect();
    let mut tenants: Vec<(u32, VecDeque<Candidate>)> = queues
        .into_iter()
        .map(|(tenant, mut queue)| {
            queue.sort_by_cached_key(order);
            queue.truncate(limit);
            (running.get(&tenant).copied().unwrap_or(0), queue.into())
        })
        .collect();
    let mut turns = Vec::new();
    while turns.len() < limit {
        let next = tenants
            .iter_mut()
            .filter(|(_, queue)| !queue.is_empty())
            .min_by(|a, b| (a.0, a.1.front().map(order)).cmp(&(b.0, b.1.front().map(order))));
        let Some((load, queue)) = next else { break };
        *load += 1;
        turns.extend(queue.pop_front());
    }
    Ok(turns)
}

/// What the holds of this moment keep from starting.
#[derive(Default)]
struct Closed {
    tasks: BTreeSet<String>,
    profiles: BTreeSet<String>,
    tenants: BTreeSet<String>,
    accounts: Vec<(String, Within)>,
}

impl Closed {
    fn read(view: &View<'_>) -> Result<Self, Error> {
        let mut closed = Closed::default();
        for hold in view.holds()? {
            if hold.stance(view.now()) == Stance::Closed {
                match hold.scope {
                    HoldScope::Task => drop(closed.tasks.insert(hold.name)),
                    HoldScope::Profile => drop(closed.profiles.insert(hold.name)),
                    HoldScope::Tenant => drop(closed.tenants.insert(hold.name)),
                    HoldScope::Account => closed.accounts.push((hold.name, hold.within)),
                }
            }
        }
        Ok(closed)
    }

    fn lane(&self, tenant: &str, profile: &str, accounts: &Accounts) -> bool {
        let account =
            accounts.iter().find(|(known, _)| known.as_str() == profile).map(|(_, account)| account);
        self.profiles.contains(profile)
            || self.tenants.contains(tenant)
            || self
                .accounts
                .iter()
                .any(|(name, within)| Some(name) == account && within.reaches(tenant.parse().ok().as_ref()))
    }
}

fn order(candidate: &Candidate) -> (std::cmp::Reverse<i64>, crate::Timestamp, TaskId) {
    (std::cmp::Reverse(candidate.priority), candidate.created_at, candidate.task.clone())
}
