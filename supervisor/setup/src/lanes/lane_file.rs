//! Parses the file of a lane, and reports its first defect with line and key.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{CommitMode, Pool};
use policies::{Additions, Broker, HostRule, Secret};
use serde::Deserialize;
use shim::rundir::Form as Conversing;

use super::console::{TerminalFile, spoken};
use super::exit_codes::ExitCodesFile;
use super::extends::{self, Misread};
use super::formats::Format;
use super::lane::{CleanExit, Lane, Prompt, RateLimit};
use super::login::Login;
use super::servers::ToolServers;
use super::service::ServiceFile;
use super::sessions::{Sessions, Wrong, is_inside};
use super::template::{NoPlace, Placeholder, Template};
use super::tools::Form;
use super::variable::{is_reserved, is_variable};
use super::words::Words;
use crate::config::definitions::{Defect, Subject};
use base::time::duration::WrittenDuration;

/// Settings of a lane as its file has them. [`Lane`] documents each setting.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaneFile {
    #[serde(default)]
    pull: bool,
    #[serde(default)]
    argv: Vec<Words>,
    #[serde(default)]
    orchestrator: Vec<String>,
    #[serde(default)]
    orchestrator_outside: bool,
    #[serde(default)]
    prompt: Prompt,
    session: Option<Conversing>,
    terminal: Option<TerminalFile>,
    #[serde(default)]
    stdout: Format,
    #[serde(default)]
    on_clean_exit: CleanExit,
    #[serde(default)]
    exit_codes: ExitCodesFile,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    unset: BTreeSet<String>,
    #[serde(default)]
    files: BTreeMap<PathBuf, String>,
    state: Option<PathBuf>,
    #[serde(default)]
    session_gone: Vec<String>,
    #[serde(default)]
    fork: Vec<String>,
    projects: Option<PathBuf>,
    #[serde(default)]
    install: Vec<PathBuf>,
    skills: Option<PathBuf>,
    #[serde(default)]
    login: Vec<String>,
    #[serde(default)]
    keep: BTreeSet<PathBuf>,
    #[serde(default)]
    hosts: BTreeSet<HostRule>,
    #[serde(default)]
    secrets: BTreeMap<String, Secret>,
    #[serde(default)]
    broker: Vec<Broker>,
    service: Option<ServiceFile>,
    model: Option<String>,
    tools: Option<Form>,
    policy: Option<String>,
    commit: Option<CommitMode>,
    account: Option<String>,
    max_runtime: Option<WrittenDuration>,
    idle_limit: Option<WrittenDuration>,
    max_running: Option<NonZeroUsize>,
    #[serde(default)]
    pools: BTreeSet<Pool>,
    #[serde(default)]
    rate_limit: RateLimit,
    #[serde(default = "rate_limit_pause")]
    rate_limit_pause: WrittenDuration,
    #[serde(default = "retry_limit")]
    retry_limit: WrittenDuration,
}

fn retry_limit() -> WrittenDuration {
    WrittenDuration::from_secs(300)
}

fn rate_limit_pause() -> WrittenDuration {
    WrittenDuration::from_secs(300)
}

