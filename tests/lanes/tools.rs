//! The board's tools reach an agent in the form of its program, and its prompt names them.

use super::{STAND_INS, create, stand_ins};
use crate::harness::User;

/// Finds the server where the program of its name would, starts it with the variables that this would pass on, and calls the
/// tool that its prompt names.
const CALLS_A_TOOL: &str = r#"
case "$*" in *'How this run ends'*) prompt=$* ;; *) prompt=$(read_prompt) ;; esac
case ${0##*/} in
claude) config=$(cat "$(printf '%s\n' "$@" | grep 'board.json')") ;;
codex) config=$(printf '%s\n' "$@" | grep '^mcp_servers') ;;
opencode) config=$OPENCODE_CONFIG_CONTENT ;;
gemini) config=$(cat "$HOME/.gemini/settings.json") ;;
hermes) config=$(cat "$HOME/.hermes/config.yaml") ;;
esac
server=$(printf '%s' "$config" | grep -o '"[^"]*/supervisor"' | tr -d '"')
tool=$(printf '%s\n' "$prompt" | grep -o '[a-z_]*kanban_complete' | head -n 1)
[ -n "$tool" ] || exit 9
set --
case ${0##*/} in codex | gemini | hermes)
    # Each of them passes these on too.
    set -- -i PATH="$PATH" HOME="$HOME"
    for name in $(printf '%s' "$config" | grep -o 'SUPERVISOR_[A-Z]*' | sort -u); do
        eval "set -- \"\$@\" $name=\"\$$name\""
    done ;;
esac
answers=$TMPDIR/answers
: > "$answers"
{
    printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}'
    printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    printf '%s\n' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"kanban_complete","arguments":{"summary":"by '"$tool"'"}}}'
    until grep -q '"id":2' "$answers"; do sleep 0.1; done
} | env "$@" "$server" mcp > "$answers"
"#;

#[test]
fn an_agent_completes_its_task_through_the_server_that_its_configuration_names() {
    for user in User::all() {
        let fleet = stand_ins(user, |one| format!("{CALLS_A_TOOL}\ncat <<'END'\n{}\nEND\n", one.well));
        let tasks: Vec<String> = STAND_INS.iter().map(|one| create(&fleet, one.lane)).collect();
        for (one, task) in STAND_INS.iter().zip(&tasks) {
            let tool = match one.lane {
                "claude" => "mcp__board__kanban_complete",
                "codex" => "kanban_complete",
                "opencode" => "board_kanban_complete",
                _ => "mcp_board_kanban_complete",
            };
            let shown = fleet.wait_for(task, "done");
            assert_eq!(shown["latest_summary"], format!("by {tool}"), "{}: {shown:#}", one.lane);
        }
    }
}
