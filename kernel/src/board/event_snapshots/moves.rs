//! Events of moves by hand.

use super::{done, rendered_events};
use crate::testing::{Bench, alice, titled};
use crate::{Destination, EndCause, Ending, InitialState, NewTask, StopReason};

#[test]
fn status_tells_of_a_move_by_hand() {
    let rendered = done("status", |board, id| board.move_task(id, Destination::Triage, &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"no run: {"status":"triage"}"#);
}

#[test]
fn status_tells_where_a_task_stands_that_was_moved_into_the_queue() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.create(NewTask { initial_state: InitialState::Triage, ..titled("later") }).id;
        bench.call(move |board| board.move_task(&id, Destination::Queue, &alice())).unwrap();
        rendered_events(&bench, "status")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"status":"ready"}"#);
}

#[test]
fn status_tells_of_a_running_task_that_was_moved_by_hand_with_the_run_that_it_ended() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.ready();
        let run = bench.start(&id);
        bench.call(move |board| board.move_task(&id, Destination::Triage, &alice())).unwrap();
        let ending = Ending::new(EndCause::Stopped(StopReason::Verdict));
        bench.call(move |board| board.finish_run(run, ending)).unwrap();
        rendered_events(&bench, "status")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"status":"triage"}"#);
}
