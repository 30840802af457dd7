//! A lane: the parsed form of a lane's file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{CommitMode, Pool, Profile, WorkerRole};
use policies::{Additions, Broker, LaneHosts, Policy, Target};
use serde::{Deserialize, Serialize};
use shim::rundir::{Form as Conversing, TerminalSize};

use super::at_home::{install_at_home, search_path};
use super::exit_codes::ExitCodes;
use super::formats::Format;
use super::login::Login;
use super::servers::ToolServers;
use super::service::Service;
use super::sessions::Sessions;
use super::template::{Placeholder, Template, Values};
use super::tools::Form;

/// Word after `{supervisor}` in the command of a lane whose program brings its own board; the program follows it.
const OWN_BOARD: &str = "__kanban";

/// Rules for the start of workers and for reading their endings.
#[derive(Clone, Debug)]
pub struct Lane {
    /// File of the lane.
    pub(super) origin: PathBuf,
    /// True for a lane whose workers are external and claim their tasks.
    pub pull: bool,
    /// Command: groups of words. A group is omitted if one of its placeholders has no value.
    pub(super) argv: Vec<Vec<Template>>,
    /// Words appended to the command that remove the program's own tools, for orchestrators.
    pub(super) orchestrator: Vec<Template>,
    /// True if an orchestrator's program starts outside the workspace.
    pub(super) orchestrator_outside: bool,
    /// True if the program of these workers starts outside the workspace.
    pub(super) outside: bool,
    pub(super) prompt: Prompt,
    /// Form in which the program takes messages while it works, the prompt included; none if it takes none.
    pub(super) session: Option<Conversing>,
    /// Terminal of the program; none if it runs without.
    pub(super) terminal: Option<TerminalSize>,
    /// Format of standard output.
    pub(super) stdout: Format,
    /// Meaning of exit 0 without a verdict.
    pub(super) on_clean_exit: CleanExit,
    pub(super) exit_codes: ExitCodes,
    /// Variables of the lane. A variable whose placeholder has no value is not set.
    pub(super) env: BTreeMap<String, Template>,
    /// Variables of every run that the program does not get; the supervisor's own variables cannot be removed.
    pub(super) unset: BTreeSet<String>,
    /// Files that the worker finds in its home.
    pub(super) files: BTreeMap<PathBuf, Template>,
    pub(super) sessions: Sessions,
    /// Login command, and files of a home that outlive a run.
    pub(super) login: Login,
    /// Directories of the program and its dependencies, which the worker may read and execute.
    pub install: Vec<PathBuf>,
    /// Additions to the policy of its runs: the hosts of its service, secrets and brokers.
    pub additions: Additions,
    /// Address of the lane's first broker, in a run that has this broker.
    pub(super) base_url: Option<String>,
    /// Directory in the worker's home in which the program finds skills, each in `NAME/SKILL.md`.
    pub(super) skills: Option<PathBuf>,
    /// Service that the worker contacts.
    pub(super) service: Option<Service>,
    /// Model for the program.
    pub model: Option<String>,
    /// Form of the program's configuration of the board's tools.
    pub(super) tools: Option<Form>,
    /// Tool servers of a profile, in addition to the board's.
    pub(super) servers: ToolServers,
    /// Policy of tasks that name none, instead of the configured default.
    pub policy: Option<String>,
    /// Handling of uncommitted changes for tasks that name none; absent means by the format of standard output.
    pub(super) commit: Option<CommitMode>,
    /// Account. Workers of all lanes with this account share its rate limits.
    pub account: Option<String>,
    /// Runtime limit for tasks that set none.
    pub max_runtime: Option<Duration>,
    /// Longest time without progress.
    pub idle_limit: Option<Duration>,
    /// Limit on its concurrent workers, unless the configuration sets one.
    pub max_running: Option<usize>,
    /// Pools in which each of its workers takes a place.
    pub pools: BTreeSet<Pool>,
    /// Tasks that a rate limit of one worker holds.
    pub(super) rate_limit: RateLimit,
    /// Duration of such a hold if the worker names no time.
    pub(super) rate_limit_pause: Duration,
    /// Time for which its service may refuse a worker that retries.
    pub(super) retry_limit: Duration,
}

