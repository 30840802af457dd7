//! Description of a lane by its file, for people and programs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kernel::{CommitMode, Pool};
use serde::{Deserialize, Serialize};
use shim::rundir::{Form as Conversing, TerminalSize};

use super::exit_codes::ExitCodes;
use super::formats::Format;
use super::lane::{CleanExit, Lane, Prompt, RateLimit};
use super::tools::Form;

/// Settings of a lane as its file has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// File, or name of the built-in lane.
    pub origin: PathBuf,
    /// True for a lane whose workers are external and claim their tasks.
    pub pull: bool,
    /// Command words, with placeholders.
    pub argv: Vec<String>,
    pub prompt: Prompt,
    /// Form in which the program takes messages while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Conversing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Format of standard output.
    pub stdout: Format,
    pub on_clean_exit: CleanExit,
    pub model: Option<String>,
    /// Form of the program's configuration of the board's tools.
    pub tools: Option<Form>,
    pub install: Vec<PathBuf>,
    pub policy: Option<String>,
    /// Handling of uncommitted changes for tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMode>,
    pub account: Option<String>,
    /// Seconds; none for the configured limit.
    pub max_runtime_seconds: Option<u64>,
    /// Seconds; none for the configured limit.
    pub idle_limit_seconds: Option<u64>,
    /// Limit on its concurrent workers, unless the configuration sets one.
    pub max_running: Option<usize>,
    /// Pools in which each of its workers takes a place.
    pub pools: BTreeSet<Pool>,
    /// Hosts that its runs may reach through the proxy of their policy.
    pub hosts: Vec<String>,
    /// Headers that its brokers add, each with its host.
    pub brokers: Vec<String>,
    /// Names of variables with secret values.
    pub secrets: Vec<String>,
    /// Names of variables that it sets.
    pub env: Vec<String>,
    /// Words appended to the command that remove the program's own tools, for orchestrators.
    pub orchestrator: Vec<String>,
    /// True if an orchestrator's program starts outside the workspace.
    pub orchestrator_outside: bool,
    /// Directory in the worker's home in which the program finds skills.
    pub skills: Option<PathBuf>,
    /// Meanings of the program's exit codes.
    pub exit_codes: ExitCodes,
    /// Tasks that a rate limit of one worker holds.
    pub rate_limit: RateLimit,
    /// Duration of such a hold, in seconds, if the worker names no time.
    pub rate_limit_pause_seconds: u64,
    /// Time for which its service may refuse a worker that retries, in seconds.
    pub retry_limit_seconds: u64,
    /// Variables of every run that its workers do not get.
    pub unset: Vec<String>,
    /// Directory in the worker's home that outlives a run.
    pub state: Option<PathBuf>,
    /// Words that start a new session from another session.
    pub fork: Vec<String>,
    /// Directory with a subdirectory of sessions for each workspace.
    pub projects: Option<PathBuf>,
    /// Command that logs the program in.
    pub login: Vec<String>,
    /// Files in the worker's home that outlive a run.
    pub keep: Vec<PathBuf>,
    /// Files that its workers find in their home.
    pub files: Vec<PathBuf>,
}

impl Lane {
    /// Describes the lane. Variables and files are listed by name only, because their contents may be secret.
    pub fn describe(&self) -> Description {
        Description {
            origin: self.origin.clone(),
            pull: self.pull,
            argv: self.words(),
            prompt: self.prompt,
            session: self.session,
            terminal: self.terminal,
            stdout: self.stdout,
            on_clean_exit: self.on_clean_exit,
            model: self.model.clone(),
            tools: self.tools,
            install: self.install.clone(),
            policy: self.policy.clone(),
            commit: Some(self.commit_mode()).filter(|_| !self.pull),
            account: self.account.clone(),
            max_runtime_seconds: self.max_runtime.map(|limit| limit.as_secs()),
            idle_limit_seconds: self.idle_limit.map(|limit| limit.as_secs()),
            max_running: self.max_running,
            pools: self.pools.clone(),
            hosts: self.additions.hosts.iter().map(ToString::to_string).collect(),
            brokers: self
                .additions
                .brokers
                .iter()
                .map(|one| format!("{}:{}", one.host, one.header))
                .collect(),
            secrets: self.additions.secrets.keys().cloned().collect(),
            env: self.env.keys().cloned().collect(),
            orchestrator: self.orchestrator.iter().map(ToString::to_string).collect(),
            orchestrator_outside: self.orchestrator_outside,
            skills: self.skills.clone(),
            exit_codes: self.exit_codes.clone(),
            rate_limit: self.rate_limit,
            rate_limit_pause_seconds: self.rate_limit_pause.as_secs(),
            retry_limit_seconds: self.retry_limit.as_secs(),
            unset: self.unset.iter().cloned().collect(),
            state: self.sessions.state.clone(),
            fork: self.sessions.fork.iter().map(ToString::to_string).collect(),
            projects: self.sessions.projects.clone(),
            login: self.login.argv.iter().map(ToString::to_string).collect(),
            keep: self.login.keep.iter().cloned().collect(),
            files: self.file_names().cloned().collect(),
        }
    }
}