impl Lane {
    /// Parses the definition of the lane `name`; `origin` is its file.
    ///
    /// # Errors
    /// A setting is unknown or unusable, contradicts another one, or would change nothing.
    pub(super) fn parse(name: &str, text: &str, origin: &Path) -> Result<Self, Defect> {
        let reader = Reader { name, text, origin };
        let file: LaneFile = extends::read(text).map_err(|misread| match misread {
            Misread::Toml(error) => Defect::toml(reader.subject(), origin, text, &error),
            Misread::NotBuiltIn(message) => reader.defect("extends", "extends", message),
        })?;
        let argv = if file.pull {
            reader.pull_alone()?;
            Vec::new()
        } else {
            reader.argv(file.argv, file.prompt)?
        };
        if file.orchestrator_outside && file.orchestrator.is_empty() {
            let message = "the lane has no orchestrators: it has no `orchestrator`";
            return Err(reader.defect("orchestrator_outside", "orchestrator_outside", message));
        }
        let env = reader.env(file.env)?;
        let files = reader.files(file.files)?;
        // Two mistakes are refused: a setting whose placeholder no text uses, and a placeholder whose setting is missing.
        let texts = || argv.iter().flatten().chain(env.values()).chain(files.values());
        if file.model.is_some() && !texts().any(|text| text.has(Placeholder::Model)) {
            let message = "nothing uses it; write {model} into `argv`, `env` or `files`";
            return Err(reader.defect("model", "model", message));
        }
        reader.tools_are_used(file.tools.is_some(), texts().any(|text| text.has(Placeholder::Tools)))?;
        if file.broker.is_empty() && texts().any(|text| text.has(Placeholder::BaseUrl)) {
            let message = "`{base_url}` is the address of a broker, and the lane has none: [[broker]]";
            return Err(reader.defect("broker", "{base_url}", message));
        }
        let mut additions =
            reader.additions(Additions { hosts: file.hosts, secrets: file.secrets, brokers: file.broker })?;
        let service = match file.service {
            Some(_) if !texts().any(|text| text.has(Placeholder::Service)) => {
                let message = "nothing uses it; write {service} into `argv`, `env` or `files`, or extend the lane `http`";
                return Err(reader.defect("service", "[service", message));
            }
            Some(service) => {
                let refuse = |(key, message): (&str, String)| reader.defect(key, key, message);
                Some(service.read(&mut additions).map_err(refuse)?)
            }
            None => None,
        };
        let fork = reader.words("fork", &file.fork)?;
        let (state, gone, projects) = (file.state, file.session_gone, file.projects);
        let sessions = Sessions { state, gone, fork, projects, is_forking: false };
        let sessions = sessions.check(&argv, file.session, files.keys().chain(&file.skills));
        let sessions = sessions.map_err(|wrong| reader.wrong(&wrong))?;
        let session = spoken(file.session, file.prompt, file.stdout).map_err(|wrong| reader.wrong(&wrong))?;
        let terminal = file.terminal.map(|terminal| terminal.check(file.prompt, session, file.stdout));
        let terminal = terminal.transpose().map_err(|wrong| reader.wrong(&wrong))?.flatten();
        let login = Login { argv: reader.words("login", &file.login)?, keep: file.keep };
        let login = login.check(files.keys().chain(&file.skills));
        let login = login.map_err(|wrong| reader.defect(wrong.key, &wrong.words, wrong.message))?;
        let is_absolute = |path: &PathBuf| path.is_absolute() && !path.starts_with("/proc");
        if let Some(path) = file.install.iter().find(|path| !is_absolute(path)) {
            let message = format!("{} is not an absolute path of a directory", path.display());
            return Err(reader.defect("install", "install", message));
        }
        Ok(Lane {
            origin: origin.to_owned(),
            pull: file.pull,
            argv,
            orchestrator: reader.words("orchestrator", &file.orchestrator)?,
            orchestrator_outside: file.orchestrator_outside,
            outside: false,
            prompt: file.prompt,
            session,
            terminal,
            stdout: file.stdout,
            on_clean_exit: file.on_clean_exit,
            exit_codes: file.exit_codes.into(),
            env,
            unset: reader.unset(file.unset)?,
            sessions,
            login,
            files,
            install: file.install,
            base_url: None,
            skills: reader.skills(file.skills)?,
            additions,
            service,
            model: file.model,
            tools: file.tools,
            servers: ToolServers::new(),
            policy: file.policy,
            commit: file.commit,
            account: file.account,
            max_runtime: reader.limit("max_runtime", file.max_runtime)?,
            idle_limit: reader.limit("idle_limit", file.idle_limit)?,
            max_running: file.max_running.map(NonZeroUsize::get),
            pools: file.pools,
            rate_limit: file.rate_limit,
            rate_limit_pause: file.rate_limit_pause.duration(),
            retry_limit: file.retry_limit.duration(),
        })
    }
}

/// Checks one file, and locates defects in its text.
struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    origin: &'a Path,
}

