//! The log of a run: followed, searched, paused, in colours, however large; and the messages to its agent.

use serde_json::Value;

use super::driver::{Browser, ENTER, ESCAPE};
use super::{fleet, visit, yard};
use crate::harness::{Fleet, User};

/// A lane whose workers are scripts that speak as Claude Code does.
const AGENT: &str = r#"argv = ["/bin/sh", "{home}/agent"]
session = "stream-json"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

/// Common functions of the scripts: `take` reads a message, `confirm` repeats it.
const WORDS: &str = r#"
take() { read -r line; }
confirm() { id=${line##*\"uuid\":\"}; echo "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"${id%%\"*}\"}"; }
take
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
"#;

/// A task that writes, each time the test puts a file into its yard, what that file has.
fn writer(fleet: &Fleet) -> (String, std::path::PathBuf) {
    let yard = yard(fleet);
    let script = format!(
        "cd {}; echo begun; n=1; while :; do until test -e $n; do sleep 0.05; done; cat $n; n=$((n+1)); done",
        yard.display()
    );
    let task = fleet.create("writes", &script, &["--workspace", &format!("dir:{}", yard.display())]);
    (task, yard)
}

/// Has the writer write something. The file is there whole or not at all.
fn write(yard: &std::path::Path, number: u32, text: &[u8]) {
    let aside = yard.join("aside");
    std::fs::write(&aside, text).unwrap();
    std::fs::rename(aside, yard.join(number.to_string())).unwrap();
}

/// Returns the number of log lines that are elements of the page.
fn rows(page: &Browser) -> u64 {
    page.count(".log-line")
}

#[test]
fn a_log_is_followed_while_its_worker_writes_and_paused_for_reading() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (task, yard) = writer(&fleet);
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);
    page.go("/work");
    page.click(&format!(".worker[data-task=\"{task}\"] .worker-title"));
    page.wait_text(".log", "begun");

    let mut many: Vec<String> = (1..=500).map(|line| format!("line {line}")).collect();
    many.push("the five hundredth\n".to_owned());
    let many = many.join("\n");
    write(&yard, 1, many.as_bytes());
    page.wait_text(".log-rows", "the five hundredth");

    page.press("p");
    page.wait_text(".log-ends .button:last-child", "Follow");
    let top = page.script("return document.querySelector('.log-scroll').scrollTop", &[]);
    write(&yard, 2, "later\n".repeat(500).as_bytes());
    page.wait_text(".log-state", "1,002 lines");
    assert_eq!(
        page.script("return document.querySelector('.log-scroll').scrollTop", &[]),
        top,
        "what is read stays"
    );

    page.press("p");
    page.wait_text(".log-ends .button:last-child", "Pause");
    page.wait_text(".log-rows", "later");
    // A look at what was before pauses it as well.
    page.press("gg");
    page.wait_text(".log-rows", "begun");
    page.wait_text(".log-ends .button:last-child", "Follow");
    page.press("G");
    page.wait_text(".log-rows", "later");
    page.wait_text(".log-ends .button:last-child", "Pause");
    fleet.cli(["cancel", &task]).ok();
    page.wait_text(".page-head", "cancelled");
    page.wait_text(".log-ends .button:last-child", "Ended");
    page.is_content();
}

#[test]
fn what_a_terminal_shows_in_colours_has_them_and_no_codes() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let script = "printf '\\033[31mred words\\033[0m plain \\033[1;42mbold on green\\033[0m \\033[38;5;208morange\\033[0m\\n\\033]0;a title\\007\\033[2Jend\\n'";
    let task = fleet.create("colours", script, &[]);
    fleet.wait_for(&task, "done");
    let page = visit(&fleet);
    page.go(&format!("/runs/{task}/1"));
    page.wait_text(".log-rows", "red words plain bold on green orange");
    let text = page.text(".log-rows").unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains("[31m") && !text.contains("a title"), "{text:?}");
    let summary = page.text(".run-error").unwrap();
    assert!(summary.contains("red words plain") && !summary.contains("[31m"), "{summary:?}");
    let look = |part: &str| -> Value {
        page.script(
            "const span = [...document.querySelectorAll('.log-line span')].find(span => span.textContent === arguments[0]);
             const style = getComputedStyle(span), plain = getComputedStyle(document.querySelector('.log-scroll'));
             return [style.color !== plain.color, style.backgroundColor !== 'rgba(0, 0, 0, 0)', Number(style.fontWeight) > 400]",
            &[part.into()],
        )
    };
    assert_eq!(look("red words"), serde_json::json!([true, false, false]));
    assert_eq!(look("bold on green"), serde_json::json!([true, true, true]));
    assert_eq!(look("orange"), serde_json::json!([true, false, false]));
    page.is_content();
}

