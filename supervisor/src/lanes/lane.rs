//! One lane: what its file says, with its texts taken apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{Pool, Profile, WorkerRole};
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
use super::template::{Place, Template, Values};
use super::tools::Form;

/// The word behind `{supervisor}` in the command of a lane whose program brings a board of its own; the program follows.
const OWN_BOARD: &str = "__kanban";

/// How a worker is started and how its ending is read.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// The file that says it.
    pub(super) origin: PathBuf,
    /// Whether nothing here starts its workers: they claim their tasks from outside.
    pub(crate) pull: bool,
    /// The command: groups of words, each left out where one of its places has no value.
    pub(super) argv: Vec<Vec<Template>>,
    /// The words behind it that take away its program's own tools, for orchestrators.
    pub(super) orchestrator: Vec<Template>,
    /// Whether the program of an orchestrator starts outside of the workspace,
    pub(super) orchestrator_outside: bool,
    /// and whether that of these workers does.
    pub(super) outside: bool,
    /// How the worker gets its prompt.
    pub(super) prompt: Prompt,
    /// How its program takes messages while it works, the prompt among them; none where it takes none.
    pub(super) session: Option<Conversing>,
    /// The terminal that its program runs at; none where it runs at none.
    pub(super) terminal: Option<TerminalSize>,
    /// What its workers write to their standard output.
    pub(super) stdout: Format,
    /// What exit 0 without a verdict means.
    pub(super) on_clean_exit: CleanExit,
    /// What exit codes of its program mean.
    pub(super) exit_codes: ExitCodes,
    /// Variables of its own. One whose place has no value is not set.
    pub(super) env: BTreeMap<String, Template>,
    /// Variables of every run that it does not get; those of the supervisor itself cannot be left out.
    pub(super) unset: BTreeSet<String>,
    /// Files that its worker finds in its home.
    pub(super) files: BTreeMap<PathBuf, Template>,
    /// The sessions of its workers.
    pub(super) sessions: Sessions,
    /// How its program gets a login, and what of a home outlives a run.
    pub(super) login: Login,
    /// Directories that have its program and what that needs; it may read and execute them.
    pub(crate) install: Vec<PathBuf>,
    /// What comes to the policy of its runs: the hosts of its service, secrets and brokers.
    pub(crate) additions: Additions,
    /// Where the host of its first broker is asked, in a run that has the broker.
    pub(super) base_url: Option<String>,
    /// The directory in the home of its workers in which its program finds skills, each in `NAME/SKILL.md`.
    pub(super) skills: Option<PathBuf>,
    /// The service that its worker asks.
    pub(super) service: Option<Service>,
    /// The model that its program is to use.
    pub(crate) model: Option<String>,
    /// The form in which its program gets the board's tools.
    pub(super) tools: Option<Form>,
    /// The servers of tools that its program gets beside the board's: those of a profile.
    pub(super) servers: ToolServers,
    /// The policy of tasks that name none, instead of the configured one.
    pub(crate) policy: Option<String>,
    /// The account whose limits its workers share with those of other lanes that name it.
    pub(crate) account: Option<String>,
    /// How long a run may take whose task sets no limit of its own.
    pub(crate) max_runtime: Option<Duration>,
    /// How long its worker may show no progress.
    pub(crate) idle_limit: Option<Duration>,
    /// How many of its workers run at once, unless the configuration says it.
    pub(crate) max_running: Option<usize>,
    /// The pools of which each of its workers needs a place.
    pub(crate) pools: BTreeSet<Pool>,
    /// Whom the limit of a service that one worker met holds up.
    pub(super) rate_limit: RateLimit,
    /// How long, where the worker does not say it.
    pub(super) rate_limit_pause: Duration,
    /// How long its service may refuse a worker that tries again.
    pub(super) retry_limit: Duration,
}

/// Whom the limit of a service that one worker met holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RateLimit {
    /// All tasks of the account, or of the lane where it names none.
    #[default]
    Account,
    /// That task alone.
    Task,
}

