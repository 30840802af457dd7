//! Holds: the starts that they prevent, the probes of limits, and their events.

use std::time::Duration;

use crate::board::event_snapshots::rendered_events;
use crate::testing::{Bench, alice, start, titled};
use crate::{
    Accounts, Actor, EndCause, Ending, Error, Hold, HoldKind, HoldOn, HoldScope, Limits, NewHold, NewTask,
    Outcome, RunId, Siblings, Start, Status, TaskId, Timestamp, WaitingCode,
};

fn on(scope: HoldScope, name: &str) -> HoldOn {
    HoldOn { scope, name: name.to_owned() }
}

fn by_hand(until: Option<Timestamp>) -> NewHold {
    NewHold { kind: HoldKind::Manual, reason: "not now".to_owned(), until }
}

fn later(bench: &Bench, seconds: u64) -> Timestamp {
    crate::Clock::now(&*bench.clock).after(Duration::from_secs(seconds))
}

fn hold(bench: &Bench, on: HoldOn, new: NewHold) -> Hold {
    bench.call(move |board| board.hold(&on, &new, &alice())).unwrap()
}

fn release(bench: &Bench, on: HoldOn) -> Result<Vec<Hold>, Error> {
    bench.call(move |board| board.release(&on, None, &alice()))
}

fn ready(bench: &Bench) -> Vec<TaskId> {
    let accounts = Accounts::from([("bob".parse().unwrap(), "main".to_owned())]);
    bench.offered(10, &accounts).into_iter().map(|one| one.task).collect()
}

fn why(bench: &Bench, id: &TaskId) -> WaitingCode {
    bench.readers.with(|view| view.waiting(id)).unwrap().unwrap().code
}

/// Starts a task for the account `main`.
fn try_start(bench: &Bench, id: &TaskId) -> Result<RunId, Error> {
    let start = Start { account: Some("main".to_owned()), ..start(&*bench.clock) };
    let id = id.clone();
    bench.call(move |board| board.start_run(&id, start)).map(|run| run.id)
}

fn limited(bench: &Bench, run: RunId, seconds: u64) {
    let until = later(bench, seconds);
    assert_eq!(bench.finish(run, EndCause::RateLimited { until }).outcome, Outcome::RateLimited);
}

fn holds(bench: &Bench) -> Vec<Hold> {
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    bench.readers.with(|view| view.holds()).unwrap()
}

#[test]
fn whatever_a_hold_is_on_does_not_start_until_it_is_released() {
    let bench = Bench::new();
    let task = bench.create(NewTask { tenant: Some("acme".parse().unwrap()), ..titled("work") }).id;
    let scopes = [
        (HoldScope::Task, task.as_str().to_owned()),
        (HoldScope::Profile, "bob".to_owned()),
        (HoldScope::Tenant, "acme".to_owned()),
        (HoldScope::Account, "main".to_owned()),
    ];
    for (scope, name) in scopes {
        hold(&bench, on(scope, &name), by_hand(None));

        assert_eq!(ready(&bench), Vec::new(), "{scope}");
        let refused = try_start(&bench, &task).unwrap_err();
        assert!(refused.hint().unwrap().contains("supervisor release"), "{refused:?}");

        assert_eq!(release(&bench, on(scope, &name)).unwrap().len(), 1);
        assert_eq!(ready(&bench), std::slice::from_ref(&task), "{scope}");
    }
    assert!(matches!(release(&bench, on(HoldScope::Task, task.as_str())), Err(Error::Conflict { .. })));
    bench.check();
}

#[test]
fn a_held_task_says_so_with_the_reason_and_the_way_out() {
    let bench = Bench::new();
    let task = bench.ready();
    let until = later(&bench, 60);
    hold(&bench, on(HoldScope::Task, task.as_str()), by_hand(Some(until)));
    let waiting = bench.readers.with(|view| view.waiting(&task)).unwrap().unwrap();
    assert_eq!((waiting.code, waiting.until), (WaitingCode::Hold, Some(until)));
    assert_eq!(waiting.text, format!("held by alice (not now): `supervisor release {task}`"));
}

