//! Reads the ending of a run: makes the report to the board from the exit record and the standard output.
//!
//! The first rule that applies decides:
//!
//! 1. the worker's verdict. The board has it already, and it takes precedence over the report of this module;
//! 2. the shim ended the run: out of memory, at the deadline, on request, or for lack of output. A run without output
//!    that was waiting for its service is read by rules 4, 5 and 7;
//! 3. the command was never executed, or the session to resume no longer exists;
//! 4. the service refuses the run for a while: by exit code 75, by an exit code of the lane, or by the agent's words
//!    in the lane's format. If the agent reports nothing and failed or stalled, the last reply of the service to the
//!    broker decides;
//! 5. the service refuses the login, found in the same ways. A reply of the run's own proxy is no reply of the service:
//!    a claim that stems from it, here and in rule 7, is a failure;
//! 6. the run met a limit that the lane sets for it, found in the same ways;
//! 7. the service fails, found in the same ways. The run is retried soon, as after a rate limit;
//! 8. the command exited with 0: the lane defines the meaning. A format with a word for the end requires that word;
//! 9. any other exit, or a signal: a crash.
//!
//! The rules of a lane are stored with a run when it starts, so a reload changes later runs only.
//!
//! See decision 0087.

use std::time::Duration;

use kernel::{EndCause, Ending, OnCleanExit, Purpose, SHORTEST_LIMIT, Siblings, Spent, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::{Cause, ExitRecord, Stdout, StopReason};

use super::exit_codes::ExitCodes;
use super::formats::{Finish, Format, Reset, WorkerReport};
use super::host_replies::{Contact, HostReply, OwnRefusal, Refusal, Services};
use super::lane::{CleanExit, Lane, RateLimit};
use base::terminal::plain;

/// Longest accepted rate limit; a longer one is shortened to it.
pub const LONGEST_LIMIT: Duration = Duration::from_hours(24);

/// Duration of the hold after a refused login. A person may release the hold earlier.
const LOGIN_PAUSE: Duration = Duration::from_mins(10);

/// Duration of the hold after a failure of the service.
const OUTAGE_PAUSE: Duration = Duration::from_mins(1);

/// Limit on an agent's last words in an error, in characters.
const LAST_WORDS: usize = 300;

/// Rules of a lane for the endings of its runs. Each run keeps the rules from its start, because the lane may change
/// before the run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndingRules {
    /// Meaning of exit 0 without a verdict.
    on_clean_exit: CleanExit,
    /// Tasks that a rate limit of the service holds.
    rate_limit: RateLimit,
    /// Duration of such a hold, in seconds, if the worker does not report one.
    rate_limit_pause: u64,
    /// Format of standard output.
    stdout: Format,
    exit_codes: ExitCodes,
    /// Time for which the service may refuse a worker that retries, in seconds; 0 for no limit.
    retry_limit: u64,
    /// Session that the run was to resume.
    resumed: Option<String>,
    /// Texts that the program writes if that session no longer exists.
    session_gone: Vec<String>,
    /// True if standard output is the output of a terminal.
    terminal: bool,
    /// True if the run was to fork that session.
    is_fork: bool,
    /// Model that the program was to use.
    model: Option<String>,
    /// Services that the worker contacts through brokers.
    #[serde(default, skip_serializing_if = "Services::is_empty")]
    services: Services,
}

impl EndingRules {
    /// Returns the rules for a run in a lane; `resumed` is the session that it resumes or forks. A check reports only
    /// through its exit code, which the board reads itself.
    pub fn of_run(lane: &Lane, purpose: Purpose, resumed: Option<&str>) -> Self {
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
            services: Services::for_lane(lane),
        }
    }

    /// Reads a worker's output. Tokens without a model are counted for the lane's model.
    fn read(&self, stdout: &Stdout) -> WorkerReport {
        let mut report = self.stdout.read(stdout);
        let has_used = report.spent.input_tokens > 0 || report.spent.output_tokens > 0;
        if has_used && report.spent.model.is_none() {
            report.spent.model.clone_from(&self.model);
        }
        report
    }

    /// Returns true if the output of the agent or the replies of its service give information before the end of the
    /// run.
    pub fn is_heard(&self) -> bool {
        self.stdout.is_heard() || !self.services.is_empty()
    }

    /// Returns the time for which the service has only refused the agent's requests.
    pub fn refused_for(&self, replies: &[HostReply]) -> Option<Duration> {
        self.services.refused_for(replies)
    }

    /// Returns the time for which the service may refuse a worker that retries, if limited.
    pub fn retry_limit(&self) -> Option<Duration> {
        Some(self.retry_limit).filter(|limit| *limit > 0).map(Duration::from_secs)
    }

    /// Returns true if the program failed with a message that the session to resume no longer exists.
    fn has_no_session(&self, record: &ExitRecord, report: &WorkerReport) -> bool {
        let texts = [Some(&record.stderr_tail), report.trouble.as_ref(), report.message.as_ref()];
        let says = |words: &String| texts.into_iter().flatten().any(|text| text.contains(words.as_str()));
        self.resumed.is_some() && record.code != Some(0) && self.session_gone.iter().any(says)
    }
}

