//! Retried and cancelled tasks.

use crate::testing::{Bench, alice, gated, limited, titled};
use crate::{
    Actor, BlockKind, Blocking, Effect, EndCause, Error, Handoff, NewTask, Outcome, Question, Reopened,
    Settled, Status, StopReason, TaskId,
};

fn retry(bench: &Bench, id: &TaskId) -> Result<Reopened, Error> {
    let id = id.clone();
    bench.call(move |board| board.retry(&id, Some("the disk is there again"), &alice()))
}

fn cancel(bench: &Bench, id: &TaskId) -> Result<Settled, Error> {
    let id = id.clone();
    bench.call(move |board| board.cancel(&id, Some("wrong branch"), &alice()))
}

fn last_comment(bench: &Bench, id: &TaskId) -> String {
    bench.readers.with(|view| view.comments(id)).unwrap().pop().unwrap().body
}

#[test]
fn a_task_that_gave_up_waits_for_another_attempt_or_is_done_is_retried_at_once() {
    let bench = Bench::new();
    let gave_up = bench.create(NewTask { limits: limited(1), ..titled("a") }).id;
    let run = bench.start(&gave_up);
    bench.finish(run, EndCause::Exited { code: 1 });
    assert_eq!(bench.task(&gave_up).block_kind, Some(BlockKind::GaveUp));
    let waits = bench.ready();
    for _ in 0..2 {
        let run = bench.start(&waits);
        bench.finish(run, EndCause::Exited { code: 1 });
    }
    assert_eq!(bench.task(&waits).status, Status::Scheduled);
    let done = bench.ready();
    let task = done.clone();
    bench.call(move |board| board.complete(&task, Handoff::default(), None, &alice())).unwrap();

    for id in [&gave_up, &waits, &done] {
        let task = retry(&bench, id).unwrap().task;
        assert_eq!((task.status, task.consecutive_failures, task.not_before), (Status::Ready, 0, None));
        assert!(last_comment(&bench, id).ends_with("the disk is there again"));
    }
    bench.check();
}

#[test]
fn what_runs_is_ready_is_archived_or_needs_an_approval_is_not_retried() {
    let bench = Bench::new();
    let (ready, runs) = (bench.ready(), bench.ready());
    bench.start(&runs);
    let gated = bench.create(NewTask { approval: gated(), ..titled("gated") }).id;
    for id in [&ready, &runs, &gated] {
        let before = bench.task(id).status;
        let error = retry(&bench, id).unwrap_err();
        assert!(error.to_string().contains("retry") && error.hint().is_some(), "{error}");
        assert_eq!(bench.task(id).status, before);
    }
    let worker = Actor::worker("bob", bench.start(&ready), ready.clone(), None);
    let id = ready.clone();
    assert!(bench.call(move |board| board.retry(&id, None, &worker)).is_err(), "a worker retries nothing");
    bench.check();
}

#[test]
fn a_task_with_an_open_question_is_answered_and_retried_with_a_reason_alone() {
    let bench = Bench::new();
    let id = bench.ready();
    let question = Question {
        text: "which?".to_owned(),
        choices: vec!["red".to_owned(), "blue".to_owned()],
        ..Question::default()
    };
    let (of, blocking) = (id.clone(), Blocking { question: Some(question), ..Blocking::default() });
    bench.call(move |board| board.block(&of, blocking, None, &alice())).unwrap();
    let of = id.clone();
    let refused = bench.call(move |board| board.retry(&of, None, &alice())).unwrap_err();
    assert_eq!(refused.to_string(), format!("{id} has an open question: which?"));
    let hint = refused.hint().unwrap();
    assert!(hint.starts_with(&format!("answer it: `supervisor answer {id} 1`")), "{hint}");
    assert_eq!(bench.task(&id).status, Status::Blocked);
    assert_eq!(retry(&bench, &id).unwrap().task.status, Status::Ready);
    bench.check();
}

#[test]
fn a_cancelled_run_ends_and_its_task_is_blocked_until_it_is_retried() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    assert_eq!(cancel(&bench, &id).unwrap().effect, Effect::WhenRunEnds);
    assert_eq!(bench.task(&id).status, Status::Running, "until its end is proved");
    assert_eq!(bench.runs_to_stop().len(), 1);

    assert_eq!(bench.readers.with(|view| view.last_run_ended(&id)).unwrap(), None, "it is open");

    bench.finish(run, EndCause::Stopped(StopReason::Cancelled));

    let ended = bench.readers.with(|view| view.last_run_ended(&id)).unwrap();
    assert_eq!(ended, bench.readers.with(|view| view.run(run)).unwrap().unwrap().ended_at);
    let outcome = bench.readers.with(|view| view.run(run)).unwrap().unwrap().outcome;
    assert_eq!((bench.task(&id).status, outcome), (Status::Blocked, Some(Outcome::Cancelled)));
    assert!(last_comment(&bench, &id).ends_with("CANCELLED: wrong branch"));
    assert_eq!(bench.task(&id).block_reason.as_deref(), Some("cancelled by alice: wrong branch"));
    assert_eq!(retry(&bench, &id).unwrap().task.status, Status::Ready);
    bench.check();
}

#[test]
fn a_task_that_waits_is_cancelled_at_once_and_however_often() {
    let bench = Bench::new();
    let parent = bench.ready();
    let child = bench.child_of(&[&parent]);
    for id in [&parent, &child] {
        for _ in 0..4 {
            assert_eq!(cancel(&bench, id).unwrap().effect, Effect::Now);
            let task = bench.task(id);
            assert_eq!(task.status, Status::Blocked);
            assert_eq!(task.block_reason.as_deref(), Some("cancelled by alice: wrong branch"));
            let of = id.clone();
            let error = bench.call(move |board| board.answer(&of, "go on", &alice())).unwrap_err();
            assert!(error.to_string().contains("it was cancelled"), "{error}");
            assert!(error.hint().unwrap().contains(&format!("supervisor retry {id}")), "{error:?}");
            let error = cancel(&bench, id).unwrap_err();
            assert!(error.to_string().contains("cannot cancel"), "{error}");
            assert!(error.hint().unwrap().contains(&format!("supervisor archive {id}")), "{error:?}");
            retry(&bench, id).unwrap();
        }
    }
    assert_eq!((bench.task(&parent).status, bench.task(&child).status), (Status::Ready, Status::Todo));
    bench.check();
}