#[test]
fn the_lines_of_an_agent_are_shown_in_words_and_as_they_were_written() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let mut lane: toml::Table = toml::from_str(AGENT).unwrap();
    let said = r#"echo '{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"I read the parser"}]}}'"#;
    let agent = format!("{WORDS}{said}; sleep 600");
    lane.insert("files".to_owned(), toml::Table::from_iter([("agent".to_owned(), agent.into())]).into());
    fleet.lane("agent", &lane.to_string());
    fleet.cli(["service", "reload"]).ok();
    let task = fleet.json(["create", "reads", "--assignee", "agent", "--body", "x"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);
    page.go(&format!("/runs/{task}/1"));
    page.wait_text(".log-rows", "I read the parser");
    assert!(!page.text(".log-rows").unwrap().contains("\"type\""));
    page.click_text(".log-ends button", "Raw");
    page.wait_text(".log-rows", "\"type\":\"assistant\"");
    page.wait(".log-ends button[aria-pressed=true]");
    page.click_text(".log-ends button", "Raw");
    page.eventually("it is in words again", |page| {
        let text = page.text(".log-rows")?;
        (text.contains("I read the parser") && !text.contains("\"type\"")).then_some(())
    });
    page.is_content();
}

#[test]
fn a_log_of_50_mib_is_read_to_both_ends_and_searched_with_few_elements() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    // A line has 64 bytes; the needle is in the first and in the last.
    let script = "echo 'needle at the start'; seq -f 'line %09.0f of a build that says much more than anybody reads' 1 820000; echo 'needle at the end'";
    let task = fleet.create("writes much", script, &[]);
    fleet.wait_for(&task, "done");
    let page = visit(&fleet);
    page.go(&format!("/runs/{task}/1"));
    page.wait_text(".log-rows", "needle at the end");
    assert!(page.text(".log-state").unwrap().contains("MiB"), "{:?}", page.text(".log-state"));
    assert!(rows(&page) < 150, "{}", rows(&page));

    page.press("gg");
    page.wait_text(".log-rows", "needle at the start");
    assert!(rows(&page) < 150, "{}", rows(&page));

    page.press("/");
    page.fill(".log-search", "needle at");
    page.press(ENTER);
    page.wait_text(".log-found", "1");
    page.click(".log-find .button.quiet");
    page.wait_text(".log-found", "(2 matches)");
    page.press("n");
    page.eventually("the match is chosen", |page| {
        page.text(".log-line.is-current").filter(|line| line.starts_with("needle at"))
    });
    let first = page.text(".log-line.is-current").unwrap();
    page.press("n");
    page.eventually("the other match is chosen", |page| {
        page.text(".log-line.is-current").filter(|line| line.starts_with("needle at") && *line != first)
    });
    assert!(rows(&page) < 150, "{}", rows(&page));
    // Scrolled through anywhere, it stays so.
    for share in [0.1, 0.37, 0.5, 0.93] {
        page.script(
            "const all = document.querySelector('.log-scroll'); all.scrollTop = all.scrollHeight * arguments[0];
             return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))",
            &[share.into()],
        );
        page.wait_text(".log-rows", "of a build that says much more");
        assert!(rows(&page) < 150, "{}", rows(&page));
    }
    page.is_content();
}

