//! What a lane is, as its file says it, for people and programs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kernel::Pool;
use serde::{Deserialize, Serialize};
use shim::rundir::{Form as Conversing, TerminalSize};

use super::exit_codes::ExitCodes;
use super::formats::Format;
use super::lane::{CleanExit, Lane, Prompt, RateLimit};
use super::tools::Form;

/// A lane as its file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// The file, or the built-in lane.
    pub(crate) origin: PathBuf,
    /// Whether nothing here starts its workers: they claim their tasks.
    #[serde(default)]
    pub(crate) pull: bool,
    /// The words of the command, with their places.
    pub(crate) argv: Vec<String>,
    pub(crate) prompt: Prompt,
    /// How its program takes messages while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Conversing>,
    /// The terminal that its program runs at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terminal: Option<TerminalSize>,
    /// The format of its standard output.
    pub(crate) stdout: Format,
    pub(crate) on_clean_exit: CleanExit,
    pub(crate) model: Option<String>,
    /// The form in which its program gets the board's tools.
    #[serde(default)]
    pub(crate) tools: Option<Form>,
    pub(crate) install: Vec<PathBuf>,
    pub(crate) policy: Option<String>,
    pub(crate) account: Option<String>,
    /// In seconds; none where the configuration says it.
    pub(crate) max_runtime_seconds: Option<u64>,
    /// In seconds; none where the configuration says it.
    pub(crate) idle_limit_seconds: Option<u64>,
    /// How many of its workers run at once, unless the configuration says it.
    #[serde(default)]
    pub(crate) max_running: Option<usize>,
    /// The pools of which each of its workers needs a place.
    #[serde(default)]
    pub(crate) pools: BTreeSet<Pool>,
    /// The hosts that its runs reach where their policy has a proxy.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// The headers that its brokers add, each with its host.
    #[serde(default)]
    pub(crate) brokers: Vec<String>,
    /// The names of its variables with secret values.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
    /// The names of the variables that it sets.
    pub(crate) env: Vec<String>,
    /// The words behind the command that take its program's own tools away, for orchestrators.
    #[serde(default)]
    pub(crate) orchestrator: Vec<String>,
    /// Whether the program of an orchestrator starts outside of the workspace.
    #[serde(default)]
    pub(crate) orchestrator_outside: bool,
    /// The directory in the home of its workers in which its program finds skills.
    #[serde(default)]
    pub(crate) skills: Option<PathBuf>,
    /// What exit codes of its program mean.
    #[serde(default)]
    pub(crate) exit_codes: ExitCodes,
    /// What a rate limit that one worker meets holds,
    #[serde(default)]
    pub(crate) rate_limit: RateLimit,
    /// for how long, in seconds, where the worker does not say it.
    #[serde(default)]
    pub(crate) rate_limit_pause_seconds: u64,
    /// How long its service may refuse a worker that tries again, in seconds.
    #[serde(default)]
    pub(crate) retry_limit_seconds: u64,
    /// The variables of every run that its workers do not get.
    #[serde(default)]
    pub(crate) unset: Vec<String>,
    /// The directory in the home of its workers that outlives a run.
    #[serde(default)]
    pub(crate) state: Option<PathBuf>,
    /// The words that begin a new session from another one.
    #[serde(default)]
    pub(crate) fork: Vec<String>,
    /// The directory that has one for the sessions of each workspace.
    #[serde(default)]
    pub(crate) projects: Option<PathBuf>,
    /// The command by which its program gets a login.
    #[serde(default)]
    pub(crate) login: Vec<String>,
    /// The files in the home of its workers that outlive a run.
    #[serde(default)]
    pub(crate) keep: Vec<PathBuf>,
    /// The files that its workers find in their home.
    pub(crate) files: Vec<PathBuf>,
}

impl Lane {
    /// Describes it. Values of variables and contents of files may be secrets: only their names are shown.
    pub(crate) fn describe(&self) -> Description {
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
