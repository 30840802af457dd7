//! Another time for a task: also for one that runs, whose run is ended first.

use std::time::Duration;

use crate::event_snapshots::told;
use crate::testing::{Bench, alice};
use crate::{
    Clock as _, Effect, EndCause, Error, Handoff, Outcome, RunId, Settled, Status, StopReason, TaskId,
    Timestamp,
};

fn at(bench: &Bench) -> Timestamp {
    bench.clock.now().after(Duration::from_mins(5))
}

fn schedule(bench: &Bench, id: &TaskId, at: Timestamp) -> Result<Settled, Error> {
    let id = id.clone();
    bench.call(move |board| board.schedule(&id, at, Some("after the release"), &alice()))
}

fn running(bench: &Bench) -> (TaskId, RunId) {
    let task = bench.ready();
    let run = bench.start(&task);
    (task, run)
}

#[test]
fn a_running_task_is_scheduled_when_its_run_has_ended() {
    let bench = Bench::new();
    let (task, run) = running(&bench);
    let at = at(&bench);

    let settled = schedule(&bench, &task, at).unwrap();

    assert_eq!((settled.effect, settled.run), (Effect::WhenRunEnds, Some(run)));
    assert_eq!(bench.task(&task).status, Status::Running);
    assert_eq!(bench.runs_to_stop().len(), 1);
    let finished = bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
    assert_eq!((finished.status, finished.outcome), (Status::Scheduled, Outcome::Reclaimed));
    assert_eq!((bench.task(&task).not_before, bench.next_wake()), (Some(at), Some(at)));
    insta::assert_snapshot!(told(&bench, "scheduled"), @r#"its run: {"in_seconds":300,"not_before":"moment","reason":"after the release"}"#);
    bench.check();
}

#[test]
fn a_time_that_comes_before_the_end_of_the_run_holds_nothing_back() {
    let bench = Bench::new();
    let (task, run) = running(&bench);
    schedule(&bench, &task, at(&bench)).unwrap();
    bench.clock.advance(Duration::from_mins(6));
    assert_eq!(bench.finish(run, EndCause::Stopped(StopReason::Cancelled)).status, Status::Ready);
    bench.check();
}

#[test]
fn a_run_whose_verdict_is_in_is_not_scheduled_away() {
    let bench = Bench::new();
    let (task, run) = running(&bench);
    let id = task.clone();
    bench.call(move |board| board.complete(&id, Handoff::default(), None, &alice())).unwrap();

    assert!(matches!(schedule(&bench, &task, at(&bench)), Err(Error::Conflict { .. })));

    assert_eq!(bench.task(&task).not_before, None);
    assert_eq!(bench.finish(run, EndCause::Exited { code: 0 }).status, Status::Done);
    bench.check();
}

#[test]
fn a_review_that_runs_keeps_its_task() {
    let bench = Bench::new();
    let task = bench.ready();
    let (id, reviewer) = (task.clone(), "rita".parse().unwrap());
    bench
        .call(move |board| board.request_review(&id, Handoff::default(), Some(reviewer), None, &alice()))
        .unwrap();
    bench.start(&task);
    assert!(matches!(schedule(&bench, &task, at(&bench)), Err(Error::Conflict { .. })));
    bench.check();
}
