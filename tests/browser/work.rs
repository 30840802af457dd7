//! Live workers, logs, reviews and the health of the host.

use super::driver::ENTER;
use super::{fleet, visit, yard};
use crate::harness::{Repository, User};

#[test]
fn a_log_is_followed_while_its_worker_writes() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let yard = yard(&fleet);
    let go = yard.join("go");
    let script = format!(
        "echo begun; until test -e {}; do sleep 0.1; done; printf '\\033[31mred words\\033[0m\\n'; sleep 600",
        go.display()
    );
    let workspace = format!("dir:{}", yard.display());
    let task = fleet.create("writes", &script, &["--workspace", &workspace]);
    let page = visit(&fleet);
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();

    page.open(&format!("{origin}/work"));
    page.wait_text(&format!(".worker[data-task=\"{task}\"]"), "writes");
    page.click(&format!(".worker[data-task=\"{task}\"] .worker-title"));
    page.wait_text(".log", "begun");
    std::fs::write(&go, "").unwrap();
    page.wait_text(".log", "red words");
    assert!(!page.text(".log").unwrap().contains("[31m"), "colours are no text");

    page.press("/");
    page.fill(".log-search", "red words");
    page.press(ENTER);
    page.wait_text(".log-found", "1");
    fleet.cli(["cancel", &task]).ok();
    page.wait_text(".page-head", "cancelled");
}

#[test]
fn a_diff_is_read_and_a_comment_on_its_line_reaches_the_next_run() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "code");
    let script = "if supervisor context | grep -q 'too [s]hort'; then echo longer >> words; git commit -qam two; supervisor complete --summary fixed; \
                  else echo hello > words; git add words; git commit -qm one; supervisor request-review --summary 'please look'; fi";
    let task = fleet.create("writes words", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();

    page.open(&format!("{origin}/review/{task}"));
    page.wait_text(".diff-files", "hello");
    page.press("j");
    page.press("c");
    page.fill(".diff-files textarea", "too short");
    page.click(".diff-files form button.primary");
    page.wait_gone(".diff-files textarea");
    page.press("R");
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "fixed", "{shown:#}");
}

#[test]
fn the_pages_of_missions_time_and_health_show_what_the_commands_show() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("first", "echo done", &[]);
    fleet.wait_for(&task, "done");
    fleet.cli(["mission", "create", "the mission", "--assignee", "shell", "--body", "sleep 600"]).ok();
    fleet.cli(["hold", "--profile", "shell", "--reason", "for the test"]).ok();
    let page = visit(&fleet);
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();

    page.open(&format!("{origin}/missions"));
    page.wait_text("#main", "the mission");
    page.open(&format!("{origin}/timeline"));
    page.wait_text("#main", "shell");
    page.open(&format!("{origin}/health"));
    page.wait_text("#main", "for the test");
    page.is_content();
}
