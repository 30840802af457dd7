//! Records that the shim and the daemon write for each other into a run directory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{FailedStart, ProcessIdentity, VERSION};

/// `pid`: the run has begun, and this process is its shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidRecord {
    /// The version of the directory that its writer knows.
    pub version: u32,
    /// The boot to which the numbers below belong.
    pub boot_id: String,
    /// The board's UUID.
    pub board: String,
    pub nonce: String,
    #[serde(flatten)]
    pub shim: ProcessIdentity,
    /// First process of the run's pid namespace, if it has one. When it is gone, no process of the run is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<ProcessIdentity>,
}

/// `started`: the policy was applied, and the command was executed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartedRecord {
    /// The version of the directory that its writer knows.
    pub version: u32,
    /// The worker's process. It runs `confine` first, and the command after `execve(2)`.
    #[serde(flatten)]
    pub worker: ProcessIdentity,
    /// Time of the exec of the command, in microseconds of `CLOCK_BOOTTIME`.
    pub started_at_us: u64,
    /// Enforced restrictions and missing layers.
    pub report: policies::Report,
}

/// Reasons why the daemon ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The worker has given its verdict.
    Verdict,
    /// A person has taken the claim back.
    Reclaimed,
    /// The task was cancelled, archived or moved by a person.
    Cancelled,
    /// The host or the daemon needs the slot; also the meaning of a SIGTERM without a request.
    Preempted,
    /// The worker has to be killed at once.
    Kill,
    /// The run has shown no progress for longer than its limit.
    Stalled,
    /// The model service has refused the worker's requests for longer than the lane allows, while the worker retried.
    Refused,
}

/// `stop`: the request to end a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// The version of the directory that its writer knows.
    pub version: u32,
    pub reason: StopReason,
    /// Time that the worker has to end by itself before it gets TERM, in milliseconds.
    pub quiet_ms: u64,
    /// The time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The worker ended by itself, or by a signal that was not the shim's.
    Exited,
    /// The shim ended it at its deadline.
    Deadline,
    /// The shim ended it on request.
    Stopped { reason: StopReason },
    /// The command was never executed.
    SpawnFailed(FailedStart),
}

/// `overdue`: the daemon has killed the shim, because the shim did not end the run in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverdueRecord {
    /// The format of the record.
    pub version: u32,
    /// Reason why the shim was due to end the run.
    pub cause: Cause,
}

/// Resources used by all reaped processes of the run together: `getrusage(2)` of the shim's children, and of theirs.
///
/// An unreaped process, whose parent ignores `SIGCHLD`, does not count. `confine`, which becomes the worker, counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in user mode, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// Largest resident set of any one process, in KiB; 0 where the resident set of the confining step may be larger.
    pub max_rss_kib: u64,
    /// Bytes that were read from storage, counted in blocks of 512 bytes. Reads from the page cache, a pipe or a socket
    /// do not count. None if the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that were written toward storage, counted in blocks of 512 bytes when a page of the cache became dirty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Largest memory of all processes of the run at one time, in bytes, with their part of the page cache:
    /// `memory.peak` of its cgroup. None without the memory controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
}

/// Length of the standard output, and of its part in the file `stdout`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdoutRecord {
    /// The bytes that the worker wrote.
    pub written: u64,
    /// Bytes that are not in the file: the middle part of an output beyond the file's limit, and writes that a full
    /// disk refused.
    pub left_out: u64,
}

/// `exit`: the end of the run. The record exists only when no process of the run is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The version of the directory that its writer knows.
    pub version: u32,
    /// The end of the run.
    pub cause: Cause,
    /// The worker's exit code, when it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True if the kernel wrote a core file of the worker, or handed one to a program, when that signal ended it. None if no
    /// signal did, and where the worker is behind a relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_dumped: Option<bool>,
    /// True if the kernel's out-of-memory killer ended the worker; none if the host does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom: Option<bool>,
    /// The last 4096 bytes of standard output.
    pub stdout_tail: String,
    /// The last 4096 bytes of standard error.
    pub stderr_tail: String,
    /// Lengths of the standard output; none if the command was never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StdoutRecord>,
    pub usage: Usage,
    /// Time of the exec of the command, in microseconds of `CLOCK_BOOTTIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_us: Option<u64>,
    /// Time at which nothing of the run was left, in microseconds of `CLOCK_BOOTTIME`.
    pub ended_at_us: u64,
    /// The same moment in microseconds since the epoch, by the host's clock at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_wall_us: Option<i64>,
    /// Number of processes of the run that are left. A shim writes the record only when this is 0.
    pub survivors: u32,
    /// Descendants that outlived the worker and had to be ended.
    pub lingered: u32,
}

impl ExitRecord {
    /// Returns the time for which the worker's command and all its children ran; none if the command was never started.
    pub fn lived(&self) -> Option<Duration> {
        let us = self.ended_at_us.saturating_sub(self.started_at_us?);
        Some(Duration::from_micros(us))
    }

    /// Returns the record of a run whose end is known only by its cause and its time.
    pub fn with_cause(cause: Cause, ended_at_us: u64) -> Self {
        ExitRecord {
            version: VERSION,
            cause,
            code: None,
            signal: None,
            core_dumped: None,
            oom: None,
            stdout_tail: String::new(),
            stderr_tail: String::new(),
            stdout: None,
            usage: Usage::default(),
            started_at_us: None,
            ended_at_us,
            ended_at_wall_us: None,
            survivors: 0,
            lingered: 0,
        }
    }
}

/// A process that outlives SIGKILL, mostly in an uninterruptible wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straggler {
    /// The process id.
    pub pid: i32,
    /// Name of the process, at most 15 bytes. The process can choose it, so it proves nothing.
    pub name: String,
    /// State of the process, as in `/proc/<pid>/stat`: `D`, `R`, …
    pub state: char,
}

/// `unkillable`: the processes that the shim still waits for. The run's claim stays until they end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnkillableRecord {
    /// The format of the record.
    pub version: u32,
    /// Time at which these processes were first seen, in microseconds of `CLOCK_BOOTTIME`.
    pub at_us: u64,
    /// Remaining processes, at most [`UnkillableRecord::NAMED`], by process id.
    pub processes: Vec<Straggler>,
    /// Number of further processes.
    pub more: usize,
}

impl UnkillableRecord {
    /// Limit on the processes that a record names: a run may have left thousands.
    pub const NAMED: usize = 16;

    /// Returns the record of the remaining processes of a run.
    pub(crate) fn from_processes(mut processes: Vec<Straggler>, at_us: u64) -> Self {
        processes.sort_by_key(|straggler| straggler.pid);
        let more = processes.len().saturating_sub(Self::NAMED);
        processes.truncate(Self::NAMED);
        Self { version: VERSION, at_us, processes, more }
    }

    /// Returns true if both records have the same processes; their times may differ.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (&self.processes, self.more) == (&other.processes, other.more)
    }
}
