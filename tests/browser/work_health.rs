//! The page of health: promises of the host, holds, breakers, queues, disk, rates, usage.

use super::driver::ENTER;
use super::{fleet, visit};
use crate::harness::User;

#[test]
fn the_host_promises_its_queues_and_its_rates_are_shown() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("runs", "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let checks = fleet.json(["doctor"])["checks"].as_array().unwrap().len() as u64;
    let page = visit(&fleet);
    page.go("/health");

    // Each check of doctor, with its verdict as a word.
    page.eventually("each check of doctor is there", |page| {
        (page.count(".health-checks .row .row-title") == checks).then_some(())
    });
    assert_eq!(page.count(".health-checks .row .status"), checks);
    page.wait_text("section[aria-labelledby=queues-title]", "slots");
    page.wait_text("section[aria-labelledby=queues-title] table", "shell");
    page.eventually("it counts the one that runs", |page| {
        let counts = page.text(".queue-counts")?;
        counts.replace('\n', " ").contains("1 running").then_some(())
    });
    for name in ["Workers", "Daemon memory", "Events", "Commits"] {
        page.eventually(&format!("{name} has values"), |page| {
            let label = format!(".figure-drawing[aria-label^='{name}: now']");
            let points = page.script(
                "return document.querySelector(arguments[0])?.querySelector('polyline').getAttribute('points') ?? ''",
                &[label.into()],
            );
            points.as_str().is_some_and(|points| points.contains(',')).then_some(())
        });
    }
    page.wait_text("section[aria-labelledby=spend-title]", "Usage");
    page.wait_text(".disk-room", "free of");
    let disk = &fleet.json(["status"])["disk"];
    assert!(
        disk["free_bytes"].as_u64() <= disk["total_bytes"].as_u64() && disk["total_bytes"].as_u64() > Some(0)
    );
    page.is_content();
}

#[test]
fn a_hold_is_placed_and_released_and_a_breaker_is_shown_with_its_reason() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("agent", "argv = [\"/nowhere/agent\"]\npolicy = \"unconfined\"\n");
    fleet.cli(["service", "reload"]).ok();
    for _ in 0..3 {
        fleet.cli(["create", "cannot start", "--assignee", "agent"]).ok();
    }
    fleet.eventually("its breaker is open", || {
        fleet.json(["holds"]).to_string().contains("breaker").then_some(())
    });
    let page = visit(&fleet);
    page.go("/health");
    let held = "section[aria-labelledby=holds-title]";
    page.wait_text(held, "breaker");
    page.wait_text(held, "agent");

    page.click(&format!("{held} .section-head button"));
    page.wait("dialog[open]");
    page.fill("dialog[open] input[name=name]", "shell");
    page.fill("dialog[open] input[name=reason]", "for the test");
    page.press(ENTER);
    page.wait_text(held, "for the test");
    assert!(fleet.json(["holds"]).to_string().contains("for the test"));
    page.click("button[aria-label='Release profile shell']");
    page.wait("dialog[open]");
    page.press(ENTER);
    fleet.eventually("it is released", || {
        (!fleet.json(["holds"]).to_string().contains("for the test")).then_some(())
    });
    page.eventually("it is gone", |page| (!page.text(held)?.contains("for the test")).then_some(()));

    page.click(&format!("{held} .row button[aria-label^=Release]"));
    page.wait("dialog[open]");
    fleet.write_config("lanes.d/agent.toml", "argv = [\"/bin/true\"]\npolicy = \"unconfined\"\n");
    fleet.cli(["service", "reload"]).ok();
    page.press(ENTER);
    fleet.eventually("the breaker is closed", || {
        (!fleet.json(["holds"]).to_string().contains("breaker")).then_some(())
    });
    page.is_content();
}

#[test]
fn leftovers_are_shown_before_they_are_removed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("leaves something", "head -c 100000 /dev/zero > large", &[]);
    fleet.wait_for(&task, "done");
    // As after a removal that was cut short.
    let place = fleet.root().join("workspaces/default");
    let (left, aside) = (place.join(&task), place.join(format!(".{task}")));
    std::fs::rename(&left, &aside).unwrap();
    fleet.cli(["archive", &task]).ok();
    std::fs::rename(&aside, &left).unwrap();
    let found = fleet.json(["gc", "--dry-run"]);
    assert_ne!(found["removed"], serde_json::json!([]), "{found:#}");
    let page = visit(&fleet);
    page.go("/health");
    page.click("section[aria-labelledby=disk-title] .disk-acts button:last-child");
    page.wait_text(".disk", "would be freed");
    page.click("section[aria-labelledby=disk-title] .disk-acts button:first-child");
    page.wait("dialog[open]");
    assert!(left.exists(), "nothing is removed before it is confirmed");
    page.click("dialog[open] button.primary, dialog[open] button.danger");
    page.wait_text(".disk", "Nothing is left over.");
    assert!(!left.exists());
    page.is_content();
}

#[test]
fn what_is_wrong_with_a_task_stands_on_the_page_with_the_command_that_helps() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("gave up", "echo no key >&2; exit 1", &["--max-retries", "1"]);
    fleet.wait_for(&task, "blocked");
    let page = visit(&fleet);
    page.go("/health");
    let wrong = "section[aria-labelledby=problems-title]";
    page.wait_text(wrong, "gave up");
    page.wait(&format!("{wrong} .command"));
    page.click(&format!("{wrong} a[href*=\"{task}\"]"));
    page.wait_text("#drawer", &task);
    page.is_content();
}
