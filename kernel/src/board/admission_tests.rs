//! Admission: every task that can start is offered, in a fair order, and never twice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::testing::{Bench, alice, titled};
use crate::{Accounts, Candidate, CandidateChoice, HoldKind, HoldOn, HoldScope, NewHold, NewTask, Reach};

const WORKSPACES: [&str; 6] = ["scratch", "scratch", "dir:/a", "dir:/b", "worktree:/r", "worktree:/s"];

/// Caller with limits, like the daemon.
#[derive(Clone, Debug)]
struct Caps {
    total: usize,
    tenant: usize,
    profile: usize,
    /// Number of places in a pool that the runs of two of the profiles need.
    pool: usize,
    broken: Option<&'static str>,
}

fn is_pooled(candidate: &Candidate) -> bool {
    candidate.assignee.as_str() != "p2"
}

#[derive(Default)]
struct Taken {
    all: Vec<Candidate>,
    loads: BTreeMap<String, usize>,
}

fn tenant(candidate: &Candidate) -> String {
    candidate.tenant.as_ref().map(ToString::to_string).unwrap_or_default()
}

impl Taken {
    fn refusal(&self, candidate: &Candidate, caps: &Caps) -> Option<Reach> {
        let count = |same: &dyn Fn(&Candidate) -> bool| self.all.iter().filter(|one| same(one)).count();
        if self.all.len() >= caps.total {
            return Some(Reach::Everything);
        }
        if count(&|one| one.tenant == candidate.tenant) >= caps.tenant {
            return Some(Reach::Tenant);
        }
        if count(&|one| one.assignee == candidate.assignee) >= caps.profile {
            return Some(Reach::Profile);
        }
        if is_pooled(candidate) && count(&is_pooled) >= caps.pool {
            return Some(Reach::Profile);
        }
        let place = candidate.workspace.starts_with("dir:");
        if place && count(&|one| one.workspace == candidate.workspace) > 0 {
            return Some(Reach::Line);
        }
        (caps.broken == Some(candidate.workspace.as_str())).then_some(Reach::Line)
    }

    fn take(&mut self, candidate: &Candidate) {
        *self.loads.entry(tenant(candidate)).or_default() += 1;
        self.all.push(candidate.clone());
    }
}

#[derive(Clone, Debug)]
struct Row {
    tenant: usize,
    profile: usize,
    workspace: usize,
    priority: i64,
    held: bool,
}

fn row() -> impl Strategy<Value = Row> {
    (0_usize..4, 0_usize..3, 0..WORKSPACES.len(), 0_i64..3, prop::bool::weighted(0.1)).prop_map(
        |(tenant, profile, workspace, priority, held)| Row { tenant, profile, workspace, priority, held },
    )
}

fn caps() -> impl Strategy<Value = Caps> {
    let broken = prop::option::of(prop::sample::select(vec!["worktree:/r", "dir:/a"]));
    (1_usize..12, 1_usize..6, 1_usize..8, 0_usize..6, broken)
        .prop_map(|(total, tenant, profile, pool, broken)| Caps { total, tenant, profile, pool, broken })
}

