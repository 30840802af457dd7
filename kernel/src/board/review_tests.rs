//! Reviews.

use std::time::Duration;

use serde_json::json;

use crate::testing::{Bench, alice, start};
use crate::{
    Actor, EndCause, ErrorCode, EventFilter, Handoff, Outcome, Purpose, RunId, Status, TaskId, Timestamp,
};

fn carol() -> Actor {
    Actor::person("carol")
}

fn summary(text: &str) -> Handoff {
    Handoff { summary: Some(text.to_owned()), ..Handoff::default() }
}

fn worker(name: &str, run: RunId, id: &TaskId) -> Actor {
    Actor::worker(name, run, id.clone(), None)
}

/// Brings a task of bob's to review.
fn reviewed(bench: &Bench, reviewer: Option<&str>) -> TaskId {
    let id = bench.ready();
    let run = bench.start(&id);
    let (task, bob) = (id.clone(), worker("bob", run, &id));
    let reviewer = reviewer.map(|name| name.parse().unwrap());
    bench.call(move |board| board.request_review(&task, summary("did it"), reviewer, None, &bob)).unwrap();
    let finished = bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!((finished.status, finished.outcome), (Status::Review, Outcome::ReviewRequested));
    id
}

fn approve(bench: &Bench, id: &TaskId, actor: Actor) -> Result<crate::Settled, crate::Error> {
    let id = id.clone();
    bench.call(move |board| board.approve(&id, Some("looked at it"), None, &actor))
}

