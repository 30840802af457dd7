//! Starts claims of runs and holds the limits that keep a task from starting. Slots are counted here alone.
//!
//! Slots of questions are counted apart, and each depth by itself. Questions go two deep, and a question of the second
//! depth asks no other profile, so a holder of a slot never waits for a slot of its own depth. Freezing the asker and
//! lending its slot was no choice: a worker can go on while its question waits, and may have to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{
    BoardName, Candidate, Pool, Profile, Reach, Task, Tenant, Waiting, WaitingCode, Workspace, WorkspaceSpec,
};

use super::snapshot::PoolUse;
use crate::run::environment::{Environment, Needs, RosterAndConfig};
use crate::run::key::TaskKey;
use setup::config::Config;
use setup::config::admission::{Limits, Pools};
use setup::roster::PoolClaim;

/// Limit on the worktrees of one tenant that are prepared at the same time.
const PREPARING: usize = 2;

/// Tenant and profile of a claim.
#[derive(Clone, Debug)]
pub struct Claimant {
    pub tenant: Option<Tenant>,
    pub profile: Option<Profile>,
}

/// Fields of a task that decide its start claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimInputs<'a> {
    pub policy: Option<&'a str>,
    pub workspace: &'a Workspace,
    /// Pools that the task itself names.
    pub pools: &'a BTreeSet<Pool>,
}

impl<'a> ClaimInputs<'a> {
    pub fn by(task: &'a Task) -> Self {
        ClaimInputs { policy: task.policy.as_deref(), workspace: &task.workspace, pools: &task.pools }
    }
}

/// Start claim of a task: the limited resources that it takes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartClaim {
    pub key: TaskKey,
    pub tenant: Option<Tenant>,
    pub profile: Option<Profile>,
    /// Lane, pools, and the limits on concurrent runs from the files of profile and lane.
    pub resources: PoolClaim,
    /// Directory of a `dir` workspace, which the task needs for itself, as named. A name that leads through a symbolic
    /// link is refused at creation and at the start, so no access to the file system is needed here. Such an access could
    /// block.
    pub place: Option<PathBuf>,
    /// Environments that it shares with other tasks; none if its profile is not known.
    pub needs: Option<Needs>,
    /// Repository in which its worktree must still be prepared.
    pub(crate) preparing: Option<PathBuf>,
    /// Limited resources that it counts for.
    pub weight: Weight,
}

/// Limited resources that a claim counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A slot, its directory and its pools.
    Slot,
    /// Its directory and its pools only, because it is not known whether any of its processes still runs.
    PlaceAlone,
    /// A slot for questions of this depth, its directory and its pools. The run that waits for its answer has a slot of
    /// another depth.
    Question(u32),
}

impl Weight {
    /// Returns the depth of the slots it takes one of; 0 for tasks that are not questions.
    fn depth(self) -> Option<u32> {
        match self {
            Weight::Slot => Some(0),
            Weight::Question(depth) => Some(depth),
            Weight::PlaceAlone => None,
        }
    }
}

/// Returns the number of slots at a depth, for `cap` slots for tasks.
///
/// A question takes no slot from the run that waits for it: otherwise both could wait for each other. Each depth has
/// its own slots: half as many as for tasks, and at least one. Runs of the deepest depth ask no questions and so come
/// to their end, and with them those above. So a tenant or a profile runs at most twice its cap at once, or three if
/// the cap is 1.
fn slots(cap: usize, depth: u32) -> usize {
    if depth == 0 { cap } else { (cap / 2).max(1) }
}

impl StartClaim {
    /// Makes the claim of a candidate.
    pub fn for_candidate(board: &BoardName, candidate: &Candidate, known: RosterAndConfig<'_>) -> Self {
        let key = TaskKey { board: board.clone(), task: candidate.task.clone() };
        let claimant =
            Claimant { tenant: candidate.tenant.clone(), profile: Some(candidate.assignee.clone()) };
        let asked = ClaimInputs {
            policy: candidate.policy.as_deref(),
            workspace: &candidate.workspace,
            pools: &candidate.pools,
        };
        Self::new(key, claimant, asked, known)
    }

