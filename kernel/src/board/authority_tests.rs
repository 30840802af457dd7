//! Permissions of workers to see, report, link and create: the rules of `rules/authority.rs` on rows of a real board.

use crate::model::error::ErrorCode;
use crate::model::outcome::StopReason;
use crate::model::run::{Holder, Purpose, Run};
use crate::rules::authority;
use crate::testing::{Bench, alice, titled};
use crate::{Actor, Client, Error, Lineage, MissionLimits, NewTask, RunId, Task, Tenant, WorkerRole};

const DEPTH: u32 = 5;

fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

/// Returns a running task, its run and its worker.
fn working(bench: &Bench, new: NewTask) -> (Task, Run, Actor) {
    let id = bench.create(new).id;
    let run = bench.start(&id);
    let run = bench.readers.with(|view| view.run(run)).unwrap().unwrap();
    let task = bench.task(&id);
    let worker = Actor::worker("bob", run.id, id, task.tenant.clone());
    (task, run, worker)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Forbidden, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_caller_of_one_tenant_sees_no_task_of_another_or_of_none() {
    let bench = Bench::new();
    let of = |name: Option<&str>| bench.create(NewTask { tenant: name.map(tenant), ..titled("x") });
    let (acme, beta, none) = (of(Some("acme")), of(Some("beta")), of(None));
    let worker = |name: Option<&str>| Actor::worker("bob", RunId(1), acme.id.clone(), name.map(tenant));
    let limited = Actor { tenant: Some(tenant("acme")), ..alice() };
    for (actor, sees) in [
        (alice(), [true, true, true]),
        (limited, [true, false, false]),
        (worker(Some("acme")), [true, false, false]),
        (worker(None), [false, false, true]),
    ] {
        for (task, may) in [&acme, &beta, &none].into_iter().zip(sees) {
            let seen = authority::may_see(&actor, task);
            assert_eq!(seen.is_ok(), may, "{actor:?} {:?}", task.tenant);
            assert!(seen.is_ok() || seen.unwrap_err().code() == ErrorCode::NotFound);
        }
    }
}

#[test]
fn a_worker_reports_about_its_own_task_and_run_alone() {
    let bench = Bench::new();
    let (task, run, worker) = working(&bench, titled("own"));
    let other = bench.ready();
    let next = RunId(run.id.get() + 1);
    authority::own_task(&worker, &task.id, None).unwrap();
    authority::own_task(&worker, &task.id, Some(run.id)).unwrap();
    refused(authority::own_task(&worker, &task.id, Some(next)), "only about its own task");
    refused(authority::own_task(&worker, &other, None), "only about its own task");
    refused(authority::own_task(&worker, &other, Some(run.id)), "only about its own task");
    authority::own_task(&alice(), &other, Some(next)).unwrap();
    let without = Actor { run: None, ..worker };
    refused(authority::own_task(&without, &task.id, None), "a worker without a run");
    refused(authority::spoken_for(&without), "a worker without a run");
    assert!(authority::spoken_for(&alice()).unwrap().is_none());
}

#[test]
fn a_worker_links_its_own_task_and_what_it_made() {
    let bench = Bench::new();
    let (task, _, worker) = working(&bench, titled("own"));
    let other = bench.create(titled("somebody's"));
    let maker = worker.clone();
    let made = bench.call(move |board| board.create(titled("made"), &maker)).unwrap().task;
    authority::may_link(&worker, &task).unwrap();
    authority::may_link(&worker, &made).unwrap();
    refused(authority::may_link(&worker, &other), "may change the parents of its own task");
    let (_, _, neighbour) = working(&bench, titled("neighbour"));
    refused(authority::may_link(&neighbour, &made), "may change the parents of its own task");
    authority::may_link(&alice(), &other).unwrap();
}

#[test]
fn a_token_is_good_while_its_run_goes_on_and_nobody_has_taken_it_back() {
    let bench = Bench::new();
    let (_, run, worker) = working(&bench, titled("own"));
    let own = authority::spoken_for(&worker).unwrap().unwrap();
    let stopped = |reason| Run { stop_reason: reason, ..run.clone() };
    for reason in [None, Some(StopReason::Verdict), Some(StopReason::Preempted), Some(StopReason::Stalled)] {
        assert_eq!(authority::live(own, Some(stopped(reason))).unwrap().id, run.id);
    }
    for reason in [StopReason::Reclaimed, StopReason::Cancelled, StopReason::Kill] {
        refused(authority::live(own, Some(stopped(Some(reason)))), "was taken back");
    }
    refused(authority::live(own, Some(Run { ended_at: Some(run.started_at), ..run.clone() })), "has ended");
    refused(authority::live(own, Some(Run { task_id: bench.ready(), ..run.clone() })), "has ended");
    refused(authority::live(own, None), "has ended");
}

#[test]
fn only_people_and_the_supervisor_do_what_is_for_people() {
    authority::person(&alice(), "x").unwrap();
    authority::person(&Actor::system(), "x").unwrap();
    let bench = Bench::new();
    refused(authority::person(&working(&bench, titled("own")).2, "archive a task"), "may not archive a task");
}

/// Creates a task as the worker of a task does; returns the task as the board would store it.
fn bounded(run: &Run, own: &Task, worker: &Actor, mut new: NewTask) -> Result<NewTask, Error> {
    let limits = MissionLimits { depth: DEPTH, ..MissionLimits::default() };
    let creator = authority::bound_new_task(worker, Some((run, own)), &mut new, &limits)?;
    assert_eq!((creator, new.created_by.as_deref()), (Some(own.id.clone()), Some("bob")));
    Ok(new)
}

#[test]
fn a_workers_task_has_its_tenant_workspace_and_policy_and_no_other() {
    let bench = Bench::new();
    let (own, run, worker) = working(
        &bench,
        NewTask { tenant: Some(tenant("acme")), workspace: Some("dir:/srv/a".to_owned()), ..titled("own") },
    );
    let own = Task { policy: Some("default".to_owned()), ..own };
    let run = Run { policy: Some("strict".to_owned()), ..run };
    let made = |new: NewTask| bounded(&run, &own, &worker, new);

    let plain = made(titled("plain")).unwrap();
    assert_eq!((&plain.tenant, plain.policy.as_deref()), (&Some(tenant("acme")), Some("strict")));
    assert_eq!(plain.workspace(), "scratch");
    made(NewTask { tenant: Some(tenant("acme")), ..titled("x") }).unwrap();
    refused(made(NewTask { tenant: Some(tenant("beta")), ..titled("x") }), "not in beta");
    made(NewTask { workspace: Some("dir:/srv/a".to_owned()), ..titled("x") }).unwrap();
    refused(
        made(NewTask { workspace: Some("dir:/srv/b".to_owned()), ..titled("x") }),
        "not in \"dir:/srv/b\"",
    );
    made(NewTask { policy: Some("strict".to_owned()), ..titled("x") }).unwrap();
    refused(made(NewTask { policy: Some("default".to_owned()), ..titled("x") }), "no other policy");

    // Without a policy of the run, the task's policy counts; without either, no policy may be named.
    let silent = Run { policy: None, ..run.clone() };
    let of_task = bounded(&silent, &own, &worker, titled("x")).unwrap();
    assert_eq!(of_task.policy.as_deref(), Some("default"));
    let none = Task { policy: None, tenant: None, ..own.clone() };
    refused(
        bounded(&silent, &none, &worker, NewTask { policy: Some("strict".to_owned()), ..titled("x") }),
        "no other policy",
    );
    assert_eq!(bounded(&silent, &none, &worker, titled("x")).unwrap().policy, None);
    refused(
        bounded(&silent, &none, &worker, NewTask { tenant: Some(tenant("acme")), ..titled("x") }),
        "not in acme",
    );
}

#[test]
fn a_workers_task_is_one_deeper_and_belongs_to_the_mission_and_session_of_its_maker() {
    let bench = Bench::new();
    let (task, run, worker) = working(&bench, titled("own"));
    let own = Task {
        lineage: Lineage { depth: DEPTH - 1, mission: Some("m".to_owned()), ..Lineage::default() },
        client: Client { session_id: Some("s".to_owned()), ..Client::default() },
        ..task.clone()
    };
    let made = bounded(&run, &own, &worker, titled("x")).unwrap();
    assert_eq!(
        (made.lineage.depth, made.lineage.mission.as_deref(), made.client.session_id.as_deref()),
        (DEPTH, Some("m"), Some("s"))
    );
    let other =
        NewTask { lineage: Lineage { mission: Some("n".to_owned()), ..Lineage::default() }, ..titled("x") };
    refused(bounded(&run, &own, &worker, other), "one of its own mission, m");
    let named = NewTask {
        lineage: Lineage { mission: Some("m".to_owned()), ..Lineage::default() },
        client: Client { session_id: Some("t".to_owned()), ..Client::default() },
        ..titled("x")
    };
    let made = bounded(&run, &own, &worker, named).unwrap();
    assert_eq!(
        (made.lineage.depth, made.lineage.mission.as_deref(), made.client.session_id.as_deref()),
        (DEPTH, Some("m"), Some("t"))
    );
    let deep = Task { lineage: Lineage { depth: DEPTH, ..Lineage::default() }, ..own };
    let refused = bounded(&run, &deep, &worker, titled("x")).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exhausted);
    let message = "missions.depth: this would be 6 tasks below the first task of the mission, the limit is 5";
    assert_eq!(refused.to_string(), message);
    let first = Task { lineage: Lineage::default(), ..task };
    let made = bounded(&run, &first, &worker, titled("x")).unwrap();
    assert_eq!(made.lineage, Lineage { depth: 1, mission: Some(first.id.to_string()), ..Lineage::default() });
}