#[test]
fn a_hold_by_hand_ends_when_its_time_comes() {
    let bench = Bench::new();
    let task = bench.ready();
    hold(&bench, on(HoldScope::Profile, "bob"), by_hand(Some(later(&bench, 60))));
    assert_eq!(bench.next_wake(), Some(later(&bench, 60)));

    bench.clock.advance(Duration::from_mins(1));
    bench.wake();

    assert_eq!((ready(&bench), holds(&bench), bench.next_wake()), (vec![task], Vec::new(), None));
}

#[test]
fn a_limit_that_one_run_meets_holds_its_siblings_and_costs_no_failure() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    let run = try_start(&bench, &first).unwrap();

    limited(&bench, run, 300);

    let task = bench.task(&first);
    assert_eq!((task.status, task.consecutive_failures), (Status::Scheduled, 0));
    let held = holds(&bench).remove(0);
    assert_eq!((held.on().to_string(), held.until), ("account main".to_owned(), Some(later(&bench, 300))));
    assert_eq!(ready(&bench), Vec::new(), "{second} waits for the account as well");
}

#[test]
fn when_a_limit_is_over_one_run_tries_and_the_others_follow_when_it_is_served() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    limited(&bench, bench_start(&bench, &first), 300);
    bench.clock.advance(Duration::from_mins(5));
    bench.wake();
    assert_eq!(ready(&bench).len(), 2, "either may be the one that tries");
    assert_eq!(bench.next_wake(), None, "nothing comes of time alone");

    let probe = try_start(&bench, &second).unwrap();
    assert!(matches!(try_start(&bench, &first), Err(Error::Conflict { .. })), "one at a time");
    assert_eq!(ready(&bench), Vec::new());

    bench.finish(probe, EndCause::Exited { code: 1 });
    assert_eq!(holds(&bench), Vec::new(), "it was served, whatever came of it");
    assert!(ready(&bench).contains(&first));
    bench.check();
}

fn bench_start(bench: &Bench, id: &TaskId) -> RunId {
    try_start(bench, id).unwrap()
}

#[test]
fn a_run_that_tries_and_goes_on_for_a_minute_is_served() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    limited(&bench, bench_start(&bench, &first), 300);
    bench.clock.advance(Duration::from_mins(5));
    bench.wake();
    try_start(&bench, &first).unwrap();
    assert_eq!(bench.next_wake(), Some(later(&bench, 60)));

    bench.clock.advance(Duration::from_mins(1));
    bench.wake();

    assert_eq!((holds(&bench), ready(&bench)), (Vec::new(), vec![second]));
}

#[test]
fn a_run_that_tries_and_is_refused_renews_the_limit_and_one_that_never_came_so_far_does_not_end_it() {
    let bench = Bench::new();
    let task = bench.ready();
    limited(&bench, bench_start(&bench, &task), 300);
    bench.clock.advance(Duration::from_mins(5));
    bench.wake();
    bench.finish(bench_start(&bench, &task), EndCause::NeverStarted);
    assert_eq!(holds(&bench).len(), 1);
    assert_eq!(ready(&bench), std::slice::from_ref(&task), "another run may try at once");

    limited(&bench, bench_start(&bench, &task), 600);

    assert_eq!(holds(&bench)[0].until, Some(later(&bench, 600)));
    assert_eq!(why(&bench, &task), WaitingCode::Time);
    assert_eq!(ready(&bench), Vec::new());
}

#[test]
fn a_worker_tells_how_long_its_service_refuses_it_and_may_hold_nothing_else() {
    let bench = Bench::new();
    let task = bench.ready();
    let run = bench_start(&bench, &task);
    let worker = Actor::worker("bob", run, task.clone(), None);
    let until = later(&bench, 1200);
    let other = worker.clone();
    bench.call(move |board| board.hold_own("429", until, &worker)).unwrap();
    let refused = bench.call(move |board| board.hold(&on(HoldScope::Profile, "eve"), &by_hand(None), &other));
    assert!(matches!(refused, Err(Error::Forbidden { .. })));

    limited(&bench, run, 300);

    assert_eq!(bench.task(&task).not_before, Some(until), "the worker knows better");
    let held = holds(&bench);
    assert_eq!((held.len(), held[0].until), (1, Some(until)));
}