fn kinds(bench: &Bench, id: &TaskId) -> Vec<String> {
    let filter = EventFilter { task: Some(id.clone()), ..EventFilter::default() };
    let events = bench.readers.with(|view| view.events(&filter)).unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_person_approves_the_work_of_a_worker_and_its_children_go_on_with_the_works_summary() {
    let bench = Bench::new();
    let id = reviewed(&bench, None);
    let child = bench.child_of(&[&id]);
    assert_eq!(bench.task(&id).work_by.as_deref(), Some("worker:bob"));
    assert_eq!(bench.offered(9, &crate::Accounts::new()), Vec::new());

    let settled = approve(&bench, &id, alice()).unwrap();

    assert_eq!(settled.task.status, Status::Done);
    assert_eq!(bench.task(&child).status, Status::Ready);
    assert!(kinds(&bench, &id).ends_with(&["commented".into(), "approved".into(), "completed".into()]));
    let context =
        bench.readers.with(|view| view.context(&child, crate::ContextLimits::default(), &|_| None)).unwrap();
    assert!(context.text.contains("> did it"), "{}", context.text);
    bench.check();
}

#[test]
fn nobody_approves_or_completes_or_judges_their_own_work() {
    let bench = Bench::new();
    let id = bench.ready();
    let task = id.clone();
    bench.call(move |board| board.request_review(&task, summary("mine"), None, None, &alice())).unwrap();
    let task = id.clone();
    let changes = bench.call(move |board| board.request_changes(&task, "no", None, &alice())).unwrap_err();
    let task = id.clone();
    let complete =
        bench.call(move |board| board.complete(&task, Handoff::default(), None, &alice())).unwrap_err();
    let task = id.clone();
    let claim = bench
        .call(move |board| board.claim(&task, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice()))
        .map(drop)
        .unwrap_err();
    for error in [approve(&bench, &id, alice()).unwrap_err(), changes, complete, claim] {
        assert_eq!(error.code(), ErrorCode::Forbidden, "{error}");
    }
    assert_eq!(approve(&bench, &id, carol()).unwrap().task.status, Status::Done);
    bench.check();
}

#[test]
fn changes_send_the_work_back_with_the_reason_as_a_comment() {
    let bench = Bench::new();
    let id = reviewed(&bench, None);
    let task = id.clone();
    let settled = bench.call(move |board| board.request_changes(&task, "no tests", None, &carol())).unwrap();
    assert_eq!((settled.task.status, settled.task.work_by), (Status::Ready, None));
    let context =
        bench.readers.with(|view| view.context(&id, crate::ContextLimits::default(), &|_| None)).unwrap();
    assert!(context.text.contains("> no tests"), "{}", context.text);
    let task = id.clone();
    let error = bench.call(move |board| board.request_changes(&task, " ", None, &carol())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    assert_eq!(approve(&bench, &id, carol()).unwrap_err().code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn a_profile_that_is_named_reviews_in_a_run_of_its_own() {
    let bench = Bench::new();
    let id = reviewed(&bench, Some("eve"));
    let ready = bench.offered(9, &crate::Accounts::new());
    assert_eq!((ready.len(), ready[0].assignee.as_str()), (1, "eve"));
    let (task, stale) =
        (id.clone(), crate::Start { profile: Some("bob".parse().unwrap()), ..start(&*bench.clock) });
    let error = bench.call(move |board| board.start_run(&task, stale)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);

    let run = bench.start(&id);
    let seen = bench.readers.with(|view| view.expect_run(run)).unwrap();
    assert_eq!((seen.purpose, seen.profile.unwrap().as_str()), (Purpose::Review, "eve"));
    let context =
        bench.readers.with(|view| view.context(&id, crate::ContextLimits::default(), &|_| None)).unwrap();
    assert!(context.text.contains("This run is a review"), "{}", context.text);
    let eve = worker("eve", run, &id);
    let (task, actor) = (id.clone(), eve.clone());
    let error = bench.call(move |board| board.complete(&task, summary("x"), None, &actor)).unwrap_err();
    assert!(error.to_string().contains("this run reviews"), "{error}");

    let settled = approve(&bench, &id, eve).unwrap();
    assert_eq!(settled.task.status, Status::Running);
    let finished = bench.finish(run, EndCause::Exited { code: 0 });
    assert_eq!((finished.status, finished.outcome), (Status::Done, Outcome::Approved));
    let events = bench
        .readers
        .with(|view| view.events(&EventFilter { task: Some(id.clone()), ..EventFilter::default() }))
        .unwrap();
    let last = events.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), &last.payload.as_ref().unwrap()["summary"]),
        ("completed", &json!("did it"))
    );
    bench.check();
}

#[test]
fn a_reviewer_that_says_nothing_has_failed_and_is_tried_again_with_a_growing_pause() {
    let bench = Bench::new();
    let id = reviewed(&bench, Some("eve"));
    let none: Vec<crate::Candidate> = Vec::new();
    let ready = || bench.offered(9, &crate::Accounts::new());
    for attempt in 1..=5 {
        let run = bench.start(&id);
        let mut ending = crate::Ending::new(EndCause::Exited { code: 0 });
        ending.result_policy = crate::OnCleanExit::Complete { summary: Some("bye".to_owned()) };
        let finished = bench.call(move |board| board.finish_run(run, ending)).unwrap();
        assert_eq!(finished.outcome, Outcome::Unreported);
        match attempt {
            1 => assert_eq!((finished.status, ready().len()), (Status::Review, 1)),
            5 => assert_eq!(finished.status, Status::Blocked),
            _ => {
                assert_eq!((finished.status, ready()), (Status::Review, none.clone()));
                let at: Timestamp = bench.next_wake().unwrap();
                bench.clock.advance(at.since(crate::Clock::now(&*bench.clock)));
                assert_eq!((bench.next_wake(), ready().len()), (None, 1));
            }
        }
    }
    let task = id.clone();
    let task = bench.call(move |board| board.unblock(&task, None, &alice())).unwrap();
    assert_eq!(task.status, Status::Review, "what was under review still is");
    bench.check();
}

#[test]
fn a_profile_may_not_review_its_own_work() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let (task, bob) = (id.clone(), worker("bob", run, &id));
    let reviewer = Some("bob".parse().unwrap());
    let error = bench
        .call(move |board| board.request_review(&task, summary("done"), reviewer, None, &bob))
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    let (task, bob) = (id.clone(), worker("bob", run, &id));
    let error = bench.call(move |board| board.approve(&task, None, None, &bob)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
}

#[test]
fn the_supervisor_skips_a_reviewer_that_nothing_can_spawn_and_says_so() {
    let bench = Bench::new();
    let id = reviewed(&bench, Some("ghost"));
    let unknown = |known: &str| {
        let known = [known.to_owned()];
        let found =
            bench.readers.with(|view| view.unknown_assignees(&known, crate::Timestamp::from_micros(0), 9));
        found.unwrap().into_iter().map(|(task, _, _)| task).collect::<Vec<_>>()
    };
    assert_eq!((unknown("bob"), unknown("ghost")), (vec![id.clone()], Vec::new()));
    let task = id.clone();
    bench.call(move |board| board.note_nonspawnable(&task, "no lane `ghost`")).unwrap();
    assert_eq!(unknown("bob"), Vec::new());
    let waiting = bench.readers.with(|view| view.waiting(&id)).unwrap().unwrap();
    assert_eq!(waiting.text, "waits for a review by ghost: no lane `ghost`");
}

/// Performs one round: bob hands his work over, and a run of eve's sends it back.
fn round(bench: &Bench, id: &TaskId) -> crate::Finished {
    let run = bench.start(id);
    let (task, bob) = (id.clone(), worker("bob", run, id));
    let reviewer = Some("eve".parse().unwrap());
    bench.call(move |board| board.request_review(&task, summary("did it"), reviewer, None, &bob)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    let run = bench.start(id);
    let (task, eve) = (id.clone(), worker("eve", run, id));
    bench.call(move |board| board.request_changes(&task, "no tests", None, &eve)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 })
}

/// Returns the results of five rounds, each started when the pause before it is over.
fn five_rounds(bench: &Bench, id: &TaskId) -> Vec<(Status, u64)> {
    let began = |_| {
        let finished = round(bench, id);
        let now = crate::Clock::now(&*bench.clock);
        let pause = finished.retry_at.map(|at| at.since(now)).unwrap_or_default();
        bench.clock.advance(pause);
        bench.wake();
        (finished.status, pause.as_secs())
    };
    (0..5).map(began).collect()
}

#[test]
fn a_reviewer_that_is_never_content_pauses_the_work_and_then_asks_a_person() {
    let bench = Bench::new();
    let id = bench.ready();
    let (again, later) = (Status::Ready, Status::Scheduled);
    let expected = [(again, 0), (later, 1), (later, 2), (later, 4), (Status::Blocked, 0)];

    assert_eq!(five_rounds(&bench, &id), expected);

    let task = bench.task(&id);
    assert_eq!(
        (task.block_kind, task.block_reason.as_deref(), task.last_failure_error),
        (
            Some(crate::BlockKind::NeedsInput),
            Some(
                "eve has requested changes 5 times in a row, the last time: no tests. \
                 Say what to do in a comment and `unblock` it, or accept the work with `complete`"
            ),
            None
        )
    );
    let go_on = id.clone();
    let task = bench.call(move |board| board.unblock(&go_on, None, &alice())).unwrap();
    assert_eq!(task.status, Status::Ready, "the worker has its turn");
    assert_eq!(five_rounds(&bench, &id), expected, "as many rounds again");
    bench.check();
}

#[test]
fn a_person_requests_changes_as_often_as_they_like_and_lets_a_reviewer_do_so_again() {
    let bench = Bench::new();
    let id = bench.ready();
    for _ in 0..4 {
        round(&bench, &id);
        bench.clock.advance(Duration::from_mins(5));
        bench.wake();
    }
    for _ in 0..6 {
        let run = bench.start(&id);
        let (task, bob) = (id.clone(), worker("bob", run, &id));
        bench.call(move |board| board.request_review(&task, summary("did it"), None, None, &bob)).unwrap();
        bench.finish(run, EndCause::Exited { code: 0 });
        let task = id.clone();
        let settled = bench.call(move |board| board.request_changes(&task, "no", None, &carol())).unwrap();
        assert_eq!(settled.task.status, Status::Ready);
    }
    assert_eq!(round(&bench, &id).status, Status::Ready, "the first of its rounds again");
    bench.check();
}
