//! How a lane reads the ending of a run: from the exit record and the standard output to what is reported to the board.
//!
//! The first that applies counts:
//!
//! 1. the worker's verdict, which the board has already: it goes before all that is read here;
//! 2. the shim ended the run: out of memory, at its deadline, on request, or because it wrote nothing for too long, unless it waited for
//!    its service then: what its words say of that counts as in 4, 5 and 7;
//! 3. the command was never executed, or the session in which it was to go on is gone;
//! 4. its service refuses it for a while: exit code 75, a code of its lane, its own words in the format of its lane, or, where it has none
//!    and has failed or stalled, what its service has answered to its broker last;
//! 5. its service does not accept its login: likewise;
//! 6. it met a limit that its lane has set for its work: likewise;
//! 7. its service fails: likewise. It is tried again as after a rate limit, soon;
//! 8. it exited with 0: the lane says what that means. A format that has a word for an end wants to see it;
//! 9. any other exit, or a signal: a crash.

use std::time::Duration;

use kernel::{EndCause, Ending, OnCleanExit, Purpose, Siblings, Spent, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::{Cause, ExitRecord, Stdout, StopReason};

use super::answers::{Answer, Refusal, Services};
use super::exit_codes::ExitCodes;
use super::formats::{Finish, Format, OwnLimit, Reset, Said};
use super::lane::{CleanExit, Lane, RateLimit};
use crate::terminal::plain;

/// The longest rate limit that is believed.
pub(crate) const LONGEST_LIMIT: Duration = Duration::from_hours(24);

/// Between two tries of a login that its service has not accepted. A person may release the hold earlier.
const LOGIN_PAUSE: Duration = Duration::from_mins(10);

/// Between two tries of a service that fails.
const OUTAGE_PAUSE: Duration = Duration::from_mins(1);

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
    /// What exit codes of its program mean.
    #[serde(default)]
    exit_codes: ExitCodes,
    /// How long, in seconds, its service may refuse a worker that tries again; 0 for no limit.
    #[serde(default)]
    retry_limit: u64,
    /// The session in which the run was to go on.
    #[serde(default)]
    resumed: Option<String>,
    /// What its program writes where that is gone.
    #[serde(default)]
    session_gone: Vec<String>,
    /// Whether its standard output is what a terminal shows.
    #[serde(default)]
    terminal: bool,
    /// Whether it was to begin a session of its own from that one.
    #[serde(default)]
    is_fork: bool,
    /// The model that its program was to use.
    #[serde(default)]
    model: Option<String>,
    /// The services that it asks by a broker.
    #[serde(default, skip_serializing_if = "Services::is_empty")]
    services: Services,
}

impl EndingRules {
    /// How the ending of a run in a lane is read, which goes on in a session or begins one. A check says nothing but whether it
    /// passed, which its exit code tells the board.
    pub(crate) fn of_run(lane: &Lane, purpose: Purpose, resumed: Option<&str>) -> Self {
        if purpose == Purpose::Check {
            return Self::default();
        }
        EndingRules {
            on_clean_exit: lane.on_clean_exit,
            rate_limit: lane.rate_limit,
            rate_limit_pause: lane.rate_limit_pause.as_secs(),
            stdout: lane.stdout,
            exit_codes: lane.exit_codes.clone(),
            retry_limit: lane.retry_limit.as_secs(),
            resumed: resumed.map(str::to_owned),
            session_gone: lane.sessions.gone.clone(),
            terminal: lane.terminal.is_some(),
            is_fork: lane.sessions.is_forking && resumed.is_some(),
            model: lane.model.clone(),
            services: Services::of(lane),
        }
    }

    /// Reads what a worker has said. Tokens of an agent that names no model are of the one that it was to use.
    fn read(&self, stdout: &Stdout) -> Said {
        let mut said = self.stdout.read(stdout);
        let has_used = said.spent.input_tokens > 0 || said.spent.output_tokens > 0;
        if has_used && said.spent.model.is_none() {
            said.spent.model.clone_from(&self.model);
        }
        said
    }

    /// Whether there is something to hear before the end, of its agent or of its service.
    pub(crate) fn is_heard(&self) -> bool {
        self.stdout.is_heard() || !self.services.is_empty()
    }

    /// For how long its agent has asked its service again, and got nothing but refusals.
    pub(crate) fn refused_for(&self, answers: &[Answer]) -> Option<Duration> {
        self.services.refused_for(answers)
    }

