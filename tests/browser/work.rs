//! Live workers: what they use and the time they have left, and what a person does to them by keys.

use super::driver::{CONTROL, ENTER, ESCAPE};
use super::{card, fleet, visit};
use crate::harness::{Fleet, User};

/// A lane whose workers are scripts that speak as Claude Code does.
const AGENT: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
"#;

/// First output of such a script: its use of tokens.
const USAGE: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'
echo '{"type":"assistant","message":{"id":"a","model":"large","usage":{"input_tokens":12000,"output_tokens":345}}}'
"#;

/// The selector of the row of a worker.
fn row(task: &str) -> String {
    format!(".worker[data-task=\"{task}\"]")
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    text.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?.parse().ok()
}

/// A worker of the shell lane that runs.
fn running(fleet: &Fleet, title: &str) -> String {
    let task = fleet.create(title, "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    task
}

#[test]
fn a_worker_is_shown_with_what_it_uses_and_the_time_it_has_left() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("agent", AGENT);
    fleet.cli(["service", "reload"]).ok();
    let script = format!(
        "{USAGE}supervisor heartbeat --note 'reads the parser'; while :; do seq 20000 >/dev/null; sleep 0.02; done"
    );
    let words = ["create", "busy", "--assignee", "agent", "--max-runtime", "1h", "--body", &script];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);
    page.go("/work");

    let cell = |name: &str| format!("{} .worker-{name} .worker-value", row(&task));
    page.wait_text(&format!("{} .worker-note", row(&task)), "reads the parser");
    page.wait_text(&cell("tokens"), "12.3k");
    page.eventually("its processor time is measured", |page| {
        let text = page.text(&cell("cpu"))?;
        (text.ends_with('%') && number(&text)? > 0.0).then_some(())
    });
    page.eventually("its memory is shown", |page| {
        number(&page.text(&cell("memory"))?).filter(|size| *size > 0.0)
    });
    page.eventually("the time that is left is less than its limit", |page| {
        let text = page.text(&cell("left"))?;
        (text.contains("59m") || text.contains("58m") || number(&text)? < 59.0).then_some(())
    });
    let bar = page.script(
        "const bar = document.querySelector(arguments[0]); return bar.getAttribute('aria-valuetext') ?? bar.getAttribute('aria-label')",
        &[format!("{} .worker-left .meter", row(&task)).into()],
    );
    assert!(bar.as_str().is_some_and(|text| text.contains("left")), "{bar}");
    page.wait_text(".stats", "1 of ");

    fleet.cli(["cancel", &task]).ok();
    page.wait_gone(&row(&task));
    page.wait_text(".work-page .empty", "Nothing runs now");
    page.is_content();
}

#[test]
fn how_a_worker_is_stands_in_its_row_and_on_its_card() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (silent, lively) = (running(&fleet, "silent"), running(&fleet, "lively"));
    // Eleven minutes without progress, as the board has it.
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    board.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let back = "UPDATE task_runs SET last_heartbeat_at = \
                (SELECT started_at FROM task_runs WHERE task_id = ?1) - 660000000 WHERE task_id = ?1";
    assert_eq!(board.execute(back, [&silent]).unwrap(), 1);
    drop(board);
    let page = visit(&fleet);
    page.wait_text(&format!("{} .card-wait.broken", card(&silent)), "quiet");
    assert!(!page.text(&card(&lively)).unwrap().contains("quiet"));

    page.go("/work");
    let health = |task: &str| format!("{} .worker-health", row(task));
    page.wait_text(&health(&lively), "healthy");
    page.wait_text(&format!("{}.chip[data-kind=warn]", health(&silent)), "quiet");
    let title = page.script("return document.querySelector(arguments[0]).title", &[health(&silent).into()]);
    assert!(title.as_str().is_some_and(|title| title.starts_with("No progress for 11m")), "{title}");
    page.is_content();
}

