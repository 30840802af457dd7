//! Admission: which ready tasks may start now. The only place that counts slots.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Profile, Tenant, Waiting, WaitingCode};

use super::TaskKey;
use crate::config::Limits;

/// How many worktrees of one tenant are made at the same time.
const PREPARING: usize = 2;

/// What a task takes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The task.
    pub(super) key: TaskKey,
    /// Its tenant.
    pub(super) tenant: Option<Tenant>,
    /// Its profile.
    pub(super) profile: Option<Profile>,
    /// The place that it needs for itself: the directory of a `dir` workspace.
    pub(super) place: Option<String>,
    /// The environment that it depends on: its lane and repository.
    pub(super) environment: String,
    /// The repository in which its worktree has still to be made ready.
    pub(super) preparing: Option<String>,
    /// How much of what is limited it takes.
    pub(super) weight: Weight,
}

/// How much of what is limited a task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// A slot, and its place.
    Slot,
    /// Its place alone: nobody knows whether anything of it still runs.
    PlaceAlone,
}

impl Claim {
    /// What a task takes. `place` is the directory that a `dir` workspace stands for, by its real path.
    pub(super) fn new(
        key: TaskKey,
        tenant: Option<Tenant>,
        profile: Option<Profile>,
        workspace: &str,
        place: Option<String>,
    ) -> Self {
        let lane = profile.as_ref().map(Profile::as_str).unwrap_or_default();
        let repository = workspace.strip_prefix("worktree:");
        let environment = format!("{lane} {}", repository.unwrap_or_default()).trim_end().to_owned();
        let preparing = repository.map(str::to_owned);
        Claim { key, tenant, profile, place, environment, preparing, weight: Weight::Slot }
    }

    /// What a run takes that has its workspace already.
    pub(super) fn prepared(self) -> Self {
        Claim { preparing: None, ..self }
    }
}

/// The directory that a workspace needs for itself, by its real path: two names of one directory are one place.
pub(super) fn place_of(workspace: &str) -> Option<String> {
    let path = workspace.strip_prefix("dir:")?;
    let real = std::fs::canonicalize(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    Some(real.unwrap_or_else(|| path.to_owned()))
}

/// Environments that have failed to start a worker, with what their tasks wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Breakers {
    open: BTreeMap<String, String>,
}

impl Breakers {
    /// A start failed because of its environment.
    pub(super) fn trip(&mut self, environment: &str, error: &str) {
        self.open.insert(environment.to_owned(), error.to_owned());
    }

    /// A start worked: whatever the environment lacked is there again.
    pub(super) fn reset(&mut self, environment: &str) {
        self.open.remove(environment);
    }
}

/// Decides on ready tasks in the order given. Returns those that start, and why each other one waits.
pub(super) fn admit<'a>(
    ready: Vec<Claim>,
    running: impl IntoIterator<Item = &'a Claim>,
    limits: &Limits,
    breakers: &Breakers,
    budget: Option<usize>,
) -> (Vec<Claim>, Vec<(TaskKey, Waiting)>) {
    let mut tally = Tally::of(running);
    let mut admitted = Vec::new();
    let mut waiting = Vec::new();
    for claim in ready {
        let spent = budget.is_some_and(|budget| admitted.len() >= budget);
        let refusal = if spent { Some(spent_pass()) } else { tally.refusal(&claim, limits, breakers) };
        if let Some(why) = refusal {
            waiting.push((claim.key, why));
        } else {
            tally.add(&claim);
            admitted.push(claim);
        }
    }
    (admitted, waiting)
}

/// Why nothing more is started in a pass with a limit.
pub(super) fn spent_pass() -> Waiting {
    Waiting::new(WaitingCode::Pass, "the pass has started as many tasks as --max allows")
}

/// What is taken.
#[derive(Default)]
pub(super) struct Tally {
    total: usize,
    tenants: BTreeMap<Tenant, usize>,
    profiles: BTreeMap<Profile, usize>,
    places: BTreeMap<String, (TaskKey, Option<Tenant>)>,
    environments: BTreeSet<String>,
    preparing: BTreeMap<String, (TaskKey, Option<Tenant>)>,
    preparing_of: BTreeMap<Option<Tenant>, usize>,
}

