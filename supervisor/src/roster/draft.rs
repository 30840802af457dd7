//! A profile that is yet to be written: its file, from what somebody says of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kernel::{Pool, Profile, WorkerRole};
use policies::HostRule;

use super::home::Home;
use crate::lanes::{ToolServer, ToolServers};
use crate::time::duration::WrittenDuration;

/// What a new profile is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) description: Option<String>,
    pub(crate) role: WorkerRole,
    pub(crate) lane: Option<Profile>,
    pub(crate) model: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) skills: Vec<String>,
    pub(crate) hosts: BTreeSet<HostRule>,
    pub(crate) servers: ToolServers,
    pub(crate) home: Home,
    pub(crate) max_runtime: Option<WrittenDuration>,
    pub(crate) idle_limit: Option<WrittenDuration>,
    pub(crate) max_running: Option<usize>,
    pub(crate) pools: BTreeSet<Pool>,
    pub(crate) prompt: String,
}

impl Draft {
    /// What it lets its workers do that another one does not, for a person who takes a file from elsewhere.
    pub(crate) fn grants(&self) -> Vec<String> {
        let mut grants = Vec::new();
        if let Some(policy) = &self.policy {
            grants.push(format!("its tasks that name no policy have `{policy}`"));
        }
        if !self.hosts.is_empty() {
            let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
            grants.push(format!("its workers reach {}, where their policy has a proxy", hosts.join(", ")));
        }
        let server = |(name, server): (&String, &ToolServer)| {
            format!("its workers have the tools of `{name}`: {}", server.shown())
        };
        grants.extend(self.servers.iter().map(server));
        grants
    }

    /// The text of the file of the profile `name`.
    pub(crate) fn text(&self, name: &str) -> String {
        let mut yaml = format!("name: {}\n", quoted(name));
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _infallible = writeln!(yaml, "{key}: {}", quoted(value));
            }
        };
        put("description", self.description.as_deref());
        put("role", Some(self.role.as_str()).filter(|_| self.role != WorkerRole::Worker));
        put("lane", self.lane.as_ref().map(Profile::as_str));
        put("model", self.model.as_deref());
        put("policy", self.policy.as_deref());
        put("account", self.account.as_deref());
        if !self.skills.is_empty() {
            let names: Vec<String> = self.skills.iter().map(|name| quoted(name)).collect();
            let _infallible = writeln!(yaml, "skills: [{}]", names.join(", "));
        }
        if !self.hosts.is_empty() {
            let hosts: Vec<String> = self.hosts.iter().map(|host| quoted(&host.to_string())).collect();
            let _infallible = writeln!(yaml, "hosts: [{}]", hosts.join(", "));
        }
        if !self.servers.is_empty() {
            // JSON is YAML too.
            let _infallible = writeln!(yaml, "mcp_servers: {}", serde_json::json!(self.servers));
        }
        if self.home == Home::Kept {
            yaml.push_str("home: kept\n");
        }
        if !self.pools.is_empty() {
            let names: Vec<String> = self.pools.iter().map(|pool| quoted(pool.as_str())).collect();
            let _infallible = writeln!(yaml, "pools: [{}]", names.join(", "));
        }
        if self.max_runtime.is_some() || self.idle_limit.is_some() || self.max_running.is_some() {
            yaml.push_str("limits:\n");
        }
        if let Some(limit) = self.max_runtime {
            let _infallible = writeln!(yaml, "  max_runtime: {limit}");
        }
        if let Some(limit) = self.idle_limit {
            let _infallible = writeln!(yaml, "  idle_limit: {limit}");
        }
        if let Some(most) = self.max_running {
            let _infallible = writeln!(yaml, "  max_running: {most}");
        }
        let prompt = self.prompt.trim();
        let gap = if prompt.is_empty() { "" } else { "\n" };
        format!("---\n{yaml}---\n{gap}{prompt}{gap}")
    }
}

/// A text as YAML has it: a plain word as it is, and anything else as a string of JSON, which is one of YAML as well.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text);
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Persona;
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let texts =
            ["plain", "two: words", "- x", "\"quoted\"", "true", "12", "# no comment", "ünïcode", "a\\b"];
        for text in texts {
            let draft = Draft {
                description: Some(text.to_owned()),
                lane: Some("shell".parse().unwrap()),
                model: Some(text.to_owned()),
                max_runtime: Some(WrittenDuration::from_secs(90)),
                idle_limit: Some(WrittenDuration::from_secs(70)),
                max_running: Some(2),
                skills: vec![text.to_owned(), "tidy".to_owned()],
                hosts: ["a.example:443".parse().unwrap()].into(),
                servers: serde_json::from_value(serde_json::json!({ "git": { "command": text } })).unwrap(),
                home: Home::Login,
                pools: ["gpu".parse().unwrap()].into(),
                prompt: format!("{text}\n---\n{text}"),
                ..Draft::default()
            };
            let written = draft.text("ann");
            let read = Persona::parse("ann", &written, Path::new("ann.md")).unwrap();
            assert_eq!(read.description.as_deref(), Some(text), "{written}");
            assert_eq!((&read.skills, &read.hosts), (&draft.skills, &draft.hosts), "{written}");
            assert_eq!(read.servers, draft.servers, "{written}");
            assert_eq!(read.model.as_deref(), Some(text), "{written}");
            assert_eq!(read.prompt, Some(draft.prompt), "{written}");
            assert_eq!((read.max_runtime.unwrap().as_secs(), read.max_running), (90, Some(2)));
            assert_eq!(read.pools, draft.pools, "{written}");
            assert_eq!(read.idle_limit.unwrap().as_secs(), 70);
        }
        assert_eq!(Draft::default().text("ann"), "---\nname: ann\n---\n");
    }
}