#[test]
fn a_hold_outlives_the_process_that_placed_it_and_not_the_task_it_is_on() {
    let bench = Bench::new();
    let task = bench.ready();
    hold(&bench, on(HoldScope::Task, task.as_str()), by_hand(None));
    let again = crate::Readers::open(&bench.path, bench.clock.clone()).unwrap();
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    let seen = again.with(|view| view.holds()).unwrap();
    assert_eq!(seen.len(), 1);
    bench
        .call(move |board| {
            board.archive(&task, crate::Detach::Refuse, &alice())?;
            board.delete(&task, &alice())
        })
        .unwrap();
    assert_eq!(holds(&bench), Vec::new());
}

#[test]
fn held_tells_of_a_hold() {
    let bench = Bench::new();
    hold(&bench, on(HoldScope::Profile, "bob"), by_hand(None));
    insta::assert_snapshot!(rendered_events(&bench, "held"), @r#"no run: {"hold":1,"kind":"manual","name":"bob","reason":"not now","scope":"profile","until":null}"#);
}

#[test]
fn released_tells_of_the_end_of_a_hold() {
    let bench = Bench::new();
    hold(&bench, on(HoldScope::Profile, "bob"), by_hand(None));
    release(&bench, on(HoldScope::Profile, "bob")).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "released"), @r#"no run: {"ended":"released","hold":1,"kind":"manual","name":"bob","reason":"not now","scope":"profile","until":null}"#);
}

