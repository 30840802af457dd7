//! Reads a file that is to be installed as a profile: a profile, or an agent file of Claude Code or Gemini CLI. Settings
//! without a counterpart in profiles are reported.

use std::collections::BTreeMap;

use kernel::Profile;
use serde_json::Value;

use super::draft::Draft;
use super::front_matter::{Fault, Parts};
use super::profile::LONGEST_TEXT;
use super::settings::{Limits, Settings};
use base::time::duration::WrittenDuration;

/// Keys that profiles have and agent files of other programs lack.
const OURS: [&str; 7] = ["role", "lane", "policy", "account", "limits", "home", "hosts"];
/// Keys that Gemini's agent files have and Claude's lack.
const OF_GEMINI: [&str; 5] = ["kind", "display_name", "temperature", "max_turns", "timeout_mins"];

/// Profile that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Settings and text, with the name in the file.
    pub draft: Draft,
    /// Settings that are dropped, with the reasons.
    pub left_out: Vec<String>,
    /// True if the file is a profile already.
    pub is_profile: bool,
}

/// Reads a profile or an agent file of another program.
pub fn adopt(text: &str) -> Result<Adopted, Fault> {
    let parts = Parts::split(text)?;
    let (mut loose, no_yaml) = parts.loose_settings::<BTreeMap<String, Value>>()?;
    let is_ours = loose.keys().any(|key| OURS.contains(&key.as_str()));
    let is_theirs = loose.get("model").and_then(Value::as_str).is_some_and(is_model_of_an_agent_file);
    match Draft::parse(text) {
        // A text that parses as a profile counts as one, unless its model has a name of agent files and it has none of the
        // keys that only profiles have.
        Ok(draft) if is_ours || !is_theirs => {
            return Ok(Adopted { draft, left_out: Vec::new(), is_profile: true });
        }
        Err(fault) if is_ours => return Err(no_yaml.unwrap_or(fault)),
        Ok(_) | Err(_) => {}
    }
    let mut take = |key: &str| match loose.remove(key) {
        Some(Value::String(text)) => Some(text),
        Some(other) if !other.is_null() => Some(other.to_string()),
        _ => None,
    };
    let name = take("name");
    let description = take("description").map(|text| in_one_line(&text)).filter(|text| !text.is_empty());
    let model = take("model").filter(|model| model != "inherit");
    let minutes = take("timeout_mins").and_then(|minutes| minutes.parse::<u64>().ok());
    let of_gemini = minutes.is_some()
        || loose.keys().any(|key| OF_GEMINI.contains(&key.as_str()))
        || model.as_ref().is_some_and(|model| model.starts_with("gemini"));
    let skills = loose.remove("skills").map(|loose| names(&loose)).unwrap_or_default();
    let mut left_out: Vec<String> = loose.iter().map(|(key, value)| left_out(key, value)).collect();
    let description = description.map(|text| match text.len() {
        0..=LONGEST_TEXT => text,
        length => {
            left_out.push(format!("`description` has {length} bytes; its first {LONGEST_TEXT} are kept"));
            text[..text.floor_char_boundary(LONGEST_TEXT)].trim_end().to_owned()
        }
    });
    let lane = if of_gemini { "gemini" } else { "claude" };
    let max_runtime = minutes.map(|minutes| WrittenDuration::from_secs(minutes.saturating_mul(60)));
    let settings = Settings {
        name,
        description,
        lane: lane.parse::<Profile>().ok(),
        model,
        skills,
        limits: Limits { max_runtime, ..Limits::default() },
        ..Settings::default()
    };
    let draft = Draft { settings, prompt: parts.body.to_owned() };
    Ok(Adopted { draft, left_out, is_profile: false })
}