    /// Makes the claim of a task of a tenant and a profile. Looks at no file: a file system that does not respond would
    /// hold up all other tasks.
    pub fn new(
        key: TaskKey,
        claimant: Claimant,
        ClaimInputs { policy, workspace, pools }: ClaimInputs<'_>,
        known: RosterAndConfig<'_>,
    ) -> Self {
        let profile = claimant.profile.as_ref();
        let needs = profile.map(|profile| Needs::for_task(&key, profile, policy, workspace, known));
        let resources = profile
            .map(|profile| known.roster.pool_claim(profile, known.config))
            .unwrap_or_default()
            .with(pools);
        Self::taking(key, claimant, workspace, needs, resources)
    }

    /// Makes the claim of a task with known environments and limits.
    pub fn taking(
        key: TaskKey,
        Claimant { tenant, profile }: Claimant,
        workspace: &Workspace,
        needs: Option<Needs>,
        resources: PoolClaim,
    ) -> Self {
        let (place, preparing) = match workspace.spec() {
            Some(WorkspaceSpec::Directory(path)) => (Some(path.clone()), None),
            Some(WorkspaceSpec::Worktree { repository }) => (None, repository.clone()),
            Some(WorkspaceSpec::Scratch) | None => (None, None),
        };
        StartClaim { key, tenant, profile, resources, place, needs, preparing, weight: Weight::Slot }
    }

    /// Returns the environments that it depends on.
    pub(crate) fn environments(&self) -> impl Iterator<Item = &Environment> {
        self.needs.iter().flat_map(Needs::all)
    }

    /// Turns it into the claim of a question of this depth; unchanged without a depth.
    pub(crate) fn for_question(self, depth: Option<u32>) -> Self {
        StartClaim { weight: depth.map_or(self.weight, Weight::Question), ..self }
    }

    /// Turns it into the claim of a run whose workspace is ready.
    #[must_use]
    pub fn prepared(self) -> Self {
        StartClaim { preparing: None, ..self }
    }
}

/// Reason why a task may not start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason as text.
    pub why: Box<Waiting>,
    /// Other tasks that have the same reason.
    pub reach: Reach,
}

impl Refusal {
    pub fn new(reach: Reach, why: Waiting) -> Self {
        Refusal { why: Box::new(why), reach }
    }
}

/// Resources in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// True if tasks with a tenant share the slots with tasks without one, now or later.
    is_shared: bool,
    keys: BTreeSet<TaskKey>,
    /// Slots in use at each depth: in all, and by tenant, profile and lane.
    total: BTreeMap<u32, usize>,
    tenants: BTreeMap<(u32, Option<Tenant>), usize>,
    profiles: BTreeMap<(u32, Profile), usize>,
    lanes: BTreeMap<(u32, Profile), usize>,
    pools: BTreeMap<Pool, usize>,
    /// Places of pools in use by tenant.
    pools_of: BTreeMap<(Tenant, Pool), usize>,
    places: BTreeMap<PathBuf, (TaskKey, Option<Tenant>)>,
    preparing: BTreeMap<PathBuf, (TaskKey, Option<Tenant>)>,
    preparing_of: BTreeMap<Option<Tenant>, usize>,
}