impl Tally {
    /// What these take together.
    pub(super) fn of<'a>(running: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut tally = Tally::default();
        for claim in running {
            tally.add(claim);
        }
        tally
    }

    fn add(&mut self, claim: &Claim) {
        if let Some(place) = &claim.place {
            self.places.insert(place.clone(), (claim.key.clone(), claim.tenant.clone()));
        }
        if claim.weight == Weight::PlaceAlone {
            return;
        }
        self.total += 1;
        if let Some(tenant) = &claim.tenant {
            *self.tenants.entry(tenant.clone()).or_default() += 1;
        }
        if let Some(profile) = &claim.profile {
            *self.profiles.entry(profile.clone()).or_default() += 1;
        }
        self.environments.insert(claim.environment.clone());
        if let Some(repository) = &claim.preparing {
            self.preparing.insert(repository.clone(), (claim.key.clone(), claim.tenant.clone()));
            *self.preparing_of.entry(claim.tenant.clone()).or_default() += 1;
        }
    }

    /// Why a task may not start beside what is taken.
    pub(super) fn refusal(&self, claim: &Claim, limits: &Limits, breakers: &Breakers) -> Option<Waiting> {
        let slot = |text: String| Some(Waiting::new(WaitingCode::Slot, text));
        let total = limits.total();
        if self.total >= total {
            return slot(format!("waits for a slot: {total} of {total} are taken (limits.max_running)"));
        }
        if let Some(tenant) = &claim.tenant
            && let Some(cap) = limits.tenants.get(tenant.as_str()).copied().or(limits.per_tenant)
            && self.tenants.get(tenant).is_some_and(|n| *n >= cap)
        {
            return slot(format!("waits for a slot of tenant {tenant}: {cap} of {cap} are taken"));
        }
        if let Some(profile) = &claim.profile
            && let Some(cap) = limits.profiles.get(profile.as_str()).copied().or(limits.per_profile)
            && self.profiles.get(profile).is_some_and(|n| *n >= cap)
        {
            return slot(format!("waits for a slot of profile {profile}: {cap} of {cap} are taken"));
        }
        if let Some(place) = &claim.place
            && let Some((holder, tenant)) = self.places.get(place)
        {
            let text = format!("waits for {place}: {} works there", named(holder, tenant.as_ref(), claim));
            return Some(Waiting::new(WaitingCode::Workspace, text));
        }
        if let Some(why) = self.unprepared(claim) {
            return Some(Waiting::new(WaitingCode::Workspace, why));
        }
        if let Some(error) = breakers.open.get(&claim.environment)
            && self.environments.contains(&claim.environment)
        {
            let text =
                format!("waits for its environment to work again ({error}); another task is trying it");
            return Some(Waiting::new(WaitingCode::Environment, text));
        }
        None
    }

    /// Why no worktree is made for a task now. A start in a repository that makes git wait holds its slot until it is given
    /// up, so there is one in each repository at a time, and few of one tenant.
    fn unprepared(&self, claim: &Claim) -> Option<String> {
        let repository = claim.preparing.as_ref()?;
        if let Some((holder, tenant)) = self.preparing.get(repository) {
            let who = named(holder, tenant.as_ref(), claim);
            return Some(format!("waits for {repository}: the worktree of {who} is being made"));
        }
        let others = self.preparing_of.get(&claim.tenant).copied().unwrap_or_default();
        (others >= PREPARING)
            .then(|| format!("waits for {others} other worktrees of its tenant, which are being made"))
    }
}