/// State of a run in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Use by the agent so far.
    pub spent: Spent,
    /// True while the service refuses the agent and the agent retries.
    pub is_refused: bool,
}

/// Reads a worker's output so far.
pub fn read_so_far(stdout: &Stdout, rules: &EndingRules) -> SoFar {
    SoFar { spent: rules.read(stdout).spent, is_refused: rules.stdout.is_refused(stdout) }
}

/// Reads the ending of a run that ended at `ended_at`.
pub fn read_ending(
    record: &ExitRecord,
    stdout: &Stdout,
    rules: &EndingRules,
    contact: &Contact,
    ended_at: Timestamp,
) -> Ending {
    let replies = &contact.replies;
    let mut report = match &record.cause {
        Cause::SpawnFailed(_) => WorkerReport::default(),
        Cause::Exited | Cause::Deadline | Cause::Stopped { .. } => rules.read(stdout),
    };
    if rules.terminal {
        report.message = report.message.map(|text| plain(&text)).filter(|text| !text.is_empty());
    }
    report.finish = rules.services.believed(report.finish, contact);
    // The agent's own report takes precedence. The broker's replies are used only if the agent gives no reason.
    let refusal = rules.services.refusal(replies).filter(|_| is_cut_short(record, report.finish));
    if let Some(Refusal { finish, trouble }) = refusal {
        report.finish = finish;
        report.trouble.get_or_insert(trouble);
    }
    let mut ending = Ending::new(Facts { record, rules, contact, ended_at }.cause(&report));
    if report.finish == Finish::Well && report.spent.denials > 0 {
        report.trouble = Some(tools_refused(report.spent.denials, report.message.as_deref()));
    }
    ending.ended_at = Some(ended_at);
    ending.exit_code = record.code;
    ending.signal = record.signal;
    ending.core_dumped = record.core_dumped;
    ending.usage = serde_json::to_value(record.usage).ok();
    ending.stderr_tail = Some(record.stderr_tail.clone()).filter(|tail| !tail.is_empty());
    ending.siblings = match rules.rate_limit {
        // A worker's claim about its service holds other tasks only if the last reply that the proxy saw is no success.
        RateLimit::Account if !rules.services.is_serving(replies) => Siblings::Hold,
        RateLimit::Account | RateLimit::Task => Siblings::Spare,
    };
    let is_well = report.finish == Finish::Well;
    ending.result_policy = match rules.on_clean_exit {
        // A worker that was denied a tool call may not have done the task.
        CleanExit::Complete if is_well && report.spent.denials > 0 => {
            OnCleanExit::ToolsRefused { summary: report.message }
        }
        CleanExit::Complete if is_well => OnCleanExit::Complete { summary: report.message },
        CleanExit::Review if is_well => OnCleanExit::Review { summary: report.message },
        CleanExit::ProtocolViolation if is_well => OnCleanExit::TurnEnded { summary: report.message },
        CleanExit::Complete | CleanExit::Review | CleanExit::ProtocolViolation => OnCleanExit::Unreported,
    };
    ending.trouble = report.trouble;
    // A run whose output names no session still belongs to the resumed session, except for a fork.
    report.spent.session = match ending.cause {
        EndCause::SessionGone => None,
        _ => report.spent.session.or_else(|| rules.resumed.clone().filter(|_| !rules.is_fork)),
    };
    ending.spent = Some(report.spent).filter(|spent| *spent != Spent::default());
    ending
}

/// Returns the trouble of an agent that refused calls of its tools itself. The agent may have ended with a question to
/// a person about them, so its last words are part of the text.
fn tools_refused(denials: u64, message: Option<&str>) -> String {
    let refused = format!("the agent itself refused calls of its tools ({denials})");
    let words = message.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let Some(words) = words.filter(|words| !words.is_empty()) else { return refused };
    // A question is at the end, so the beginning is cut off.
    let left_out = words.chars().count().saturating_sub(LAST_WORDS);
    match words.char_indices().nth(left_out) {
        Some((from, _)) if left_out > 0 => format!("{refused}; it said last: …{}", &words[from..]),
        _ => format!("{refused}; it said last: {words}"),
    }
}

/// Facts about an end from which its cause follows together with the worker's output.
struct Facts<'a> {
    record: &'a ExitRecord,
    rules: &'a EndingRules,
    contact: &'a Contact,
    ended_at: Timestamp,
}

