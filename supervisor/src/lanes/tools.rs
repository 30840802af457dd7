//! The configuration that hands the board's server to an agent program, in the form that the program reads.
//!
//! It holds no token: the program passes the variables of the run on, or the form names them. A lane that names a form has the
//! text as `{tools}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::invocation::OF_A_RUN;

/// The name of the server; programs put it before the names of the tools.
pub(super) const SERVER: &str = "board";
/// How long a program waits for a tool: a daemon that restarts takes less.
const TOOL_SECONDS: u32 = 600;
/// How long a program waits for the server to start, on a host under load.
const START_SECONDS: u32 = 60;

/// A program, by the form of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[clap(rename_all = "kebab-case")]
pub(crate) enum Form {
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

/// How the server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The path of this program, or its name where it is found by that.
    program: String,
    /// Its arguments.
    arguments: Vec<String>,
    /// The variables that it needs from the environment of the agent program.
    variables: Vec<&'static str>,
}

impl Launch {
    /// The server of a worker: the run is in the environment.
    pub(crate) fn in_a_run(program: String) -> Self {
        Launch { program, arguments: vec!["mcp".to_owned()], variables: OF_A_RUN.to_vec() }
    }

    /// The server of an operator, with the options that choose the root and the board.
    pub(crate) fn of_an_operator(program: String, mut options: Vec<String>) -> Self {
        options.push("mcp".to_owned());
        Launch { program, arguments: options, variables: Vec::new() }
    }
}

impl Form {
    /// Writes the configuration that has this server and no other.
    pub(crate) fn write(self, server: &Launch) -> String {
        let Launch { program, arguments, variables } = server;
        match self {
            // The variables of the program itself are passed on.
            Form::Claude => {
                let server = json!({ "type": "stdio", "command": program, "args": arguments });
                json!({ "mcpServers": { SERVER: server } }).to_string()
            }
            Form::Codex => format!("mcp_servers.{SERVER}={}", codex(server)),
            // The same.
            Form::Opencode => {
                let command: Vec<&String> = std::iter::once(program).chain(arguments).collect();
                let timeout = TOOL_SECONDS * 1000;
                json!({ SERVER: { "type": "local", "command": command, "enabled": true, "timeout": timeout } })
                    .to_string()
            }
            // Variables that look like secrets are passed on only where they are named; `$NAME` is the value of one.
            Form::Gemini => {
                let env = by_reference(variables, |name| format!("${name}"));
                let timeout = TOOL_SECONDS * 1000;
                let server = json!({
                    "command": program, "args": arguments, "env": env, "trust": true, "timeout": timeout
                });
                json!({ SERVER: server }).to_string()
            }
            // It passes on what is named here alone. JSON is YAML too.
            Form::Hermes => {
                let env = by_reference(variables, |name| format!("${{{name}}}"));
                let server = json!({
                    "command": program, "args": arguments, "env": env,
                    "timeout": TOOL_SECONDS, "connect_timeout": START_SECONDS
                });
                json!({ SERVER: server }).to_string()
            }
        }
    }

    /// The name under which the program's model calls a tool of the server.
    pub(super) fn name_of(self, tool: &str) -> String {
        match self {
            Form::Claude => format!("mcp__{SERVER}__{tool}"),
            Form::Codex => tool.to_owned(),
            Form::Opencode => format!("{SERVER}_{tool}"),
            Form::Gemini | Form::Hermes => format!("mcp_{SERVER}_{tool}"),
        }
    }
}

/// Variables whose values are those that the program has itself.
fn by_reference(variables: &[&str], reference: impl Fn(&str) -> String) -> BTreeMap<String, Value> {
    variables.iter().map(|name| ((*name).to_owned(), reference(name).into())).collect()
}

/// The table of a server as a value in one line.
fn codex(server: &Launch) -> String {
    let texts = |texts: Vec<String>| toml::Value::Array(texts.into_iter().map(toml::Value::String).collect());
    let mut table = toml::Table::new();
    table.insert("command".to_owned(), server.program.clone().into());
    table.insert("args".to_owned(), texts(server.arguments.clone()));
    // It passes on what is named here alone.
    let names = server.variables.iter().map(|name| (*name).to_owned()).collect();
    table.insert("env_vars".to_owned(), texts(names));
    // Without it each call is refused, because nobody is there to approve it.
    table.insert("default_tools_approval_mode".to_owned(), "approve".into());
    // An agent that cannot reach the board ends at once.
    table.insert("required".to_owned(), true.into());
    table.insert("startup_timeout_sec".to_owned(), i64::from(START_SECONDS).into());
    table.insert("tool_timeout_sec".to_owned(), i64::from(TOOL_SECONDS).into());
    toml::Value::Table(table).to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn written(form: Form) -> String {
        form.write(&Launch::in_a_run("/srv/bin/supervisor".to_owned()))
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
}
