//! Several tasks that are selected, and changed at once.

use super::{choose, parked, wait_column};
use crate::browser::driver::{Browser, CONTROL, ESCAPE, SHIFT};
use crate::browser::{card, fleet, visit};
use crate::harness::User;

fn head(id: &str) -> String {
    format!("{} .card-head", card(id))
}

#[track_caller]
fn wait_selected(page: &Browser, ids: &[&String]) {
    page.eventually(&format!("{ids:?} are selected"), |page| {
        (page.tasks(".card.selected").iter().collect::<Vec<_>>() == ids).then_some(())
    });
    if !ids.is_empty() {
        page.wait_text(".bulk-count", &format!("{} selected", ids.len()));
        assert_eq!(page.count(".card-check:checked"), ids.len() as u64);
    }
}

#[test]
fn cards_are_selected_with_the_box_with_control_and_with_shift() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let tasks = parked(&fleet, ["one", "two", "three", "four"]);
    let page = visit(&fleet);
    wait_column(&page, "blocked", &tasks.each_ref());
    assert!(!page.sees(".bulk"));

    page.click(&format!("{} .card-check", card(&tasks[1])));
    wait_selected(&page, &[&tasks[1]]);
    page.click_with(CONTROL, &head(&tasks[3]));
    wait_selected(&page, &[&tasks[1], &tasks[3]]);
    page.click_with(CONTROL, &head(&tasks[3]));
    wait_selected(&page, &[&tasks[1]]);
    page.click_with(CONTROL, &head(&tasks[1]));
    page.wait_gone(".bulk");

    // A range begins at the card that was selected last, in either direction.
    page.click(&format!("{} .card-check", card(&tasks[2])));
    page.click_with(SHIFT, &head(&tasks[0]));
    wait_selected(&page, &[&tasks[0], &tasks[1], &tasks[2]]);
    page.press(ESCAPE);
    page.wait_gone(".bulk");
    page.click(&format!("{} .card-check", card(&tasks[1])));
    page.click_with(SHIFT, &format!("{} .card-check", card(&tasks[3])));
    wait_selected(&page, &[&tasks[1], &tasks[2], &tasks[3]]);
    assert!(!page.sees("#drawer"), "nothing was opened");
    page.click_text(".bulk button", "Clear");
    page.wait_gone(".bulk");
}

#[test]
fn selected_tasks_are_moved_and_failures_are_said_by_id() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let first = fleet.create("first", "true", &["--initial-status", "blocked"]);
    let second = fleet.create("second", "true", &["--initial-status", "blocked"]);
    let waits = fleet.create("waits for first", "true", &["--parent", &first]);
    let page = visit(&fleet);

    page.click_with(CONTROL, &head(&second));
    page.click_with(CONTROL, &head(&waits));
    page.wait_text(".bulk-count", "2 selected");
    page.click_text(".bulk button", "Move to…");
    choose(&page, "Ready");
    page.wait_text("dialog[open] h2", "1 of 2 tasks were not moved");
    page.wait_text(&format!("dialog[open] [data-failed=\"{waits}\"]"), "cannot be ready");
    page.press(ESCAPE);
    assert_eq!(fleet.status_of(&waits), "todo");
    // The one that could be moved was moved.
    fleet.wait_for(&second, "done");

    page.click_with(SHIFT, &head(&first));
    page.click_text(".bulk button", "Archive");
    page.click("dialog[open] button.danger");
    page.wait_gone(&card(&first));
    fleet.wait_for(&first, "archived");
}

#[test]
fn selected_tasks_are_assigned_unassigned_prioritized_and_archived() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let tasks = parked(&fleet, ["one", "two", "three"]);
    let page = visit(&fleet);
    page.wait(&card(&tasks[2]));
    let each = |what: &str, is: &dyn Fn(&serde_json::Value) -> bool| {
        for task in &tasks[..2] {
            fleet.eventually(what, || is(&fleet.show(task)["task"]).then_some(()));
        }
        assert!(!is(&fleet.show(&tasks[2])["task"]), "{what}: the one that is not selected");
    };
    page.click_with(CONTROL, &head(&tasks[0]));
    page.click_with(CONTROL, &head(&tasks[1]));

    page.click_text(".bulk button", "Assign…");
    choose(&page, "(unassign)");
    each("unassigned", &|task| task["assignee"].is_null());
    page.wait_gone(&format!("{} .person", card(&tasks[0])));
    page.click_text(".bulk button", "Assign…");
    choose(&page, "claude");
    each("assigned", &|task| task["assignee"] == "claude");
    page.wait_text(&format!("{} .person", card(&tasks[1])), "claude");
    page.click_text(".bulk button", "Priority…");
    choose(&page, "42");
    each("prioritized", &|task| task["priority"] == 42);
    page.wait_text(&format!("{} .priority", card(&tasks[0])), "P42");

    page.click_text(".bulk button", "Archive");
    page.wait_text("dialog[open] h2", "Archive 2 tasks?");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(fleet.status_of(&tasks[0]), "blocked");
    page.click_text(".bulk button", "Archive");
    page.click("dialog[open] button.danger");
    each("archived", &|task| task["status"] == "archived");
    page.wait_gone(&card(&tasks[0]));
    page.wait_gone(".bulk");
    assert!(page.sees(&card(&tasks[2])));
}
