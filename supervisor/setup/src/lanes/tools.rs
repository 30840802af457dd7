//! Writes the configuration with which an agent program starts the MCP server of the board, in the form that the program
//! reads.
//!
//! The text never contains the token of the run: the program passes its environment on to the server, or the form names the
//! variables to pass on. A lane with a form has the text as its placeholder `{tools}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::servers::{LocalServer, RemoteServer, SERVER, ToolServer, ToolServers};
use base::invocation::OF_A_RUN;

/// Time that a program waits for the reply of a tool, in seconds; long enough for a restart of the daemon.
const TOOL_SECONDS: u32 = 600;
/// Time that a program waits for the start of the server, in seconds; long enough for a loaded host.
const START_SECONDS: u32 = 60;

/// Agent program, by the form of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[clap(rename_all = "kebab-case")]
pub enum Form {
    /// The JSON of `--mcp-config`
    Claude,
    /// The value of `-c`
    Codex,
    /// The `mcp` of `OPENCODE_CONFIG_CONTENT`
    Opencode,
    /// The `mcpServers` of `settings.json`
    Gemini,
    /// The `mcp_servers` of `config.yaml`
    Hermes,
}

/// Command that starts the board's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Path of this program, or its name if it is on the search path.
    program: String,
    arguments: Vec<String>,
    /// Variables that the server needs from the environment of the agent program.
    variables: Vec<&'static str>,
}

impl Launch {
    /// Returns the server command of a worker, which finds the run in its environment.
    pub fn in_a_run(program: String) -> Self {
        Launch { program, arguments: vec!["mcp".to_owned()], variables: OF_A_RUN.to_vec() }
    }

    /// Returns the server command of an operator, with options that choose the root and the board.
    pub fn of_an_operator(program: String, mut options: Vec<String>) -> Self {
        options.push("mcp".to_owned());
        Launch { program, arguments: options, variables: Vec::new() }
    }
}

impl Form {
    /// Returns the configuration of the board's server and of the servers in `more`.
    pub fn write(self, board: &Launch, more: &ToolServers) -> String {
        let board = std::iter::once((SERVER.to_owned(), self.of_board(board)));
        let more = more.iter().map(|(name, server)| (name.clone(), self.of_profile(server)));
        let servers: serde_json::Map<String, Value> = board.chain(more).collect();
        match self {
            Form::Claude => json!({ "mcpServers": servers }).to_string(),
            // The key of the board alone leaves the other servers of the user's own configuration in place.
            Form::Codex if servers.len() == 1 => {
                format!("mcp_servers.{SERVER}={}", in_toml(&servers[SERVER]))
            }
            Form::Codex => format!("mcp_servers={}", in_toml(&Value::Object(servers))),
            // JSON is valid YAML.
            Form::Opencode | Form::Gemini | Form::Hermes => Value::Object(servers).to_string(),
        }
    }

    fn of_board(self, server: &Launch) -> Value {
        let Launch { program, arguments, variables } = server;
        let mut board = self.local(program, arguments, variables);
        match self {
            Form::Codex => {
                // `required`: an agent that cannot reach the board ends at once.
                board["required"] = true.into();
                board["startup_timeout_sec"] = START_SECONDS.into();
                board["tool_timeout_sec"] = TOOL_SECONDS.into();
            }
            Form::Opencode | Form::Gemini => board["timeout"] = (TOOL_SECONDS * 1000).into(),
            Form::Hermes => {
                board["timeout"] = TOOL_SECONDS.into();
                board["connect_timeout"] = START_SECONDS.into();
            }
            Form::Claude => {}
        }
        board
    }

