//! What runs take, and what keeps a task from starting beside them. The only place that counts slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{BoardName, Candidate, Pool, Profile, Reach, Task, Tenant, Waiting, WaitingCode};
use workspace::WorkspaceSpec;

use super::snapshot::PoolUse;
use crate::config::Config;
use crate::config::admission::{Limits, Pools};
use crate::daemon::run::environment::{Environment, Needs};
use crate::daemon::run::key::TaskKey;
use crate::roster::{Roster, Share};

/// How many worktrees of one tenant are made at the same time.
const PREPARING: usize = 2;

/// What a task asks for that decides what it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) policy: Option<&'a str>,
    pub(crate) workspace: &'a str,
    /// The pools that it names itself.
    pub(crate) pools: &'a BTreeSet<Pool>,
}

impl<'a> Asked<'a> {
    pub(crate) fn by(task: &'a Task) -> Self {
        Asked { policy: task.policy.as_deref(), workspace: &task.workspace, pools: &task.pools }
    }
}

/// What a task takes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(in crate::daemon) key: TaskKey,
    pub(in crate::daemon) tenant: Option<Tenant>,
    pub(in crate::daemon) profile: Option<Profile>,
    /// Its lane, the pools of which it takes a place, and how many of its profile and of its lane may run at once by the files
    /// of these.
    pub(in crate::daemon) share: Share,
    /// The place that it needs for itself: the directory of a `dir` workspace, as it is named. A name that leads through a
    /// symbolic link is refused at creation and at the start, and a look at the file system could wait for one that does
    /// not answer.
    pub(in crate::daemon) place: Option<PathBuf>,
    /// What it needs in common with other tasks; none where nothing is known of its profile.
    pub(in crate::daemon) needs: Option<Needs>,
    /// The repository in which its worktree has still to be made ready.
    pub(in crate::daemon) preparing: Option<PathBuf>,
    /// How much of what is limited it takes.
    pub(in crate::daemon) weight: Weight,
}

/// How much of what is limited a task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Weight {
    /// A slot, and its place.
    Slot,
    /// Its place, and its places of pools: nobody knows whether anything of it still runs.
    PlaceAlone,
    /// A slot of questions that are this deep, and its place: the run that waits for its answer has a slot of another depth.
    Question(u32),
}

impl Weight {
    /// The slots that it takes one of, by depth: 0 are those of tasks, which are no questions.
    fn depth(self) -> Option<u32> {
        match self {
            Weight::Slot => Some(0),
            Weight::Question(depth) => Some(depth),
            Weight::PlaceAlone => None,
        }
    }
}

/// The number of slots at each depth, of the number of slots for tasks.
///
/// A question takes none of the slots of who waits for it: were it to wait for one, both could wait for each other. Each depth has its
/// own, half as many as there are for tasks and at least one. Those of the deepest depth ask nobody and come to their end, so those above them
/// do as well; and what a tenant or a profile may run at once is at most twice its cap, or three where that is 1.
fn slots(cap: usize, depth: u32) -> usize {
    if depth == 0 { cap } else { (cap / 2).max(1) }
}

impl Claim {
    /// What a candidate takes.
    pub(crate) fn of(board: &BoardName, candidate: &Candidate, known: (&Roster, &Config)) -> Self {
        let key = TaskKey { board: board.clone(), task: candidate.task.clone() };
        let who = (candidate.tenant.clone(), Some(candidate.assignee.clone()));
        let asked = Asked {
            policy: candidate.policy.as_deref(),
            workspace: &candidate.workspace,
            pools: &candidate.pools,
        };
        Self::new(key, who, asked, known)
    }

    /// What a task takes: of a tenant and for a profile, with what it asks for. Looks at no
    /// file: one that does not answer would hold up all others.
    pub(crate) fn new(
        key: TaskKey,
        (tenant, profile): (Option<Tenant>, Option<Profile>),
        Asked { policy, workspace, pools }: Asked<'_>,
        known: (&Roster, &Config),
    ) -> Self {
        let needs = profile.as_ref().map(|profile| Needs::of(&key, profile, policy, workspace, known));
        let share =
            profile.as_ref().map(|profile| known.0.share(profile, known.1)).unwrap_or_default().with(pools);
        Self::taking(key, (tenant, profile), workspace, (needs, share))
    }

    /// What a task takes of which it is known what it needs, and what it takes of what is limited.
    pub(in crate::daemon) fn taking(
        key: TaskKey,
        (tenant, profile): (Option<Tenant>, Option<Profile>),
        workspace: &str,
        (needs, share): (Option<Needs>, Share),
    ) -> Self {
        let (place, preparing) = match workspace.parse() {
            Ok(WorkspaceSpec::Directory(path)) => (Some(path), None),
            Ok(WorkspaceSpec::Worktree { repository }) => (None, repository),
            Ok(WorkspaceSpec::Scratch) | Err(_) => (None, None),
        };
        Claim { key, tenant, profile, share, place, needs, preparing, weight: Weight::Slot }
    }