#[test]
fn a_search_ignores_case_unless_a_capital_is_typed_and_goes_both_ways() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("words", "echo Error one; echo error two; echo ok; echo ERROR three", &[]);
    fleet.wait_for(&task, "done");
    let page = visit(&fleet);
    page.go(&format!("/runs/{task}/1"));
    page.wait_text(".log-rows", "ERROR three");
    page.press("/");
    page.fill(".log-search", "error");
    page.wait_text(".log-found", "3 matches");
    assert_eq!(page.count(".log-line mark"), 3);
    page.press(ENTER);
    page.wait_text(".log-line.is-current", "Error one");
    page.press(ENTER);
    page.wait_text(".log-line.is-current", "error two");
    page.chord(super::driver::SHIFT, ENTER);
    page.wait_text(".log-line.is-current", "Error one");
    page.fill(".log-search", "ERROR");
    page.wait_text(".log-found", "1 match");
    page.fill(".log-search", "nowhere");
    page.wait_text(".log-found", "none");
    page.press(ESCAPE);
    page.eventually("the search is over", |page| (page.count(".log-line mark") == 0).then_some(()));
}

#[test]
fn a_message_reaches_the_agent_or_the_page_shows_that_it_did_not() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let mut lane: toml::Table = toml::from_str(AGENT).unwrap();
    let agent = format!("{WORDS}take; confirm; sleep 600");
    lane.insert("files".to_owned(), toml::Table::from_iter([("agent".to_owned(), agent.into())]).into());
    fleet.lane("agent", &lane.to_string());
    fleet.cli(["service", "reload"]).ok();
    let words = ["create", "listens", "--assignee", "agent", "--max-retries", "1", "--body", "the parser"];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.eventually("the agent has begun", || {
        fleet.cli(["log", &task]).stdout.contains("init").then_some(())
    });
    let page = visit(&fleet);
    page.go(&format!("/runs/{task}/1"));
    page.wait(".steer textarea");

    page.press("s");
    page.press("leave the tests alone");
    page.press(ENTER);
    page.wait_text(".sent-message:nth-child(1)", "delivered");
    page.wait_text(".sent-message:nth-child(1)", "leave the tests alone");
    page.eventually("the box is empty", |page| {
        let box_ = page.script("return document.querySelector('.steer textarea').value", &[]);
        (box_ == "").then_some(())
    });
    assert_eq!(fleet.show(&task)["messages"][0]["state"], "delivered");

    // The agent reads no second one.
    page.fill(".steer textarea", "and the docs");
    page.press(ENTER);
    page.wait_text(".sent-message:nth-child(2)", "not read yet");
    fleet.cli(["cancel", &task]).ok();
    page.wait_text(".sent-message:nth-child(2)", "not delivered");
    page.wait_text(".sent-message:nth-child(2)", "ended without reading it");
    page.wait_gone(".steer");
}

#[test]
fn a_message_is_written_from_the_page_of_workers() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let mut lane: toml::Table = toml::from_str(AGENT).unwrap();
    let agent = format!("{WORDS}take; confirm; sleep 600");
    lane.insert("files".to_owned(), toml::Table::from_iter([("agent".to_owned(), agent.into())]).into());
    fleet.lane("agent", &lane.to_string());
    fleet.cli(["service", "reload"]).ok();
    let task = fleet.json(["create", "listens", "--assignee", "agent", "--body", "x"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fleet.eventually("the agent has begun", || {
        fleet.cli(["log", &task]).stdout.contains("init").then_some(())
    });
    let page = visit(&fleet);
    page.go("/work");
    page.wait(&format!(".worker[data-task=\"{task}\"]"));
    page.press("js");
    page.wait("dialog[open] textarea");
    page.press("look at the tests");
    page.chord(super::driver::CONTROL, ENTER);
    page.wait_gone("dialog[open]");
    fleet.eventually("the agent has it", || {
        let messages = fleet.show(&task)["messages"].clone();
        (messages[0]["state"] == "delivered" && messages[0]["body"] == "look at the tests").then_some(())
    });
}
