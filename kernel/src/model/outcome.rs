//! Outcomes of runs, and the reasons for which a task is blocked.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::clock::Timestamp;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::measured::Measured;
use crate::model::spent::Spent;
use crate::model::status::Status;
use crate::model::words::words;

/// Exit code of a worker whose service refuses it for a while (sysexits.h); workers of `hermes kanban` use it. The code
/// has this meaning in every lane that gives it no other.
pub const EX_TEMPFAIL: i32 = 75;

/// Number of counted failures in a row that block a task, unless the task or its dispatcher sets another.
pub const DEFAULT_FAILURE_LIMIT: u32 = 5;

words! {
    /// Outcome of a run.
    "outcome"
    Outcome {
        /// The work is done.
        Completed => "completed",
        /// The task needs a person, or another task.
        Blocked => "blocked",
        /// The work waits for a reviewer.
        ReviewRequested => "review_requested",
        /// A reviewer approved the work.
        Approved => "approved",
        /// A reviewer sent the work back.
        ChangesRequested => "changes_requested",
        /// The check of the task proved the work done.
        CheckPassed => "check_passed",
        /// The check of the task failed.
        CheckFailed => "check_failed",
        /// A person ended the run for good.
        Cancelled => "cancelled",
        /// A person took the task back.
        Reclaimed => "reclaimed",
        /// The supervisor ended the run to free its slot.
        Preempted => "preempted",
        /// The run failed or died.
        Crashed => "crashed",
        /// The run took too long.
        TimedOut => "timed_out",
        /// The run showed no progress.
        Stalled => "stalled",
        /// The run used too much memory.
        OutOfMemory => "out_of_memory",
        /// The worker exited cleanly without a verdict.
        Unreported => "unreported",
        /// The service of the worker refused it for a while.
        RateLimited => "rate_limited",
        /// No record tells how the run ended.
        Lost => "lost",
        /// The command never started.
        SpawnFailed => "spawn_failed",
    }
}

words! {
    /// Kind of thing that a blocked task waits for.
    "block kind"
    BlockKind {
        /// An answer.
        NeedsInput => "needs_input",
        /// An ability or a resource that the worker lacks.
        Capability => "capability",
        /// A condition that should pass.
        Transient => "transient",
        /// Another task.
        Dependency => "dependency",
        Approval => "approval",
        /// A larger budget.
        Budget => "budget",
        /// A person's retry after too many failures in a row.
        GaveUp => "gave_up",
    }
}

impl BlockKind {
    /// Kinds that a caller may give; only the supervisor sets the others.
    pub const TOLD: [BlockKind; 4] =
        [BlockKind::NeedsInput, BlockKind::Capability, BlockKind::Transient, BlockKind::Dependency];
}

words! {
    /// State of a task's approval.
    "approval"
    ApprovalState {
        /// The approval is missing.
        Required => "required",
        /// The approval was given.
        Granted => "granted",
    }
}

words! {
    /// Reason why the supervisor has to end a run.
    "stop reason"
    StopReason {
        /// The verdict is recorded. The worker has a while to exit by itself.
        Verdict => "verdict",
        /// A person took the task back.
        Reclaimed => "reclaimed",
        /// A person decided about the task.
        Cancelled => "cancelled",
        /// The slot is needed, or the supervisor stops.
        Preempted => "preempted",
        /// The run must end at once, whatever it does.
        Kill => "kill",
        /// The run shows no progress.
        Stalled => "stalled",
    }
}

/// Cause of a run's end, as far as the supervisor has proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The worker exited by itself.
    Exited { code: i32 },
    /// A signal of another process ended the worker.
    Signaled { signal: i32 },
    /// The deadline passed.
    TimedOut,
    /// The supervisor ended the run on request.
    Stopped(StopReason),
    /// The command never ran.
    SpawnFailed {
        step: String,
        error: String,
        /// Part that is at fault: the task, or an environment that all such runs need.
        fault: Fault,
    },
    /// The worker was killed for its memory use.
    OutOfMemory,
    /// The host went down during the run.
    LostReboot,
    /// The shim was killed, so the worker's end is unknown.
    ShimKilled,
    /// The run was claimed and never started.
    NeverStarted,
    /// The service of the worker refuses it until a time.
    RateLimited { until: Timestamp },
    /// The service did not accept the worker's login, or the worker has none. The next try is at `until`, or earlier when
    /// a person asks for it.
    NotLoggedIn { until: Timestamp },
    /// The worker met a limit that its lane sets for the work.
    OwnLimit(OwnLimit),
    /// The session that the run was to continue does not exist any more.
    SessionGone,
}

words! {
    /// Limit that a lane sets for the work of an agent.
    "own limit"
    OwnLimit {
        /// Number of turns of a run.
        Turns => "turns",
        /// Cost of the run, as its agent reports it.
        Cost => "cost",
    }
}

words! {
    /// Part that is at fault for a failed start.
    "fault"
    Fault {
        /// The task or its workspace.
        Task => "task",
        /// The definition of the task: each try fails in the same way until a person changes it.
        Definition => "definition",
        /// The environment of every such run: a missing binary, a repository that is gone.
        Environment => "environment",
    }
}