impl Reader<'_> {
    fn subject(&self) -> Subject {
        Subject::Lane(self.name.to_owned())
    }

    /// Makes a defect of a key. Its line is the first that contains `words`, or line 1.
    fn defect(&self, key: &str, words: &str, message: impl Into<String>) -> Defect {
        let line = self.text.lines().position(|line| line.contains(words)).map_or(1, |index| index + 1);
        Defect::new(self.subject(), self.origin, message).at(line, Some(key.to_owned()))
    }

    fn wrong(&self, wrong: &Wrong) -> Defect {
        self.defect(wrong.key, wrong.words, wrong.message.as_str())
    }

    /// Refuses a tools form that no text uses, and a `{tools}` without a form.
    fn tools_are_used(&self, has_form: bool, has_text: bool) -> Result<(), Defect> {
        let (message, words) = match (has_form, has_text) {
            (true, false) => ("nothing uses it; write {tools} into `argv`, `env` or `files`", "tools"),
            (false, true) => ("`{tools}` needs a form: tools = \"claude\", or another", "{tools}"),
            (true, true) | (false, false) => return Ok(()),
        };
        Err(self.defect("tools", words, message))
    }

    /// Refuses every other key beside `pull = true`: the workers of a pull lane are external, so no other key would have an
    /// effect.
    fn pull_alone(&self) -> Result<(), Defect> {
        let file: toml::Table = toml::from_str(self.text)
            .map_err(|e| Defect::toml(self.subject(), self.origin, self.text, &e))?;
        match file.keys().find(|key| *key != "pull") {
            Some(key) => {
                let message =
                    "it changes nothing beside `pull = true`: nothing here starts workers of the lane";
                Err(self.defect(key, key, message))
            }
            None => Ok(()),
        }
    }

    fn limit(&self, key: &str, limit: Option<WrittenDuration>) -> Result<Option<Duration>, Defect> {
        match limit.map(WrittenDuration::duration) {
            Some(Duration::ZERO) => {
                Err(self.defect(key, key, "it is 0, so every run would be ended at once"))
            }
            limit => Ok(limit),
        }
    }

    fn template(&self, key: &str, text: &str) -> Result<Template, Defect> {
        let refuse = |wrong: NoPlace| self.defect(key, &wrong.in_braces(), wrong.message());
        Template::parse(text).map_err(refuse)
    }

    fn words(&self, key: &str, words: &[String]) -> Result<Vec<Template>, Defect> {
        words.iter().map(|word| self.template(key, word)).collect()
    }

    fn argv(&self, argv: Vec<Words>, prompt: Prompt) -> Result<Vec<Vec<Template>>, Defect> {
        let refuse = |message: &str| self.defect("argv", "argv", message);
        let program = match argv.first() {
            Some(Words::One(program)) => program,
            Some(Words::Group(_)) => {
                return Err(refuse("its first word may be left out, so there may be nothing to run"));
            }
            None => {
                let message = "it is empty, so there is nothing to run; name a program and its arguments";
                return Err(refuse(message));
            }
        };
        if program.is_empty() {
            return Err(refuse("its first word is empty; name a program"));
        }
        let mut groups = Vec::new();
        for words in argv {
            let words = match words {
                Words::One(word) => vec![word],
                Words::Group(words) => words,
            };
            let parsed: Result<Vec<_>, _> = words.iter().map(|word| self.template("argv", word)).collect();
            groups.push(parsed?);
        }
        let has_text = groups.iter().flatten().any(|word| word.has(Placeholder::PromptText));
        match (prompt, has_text) {
            (Prompt::Argument, false) => Err(refuse(
                "no word of it has {prompt_text}, so the worker would not get its prompt; add one, or set `prompt`",
            )),
            (Prompt::Stdin | Prompt::Context | Prompt::File | Prompt::BodyFile, true) => {
                Err(self.defect("argv", "{prompt_text}", "`{prompt_text}` needs prompt = \"argument\""))
            }
            (Prompt::Argument, true)
            | (Prompt::Stdin | Prompt::Context | Prompt::File | Prompt::BodyFile, false) => Ok(groups),
        }
    }

    fn env(&self, env: BTreeMap<String, String>) -> Result<BTreeMap<String, Template>, Defect> {
        env.into_iter()
            .map(|(name, value)| {
                if !is_variable(&name) {
                    let message = format!("`{name}` is not the name of a variable");
                    return Err(self.defect("env", &name, message));
                }
                if is_reserved(&name) {
                    let message = format!("`{name}` is set for every run and cannot be set by a lane");
                    return Err(self.defect("env", &name, message));
                }
                let value = self.template("env", &value)?;
                if value.has(Placeholder::PromptText) {
                    return Err(self.defect("env", &name, "a prompt is longer than a variable may be"));
                }
                Ok((name, value))
            })
            .collect()
    }

    fn additions(&self, additions: Additions) -> Result<Additions, Defect> {
        if let Some(name) = additions.secrets.keys().find(|name| !is_variable(name)) {
            return Err(self.defect("secrets", name, format!("`{name}` is not the name of a variable")));
        }
        if let Some(defect) = additions.brokers.iter().find_map(Broker::defect) {
            return Err(self.defect("broker", "[[broker]]", defect));
        }
        match additions.reserved() {
            Some(name) => {
                let message = format!("`{name}` is set for every run and cannot be a secret of a lane");
                Err(self.defect("secrets", name, message))
            }
            None => Ok(additions),
        }
    }

    fn unset(&self, unset: BTreeSet<String>) -> Result<BTreeSet<String>, Defect> {
        match unset.iter().find(|name| is_reserved(name)) {
            Some(name) => {
                let message = format!("`{name}` is set for every run and cannot be left out");
                Err(self.defect("unset", name, message))
            }
            None => Ok(unset),
        }
    }

    fn skills(&self, dir: Option<PathBuf>) -> Result<Option<PathBuf>, Defect> {
        match dir {
            Some(dir) if !is_inside(&dir) => {
                let message = format!("`{}` is not a path inside of the home of the worker", dir.display());
                Err(self.defect("skills", "skills", message))
            }
            dir => Ok(dir),
        }
    }

    fn files(&self, files: BTreeMap<PathBuf, String>) -> Result<BTreeMap<PathBuf, Template>, Defect> {
        files
            .into_iter()
            .map(|(path, text)| {
                if !is_inside(&path) {
                    let message =
                        format!("`{}` is not a path inside of the home of the worker", path.display());
                    return Err(self.defect("files", &path.to_string_lossy(), message));
                }
                Ok((path, self.template("files", &text)?))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
