//! Parses and checks the file of a profile: YAML front matter with the settings, then the role text that its workers read
//! before their task, in Markdown.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{Pool, Profile, WorkerRole};
use serde::{Deserialize, Serialize};

use super::front_matter::{Fault, Parts};
use super::home::Home;
use super::settings::Settings;
use crate::config::definitions::{Defect, Subject};
use crate::lanes::{ToolServers, servers_defect};
use base::time::duration::WrittenDuration;

/// Limit on the role text, in bytes. Role text and context of a task together fit one argument of a command (128 KiB,
/// `MAX_ARG_STRLEN` in execve(2)).
const LONGEST_PROMPT: usize = 48 << 10;
/// Limit on the skills of a profile.
const MOST_SKILLS: usize = 16;
/// Limit on the hosts of a profile.
const MOST_HOSTS: usize = 64;
/// Limit on every other text of a profile, in bytes.
pub(super) const LONGEST_TEXT: usize = 1024;

/// Checked profile: settings of its workers in addition to the lane's, and their role text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileDefinition {
    /// File of the profile.
    pub origin: PathBuf,
    /// True for a profile that is shipped with the program. A profile of the configuration replaces it.
    pub is_shipped: bool,
    pub settings: Settings,
    /// Role text, which its workers read before their task; none if the file has no text.
    pub prompt: Option<String>,
}

/// Description of a profile for people and programs: the settings of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileText {
    /// File of the profile.
    pub origin: PathBuf,
    pub description: Option<String>,
    pub role: WorkerRole,
    pub lane: Option<Profile>,
    pub model: Option<String>,
    pub policy: Option<String>,
    pub account: Option<String>,
    pub skills: Vec<String>,
    #[serde(default)]
    pub hosts: Vec<String>,
    #[serde(default)]
    pub mcp_servers: ToolServers,
    #[serde(default)]
    pub home: Home,
    pub max_runtime_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit_seconds: Option<u64>,
    pub max_running: Option<usize>,
    #[serde(default)]
    pub pools: BTreeSet<Pool>,
    pub prompt: Option<String>,
}

impl ProfileDefinition {
    /// Parses the profile `name`; `origin` is its file.
    ///
    /// # Errors
    /// A setting is unknown or unusable; the defect has its line and key.
    pub fn parse(name: &str, text: &str, origin: &Path) -> Result<Self, Defect> {
        read(name, text, origin).map_err(|fault| {
            Defect::new(Subject::Profile(name.to_owned()), origin, fault.message).at(fault.line, fault.key)
        })
    }

    /// Returns the runtime limit for tasks that set none.
    pub fn max_runtime(&self) -> Option<Duration> {
        self.settings.limits.max_runtime.map(WrittenDuration::duration)
    }

    /// Returns the longest time without progress, which replaces the lane's; none if the profile sets none.
    pub fn idle_limit(&self) -> Option<Duration> {
        self.settings.limits.idle_limit.map(WrittenDuration::duration)
    }

    /// Returns the limit on its concurrent workers; none if the profile sets none. A kept home serves one run at a time,
    /// so the limit of its profile is 1.
    pub fn max_running(&self) -> Option<usize> {
        self.settings.limits.max_running.or((self.settings.home == Home::Kept).then_some(1))
    }

    pub fn describe(&self) -> ProfileText {
        let settings = self.settings.clone();
        ProfileText {
            origin: self.origin.clone(),
            description: settings.description,
            role: settings.role,
            lane: settings.lane,
            model: settings.model,
            policy: settings.policy,
            account: settings.account,
            skills: settings.skills,
            hosts: settings.hosts.iter().map(ToString::to_string).collect(),
            mcp_servers: settings.mcp_servers,
            home: settings.home,
            max_runtime_seconds: self.max_runtime().map(|limit| limit.as_secs()),
            idle_limit_seconds: self.idle_limit().map(|limit| limit.as_secs()),
            max_running: self.max_running(),
            pools: settings.pools,
            prompt: self.prompt.clone(),
        }
    }
}

