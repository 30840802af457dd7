//! How a lane starts a run: the command, its environment, its prompt, and what it may read for that.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernel::{Purpose, Task, TaskId};
use shim::rundir::{Form as Conversing, Stdin, TerminalSize};

use super::check;
use super::environment;
use super::facts::{Facts, Places};
use super::lane::{Lane, Prompt};
use super::prompt::{Terms, bare, prompt};
use super::service::Service;
use super::template::{Place, Template, Values};
use super::tools::Launch;

/// A prompt that is longer is no word of a command: `MAX_ARG_STRLEN` of Linux, with the byte that ends it (execve(2)).
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// How a worker is started.
pub(crate) struct Start {
    pub(crate) argv: Vec<String>,
    /// The directory in which it starts; none where that is the workspace.
    pub(crate) outside: Option<PathBuf>,
    /// The variables of its lane, and those that tell it about its run; the policy adds those that it lets through.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: Stdin,
    /// How its agent takes messages while it works; none where it takes none.
    pub(crate) session: Option<Conversing>,
    /// The terminal that it runs at; none where it runs at none.
    pub(crate) terminal: Option<TerminalSize>,
    /// The session in which that goes on.
    pub(crate) resumed: Option<String>,
    /// What it may read: the files of its task, and its prompt where that is a file.
    pub(crate) read: Vec<PathBuf>,
}

/// What the supervisor itself has to say in the texts of a lane.
struct OwnTexts {
    /// What its program has to be told, so that it has the board's tools.
    tools: Option<String>,
    /// The service that its worker asks.
    service: Option<String>,
    /// The path of the program `supervisor`.
    supervisor: String,
}

/// The command of a login, and what a person reads before it.
#[derive(Debug)]
pub(crate) struct LoginCommand {
    pub(crate) argv: Vec<String>,
    /// The variables of the lane that have a value without a task.
    pub(crate) env: BTreeMap<String, String>,
}

/// Why a task has no prompt in its lane.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPrompt {
    #[error("the task has no body, and its lane runs the body: supervisor edit {0} --body '…'")]
    NoBody(TaskId),
    #[error(
        "its prompt has {0} bytes, and its lane passes it as an argument, which has at most {ARGUMENT_BYTES}; \
         a lane with prompt = \"stdin\" or \"file\" takes it"
    )]
    TooLong(usize),
}

impl Lane {
    /// The text of the prompt: the context of the task and how its run ends, or its bare body.
    pub(crate) fn prompt_text<'a>(
        &self,
        task: &'a Task,
        context: &str,
        terms: &Terms<'_>,
    ) -> Result<Cow<'a, str>, NoPrompt> {
        if terms.purpose == Purpose::Check {
            return Ok(Cow::Borrowed(""));
        }
        let text = match self.prompt {
            Prompt::Stdin | Prompt::File | Prompt::Argument => prompt(context, terms, self.tools),
            Prompt::Context => bare(context, terms),
            Prompt::BodyFile => {
                let body = task.body.as_deref().filter(|body| !body.trim().is_empty());
                return body.map(Cow::Borrowed).ok_or_else(|| NoPrompt::NoBody(task.id.clone()));
            }
        };
        match self.prompt {
            Prompt::Argument if text.len() > ARGUMENT_BYTES => Err(NoPrompt::TooLong(text.len())),
            Prompt::Stdin | Prompt::Context | Prompt::File | Prompt::Argument | Prompt::BodyFile => {
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The files that the worker finds in its home, each with its text.
    pub(crate) fn home_files(
        &self,
        task: &Task,
        places: &Places<'_>,
        prompt: &str,
    ) -> Vec<(PathBuf, String)> {
        let own = self.own_texts(places);
        self.files(&self.values(task, places, (prompt, None), &own))
    }

    fn own_texts(&self, places: &Places<'_>) -> OwnTexts {
        let supervisor = places.bin.join("supervisor").display().to_string();
        OwnTexts {
            tools: self.tools.map(|form| form.write(&Launch::in_a_run(supervisor.clone()), &self.servers)),
            service: self.service.as_ref().map(Service::text),
            supervisor,
        }
    }

    /// Makes the start of a run whose prompt is in its file.
    pub(crate) fn start(&self, facts: &Facts<'_>) -> Start {
        let Places { prompt, files, .. } = facts.places;
        let mut read = vec![files.to_owned()];
        let stdin = match self.prompt {
            Prompt::Stdin | Prompt::Context => Stdin::File(prompt.to_owned()),
            Prompt::Argument => Stdin::Null,
            Prompt::File | Prompt::BodyFile => {
                read.push(prompt.to_owned());
                Stdin::Null
            }
        };
        if facts.run.purpose == Purpose::Check {
            // It reads its workspace alone.
            let argv = check::command(facts.task);
            let env = environment::variables(facts);
            let (stdin, read) = (Stdin::Null, Vec::new());
            return Start {
                argv,
                outside: None,
                env,
                stdin,
                session: None,
                terminal: None,
                resumed: None,
                read,
            };
        }
        let texts = self.own_texts(&facts.places);
        let said = (facts.prompt, facts.session);
        let values = self.values(facts.task, &facts.places, said, &texts);
        let own = self.env.iter().filter_map(|(name, value)| Some((name.clone(), value.fill(&values)?)));
        let mut env = environment::variables(facts);
        env.retain(|name, _| !self.unset.contains(name));
        if self.terminal.is_some() {
            // What most terminals of people are, and what `attach` lets through.
            env.insert("TERM".to_owned(), "xterm-256color".to_owned());
        }
        env.extend(own);
        let resumed = facts.session.map(str::to_owned);
        let (session, terminal) = (self.session, self.terminal);
        // Nobody but the supervisor writes there, and it is the same place in each run: programs keep sessions by where they start.
        let outside = self.outside.then(|| facts.places.bin.to_owned());
        Start { argv: self.command(&values), outside, env, stdin, session, terminal, resumed, read }
    }

    fn values<'a>(
        &'a self,
        task: &'a Task,
        places: &Places<'a>,
        (prompt, session): (&'a str, Option<&'a str>),
        own: &'a OwnTexts,
    ) -> Values<'a> {
        Values {
            prompt_file: places.prompt,
            prompt_text: prompt,
            workspace: places.workspace,
            task: task.id.as_str(),
            home: places.home,
            tmp: places.tmp,
            model: task.client.model_override.as_deref().or(self.model.as_deref()),
            tools: own.tools.as_deref(),
            session,
            supervisor: &own.supervisor,
            service: own.service.as_deref(),
            base_url: self.base_url.as_deref(),
        }
    }

    /// The command of a login in these directories; none where its program has none.
    pub(crate) fn login(&self, home: &Path, tmp: &Path, workspace: &Path) -> Option<LoginCommand> {
        let values = Values {
            prompt_file: Path::new(""),
            prompt_text: "",
            workspace,
            task: "",
            home,
            tmp,
            model: self.model.as_deref(),
            tools: None,
            session: None,
            supervisor: "",
            service: None,
            base_url: None,
        };
        let argv: Option<Vec<String>> = self.login.argv.iter().map(|word| word.fill(&values)).collect();
        let of_a_run =
            |value: &Template| [Place::Task, Place::Supervisor].iter().any(|place| value.has(*place));
        let env = self.env.iter().filter(|(_, value)| !of_a_run(value));
        let env = env.filter_map(|(name, value)| Some((name.clone(), value.fill(&values)?))).collect();
        argv.filter(|argv| !argv.is_empty()).map(|argv| LoginCommand { argv, env })
    }
}
