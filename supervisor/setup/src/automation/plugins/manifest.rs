//! `plugin.toml`: a plugin's program, its events and its permitted requests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{EventKind, PluginName};
use policies::ByteSize;
use serde::{Deserialize, Serialize};

use super::names::is_ours;
use super::parts::{
    PluginSection, PluginSink, PluginTool, PluginVerb, unusable_sections, unusable_sinks, unusable_tools,
    unusable_verbs,
};
use crate::config::definitions::{Defect, Subject};
use base::time::duration::WrittenDuration;

/// Version of the plugin protocol.
pub const VERSION: u32 = 1;
/// Limit on the time of one call, in seconds.
const LONGEST: u64 = 300;
/// Limit on the words of a plugin's command.
const WORDS: usize = 64;
/// Verbs that a plugin may request: they change tasks. None concerns the daemon, its files or its users.
pub(crate) const REQUESTS: [&str; 26] = [
    "answer",
    "approve",
    "archive",
    "assign",
    "block",
    "cancel",
    "comment",
    "complete",
    "create",
    "deny",
    "edit",
    "hold",
    "link",
    "promote",
    "reassign",
    "release",
    "reopen",
    "request-changes",
    "request-review",
    "retry",
    "schedule",
    "steer",
    "swarm",
    "unarchive",
    "unblock",
    "unlink",
];
/// Limit on the tries of an event.
const TRIES: u32 = 1000;

/// Contents of `plugin.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the protocol that the plugin speaks.
    pub version: u32,
    /// Purpose, on one line.
    #[serde(default)]
    pub description: String,
    /// Program and arguments; a program without a leading slash is a file of the plugin's directory.
    pub run: Vec<String>,
    /// Time limit of one call.
    #[serde(default = "Manifest::timeout_default")]
    pub timeout: WrittenDuration,
    #[serde(default = "Manifest::policy_default")]
    pub policy: String,
    /// Number of tries of an event before the plugin is paused.
    #[serde(default = "Manifest::tries_default")]
    pub tries: u32,
    /// Pause after the first failure; each further failure doubles it, up to an hour.
    #[serde(default = "Manifest::retry_first_default")]
    pub retry_first: WrittenDuration,
    /// Limit on the plugin's state, in bytes.
    #[serde(default = "Manifest::state_limit_default")]
    pub state_limit: ByteSize,
    /// API verbs that its replies may request.
    #[serde(default)]
    pub requests: BTreeSet<String>,
    #[serde(default)]
    pub events: Vec<Events>,
    /// Verbs that it adds to the command line.
    #[serde(default)]
    pub verbs: Vec<PluginVerb>,
    /// Tools that it offers to agents.
    #[serde(default)]
    pub tools: Vec<PluginTool>,
    /// Sections that it adds to the context of workers.
    #[serde(default)]
    pub prompt: Vec<PluginSection>,
    /// Sinks that deliver messages to people.
    #[serde(default)]
    pub sinks: Vec<PluginSink>,
}

/// A group of events for a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    pub kinds: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    pub name: PluginName,
    /// Directory of the plugin.
    pub dir: PathBuf,
    pub manifest: Manifest,
}

impl Manifest {
    fn timeout_default() -> WrittenDuration {
        WrittenDuration::from_secs(10)
    }

    fn policy_default() -> String {
        "strict".to_owned()
    }

    fn tries_default() -> u32 {
        8
    }

    fn retry_first_default() -> WrittenDuration {
        WrittenDuration::from_secs(5)
    }

    fn state_limit_default() -> ByteSize {
        ByteSize(256 << 20)
    }

    /// Returns the kinds of events for the plugin.
    pub fn kinds(&self) -> BTreeSet<String> {
        self.events.iter().flat_map(|events| &events.kinds).cloned().collect()
    }

    /// Returns the first invalid key, with the reason.
    fn unusable(&self) -> Option<(&'static str, String)> {
        let seconds = self.timeout.duration().as_secs();
        if self.version != VERSION {
            let why =
                format!("this supervisor speaks version {VERSION} of the protocol, not {}", self.version);
            return Some(("version", why));
        }
        if self.run.is_empty() || self.run.len() > WORDS || self.run.iter().any(|word| word.contains('\0')) {
            return Some(("run", format!("name the program and its arguments, {WORDS} words at most")));
        }
        if !(1..=LONGEST).contains(&seconds) {
            return Some(("timeout", format!("a call takes between 1 s and {LONGEST} s")));
        }
        if !(1..=TRIES).contains(&self.tries) {
            return Some(("tries", format!("an event is tried between 1 and {TRIES} times")));
        }
        if let Some(other) = self.requests.iter().find(|verb| !REQUESTS.contains(&verb.as_str())) {
            let why = format!("a plugin cannot ask for `{other}`; it may ask for: {}", REQUESTS.join(", "));
            return Some(("requests", why));
        }
        let verbs = unusable_verbs(&self.verbs).map(|why| ("[[verbs]]", why));
        let parts = verbs
            .or_else(|| unusable_tools(&self.tools).map(|why| ("[[tools]]", why)))
            .or_else(|| unusable_sections(&self.prompt).map(|why| ("[[prompt]]", why)))
            .or_else(|| unusable_sinks(&self.sinks).map(|why| ("[[sinks]]", why)));
        self.unusable_events().or(parts)
    }

