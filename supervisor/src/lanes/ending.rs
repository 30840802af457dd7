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

use kernel::{EndCause, Ending, OnCleanExit, Purpose, SHORTEST_LIMIT, Siblings, Spent, Timestamp};
use serde::{Deserialize, Serialize};
use shim::rundir::{Cause, ExitRecord, Stdout, StopReason};

use super::answers::{Answer, Refusal, Services};
use super::exit_codes::ExitCodes;
use super::formats::{Finish, Format, Reset, Said};
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
        // What a worker says of its service holds up others only as long as the proxy has seen nothing else.
        RateLimit::Account if !rules.services.is_serving(answers) => Siblings::Hold,
        RateLimit::Account | RateLimit::Task => Siblings::Spare,
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
            let shortest = ended_at.after(SHORTEST_LIMIT);
            let until = told.filter(|until| *until > ended_at).map_or(pause, |until| until.max(shortest));
            EndCause::RateLimited { until: until.min(ended_at.after(LONGEST_LIMIT)) }
        }
        Finish::NotLoggedIn => EndCause::NotLoggedIn { until: ended_at.after(LOGIN_PAUSE) },
        Finish::OwnLimit(limit) => EndCause::OwnLimit(limit),
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
mod tests;
