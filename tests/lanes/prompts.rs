//! The prompt of each built-in lane, as its program gets it.

use std::fs;
use std::path::Path;

use super::{STAND_INS, create, stand_ins};
use crate::harness::User;

/// Keeps what its program has been given, and by which way, and ends its task.
const KEEPS_ITS_PROMPT: &str = r#"
case "$*" in
*'How this run ends'*) echo argument > way; for prompt; do :; done ;;
*) echo stdin > way; prompt=$(read_prompt) ;;
esac
printf '%s\n' "$prompt" > prompt
supervisor complete --summary kept > kept
"#;

/// Puts names in the place of what is another thing in each run.
fn named(text: &str, task: &str, place: &str) -> String {
    let text = text.replace(place, "WORKSPACE").replace(task, "t_1");
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC").unwrap();
    time.replace_all(&text, "TIME").into_owned()
}

#[test]
fn each_built_in_lane_of_an_agent_gives_it_the_same_prompt_with_the_names_of_its_tools() {
    let fleet =
        stand_ins(User::current(), |one| format!("{KEEPS_ITS_PROMPT}\ncat <<'END'\n{}\nEND\n", one.well));
    let mut prompts = Vec::new();
    for one in &STAND_INS {
        let task = create(&fleet, one.lane);
        let shown = fleet.wait_for(&task, "done");
        let place = shown["task"]["workspace_path"].as_str().unwrap();
        let read = |name: &str| fs::read_to_string(Path::new(place).join(name)).unwrap();
        let text = named(&read("prompt"), &task, place);
        // Claude reads its prompt as the first message of a conversation.
        // That of Claude is the first message of a conversation.
        let text = match text.rsplit_once(r#""text":""#).and_then(|(_, rest)| rest.split_once(r#"","type""#))
        {
            Some((said, _)) => said.to_owned(),
            None => text,
        };
        prompts.push((one.lane, read("way").trim().to_owned(), text.replace(one.lane, "LANE")));
    }
    let (_, _, first) = &prompts[0];
    insta::assert_snapshot!(first, @r"
    # Task t_1: fix it

    Assignee: LANE
    Status: running
    Workspace: scratch @ WORKSPACE

    ## Body

    the parser

    # How this run ends

    The command `supervisor` speaks for this task. Before you stop, run exactly one of these. A run that stops without one has failed, whatever it did.

    - `supervisor complete --summary 'what was done'`: the work is done and you have checked it. Add `--artifact FILE` for each file to hand over.
    - `supervisor request-review --summary 'what to look at'`: it is done, and somebody has to look at it first.
    - `supervisor block --question 'what you have to know'`: a person has to decide. Add `--choice ANSWER` for each answer to choose from.
    - `supervisor block 'what is missing' --kind capability`: you need something that you cannot do or have.

    The tools of the MCP server `board` do the same without a shell: `mcp__board__kanban_complete`, `mcp__board__kanban_request_review`, `mcp__board__kanban_block`. Call one of them in place of its command. `mcp__board__kanban_show` and `mcp__board__kanban_comment` are there too.

    Nobody is there to answer while you work. What you print is kept as a log. `supervisor comment 'text'` leaves a note on the task, `supervisor context` prints your task again, `supervisor --help` has the rest.

    Work in WORKSPACE, the current directory. You may write there and in `$TMPDIR`; most else is read-only or out of reach, and so may be the network. Do not work around a refusal: block the task and name what was refused. The run is ended at TIME.
    ");
    // What another lane says is the same, but for the names of the tools.
    let others: Vec<String> = prompts
        .iter()
        .map(|(lane, way, text)| {
            let own: Vec<&str> =
                text.lines().filter(|line| !first.lines().any(|known| known == *line)).collect();
            let own = if own.is_empty() { "Nothing else.".to_owned() } else { own.join("\n") };
            format!("{lane} by {way}. {own}")
        })
        .collect();
    insta::assert_snapshot!(others.join("\n"), @r"
    claude by stdin. Nothing else.
    codex by stdin. The tools of the MCP server `board` do the same without a shell: `kanban_complete`, `kanban_request_review`, `kanban_block`. Call one of them in place of its command. `kanban_show` and `kanban_comment` are there too.
    opencode by stdin. The tools of the MCP server `board` do the same without a shell: `board_kanban_complete`, `board_kanban_request_review`, `board_kanban_block`. Call one of them in place of its command. `board_kanban_show` and `board_kanban_comment` are there too.
    gemini by stdin. The tools of the MCP server `board` do the same without a shell: `mcp_board_kanban_complete`, `mcp_board_kanban_request_review`, `mcp_board_kanban_block`. Call one of them in place of its command. `mcp_board_kanban_show` and `mcp_board_kanban_comment` are there too.
    hermes by argument. The tools of the MCP server `board` do the same without a shell: `mcp_board_kanban_complete`, `mcp_board_kanban_request_review`, `mcp_board_kanban_block`. Call one of them in place of its command. `mcp_board_kanban_show` and `mcp_board_kanban_comment` are there too.
    ");
}
