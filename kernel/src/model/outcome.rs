//! How a run ends, and what a task that waits for a person waits for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::spent::Spent;
use crate::model::status::Status;
use crate::model::words::words;

/// The exit code of a worker whose service refuses it for a while (sysexits.h), which workers of `hermes kanban` use for it. It has this meaning in
/// every lane that gives it no other.
pub const EX_TEMPFAIL: i32 = 75;

/// How many counted failures in a row block a task, unless it or its dispatcher says otherwise.
pub const DEFAULT_FAILURE_LIMIT: u32 = 5;

words! {
    /// How a run ended.
    "outcome"
    Outcome {
        /// The work is done.
        Completed => "completed",
        /// It needs a person, or another task.
        Blocked => "blocked",
        /// It waits for a reviewer.
        ReviewRequested => "review_requested",
        /// A reviewer approved the work.
        Approved => "approved",
        /// A reviewer sent the work back.
        ChangesRequested => "changes_requested",
        /// The check of a task proved its work done.
        CheckPassed => "check_passed",
        /// The check of a task failed.
        CheckFailed => "check_failed",
        /// A person ended it for good.
        Cancelled => "cancelled",
        /// A person took the task back.
        Reclaimed => "reclaimed",
        /// The supervisor ended it to free its place.
        Preempted => "preempted",
        /// It failed or died.
        Crashed => "crashed",
        /// It ran too long.
        TimedOut => "timed_out",
        /// It showed no progress.
        Stalled => "stalled",
        /// It used too much memory.
        OutOfMemory => "out_of_memory",
        /// It exited cleanly without a verdict.
        Unreported => "unreported",
        /// Its service refused it for a while.
        RateLimited => "rate_limited",
        /// Nobody can say how it ended.
        Lost => "lost",
        /// It never started.
        SpawnFailed => "spawn_failed",
    }
}

words! {
    /// What a blocked task waits for.
    "block kind"
    BlockKind {
        /// An answer.
        NeedsInput => "needs_input",
        /// Something the worker cannot do or have.
        Capability => "capability",
        /// Something that should pass.
        Transient => "transient",
        /// Another task.
        Dependency => "dependency",
        /// Somebody's approval.
        Approval => "approval",
        /// More budget.
        Budget => "budget",
        /// Too many failures in a row.
        GaveUp => "gave_up",
    }
}

impl BlockKind {
    /// What somebody may say that a task waits for; the other kinds are the supervisor's own.
    pub const TOLD: [BlockKind; 4] =
        [BlockKind::NeedsInput, BlockKind::Capability, BlockKind::Transient, BlockKind::Dependency];
}

words! {
    /// Where the approval of a task stands.
    "approval"
    ApprovalState {
        /// It is missing.
        Required => "required",
        /// It was given.
        Granted => "granted",
    }
}

words! {
    /// Why the supervisor is to end a run.
    "stop reason"
    StopReason {
        /// Its verdict is in; it may exit by itself for a while.
        Verdict => "verdict",
        /// A person took the task back.
        Reclaimed => "reclaimed",
        /// A person decided about the task.
        Cancelled => "cancelled",
        /// Its place is needed, or the supervisor stops.
        Preempted => "preempted",
        /// At once, whatever it does.
        Kill => "kill",
        /// It shows no progress.
        Stalled => "stalled",
    }
}

/// What ended a run, as far as the supervisor could prove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the name of a field says what it is")]
pub enum EndCause {
    /// It exited by itself.
    Exited { code: i32 },
    /// A signal ended it that was not ours.
    Signaled { signal: i32 },
    /// Its deadline passed.
    TimedOut,
    /// It was ended on request.
    Stopped(StopReason),
    /// It never ran its command.
    SpawnFailed {
        step: String,
        error: String,
        /// Whether the fault lies with the task or with what its runs need.
        fault: Fault,
    },
    /// It was killed for its memory.
    OutOfMemory,
    /// The host went down under it.
    LostReboot,
    /// Its shim was killed: how the worker ended is not known.
    ShimKilled,
    /// It was claimed and never started.
    NeverStarted,
    /// Its service refused it until a time.
    RateLimited { until: Timestamp },
    /// Its service did not accept its login, or it has none. It is tried again then, or earlier where a person asks for it.
    NotLoggedIn { until: Timestamp },
    /// It met a limit that its lane has set for its work.
    OwnLimit(OwnLimit),
    /// It was to go on in a session that does not exist any more.
    SessionGone,
}

words! {
    /// A limit that a lane sets for the work of an agent.
    "own limit"
    OwnLimit {
        /// On the turns of a run.
        Turns => "turns",
        /// On its cost.
        Cost => "cost",
    }
}

words! {
    /// Where the fault of a failed start lies.
    "fault"
    Fault {
        /// With the task or its workspace.
        Task => "task",
        /// With what the task says: each try fails like this one until somebody changes that.
        Definition => "definition",
        /// With the environment of every such run: a missing binary, a repository that is gone.
        Environment => "environment",
    }
}

/// What a clean exit without a verdict means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCleanExit {
    /// It completes the task.
    Complete {
        /// What the run hands over.
        summary: Option<String>,
    },
    /// It hands the work to a reviewer.
    Review {
        /// What the run hands over.
        summary: Option<String>,
    },
    /// It is a fault: the worker forgot to report.
    #[default]
    Unreported,
    /// It is a fault as well, unless the worker has a goal: its agent came to the end of a turn.
    TurnEnded {
        /// The last words of its agent.
        summary: Option<String>,
    },
}