#[test]
fn a_person_of_one_tenant_makes_tasks_there_and_any_other_person_anywhere() {
    let limited = Actor { tenant: Some(tenant("acme")), ..alice() };
    let made = |actor: &Actor, wanted: Option<&str>| {
        let mut new = NewTask { tenant: wanted.map(tenant), ..titled("x") };
        authority::bound_new_task(actor, None, &mut new, &MissionLimits::default())
            .map(|creator| (creator, new.tenant, new.lineage.depth))
    };
    assert_eq!(made(&limited, None).unwrap(), (None, Some(tenant("acme")), 0));
    assert_eq!(made(&limited, Some("acme")).unwrap(), (None, Some(tenant("acme")), 0));
    refused(made(&limited, Some("beta")), "only in the tenant acme");
    assert_eq!(made(&alice(), Some("beta")).unwrap(), (None, Some(tenant("beta")), 0));
    assert_eq!(made(&alice(), None).unwrap(), (None, None, 0));
}

#[test]
fn an_external_claim_without_a_policy_gives_nobody_work() {
    let bench = Bench::new();
    let (own, run, worker) = working(&bench, titled("own"));
    let assigned = || NewTask { assignee: "shell".parse().ok(), ..titled("x") };
    let silent = Run { policy: None, holder: Holder::External, ..run };
    let named = Task { policy: Some("strict".to_owned()), ..own.clone() };
    let none = Task { policy: None, ..own };
    refused(bounded(&silent, &none, &worker, assigned()), "names no policy");
    let nobodys = NewTask { assignee: None, ..titled("x") };
    assert_eq!(bounded(&silent, &none, &worker, nobodys).unwrap().policy, None);
    assert_eq!(bounded(&silent, &named, &worker, assigned()).unwrap().policy.as_deref(), Some("strict"));
}