    /// How long its service may refuse a worker that tries again.
    pub(crate) fn retry_limit(&self) -> Option<Duration> {
        Some(self.retry_limit).filter(|limit| *limit > 0).map(Duration::from_secs)
    }

    /// Whether a program that failed says that the session does not exist in which it was to go on.
    fn has_no_session(&self, record: &ExitRecord, said: &Said) -> bool {
        let texts = [Some(&record.stderr_tail), said.trouble.as_ref(), said.message.as_ref()];
        let says = |words: &String| texts.into_iter().flatten().any(|text| text.contains(words.as_str()));
        self.resumed.is_some() && record.code != Some(0) && self.session_gone.iter().any(says)
    }
}

/// What is known of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoFar {
    /// What its agent has used.
    pub(crate) spent: Spent,
    /// Whether its service refuses it at the moment, and it tries again.
    pub(crate) is_refused: bool,
}

/// Reads what a worker has said so far.
pub(crate) fn read_so_far(stdout: &Stdout, rules: &EndingRules) -> SoFar {
    SoFar { spent: rules.read(stdout).spent, is_refused: rules.stdout.is_refused(stdout) }
}

/// Reads how a run ended that was over at `ended_at`.
pub(crate) fn read_ending(
    record: &ExitRecord,
    stdout: &Stdout,
    rules: &EndingRules,
    answers: &[Answer],
    ended_at: Timestamp,
) -> Ending {
    let mut said = match &record.cause {
        Cause::SpawnFailed(_) => Said::default(),
        Cause::Exited | Cause::Deadline | Cause::Stopped { .. } => rules.read(stdout),
    };
    if rules.terminal {
        said.message = said.message.map(|text| plain(&text)).filter(|text| !text.is_empty());
    }
    let refusal = rules.services.refusal(answers).filter(|_| is_cut_short(record, said.finish));
    if let Some(Refusal { finish, trouble }) = refusal {
        said.finish = finish;
        said.trouble.get_or_insert(trouble);
    }
    let mut ending = Ending::new(cause(record, rules, &said, ended_at));
    if said.finish == Finish::Well && said.spent.denials > 0 {
        let denials = said.spent.denials;
        said.trouble = Some(format!("the agent itself refused calls of its tools ({denials})"));
    }
    ending.ended_at = Some(ended_at);
    ending.exit_code = record.code;
    ending.signal = record.signal;
    ending.core_dumped = record.core_dumped;
    ending.usage = serde_json::to_value(record.usage).ok();
    ending.stderr_tail = Some(record.stderr_tail.clone()).filter(|tail| !tail.is_empty());
    ending.siblings = match rules.rate_limit {
        RateLimit::Account => Siblings::Hold,
        RateLimit::Task => Siblings::Spare,
    };
    let is_well = said.finish == Finish::Well;
    ending.result_policy = match rules.on_clean_exit {
        // Who was not allowed to do something may not have done the task.
        CleanExit::Complete if is_well && said.spent.denials == 0 => {
            OnCleanExit::Complete { summary: said.message }
        }
        CleanExit::Review if is_well => OnCleanExit::Review { summary: said.message },
        CleanExit::ProtocolViolation if is_well => OnCleanExit::TurnEnded { summary: said.message },
        CleanExit::Complete | CleanExit::Review | CleanExit::ProtocolViolation => OnCleanExit::Unreported,
    };
    ending.trouble = said.trouble;
    // A run that is cut short before it names its session is in it all the same.
    said.spent.session = match ending.cause {
        EndCause::SessionGone => None,
        _ => said.spent.session.or_else(|| rules.resumed.clone().filter(|_| !rules.is_fork)),
    };
    ending.spent = Some(said.spent).filter(|spent| *spent != Spent::default());
    ending
}

fn cause(record: &ExitRecord, rules: &EndingRules, said: &Said, ended_at: Timestamp) -> EndCause {
    match &record.cause {
        _ if record.oom == Some(true) => EndCause::OutOfMemory,
        Cause::Deadline => EndCause::TimedOut,
        // An agent that was told to come again in an hour waits for an hour, and says nothing.
        Cause::Stopped { reason: StopReason::Stalled } if waits_for_service(said.finish) => {
            own_end(record, rules, said.finish, ended_at)
        }
        Cause::Stopped { reason } => match stop_reason(*reason) {
            Some(reason) => EndCause::Stopped(reason),
            None => refused(record, rules, said.finish, ended_at),
        },
        // Whose fault it is the daemon decides, which knows what the run needed.
        Cause::SpawnFailed(_) => EndCause::NeverStarted,
        Cause::Exited if rules.has_no_session(record, said) => EndCause::SessionGone,
        Cause::Exited => own_end(record, rules, said.finish, ended_at),
    }
}