/// How a worker gets its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prompt {
    /// The context of the task on standard input, then end of file.
    #[default]
    Stdin,
    /// The same without how the run ends: its program reports by itself.
    Context,
    /// The context of the task in a file that only the worker can read.
    File,
    /// The context of the task as a word of the command.
    Argument,
    /// The bare body of the task in a file that only the worker can read.
    BodyFile,
}

/// What exit 0 without a verdict means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CleanExit {
    /// The task is complete; the final message is its summary.
    Complete,
    /// The work waits for a review; the final message is its summary.
    Review,
    /// The worker forgot to report: a failure.
    #[default]
    #[serde(alias = "unreported")]
    ProtocolViolation,
}

impl Lane {
    /// The file that says it, or the built-in lane.
    pub(crate) fn origin(&self) -> &Path {
        &self.origin
    }

    /// The words of its command as the file has them. A group of words is one, in brackets.
    pub(super) fn words(&self) -> Vec<String> {
        let word = |group: &Vec<Template>| match group.as_slice() {
            [word]
                if ![Place::Model, Place::Session, Place::BaseUrl]
                    .into_iter()
                    .any(|place| word.has(place)) =>
            {
                word.to_string()
            }
            words => format!("[{}]", words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        };
        self.argv.iter().map(word).collect()
    }

    /// Its program: that which the supervisor's own starts, where it brings a board of its own.
    pub(crate) fn program(&self) -> String {
        let mut words = self.argv.iter().filter_map(|group| group.first()).map(ToString::to_string);
        let first = words.next().unwrap_or_default();
        let is_wrapped = words.next().is_some_and(|word| word == OWN_BOARD);
        if is_wrapped { words.next().unwrap_or(first) } else { first }
    }

    /// The same for workers of a role that use this model and have these servers of tools: an orchestrator's program starts without
    /// its own tools.
    pub(crate) fn in_role(&self, role: WorkerRole, model: Option<&str>, servers: &ToolServers) -> Self {
        let mut lane = Lane { model: model.map(str::to_owned), servers: servers.clone(), ..self.clone() };
        if role == WorkerRole::Orchestrator {
            lane.argv.push(lane.orchestrator.clone());
            lane.outside = lane.orchestrator_outside;
            // Without the tool that loads them they are part of its prompt.
            lane.skills = None;
        }
        lane
    }

    /// The same for runs under a policy, which has the brokers that are in effect.
    pub(crate) fn under(self, policy: &Policy) -> Self {
        let first = self.additions.brokers.first().filter(|broker| policy.broker.contains(broker));
        let base_url = first.filter(|_| policy.has_proxy()).map(Broker::base_url);
        Lane { base_url, ..self }
    }

    /// The hosts that its file names, for who says what to add to them.
    pub(crate) fn named_hosts(&self, name: &Profile) -> LaneHosts {
        let has_file = self.origin.extension().is_some_and(|ending| ending == "toml");
        LaneHosts { name: name.to_string(), has_file, hosts: self.additions.hosts.clone() }
    }

    /// The host of the service that its worker asks.
    pub(crate) fn service_target(&self) -> Option<Target> {
        self.service.as_ref()?.target()
    }

    /// Whether its program can be started without its own tools.
    pub(crate) fn hosts_orchestrators(&self) -> bool {
        !self.orchestrator.is_empty()
    }

    /// Whether its program gets servers of tools.
    pub(crate) fn takes_servers(&self) -> bool {
        self.tools.is_some()
    }

    /// Whether something of it has the model.
    pub(crate) fn takes_model(&self) -> bool {
        let mut texts = self.argv.iter().flatten().chain(self.env.values()).chain(self.files.values());
        texts.any(|text| text.has(Place::Model))
    }

    /// Whether its workers get a prompt, and not the bare body of their task.
    pub(crate) fn takes_prompt(&self) -> bool {
        self.prompt != Prompt::BodyFile
    }

    /// Whether its program gets the board's tools: it is an agent.
    pub(crate) fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// What it lacks that its file has to say, where nothing of it can be started without that.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let is_missing =
            self.service.is_none() && self.argv.iter().flatten().any(|word| word.has(Place::Service));
        is_missing.then_some("names no service: write its address as `url` into the table [service] of a lane that extends it (`supervisor help docs/lanes/http.md`, `supervisor help docs/lanes/a2a.md`)")
    }