/// Meaning of a clean exit without a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCleanExit {
    /// The exit completes the task.
    Complete {
        /// Summary that the run hands over.
        summary: Option<String>,
    },
    /// The exit hands the work to a reviewer.
    Review {
        /// Summary that the run hands over.
        summary: Option<String>,
    },
    /// The exit is a fault: the worker forgot to report.
    #[default]
    Unreported,
    /// The exit completes nothing: the agent itself refused calls of its tools.
    ToolsRefused {
        /// Last words of the agent, which may be a question to a person.
        summary: Option<String>,
    },
    /// The exit is a fault as well, unless the worker has a goal: then the agent came to the end of a turn.
    TurnEnded {
        /// Last words of the agent.
        summary: Option<String>,
    },
}

words! {
    /// Effect of a run's rate limit on the other tasks of its account or profile.
    "siblings"
    Siblings {
        /// The other tasks wait as well.
        Hold => "hold",
        /// The other tasks are not affected.
        Spare => "spare",
    }
}

/// Act that the sandbox of a run denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Name of the policy that denied the act.
    pub policy: String,
    /// The act, such as `executing /home/ann/.cargo/bin/cargo`.
    pub act: String,
    /// Line for a policy that would allow the act; none where no line can.
    pub line: Option<String>,
    /// Complete sentence about the denial.
    pub text: String,
}

impl Denied {
    /// Key of the denial in the event of the run's end.
    pub(crate) const KEY: &'static str = "denied";
}

/// Traffic through the proxy of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Egress {
    /// Requests that were let through: tunnels, and plain HTTP requests.
    pub requests: u64,
    /// Requests that were refused because of their host.
    pub denied: u64,
    /// Requests that were refused because a budget was spent.
    #[serde(default)]
    pub over_budget: u64,
    /// Bytes that the worker has sent.
    pub sent_bytes: u64,
    /// Bytes that the worker has received.
    pub received_bytes: u64,
    /// Traffic of each host, ordered by name. The hosts beyond a limit share one row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEgress>,
}

/// Traffic through the proxy of a run to one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostEgress {
    /// Host with its port; `others` for the row of the hosts beyond the limit.
    pub host: String,
    /// Requests that were let through.
    pub requests: u64,
    /// Responses through a broker that reported a rate limit (429).
    #[serde(default)]
    pub throttled: u64,
    /// Responses through a broker that refused the key (401 and 403).
    #[serde(default)]
    pub unauthorized: u64,
    /// Bytes that the worker has sent.
    pub sent_bytes: u64,
    /// Bytes that the worker has received.
    pub received_bytes: u64,
}

/// Facts about the end of a run.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Cause of the end: the worker's own exit, a limit, a person.
    pub cause: EndCause,
    /// Meaning of a clean exit in the run's lane.
    pub result_policy: OnCleanExit,
    /// Exit code of the worker, if it exited.
    pub exit_code: Option<i32>,
    /// Signal that ended the worker, if a signal did.
    pub signal: Option<i32>,
    pub measured: Measured,
    /// Resources that the run used.
    pub usage: Option<Value>,
    /// Use of a model, as the agent reports it.
    pub spent: Option<Spent>,
    /// Result of the run in git, as the supervisor found it.
    pub evidence: Option<Value>,
    /// List of the changes that the run left uncommitted, in words, if its task requires commits.
    pub uncommitted: Option<String>,
    /// Commits and uncommitted changes of the work in a worktree, in words, if the run hands it over.
    pub branch_note: Option<String>,
    /// Trouble that kept the agent from going on, in the agent's words.
    pub trouble: Option<String>,
    /// Last part of stderr.
    pub stderr_tail: Option<String>,
    /// Act that the sandbox denied, as far as is known.
    pub denied: Option<Denied>,
    /// Budget of the run that is used up, in words, when that ended the work.
    pub over_budget: Option<String>,
    /// Number of counted failures in a row that block a task without a limit of its own.
    pub failure_limit: u32,
    /// Effect of a rate limit on other tasks.
    pub siblings: Siblings,
    /// Profile that reviews the work, when the worker asks for a review by its exit.
    pub reviewer: Option<Profile>,
    /// Time at which nothing of the run was left. Without it, the board takes the time of the report.
    pub ended_at: Option<Timestamp>,
    /// Run time of the command; none when it never started, or when the time is unknown. The board does not store it.
    pub lived: Option<Duration>,
}

impl EndCause {
    /// Returns true if no work was done, for a reason outside of the task.
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
    /// Creates the ending of a run when only the cause is known.
    pub fn new(cause: EndCause) -> Self {
        let exit_code = if let EndCause::Exited { code } = cause { Some(code) } else { None };
        let signal = if let EndCause::Signaled { signal } = cause { Some(signal) } else { None };
        Self {
            cause,
            result_policy: OnCleanExit::Unreported,
            exit_code,
            signal,
            measured: Measured::default(),
            usage: None,
            spent: None,
            evidence: None,
            uncommitted: None,
            branch_note: None,
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

/// Result of recording a run's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub task: TaskId,
    /// New status of the task.
    pub status: Status,
    pub outcome: Outcome,
    /// Time of the next try, if it is later than now.
    #[serde(with = "optional_micros")]
    pub retry_at: Option<Timestamp>,
    /// True if the run had been finished before, so that this call did nothing.
    #[serde(default)]
    pub already_finished: bool,
    /// Earlier run whose place this run takes: both came to nothing for a reason outside of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<RunId>,
}

impl Finished {
    /// Creates the result of an end without a retry.
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