    fn unusable_events(&self) -> Option<(&'static str, String)> {
        for kind in self.events.iter().flat_map(|events| &events.kinds) {
            if kind.parse::<EventKind>().is_err() {
                return Some((
                    "kinds",
                    format!("there is no kind of event `{kind}`; `supervisor help docs/api.md` lists them"),
                ));
            }
        }
        let is_empty = |events: &Events| events.kinds.is_empty();
        self.events.iter().any(is_empty).then(|| ("kinds", "name at least one kind of event".to_owned()))
    }
}

impl Plugin {
    /// Parses the text of `plugin.toml` in the directory `dir`.
    pub fn parse(name: &str, text: &str, dir: &Path) -> Result<Self, Defect> {
        let path = dir.join("plugin.toml");
        let subject = || Subject::Plugin(name.to_owned());
        let named: PluginName = name.parse().map_err(|e| {
            Defect::new(subject(), &path, format!("{e}; the directory's name is the plugin's name"))
        })?;
        if is_ours(name) {
            let why = format!("`{name}` is a command of this program; give the directory another name");
            return Err(Defect::new(subject(), &path, why));
        }
        let manifest: Manifest =
            toml::from_str(text).map_err(|error| Defect::toml(subject(), &path, text, &error))?;
        if let Some((key, why)) = manifest.unusable() {
            let defect = Defect::new(subject(), &path, why);
            let sets = |line: &str| {
                let rest = line.trim_start().strip_prefix(key);
                rest.is_some_and(|rest| key.starts_with('[') || rest.trim_start().starts_with('='))
            };
            return Err(match text.lines().position(sets) {
                Some(line) => defect.at(line + 1, Some(key.to_owned())),
                None => defect,
            });
        }
        Ok(Plugin { name: named, dir: dir.to_owned(), manifest })
    }

    /// Returns the command of a call, with the program as an absolute path.
    pub fn command(&self) -> Vec<String> {
        let mut command = self.manifest.run.clone();
        if let Some(program) = command.first_mut()
            && !program.starts_with('/')
        {
            *program = self.dir.join(&*program).display().to_string();
        }
        command
    }

    /// Returns the MCP name of a tool.
    pub fn tool_name(&self, tool: &PluginTool) -> String {
        format!("plugin_{}_{}", self.name, tool.name)
    }

    /// Returns the directory for data that the plugin keeps between calls.
    pub fn state(&self) -> PathBuf {
        self.dir.join(super::directory_check::STATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Plugin, String> {
        Plugin::parse(name, text, Path::new("/p")).map_err(|defect| defect.to_string())
    }

    #[test]
    fn a_file_that_cannot_be_used_names_its_line_and_says_why() {
        for (name, text, expected) in [
            ("list", "version = 1\nrun = ['p']", "is a command of this program"),
            ("attach-rm", "version = 1\nrun = ['p']", "is a command of this program"),
            ("A", "version = 1\nrun = ['p']", "1 to 24 of a-z 0-9 -"),
            ("p", "version = 2\nrun = ['p']", "plugin.toml:1 (version): this supervisor speaks version 1"),
            ("p", "version = 1\nrun = []", "plugin.toml:2 (run): name the program"),
            ("p", "version = 1\nrun = ['p']\ntimeout = '1h'", "(timeout): a call takes between"),
            ("p", "version = 1\nrun = ['p']\ntries = 0", "(tries)"),
            ("p", "version = 1\nrun = ['p']\nrum = 1", "unknown field `rum`"),
            ("p", "version = 1\nrun = ['p']\nrequests = ['remove-board']", "cannot ask for `remove-board`"),
            (
                "p",
                "version = 1\nrun = ['p']\n[[events]]\nkinds = ['compleated']",
                "no kind of event `compleated`",
            ),
            ("p", "version = 1\nrun = ['p']\n[[events]]\nkinds = []", "name at least one"),
            (
                "p",
                "version = 1\nrun = ['p']\n[[verbs]]\nname = 'A'\nabout = 'x'",
                "`A` is not a name of a verb",
            ),
            (
                "p",
                "version = 1\nrun = ['p']\n[[verbs]]\nname = 'a'\nabout = ''",
                "say what the verb `a` does",
            ),
            (
                "p",
                "version = 1\nrun = ['p']\n[[tools]]\nname = 'a-b'\nabout = 'x'",
                "`a-b` is not a name of a tool",
            ),
            (
                "p",
                "version = 1\nrun = ['p']\n[[tools]]\nname = 'a'\nabout = 'x'\ninput = { type = 'string' }",
                "is not a schema of an object",
            ),
            (
                "p",
                "version = 1\nrun = ['p']\n[[tools]]\nname = 'a'\nabout = 'x'\n[[tools]]\nname = 'a'\nabout = 'x'",
                "there are two tools `a`",
            ),
        ] {
            let found = parse(name, text).unwrap_err();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn a_program_is_a_file_of_the_directory_or_an_absolute_path() {
        let command = |run: &str| parse("p", &format!("version = 1\nrun = {run}")).unwrap().command();
        assert_eq!(command("['bin/p', 'x']"), ["/p/bin/p", "x"]);
        assert_eq!(command("['/usr/bin/env', 'x']"), ["/usr/bin/env", "x"]);
    }
}
