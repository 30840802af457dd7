//! Capacity for one more task: one answer for the start, the explanation and the dry run.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{BoardName, Hold, Reach, Tenant, Timestamp, View, Waiting, WaitingCode};

use super::admission::{Refusal, StartClaim, Tally};
use super::backoff::{Allowance, Backoff};
use super::headroom::lack;
use super::snapshot::{DISABLED, PoolUse};
use super::stopping::StopMode;
use crate::run::environment::Environment;
use host::headroom::Gauge;
use setup::config::Config;

/// Capacity at one time: all that decides whether a task may start. An admitted task is counted at once.
#[derive(Clone, Debug)]
pub struct Capacity {
    tally: Tally,
    admitted: usize,
    /// Tenants of admitted tasks.
    started: BTreeSet<Option<Tenant>>,
    budget: Option<usize>,
    stopping: Option<StopMode>,
    backoff: Backoff,
    /// Broken environments that an admitted task probes.
    probed: BTreeSet<Environment>,
    /// Resource that the host lacks, as a reason to wait.
    lack: Option<Waiting>,
    config: Arc<Config>,
}

impl Capacity {
    /// Makes the capacity beside running tasks, with nothing else known.
    pub fn with_running<'a>(running: impl IntoIterator<Item = &'a StartClaim>, config: Arc<Config>) -> Self {
        let mut tally = Tally::from_claims(running);
        if config.names_tenants() {
            tally.share();
        }
        Capacity {
            tally,
            admitted: 0,
            started: BTreeSet::new(),
            budget: None,
            stopping: None,
            backoff: Backoff::default(),
            probed: BTreeSet::new(),
            lack: None,
            config,
        }
    }

    /// Adds the owner's state: failures, waits, and a stop in progress.
    #[must_use]
    pub fn with_owner_state(self, backoff: &Backoff, stopping: Option<StopMode>) -> Self {
        Capacity { backoff: backoff.clone(), stopping, ..self }
    }

    /// Adds the breakers that a board stores, for a caller outside of the daemon.
    #[must_use]
    pub fn keeping(mut self, board: &BoardName, holds: &[Hold], now: Timestamp) -> Self {
        self.backoff.learn(board, holds, now);
        self.backoff.expire(now);
        self
    }

    /// Measures the host, if the configuration asks for it.
    #[must_use]
    pub fn measured(self, gauge: Gauge) -> Self {
        let lack = lack(&self.config.dispatch, gauge);
        Capacity { lack, ..self }
    }

    /// Keeps the reserve of slots from tasks without a tenant too, because some board has, or may have, a tenant.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.tally.share();
        self
    }

    /// Does the same if this board has, or had, a tenant.
    pub(crate) fn share_with_tenants_of(&mut self, view: &View<'_>) -> Result<(), kernel::Error> {
        if !self.tally.is_shared() && view.has_tenants()? {
            self.tally.share();
        }
        Ok(())
    }

    /// Returns the use of each pool.
    pub fn pools(&self) -> Vec<PoolUse> {
        self.tally.pools(&self.config.pools)
    }

    /// Limits the number of further tasks.
    #[must_use]
    pub fn limited(self, most: Option<usize>) -> Self {
        let budget = self.budget.into_iter().chain(most).min();
        Capacity { budget, ..self }
    }

    /// Returns its configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    /// Returns true if no task at all may start.
    pub fn is_closed(&self) -> bool {
        self.stopping.is_some()
            || !self.config.dispatch.enabled
            || self.backoff.is_paused()
            || self.is_spent()
            || self.tally.is_full(&self.config.limits)
    }

    fn is_spent(&self) -> bool {
        self.budget.is_some_and(|budget| self.admitted >= budget)
    }

    /// Returns the number of running tasks of the claim's profile if it has reached its limit.
    pub fn full_profile(&self, claim: &StartClaim) -> Option<usize> {
        let profile = claim.profile.as_ref()?;
        let current = self.tally.of_profile(profile);
        let cap = self.config.limits.of_profile(profile, claim.resources.most_of_profile);
        cap.filter(|cap| current >= *cap).map(|_| current)
    }

    // Decision 0022.
    /// Returns the reason why a task may not start now, if any. Reasons that affect more tasks come first.
    pub fn refusal(&self, claim: &StartClaim) -> Option<Refusal> {
        if let Some(mode) = self.stopping {
            let text = format!("nothing is started any more: the daemon is {}", mode.word());
            return Some(Refusal::new(Reach::Everything, Waiting::new(WaitingCode::Stopping, text)));
        }
        if !self.config.dispatch.enabled {
            return Some(Refusal::new(Reach::Everything, Waiting::new(WaitingCode::Disabled, DISABLED)));
        }
        if let Some(disabled) = self.config.tenants.waiting(claim.tenant.as_ref()) {
            return Some(Refusal::new(Reach::Tenant, disabled));
        }
        // While failures of the host are tested, one start at a time is the probe.
        let paused = match self.backoff.allowance() {
            Allowance::Nothing => true,
            Allowance::OneProbe => self.admitted > 0,
            Allowance::Everything => false,
        };
        if let Some(obstacle) = self.backoff.obstacle().filter(|_| paused) {
            return Some(Refusal::new(Reach::Everything, obstacle));
        }
        if let Some(deaths) = self.backoff.deaths(claim.tenant.as_ref(), self.started.contains(&claim.tenant))
        {
            return Some(Refusal::new(Reach::Tenant, deaths));
        }
        if let Some(deferral) = self.backoff.deferral(&claim.key) {
            return Some(Refusal::new(Reach::Task, deferral));
        }
        if let Some(breakage) = self.backoff.breakage(&claim.key, claim.environments(), &self.probed) {
            return Some(Refusal::new(Reach::Task, breakage));
        }
        if let Some(refusal) = self.tally.refusal(claim, &self.config) {
            return Some(refusal);
        }
        if let Some(lack) = &self.lack {
            return Some(Refusal::new(Reach::Everything, lack.clone()));
        }
        self.is_spent().then(|| {
            let text = "waits for another pass: this one starts no more";
            Refusal::new(Reach::Everything, Waiting::new(WaitingCode::Pass, text))
        })
    }

    /// Admits a task and counts it, or returns the reason against it.
    pub fn admit(&mut self, claim: &StartClaim) -> Result<(), Refusal> {
        if let Some(refusal) = self.refusal(claim) {
            return Err(refusal);
        }
        self.tally.add(claim);
        self.probed.extend(self.backoff.broken_of(claim.environments()));
        self.started.insert(claim.tenant.clone());
        self.admitted += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::Weight;
    use super::super::backoff::Died;
    use super::*;
    use crate::run::environment::Needs;
    use crate::run::key::TaskKey;
    use host::headroom::{Pressure, Reading};
    use setup::roster::PoolClaim;

    fn claim(n: u32, tenant: &str) -> StartClaim {
        StartClaim {
            key: TaskKey { board: BoardName::default(), task: format!("t_{n:08x}").parse().unwrap() },
            tenant: Some(tenant.parse().unwrap()),
            profile: Some("shell".parse().unwrap()),
            resources: PoolClaim::default(),
            place: None,
            needs: Some(Needs::scratch("shell")),
            preparing: None,
            weight: Weight::Slot,
        }
    }

    fn capacity(limits: &str, running: &[StartClaim]) -> Capacity {
        configured(&format!("[limits]\nreserve = 0\n{limits}"), running)
    }

    fn configured(text: &str, running: &[StartClaim]) -> Capacity {
        Capacity::with_running(running, Arc::new(toml::from_str(text).unwrap()))
    }

    /// Returns the claim of a run in a lane with these pools.
    fn pooled(n: u32, lane: &str, pools: &[&str]) -> StartClaim {
        let pools = pools.iter().map(|pool| pool.parse().unwrap()).collect();
        let resources = PoolClaim { lane: Some(lane.parse().unwrap()), pools, ..PoolClaim::default() };
        StartClaim { resources, ..claim(n, "a") }
    }

    /// Returns the admitted tasks and the refusals of the others.
    fn decide(mut capacity: Capacity, ready: &[StartClaim]) -> (Vec<String>, Vec<Refusal>) {
        let (mut admitted, mut refused) = (Vec::new(), Vec::new());
        for claim in ready {
            match capacity.admit(claim) {
                Ok(()) => admitted.push(claim.key.task.to_string()),
                Err(refusal) => refused.push(refusal),
            }
        }
        (admitted, refused)
    }

    #[test]
    fn the_total_cap_counts_what_runs_and_what_was_just_admitted() {
        let ready = [claim(2, "a"), claim(3, "b"), claim(4, "c")];
        let (admitted, refused) = decide(capacity("max_running = 3", &[claim(1, "a")]), &ready);
        assert_eq!(admitted, ["t_00000002", "t_00000003"]);
        assert!(refused[0].why.text.contains("3 of 3") && refused[0].reach == Reach::Everything);
    }

    #[test]
    fn a_run_of_which_nobody_knows_whether_it_lives_keeps_its_place_and_takes_no_slot() {
        let at = |n, place: &str| StartClaim { place: Some(place.into()), ..claim(n, "a") };
        let running = [StartClaim { weight: Weight::PlaceAlone, ..at(1, "/w") }];
        let (admitted, refused) = decide(capacity("max_running = 1", &running), &[at(2, "/w"), at(3, "/v")]);
        assert_eq!(admitted, ["t_00000003"]);
        assert!(refused[0].why.text.contains("/w"), "{refused:?}");
    }

    #[test]
    fn a_question_starts_beside_its_asker_where_every_slot_is_taken_and_takes_none() {
        let full =
            |running: &[StartClaim]| capacity("max_running = 2\nper_tenant = 2\nper_profile = 2", running);
        let question = claim(3, "a").for_question(Some(1));
        let (admitted, _) = decide(full(&[claim(1, "a"), claim(2, "a")]), &[question.clone(), claim(4, "a")]);
        assert_eq!(admitted, ["t_00000003"]);
        let (admitted, _) = decide(full(&[claim(1, "a"), question]), &[claim(4, "a")]);
        assert_eq!(admitted, ["t_00000004"]);
    }

    #[test]
    fn questions_have_half_as_many_slots_at_each_depth_of_all_of_a_tenant_and_of_a_profile() {
        let at = |n, depth, tenant: &str| claim(n, tenant).for_question(Some(depth));
        for limits in
            ["max_running = 4", "max_running = 99\nper_tenant = 4", "max_running = 99\nper_profile = 4"]
        {
            let running: Vec<StartClaim> = (1..=4).map(|n| claim(n, "a")).collect();
            let asked: Vec<StartClaim> = (5..=9).map(|n| at(n, 1, "a")).collect();
            let (admitted, refused) = decide(capacity(limits, &running), &asked);
            assert_eq!((admitted.len(), refused.len()), (2, 3), "{limits}");
            assert!(refused[0].why.text.contains("for questions") && refused[0].why.text.contains("2 of 2"));
            // Questions of the next depth have slots of their own, so no circular wait arises.
            let running = [running, vec![at(5, 1, "a"), at(6, 1, "a")]].concat();
            let deeper: Vec<StartClaim> = (10..=14).map(|n| at(n, 2, "a")).collect();
            assert_eq!(decide(capacity(limits, &running), &deeper).0.len(), 2, "{limits}");
        }
        let running = [claim(1, "a"), at(2, 1, "a")];
        assert_eq!(
            decide(capacity("per_tenant = 1", &running), &[at(3, 1, "a"), at(4, 2, "a")]).0,
            ["t_00000004"]
        );
    }

    #[test]
    fn a_tenant_leaves_the_reserve_to_others_before_they_have_any_task() {
        let all: Vec<StartClaim> = (1..=5).map(|n| claim(n, "a")).collect();
        for (limits, starts) in [
            ("max_running = 4", 3),
            ("max_running = 4\nreserve = 2", 2),
            ("max_running = 4\nreserve = 0", 4),
            ("max_running = 4\nreserve = 9", 1),
            ("max_running = 2", 1),
            ("max_running = 1", 1),
            ("max_running = 4\ntenants = { a = 4 }", 3),
            ("max_running = 4\nper_tenant = 2", 2),
        ] {
            let (admitted, _) = decide(configured(&format!("[limits]\n{limits}"), &[]), &all);
            assert_eq!(admitted.len(), starts, "{limits}");
        }
        let (admitted, refused) =
            decide(configured("[limits]\nmax_running = 4", &all[..3]), &[claim(4, "a"), claim(6, "b")]);
        assert_eq!((admitted, refused[0].reach), (vec!["t_00000006".to_owned()], Reach::Tenant));
        assert_eq!(
            refused[0].why.text,
            "waits for a slot of tenant a: 3 of 3 are taken, and the rest is for other tenants (limits.reserve)"
        );
    }

    #[test]
    fn tasks_without_a_tenant_are_those_of_one_tenant_where_there_are_others() {
        let bare: Vec<StartClaim> = (1..=4).map(|n| StartClaim { tenant: None, ..claim(n, "a") }).collect();
        let empty = |text: &str| configured(&format!("[limits]\nmax_running = 4\n{text}"), &[]);
        assert_eq!(decide(empty(""), &bare).0.len(), 4);
        assert_eq!(decide(empty("").shared(), &bare).0.len(), 3);
        assert_eq!(decide(empty("tenants = { a = 1 }"), &bare).0.len(), 3);
        let (admitted, refused) = decide(empty(""), &[vec![claim(9, "b")], bare.clone()].concat());
        assert_eq!((admitted.len(), refused.len()), (4, 1));
        let (admitted, refused) =
            decide(configured("[limits]\nmax_running = 4", &bare[..3]).shared(), &bare[3..]);
        assert!(
            admitted.is_empty() && refused[0].why.text.contains("of tasks without a tenant"),
            "{refused:?}"
        );
    }

    #[test]
    fn questions_of_one_tenant_leave_a_slot_for_those_of_others() {
        let question = |n, tenant: &str| claim(n, tenant).for_question(Some(1));
        let asked = [question(1, "a"), question(2, "a"), question(3, "b")];
        let (admitted, _) = decide(configured("[limits]\nmax_running = 4", &[]), &asked);
        assert_eq!(admitted, ["t_00000001", "t_00000003"]);
    }

    #[test]
    fn a_full_tenant_does_not_hold_up_the_others() {
        let ready = [claim(1, "a"), claim(2, "a"), claim(3, "b")];
        let (admitted, refused) = decide(capacity("max_running = 9\nper_tenant = 1", &[]), &ready);
        assert_eq!(admitted, ["t_00000001", "t_00000003"]);
        assert!(refused[0].why.text.contains("tenant a") && refused[0].reach == Reach::Tenant);
    }

    #[test]
    fn a_lane_has_a_cap_on_the_workers_of_all_its_profiles() {
        let of = |n, lane: &str, profile: &str| StartClaim {
            profile: Some(profile.parse().unwrap()),
            ..pooled(n, lane, &[])
        };
        let ready = [of(2, "claude", "b"), of(3, "claude", "c"), of(4, "codex", "d")];
        let (admitted, refused) = decide(capacity("lanes = { claude = 2 }", &[of(1, "claude", "a")]), &ready);
        assert_eq!(admitted, ["t_00000002", "t_00000004"]);
        assert_eq!(refused[0].why.text, "waits for a slot of lane claude: 2 of 2 are taken");
        let own = |n| StartClaim {
            resources: PoolClaim { most_of_lane: Some(1), ..pooled(n, "claude", &[]).resources },
            ..claim(n, "a")
        };
        assert_eq!(decide(capacity("per_lane = 9", &[own(1)]), &[own(2)]).0.len(), 0);
        assert_eq!(decide(capacity("lanes = { claude = 2 }", &[own(1)]), &[own(2)]).0.len(), 1);
    }

    #[test]
    fn a_cap_that_was_lowered_says_how_many_run() {
        let running: Vec<StartClaim> = (1..=4).map(|n| claim(n, "a")).collect();
        let (_, refused) = decide(capacity("max_running = 2", &running), &[claim(5, "a")]);
        assert_eq!(refused[0].why.text, "waits for a slot: 4 of 2 are taken (limits.max_running)");
    }

    #[test]
    fn a_run_has_one_place_of_each_pool_that_it_names() {
        let text = "[pools]\ngpu = 1\nlicence = 2\n[limits]\nmax_running = 9";
        let running = [pooled(1, "a", &["gpu", "licence"])];
        let ready = [
            pooled(2, "a", &["gpu"]),
            pooled(3, "b", &["licence"]),
            pooled(4, "b", &["licence"]),
            claim(5, "a"),
        ];
        let (admitted, refused) = decide(configured(text, &running), &ready);
        assert_eq!(admitted, ["t_00000003", "t_00000005"]);
        let shown: Vec<_> =
            refused.iter().map(|refusal| (refusal.why.code, refusal.why.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                (WaitingCode::Pool, "waits for pool gpu: 1 of 1 in use"),
                (WaitingCode::Pool, "waits for pool licence: 2 of 2 in use"),
            ]
        );
        let pools = configured(text, &running).pools();
        let shown: Vec<_> = pools.iter().map(|one| (one.name.as_str(), one.taken, one.places)).collect();
        assert_eq!(shown, [("gpu", 1, Some(1)), ("licence", 1, Some(2))]);
    }

    #[test]
    fn a_pool_that_is_not_configured_starts_nothing_and_a_question_has_no_place_beside_it() {
        let (_, refused) = decide(configured("", &[]), &[pooled(1, "a", &["gpu"])]);
        assert!(refused[0].why.text.contains("no such pool"), "{refused:?}");
        let one = "[pools]\ngpu = 1";
        let question = pooled(2, "a", &["gpu"]).for_question(Some(1));
        assert_eq!(decide(configured(one, &[pooled(1, "a", &["gpu"])]), &[question]).0.len(), 0);
        // A process that may still live may still use the pool.
        let unknown = StartClaim { weight: Weight::PlaceAlone, ..pooled(1, "a", &["gpu"]) };
        assert_eq!(decide(configured(one, &[unknown]), &[pooled(2, "a", &["gpu"])]).0.len(), 0);
    }

    #[test]
    fn nothing_is_admitted_where_dispatch_is_disabled() {
        let capacity = configured("[dispatch]\nenabled = false", &[]);
        assert!(capacity.is_closed());
        let (admitted, refused) = decide(capacity, &[claim(1, "a")]);
        assert_eq!((admitted.len(), refused[0].why.code), (0, WaitingCode::Disabled));
    }

    #[test]
    fn a_host_with_too_little_memory_or_too_much_load_admits_nothing() {
        const PRESSURE: Pressure = Pressure { memory: Some(12.5), cpu: Some(80.0), io: None };
        let busy = || Reading { available: Some(1 << 30), load: Some(2.0), pressure: PRESSURE };
        let asked = |text: &str| configured(&format!("[dispatch]\n{text}"), &[]).measured(busy);
        for text in
            ["", "min_free_memory = \"1GiB\"", "max_load = 2.0", "max_pressure = { memory = 12.5, cpu = 81 }"]
        {
            assert_eq!(decide(asked(text), &[claim(1, "a")]).0.len(), 1, "{text}");
        }
        for (text, shown) in [
            (
                "min_free_memory = \"2GiB\"",
                "waits for memory: 1.0 GiB available, dispatch.min_free_memory is 2.0 GiB",
            ),
            ("max_load = 1.5", "waits for a lower load: 2.00 for each processor, dispatch.max_load is 1.50"),
            (
                "max_pressure = { memory = 12.4 }",
                "waits for less memory pressure: 12.5 % of the last 10 s, dispatch.max_pressure.memory is 12.4 %",
            ),
            (
                "max_pressure = { memory = 50, cpu = 79.5 }",
                "waits for less cpu pressure: 80.0 % of the last 10 s, dispatch.max_pressure.cpu is 79.5 %",
            ),
            (
                "max_pressure = { io = 99 }",
                "waits for less io pressure: this host has no /proc/pressure/io (a kernel with CONFIG_PSI, booted with psi=1, has \
                 it); take dispatch.max_pressure.io out to start without it",
            ),
        ] {
            let (admitted, refused) = decide(asked(text), &[claim(1, "a")]);
            assert_eq!((admitted.len(), refused[0].why.text.as_str()), (0, shown));
            assert_eq!((refused[0].why.code, refused[0].reach), (WaitingCode::Headroom, Reach::Everything));
            assert!(!asked(text).is_closed(), "whether something waits for it has to be seen");
        }
    }

    #[test]
    fn one_directory_has_one_worker_at_a_time() {
        let place = |n| StartClaim { place: Some("/srv/x".into()), ..claim(n, "a") };
        let (admitted, refused) = decide(capacity("max_running = 9", &[]), &[place(1), place(2)]);
        assert_eq!(admitted.len(), 1);
        assert!(refused[0].why.text.contains("/srv/x") && refused[0].reach == Reach::Line);
    }

    #[test]
    fn a_directory_and_one_inside_it_have_one_worker_at_a_time_between_them() {
        let place = |n, path: &str| StartClaim { place: Some(path.into()), ..claim(n, "a") };
        let ready = [place(1, "/srv/x"), place(2, "/srv/x/inner"), place(3, "/srv/xy"), place(4, "/srv")];
        let (admitted, refused) = decide(capacity("max_running = 9", &[]), &ready);
        assert_eq!(admitted, ["t_00000001", "t_00000003"]);
        assert!(refused.iter().all(|refusal| refusal.why.text.contains("/srv/x: t_00000001")), "{refused:?}");
    }

    #[test]
    fn a_repository_makes_one_worktree_at_a_time_and_a_tenant_few() {
        let of = |n, tenant: &str, repository: &str| StartClaim {
            preparing: Some(repository.into()),
            ..claim(n, tenant)
        };
        let ready = [
            of(1, "a", "/one"),
            of(2, "a", "/one"),
            of(3, "b", "/one"),
            of(4, "a", "/two"),
            of(5, "a", "/three"),
            claim(6, "a"),
        ];
        let (admitted, refused) = decide(capacity("max_running = 9", &[]), &ready);
        assert_eq!(admitted, ["t_00000001", "t_00000004", "t_00000006"]);
        let texts: Vec<&str> = refused.iter().map(|refusal| refusal.why.text.as_str()).collect();
        assert!(texts[0].contains("the worktree of t_00000001 is being made"), "{texts:?}");
        assert!(texts[1].contains("a task of another tenant"), "{texts:?}");
        assert!(texts[2].contains("2 other worktrees of its tenant"), "{texts:?}");
        let running = [of(1, "a", "/one").prepared()];
        let (admitted, _) = decide(capacity("max_running = 9", &running), &[of(2, "a", "/one")]);
        assert_eq!(admitted.len(), 1);
    }

    #[test]
    fn a_broken_environment_gets_one_probe_at_a_time() {
        let mut backoff = Backoff::default();
        let now = kernel::Timestamp::from_micros(0);
        backoff.trip(Needs::scratch("shell").program(), claim(1, "a").key, "no /bin/sh".to_owned(), now);
        let ready = [claim(1, "a"), claim(2, "a"), claim(3, "a")];
        let broken = |backoff: &Backoff| capacity("max_running = 9", &[]).with_owner_state(backoff, None);
        let (admitted, refused) = decide(broken(&backoff), &ready);
        assert_eq!((admitted, refused.len()), (vec!["t_00000002".to_owned()], 2));
        backoff.started(&claim(2, "a").key, Needs::scratch("shell").all(), now, now);
        assert_eq!(decide(broken(&backoff), &ready).0.len(), 3);
    }

    #[test]
    fn a_tenant_whose_starts_die_is_refused_and_gets_one_probe_and_no_other_waits_for_it() {
        let mut backoff = Backoff::default();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let limits = toml::from_str("max_deaths = 1").unwrap();
        let died = Died { tenant: claim(1, "a").tenant, lived: None, at: at(0) };
        backoff.died(&claim(1, "a").key, &died, &limits, at(0));
        let ready = [claim(1, "a"), claim(2, "a"), claim(3, "b"), claim(4, "b")];
        let broken = |backoff: &Backoff| capacity("max_running = 9", &[]).with_owner_state(backoff, None);
        assert!(!broken(&backoff).is_closed());
        let (admitted, refused) = decide(broken(&backoff), &ready);
        assert_eq!(admitted, ["t_00000003", "t_00000004"]);
        assert_eq!((refused[0].reach, refused[0].why.code), (Reach::Tenant, WaitingCode::Host));
        assert!(backoff.expire(at(60)));
        let (admitted, refused) = decide(broken(&backoff), &ready);
        assert_eq!((admitted.len(), refused.len()), (3, 1));
        assert!(refused[0].why.text.ends_with("one task is started to try"), "{refused:?}");
    }

    #[test]
    fn a_budget_ends_a_pass() {
        let capacity = capacity("max_running = 9", &[]).limited(Some(1));
        let (admitted, refused) = decide(capacity, &[claim(1, "a"), claim(2, "a")]);
        assert_eq!((admitted.len(), refused[0].why.code), (1, WaitingCode::Pass));
    }
}

#[cfg(test)]
#[path = "fairness_tests.rs"]
mod fairness_tests;