#[test]
fn hold_probed_tells_of_the_run_that_tries() {
    let bench = Bench::new();
    let task = bench.ready();
    limited(&bench, bench_start(&bench, &task), 300);
    bench.clock.advance(Duration::from_mins(5));
    bench.wake();
    bench_start(&bench, &task);
    insta::assert_snapshot!(rendered_events(&bench, "hold_probed"), @r#"its run: {"hold":1,"kind":"rate_limit","name":"main","reason":"run 1 was refused","scope":"account","until":"moment"}"#);
}

/// Returns a task of a tenant, started for the account `main` or for none.
fn worker_of(bench: &Bench, tenant: &str, account: Option<&str>) -> (TaskId, Actor) {
    let tenant: crate::Tenant = tenant.parse().unwrap();
    let task = bench.create(NewTask { tenant: Some(tenant.clone()), ..titled("work") }).id;
    let start = Start { account: account.map(str::to_owned), ..start(&*bench.clock) };
    let id = task.clone();
    let run = bench.call(move |board| board.start_run(&id, start)).unwrap().id;
    (task.clone(), Actor::worker("bob", run, task, Some(tenant)))
}

fn report_limit(bench: &Bench, worker: &Actor, until: Timestamp) -> Hold {
    let worker = worker.clone();
    bench.call(move |board| board.hold_own("429", until, &worker)).unwrap()
}

#[test]
fn a_worker_holds_its_account_within_its_own_tenant_and_the_others_go_on() {
    let bench = Bench::new();
    let (own, worker) = worker_of(&bench, "acme", Some("main"));
    let task =
        |tenant: &str| bench.create(NewTask { tenant: Some(tenant.parse().unwrap()), ..titled("more") }).id;
    let (sibling, stranger, nobody) = (task("acme"), task("rival"), bench.ready());

    let hold = report_limit(&bench, &worker, later(&bench, 600));

    assert_eq!((hold.scope, hold.name.as_str()), (HoldScope::Account, "main"));
    assert_eq!((hold.met_by_task, hold.met_by_tenant), (Some(own), worker.tenant.clone()), "who made it");
    assert!(try_start(&bench, &sibling).is_err());
    let mut left = ready(&bench);
    left.sort();
    let mut expected = vec![stranger.clone(), nobody.clone()];
    expected.sort();
    assert_eq!(left, expected);
    try_start(&bench, &stranger).unwrap();
    try_start(&bench, &nobody).unwrap();
    assert_eq!(release(&bench, on(HoldScope::Account, "main")).unwrap().len(), 1, "an operator ends it");
    try_start(&bench, &sibling).unwrap();
    bench.check();
}

#[test]
fn two_tenants_hold_one_account_each_for_itself() {
    let bench = Bench::new();
    let (_, acme) = worker_of(&bench, "acme", Some("main"));
    let (_, rival) = worker_of(&bench, "rival", Some("main"));
    report_limit(&bench, &acme, later(&bench, 600));
    report_limit(&bench, &rival, later(&bench, 60));
    let held: Vec<_> = holds(&bench).into_iter().map(|hold| (hold.met_by_tenant, hold.until)).collect();
    assert_eq!(held, [(acme.tenant, Some(later(&bench, 600))), (rival.tenant, Some(later(&bench, 60)))]);
}

#[test]
fn a_worker_of_a_lane_without_an_account_holds_its_task_alone() {
    let bench = Bench::new();
    let (own, worker) = worker_of(&bench, "acme", None);
    let sibling = bench.create(NewTask { tenant: worker.tenant.clone(), ..titled("more") }).id;

    let hold = report_limit(&bench, &worker, later(&bench, 600));
    assert_eq!((hold.scope, hold.name), (HoldScope::Task, own.to_string()));
    assert_eq!(ready(&bench), std::slice::from_ref(&sibling));

    limited(&bench, worker.run.unwrap().run, 300);
    assert_eq!(bench.task(&own).not_before, Some(later(&bench, 600)), "the worker knows better");
    assert_eq!(ready(&bench), [sibling]);
    bench.clock.advance(Duration::from_mins(10));
    bench.wake();
    assert!(ready(&bench).contains(&own), "it is tried again by itself");
    bench.check();
}

#[test]
fn no_worker_comes_again_sooner_than_the_shortest_limit() {
    let bench = Bench::new();
    let (task, worker) = worker_of(&bench, "acme", Some("main"));
    assert_eq!(report_limit(&bench, &worker, later(&bench, 1)).until, Some(later(&bench, 15)));
    limited(&bench, worker.run.unwrap().run, 300);
    assert_eq!(bench.task(&task).not_before, Some(later(&bench, 15)));
}

#[test]
fn no_worker_holds_for_longer_than_the_limit() {
    let bench = Bench::new();
    let (_, worker) = worker_of(&bench, "acme", Some("main"));
    let hold = report_limit(&bench, &worker, later(&bench, 30 * 24 * 3600));
    assert_eq!(hold.until, Some(later(&bench, 24 * 3600)));
}

fn not_logged_in(bench: &Bench, run: RunId) {
    let until = later(bench, 600);
    let trouble = Some("401 Unauthorized".to_owned());
    let ending = crate::Ending { trouble, ..crate::Ending::new(EndCause::NotLoggedIn { until }) };
    let end = bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!((end.outcome, end.status), (Outcome::SpawnFailed, Status::Ready));
}

#[test]
fn a_login_that_is_not_accepted_holds_the_account_and_costs_no_task_a_failure() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    not_logged_in(&bench, bench_start(&bench, &first));

    assert_eq!(bench.task(&first).consecutive_failures, 0);
    assert_eq!(ready(&bench), Vec::new(), "both wait for the account");
    assert_eq!(bench.task(&second).status, Status::Ready);
    let held = holds(&bench).remove(0);
    assert_eq!((held.kind, held.on().to_string().as_str()), (HoldKind::Login, "account main"));
    assert!(held.reason.ends_with("could not log in: 401 Unauthorized"), "{}", held.reason);

    release(&bench, on(HoldScope::Account, "main")).unwrap();
    assert_eq!(ready(&bench).len(), 2, "a person has mended it");
    bench.check();
}

#[test]
fn after_a_while_one_run_tries_the_login_and_one_that_is_served_ends_the_hold() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    not_logged_in(&bench, bench_start(&bench, &first));
    bench.clock.advance(Duration::from_mins(10));
    bench.wake();

    not_logged_in(&bench, bench_start(&bench, &second));
    assert_eq!((holds(&bench).len(), holds(&bench)[0].until), (1, Some(later(&bench, 600))));
    assert_eq!(ready(&bench), Vec::new());

    bench.clock.advance(Duration::from_mins(10));
    bench.wake();
    limited(&bench, bench_start(&bench, &second), 300);
    let kinds: Vec<HoldKind> = holds(&bench).iter().map(|hold| hold.kind).collect();
    assert_eq!(kinds, [HoldKind::RateLimit], "a service that refuses more knows who asks");
    bench.check();
}