    fn of_profile(self, server: &ToolServer) -> Value {
        match server {
            ToolServer::Local(LocalServer { command, args, env }) => {
                let variables: Vec<&str> = env.iter().map(String::as_str).collect();
                self.local(command, args, &variables)
            }
            ToolServer::Remote(RemoteServer { url }) => match self {
                Form::Claude => json!({ "type": "http", "url": url }),
                Form::Codex => json!({ "url": url, "default_tools_approval_mode": "approve" }),
                Form::Opencode => json!({ "type": "remote", "url": url, "enabled": true }),
                Form::Gemini => json!({ "httpUrl": url, "trust": true }),
                Form::Hermes => json!({ "url": url }),
            },
        }
    }

    /// Returns the configuration of a server that the program starts.
    fn local(self, program: &str, arguments: &[String], variables: &[&str]) -> Value {
        match self {
            // This program passes on its whole environment.
            Form::Claude => json!({ "type": "stdio", "command": program, "args": arguments }),
            // This program passes on named variables only. Without `approve` it refuses each call, because it would have
            // to ask a person first, and no person is there to answer.
            Form::Codex => json!({
                "command": program, "args": arguments, "env_vars": variables,
                "default_tools_approval_mode": "approve"
            }),
            // This program passes on its whole environment.
            Form::Opencode => {
                let command: Vec<&str> =
                    std::iter::once(program).chain(arguments.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": command, "enabled": true })
            }
            // This program passes on variables that look like secrets only if they are named; `$NAME` refers to a
            // value.
            Form::Gemini => {
                let env = by_reference(variables, |name| format!("${name}"));
                json!({ "command": program, "args": arguments, "env": env, "trust": true })
            }
            // This program passes on named variables only.
            Form::Hermes => {
                let env = by_reference(variables, |name| format!("${{{name}}}"));
                json!({ "command": program, "args": arguments, "env": env })
            }
        }
    }

    /// Returns the name under which the program's model calls a tool of the server.
    pub(super) fn name_of(self, tool: &str) -> String {
        match self {
            Form::Claude => format!("mcp__{SERVER}__{tool}"),
            Form::Codex => tool.to_owned(),
            Form::Opencode => format!("{SERVER}_{tool}"),
            Form::Gemini | Form::Hermes => format!("mcp_{SERVER}_{tool}"),
        }
    }
}

/// Returns variables whose values are references to the variables of the same name in the program's environment.
fn by_reference(variables: &[&str], reference: impl Fn(&str) -> String) -> BTreeMap<String, Value> {
    variables.iter().map(|name| ((*name).to_owned(), reference(name).into())).collect()
}

/// Formats a value as one line of TOML.
fn in_toml(value: &Value) -> String {
    fn converted(value: &Value) -> toml::Value {
        match value {
            Value::Object(fields) => toml::Value::Table(
                fields.iter().map(|(key, value)| (key.clone(), converted(value))).collect(),
            ),
            Value::Array(values) => toml::Value::Array(values.iter().map(converted).collect()),
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => number.as_i64().unwrap_or_default().into(),
            Value::String(text) => text.clone().into(),
            // TOML has no null, and no form contains one.
            Value::Null => toml::Value::String(String::new()),
        }
    }
    converted(value).to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn written(form: Form) -> String {
        form.write(&Launch::in_a_run("/srv/bin/supervisor".to_owned()), &ToolServers::new())
    }

    #[test]
    fn claude_gets_the_server_as_the_json_of_a_flag() {
        assert_snapshot!(
            written(Form::Claude),
            @r#"{"mcpServers":{"board":{"args":["mcp"],"command":"/srv/bin/supervisor","type":"stdio"}}}"#
        );
    }

    #[test]
    fn codex_gets_the_names_of_the_variables_and_needs_no_approval() {
        let text = written(Form::Codex);
        assert_snapshot!(
            text,
            @r#"mcp_servers.board={ args = ["mcp"], command = "/srv/bin/supervisor", default_tools_approval_mode = "approve", env_vars = ["SUPERVISOR_BOARD", "SUPERVISOR_SOCKET", "SUPERVISOR_TASK", "SUPERVISOR_TOKEN", "SUPERVISOR_WORKSPACE"], required = true, startup_timeout_sec = 60, tool_timeout_sec = 600 }"#
        );
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    }

    #[test]
    fn opencode_gets_the_server_as_a_local_command() {
        assert_snapshot!(
            written(Form::Opencode),
            @r#"{"board":{"command":["/srv/bin/supervisor","mcp"],"enabled":true,"timeout":600000,"type":"local"}}"#
        );
    }

    #[test]
    fn gemini_gets_the_variables_by_reference() {
        assert_snapshot!(
            written(Form::Gemini),
            @r#"{"board":{"args":["mcp"],"command":"/srv/bin/supervisor","env":{"SUPERVISOR_BOARD":"$SUPERVISOR_BOARD","SUPERVISOR_SOCKET":"$SUPERVISOR_SOCKET","SUPERVISOR_TASK":"$SUPERVISOR_TASK","SUPERVISOR_TOKEN":"$SUPERVISOR_TOKEN","SUPERVISOR_WORKSPACE":"$SUPERVISOR_WORKSPACE"},"timeout":600000,"trust":true}}"#
        );
    }

    #[test]
    fn hermes_gets_the_variables_by_reference_too() {
        assert_snapshot!(
            written(Form::Hermes),
            @r#"{"board":{"args":["mcp"],"command":"/srv/bin/supervisor","connect_timeout":60,"env":{"SUPERVISOR_BOARD":"${SUPERVISOR_BOARD}","SUPERVISOR_SOCKET":"${SUPERVISOR_SOCKET}","SUPERVISOR_TASK":"${SUPERVISOR_TASK}","SUPERVISOR_TOKEN":"${SUPERVISOR_TOKEN}","SUPERVISOR_WORKSPACE":"${SUPERVISOR_WORKSPACE}"},"timeout":600}}"#
        );
    }

    #[test]
    fn the_servers_of_a_profile_stand_beside_the_boards_in_each_form() {
        let servers = r#"{"git":{"command":"git-mcp","args":["-v"],"env":["GIT_KEY"]},"docs":{"url":"https://docs.example/mcp"}}"#;
        let servers: ToolServers = serde_json::from_str(servers).unwrap();
        let board = Launch::of_an_operator("sv".to_owned(), Vec::new());
        let written = |form: Form| form.write(&board, &servers);
        let of = |form: Form| serde_json::from_str::<Value>(&written(form)).unwrap();
        let claude = &of(Form::Claude)["mcpServers"];
        assert_eq!(claude.as_object().unwrap().len(), 3);
        assert_eq!(claude["git"], json!({ "type": "stdio", "command": "git-mcp", "args": ["-v"] }));
        assert_eq!(claude["docs"], json!({ "type": "http", "url": "https://docs.example/mcp" }));
        let codex = written(Form::Codex);
        let codex: toml::Table = codex.parse().unwrap();
        assert_eq!(codex["mcp_servers"]["git"]["env_vars"], toml::Value::Array(vec!["GIT_KEY".into()]));
        assert_eq!(codex["mcp_servers"]["docs"]["url"].as_str(), Some("https://docs.example/mcp"));
        assert_eq!(codex["mcp_servers"]["board"]["required"].as_bool(), Some(true));
        assert_eq!(of(Form::Opencode)["git"]["command"], json!(["git-mcp", "-v"]));
        assert_eq!(of(Form::Opencode)["docs"]["type"], "remote");
        assert_eq!(of(Form::Gemini)["git"]["env"]["GIT_KEY"], "$GIT_KEY");
        assert_eq!(of(Form::Gemini)["docs"]["httpUrl"], "https://docs.example/mcp");
        assert_eq!(of(Form::Hermes)["git"]["env"]["GIT_KEY"], "${GIT_KEY}");
        for form in [Form::Opencode, Form::Gemini, Form::Hermes] {
            assert_eq!(of(form).as_object().unwrap().len(), 3, "{form:?}");
        }
    }
}