impl Tally {
    /// Adds up claims.
    pub(crate) fn from_claims<'a>(running: impl IntoIterator<Item = &'a StartClaim>) -> Self {
        let mut tally = Tally::default();
        for claim in running {
            tally.add(claim);
        }
        tally
    }

    /// Keeps the reserve from tasks without a tenant too.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(crate) fn add(&mut self, claim: &StartClaim) {
        self.is_shared |= claim.tenant.is_some();
        self.keys.insert(claim.key.clone());
        if let Some(place) = &claim.place {
            self.places.insert(place.clone(), (claim.key.clone(), claim.tenant.clone()));
        }
        // Pools count for a claim without a slot too, because its processes may still use them.
        for pool in &claim.resources.pools {
            *self.pools.entry(pool.clone()).or_default() += 1;
            if let Some(tenant) = &claim.tenant {
                *self.pools_of.entry((tenant.clone(), pool.clone())).or_default() += 1;
            }
        }
        let Some(depth) = claim.weight.depth() else { return };
        *self.total.entry(depth).or_default() += 1;
        *self.tenants.entry((depth, claim.tenant.clone())).or_default() += 1;
        if let Some(profile) = &claim.profile {
            *self.profiles.entry((depth, profile.clone())).or_default() += 1;
        }
        if let Some(lane) = &claim.resources.lane {
            *self.lanes.entry((depth, lane.clone())).or_default() += 1;
        }
        if let Some(repository) = &claim.preparing {
            self.preparing.insert(repository.clone(), (claim.key.clone(), claim.tenant.clone()));
            *self.preparing_of.entry(claim.tenant.clone()).or_default() += 1;
        }
    }

    /// Returns true if every slot for tasks is taken.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.total_at(0) >= limits.total()
    }

    /// Returns the number of running tasks of a profile, without questions.
    pub(crate) fn of_profile(&self, profile: &Profile) -> usize {
        self.of_profile_at(0, profile)
    }

    fn total_at(&self, depth: u32) -> usize {
        self.total.get(&depth).copied().unwrap_or_default()
    }

    fn of_profile_at(&self, depth: u32, profile: &Profile) -> usize {
        self.profiles.get(&(depth, profile.clone())).copied().unwrap_or_default()
    }

    /// Returns the use of each pool that is configured or in use.
    pub(crate) fn pools(&self, pools: &Pools) -> Vec<PoolUse> {
        let names: BTreeSet<&Pool> = pools.keys().chain(self.pools.keys()).collect();
        let pool_use = |name: &Pool| PoolUse {
            name: name.clone(),
            taken: self.pools.get(name).copied().unwrap_or_default(),
            places: pools.get(name).copied(),
        };
        names.into_iter().map(pool_use).collect()
    }

    /// Returns the reason why a task may not start beside the resources in use.
    pub(crate) fn refusal(&self, claim: &StartClaim, config: &Config) -> Option<Refusal> {
        if self.keys.contains(&claim.key) {
            return Some(Refusal::new(Reach::Task, Waiting::new(WaitingCode::Starting, "is being started")));
        }
        if let Some(refusal) =
            claim.weight.depth().and_then(|depth| self.no_slot(claim, depth, &config.limits))
        {
            return Some(refusal);
        }
        if let Some((pool, why)) = self.no_pool_of_tenant(claim, config) {
            // Other tenants of its assignee may start.
            let reach = if claim.resources.of_task.contains(pool) { Reach::Line } else { Reach::Task };
            return Some(Refusal::new(reach, Waiting::new(WaitingCode::Pool, why)));
        }
        if let Some((pool, why)) = self.no_pool(claim, &config.pools) {
            let reach = if claim.resources.of_task.contains(pool) { Reach::Line } else { Reach::Profile };
            return Some(Refusal::new(reach, Waiting::new(WaitingCode::Pool, why)));
        }
        self.no_place(claim)
    }

    /// Returns the exhausted limit on slots.
    fn no_slot(&self, claim: &StartClaim, depth: u32, limits: &Limits) -> Option<Refusal> {
        let of_questions = if depth == 0 { "" } else { " for questions" };
        // More than the cap may run, because the cap can have been lowered since.
        let full = |taken: usize, cap: usize, of: &str, key: &str| {
            let cap = slots(cap, depth);
            let verb = if taken == 1 { "is" } else { "are" };
            let text = format!("waits for a slot{of_questions}{of}: {taken} of {cap} {verb} taken{key}");
            (taken >= cap).then(|| Waiting::new(WaitingCode::Slot, text))
        };
        if let Some(why) = full(self.total_at(depth), limits.total(), "", " (limits.max_running)") {
            return Some(Refusal::new(Reach::Everything, why));
        }
        let of_tenant = self.tenants.get(&(depth, claim.tenant.clone())).copied().unwrap_or_default();
        let of = claim.tenant.as_ref().map(|tenant| format!(" of tenant {tenant}"));
        if let Some(tenant) = &claim.tenant
            && let Some(cap) = limits.of_tenant(tenant)
            && let Some(why) = full(of_tenant, cap, of.as_deref().unwrap_or_default(), "")
        {
            return Some(Refusal::new(Reach::Tenant, why));
        }
        // Decision 0252.
        let most = limits.without_reserve(slots(limits.total(), depth));
        if (claim.tenant.is_some() || self.is_shared) && of_tenant >= most {
            let of = of.as_deref().unwrap_or(" of tasks without a tenant");
            let text = format!(
                "waits for a slot{of_questions}{of}: {of_tenant} of {most} are taken, and the rest is for other tenants (limits.reserve)"
            );
            return Some(Refusal::new(Reach::Tenant, Waiting::new(WaitingCode::Slot, text)));
        }
        if let Some(profile) = &claim.profile
            && let Some(cap) = limits.of_profile(profile, claim.resources.most_of_profile)
            && let taken = self.of_profile_at(depth, profile)
            && let Some(why) = full(taken, cap, &format!(" of profile {profile}"), "")
        {
            return Some(Refusal::new(Reach::Profile, why));
        }
        if let Some(lane) = &claim.resources.lane
            && let Some(cap) = limits.of_lane(lane, claim.resources.most_of_lane)
            && let taken = self.lanes.get(&(depth, lane.clone())).copied().unwrap_or_default()
            && let Some(why) = full(taken, cap, &format!(" of lane {lane}"), "")
        {
            return Some(Refusal::new(Reach::Profile, why));
        }
        None
    }

    /// Returns the first full pool of a task, its profile or its lane, with the reason. Questions need a place like
    /// every run, because places stand for a real resource.
    fn no_pool<'a>(&self, claim: &'a StartClaim, pools: &Pools) -> Option<(&'a Pool, String)> {
        let why = |pool: &Pool| {
            let taken = self.pools.get(pool).copied().unwrap_or_default();
            match pools.get(pool) {
                Some(places) if taken < *places => None,
                Some(places) => Some(format!("waits for pool {pool}: {taken} of {places} in use")),
                None => Some(format!(
                    "waits for pool {pool}: the configuration has no such pool; write {pool} = 1 into [pools]"
                )),
            }
        };
        // Pools of the profile or the lane first: they affect more tasks.
        let (of_task, shared): (Vec<&Pool>, Vec<&Pool>) =
            claim.resources.pools.iter().partition(|pool| claim.resources.of_task.contains(*pool));
        shared.into_iter().chain(of_task).find_map(|pool| Some((pool, why(pool)?)))
    }

    /// Returns the first pool of which the task's tenant uses its full share, with the reason.
    fn no_pool_of_tenant<'a>(&self, claim: &'a StartClaim, config: &Config) -> Option<(&'a Pool, String)> {
        let tenant = claim.tenant.as_ref()?;
        let caps = &config.tenants.get(tenant)?.pools;
        claim.resources.pools.iter().find_map(|pool| {
            let cap = *caps.get(pool)?;
            let taken = self.pools_of.get(&(tenant.clone(), pool.clone())).copied().unwrap_or_default();
            let why = || format!("waits for pool {pool} of tenant {tenant}: {taken} of {cap} in use");
            (taken >= cap).then(|| (pool, why()))
        })
    }

    /// Returns the refusal if another run uses the task's directory.
    fn no_place(&self, claim: &StartClaim) -> Option<Refusal> {
        if let Some(place) = &claim.place
            && let Some((taken, (holder, tenant))) =
                self.places.iter().find(|(taken, _)| overlap(taken, place))
        {
            let claimant = named(holder, tenant.as_ref(), claim);
            let text = format!("waits for {}: {claimant} works there", taken.display());
            return Some(Refusal::new(Reach::Line, Waiting::new(WaitingCode::Workspace, text)));
        }
        if let Some(why) = self.unprepared(claim) {
            return Some(Refusal::new(Reach::Line, Waiting::new(WaitingCode::Workspace, why)));
        }
        None
    }

    /// Returns the reason why no worktree is prepared for a task now. A git process that hangs holds its slot until the
    /// start is given up. So each repository prepares one worktree at a time, and each tenant only a few.
    fn unprepared(&self, claim: &StartClaim) -> Option<String> {
        let repository = claim.preparing.as_ref()?;
        if let Some((holder, tenant)) = self.preparing.get(repository) {
            let claimant = named(holder, tenant.as_ref(), claim);
            return Some(format!(
                "waits for {}: the worktree of {claimant} is being made",
                repository.display()
            ));
        }
        let others = self.preparing_of.get(&claim.tenant).copied().unwrap_or_default();
        (others >= PREPARING)
            .then(|| format!("waits for {others} other worktrees of its tenant, which are being made"))
    }
}

/// Returns true if two paths are the same, or one lies within the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Names a task for the owner of another one. A tenant learns nothing of other tenants' tasks.
fn named<'a>(holder: &'a TaskKey, tenant: Option<&Tenant>, asks: &StartClaim) -> &'a str {
    if tenant == asks.tenant.as_ref() { holder.task.as_str() } else { "a task of another tenant" }
}