fn read(name: &str, text: &str, origin: &Path) -> Result<ProfileDefinition, Fault> {
    let parts = Parts::split(text)?;
    let settings: Settings = parts.settings()?;
    if let Some(declared_name) = settings.name.as_ref().filter(|declared_name| *declared_name != name) {
        let message = format!("it is `{declared_name}`, but the file's name is the profile's name, `{name}`");
        return Err(parts.fault("name", message));
    }
    let texts = [
        ("description", &settings.description),
        ("model", &settings.model),
        ("policy", &settings.policy),
        ("account", &settings.account),
    ];
    for (key, text) in texts {
        let Some(text) = text else { continue };
        if text.trim().is_empty() || text.len() > LONGEST_TEXT || text.contains(char::is_control) {
            let message =
                format!("it is empty, has more than {LONGEST_TEXT} bytes, or has control characters");
            return Err(parts.fault(key, message));
        }
    }
    if settings.skills.len() > MOST_SKILLS {
        return Err(parts.fault("skills", format!("it names more than {MOST_SKILLS} skills")));
    }
    if settings.hosts.len() > MOST_HOSTS {
        return Err(parts.fault("hosts", format!("it names more than {MOST_HOSTS} hosts")));
    }
    if let Some(defect) = servers_defect(&settings.mcp_servers) {
        return Err(parts.fault("mcp_servers", defect));
    }
    for (key, limit) in
        [("max_runtime", settings.limits.max_runtime), ("idle_limit", settings.limits.idle_limit)]
    {
        if limit.map(WrittenDuration::duration) == Some(Duration::ZERO) {
            return Err(parts.fault(key, "it is 0, so every run would be ended at once"));
        }
    }
    if settings.limits.max_running == Some(0) {
        return Err(parts.fault("max_running", "it is 0, so nothing would ever run"));
    }
    // Two runs at a time would overwrite each other's part of the home.
    if settings.home == Home::Kept && settings.limits.max_running.is_some_and(|most| most > 1) {
        let message = "a home that is kept is that of one run at a time, so it is 1 at most";
        return Err(parts.fault("max_running", message));
    }
    let prompt = parts.body.trim();
    if prompt.len() > LONGEST_PROMPT {
        let message = format!("its text has {} bytes; at most 48 KiB are read", prompt.len());
        return Err(Fault { line: 1, key: None, message });
    }
    let prompt = (!prompt.is_empty()).then(|| prompt.to_owned());
    Ok(ProfileDefinition { origin: origin.to_owned(), is_shipped: false, settings, prompt })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProfileDefinition, Defect> {
        ProfileDefinition::parse("ann", text, Path::new("/etc/ann.md"))
    }

    #[test]
    fn a_file_says_who_a_worker_is() {
        let ann = parse(
            "---\nname: ann\ndescription: writes\nlane: claude\nmodel: big\npolicy: strict\naccount: main\n\
             limits:\n  max_runtime: 2h\n  idle_limit: 10m\n  max_running: 3\n---\n\nYou are Ann.\n\nWrite.\n",
        )
        .unwrap();
        let limits = (ann.max_runtime(), ann.max_running());
        assert_eq!(limits, (Some(Duration::from_hours(2)), Some(3)));
        assert_eq!(ann.idle_limit(), Some(Duration::from_mins(10)));
        assert_eq!(ann.prompt.as_deref(), Some("You are Ann.\n\nWrite."));
        assert_eq!(
            (ann.settings.lane.unwrap().as_str(), ann.settings.model.as_deref()),
            ("claude", Some("big"))
        );
        let least = parse("---\ndescription: x\n---\n").unwrap();
        assert_eq!(
            (least.settings, least.prompt),
            (Settings { description: Some("x".to_owned()), ..Settings::default() }, None)
        );
        let seconds = parse("---\nlimits: {max_runtime: 90}\n---\n").unwrap();
        assert_eq!(seconds.max_runtime(), Some(Duration::from_secs(90)));
    }

    #[test]
    fn each_defect_is_named_with_its_line_and_its_key() {
        let table = [
            ("You are Ann.", "/etc/ann.md:1: it does not begin with a line of ---"),
            ("---\nname: ann\n", "/etc/ann.md:1: its front matter has no end"),
            ("---\nname: bob\n---\n", "/etc/ann.md:2 (name): it is `bob`"),
            ("---\nname: ann\nlame: claude\n---\n", "/etc/ann.md:3 (lame): unknown field `lame`"),
            ("---\nlane: two words\n---\n", "/etc/ann.md:2 (lane): "),
            (
                "---\nlimits:\n  max_runtime: soon\n---\n",
                "/etc/ann.md:3 (max_runtime): `soon` is not a duration",
            ),
            ("---\nlimits:\n  max_runtime: 0\n---\n", "/etc/ann.md:3 (max_runtime): it is 0"),
            ("---\nlimits:\n  idle_limit: 0\n---\n", "/etc/ann.md:3 (idle_limit): it is 0"),
            ("---\nlimits:\n  max_running: 0\n---\n", "/etc/ann.md:3 (max_running): it is 0"),
            ("---\nhosts: ['*']\n---\n", "/etc/ann.md:2 (hosts): `*` is not a host"),
            ("---\nmcp_servers: {board: {command: x}}\n---\n", "/etc/ann.md:2 (mcp_servers): `board` is"),
            ("---\nhome: mine\n---\n", "/etc/ann.md:2 (home): "),
            (
                "---\nhome: kept\nlimits:\n  max_running: 2\n---\n",
                "/etc/ann.md:4 (max_running): a home that is kept",
            ),
            ("---\nmodel: \"\"\n---\n", "/etc/ann.md:2 (model): it is empty"),
            ("---\nmodel: [a\n---\n", "/etc/ann.md:"),
        ];
        for (text, expected) in table {
            let defect = parse(text).unwrap_err().to_string();
            assert!(defect.starts_with(expected) && !defect.contains('\n'), "{defect}\n{text}");
        }
        let long = format!("---\nname: ann\n---\n{}", "x".repeat(49 << 10));
        assert!(parse(&long).unwrap_err().to_string().contains("48 KiB"));
    }
}
