//! Makes the start of a run in a lane: the command, its environment, its prompt and its readable files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernel::{Purpose, Task, TaskId};
use shim::rundir::{Form as Conversing, Stdin, TerminalSize};

use super::check;
use super::environment;
use super::facts::{Facts, RunPaths};
use super::lane::{Lane, Prompt};
use super::prompt::{Terms, prompt, unending};
use super::service::Service;
use super::template::{Placeholder, Template, Values};
use super::tools::Launch;

/// Longest prompt, in bytes, that fits a command argument: `MAX_ARG_STRLEN` of Linux minus the terminating zero
/// (execve(2)).
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;

#[expect(missing_debug_implementations, reason = "it holds a secret, which no log may show")]
pub struct Start {
    pub argv: Vec<String>,
    /// Directory in which it starts; none for the workspace.
    pub outside: Option<PathBuf>,
    /// Variables of the lane, and variables that describe the run. The policy adds the variables that it passes on.
    pub env: BTreeMap<String, String>,
    pub stdin: Stdin,
    /// Form in which the agent takes messages while it works; none if it takes none.
    pub session: Option<Conversing>,
    /// Terminal of the worker; none if it runs without.
    pub terminal: Option<TerminalSize>,
    /// Session that the worker resumes.
    pub resumed: Option<String>,
    /// Readable files: the files of the task, and the prompt if it is a file.
    pub read: Vec<PathBuf>,
}

/// Values of the supervisor's own placeholders in a lane's texts.
struct OwnTexts {
    /// Configuration that gives the program the board's tools.
    tools: Option<String>,
    service: Option<String>,
    /// Path of the program `supervisor`.
    supervisor: String,
}

/// Command of a login, and its environment.
#[derive(Debug)]
pub struct LoginCommand {
    pub argv: Vec<String>,
    /// Variables of the lane that have a value without a task.
    pub env: BTreeMap<String, String>,
}

/// Reason why a task has no prompt in its lane.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPrompt {
    #[error("the task has no body, and its lane runs the body: supervisor edit {0} --body '…'")]
    NoBody(TaskId),
    #[error(
        "its prompt has {0} bytes, and its lane passes it as an argument, which has at most {ARGUMENT_BYTES}; \
         a lane with prompt = \"stdin\" or \"file\" takes it"
    )]
    TooLong(usize),
}

impl Lane {
    /// Returns the text of the prompt: the context of the task and the rules for ending the run, or the bare body.
    pub fn prompt_text<'a>(
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
            Prompt::Context => unending(context, terms),
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

    /// Returns the files for the worker's home, each with its text.
    pub fn home_files(&self, task: &Task, places: &RunPaths<'_>, prompt: &str) -> Vec<(PathBuf, String)> {
        let texts = self.own_texts(places);
        self.files(&self.values(task, places, prompt, None, &texts))
    }

    fn own_texts(&self, places: &RunPaths<'_>) -> OwnTexts {
        let supervisor = places.bin.join("supervisor").display().to_string();
        OwnTexts {
            tools: self.tools.map(|form| form.write(&Launch::in_a_run(supervisor.clone()), &self.servers)),
            service: self.service.as_ref().map(Service::text),
            supervisor,
        }
    }

    /// Makes the start of a run, once its prompt is in its file.
    pub fn start(&self, facts: &Facts<'_>) -> Start {
        let RunPaths { prompt, files, .. } = facts.places;
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
            // A check reads its workspace alone.
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
        let values = self.values(facts.task, &facts.places, facts.prompt, facts.session, &texts);
        let variables =
            self.env.iter().filter_map(|(name, value)| Some((name.clone(), value.fill(&values)?)));
        let mut env = environment::variables(facts);
        env.retain(|name, _| !self.unset.contains(name));
        if self.terminal.is_some() {
            // The type of most people's terminals, whose sequences `attach` passes.
            env.insert("TERM".to_owned(), "xterm-256color".to_owned());
        }
        env.extend(variables);
        let resumed = facts.session.map(str::to_owned);
        let (session, terminal) = (self.session, self.terminal);
        // Only the supervisor writes there, and the path is the same in each run: some programs file sessions by
        // their start directory.
        let outside = self.outside.then(|| facts.places.bin.to_owned());
        Start { argv: self.command(&values), outside, env, stdin, session, terminal, resumed, read }
    }

    fn values<'a>(
        &'a self,
        task: &'a Task,
        places: &RunPaths<'a>,
        prompt: &'a str,
        session: Option<&'a str>,
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

    /// Returns the login command for these directories; none if the program has no login.
    pub fn login(&self, home: &Path, tmp: &Path, workspace: &Path) -> Option<LoginCommand> {
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
        let of_a_run = |value: &Template| {
            [Placeholder::Task, Placeholder::Supervisor].iter().any(|place| value.has(*place))
        };
        let env = self.env.iter().filter(|(_, value)| !of_a_run(value));
        let env = env.filter_map(|(name, value)| Some((name.clone(), value.fill(&values)?))).collect();
        argv.filter(|argv| !argv.is_empty()).map(|argv| LoginCommand { argv, env })
    }
}