/// Tasks that a rate limit of one worker holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// All tasks of the account, or of the lane if it has no account.
    #[default]
    Account,
    /// The worker's task alone.
    Task,
}

/// Delivery of the prompt to a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prompt {
    /// Context of the task on standard input, then end of file.
    #[default]
    Stdin,
    /// Context on standard input, without the part about the end of the run: the program reports by itself.
    Context,
    /// Context of the task in a file that only the worker can read.
    File,
    /// Context of the task as a command argument.
    Argument,
    /// Bare body of the task in a file that only the worker can read.
    BodyFile,
}

/// Meaning of exit 0 without a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanExit {
    /// The task is complete; the final message is its summary.
    Complete,
    /// The work waits for a review; the final message is its summary.
    Review,
    /// A failure: the worker forgot to report.
    #[default]
    #[serde(alias = "unreported")]
    ProtocolViolation,
}

impl Lane {
    /// Returns the file of the lane, or the name of the built-in lane.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// Returns the command words as in the file, with a group of words in brackets as one.
    pub(super) fn words(&self) -> Vec<String> {
        let word = |group: &Vec<Template>| match group.as_slice() {
            [word]
                if ![Placeholder::Model, Placeholder::Session, Placeholder::BaseUrl]
                    .into_iter()
                    .any(|place| word.has(place)) =>
            {
                word.to_string()
            }
            words => format!("[{}]", words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        };
        self.argv.iter().map(word).collect()
    }

    /// Returns the program; for a program with its own board, the program that `supervisor` starts.
    pub fn program(&self) -> String {
        let mut words = self.argv.iter().filter_map(|group| group.first()).map(ToString::to_string);
        let first = words.next().unwrap_or_default();
        let is_wrapped = words.next().is_some_and(|word| word == OWN_BOARD);
        if is_wrapped { words.next().unwrap_or(first) } else { first }
    }

    /// Returns the lane for workers of a role, with this model and these tool servers. An orchestrator's program
    /// starts without its own tools.
    #[must_use]
    pub fn in_role(&self, role: WorkerRole, model: Option<&str>, servers: &ToolServers) -> Self {
        let mut lane = Lane { model: model.map(str::to_owned), servers: servers.clone(), ..self.clone() };
        if role == WorkerRole::Orchestrator {
            lane.argv.push(lane.orchestrator.clone());
            lane.outside = lane.orchestrator_outside;
            // Without its own tools the program cannot load skills, so they become part of the prompt.
            lane.skills = None;
        }
        lane
    }

    /// Returns the lane for runs under a policy, which holds the brokers in effect.
    #[must_use]
    pub fn under(self, policy: &Policy) -> Self {
        let first = self.additions.brokers.first().filter(|broker| policy.broker.contains(broker));
        let base_url = first.filter(|_| policy.has_proxy()).map(Broker::base_url);
        Lane { base_url, ..self }
    }

    /// Returns the hosts of the lane's file, for a message about hosts to add.
    pub fn named_hosts(&self, name: &Profile) -> LaneHosts {
        let has_file = self.origin.extension().is_some_and(|ending| ending == "toml");
        LaneHosts { name: name.to_string(), has_file, hosts: self.additions.hosts.clone() }
    }

    /// Returns true if a service or an agent does the work, and its workers only ask it.
    pub fn works_elsewhere(&self) -> bool {
        self.service.is_some()
    }

    /// Returns the host of the lane's service.
    pub fn service_target(&self) -> Option<Target> {
        self.service.as_ref()?.target()
    }

    /// Returns true if the program can start without its own tools.
    pub(crate) fn hosts_orchestrators(&self) -> bool {
        !self.orchestrator.is_empty()
    }

    /// Returns the handling of uncommitted changes for a task that names none. An agent, which reports in a format, has
    /// its changes committed.
    pub fn commit_mode(&self) -> CommitMode {
        let by_format = if self.stdout == Format::default() { CommitMode::No } else { CommitMode::Auto };
        self.commit.unwrap_or(by_format)
    }

    /// Returns true if the program accepts tool servers.
    pub(crate) fn takes_servers(&self) -> bool {
        self.tools.is_some()
    }

    /// Returns true if a text of the lane contains `{model}`.
    pub(crate) fn takes_model(&self) -> bool {
        let mut texts = self.argv.iter().flatten().chain(self.env.values()).chain(self.files.values());
        texts.any(|text| text.has(Placeholder::Model))
    }

    /// Returns true if workers get a prompt rather than the bare body of the task.
    pub fn takes_prompt(&self) -> bool {
        self.prompt != Prompt::BodyFile
    }

    /// Returns true if the program is an agent that gets the board's tools.
    pub fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Returns the missing setting of the lane's file without which nothing can start, if any.
    pub fn lacks(&self) -> Option<&'static str> {
        let is_missing =
            self.service.is_none() && self.argv.iter().flatten().any(|word| word.has(Placeholder::Service));
        is_missing.then_some("names no service: write its address as `url` into the table [service] of a lane that extends it (`supervisor help docs/lanes/http.md`, `supervisor help docs/lanes/a2a.md`)")
    }

