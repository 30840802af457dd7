//! Number of tries of a task: counted failures, and starts that come to nothing for outside reasons.

use crate::testing::{Bench, titled};
use crate::{BlockKind, EndCause, Fault, Limits, NewTask, Status};

#[test]
fn a_task_without_retries_is_tried_once() {
    for none in [0, 1] {
        let bench = Bench::new();
        let limits = Limits { max_retries: Some(none), ..Limits::default() };
        let id = bench.create(NewTask { limits, assignee: Some("bob".parse().unwrap()), ..titled("x") }).id;
        let run = bench.start(&id);
        bench.finish(run, EndCause::Exited { code: 3 });
        assert_eq!(bench.task(&id).status, Status::Blocked, "{none}");
    }
}

#[test]
fn a_start_that_fails_for_what_the_task_says_is_not_tried_again() {
    let bench = Bench::new();
    let id = bench.ready();
    let cause = EndCause::SpawnFailed {
        step: "script".to_owned(),
        error: "it has none".to_owned(),
        fault: Fault::Definition,
    };
    bench.finish(bench.start(&id), cause);
    let task = bench.task(&id);
    assert_eq!((task.status, task.block_kind), (Status::Blocked, Some(BlockKind::GaveUp)));
    assert_eq!(task.block_reason.as_deref(), Some("gave up after 1 failure: script: it has none"));
    bench.check();
}

#[test]
fn starts_that_come_to_nothing_outside_of_the_task_are_one_run_that_counts_them() {
    let bench = Bench::new();
    let id = bench.ready();
    let broken = || EndCause::SpawnFailed {
        step: "exec".to_owned(),
        error: "no such file".to_owned(),
        fault: Fault::Environment,
    };
    let crashed = bench.start(&id);
    bench.finish(crashed, EndCause::Exited { code: 3 });
    let mut last = crashed;
    for n in 0..20 {
        let run = bench.start(&id);
        let cause = if n % 2 == 0 { broken() } else { EndCause::NeverStarted };
        let finished = bench.finish(run, cause);
        assert_eq!(finished.replaces, (n > 0).then_some(last));
        assert!(bench.finish(run, broken()).already_finished);
        last = run;
    }
    let runs = bench.readers.with(|view| view.runs(&id)).unwrap();
    let tries: Vec<_> = runs.iter().map(|run| (run.id, run.tries)).collect();
    assert_eq!(tries, [(crashed, None), (last, Some(20))]);
    assert_eq!(bench.task(&id).consecutive_failures, 1);

    let works = bench.start(&id);
    bench.finish(works, EndCause::Exited { code: 3 });
    bench.clock.advance(std::time::Duration::from_mins(1));
    bench.wake();
    let again = bench.start(&id);
    bench.finish(again, broken());
    let runs = bench.readers.with(|view| view.runs(&id)).unwrap();
    let tries: Vec<_> = runs.iter().map(|run| (run.id, run.tries)).collect();
    assert_eq!(tries, [(crashed, None), (last, Some(20)), (works, None), (again, Some(1))]);
    bench.check();
}