fn board(rows: &[Row]) -> (Bench, Vec<Candidate>) {
    let bench = Bench::new();
    let mut candidates = Vec::new();
    for row in rows {
        let name = ["", "t1", "t2", "t3"][row.tenant];
        let new = NewTask {
            tenant: Some(name).filter(|name| !name.is_empty()).map(|name| name.parse().unwrap()),
            assignee: Some(["p0", "p1", "p2"][row.profile].parse().unwrap()),
            workspace: Some(WORKSPACES[row.workspace].to_owned()),
            priority: row.priority,
            ..titled("one")
        };
        let task = bench.create(new);
        if row.held {
            let on = HoldOn { scope: HoldScope::Task, name: task.id.to_string() };
            let hold = NewHold { kind: HoldKind::Manual, reason: "later".to_owned(), until: None };
            bench.call(move |board| board.hold(&on, &hold, &alice())).unwrap();
            continue;
        }
        candidates.push(Candidate {
            task: task.id,
            assignee: task.assignee.unwrap(),
            tenant: task.tenant,
            priority: task.priority,
            created_at: task.created_at,
            line: if task.workspace == "scratch" { String::new() } else { task.workspace.clone() },
            pools: task.pools,
            workspace: task.workspace,
            policy: task.policy,
            consult: None,
            mission: task.lineage.mission,
        });
    }
    (bench, candidates)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_task_that_can_start_waits_while_a_slot_is_free_and_tenants_share_the_slots(
        rows in prop::collection::vec(row(), 1..60), caps in caps(),
    ) {
        let (bench, all) = board(&rows);
        bench.check();
        let mut taken = Taken::default();
        let mut offered = BTreeSet::new();
        let mut wrong = None;
        bench.readers.with(|view| view.offer(&Accounts::new(), &crate::testing::checker(), |candidate| {
            assert!(offered.insert(candidate.task.clone()), "{} was offered twice", candidate.task);
            if let Some(reach) = taken.refusal(candidate, &caps) {
                return CandidateChoice::Left(reach);
            }
            // Expected next start: the first candidate of the tenant with the fewest runs.
            let load = |one: &Candidate| taken.loads.get(&tenant(one)).copied().unwrap_or_default();
            let rest = all.iter().filter(|one| taken.all.iter().all(|known| known.task != one.task));
            let can = rest.filter(|one| taken.refusal(one, &caps).is_none());
            let first =
                can.min_by_key(|one| (load(one), Reverse(one.priority), one.created_at, one.task.clone()));
            if first.map(|one| &one.task) != Some(&candidate.task) {
                wrong = Some((candidate.clone(), first.cloned()));
            }
            taken.take(candidate);
            CandidateChoice::Taken
        })).unwrap();
        prop_assert!(wrong.is_none(), "taken, and what should have been: {wrong:?}");
        for left in all.iter().filter(|one| taken.all.iter().all(|known| known.task != one.task)) {
            prop_assert!(taken.refusal(left, &caps).is_some(), "{left:?} could start and was not offered");
        }
    }
}

#[test]
fn what_cannot_start_is_not_read_however_much_there_is_of_it() {
    let bench = Bench::new();
    bench
        .call(|board| {
            for _ in 0..3000 {
                let workspace = "dir:/busy".to_owned();
                board.create(
                    NewTask { workspace: Some(workspace), priority: 9, ..titled("behind") },
                    &alice(),
                )?;
            }
            board.create(titled("free"), &alice())
        })
        .unwrap();
    let mut answers = 0;
    let mut taken = Vec::new();
    let offer = |view: &crate::View<'_>| {
        view.offer(&Accounts::new(), &crate::testing::checker(), |candidate| {
            answers += 1;
            if candidate.workspace == "dir:/busy" && taken.contains(&candidate.workspace) {
                return CandidateChoice::Left(Reach::Line);
            }
            taken.push(candidate.workspace.clone());
            CandidateChoice::Taken
        })
    };
    bench.readers.with(offer).unwrap();
    assert_eq!((taken, answers), (vec!["dir:/busy".to_owned(), "scratch".to_owned()], 3));
}

#[test]
fn the_first_of_a_line_follows_every_change_of_its_tasks() {
    let bench = Bench::new();
    let in_line =
        |title: &str| bench.create(NewTask { workspace: Some("dir:/x".to_owned()), ..titled(title) }).id;
    let (one, two) = (in_line("one"), in_line("two"));
    let first = || bench.offered(1, &Accounts::new())[0].task.clone();
    assert_eq!(first(), one);
    let id = two.clone();
    bench
        .call(move |board| {
            board.edit(&id, &crate::Edit { priority: Some(5), ..crate::Edit::default() }, &alice()).map(drop)
        })
        .unwrap();
    assert_eq!(first(), two);
    bench.start(&two);
    assert_eq!(first(), one);
    let id = one.clone();
    bench.call(move |board| board.archive(&id, crate::Detach::Refuse, &alice()).map(drop)).unwrap();
    assert_eq!(bench.offered(1, &Accounts::new()), Vec::new());
    bench.check();
}

