//! A newcomer, who has read nothing: opens the board by `supervisor dashboard --open`, answers a question, approves a diff, and finds why a
//! task waits. What is clicked on is named by the words that are on the page.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::driver::Browser;
use super::fleet;
use crate::harness::{Fleet, Repository, User};

/// Returns the address that begins the session: `supervisor dashboard --open` gives it to the browser in `BROWSER`.
fn opened(fleet: &Fleet) -> String {
    let (program, given) = (fleet.home().join("browser"), fleet.home().join("given"));
    fs::write(
        &program,
        format!("#!/bin/sh\nprintf '%s' \"$1\" > {0}.new; mv {0}.new {0}\n", given.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fleet.give(&program);
    let mut command = fleet.command(["dashboard", "--open"]);
    command.env("BROWSER", &program).env("DISPLAY", ":0");
    crate::harness::Output::of(&mut command).ok();
    fleet.eventually("the browser is started", || fs::read_to_string(&given).ok())
}

/// Clicks on the control that has these words on it.
#[track_caller]
fn click_on(page: &Browser, words: &str) {
    page.eventually(&format!("there is a control {words:?}"), |page| {
        let found = page.script(
            "const all = [...document.querySelectorAll('button, a')].filter(one => one.textContent.trim() === arguments[0] && one.checkVisibility() && !one.disabled);
             all[0]?.click(); return all.length",
            &[words.into()],
        );
        (found.as_u64()? > 0).then_some(())
    });
}

#[test]
fn a_newcomer_answers_approves_and_finds_why_a_task_waits() {
    let Some(fleet) = fleet(User::current(), "[limits]\nper_profile = 1\n") else { return };
    let script = "test -e asked || { touch asked; supervisor ask 'Which database?' --choice SQLite --choice PostgreSQL; exit; }; \
                  supervisor complete --summary \"$(supervisor context | grep -o PostgreSQL | head -1)\"";
    let asks = fleet.create("choose a database", script, &[]);
    fleet.wait_for(&asks, "blocked");
    let repository = Repository::new(&fleet, "shop");
    let script = "echo 'rate = 5' > limits; git add limits; git commit -qm one; supervisor request-review --summary 'a limit of five'";
    let review = fleet.create("limit the rate", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&review, "review");
    let first = fleet.create("import the books", "sleep 600", &[]);
    fleet.wait_for(&first, "running");
    let after = fleet.create("count the books", "true", &["--parent", &first]);
    fleet.create("check the prices", "true", &["--initial-status", "blocked"]);

    let page = Browser::start();
    page.open(&opened(&fleet));
    page.wait_text("#main", "Which database?");
    shot(&page, "1-board");
    page.wait_text(&format!(".card[data-task=\"{after}\"]"), "import the books");

    click_on(&page, "PostgreSQL");
    page.eventually("the question is gone", |page| {
        (!page.text(".board")?.contains("Which database?")).then_some(())
    });
    shot(&page, "2-answered");

    click_on(&page, "Diff");
    page.wait_text("#main", "rate = 5");
    shot(&page, "3-diff");
    click_on(&page, "Approve");
    page.wait("dialog[open]");
    shot(&page, "4-confirm");
    page.click("dialog[open] .primary");
    fleet.wait_for(&review, "done");
    page.wait_text("#main", "done");
    shot(&page, "5-approved");

    click_on(&page, "Back to the board");
    page.click(&format!(".card[data-task=\"{after}\"] .card-title"));
    page.wait_text("#drawer", "import the books");
    shot(&page, "6-why");
    let shown = fleet.wait_for(&asks, "ready");
    assert!(shown["why"].to_string().contains("shell"), "{shown:#}");
    page.is_content();
}

/// Keeps a picture where `SUPERVISOR_TEST_SHOTS` names a directory, to look at what a person sees.
fn shot(page: &Browser, name: &str) {
    if let Some(place) = std::env::var_os("SUPERVISOR_TEST_SHOTS") {
        fs::write(std::path::Path::new(&place).join(format!("{name}.png")), page.picture()).unwrap();
    }
}
