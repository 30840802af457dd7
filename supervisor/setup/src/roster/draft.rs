//! Composes the file of a new profile.

use std::fmt::Write as _;

use kernel::{Profile, WorkerRole};

use super::front_matter::{Fault, Parts};
use super::home::Home;
use super::settings::Settings;
use crate::lanes::ToolServer;

/// Contents of a new profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub settings: Settings,
    pub prompt: String,
}

impl Draft {
    /// Parses the file of a profile that may get another name here.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let parts = Parts::split(text)?;
        Ok(Draft { settings: parts.settings()?, prompt: parts.body.to_owned() })
    }

    /// Lists the rights that it grants its workers, for a person who installs a file from elsewhere.
    pub fn grants(&self) -> Vec<String> {
        let mut grants = Vec::new();
        if let Some(policy) = &self.settings.policy {
            grants.push(format!("its tasks that name no policy have `{policy}`"));
        }
        if !self.settings.hosts.is_empty() {
            let hosts: Vec<String> = self.settings.hosts.iter().map(ToString::to_string).collect();
            grants.push(format!("its workers reach {}, where their policy has a proxy", hosts.join(", ")));
        }
        let server = |(name, server): (&String, &ToolServer)| {
            format!("its workers have the tools of `{name}`: {}", server.shown())
        };
        grants.extend(self.settings.mcp_servers.iter().map(server));
        grants
    }

    /// Returns the text of the file for the profile `name`.
    pub fn text(&self, name: &str) -> String {
        let settings = &self.settings;
        let limits = &settings.limits;
        let mut yaml = format!("name: {}\n", quoted(name));
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _infallible = writeln!(yaml, "{key}: {}", quoted(value));
            }
        };
        put("description", settings.description.as_deref());
        put("role", Some(settings.role.as_str()).filter(|_| settings.role != WorkerRole::Worker));
        put("lane", settings.lane.as_ref().map(Profile::as_str));
        put("model", settings.model.as_deref());
        put("policy", settings.policy.as_deref());
        put("account", settings.account.as_deref());
        if !settings.skills.is_empty() {
            let names: Vec<String> = settings.skills.iter().map(|name| quoted(name)).collect();
            let _infallible = writeln!(yaml, "skills: [{}]", names.join(", "));
        }
        if !settings.hosts.is_empty() {
            let hosts: Vec<String> = settings.hosts.iter().map(|host| quoted(&host.to_string())).collect();
            let _infallible = writeln!(yaml, "hosts: [{}]", hosts.join(", "));
        }
        if !settings.mcp_servers.is_empty() {
            // JSON is valid YAML.
            let _infallible = writeln!(yaml, "mcp_servers: {}", serde_json::json!(settings.mcp_servers));
        }
        if settings.home == Home::Kept {
            yaml.push_str("home: kept\n");
        }
        if !settings.pools.is_empty() {
            let names: Vec<String> = settings.pools.iter().map(|pool| quoted(pool.as_str())).collect();
            let _infallible = writeln!(yaml, "pools: [{}]", names.join(", "));
        }
        if limits.max_runtime.is_some() || limits.idle_limit.is_some() || limits.max_running.is_some() {
            yaml.push_str("limits:\n");
        }
        if let Some(limit) = limits.max_runtime {
            let _infallible = writeln!(yaml, "  max_runtime: {limit}");
        }
        if let Some(limit) = limits.idle_limit {
            let _infallible = writeln!(yaml, "  idle_limit: {limit}");
        }
        if let Some(most) = limits.max_running {
            let _infallible = writeln!(yaml, "  max_running: {most}");
        }
        let prompt = self.prompt.trim();
        let gap = if prompt.is_empty() { "" } else { "\n" };
        format!("---\n{yaml}---\n{gap}{prompt}{gap}")
    }
}

/// Quotes a text for YAML: a plain word stays, any other text becomes a JSON string, which is valid YAML.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text);
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::ProfileDefinition;
    use super::super::settings::Limits;
    use super::*;
    use base::time::duration::WrittenDuration;

    #[test]
    fn what_is_written_is_read_back() {
        let texts =
            ["plain", "two: words", "- x", "\"quoted\"", "true", "12", "# no comment", "ünïcode", "a\\b"];
        for text in texts {
            let settings = Settings {
                description: Some(text.to_owned()),
                lane: Some("shell".parse().unwrap()),
                model: Some(text.to_owned()),
                limits: Limits {
                    max_runtime: Some(WrittenDuration::from_secs(90)),
                    idle_limit: Some(WrittenDuration::from_secs(70)),
                    max_running: Some(2),
                },
                skills: vec![text.to_owned(), "tidy".to_owned()],
                hosts: ["a.example:443".parse().unwrap()].into(),
                mcp_servers: serde_json::from_value(serde_json::json!({ "git": { "command": text } }))
                    .unwrap(),
                home: Home::Login,
                pools: ["gpu".parse().unwrap()].into(),
                ..Settings::default()
            };
            let draft = Draft { settings, prompt: format!("{text}\n---\n{text}") };
            let written = draft.text("ann");
            let read = ProfileDefinition::parse("ann", &written, Path::new("ann.md")).unwrap();
            assert_eq!(read.prompt.as_ref(), Some(&draft.prompt), "{written}");
            let named = Settings { name: Some("ann".to_owned()), ..draft.settings };
            assert_eq!(read.settings, named, "{written}");
        }
        assert_eq!(Draft::default().text("ann"), "---\nname: ann\n---\n");
    }
}