    /// The environments that it depends on.
    pub(in crate::daemon) fn environments(&self) -> impl Iterator<Item = &Environment> {
        self.needs.iter().flat_map(Needs::all)
    }

    /// The same for the task of a question that is so deep; for none where it is no question.
    pub(in crate::daemon) fn for_question(self, depth: Option<u32>) -> Self {
        Claim { weight: depth.map_or(self.weight, Weight::Question), ..self }
    }

    /// What a run takes that has its workspace already.
    pub(in crate::daemon) fn prepared(self) -> Self {
        Claim { preparing: None, ..self }
    }
}

/// Why a task may not start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// In words.
    pub(crate) why: Box<Waiting>,
    /// What else it keeps from starting.
    pub(crate) reach: Reach,
}

impl Refusal {
    pub(in crate::daemon) fn new(reach: Reach, why: Waiting) -> Self {
        Refusal { why: Box::new(why), reach }
    }
}

/// What is taken.
#[derive(Clone, Debug, Default)]
pub(in crate::daemon) struct Tally {
    keys: BTreeSet<TaskKey>,
    /// What is taken at each depth: of all, of each tenant, of each profile and of each lane.
    total: BTreeMap<u32, usize>,
    tenants: BTreeMap<(u32, Tenant), usize>,
    profiles: BTreeMap<(u32, Profile), usize>,
    lanes: BTreeMap<(u32, Profile), usize>,
    pools: BTreeMap<Pool, usize>,
    /// How many places of pools the runs of single tenants have.
    pools_of: BTreeMap<(Tenant, Pool), usize>,
    places: BTreeMap<PathBuf, (TaskKey, Option<Tenant>)>,
    preparing: BTreeMap<PathBuf, (TaskKey, Option<Tenant>)>,
    preparing_of: BTreeMap<Option<Tenant>, usize>,
}

