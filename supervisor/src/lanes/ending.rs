//! How a lane reads the ending of a run: from the exit record and the standard output to what is reported to the board.
//!
//! The first that applies counts:
//!
//! 1. the worker's verdict, which the board has already: it goes before all that is read here;
//! 2. the shim ended the run: out of memory, at its deadline, or on request;
//! 3. the command was never executed;
//! 4. the worker exited with 75, or says so in the format of its lane: its service refuses it for a while;
//! 5. it exited with 0: the lane says what that means. A format that has a word for an end wants to see it;
//! 6. any other exit, or a signal: a crash.

use std::time::Duration;

use kernel::{EndCause, Ending, OnCleanExit, Siblings, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::{Cause, ExitRecord, Stdout, StopReason};

use super::formats::{Finish, Format, Said};
use super::lane::{CleanExit, Lane, RateLimit};

/// The exit code of a worker whose service refuses it for a while: `EX_TEMPFAIL` of sysexits.h, which workers of
/// `hermes kanban` use for it.
const RATE_LIMITED: i32 = 75;

/// The longest rate limit that is believed.
const LONGEST: Duration = Duration::from_hours(24);

/// What a lane says about the ending of its runs. It is kept with each run from its start on: the lane may say something
/// else by the time that the run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndingRules {
    /// What exit 0 without a verdict means.
    on_clean_exit: CleanExit,
    /// Whom the limit of a service holds up.
    #[serde(default)]
    rate_limit: RateLimit,
    /// How long, in seconds, where the worker does not say it.
    #[serde(default)]
    rate_limit_pause: u64,
    /// What its standard output is.
    #[serde(default)]
    stdout: Format,
}

impl From<&Lane> for EndingRules {
    fn from(lane: &Lane) -> Self {
        EndingRules {
            on_clean_exit: lane.on_clean_exit,
            rate_limit: lane.rate_limit,
            rate_limit_pause: lane.rate_limit_pause.duration().as_secs(),
            stdout: lane.stdout,
        }
    }
}

/// Reads how a run ended that was over at `ended_at`.
pub(crate) fn read_ending(
    record: &ExitRecord,
    stdout: &Stdout,
    rules: &EndingRules,
    ended_at: Timestamp,
) -> Ending {
    let said = match &record.cause {
        Cause::Exited => rules.stdout.read(stdout),
        // Whatever it was about to say.
        Cause::Deadline | Cause::Stopped { .. } | Cause::SpawnFailed(_) => Said::default(),
    };
    let mut ending = Ending::new(cause(record, rules, &said, ended_at));
    ending.ended_at = Some(ended_at);
    ending.exit_code = record.code;
    ending.signal = record.signal;
    ending.usage = serde_json::to_value(record.usage).ok();
    ending.stderr_tail = Some(record.stderr_tail.clone()).filter(|tail| !tail.is_empty());
    ending.siblings = match rules.rate_limit {
        RateLimit::Account => Siblings::Hold,
        RateLimit::Task => Siblings::Spare,
    };
    ending.result_policy = match rules.on_clean_exit {
        CleanExit::Complete if said.finish == Finish::Well => OnCleanExit::Complete { summary: said.message },
        CleanExit::Complete | CleanExit::Unreported => OnCleanExit::Unreported,
    };
    ending
}

fn cause(record: &ExitRecord, rules: &EndingRules, said: &Said, ended_at: Timestamp) -> EndCause {
    let limited = |until: Option<Timestamp>| {
        let pause = ended_at.after(Duration::from_secs(rules.rate_limit_pause));
        let until = until.filter(|until| *until > ended_at).unwrap_or(pause);
        EndCause::RateLimited { until: until.min(ended_at.after(LONGEST)) }
    };
    match &record.cause {
        _ if record.oom == Some(true) => EndCause::OutOfMemory,
        Cause::Deadline => EndCause::TimedOut,
        Cause::Stopped { reason } => EndCause::Stopped(stop_reason(*reason)),
        // Whose fault it is the daemon decides, which knows what the run needed.
        Cause::SpawnFailed(_) => EndCause::NeverStarted,
        Cause::Exited => match (record.code, record.signal, said.finish) {
            (_, Some(signal), _) => EndCause::Signaled { signal },
            (_, None, Finish::RateLimited(until)) => limited(until),
            (Some(RATE_LIMITED), None, _) => limited(None),
            (code, None, _) => EndCause::Exited { code: code.unwrap_or(-1) },
        },
    }
}

