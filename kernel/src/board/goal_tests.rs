//! Goals of tasks.

use std::time::Duration;

use crate::testing::{Bench, alice, checked, titled};
use crate::{
    Actor, BlockKind, Clock as _, ContextLimits, EndCause, Ending, Error, EventFilter, Finished, Goal,
    Handoff, NewTask, OnCleanExit, Outcome, RunId, Status, TaskId,
};

const WELL: EndCause = EndCause::Exited { code: 0 };

fn goal(new: NewTask, max_turns: Option<u32>) -> NewTask {
    NewTask { goal: Goal { mode: true, max_turns }, ..new }
}

/// Ends a run whose agent has come to the end of a turn.
fn turn_ended(bench: &Bench, run: RunId) -> Finished {
    let result_policy = OnCleanExit::TurnEnded { summary: Some("so far".to_owned()) };
    let ending = Ending { result_policy, ..Ending::new(WELL) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap()
}

/// Runs a turn that takes long enough to count as work.
fn turn(bench: &Bench, id: &TaskId) -> Finished {
    let run = bench.start(id);
    bench.clock.advance(Duration::from_secs(30));
    turn_ended(bench, run)
}

fn kinds(bench: &Bench, id: &TaskId) -> Vec<String> {
    let filter = EventFilter { task: Some(id.clone()), ..EventFilter::default() };
    let events = bench.readers.with(|view| view.events(&filter)).unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_worker_goes_on_turn_by_turn_until_it_reports_or_a_person_is_asked() {
    let bench = Bench::new();
    let id = bench.create(goal(titled("green"), Some(3))).id;
    for over in 1..=2 {
        let ended = turn(&bench, &id);
        assert_eq!((ended.outcome, ended.status), (Outcome::Unreported, Status::Ready));
        let task = bench.task(&id);
        assert_eq!((task.goal_turns, task.consecutive_failures), (over, 0));
        assert!(kinds(&bench, &id).ends_with(&["goal_turn".to_owned()]), "{:?}", kinds(&bench, &id));
    }
    let read = bench.readers.with(|view| view.context(&id, ContextLimits::default(), &|_| None)).unwrap();
    assert!(read.text.contains("until you complete it"), "{}", read.text);
    assert!(read.text.contains("at most 3 turns, and 2 of them are over"), "{}", read.text);

    let last = turn(&bench, &id);

    assert_eq!((last.outcome, last.status), (Outcome::Blocked, Status::Blocked));
    let task = bench.task(&id);
    assert_eq!((task.block_kind, task.goal_turns), (Some(BlockKind::NeedsInput), 3));
    let asked = task.question.unwrap().text;
    assert_eq!(asked, "the goal was not reached within 3 turns. Continue for as many again?");
    bench.check();

    let of = id.clone();
    bench.call(move |board| board.unblock(&of, None, &alice())).unwrap();
    assert_eq!(bench.task(&id).goal_turns, 0);
    assert_eq!(turn(&bench, &id).status, Status::Ready, "it has as many turns again");
    let run = bench.start(&id);
    let (of, bob) = (id.clone(), Actor::worker("bob", run, id.clone(), None));
    bench.call(move |board| board.complete(&of, Handoff::default(), None, &bob)).unwrap();
    assert_eq!(turn_ended(&bench, run).status, Status::Done, "a verdict goes before the end of a turn");
    assert_eq!(bench.task(&id).goal_turns, 2);
    bench.check();
}

#[test]
fn a_goal_with_a_check_is_reached_when_that_passes_and_each_failed_one_is_a_turn() {
    let bench = Bench::new();
    let id = bench.create(goal(checked("make test", None), Some(2))).id;
    let ended = turn(&bench, &id);
    assert_eq!(
        (ended.outcome, ended.status),
        (Outcome::Completed, Status::Review),
        "its check has not run yet"
    );
    let check = bench.start(&id);
    let failed = bench.finish(check, EndCause::Exited { code: 1 });
    assert_eq!((failed.outcome, failed.status), (Outcome::CheckFailed, Status::Ready));
    let read = bench.readers.with(|view| view.context(&id, ContextLimits::default(), &|_| None)).unwrap();
    assert!(read.text.contains("until its check passes"), "{}", read.text);
    assert!(read.text.contains("at most 2 turns, and 1 of them is over"), "{}", read.text);
    turn(&bench, &id);
    let check = bench.start(&id);
    assert_eq!(bench.finish(check, WELL).status, Status::Done);
    bench.check();

    let id = bench.create(goal(checked("false", None), Some(1))).id;
    turn(&bench, &id);
    let check = bench.start(&id);
    assert_eq!(bench.finish(check, EndCause::Exited { code: 1 }).status, Status::Blocked);
    assert_eq!(bench.task(&id).block_kind, Some(BlockKind::GaveUp));
}

#[test]
fn what_is_no_end_of_a_turn_counts_as_it_does_without_a_goal() {
    let bench = Bench::new();
    let id = bench.create(goal(titled("green"), None)).id;
    let run = bench.start(&id);
    bench.finish(run, EndCause::Exited { code: 1 });
    let task = bench.task(&id);
    assert_eq!((task.goal_turns, task.consecutive_failures), (0, 1));
    // Nothing shows that the agent has come to the end of a turn.
    let run = bench.start(&id);
    let ended = bench.finish(run, WELL);
    assert_eq!((ended.outcome, bench.task(&id).goal_turns), (Outcome::Unreported, 0));
    assert_eq!(bench.task(&id).consecutive_failures, 2);
    let refused = bench.call(|board| board.create(goal(titled("never"), Some(0)), &alice())).unwrap_err();
    assert!(refused.to_string().contains("goal_max_turns"), "{refused}");
    bench.check();
}

#[test]
fn turns_that_are_over_at_once_back_off_and_one_that_took_its_time_ends_that() {
    let bench = Bench::new();
    let id = bench.create(goal(titled("green"), Some(1000))).id;
    let crash = bench.start(&id);
    bench.finish(crash, EndCause::Exited { code: 1 });
    let pauses: Vec<u64> = (0..12)
        .map(|_| {
            let run = bench.start(&id);
            let ended = turn_ended(&bench, run);
            let Some(at) = ended.retry_at else { return 0 };
            assert_eq!(ended.status, Status::Scheduled);
            let pause = at.since(bench.clock.now());
            assert_eq!(bench.wake(), [], "it waits");
            bench.clock.advance(pause);
            assert_eq!(bench.wake(), std::slice::from_ref(&id));
            pause.as_secs()
        })
        .collect();
    let least = [0, 1, 2, 4, 8, 16, 32, 64, 128, 240, 240, 240];
    let fits = |(pause, least): (&u64, u64)| (least..=least + least / 4).contains(pause);
    assert!(pauses.iter().zip(least).all(fits), "{pauses:?}");
    assert_eq!(bench.task(&id).consecutive_failures, 1, "a turn is no success");
    let run = bench.start(&id);
    bench.clock.advance(Duration::from_secs(61));
    assert_eq!(turn_ended(&bench, run).retry_at, None);
    assert_eq!(
        bench.task(&id).consecutive_failures,
        0,
        "it has done something, so the failures before it are no row"
    );
    let run = bench.start(&id);
    assert_eq!(turn_ended(&bench, run).retry_at, None, "the first one after it");
    bench.check();
}

#[test]
fn a_check_that_fails_at_once_backs_off_like_a_turn() {
    let bench = Bench::new();
    let id = bench.create(checked("false", Some(5))).id;
    for pause in [None, Some(1), Some(2)] {
        let work = bench.start(&id);
        let result_policy = OnCleanExit::Complete { summary: None };
        let ending = Ending { result_policy, ..Ending::new(WELL) };
        bench.call(move |board| board.finish_run(work, ending)).unwrap();
        let check = bench.start(&id);
        let ended = bench.finish(check, EndCause::Exited { code: 1 });
        let waits = ended.retry_at.map(|at| at.since(bench.clock.now()));
        assert_eq!(waits.map(|waits| waits.as_secs()), pause, "and a part of a second more");
        bench.clock.advance(waits.unwrap_or_default());
        bench.wake();
    }
    bench.check();
}

#[test]
fn turns_have_an_upper_limit_which_is_lower_for_what_workers_make() {
    let bench = Bench::new();
    let refusal = |new: NewTask, actor: Actor| {
        let refused = bench.call(move |board| board.create(new, &actor)).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
        refused.to_string()
    };
    bench.create(goal(titled("long"), Some(1000)));
    let refused = refusal(goal(titled("endless"), Some(1001)), alice());
    assert!(refused.contains("goal_max_turns") && refused.contains("the limit is 1000"), "{refused}");
    let refused = refusal(checked("false", Some(1001)), alice());
    assert!(refused.contains("max_checks") && refused.contains("the limit is 1000"), "{refused}");
    for (own, most) in
        [(titled("own"), 20), (goal(titled("own"), Some(3)), 3), (goal(titled("own"), Some(30)), 20)]
    {
        let own = bench.create(own).id;
        let run = bench.start(&own);
        let bob = Actor::worker("bob", run, own, None);
        let refused = refusal(goal(titled("child"), Some(most + 1)), bob.clone());
        assert!(refused.contains(&format!("the limit is {most}")), "{refused}");
        let refused = refusal(checked("false", Some(21)), bob.clone());
        assert!(refused.contains("the limit is 20"), "{refused}");
        for wanted in [None, Some(most)] {
            let (child, bob) = (goal(titled("child"), wanted), bob.clone());
            let made = bench.call(move |board| board.create(child, &bob)).unwrap();
            assert_eq!(made.task.goal.turns(), Some(most));
        }
    }
}
