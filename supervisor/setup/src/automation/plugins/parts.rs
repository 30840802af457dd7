//! Extensions that a plugin declares: verbs of the command line, tools for agents, sections in the context of workers, and
//! notification sinks. Each has a name and a description.

use std::collections::BTreeSet;

use kernel::Profile;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Limit on the extensions of each kind.
const MOST: usize = 50;
/// Limit on a description, in characters.
const ABOUT: usize = 1000;
/// Limit on the input schema of a tool, in bytes.
const SCHEMA: usize = 16 << 10;
/// Limit on the text of a section, in bytes.
const SECTION: usize = 16 << 10;

/// Verb of the command line: `supervisor PLUGIN VERB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginVerb {
    pub name: String,
    /// Description, on one line.
    pub about: String,
}

/// MCP tool: `plugin_PLUGIN_TOOL`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginTool {
    pub name: String,
    /// Description for agents.
    pub about: String,
    /// True if workers get the tool; operators always get it.
    #[serde(default)]
    pub workers: bool,
    /// JSON Schema of the arguments; any object if omitted.
    #[serde(default)]
    pub input: Map<String, Value>,
}

impl PluginTool {
    /// Returns the input schema for MCP clients. Its type is `object` if the manifest states none, as MCP demands.
    pub fn schema(&self) -> Map<String, Value> {
        let mut schema = self.input.clone();
        schema.entry("type").or_insert_with(|| "object".into());
        schema
    }
}

/// Section that a plugin adds to the context of workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSection {
    pub name: String,
    /// Heading.
    pub title: String,
    /// Text; if omitted, the plugin is called for it at each start.
    #[serde(default)]
    pub text: Option<String>,
    /// Profiles whose workers get the section; empty for all.
    #[serde(default)]
    pub profiles: Vec<Profile>,
}

impl PluginSection {
    /// Returns true if the workers of an assignee get the section.
    pub fn is_for(&self, assignee: Option<&Profile>) -> bool {
        self.profiles.is_empty() || assignee.is_some_and(|assignee| self.profiles.contains(assignee))
    }
}

/// Kind of notification channel: `plugin = "PLUGIN.SINK"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSink {
    pub name: String,
    /// Description of the destination.
    pub about: String,
}

/// Returns the first defect of the sections.
pub(super) fn unusable_sections(sections: &[PluginSection]) -> Option<String> {
    let named = sections.iter().map(|section| (section.name.as_str(), section.title.as_str()));
    let long = sections.iter().find(|section| section.text.as_ref().is_some_and(|text| text.len() > SECTION));
    unusable("section", named.collect(), |byte| byte == b'-').or_else(|| {
        let lines = sections.iter().find(|section| section.title.contains(['\n', '\r']));
        lines.map(|section| format!("the title of the section `{}` is one line", section.name)).or_else(
            || long.map(|section| format!("the section `{}` has more than {SECTION} bytes", section.name)),
        )
    })
}

/// Returns the first defect of the sinks.
pub(super) fn unusable_sinks(sinks: &[PluginSink]) -> Option<String> {
    let named = sinks.iter().map(|sink| (sink.name.as_str(), sink.about.as_str()));
    unusable("sink", named.collect(), |byte| byte == b'-')
}

/// Returns the first defect of the verbs.
pub(super) fn unusable_verbs(verbs: &[PluginVerb]) -> Option<String> {
    let named = verbs.iter().map(|verb| (verb.name.as_str(), verb.about.as_str()));
    unusable("verb", named.collect(), |byte| byte == b'-')
}

/// Returns the first defect of the tools.
pub(super) fn unusable_tools(tools: &[PluginTool]) -> Option<String> {
    let named = tools.iter().map(|tool| (tool.name.as_str(), tool.about.as_str()));
    unusable("tool", named.collect(), |byte| byte == b'_').or_else(|| {
        let wrong = tools.iter().find(|tool| {
            let is_object = tool.input.get("type").is_none_or(|kind| kind == "object");
            let size = serde_json::to_string(&tool.input).map_or(usize::MAX, |text| text.len());
            !is_object || size > SCHEMA
        })?;
        Some(format!(
            "the input of the tool `{}` is not a schema of an object, or has more than {SCHEMA} bytes",
            wrong.name
        ))
    })
}

/// Returns the first defect in the names and descriptions of extensions of one kind. `what` is the kind, for messages;
/// `joins` returns true for the punctuation that their names may contain.
pub(super) fn unusable(what: &str, named: Vec<(&str, &str)>, joins: fn(u8) -> bool) -> Option<String> {
    let is_name = |name: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || joins(byte);
        name.len() <= 32 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(fits)
    };
    if named.len() > MOST {
        return Some(format!("it has more than {MOST} {what}s"));
    }
    let mut seen = BTreeSet::new();
    named.into_iter().find_map(|(name, about)| {
        if !is_name(name) {
            Some(format!(
                "`{name}` is not a name of a {what}: 1 to 32 lower-case letters, digits and joiners"
            ))
        } else if !seen.insert(name) {
            Some(format!("there are two {what}s `{name}`"))
        } else {
            let is_long = about.trim().is_empty() || about.chars().count() > ABOUT;
            is_long.then(|| format!("say what the {what} `{name}` does, in {ABOUT} characters at most"))
        }
    })
}
