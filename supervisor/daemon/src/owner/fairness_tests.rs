//! Fairness between tenants for any limits, lengths, arrivals and order of offers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::admission::Weight;
use super::*;
use crate::run::environment::Needs;
use crate::run::key::TaskKey;
use setup::roster::PoolClaim;

/// Steps of a case. Every task of a patient tenant ends before: 24 tasks, one after the other, of at most 5 steps each.
const STEPS: usize = 160;

/// Task of a case.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Number of its tenant; 0 for tasks without a tenant.
    tenant: usize,
    /// Step at which it becomes ready.
    arrives: usize,
    /// Number of steps for which it runs.
    lasts: usize,
    /// Place in the order in which it is offered.
    rank: u32,
}

/// Limits and tasks of a case.
#[derive(Clone, Debug)]
struct Case {
    slots: usize,
    reserve: usize,
    /// Caps of single tenants, by number.
    caps: BTreeMap<usize, usize>,
    /// Tenant whose runs never end.
    greedy: usize,
    jobs: Vec<Job>,
}

fn cases() -> impl Strategy<Value = Case> {
    let job = (0..4_usize, 0..12_usize, 1..6_usize, any::<u32>())
        .prop_map(|(tenant, arrives, lasts, rank)| Job { tenant, arrives, lasts, rank });
    let caps = proptest::collection::btree_map(1..4_usize, 1..5_usize, 0..3);
    let jobs = proptest::collection::vec(job, 1..24);
    (2..9_usize, 1..4_usize, caps, 0..4_usize, jobs).prop_map(|(slots, reserve, caps, greedy, jobs)| Case {
        slots,
        reserve,
        caps,
        greedy,
        jobs,
    })
}

impl Case {
    fn config(&self) -> Arc<Config> {
        let caps: Vec<String> = self.caps.iter().map(|(tenant, cap)| format!("t{tenant} = {cap}")).collect();
        let text = format!(
            "[limits]\nmax_running = {}\nreserve = {}\ntenants = {{ {} }}",
            self.slots,
            self.reserve,
            caps.join(", ")
        );
        Arc::new(toml::from_str(&text).unwrap())
    }

    /// Returns the number of slots that a tenant may take.
    fn most(&self, tenant: usize) -> usize {
        let most = self.slots.saturating_sub(self.reserve).max(1);
        self.caps.get(&tenant).map_or(most, |cap| most.min(*cap))
    }

    /// Returns tasks of the greedy tenant that fill every slot, before those of the case.
    fn all(&self) -> Vec<Job> {
        let greedy = Job { tenant: self.greedy, arrives: 0, lasts: usize::MAX, rank: 0 };
        let patient = self.jobs.iter().copied().filter(|job| job.tenant != self.greedy);
        std::iter::repeat_n(greedy, self.slots + 1).chain(patient).collect()
    }
}

fn claim(at: usize, job: &Job) -> StartClaim {
    StartClaim {
        key: TaskKey { board: BoardName::default(), task: format!("t_{at:08x}").parse().unwrap() },
        tenant: (job.tenant > 0).then(|| format!("t{}", job.tenant).parse().unwrap()),
        profile: Some("shell".parse().unwrap()),
        resources: PoolClaim::default(),
        place: None,
        needs: Some(Needs::scratch("shell")),
        preparing: None,
        weight: Weight::Slot,
    }
}

/// Returns the number of runs of each tenant.
fn loads(running: &BTreeMap<usize, usize>, jobs: &[Job]) -> BTreeMap<usize, usize> {
    let mut loads = BTreeMap::new();
    for at in running.keys() {
        *loads.entry(jobs[*at].tenant).or_default() += 1;
    }
    loads
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_tenant_stops_the_others_whatever_it_runs_and_in_whatever_order_tasks_are_offered(case in cases()) {
        let (config, jobs) = (case.config(), case.all());
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|at| jobs[*at].rank);
        // Each running task with the step at which it ends.
        let mut running: BTreeMap<usize, usize> = BTreeMap::new();
        let mut ended = 0;
        for step in 0..STEPS {
            let before = running.len();
            running.retain(|_, ends| *ends > step);
            ended += before - running.len();
            let claims: Vec<StartClaim> = running.keys().map(|at| claim(*at, &jobs[*at])).collect();
            let mut capacity = Capacity::with_running(&claims, Arc::clone(&config)).shared();
            let is_ready = |at: &usize| jobs[*at].arrives <= step;
            order.retain(|at| {
                let starts = is_ready(at) && capacity.admit(&claim(*at, &jobs[*at])).is_ok();
                if starts {
                    running.insert(*at, step.saturating_add(jobs[*at].lasts));
                }
                !starts
            });
            let loads = loads(&running, &jobs);
            prop_assert!(running.len() <= case.slots);
            for (tenant, load) in &loads {
                prop_assert!(*load <= case.most(*tenant), "tenant {} has {} of {}", tenant, load, case.slots);
            }
            if running.len() == case.slots {
                prop_assert!(loads.len() > 1, "tenant {:?} has every slot", loads);
            } else {
                // A free slot is left to no tenant that may take it.
                for at in order.iter().filter(|at| is_ready(at)) {
                    let tenant = jobs[*at].tenant;
                    let load = loads.get(&tenant).copied().unwrap_or_default();
                    prop_assert_eq!(load, case.most(tenant), "tenant {} waits beside a free slot", tenant);
                }
            }
        }
        let patient = jobs.iter().filter(|job| job.tenant != case.greedy).count();
        prop_assert_eq!(ended, patient, "every task of the other tenants has ended");
    }
}
