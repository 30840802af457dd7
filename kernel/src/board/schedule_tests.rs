//! Start times of tasks: a given time, also for a running task, and the pause after a failure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::board::event_snapshots::rendered_events;
use crate::testing::{Bench, alice, titled};
use crate::{
    Clock as _, Effect, EndCause, Ending, Error, Handoff, InitialState, NewTask, Outcome, RunId, Settled,
    Status, StopReason, TaskId, Timestamp,
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
    insta::assert_snapshot!(rendered_events(&bench, "scheduled"), @r#"its run: {"in_seconds":300,"not_before":"moment","reason":"after the release"}"#);
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

#[test]
fn a_task_waits_for_its_time_and_its_parents() {
    let bench = Bench::new();
    let parent = bench.ready();
    let at = crate::Clock::now(&*bench.clock).after(Duration::from_mins(5));
    let new = NewTask { parents: vec![parent.clone()], not_before: Some(at), ..titled("later") };
    let id = bench.create(new).id;
    assert_eq!(bench.task(&id).status, Status::Todo);
    bench.call(move |board| board.complete(&parent, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(bench.task(&id).status, Status::Scheduled);
    assert_eq!(bench.next_wake(), Some(at));
    bench.clock.advance(Duration::from_mins(5));
    assert_eq!(bench.wake(), vec![id.clone()]);
    assert_eq!(bench.task(&id).status, Status::Ready);
    let held = bench.create(NewTask { initial_state: InitialState::Blocked, ..titled("held") });
    assert_eq!((held.status, held.not_before), (Status::Blocked, None::<Timestamp>));
    bench.check();
}

/// Lets `times` runs fail, one after the other. Returns the pause after the last.
fn fails(bench: &Bench, id: &TaskId, times: u32) -> Duration {
    let mut pause = Duration::ZERO;
    for _ in 0..times {
        bench.clock.advance(pause);
        bench.wake();
        let run = bench.start(id);
        let at = bench.finish(run, EndCause::Exited { code: 1 }).retry_at;
        pause = at.map(|at| at.since(crate::Clock::now(&*bench.clock))).unwrap_or_default();
    }
    pause
}

#[test]
fn tasks_that_fail_at_one_moment_are_due_at_moments_of_their_own_which_the_log_keeps() {
    let bench = Bench::new();
    let tasks: Vec<_> = (0..8).map(|_| bench.ready()).collect();
    for _ in 0..2 {
        let runs: Vec<_> = tasks.iter().map(|id| bench.start(id)).collect();
        for run in runs {
            bench.finish(run, EndCause::Exited { code: 1 });
        }
    }
    let now = crate::Clock::now(&*bench.clock);
    let due: BTreeSet<_> = tasks.iter().map(|id| bench.task(id).not_before.unwrap()).collect();
    assert_eq!(due.len(), tasks.len(), "{due:?}");
    let (shortest, longest) = (Duration::from_secs(1), Duration::from_millis(1250));
    assert!(due.iter().all(|at| (shortest..=longest).contains(&at.since(now))), "{due:?}");
    // A repeated report draws no other pause, and the log replays to the same rows.
    let run = bench.readers.with(|view| view.runs(&tasks[0])).unwrap().pop().unwrap().id;
    let again = bench.finish(run, EndCause::Exited { code: 1 });
    assert!(again.already_finished);
    assert_eq!(again.retry_at, bench.task(&tasks[0]).not_before);
    bench.check();
}

#[test]
fn a_clock_that_is_set_back_makes_no_pause_longer() {
    let bench = Bench::new();
    let id = bench.ready();
    let pause = fails(&bench, &id, 2);
    assert_eq!(bench.task(&id).status, Status::Scheduled);
    let now = crate::Clock::now(&*bench.clock);
    bench.clock.set(Timestamp::from_secs(now.as_secs() - 2 * 86_400));
    let now = crate::Clock::now(&*bench.clock);
    assert_eq!(bench.next_wake(), Some(now.after(pause)));
    assert_eq!(bench.wake(), []);
    bench.clock.advance(pause);
    assert_eq!(bench.wake(), std::slice::from_ref(&id));
    assert_eq!((bench.task(&id).status, bench.next_wake()), (Status::Ready, None));
}

#[test]
fn a_clock_that_is_set_forward_makes_no_pause_shorter() {
    let bench = Bench::new();
    let id = bench.ready();
    let rest = fails(&bench, &id, 3).checked_sub(Duration::from_millis(1)).unwrap();
    bench.clock.advance(Duration::from_millis(1));
    for forward in [Duration::from_millis(900), Duration::from_hours(48)] {
        let now = crate::Clock::now(&*bench.clock).after(forward);
        bench.clock.set(now);
        assert_eq!(bench.next_wake(), Some(now.after(rest)), "{forward:?}");
        assert_eq!(bench.wake(), [], "{forward:?}");
        assert_eq!(bench.task(&id).status, Status::Scheduled);
        assert_eq!(bench.next_wake(), Some(now.after(rest)), "{forward:?}");
    }
    let now = crate::Clock::now(&*bench.clock);
    assert_eq!(bench.task(&id).not_before, Some(now.after(rest)));
    bench.check();
    bench.clock.advance(rest);
    assert_eq!(bench.wake(), std::slice::from_ref(&id));
    assert_eq!((bench.task(&id).status, bench.next_wake()), (Status::Ready, None));
    bench.check();
}

#[test]
fn a_time_that_a_person_gave_follows_the_clock_that_is_set() {
    let bench = Bench::new();
    let at = crate::Clock::now(&*bench.clock).after(Duration::from_hours(24));
    let id = bench.create(NewTask { not_before: Some(at), ..titled("tomorrow") }).id;
    bench.clock.set(at);
    assert_eq!(bench.wake(), std::slice::from_ref(&id));
    assert_eq!(bench.task(&id).status, Status::Ready);
    bench.check();
}

#[test]
fn a_pause_of_another_boot_ends_at_its_moment() {
    let bench = Bench::new();
    let id = bench.ready();
    let pause = fails(&bench, &id, 2);
    bench.clock.reboot("boot-2");
    assert_eq!(bench.wake(), []);
    bench.clock.advance(pause);
    assert_eq!(bench.wake(), std::slice::from_ref(&id));
}

#[test]
fn a_task_that_a_person_gives_another_time_does_not_start_when_its_pause_is_over() {
    let bench = Bench::new();
    let id = bench.ready();
    fails(&bench, &id, 2);
    let later = crate::Clock::now(&*bench.clock).after(Duration::from_hours(1));
    let task = id.clone();
    bench.call(move |board| board.schedule(&task, later, None, &alice())).unwrap();
    bench.clock.advance(Duration::from_mins(1));
    assert_eq!(bench.wake(), []);
    assert_eq!(bench.task(&id).status, Status::Scheduled);
}

#[test]
fn a_run_that_ended_before_the_board_was_told_has_its_own_end_and_its_pause_counts_from_then() {
    let bench = Bench::new();
    let id = bench.ready();
    let first = bench.start(&id);
    bench.finish(first, EndCause::Exited { code: 1 });
    let second = bench.start(&id);
    let began = crate::Clock::now(&*bench.clock);
    bench.clock.advance(Duration::from_hours(3));
    let ended = began.after(Duration::from_secs(7));
    let ending = Ending { ended_at: Some(ended), ..Ending::new(EndCause::Exited { code: 1 }) };
    let finished = bench.call(move |board| board.finish_run(second, ending)).unwrap();
    assert_eq!(finished.status, Status::Ready, "its pause was over long ago");
    let run = bench.readers.with(|view| view.expect_run(second)).unwrap();
    assert_eq!(run.ended_at, Some(ended));
    // A time from a clock that was set in between is limited to the possible range.
    let third = bench.start(&id);
    let ending = Ending { ended_at: Some(began), ..Ending::new(EndCause::Exited { code: 0 }) };
    bench.call(move |board| board.finish_run(third, ending)).unwrap();
    let run = bench.readers.with(|view| view.expect_run(third)).unwrap();
    assert_eq!(run.ended_at, Some(run.started_at));
}
