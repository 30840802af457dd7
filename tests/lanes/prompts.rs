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
        let text = match one.lane {
            "claude" => {
                let line = text.rsplit_once(r#""text":""#).map_or(text.as_str(), |(_, text)| text);
                line.split_once("\"}").map_or(line, |(text, _)| text).to_owned()
            }
            _ => text,
        };
        prompts.push((one.lane, read("way").trim().to_owned(), text.replace(one.lane, "LANE")));
    }
    let (_, _, first) = &prompts[0];
    insta::assert_snapshot!(first, @"");
    // What another lane says is the same, but for the names of the tools.
    let others: Vec<String> = prompts
        .iter()
        .map(|(lane, way, text)| {
            let own = text.lines().filter(|line| !first.lines().any(|known| known == *line));
            format!("{lane} by {way}\n{}", own.collect::<Vec<_>>().join("\n"))
        })
        .collect();
    insta::assert_snapshot!(others.join("\n\n"), @"");
}