/// How a run ended whose shim was told to end it and has left no word of its own; none where only what its agent said would tell.
pub(crate) fn told_to_end(cause: &Cause) -> Option<EndCause> {
    match cause {
        Cause::Deadline => Some(EndCause::TimedOut),
        Cause::Stopped { reason } => stop_reason(*reason).map(EndCause::Stopped),
        Cause::Exited | Cause::SpawnFailed(_) => None,
    }
}

/// Whether a run has failed or stalled, or was ended because its service refuses it, and its agent has not said why.
fn is_cut_short(record: &ExitRecord, said: Finish) -> bool {
    let is_unsaid = match said {
        Finish::Well | Finish::Unsaid | Finish::Failed => true,
        Finish::RateLimited(_) | Finish::NotLoggedIn | Finish::Unavailable | Finish::OwnLimit(_) => false,
    };
    let is_short = match record.cause {
        Cause::Exited => record.code.is_some_and(|code| code != 0),
        Cause::Stopped { reason: StopReason::Stalled | StopReason::Refused } => true,
        Cause::Stopped { .. } | Cause::Deadline | Cause::SpawnFailed(_) => false,
    };
    is_unsaid && is_short
}

/// Whether an agent has said last that its service refuses it or fails.
fn waits_for_service(said: Finish) -> bool {
    match said {
        Finish::RateLimited(_) | Finish::NotLoggedIn | Finish::Unavailable => true,
        Finish::Well | Finish::Unsaid | Finish::Failed | Finish::OwnLimit(_) => false,
    }
}

/// What the worker's own end means: the most telling of what it said and of its exit code.
fn own_end(record: &ExitRecord, rules: &EndingRules, said: Finish, ended_at: Timestamp) -> EndCause {
    let code = rules.exit_codes.meaning(record.code);
    let finish = if rank(code) < rank(said) { code } else { said };
    match finish {
        Finish::RateLimited(reset) => {
            let pause = ended_at.after(Duration::from_secs(rules.rate_limit_pause));
            let told = reset.map(|reset| match reset {
                Reset::At(at) => at,
                Reset::After(pause) => ended_at.after(pause.min(LONGEST_LIMIT)),
            });
            let until = told.filter(|until| *until > ended_at).unwrap_or(pause);
            EndCause::RateLimited { until: until.min(ended_at.after(LONGEST_LIMIT)) }
        }
        Finish::NotLoggedIn => EndCause::NotLoggedIn { until: ended_at.after(LOGIN_PAUSE) },
        Finish::OwnLimit(OwnLimit::Turns) => EndCause::OwnLimit(kernel::OwnLimit::Turns),
        Finish::OwnLimit(OwnLimit::Cost) => EndCause::OwnLimit(kernel::OwnLimit::Cost),
        Finish::Unavailable => EndCause::RateLimited { until: ended_at.after(OUTAGE_PAUSE) },
        Finish::Well | Finish::Unsaid | Finish::Failed => match (record.code, record.signal) {
            (_, Some(signal)) => EndCause::Signaled { signal },
            (code, None) => EndCause::Exited { code: code.unwrap_or(-1) },
        },
    }
}

/// The same end, where the service has told the proxy of the run when it can be asked again: not before that.
pub(crate) fn not_before(cause: EndCause, opens: Option<Timestamp>) -> EndCause {
    match (cause, opens) {
        (EndCause::RateLimited { until }, Some(opens)) => EndCause::RateLimited { until: until.max(opens) },
        (cause, _) => cause,
    }
}

/// The place of an end in the order above: what says more goes first.
fn rank(finish: Finish) -> u8 {
    match finish {
        Finish::RateLimited(_) => 4,
        Finish::NotLoggedIn => 5,
        Finish::OwnLimit(_) => 6,
        Finish::Unavailable => 7,
        Finish::Well | Finish::Failed | Finish::Unsaid => 8,
    }
}

