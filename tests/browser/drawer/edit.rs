//! The fields of a task, each changed where it stands, and what is refused.

use serde_json::{Value, json};

use super::open;
use crate::browser::driver::{Browser, ENTER, ESCAPE};
use crate::browser::{card, fleet, visit, yard};
use crate::harness::{Fleet, User};

/// Clicks on a field, and types.
#[track_caller]
fn typed(page: &Browser, label: &str, text: &str) {
    if page.count(&format!("#drawer .drawer-input[aria-label=\"{label}\"]")) == 0 {
        page.click(&format!("#drawer .editable-value[aria-label^=\"{label}:\"]"));
    }
    page.fill(&format!("#drawer .drawer-input[aria-label=\"{label}\"]"), text);
    page.press(ENTER);
}

#[track_caller]
fn wait_saved(fleet: &Fleet, page: &Browser, id: &str, label: &str, field: &str, value: &Value) {
    fleet.eventually(&format!("{field} is {value}"), || {
        (fleet.show(id)["task"][field] == *value).then_some(())
    });
    page.wait(&format!("#drawer .editable-value[aria-label^=\"{label}:\"]"));
}

#[test]
fn each_field_of_a_task_is_changed_in_its_place() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("old title", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);
    assert!(page.address().contains(&format!("task={task}")), "{}", page.address());

    typed(&page, "Title", "new title");
    wait_saved(&fleet, &page, &task, "Title", "title", &json!("new title"));
    page.wait_text(&card(&task), "new title");
    page.click("#drawer .drawer-more > summary");
    let workspace = format!("dir:{}", yard(&fleet).display());
    let fields = [
        ("Workspace", workspace.as_str(), "workspace", json!(workspace)),
        ("Assignee", "claude", "assignee", json!("claude")),
        ("Priority", "12", "priority", json!(12)),
        ("Tenant", "acme", "tenant", json!("acme")),
        ("Time limit", "90m", "max_runtime_seconds", json!(5400)),
        ("Failure limit", "4", "max_retries", json!(4)),
        ("Policy", "strict", "policy", json!("strict")),
        ("Check", "make test", "check", json!("make test")),
        ("Check limit", "2", "max_checks", json!(2)),
        ("Skills", "masonry, plaster", "skills", json!(["masonry", "plaster"])),
    ];
    for (label, text, field, value) in fields {
        typed(&page, label, text);
        wait_saved(&fleet, &page, &task, label, field, &value);
    }
    page.wait_text("#drawer .editable-value[aria-label^='Time limit']", "90m");

    // An empty field is none; Escape changes nothing.
    page.click("#drawer .editable-value[aria-label^='Priority']");
    page.fill("#drawer .drawer-input[aria-label=Priority]", "99");
    page.press(ESCAPE);
    page.wait_text("#drawer .editable-value[aria-label^='Priority']", "12");
    typed(&page, "Assignee", " ");
    wait_saved(&fleet, &page, &task, "Assignee", "assignee", &Value::Null);
    page.wait_text("#drawer .editable-value[aria-label^='Assignee']", "nobody");
    assert_eq!(fleet.show(&task)["task"]["priority"], 12);
    page.is_content();
}

#[test]
fn what_is_refused_stands_below_its_field_with_what_was_typed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("the title", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);
    page.click("#drawer .drawer-more > summary");

    let refused = [
        ("Priority", "much", "\"much\" is not a whole number"),
        ("Workspace", "somewhere", "somewhere"),
        ("Time limit", "a while", "a while"),
        ("Policy", "lenient", "lenient"),
        ("Title", "  ", "title"),
        ("Pools", "no such pool", "pool"),
    ];
    let before = fleet.show(&task)["task"].clone();
    for (label, text, said) in refused {
        typed(&page, label, text);
        page.eventually(&format!("{label} is refused"), |page| {
            page.texts("#drawer .drawer-refusal.is-shown").concat().contains(said).then_some(())
        });
        let kept = page.value(&format!("#drawer .drawer-input[aria-label=\"{label}\"]"));
        assert_eq!(kept.as_deref(), Some(text), "{label}");
        page.press(ESCAPE);
        page.wait_gone(&format!("#drawer .drawer-input[aria-label=\"{label}\"]"));
    }
    assert_eq!(fleet.show(&task)["task"], before);
}

#[test]
fn an_assignee_is_suggested_and_a_live_run_is_ended_only_when_that_is_said() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("it runs", "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);
    open(&page, &task);

    page.click("#drawer .editable-value[aria-label^='Assignee']");
    page.fill("#drawer .drawer-input[aria-label=Assignee]", "cla");
    page.click_text("#drawer .suggest [role=option]", "claude");
    page.wait("#drawer .drawer-refusal.is-shown");
    assert_eq!(fleet.show(&task)["task"]["assignee"], "shell");
    page.click_text("#drawer .drawer-refusal button", "End its run and reassign");
    fleet
        .eventually("it is reassigned", || (fleet.show(&task)["task"]["assignee"] == "claude").then_some(()));
    page.wait_text("#drawer .editable-value[aria-label^='Assignee']", "claude");
    fleet.eventually("its run has ended", || {
        (fleet.show(&task)["runs"][0]["outcome"] == "reclaimed").then_some(())
    });
}
