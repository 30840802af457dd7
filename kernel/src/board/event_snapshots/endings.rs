//! Events of the end of a run.

use super::{ended, rendered_events};
use crate::testing::{Bench, limited, titled};
use crate::{EndCause, Ending, Goal, NewTask, OnCleanExit, StopReason};

#[test]
fn protocol_violation_tells_of_a_worker_that_says_nothing() {
    let rendered = ended(EndCause::Exited { code: 0 }, "protocol_violation");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"the worker exited without complete, block or request-review (a lane whose program does not report says `on_clean_exit = \"complete\"`)","exit_code":0,"failures":1,"outcome":"unreported","pid":null,"protocol_violation":true,"retry_at":null,"signal":null}"#);
}

#[test]
fn goal_turn_tells_of_a_turn_that_another_one_follows() {
    let bench = Bench::new();
    let goal = Goal { mode: true, max_turns: Some(3) };
    let run = bench.start(&bench.create(NewTask { goal, ..titled("goal") }).id);
    let result_policy = OnCleanExit::TurnEnded { summary: None };
    let ending = Ending { result_policy, ..Ending::new(EndCause::Exited { code: 0 }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "goal_turn"), @r#"its run: {"error":"turn 1 of 3 ended without a verdict: the next turn follows","exit_code":0,"failures":0,"max_turns":3,"outcome":"unreported","pid":null,"retry_at":null,"signal":null,"turn":1}"#);
}

#[test]
fn crashed_tells_of_a_worker_that_fails() {
    let rendered = ended(EndCause::Exited { code: 3 }, "crashed");
    insta::assert_snapshot!(rendered, @r#"its run: {"claimer":"lock","error":"exit code 3","exit_code":3,"failures":1,"outcome":"crashed","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn timed_out_tells_of_a_worker_that_runs_too_long() {
    let rendered = ended(EndCause::TimedOut, "timed_out");
    insta::assert_snapshot!(rendered, @r#"its run: {"elapsed_seconds":0,"error":"it ran longer than its limit","exit_code":null,"failures":1,"limit_from":null,"limit_seconds":null,"outcome":"timed_out","pid":null,"retry_at":null,"sigkill":false,"signal":null}"#);
}

#[test]
fn stalled_tells_of_a_worker_that_shows_no_progress() {
    let rendered = ended(EndCause::Stopped(StopReason::Stalled), "stalled");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"it showed no progress and was ended","exit_code":null,"failures":1,"outcome":"stalled","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn out_of_memory_tells_of_a_worker_that_is_too_big() {
    let rendered = ended(EndCause::OutOfMemory, "out_of_memory");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"the kernel ended it for lack of memory: it reached its limit, or the host had none left","exit_code":null,"failures":1,"outcome":"out_of_memory","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn lost_tells_of_a_host_that_went_down() {
    let rendered = ended(EndCause::LostReboot, "lost");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"the host went down","exit_code":null,"failures":0,"outcome":"lost","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn spawn_failed_tells_of_a_worker_that_cannot_start() {
    let rendered = {
        let (step, error) = ("exec".to_owned(), "not found".to_owned());
        ended(EndCause::SpawnFailed { step, error, fault: crate::Fault::Task }, "spawn_failed")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"exec: not found","exit_code":null,"failures":1,"outcome":"spawn_failed","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn rate_limited_tells_of_a_service_that_refuses() {
    let rendered =
        ended(EndCause::RateLimited { until: crate::Timestamp::from_secs(4_000_000_000) }, "rate_limited");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"its service refused requests for a while","exit_code":null,"failures":0,"outcome":"rate_limited","pid":null,"retry_at":"moment","signal":null}"#);
}

#[test]
fn reclaimed_tells_of_a_run_that_was_taken_back() {
    let rendered = ended(EndCause::Stopped(StopReason::Reclaimed), "reclaimed");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":null,"exit_code":null,"failures":0,"outcome":"reclaimed","pid":null,"retry_at":null,"signal":null,"stale_lock":"lock"}"#);
}

#[test]
fn preempted_tells_of_a_run_that_made_room() {
    let rendered = ended(EndCause::Stopped(StopReason::Preempted), "preempted");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":null,"exit_code":null,"failures":0,"outcome":"preempted","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn cancelled_tells_of_a_run_that_a_person_ended() {
    let rendered = ended(EndCause::Stopped(StopReason::Cancelled), "cancelled");
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"a person cancelled the run","exit_code":null,"failures":0,"outcome":"cancelled","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn gave_up_tells_of_the_last_attempt() {
    let rendered = {
        let bench = Bench::new();
        let run = bench.start(&bench.create(NewTask { limits: limited(1), ..titled("once") }).id);
        bench.finish(run, EndCause::Exited { code: 1 });
        rendered_events(&bench, "gave_up")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"error":"exit code 1","failures":1,"limit_source":"task","trigger_outcome":"crashed"}"#);
}
