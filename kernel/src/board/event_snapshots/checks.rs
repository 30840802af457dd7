//! Events of checks.

use super::{handoff, rendered_events, worker};
use crate::EndCause;
use crate::testing::{Bench, checked};

/// Completes a task with a check, and ends the check with the given cause.
fn checks(exit: i32, kind: &str) -> String {
    let bench = Bench::new();
    let id = bench.create(checked("cargo test", Some(2))).id;
    let run = bench.start(&id);
    let (of, bob) = (id.clone(), worker("bob", run, &id));
    bench.call(move |board| board.complete(&of, handoff(), None, &bob)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    let check = bench.start(&id);
    bench.finish(check, EndCause::Exited { code: exit });
    rendered_events(&bench, kind)
}

#[test]
fn check_pending_tells_of_work_that_is_not_proved_yet() {
    insta::assert_snapshot!(checks(0, "check_pending"), @r#"its run: {"artifacts":["out.md"],"check":"cargo test","result_len":2,"summary":"did it"}"#);
}

#[test]
fn check_passed_tells_of_proved_work() {
    insta::assert_snapshot!(checks(0, "check_passed"), @r#"its run: {"check":"cargo test"}"#);
}

#[test]
fn check_failed_tells_of_work_that_is_not_done() {
    insta::assert_snapshot!(checks(101, "check_failed"), @r#"its run: {"check":"cargo test","error":"the check failed: exit code 101","exit_code":101,"failed_checks":1,"max_checks":2,"signal":null}"#);
}