/// The end of a worker that was ended because its service refused it for too long.
fn refused(record: &ExitRecord, rules: &EndingRules, said: Finish, ended_at: Timestamp) -> EndCause {
    match own_end(record, rules, said, ended_at) {
        told @ (EndCause::RateLimited { .. } | EndCause::NotLoggedIn { .. }) => told,
        _ => EndCause::RateLimited { until: ended_at.after(Duration::from_secs(rules.rate_limit_pause)) },
    }
}

/// Why the daemon has ended a run; none where that is for what its service does.
fn stop_reason(reason: StopReason) -> Option<kernel::StopReason> {
    Some(match reason {
        StopReason::Refused => return None,
        StopReason::Verdict => kernel::StopReason::Verdict,
        StopReason::Reclaimed => kernel::StopReason::Reclaimed,
        StopReason::Cancelled => kernel::StopReason::Cancelled,
        StopReason::Preempted => kernel::StopReason::Preempted,
        StopReason::Kill => kernel::StopReason::Kill,
        StopReason::Stalled => kernel::StopReason::Stalled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shim::rundir::{Concern, FailedStart, RunDir, Step};

    const END: Timestamp = Timestamp::from_secs(1_000);

    fn rules(text: &str) -> EndingRules {
        let text = format!("argv = [\"x\"]\n{text}");
        EndingRules::of_run(
            &Lane::parse("l", &text, std::path::Path::new("/l.toml")).unwrap(),
            Purpose::Work,
            None,
        )
    }

    fn of(cause: Cause) -> ExitRecord {
        ExitRecord { cause, ..exited(75) }
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
        read_ending(record, &stdout, rules, &[], END)
    }

    #[test]
    fn exit_0_means_what_the_lane_says() {
        let ending = read(&exited(0), &rules("on_clean_exit = \"complete\""));
        assert_eq!((ending.cause, ending.exit_code), (EndCause::Exited { code: 0 }, Some(0)));
        assert_eq!(ending.result_policy, OnCleanExit::Complete { summary: Some("42".to_owned()) });
        assert_eq!(ending.ended_at, Some(END));
        let summary = Some("42".to_owned());
        assert_eq!(read(&exited(0), &rules("")).result_policy, OnCleanExit::TurnEnded { summary });
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

    /// The order of the module's head, from its second line on; the first is the board's.
    #[test]
    fn what_comes_first_in_the_order_counts() {
        let failed =
            FailedStart { step: Step::Exec, error: String::new(), errno: None, concern: Concern::Lane };
        let oom = ExitRecord { oom: Some(true), ..exited(75) };
        let signaled = ExitRecord { code: None, signal: Some(15), ..exited(0) };
        let status = |status: u16| {
            format!(r#"{{"type":"result","is_error":true,"result":"no","api_error_status":{status}}}"#)
        };
        let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#.to_owned();
        let cost = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true}"#.to_owned();
        let well = r#"{"type":"result","is_error":false,"result":"done"}"#.to_owned();
        let after = |secs| END.after(Duration::from_secs(secs));
        let limited = |secs| EndCause::RateLimited { until: after(secs) };
        let login = EndCause::NotLoggedIn { until: after(600) };
        let exit = |code| EndCause::Exited { code };
        let (limit, bad_login, outage) = (status(429), status(401), status(503));
        let table = [
            (2, oom, &limit, EndCause::OutOfMemory),
            (2, of(Cause::Deadline), &limit, EndCause::TimedOut),
            (
                2,
                of(Cause::Stopped { reason: StopReason::Verdict }),
                &limit,
                EndCause::Stopped(kernel::StopReason::Verdict),
            ),
            (4, of(Cause::Stopped { reason: StopReason::Refused }), &well, limited(300)),
            (3, of(Cause::SpawnFailed(failed)), &limit, EndCause::NeverStarted),
            (4, exited(75), &bad_login, limited(300)),
            (4, exited(41), &limit, limited(300)),
            (4, exited(0), &limit, limited(300)),
            (4, signaled.clone(), &limit, limited(300)),
            (4, exited(173), &well, limited(300)),
            (5, exited(1), &bad_login, login.clone()),
            (5, exited(41), &turns, login),
            (6, exited(1), &turns, EndCause::OwnLimit(kernel::OwnLimit::Turns)),
            (6, exited(0), &cost, EndCause::OwnLimit(kernel::OwnLimit::Cost)),
            (6, exited(53), &outage, EndCause::OwnLimit(kernel::OwnLimit::Turns)),
            (7, exited(1), &outage, limited(60)),
            (8, exited(0), &well, exit(0)),
            (9, exited(1), &well, exit(1)),
            (9, signaled, &well, EndCause::Signaled { signal: 15 }),
        ];
        let rules = rules(
            "stdout = \"claude-stream-json\"\n[exit_codes]\nrate_limit = [173]\nlogin = [41]\nturn_limit = [53]",
        );
        for (place, record, stdout, expected) in table {
            let cause = read_with(&record, &rules, stdout).cause;
            assert_eq!(cause, expected, "{place}: {record:?} {stdout}");
        }
    }

    #[test]
    fn a_clean_exit_is_a_review_where_the_lane_says_so_and_no_end_where_a_tool_was_denied() {
        let claude =
            |policy: &str| rules(&format!("stdout = \"claude-stream-json\"\non_clean_exit = \"{policy}\""));
        let well = r#"{"type":"result","is_error":false,"result":"done"}"#;
        let denied = r#"{"type":"result","is_error":false,"result":"done","permission_denials":[{},{}]}"#;
        let summary = Some("done".to_owned());
        let policy = |policy: &str, stdout| read_with(&exited(0), &claude(policy), stdout).result_policy;
        assert_eq!(policy("review", well), OnCleanExit::Review { summary: summary.clone() });
        assert_eq!(policy("review", denied), OnCleanExit::Review { summary: summary.clone() });
        assert_eq!(policy("complete", well), OnCleanExit::Complete { summary: summary.clone() });
        assert_eq!(policy("complete", denied), OnCleanExit::Unreported);
        assert_eq!(policy("protocol_violation", well), OnCleanExit::TurnEnded { summary });
        assert_eq!(policy("protocol_violation", ""), OnCleanExit::Unreported, "it came to no end of a turn");
        let trouble = read_with(&exited(0), &claude("complete"), denied).trouble.unwrap();
        assert!(trouble.ends_with("(2)"), "{trouble}");
    }

    #[test]
    fn what_a_worker_has_used_is_known_whatever_ended_it() {
        let claude = rules("stdout = \"claude-stream-json\"");
        let init = r#"{"type":"system","subtype":"init","session_id":"7f9c"}"#;
        let ending = read_with(&ExitRecord { cause: Cause::Deadline, ..exited(1) }, &claude, init);
        assert_eq!(ending.spent.unwrap().session.as_deref(), Some("7f9c"));
        assert_eq!(read(&exited(0), &rules("")).spent, None, "text says nothing of it");
    }

    #[test]
    fn a_session_that_is_gone_is_no_failure_of_a_run_that_was_to_go_on_in_it() {
        let fresh = rules("stdout = \"claude-stream-json\"\nsession_gone = [\"No conversation\"]");
        let resumed = EndingRules { resumed: Some("s-1".to_owned()), ..fresh.clone() };
        let gone = ExitRecord { stderr_tail: "No conversation found: s-1".to_owned(), ..exited(1) };
        let ending = read(&gone, &resumed);
        assert_eq!((ending.cause, ending.spent), (EndCause::SessionGone, None));
        assert_eq!(read(&gone, &fresh).cause, EndCause::Exited { code: 1 }, "it was in none");
        let well = ExitRecord { code: Some(0), ..gone };
        assert_eq!(read(&well, &resumed).cause, EndCause::Exited { code: 0 });
        let cut_short = read(&exited(1), &resumed);
        assert_eq!(cut_short.cause, EndCause::Exited { code: 1 });
        assert_eq!(
            cut_short.spent.unwrap().session.as_deref(),
            Some("s-1"),
            "it was in the session all the same"
        );
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
    fn an_agent_that_is_silent_because_its_service_refuses_it_has_not_stalled() {
        let stalled = of(Cause::Stopped { reason: StopReason::Stalled });
        let codex = rules("stdout = \"codex-jsonl\"");
        let turn = r#"{"type":"turn.started"}"#;
        let retries = r#"{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}"#;
        let until = END.after(Duration::from_mins(5));
        let read = |lines: &[&str]| read_with(&stalled, &codex, &lines.join("\n")).cause;
        assert_eq!(read(&[turn, retries]), EndCause::RateLimited { until });
        let goes_on = r#"{"type":"turn.completed","usage":{}}"#;
        assert_eq!(read(&[turn, retries, goes_on]), EndCause::Stopped(kernel::StopReason::Stalled));
        assert_eq!(read(&[turn]), EndCause::Stopped(kernel::StopReason::Stalled));
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