#[test]
fn a_login_of_a_profile_without_an_account_holds_the_profile() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    not_logged_in(&bench, bench.start(&first));
    assert_eq!(holds(&bench)[0].on().to_string(), "profile bob");
    assert_eq!(
        (why(&bench, &first), why(&bench, &second)),
        (WaitingCode::Environment, WaitingCode::Environment)
    );
}

#[test]
fn the_exit_code_of_a_script_that_is_not_tried_again_is_no_limit_unless_it_has_said_so() {
    let cases = [
        (Some(1), 2, Siblings::Spare, false, Outcome::Crashed, Status::Blocked),
        (Some(1), 2, Siblings::Spare, true, Outcome::RateLimited, Status::Scheduled),
        (Some(1), 2, Siblings::Hold, false, Outcome::RateLimited, Status::Scheduled),
        (Some(2), 1, Siblings::Spare, false, Outcome::RateLimited, Status::Scheduled),
        (None, 2, Siblings::Spare, false, Outcome::RateLimited, Status::Scheduled),
        (None, 1, Siblings::Spare, false, Outcome::Crashed, Status::Blocked),
    ];
    for (max_retries, failure_limit, siblings, has_said, outcome, status) in cases {
        let bench = Bench::new();
        let limits = Limits { max_retries, ..Limits::default() };
        let id = bench.create(NewTask { limits, ..titled("a script") }).id;
        let run = bench.start(&id);
        let worker = Actor::worker("bob", run, id.clone(), None);
        let until = later(&bench, 60);
        if has_said {
            bench.call(move |board| board.hold_own("429", until, &worker)).unwrap();
        }
        let cause = EndCause::RateLimited { until };
        let ending = Ending { exit_code: Some(75), siblings, failure_limit, ..Ending::new(cause) };

        let finished = bench.call(move |board| board.finish_run(run, ending)).unwrap();

        let tried = (max_retries, failure_limit, siblings, has_said);
        assert_eq!((finished.outcome, bench.task(&id).status), (outcome, status), "{tried:?}");
        bench.check();
    }
}

#[test]
fn a_hold_on_a_task_ends_when_that_is_done_or_cancelled_or_archived() {
    for act in ["complete", "cancel", "archive"] {
        let bench = Bench::new();
        let (id, other) = (bench.ready(), bench.ready());
        for task in [&id, &other] {
            hold(&bench, on(HoldScope::Task, task.as_str()), by_hand(None));
        }
        let task = id.clone();
        bench
            .call(move |board| match act {
                "complete" => board.complete(&task, crate::Handoff::default(), None, &alice()).map(drop),
                "cancel" => board.cancel(&task, None, &alice()).map(drop),
                _ => board.archive(&task, crate::Detach::Refuse, &alice()).map(drop),
            })
            .unwrap();
        let holds = bench.readers.with(|view| view.holds()).unwrap();
        assert_eq!(
            holds.iter().map(|hold| hold.name.as_str()).collect::<Vec<_>>(),
            [other.as_str()],
            "{act}"
        );
        bench.check();
    }
}

#[test]
fn a_run_that_the_sandbox_kept_from_its_service_ends_no_hold_and_places_none() {
    let bench = Bench::new();
    let (first, second) = (bench.ready(), bench.ready());
    limited(&bench, bench_start(&bench, &first), 300);
    bench.clock.advance(Duration::from_mins(5));
    bench.wake();
    let denied = crate::Denied {
        policy: "agent".to_owned(),
        act: "connecting to a.example:443".to_owned(),
        line: None,
        text: "the sandbox denied connecting to a.example:443".to_owned(),
    };
    let run = bench_start(&bench, &second);
    let ending = crate::Ending { denied: Some(denied), ..crate::Ending::new(EndCause::Exited { code: 1 }) };
    let end = bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!(end.outcome, Outcome::Crashed);
    let left: Vec<(HoldKind, Option<RunId>)> =
        holds(&bench).iter().map(|hold| (hold.kind, hold.probe_run)).collect();
    assert_eq!(left, [(HoldKind::RateLimit, None)], "the next run probes the limit");
    bench.check();
}