words! {
    /// What the rate limit of one run means for the other tasks of its account or profile.
    "siblings"
    Siblings {
        /// They wait as well.
        Hold => "hold",
        /// They have nothing to do with it.
        Spare => "spare",
    }
}

/// Something that the sandbox of a run denied it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// The name of the policy that denied it.
    pub policy: String,
    /// The act, such as `executing /home/ann/.cargo/bin/cargo`.
    pub act: String,
    /// The line of a policy that allows it; none where nothing does.
    pub line: Option<String>,
    /// All of it in a sentence.
    pub text: String,
}

impl Denied {
    /// Where it stands in the event of the run's end.
    pub(crate) const KEY: &'static str = "denied";
}

/// What went through the proxy of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Egress {
    /// Requests that were let through: tunnels, and requests in the clear.
    pub requests: u64,
    /// Requests that were refused because of their host.
    pub denied: u64,
    /// Requests that were refused because a budget was spent.
    #[serde(default)]
    pub over_budget: u64,
    /// Bytes that the worker has sent.
    pub sent_bytes: u64,
    /// Bytes that it has received.
    pub received_bytes: u64,
    /// The same of each host, in the order of their names. Beyond a number of hosts, the others are one row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEgress>,
}

/// What went through the proxy of a run to one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostEgress {
    /// The host with its port; `others` for those beyond the number that is named.
    pub host: String,
    /// Requests that were let through.
    pub requests: u64,
    /// Answers that were a rate limit (429), of those that went through a broker.
    #[serde(default)]
    pub throttled: u64,
    /// Answers that refused the key (401 and 403), of those that went through a broker.
    #[serde(default)]
    pub unauthorized: u64,
    /// Bytes that the worker has sent.
    pub sent_bytes: u64,
    /// Bytes that it has received.
    pub received_bytes: u64,
}

/// Everything that is known about the end of a run.
#[derive(Clone, Debug)]
pub struct Ending {
    /// What ended the run: its own exit, a limit, a person.
    pub cause: EndCause,
    /// What a clean exit means in its lane.
    pub result_policy: OnCleanExit,
    /// Its exit code, where it had one.
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// Whether that signal dumped its core, where that is known.
    pub core_dumped: Option<bool>,
    /// What it used.
    pub usage: Option<Value>,
    /// What its agent says that it has used of a model.
    pub spent: Option<Spent>,
    /// What it did in git, as its supervisor has found it.
    pub evidence: Option<Value>,
    /// What kept its agent from going on, in its words.
    pub trouble: Option<String>,
    /// The end of what it wrote to stderr.
    pub stderr_tail: Option<String>,
    /// What its sandbox denied it, as far as that is known.
    pub denied: Option<Denied>,
    /// The budget of its own that it has used up, in words, where that has ended its work.
    pub over_budget: Option<String>,
    /// How many counted failures in a row block a task that has no limit of its own.
    pub failure_limit: u32,
    /// What a rate limit means for others.
    pub siblings: Siblings,
    /// The profile that reviews its work, where its worker asks for a review by ending.
    pub reviewer: Option<Profile>,
    /// When nothing of the run was left. Where that is unknown, the board takes the time of the report.
    pub ended_at: Option<Timestamp>,
    /// How long its command ran; none where it was never started, or where that is unknown. The board does not keep it.
    pub lived: Option<Duration>,
}

impl EndCause {
    /// Whether no work was done, for a reason outside of the task.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(
            self,
            EndCause::NeverStarted
                | EndCause::NotLoggedIn { .. }
                | EndCause::SessionGone
                | EndCause::SpawnFailed { fault: Fault::Environment, .. }
        )
    }
}

impl Ending {
    /// Makes the ending of a run about which only the cause is known.
    pub fn new(cause: EndCause) -> Self {
        let exit_code = if let EndCause::Exited { code } = cause { Some(code) } else { None };
        let signal = if let EndCause::Signaled { signal } = cause { Some(signal) } else { None };
        Self {
            cause,
            result_policy: OnCleanExit::Unreported,
            exit_code,
            signal,
            core_dumped: None,
            usage: None,
            spent: None,
            evidence: None,
            trouble: None,
            stderr_tail: None,
            denied: None,
            over_budget: None,
            failure_limit: DEFAULT_FAILURE_LIMIT,
            siblings: Siblings::Hold,
            reviewer: None,
            ended_at: None,
            lived: None,
        }
    }
}

/// What the end of a run did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The task that the run was of.
    pub task: TaskId,
    /// Where the task went.
    pub status: Status,
    /// How the run ended.
    pub outcome: Outcome,
    /// When the task is tried again, if later than now.
    #[serde(with = "optional_micros")]
    pub retry_at: Option<Timestamp>,
    /// Whether the run had been finished before; then nothing was done.
    #[serde(default)]
    pub already_finished: bool,
    /// The run before it whose place it takes: both came to nothing for a reason outside of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<RunId>,
}

impl Finished {
    /// An end after which nothing more is to come.
    pub(crate) fn new(task: &TaskId, status: Status, outcome: Outcome) -> Self {
        Self { task: task.clone(), status, outcome, retry_at: None, already_finished: false, replaces: None }
    }
}

mod optional_micros {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::model::clock::Timestamp;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Timestamp::as_micros).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_micros))
    }
}