#[test]
fn tasks_that_name_the_same_pools_are_a_line_and_what_is_full_is_not_read_further() {
    let bench = Bench::new();
    let pool: crate::Pool = "gpu".parse().unwrap();
    let named = |pools: &[&crate::Pool]| NewTask {
        assignee: Some("p0".parse().unwrap()),
        pools: pools.iter().map(|pool| (*pool).clone()).collect(),
        ..titled("one")
    };
    for _ in 0..41 {
        bench.create(named(&[&pool]));
    }
    let free = bench.create(named(&[])).id;
    let offered = |full: bool| {
        let mut offered = Vec::new();
        let mut answer = |candidate: &Candidate| {
            offered.push(candidate.task.clone());
            let is_refused = full && candidate.pools.contains(&pool);
            if is_refused { CandidateChoice::Left(Reach::Line) } else { CandidateChoice::Taken }
        };
        bench
            .readers
            .with(|view| view.offer(&Accounts::new(), &crate::testing::checker(), &mut answer))
            .unwrap();
        offered
    };
    let offered_ids = offered(true);
    assert_eq!(
        (offered_ids.len(), offered_ids.contains(&free)),
        (2, true),
        "one of the line, and what needs no pool"
    );
    assert_eq!(offered(false).len(), 42);
}

#[test]
fn a_worker_names_no_pool_that_its_own_task_does_not_name() {
    let bench = Bench::new();
    let pools = |name: &str| std::iter::once(name.parse::<crate::Pool>().unwrap()).collect::<BTreeSet<_>>();
    let own = bench
        .create(NewTask { pools: pools("gpu"), assignee: Some("bob".parse().unwrap()), ..titled("own") })
        .id;
    let run = bench.start(&own);
    let bob = crate::Actor::worker("bob", run, own, None);
    let create = |name: &str| {
        let (new, bob) = (NewTask { pools: pools(name), ..titled("child") }, bob.clone());
        bench.call(move |board| board.create(new, &bob))
    };
    assert_eq!(create("gpu").unwrap().task.pools, pools("gpu"));
    let refused = create("licence").unwrap_err().to_string();
    assert!(refused.contains("licence"), "{refused}");
}

#[test]
fn what_is_refused_for_its_profile_keeps_back_the_tasks_of_no_other() {
    let bench = Bench::new();
    let of = |profile: &str| NewTask { assignee: profile.parse().ok(), ..titled("one") };
    for profile in ["p0", "p1", "p0", "p1"] {
        bench.create(of(profile));
    }
    let mut offered = Vec::new();
    let offer = |view: &crate::View<'_>| {
        view.offer(&Accounts::new(), &crate::testing::checker(), |candidate| {
            offered.push(candidate.assignee.to_string());
            if candidate.assignee.as_str() == "p0" {
                CandidateChoice::Left(Reach::Profile)
            } else {
                CandidateChoice::Taken
            }
        })
    };
    bench.readers.with(offer).unwrap();
    assert_eq!(offered, ["p0", "p1", "p1"]);
}

#[test]
fn a_line_of_reviews_or_checks_that_is_refused_is_not_offered_further() {
    let bench = Bench::new();
    let in_review = |workspace: &str| {
        let id = bench.create(NewTask { workspace: Some(workspace.to_owned()), ..titled("one") }).id;
        let run = bench.start(&id);
        let (task, bob) = (id.clone(), crate::Actor::worker("bob", run, id.clone(), None));
        let carol = "carol".parse().ok();
        bench
            .call(move |board| board.request_review(&task, crate::Handoff::default(), carol, None, &bob))
            .unwrap();
        bench.finish(run, crate::EndCause::Exited { code: 0 });
        id
    };
    let places = ["dir:/a", "dir:/b", "dir:/a", "dir:/b"];
    let ids = places.map(in_review);
    let mut offered = Vec::new();
    let offer = |view: &crate::View<'_>| {
        view.offer(&Accounts::new(), &crate::testing::checker(), |candidate| {
            offered.push(candidate.task.clone());
            if candidate.workspace == "dir:/a" {
                CandidateChoice::Left(Reach::Line)
            } else {
                CandidateChoice::Taken
            }
        })
    };
    bench.readers.with(offer).unwrap();
    assert_eq!(offered, [ids[0].clone(), ids[1].clone(), ids[3].clone()]);
}