    /// Whether its workers take messages while they work.
    pub(crate) fn takes_messages(&self) -> bool {
        self.session.is_some()
    }

    /// What its workers write to their standard output.
    pub(crate) fn output(&self) -> Format {
        self.stdout
    }

    pub(super) fn file_names(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }

    /// The files in the home of its workers that outlive a run, where something keeps them.
    pub(crate) fn kept_files(&self) -> &BTreeSet<PathBuf> {
        &self.login.keep
    }

    /// Whether its program can be logged in.
    pub(crate) fn has_login(&self) -> bool {
        !self.login.argv.is_empty()
    }

    /// The directory in the home of its workers that outlives a run; none where its program begins anew each time.
    pub(crate) fn state(&self) -> Option<&Path> {
        self.sessions.state.as_deref()
    }

    /// Whether its program can begin a session from another one.
    pub(crate) fn forks(&self) -> bool {
        !self.sessions.fork.is_empty()
    }

    /// The same for a run that begins a session from another one: other words name it.
    pub(crate) fn forking(&self) -> Self {
        let mut lane = self.clone();
        for group in &mut lane.argv {
            if group.iter().any(|word| word.has(Place::Session)) {
                group.clone_from(&self.sessions.fork);
            }
        }
        lane.sessions.is_forking = true;
        lane
    }

    /// The directory in `state` that has one for the sessions of each workspace.
    pub(crate) fn projects(&self) -> Option<PathBuf> {
        let projects = self.sessions.projects.as_deref()?;
        projects.strip_prefix(self.state()?).ok().map(Path::to_owned)
    }

    /// The directories that its program needs under a policy: those that its file names; where that names none, those beneath a home in
    /// which the program is. Looks at files: blocking.
    pub(crate) fn install_under(&self, policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
        match home.filter(|_| self.is_looked_for()) {
            Some(home) => install_at_home(&self.program(), &usual_path(policy, Some(home)), home),
            None => self.install.clone(),
        }
    }

    /// Whether its program is looked for by its name, because its file says nothing of where it is.
    pub(crate) fn is_looked_for(&self) -> bool {
        self.install.is_empty() && !self.program().contains('/')
    }

    /// The directories in which its program is looked for under a policy. Looks at files: blocking.
    pub(crate) fn search_path(&self, policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
        search_path(&self.install_under(policy, home)).chain(usual_path(policy, home)).collect()
    }

    /// The command of a run.
    pub(super) fn command(&self, values: &Values<'_>) -> Vec<String> {
        let fill = |group: &Vec<Template>| {
            let words: Option<Vec<String>> = group.iter().map(|word| word.fill(values)).collect();
            words.unwrap_or_default()
        };
        self.argv.iter().flat_map(fill).collect()
    }

    /// The files that the worker of a run finds in its home, each with its text.
    pub(super) fn files(&self, values: &Values<'_>) -> Vec<(PathBuf, String)> {
        let fill = |(path, text): (&PathBuf, &Template)| Some((path.clone(), text.fill(values)?));
        self.files.iter().filter_map(fill).collect()
    }
}

/// Where every run under a policy looks for programs: in the toolchains of a home, then in the `PATH`.
fn usual_path(policy: &Policy, home: Option<&Path>) -> Vec<PathBuf> {
    let tools = home.map(|home| policy.filesystem.toolchains.environment(home).path).unwrap_or_default();
    tools.into_iter().chain(policy.path().split(':').map(PathBuf::from)).collect()
}