#[test]
fn a_count_in_the_queue_leads_to_its_column() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parked = fleet.create("parked", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    for (path, link) in [("/work", ".stat-count"), ("/health", ".queue-count")] {
        // So narrow that a column has to be scrolled to.
        page.resize(700, 800);
        page.go(path);
        page.click(&format!("{link}[href*=blocked]"));
        page.wait_address("/board?column=blocked", true);
        page.wait(&card(&parked));
        page.eventually("the column is in sight", |page| {
            let there = page.script(
                "const {left, right} = document.querySelector(arguments[0]).getBoundingClientRect(); return left >= 0 && right <= innerWidth",
                &[super::column("blocked").into()],
            );
            (there == true).then_some(())
        });
    }
    page.is_content();
}

#[test]
fn a_task_that_waits_is_shown_with_the_reason() {
    let Some(fleet) = fleet(User::current(), "[limits]\nmax_running = 1\n") else { return };
    let first = running(&fleet, "takes the place");
    let second = fleet.create("has no place", "true", &[]);
    let page = visit(&fleet);
    page.go("/work");
    page.wait_text(&format!(".waiting[data-task=\"{second}\"]"), "1 of 1");
    page.wait_text(".stat-slots", "1 of 1 taken");
    let child = fleet.create("comes after", "true", &["--parent", &first]);
    let reason = format!(".waiting[data-task=\"{child}\"]");
    page.wait_text(&reason, "Waits for takes the place (running)");
    assert!(!page.text(&reason).unwrap().contains(&first), "a title needs no id");
    fleet.cli(["cancel", &first]).ok();
    page.wait_gone(&format!(".waiting[data-task=\"{second}\"]"));
}

#[test]
fn what_is_held_is_seen_at_a_glance_with_its_end() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    page.go("/work");
    page.wait_text(".stat-holds", "none");
    fleet.cli(["hold", "--account", "claude-1", "--until", "2h", "--reason", "its limit is reached"]).ok();
    page.wait_text(".stat-holds", "account claude-1, until");
    fleet.cli(["release", "--account", "claude-1"]).ok();
    page.wait_text(".stat-holds", "none");
}

#[test]
fn workers_are_opened_killed_and_handed_off_by_keys_alone() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.cli(["profile", "create", "second", "--lane", "shell"]).ok();
    let (one, two) = (running(&fleet, "one"), running(&fleet, "two"));
    let page = visit(&fleet);
    page.press("g");
    page.press("w");
    page.wait(&row(&one));
    page.wait(&row(&two));

    page.press("jj");
    page.wait(&format!("{}.is-chosen", row(&two)));
    page.press("e");
    page.wait_text("#drawer", &two);
    page.press(ESCAPE);
    page.wait_gone("#drawer");
    page.press("k");
    page.wait(&format!("{}.is-chosen", row(&one)));

    // The lane takes no messages, and the page shows it.
    page.press("s");
    page.wait_text("#toasts", "takes no messages");

    page.press("o");
    page.wait_text("dialog[open] h2", "Hand off");
    page.press("second");
    page.chord(CONTROL, ENTER);
    page.wait_gone("dialog[open]");
    fleet.eventually("it has another profile", || {
        (fleet.show(&one)["task"]["assignee"] == "second").then_some(())
    });

    page.eventually("the other one is chosen", |page| {
        page.press("j");
        page.sees(&format!("{}.is-chosen", row(&two))).then_some(())
    });
    page.press("K");
    page.wait_text("dialog[open] h2", "Kill");
    assert_eq!(fleet.status_of(&two), "running", "nothing is killed before it is confirmed");
    page.press("it loops");
    page.press(ENTER);
    let shown = fleet.wait_for(&two, "blocked");
    assert!(shown["comments"].to_string().contains("it loops"), "{shown:#}");
    page.wait_gone(&row(&two));
    page.is_content();
}

#[test]
fn the_daemon_is_nudged_by_a_key_on_the_board_and_on_the_page_of_workers() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("there", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&task));
    let asked = "return performance.getEntriesByType('resource').filter(one => one.name.endsWith('/api/v1/dispatch')).length";
    for path in ["/board", "/work"] {
        page.go(path);
        page.wait("#connection[data-state=live]");
        page.wait("#main h1, #main .board");
        page.eventually("the daemon is nudged", |page| {
            page.press("n");
            page.script(asked, &[]).as_u64().filter(|asked| *asked > 0)
        });
        page.wait_text("#toasts", "The daemon looks for tasks to start");
    }
}