/// A task as the owner of another one may know it: one tenant learns nothing of another one's tasks.
fn named<'a>(holder: &'a TaskKey, tenant: Option<&Tenant>, asks: &Claim) -> &'a str {
    if tenant == asks.tenant.as_ref() { holder.task.as_str() } else { "a task of another tenant" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(n: u32, tenant: &str) -> Claim {
        Claim {
            key: TaskKey { board: "default".parse().unwrap(), task: format!("t_{n:08x}").parse().unwrap() },
            tenant: Some(tenant.parse().unwrap()),
            profile: Some("shell".parse().unwrap()),
            place: None,
            environment: "shell".to_owned(),
            preparing: None,
            weight: Weight::Slot,
        }
    }

    fn caps(text: &str) -> Limits {
        toml::from_str(text).unwrap()
    }

    fn ids(claims: &[Claim]) -> Vec<String> {
        claims.iter().map(|c| c.key.task.to_string()).collect()
    }

    #[test]
    fn the_total_cap_counts_what_runs_and_what_was_just_admitted() {
        let running = [claim(1, "a")];
        let ready = vec![claim(2, "a"), claim(3, "b"), claim(4, "c")];
        let (admitted, waiting) =
            admit(ready, &running, &caps("max_running = 3"), &Breakers::default(), None);
        assert_eq!(ids(&admitted), ["t_00000002", "t_00000003"]);
        assert!(waiting[0].1.text.contains("3 of 3"));
    }

    #[test]
    fn a_run_of_which_nobody_knows_whether_it_lives_keeps_its_place_and_takes_no_slot() {
        let at = |n, place: &str| Claim { place: Some(place.to_owned()), ..claim(n, "a") };
        let running = [Claim { weight: Weight::PlaceAlone, ..at(1, "/w") }];
        let ready = vec![at(2, "/w"), at(3, "/v")];
        let (admitted, waiting) =
            admit(ready, &running, &caps("max_running = 1"), &Breakers::default(), None);
        assert_eq!(ids(&admitted), ["t_00000003"]);
        assert!(waiting[0].1.text.contains("/w"), "{waiting:?}");
    }

    #[test]
    fn a_full_tenant_does_not_hold_up_the_others() {
        let ready = vec![claim(1, "a"), claim(2, "a"), claim(3, "b")];
        let limits = caps("max_running = 9\nper_tenant = 1");
        let (admitted, waiting) = admit(ready, [], &limits, &Breakers::default(), None);
        assert_eq!(ids(&admitted), ["t_00000001", "t_00000003"]);
        assert!(waiting[0].1.text.contains("tenant a"));
    }

    #[test]
    fn one_directory_has_one_worker_at_a_time() {
        let place = |n| Claim { place: Some("/srv/x".to_owned()), ..claim(n, "a") };
        let limits = caps("max_running = 9");
        let (admitted, waiting) = admit(vec![place(1), place(2)], [], &limits, &Breakers::default(), None);
        assert_eq!(admitted.len(), 1);
        assert!(waiting[0].1.text.contains("/srv/x"));
    }

    #[test]
    fn a_repository_makes_one_worktree_at_a_time_and_a_tenant_few() {
        let of = |n, tenant: &str, repository: &str| Claim {
            preparing: Some(repository.to_owned()),
            ..claim(n, tenant)
        };
        let ready = vec![
            of(1, "a", "/one"),
            of(2, "a", "/one"),
            of(3, "b", "/one"),
            of(4, "a", "/two"),
            of(5, "a", "/three"),
            claim(6, "a"),
        ];
        let limits = caps("max_running = 9");
        let (admitted, waiting) = admit(ready, [], &limits, &Breakers::default(), None);
        assert_eq!(ids(&admitted), ["t_00000001", "t_00000004", "t_00000006"]);
        let texts: Vec<&str> = waiting.iter().map(|(_, why)| why.text.as_str()).collect();
        assert!(texts[0].contains("the worktree of t_00000001 is being made"), "{texts:?}");
        assert!(texts[1].contains("a task of another tenant"), "{texts:?}");
        assert!(texts[2].contains("2 other worktrees of its tenant"), "{texts:?}");
        let running = [of(1, "a", "/one").prepared()];
        let (admitted, _) = admit(vec![of(2, "a", "/one")], &running, &limits, &Breakers::default(), None);
        assert_eq!(admitted.len(), 1);
    }

    #[test]
    fn a_broken_environment_gets_one_probe_at_a_time() {
        let mut breakers = Breakers::default();
        breakers.trip("shell", "no /bin/sh");
        let limits = caps("max_running = 9");
        let (admitted, waiting) = admit(vec![claim(1, "a"), claim(2, "a")], [], &limits, &breakers, None);
        assert_eq!((admitted.len(), waiting.len()), (1, 1));
        breakers.reset("shell");
        let (admitted, _) = admit(vec![claim(1, "a"), claim(2, "a")], [], &limits, &breakers, None);
        assert_eq!(admitted.len(), 2);
    }

    #[test]
    fn a_budget_ends_a_pass() {
        let limits = caps("max_running = 9");
        let ready = vec![claim(1, "a"), claim(2, "a")];
        let (admitted, _) = admit(ready, [], &limits, &Breakers::default(), Some(1));
        assert_eq!(admitted.len(), 1);
    }
}