impl Tally {
    /// What these take together.
    pub(in crate::daemon) fn of<'a>(running: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut tally = Tally::default();
        for claim in running {
            tally.add(claim);
        }
        tally
    }

    pub(in crate::daemon) fn add(&mut self, claim: &Claim) {
        self.keys.insert(claim.key.clone());
        if let Some(place) = &claim.place {
            self.places.insert(place.clone(), (claim.key.clone(), claim.tenant.clone()));
        }
        // What may still run may still use them.
        for pool in &claim.share.pools {
            *self.pools.entry(pool.clone()).or_default() += 1;
            if let Some(tenant) = &claim.tenant {
                *self.pools_of.entry((tenant.clone(), pool.clone())).or_default() += 1;
            }
        }
        let Some(depth) = claim.weight.depth() else { return };
        *self.total.entry(depth).or_default() += 1;
        if let Some(tenant) = &claim.tenant {
            *self.tenants.entry((depth, tenant.clone())).or_default() += 1;
        }
        if let Some(profile) = &claim.profile {
            *self.profiles.entry((depth, profile.clone())).or_default() += 1;
        }
        if let Some(lane) = &claim.share.lane {
            *self.lanes.entry((depth, lane.clone())).or_default() += 1;
        }
        if let Some(repository) = &claim.preparing {
            self.preparing.insert(repository.clone(), (claim.key.clone(), claim.tenant.clone()));
            *self.preparing_of.entry(claim.tenant.clone()).or_default() += 1;
        }
    }

    /// Whether every slot of tasks is taken.
    pub(in crate::daemon) fn is_full(&self, limits: &Limits) -> bool {
        self.total_at(0) >= limits.total()
    }

    /// How many tasks of a profile run that are no questions.
    pub(in crate::daemon) fn of_profile(&self, profile: &Profile) -> usize {
        self.of_profile_at(0, profile)
    }

    fn total_at(&self, depth: u32) -> usize {
        self.total.get(&depth).copied().unwrap_or_default()
    }

    fn of_profile_at(&self, depth: u32, profile: &Profile) -> usize {
        self.profiles.get(&(depth, profile.clone())).copied().unwrap_or_default()
    }

    /// How many places of each pool are taken, of those that there are and of those that runs have.
    pub(in crate::daemon) fn pools(&self, pools: &Pools) -> Vec<PoolUse> {
        let names: BTreeSet<&Pool> = pools.keys().chain(self.pools.keys()).collect();
        let pool_use = |name: &Pool| PoolUse {
            name: name.clone(),
            taken: self.pools.get(name).copied().unwrap_or_default(),
            places: pools.get(name).copied(),
        };
        names.into_iter().map(pool_use).collect()
    }

    /// Why a task may not start beside what is taken.
    pub(in crate::daemon) fn refusal(&self, claim: &Claim, config: &Config) -> Option<Refusal> {
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
            let reach = if claim.share.of_task.contains(pool) { Reach::Line } else { Reach::Task };
            return Some(Refusal::new(reach, Waiting::new(WaitingCode::Pool, why)));
        }
        if let Some((pool, why)) = self.no_pool(claim, &config.pools) {
            let reach = if claim.share.of_task.contains(pool) { Reach::Line } else { Reach::Profile };
            return Some(Refusal::new(reach, Waiting::new(WaitingCode::Pool, why)));
        }
        self.no_place(claim)
    }

    /// Why there is no slot for a task.
    fn no_slot(&self, claim: &Claim, depth: u32, limits: &Limits) -> Option<Refusal> {
        let of_questions = if depth == 0 { "" } else { " for questions" };
        // A cap that was lowered can be lower than what runs.
        let full = |taken: usize, cap: usize, of: &str, key: &str| {
            let cap = slots(cap, depth);
            let verb = if taken == 1 { "is" } else { "are" };
            let text = format!("waits for a slot{of_questions}{of}: {taken} of {cap} {verb} taken{key}");
            (taken >= cap).then(|| Waiting::new(WaitingCode::Slot, text))
        };
        if let Some(why) = full(self.total_at(depth), limits.total(), "", " (limits.max_running)") {
            return Some(Refusal::new(Reach::Everything, why));
        }
        if let Some(tenant) = &claim.tenant
            && let Some(cap) = limits.of_tenant(tenant)
            && let taken = self.tenants.get(&(depth, tenant.clone())).copied().unwrap_or_default()
            && let Some(why) = full(taken, cap, &format!(" of tenant {tenant}"), "")
        {
            return Some(Refusal::new(Reach::Tenant, why));
        }
        if let Some(profile) = &claim.profile
            && let Some(cap) = limits.of_profile(profile, claim.share.most_of_profile)
            && let taken = self.of_profile_at(depth, profile)
            && let Some(why) = full(taken, cap, &format!(" of profile {profile}"), "")
        {
            return Some(Refusal::new(Reach::Profile, why));
        }
        if let Some(lane) = &claim.share.lane
            && let Some(cap) = limits.of_lane(lane, claim.share.most_of_lane)
            && let taken = self.lanes.get(&(depth, lane.clone())).copied().unwrap_or_default()
            && let Some(why) = full(taken, cap, &format!(" of lane {lane}"), "")
        {
            return Some(Refusal::new(Reach::Profile, why));
        }
        None
    }

    /// Why there is no place for a task in a pool of its own, of its profile or of its lane, and in which. A question needs one as every run does: there are no
    /// more of them than there are.
    fn no_pool<'a>(&self, claim: &'a Claim, pools: &Pools) -> Option<(&'a Pool, String)> {
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
        // One of the profile's or the lane's first: it reaches further.
        let (of_task, shared): (Vec<&Pool>, Vec<&Pool>) =
            claim.share.pools.iter().partition(|pool| claim.share.of_task.contains(*pool));
        shared.into_iter().chain(of_task).find_map(|pool| Some((pool, why(pool)?)))
    }

    /// Why the tenant of a task has as many places of a pool as it may have, and of which.
    fn no_pool_of_tenant<'a>(&self, claim: &'a Claim, config: &Config) -> Option<(&'a Pool, String)> {
        let tenant = claim.tenant.as_ref()?;
        let caps = &config.tenants.get(tenant)?.pools;
        claim.share.pools.iter().find_map(|pool| {
            let cap = *caps.get(pool)?;
            let taken = self.pools_of.get(&(tenant.clone(), pool.clone())).copied().unwrap_or_default();
            let why = || format!("waits for pool {pool} of tenant {tenant}: {taken} of {cap} in use");
            (taken >= cap).then(|| (pool, why()))
        })
    }

    /// Why somebody else has the place of a task.
    fn no_place(&self, claim: &Claim) -> Option<Refusal> {
        if let Some(place) = &claim.place
            && let Some((taken, (holder, tenant))) =
                self.places.iter().find(|(taken, _)| overlap(taken, place))
        {
            let who = named(holder, tenant.as_ref(), claim);
            let text = format!("waits for {}: {who} works there", taken.display());
            return Some(Refusal::new(Reach::Line, Waiting::new(WaitingCode::Workspace, text)));
        }
        if let Some(why) = self.unprepared(claim) {
            return Some(Refusal::new(Reach::Line, Waiting::new(WaitingCode::Workspace, why)));
        }
        None
    }

    /// Why no worktree is made for a task now. A start in a repository that makes git wait holds its slot until it is given
    /// up, so there is one in each repository at a time, and few of one tenant.
    fn unprepared(&self, claim: &Claim) -> Option<String> {
        let repository = claim.preparing.as_ref()?;
        if let Some((holder, tenant)) = self.preparing.get(repository) {
            let who = named(holder, tenant.as_ref(), claim);
            return Some(format!("waits for {}: the worktree of {who} is being made", repository.display()));
        }
        let others = self.preparing_of.get(&claim.tenant).copied().unwrap_or_default();
        (others >= PREPARING)
            .then(|| format!("waits for {others} other worktrees of its tenant, which are being made"))
    }
}

/// Whether one of two paths is the other, or lies in it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// A task as the owner of another one may know it: one tenant learns nothing of another one's tasks.
fn named<'a>(holder: &'a TaskKey, tenant: Option<&Tenant>, asks: &Claim) -> &'a str {
    if tenant == asks.tenant.as_ref() { holder.task.as_str() } else { "a task of another tenant" }
}