/// Joins the lines of a text into one. A literal `\n`, which some agent files contain, counts as a line end.
fn in_one_line(text: &str) -> String {
    let text = text.replace("\\n", " ");
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the names in a list, or in a comma-separated text.
fn names(loose: &Value) -> Vec<String> {
    let texts: Vec<&str> = match loose {
        Value::String(text) => text.split(',').collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    texts.into_iter().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns true if a model has a name that agent files of other programs use, which implies the program.
fn is_model_of_an_agent_file(model: &str) -> bool {
    ["inherit", "sonnet", "opus", "haiku"].contains(&model) || model.starts_with("gemini")
}

/// Returns the report about a key that is dropped, with the reason.
fn left_out(key: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = value.chars().filter(|c| !c.is_control()).take(80).collect();
    let why = match key {
        "tools" | "disallowedTools" | "permissionMode" | "approval_mode" => {
            "what a worker may touch is said by its policy, and which tools its program has by its lane"
        }
        "mcpServers" | "mcp_servers" => {
            "tool servers extend what a worker can reach, so the profile names them: add `mcp_servers` to it"
        }
        "temperature" | "max_turns" | "maxTurns" => {
            "the command of its lane says it, where its program has such an option"
        }
        "hooks" => "a command would be run outside of its task",
        _ => "a profile has no such key",
    };
    format!("`{key}: {short}` is not kept: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_claude_is_a_profile_on_its_lane() {
        let file = "---\nname: code-reviewer\ndescription: >\n  Reviews code.\n  Use it often.\ntools: Read, Grep, Glob\nmodel: sonnet\ncolor: red\n---\n\nYou review code.\n";
        let adopted = adopt(file).unwrap();
        assert_eq!(adopted.draft.settings.name.as_deref(), Some("code-reviewer"));
        assert_eq!(adopted.draft.settings.description.as_deref(), Some("Reviews code. Use it often."));
        assert_eq!(adopted.draft.settings.lane.unwrap().as_str(), "claude");
        assert_eq!(adopted.draft.settings.model.as_deref(), Some("sonnet"));
        assert_eq!(adopted.draft.prompt.trim(), "You review code.");
        let omissions = adopted.left_out.join("\n");
        assert!(
            omissions.contains("`color: red` is not kept") && omissions.contains("`tools: Read, Grep, Glob`"),
            "{omissions}"
        );
    }

    #[test]
    fn an_agent_of_claude_in_its_usual_form_is_read_though_it_is_no_yaml() {
        let file = "---\nname: code-reviewer\ndescription: Use this agent when code needs review. Examples: <example>Context: user: \"x\"</example>\\n\\nMore.\nskills: tidy, slow\n---\nYou review code.\n";
        let adopted = adopt(file).unwrap();
        assert_eq!(
            adopted.draft.settings.description.as_deref(),
            Some(
                "Use this agent when code needs review. Examples: <example>Context: user: \"x\"</example> More."
            )
        );
        assert_eq!(adopted.draft.settings.skills, ["tidy", "slow"]);
        assert_eq!((adopted.is_profile, adopted.left_out.len()), (false, 0), "{adopted:?}");
        let long = format!("---\nmodel: sonnet\ndescription: {}\n---\nx", "ü".repeat(LONGEST_TEXT));
        let adopted = adopt(&long).unwrap();
        assert_eq!(adopted.draft.settings.description.unwrap().len(), LONGEST_TEXT);
        assert!(adopted.left_out[0].contains("`description` has 2048 bytes"), "{:?}", adopted.left_out);
        let ours = "---\nname: ann\nlane: codex\ndescription: a: b\n---\nx\n";
        let fault = adopt(ours).unwrap_err();
        assert!(fault.line == 4 && fault.message.contains("in quotes"), "{fault:?}");
    }

    #[test]
    fn an_agent_of_gemini_is_a_profile_on_its_lane_with_its_time() {
        let file = "---\nname: auditor\nkind: local\ndescription: audits\ntools: [read_file, grep_search]\nmodel: gemini-3-pro\n\
                    temperature: 0.2\nmax_turns: 10\ntimeout_mins: 5\n---\nYou audit.\n";
        let adopted = adopt(file).unwrap();
        assert_eq!(adopted.draft.settings.lane.unwrap().as_str(), "gemini");
        assert_eq!(adopted.draft.settings.limits.max_runtime, Some(WrittenDuration::from_secs(300)));
        assert_eq!(adopted.left_out.len(), 4, "{:?}", adopted.left_out);
        assert_eq!(adopt("---\nmodel: inherit\n---\nx").unwrap().draft.settings.model, None);
    }

    #[test]
    fn a_profile_is_taken_as_it_is_and_a_fault_of_one_is_no_key_of_another_program() {
        let adopted = adopt("---\nname: ann\nlane: codex\nmodel: m\n---\nx\n").unwrap();
        assert!(adopted.is_profile && adopted.draft.settings.name.as_deref() == Some("ann"), "{adopted:?}");
        assert_eq!(adopted.draft.settings.lane.unwrap().as_str(), "codex");
        let fault = adopt("---\nname: ann\nlane: codex\nlimit: 3\n---\nx\n").unwrap_err();
        assert_eq!((fault.line, fault.key.as_deref()), (4, Some("limit")));
        assert!(adopt("no front matter").is_err());
    }
}
