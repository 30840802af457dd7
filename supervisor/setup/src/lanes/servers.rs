//! MCP servers that a profile gives to its agents in addition to the server of the board.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the board's server; programs prefix the names of its tools with it.
pub(super) const SERVER: &str = "board";
/// Limit on the servers of a profile.
const MOST: usize = 8;
/// Limit on a command, on each argument and on a URL, in bytes.
const LONGEST: usize = 1024;
/// Limit on the arguments, and on the variables, of a server.
const MOST_WORDS: usize = 32;

/// Servers of a profile by name.
pub type ToolServers = BTreeMap<String, ToolServer>;

/// Program or service with tools for agents, which speaks MCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ServerFile", untagged)]
pub enum ToolServer {
    /// Program that the agent's program starts, in the run and under its policy.
    Local(LocalServer),
    /// Service that the policy of the run must allow the run to reach.
    Remote(RemoteServer),
}

/// Program that speaks MCP over its standard input and output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalServer {
    pub command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of the run's variables that the program gets. A profile contains no values, which may be secret.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// Service that speaks MCP over streamable HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteServer {
    pub url: String,
}

/// A server as written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFile {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    url: Option<String>,
}

impl TryFrom<ServerFile> for ToolServer {
    type Error = &'static str;

    fn try_from(file: ServerFile) -> Result<Self, &'static str> {
        match (file.command, file.url) {
            (Some(command), None) => {
                Ok(ToolServer::Local(LocalServer { command, args: file.args, env: file.env }))
            }
            (None, Some(url)) if file.args.is_empty() && file.env.is_empty() => {
                Ok(ToolServer::Remote(RemoteServer { url }))
            }
            _ => Err("a server has a `command`, with `args` and `env`, or a `url` alone"),
        }
    }
}

/// Returns the first defect in the servers of a profile, as a message.
pub fn defect(servers: &ToolServers) -> Option<String> {
    if servers.len() > MOST {
        return Some(format!("it names more than {MOST} servers"));
    }
    servers.iter().find_map(|(name, server)| {
        let is_name = !name.is_empty()
            && name.len() <= 32
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_name {
            return Some(format!(
                "`{name}` is not a name of a server: use lower-case letters, digits and `-`, 32 at most"
            ));
        }
        if name == SERVER {
            return Some(format!("`{SERVER}` is the server of the board"));
        }
        server.defect().map(|why| format!("`{name}`: {why}"))
    })
}

impl ToolServer {
    fn defect(&self) -> Option<String> {
        let is_text = |text: &String| {
            !text.trim().is_empty() && text.len() <= LONGEST && !text.contains(char::is_control)
        };
        match self {
            ToolServer::Local(LocalServer { command, args, env }) => {
                if args.len() > MOST_WORDS || env.len() > MOST_WORDS {
                    return Some(format!("it has more than {MOST_WORDS} arguments or variables"));
                }
                if !is_text(command) || !args.iter().all(|word| word.is_empty() || is_text(word)) {
                    return Some(format!(
                        "a word is empty, has more than {LONGEST} bytes, or has control characters"
                    ));
                }
                let is_name = |name: &&String| {
                    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                };
                let wrong = env.iter().find(|name| !is_name(name));
                wrong.map(|name| {
                    format!("`{name}` is not the name of a variable; `env` has names, and secrets.NAME of the lane has the value")
                })
            }
            ToolServer::Remote(RemoteServer { url }) => {
                let is_url = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
                (!is_url || !is_text(url)).then(|| format!("`{url}` is not the address of a service"))
            }
        }
    }

    /// Returns the server on one line: the command with its arguments, or the URL.
    pub fn shown(&self) -> String {
        match self {
            ToolServer::Local(LocalServer { command, args, .. }) => {
                std::iter::once(command).chain(args).cloned().collect::<Vec<_>>().join(" ")
            }
            ToolServer::Remote(RemoteServer { url }) => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_server_is_named() {
        let read = |name: &str, text: &str| {
            let server: ToolServer = serde_json::from_str(text).unwrap();
            defect(&ToolServers::from([(name.to_owned(), server)]))
        };
        assert_eq!(read("git-hub", r#"{"command":"x","args":["",  "a"],"env":["TOKEN"]}"#), None);
        assert_eq!(read("docs", r#"{"url":"https://docs.example/mcp"}"#), None);
        for (name, text, why) in [
            ("board", r#"{"command":"x"}"#, "is the server of the board"),
            ("A b", r#"{"command":"x"}"#, "not a name of a server"),
            ("a", r#"{"command":" "}"#, "a word is empty"),
            ("a", r#"{"command":"x","env":["A=sk-1"]}"#, "not the name of a variable"),
            ("a", r#"{"url":"file:///etc"}"#, "not the address"),
        ] {
            let defect = read(name, text).unwrap();
            assert!(defect.contains(why), "{defect}");
        }
        let many = (0..9).map(|n| (format!("s{n}"), serde_json::from_str(r#"{"command":"x"}"#).unwrap()));
        assert!(defect(&many.collect()).unwrap().contains("more than 8"));
        assert!(serde_json::from_str::<ToolServer>(r#"{"command":"x","url":"https://y"}"#).is_err());
    }
}
