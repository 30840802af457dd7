//! Ends of runs that the schema refuses.

use rusqlite::Connection;

use crate::testing::Bench;
use crate::{EndCause, Ending, Handed, Outcome, Status};

#[test]
fn a_run_whose_end_the_schema_refuses_ends_all_the_same_and_its_task_waits_for_a_person() {
    let bench = Bench::new();
    let task = bench.ready();
    let run = bench.start(&task);
    Connection::open(&bench.path)
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER no_such_event BEFORE INSERT ON task_events WHEN new.kind = 'crashed' \
             BEGIN SELECT RAISE(ABORT, 'no such event'); END",
        )
        .unwrap();

    let ending = Ending::new(EndCause::Exited { code: 3 });
    let again = ending.clone();
    let finished = bench.call(move |board| board.end_run(run, &ending, &Handed::default())).unwrap();

    assert_eq!((finished.status, finished.outcome), (Status::Blocked, Outcome::Lost));
    let reason = bench.task(&task).block_reason.unwrap();
    assert!(
        reason.starts_with("its end could not be recorded as reported") && reason.contains("no such event")
    );
    let ended = bench.readers.with(|view| view.expect_run(run)).unwrap();
    assert_eq!((ended.exit_code, ended.error), (Some(3), Some(reason)));
    assert!(
        bench.call(move |board| board.end_run(run, &again, &Handed::default())).unwrap().already_finished
    );
    bench.check();
}