#[test]
fn an_orchestrator_directs_what_its_own_task_has_made_and_approves_nothing() {
    let bench = Bench::new();
    let (task, _, worker) = working(&bench, titled("plan"));
    let orchestrator = Actor { role: WorkerRole::Orchestrator, ..worker.clone() };
    let of =
        |maker: Option<&Task>| Task { creator_task: maker.map(|maker| maker.id.clone()), ..task.clone() };
    let (made, foreign) = (of(Some(&task)), of(None));
    authority::may_direct(&orchestrator, &made, "assign a task").unwrap();
    authority::may_direct(&alice(), &foreign, "assign a task").unwrap();
    refused(authority::may_direct(&orchestrator, &foreign, "assign a task"), "only if its own task");
    for role in [WorkerRole::Worker, WorkerRole::Reviewer] {
        let other = Actor { role, ..worker.clone() };
        refused(authority::may_direct(&other, &made, "assign a task"), "a worker may not assign a task");
    }
    refused(authority::person(&orchestrator, "approve a task"), "a worker may not approve");
}

#[test]
fn the_tasks_of_an_orchestrator_have_the_policies_of_their_assignees_unless_its_own_task_names_one() {
    let (bench, limits) = (Bench::new(), MissionLimits::default());
    for named in [None, Some("strict".to_owned())] {
        let (mut own, mut run, worker) = working(&bench, titled("plan"));
        own.policy.clone_from(&named);
        run.policy = Some("orchestrate".to_owned());
        let orchestrator = Actor { role: WorkerRole::Orchestrator, ..worker.clone() };
        let mut new = titled("part");
        authority::bound_new_task(&orchestrator, Some((&run, &own)), &mut new, &limits).unwrap();
        assert_eq!(new.policy, named);
        let mut wider = NewTask { policy: Some("unconfined".to_owned()), ..titled("part") };
        refused(
            authority::bound_new_task(&orchestrator, Some((&run, &own)), &mut wider, &limits),
            "no other policy",
        );
        // A review reads the work of another worker.
        let review = Run { purpose: Purpose::Review, ..run.clone() };
        let mut of_a_review = titled("part");
        authority::bound_new_task(&orchestrator, Some((&review, &own)), &mut of_a_review, &limits).unwrap();
        assert_eq!(of_a_review.policy.as_deref(), Some("orchestrate"));
        let mut of_a_worker = titled("part");
        authority::bound_new_task(&worker, Some((&run, &own)), &mut of_a_worker, &limits).unwrap();
        assert_eq!(of_a_worker.policy.as_deref(), Some("orchestrate"));
    }
}