    /// Returns true if workers take messages while they work.
    pub fn takes_messages(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the format of standard output.
    pub fn output(&self) -> Format {
        self.stdout
    }

    pub(super) fn file_names(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }

    /// Returns the files in the worker's home that outlive a run.
    pub fn kept_files(&self) -> &BTreeSet<PathBuf> {
        &self.login.keep
    }

    /// Returns true if the lane has a login command.
    pub fn has_login(&self) -> bool {
        !self.login.argv.is_empty()
    }

    /// Returns the directory in the worker's home that outlives a run; none if each run begins afresh.
    pub fn state(&self) -> Option<&Path> {
        self.sessions.state.as_deref()
    }

    /// Returns true if the program can fork a session.
    pub fn forks(&self) -> bool {
        !self.sessions.fork.is_empty()
    }

    /// Returns the lane for a run that forks a session: the words in `fork` replace those with `{session}`.
    #[must_use]
    pub fn forking(&self) -> Self {
        let mut lane = self.clone();
        for group in &mut lane.argv {
            if group.iter().any(|word| word.has(Placeholder::Session)) {
                group.clone_from(&self.sessions.fork);
            }
        }
        lane.sessions.is_forking = true;
        lane
    }

    /// Returns the directory, relative to `state`, with a subdirectory of sessions for each workspace.
    pub fn projects(&self) -> Option<PathBuf> {
        let projects = self.sessions.projects.as_deref()?;
        projects.strip_prefix(self.state()?).ok().map(Path::to_owned)
    }

    /// Returns the directories that the program needs under a policy: `install` of the file, else the directories
    /// beneath a home that contain the program. Blocking: reads files.
    pub fn install_under(&self, policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
        match home.filter(|_| self.is_looked_for()) {
            Some(home) => install_at_home(&self.program(), &usual_path(policy, Some(home)), home),
            None => self.install.clone(),
        }
    }

    /// Returns true if the program is found by its name, because the file names no directory.
    pub fn is_looked_for(&self) -> bool {
        self.install.is_empty() && !self.program().contains('/')
    }

    /// Returns the search path of the program under a policy. Blocking: reads files.
    pub fn search_path(&self, policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
        search_path(&self.install_under(policy, home)).chain(usual_path(policy, home)).collect()
    }

    /// Returns the command of a run.
    pub(super) fn command(&self, values: &Values<'_>) -> Vec<String> {
        let fill = |group: &Vec<Template>| {
            let words: Option<Vec<String>> = group.iter().map(|word| word.fill(values)).collect();
            words.unwrap_or_default()
        };
        self.argv.iter().flat_map(fill).collect()
    }

    /// Returns the files for the worker's home, each with its text.
    pub(super) fn files(&self, values: &Values<'_>) -> Vec<(PathBuf, String)> {
        let fill = |(path, text): (&PathBuf, &Template)| Some((path.clone(), text.fill(values)?));
        self.files.iter().filter_map(fill).collect()
    }
}

/// Returns the search path of every run under a policy: the toolchains of a home, then `PATH`.
fn usual_path(policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
    let tools = home.map(|home| policy.filesystem.toolchains.environment(home).path).unwrap_or_default();
    tools.into_iter().chain(policy.path().split(':').map(PathBuf::from)).collect()
}