fn stop_reason(reason: StopReason) -> kernel::StopReason {
    match reason {
        StopReason::Verdict => kernel::StopReason::Verdict,
        StopReason::Reclaimed => kernel::StopReason::Reclaimed,
        StopReason::Cancelled => kernel::StopReason::Cancelled,
        StopReason::Preempted => kernel::StopReason::Preempted,
        StopReason::Kill => kernel::StopReason::Kill,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shim::rundir::{Concern, FailedStart, RunDir, Step};

    const END: Timestamp = Timestamp::from_secs(1_000);

    fn rules(text: &str) -> EndingRules {
        let text = format!("argv = [\"x\"]\n{text}");
        EndingRules::from(&Lane::parse("l", &text, std::path::Path::new("/l.toml")).unwrap())
    }

    fn exited(code: i32) -> ExitRecord {
        let (code, stdout_tail) = (Some(code), "\n42 \n".to_owned());
        ExitRecord { code, stdout_tail, ..ExitRecord::of(Cause::Exited, 1) }
    }

    fn read(record: &ExitRecord, rules: &EndingRules) -> Ending {
        read_with(record, rules, "")
    }

    fn read_with(record: &ExitRecord, rules: &EndingRules, stdout: &str) -> Ending {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), stdout).unwrap();
        let stdout = RunDir::open(place.path()).unwrap().stdout(record).unwrap();
        read_ending(record, &stdout, rules, END)
    }

    #[test]
    fn exit_0_means_what_the_lane_says() {
        let ending = read(&exited(0), &rules("on_clean_exit = \"complete\""));
        assert_eq!((ending.cause, ending.exit_code), (EndCause::Exited { code: 0 }, Some(0)));
        assert_eq!(ending.result_policy, OnCleanExit::Complete { summary: Some("42".to_owned()) });
        assert_eq!(ending.ended_at, Some(END));
        assert_eq!(read(&exited(0), &rules("")).result_policy, OnCleanExit::Unreported);
    }

    #[test]
    fn exit_75_is_a_rate_limit_for_as_long_and_for_whom_the_lane_says() {
        let ending = read(&exited(75), &rules("rate_limit = \"task\"\nrate_limit_pause = \"1m\""));
        let until = END.after(Duration::from_mins(1));
        assert_eq!((ending.cause, ending.siblings), (EndCause::RateLimited { until }, Siblings::Spare));
        let ending = read(&exited(75), &rules(""));
        let until = END.after(Duration::from_mins(5));
        assert_eq!((ending.cause, ending.siblings), (EndCause::RateLimited { until }, Siblings::Hold));
    }

    #[test]
    fn what_the_shim_did_goes_before_the_exit_code() {
        let of = |cause: Cause, code| ExitRecord { cause, ..exited(code) };
        let cause = |record: &ExitRecord| read(record, &rules("")).cause;
        assert_eq!(cause(&of(Cause::Deadline, 75)), EndCause::TimedOut);
        let stopped = Cause::Stopped { reason: StopReason::Verdict };
        assert_eq!(cause(&of(stopped, 75)), EndCause::Stopped(kernel::StopReason::Verdict));
        let killed = ExitRecord { oom: Some(true), ..exited(75) };
        assert_eq!(cause(&killed), EndCause::OutOfMemory);
        let failed =
            FailedStart { step: Step::Exec, error: String::new(), errno: None, concern: Concern::Lane };
        assert_eq!(cause(&of(Cause::SpawnFailed(failed), 75)), EndCause::NeverStarted);
        let signaled = ExitRecord { code: None, signal: Some(9), ..exited(0) };
        assert_eq!(cause(&signaled), EndCause::Signaled { signal: 9 });
    }

    #[test]
    fn a_worker_that_says_how_it_ended_is_believed_in_the_format_of_its_lane() {
        let claude = rules("stdout = \"claude-stream-json\"\non_clean_exit = \"complete\"");
        let result = r#"{"type":"result","is_error":false,"result":"fixed"}"#;
        let well = read_with(&exited(0), &claude, result);
        assert_eq!(well.result_policy, OnCleanExit::Complete { summary: Some("fixed".to_owned()) });
        assert_eq!(read(&exited(0), &claude).result_policy, OnCleanExit::Unreported, "it has said nothing");
        let refused = r#"{"type":"result","is_error":true,"api_error_status":429}"#;
        let until = END.after(Duration::from_mins(5));
        assert_eq!(read_with(&exited(1), &claude, refused).cause, EndCause::RateLimited { until });
        let plain = rules("on_clean_exit = \"complete\"");
        assert_eq!(read_with(&exited(1), &plain, refused).cause, EndCause::Exited { code: 1 });
        let deadline = ExitRecord { cause: Cause::Deadline, ..exited(1) };
        assert_eq!(read_with(&deadline, &claude, refused).cause, EndCause::TimedOut);
    }

    #[test]
    fn a_limit_without_an_end_is_not_believed() {
        let claude = rules("stdout = \"claude-stream-json\"");
        let rejected = |at: i64| {
            let event = format!(r#"{{"type":"rate_limit_event","status":"rejected","resetsAt":{at}}}"#);
            read_with(&exited(1), &claude, &event).cause
        };
        let limited = |secs| EndCause::RateLimited { until: END.after(Duration::from_secs(secs)) };
        assert_eq!(rejected(1_060), limited(60));
        assert_eq!(rejected(i64::MAX), limited(24 * 3600));
        assert_eq!(rejected(i64::MIN), limited(300), "a time that is over is none");
    }

    #[test]
    fn rules_that_an_earlier_release_kept_are_read() {
        let kept = r#"{"on_clean_exit":"complete","identity":null,"exclusive_uid":false,"failure_limit":5}"#;
        let kept: EndingRules = serde_json::from_str(kept).unwrap();
        assert_eq!(kept, EndingRules { on_clean_exit: CleanExit::Complete, ..EndingRules::default() });
    }
}
