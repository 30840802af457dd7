//! `spec.json`: everything that one run needs, written by the daemon before the shim starts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Conversation, VERSION};

/// Standard input of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing: end of file at once.
    Null,
    /// The content of a file, such as a prompt.
    File(PathBuf),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Its lines.
    pub rows: u16,
    /// The characters of a line.
    pub columns: u16,
}

/// A run, complete: `spec.json` in its run directory.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunSpec {
    /// The version of the directory that its writer knows.
    pub version: u32,
    /// The board's UUID.
    pub board: String,
    /// The name that the board had when the run started.
    pub board_name: String,
    pub task: String,
    /// The run's number on its board.
    pub run: i64,
    /// The nonce of the claim that this run belongs to.
    pub nonce: String,
    /// The command; a first word without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// The workspace, in which the command starts,
    pub cwd: PathBuf,
    /// unless it starts in a directory outside of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<PathBuf>,
    /// Standard input of the command.
    pub stdin: Stdin,
    /// Protocol in which its agent takes messages while it works, the prompt among them; none if it takes none.
    pub conversation: Option<Conversation>,
    /// The terminal that the command runs at, in the place of standard input, output and error; none if it runs at none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// The file that collects the worker's output.
    pub log: PathBuf,
    /// The size that the log never exceeds, in bytes.
    pub log_cap: u64,
    /// The size that the file `stdout` never exceeds, in bytes.
    pub stdout_cap: u64,
    /// Time by which the worker has to end, in microseconds of `CLOCK_BOOTTIME`.
    pub deadline_us: Option<u64>,
    /// The time between TERM and KILL at the deadline, in milliseconds.
    pub grace_ms: u64,
    /// Limit on the time without progress, in milliseconds; none for no limit.
    pub idle_ms: Option<u64>,
    /// Restrictions of the worker.
    pub policy: policies::Policy,
    /// The concrete places and ids that the policy's words stand for.
    pub surroundings: policies::Surroundings,
    /// The run's cgroup directory; its leaves `shim` and `work` exist.
    pub cgroup: Option<PathBuf>,
    /// The daemon's datagram socket.
    pub poke: PathBuf,
    /// Layers that the host can enforce, as the daemon has found; without them confine probes the host itself.
    pub host: Option<policies::Support>,
    /// The lease on the workspace, which the shim owns as long as it lives.
    pub lease: Option<LeaseSpec>,
}

impl RunSpec {
    /// Spec of a program that is no run of a task: it is on no board, reads nothing, and has no log and no limits of its own.
    #[must_use]
    pub fn of_program(
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: PathBuf,
        policy: policies::Policy,
        surroundings: policies::Surroundings,
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
            surroundings,
            cgroup: None,
            poke: PathBuf::new(),
            host: Some(host),
            lease: None,
        }
    }
}

/// The lease that a shim takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSpec {
    /// The directory of lease files.
    pub dir: PathBuf,
    pub workspace: PathBuf,
    /// Identity of the directory.
    pub place: workspace::Place,
    /// Owner of the directory, for messages.
    pub holder: workspace::LeaseHolder,
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

/// The part of a spec that the shim itself acts on.
///
/// A shim holds no environment, no secret and no policy in its memory, and a policy that cannot be read becomes
/// a recorded failure of `confine` instead of a shim that cannot start.
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
    /// The terminal that its worker runs at; none if it runs at none.
    pub(crate) terminal: Option<TerminalSize>,
    /// The file that collects the worker's output.
    pub(crate) log: PathBuf,
    /// The size that the log never exceeds, in bytes.
    pub(crate) log_cap: u64,
    /// The size that the file `stdout` never exceeds, in bytes.
    pub(crate) stdout_cap: u64,
    /// Time by which the worker has to end, in microseconds of `CLOCK_BOOTTIME`.
    pub(crate) deadline_us: Option<u64>,
    /// The time between TERM and KILL at the deadline, in milliseconds.
    pub(crate) grace_ms: u64,
    /// Limit on the time without progress, in milliseconds; none for no limit.
    pub(crate) idle_ms: Option<u64>,
    /// User and groups of the worker.
    pub(crate) surroundings: ShimSurroundings,
    pub(crate) cgroup: Option<PathBuf>,
    /// The daemon's datagram socket.
    pub(crate) poke: PathBuf,
    pub(crate) lease: Option<LeaseSpec>,
}

/// The part of the surroundings that the shim itself acts on.
#[derive(Debug, Deserialize)]
pub(crate) struct ShimSurroundings {
    /// The worker's user and group; none when it keeps the daemon's.
    pub(crate) identity: Option<policies::Identity>,
    /// The pid namespace that the worker is born in; none if it shares the host's.
    pub(crate) pid_namespace: Option<policies::PidNamespace>,
    /// Path of the listening socket of the run's proxy, which the shim keeps; none if it has none.
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