impl Facts<'_> {
    fn cause(&self, report: &WorkerReport) -> EndCause {
        let record = self.record;
        match &record.cause {
            _ if record.oom == Some(true) => EndCause::OutOfMemory,
            Cause::Deadline => EndCause::TimedOut,
            // An agent that waits for the end of a long rate limit writes nothing meanwhile, so the shim stops it as
            // stalled.
            Cause::Stopped { reason: StopReason::Stalled } if waits_for_service(report.finish) => {
                self.own_end(report.finish)
            }
            Cause::Stopped { reason } => match stop_reason(*reason) {
                Some(reason) => EndCause::Stopped(reason),
                None => self.refused(report.finish),
            },
            // The daemon knows the requirements of the run, and decides later if the host, the lane or the task is at
            // fault.
            Cause::SpawnFailed(_) => EndCause::NeverStarted,
            Cause::Exited if self.rules.has_no_session(record, report) => EndCause::SessionGone,
            Cause::Exited => self.own_end(report.finish),
        }
    }

    /// Returns the cause of an end by the worker itself, from its report or its exit code: from the one whose rule
    /// comes first.
    fn own_end(&self, reported: Finish) -> EndCause {
        let Facts { record, rules, contact, ended_at } = *self;
        let code = rules.services.believed(rules.exit_codes.meaning(record.code), contact);
        let finish = if rank(code) < rank(reported) { code } else { reported };
        match finish {
            Finish::RateLimited(reset) => {
                let pause = ended_at.after(Duration::from_secs(rules.rate_limit_pause));
                let named = reset.map(|reset| match reset {
                    Reset::At(at) => at,
                    Reset::After(pause) => ended_at.after(pause.min(LONGEST_LIMIT)),
                });
                let shortest = ended_at.after(SHORTEST_LIMIT);
                let until =
                    named.filter(|until| *until > ended_at).map_or(pause, |until| until.max(shortest));
                EndCause::RateLimited { until: until.min(ended_at.after(LONGEST_LIMIT)) }
            }
            Finish::NotLoggedIn(_) => EndCause::NotLoggedIn { until: ended_at.after(LOGIN_PAUSE) },
            Finish::OwnLimit(limit) => EndCause::OwnLimit(limit),
            Finish::Unavailable => EndCause::RateLimited { until: ended_at.after(OUTAGE_PAUSE) },
            Finish::Well | Finish::Unsaid | Finish::Failed => match (record.code, record.signal) {
                (_, Some(signal)) => EndCause::Signaled { signal },
                (code, None) => EndCause::Exited { code: code.unwrap_or(-1) },
            },
        }
    }

    /// Returns the cause for a worker that was ended because its service refused it for too long.
    fn refused(&self, reported: Finish) -> EndCause {
        match self.own_end(reported) {
            cause @ (EndCause::RateLimited { .. } | EndCause::NotLoggedIn { .. }) => cause,
            // The run's own proxy refused the requests, and would refuse those of the next run as well.
            cause if self.contact.refused == OwnRefusal::Service => cause,
            _ => EndCause::RateLimited {
                until: self.ended_at.after(Duration::from_secs(self.rules.rate_limit_pause)),
            },
        }
    }
}

/// Returns the cause of an end that was requested of the shim or was due at the deadline, for a run without an exit
/// record. Returns none if the cause depends on the agent's report.
pub fn cause_of_requested_end(cause: &Cause) -> Option<EndCause> {
    match cause {
        Cause::Deadline => Some(EndCause::TimedOut),
        Cause::Stopped { reason } => stop_reason(*reason).map(EndCause::Stopped),
        Cause::Exited | Cause::SpawnFailed(_) => None,
    }
}

/// Returns true if a run failed, stalled or was ended for refusals, and its agent gave no reason.
fn is_cut_short(record: &ExitRecord, reported: Finish) -> bool {
    let is_unsaid = match reported {
        Finish::Well | Finish::Unsaid | Finish::Failed => true,
        Finish::RateLimited(_) | Finish::NotLoggedIn(_) | Finish::Unavailable | Finish::OwnLimit(_) => false,
    };
    let is_short = match record.cause {
        Cause::Exited => record.code.is_some_and(|code| code != 0),
        Cause::Stopped { reason: StopReason::Stalled | StopReason::Refused } => true,
        Cause::Stopped { .. } | Cause::Deadline | Cause::SpawnFailed(_) => false,
    };
    is_unsaid && is_short
}

/// Returns true if the agent's last report is a refusal or a failure of its service.
fn waits_for_service(reported: Finish) -> bool {
    match reported {
        Finish::RateLimited(_) | Finish::NotLoggedIn(_) | Finish::Unavailable => true,
        Finish::Well | Finish::Unsaid | Finish::Failed | Finish::OwnLimit(_) => false,
    }
}

/// Moves the end of a rate limit to `opens`, if that is later: the time at which the service accepts requests again, if
/// the proxy of the run knows it.
pub fn not_before(cause: EndCause, opens: Option<Timestamp>) -> EndCause {
    match (cause, opens) {
        (EndCause::RateLimited { until }, Some(opens)) => EndCause::RateLimited { until: until.max(opens) },
        (cause, _) => cause,
    }
}

/// Returns the rank of an ending in the order of the module's list; a more specific ending has a lower rank.
fn rank(finish: Finish) -> u8 {
    match finish {
        Finish::RateLimited(_) => 4,
        Finish::NotLoggedIn(_) => 5,
        Finish::OwnLimit(_) => 6,
        Finish::Unavailable => 7,
        Finish::Well | Finish::Failed | Finish::Unsaid => 8,
    }
}

/// Converts the shim's stop reason; none for a refusing service, which has causes of its own.
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
mod tests;
