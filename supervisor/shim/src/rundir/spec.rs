//! `spec.json`: the parameters of one run, which the daemon writes before it starts the shim.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Conversation, VERSION};

/// Standard input of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// `/dev/null`: the worker reads the end of file at once.
    Null,
    /// The content of a file, such as a prompt.
    File(PathBuf),
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Number of lines.
    pub rows: u16,
    /// Number of characters in a line.
    pub columns: u16,
}

/// Parameters of a run: `spec.json` in its run directory.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunSpec {
    /// Version of the run directory that its writer knows.
    pub version: u32,
    /// UUID of the board that has the run.
    pub board: String,
    /// Name of the board at the start of the run.
    pub board_name: String,
    pub task: String,
    /// The run's number on its board.
    pub run: i64,
    /// The nonce of the claim that this run belongs to.
    pub nonce: String,
    /// Command of the worker. A first word without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// Workspace.
    pub cwd: PathBuf,
    /// Directory outside of the workspace in which the command starts; none if it starts in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<PathBuf>,
    /// Standard input of the command.
    pub stdin: Stdin,
    /// Protocol in which its agent takes messages while it works, the first of which is the prompt; none if it takes none.
    pub conversation: Option<Conversation>,
    /// Size of the terminal that replaces standard input, output and error of the command; none without a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// File with the output of the worker.
    pub log: PathBuf,
    /// Limit on the size of the log, in bytes.
    pub log_cap: u64,
    /// Limit on the size of the file `stdout`, in bytes.
    pub stdout_cap: u64,
    /// Time by which the worker has to end, in microseconds of `CLOCK_BOOTTIME`.
    pub deadline_us: Option<u64>,
    /// Time between SIGTERM and SIGKILL at the deadline, in milliseconds.
    pub grace_ms: u64,
    /// Limit on the time without progress, in milliseconds; none for no limit.
    pub idle_ms: Option<u64>,
    /// Restrictions of the worker.
    pub policy: policies::Policy,
    /// Paths and ids of this run that the policy refers to, such as its workspace and its user.
    #[serde(rename = "surroundings")]
    pub run_context: policies::RunContext,
    /// Directory of the run's cgroup, whose leaves `shim` and `work` exist; none on a host without one.
    pub cgroup: Option<PathBuf>,
    /// Datagram socket on which the daemon is notified of new records.
    #[serde(rename = "poke")]
    pub event_socket: PathBuf,
    /// Layers that the host can enforce, as the daemon has determined. Without them, `confine` examines the host itself.
    pub host: Option<policies::Support>,
    /// Lease on the workspace, which the shim takes and owns until its end.
    pub lease: Option<LeaseSpec>,
}

impl RunSpec {
    /// Makes the spec of a program outside of any task. It has no board, no input, no log and no time limits.
    #[must_use]
    pub fn of_program(
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: PathBuf,
        policy: policies::Policy,
        run_context: policies::RunContext,
        host: policies::Support,
    ) -> Self {
        RunSpec {
            version: VERSION,
            board: String::new(),
            board_name: String::new(),
            task: String::new(),
            run: 0,
            nonce: String::new(),
            argv,
            env,
            cwd,
            outside: None,
            stdin: Stdin::Null,
            log: PathBuf::new(),
            log_cap: 0,
            stdout_cap: 0,
            deadline_us: None,
            grace_ms: 0,
            idle_ms: None,
            conversation: None,
            terminal: None,
            policy,
            run_context,
            cgroup: None,
            event_socket: PathBuf::new(),
            host: Some(host),
            lease: None,
        }
    }
}

/// Lease that a shim takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSpec {
    /// The directory of lease files.
    pub dir: PathBuf,
    pub workspace: PathBuf,
    /// Device and inode of the directory.
    pub place: lease::FileIdentity,
    /// Owner of the lease, for messages.
    pub holder: lease::LeaseHolder,
}

impl fmt::Debug for RunSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RunSpec")
            .field("board_name", &self.board_name)
            .field("task", &self.task)
            .field("run", &self.run)
            .field("argv0", &self.argv.first())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Part of a spec that the shim itself needs. With this part alone, a shim has no environment, no secret and no policy
/// in its memory. A policy that cannot be parsed is recorded as a failure of `confine`, and does not keep the shim from
/// starting.
#[derive(Debug, Deserialize)]
pub(crate) struct ShimSpec {
    pub(crate) version: u32,
    /// The board's UUID.
    pub(crate) board: String,
    /// The run's number on its board.
    pub(crate) run: i64,
    /// The nonce of the claim that this run belongs to.
    pub(crate) nonce: String,
    pub(crate) stdin: Stdin,
    /// Protocol in which its agent takes messages while it works; none if it takes none.
    pub(crate) conversation: Option<Conversation>,
    /// Size of the terminal of its worker; none without a terminal.
    pub(crate) terminal: Option<TerminalSize>,
    /// File with the output of the worker.
    pub(crate) log: PathBuf,
    /// Limit on the size of the log, in bytes.
    pub(crate) log_cap: u64,
    /// Limit on the size of the file `stdout`, in bytes.
    pub(crate) stdout_cap: u64,
    /// Time by which the worker has to end, in microseconds of `CLOCK_BOOTTIME`.
    pub(crate) deadline_us: Option<u64>,
    /// Time between SIGTERM and SIGKILL at the deadline, in milliseconds.
    pub(crate) grace_ms: u64,
    /// Limit on the time without progress, in milliseconds; none for no limit.
    pub(crate) idle_ms: Option<u64>,
    /// User and groups of the worker.
    #[serde(rename = "surroundings")]
    pub(crate) run_context: ShimRunContext,
    pub(crate) cgroup: Option<PathBuf>,
    /// Datagram socket on which the daemon is notified of new records.
    #[serde(rename = "poke")]
    pub(crate) event_socket: PathBuf,
    pub(crate) lease: Option<LeaseSpec>,
}

/// Part of the run context that the shim itself needs.
#[derive(Debug, Deserialize)]
pub(crate) struct ShimRunContext {
    /// User and group of the worker; none for the daemon's.
    pub(crate) identity: Option<policies::Identity>,
    /// Pid namespace in which the worker is created; none for the host's.
    pub(crate) pid_namespace: Option<policies::PidNamespace>,
    /// Path of the socket over which the shim hands out the listening socket of the run's proxy; none without a proxy.
    pub(crate) proxy: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shim_reads_its_part_and_ignores_what_it_does_not_know() {
        let text = r#"{"version":2,"board":"b","run":7,"nonce":"n","stdin":{"file":"/p"},"log":"/l","log_cap":9,
            "stdout_cap":9,"deadline_us":null,"grace_ms":5000,"surroundings":{"identity":null,"novelty":1},"policy":42,
            "cgroup":null,"poke":"/s","novelty":[]}"#;
        let spec: ShimSpec = serde_json::from_str(text).unwrap();
        assert_eq!((spec.run, spec.stdin), (7, Stdin::File("/p".into())));
    }
}
