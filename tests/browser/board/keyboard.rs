//! The keyboard does all that the mouse does.

use serde_json::json;

use super::{card_in, choose, parked, wait_column};
use crate::browser::driver::{Browser, CONTROL, DOWN, ENTER, ESCAPE, SHIFT, UP};
use crate::browser::{card, column, fleet, visit};
use crate::harness::User;

/// Waits until the card of a task has the focus.
#[track_caller]
fn wait_focus(page: &Browser, id: &str) {
    page.eventually(&format!("{id} has the focus"), |page| (page.focused_task()? == id).then_some(()));
}

#[test]
fn keys_go_from_card_to_card_and_open_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let idea = fleet.create("an idea", "true", &["--triage"]);
    let parked = parked(&fleet, ["one", "two", "three"]);
    let page = visit(&fleet);
    wait_column(&page, "blocked", &parked.each_ref());

    page.press("j");
    wait_focus(&page, &idea);
    page.press("l");
    wait_focus(&page, &parked[0]);
    page.press("jj");
    wait_focus(&page, &parked[2]);
    page.press("j");
    wait_focus(&page, &parked[2]);
    page.press("k");
    wait_focus(&page, &parked[1]);
    page.press("h");
    wait_focus(&page, &idea);
    page.press("l");
    wait_focus(&page, &parked[0]);

    page.press(ENTER);
    page.wait_text("#drawer .drawer-title", "one");
    page.wait_address(&format!("task={}", parked[0]), true);
    // The next card is opened in its place.
    page.eventually("the drawer has the focus", |page| page.is_focused("#drawer, #drawer *").then_some(()));
    page.press("j");
    page.wait_text("#drawer .drawer-title", "two");
    page.press(ESCAPE);
    page.wait_gone("#drawer");
    wait_focus(&page, &parked[1]);

    page.press(" ");
    page.wait_text("dialog[open] h2", "two");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    page.is_content();
}

#[test]
fn keys_select_create_and_search() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parked = parked(&fleet, ["one", "two", "three"]);
    let page = visit(&fleet);
    wait_column(&page, "blocked", &parked.each_ref());
    let selected = |page: &Browser, count: usize| {
        page.eventually(&format!("{count} are selected"), |page| {
            (page.tasks(".card.selected") == parked[..count]).then_some(())
        });
    };

    page.press("j");
    wait_focus(&page, &parked[0]);
    page.press("x");
    selected(&page, 1);
    page.press("x");
    selected(&page, 0);
    page.press("x");
    page.chord(SHIFT, DOWN);
    selected(&page, 2);
    page.chord(CONTROL, "a");
    selected(&page, 3);
    page.press(ESCAPE);
    selected(&page, 0);
    page.press("kk");
    wait_focus(&page, &parked[0]);
    page.chord(SHIFT, UP);

    page.press(ESCAPE);
    page.press("c");
    page.wait(&format!("{} .create", column("blocked")));
    page.press("four");
    page.press(ENTER);
    page.wait_text(&column("blocked"), "four");
    page.press(ESCAPE);
    page.wait_gone(".create");

    page.press("/");
    page.press("thr");
    wait_column(&page, "blocked", &[&parked[2]]);
}

#[test]
fn keys_go_on_while_the_bar_of_the_selected_tasks_is_loaded() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parked = parked(&fleet, ["one", "two", "three"]);
    let page = visit(&fleet);
    wait_column(&page, "blocked", &parked.each_ref());
    page.press("j");
    wait_focus(&page, &parked[0]);
    // Longer than the page may take to select a card, and shorter than the limit of a wait.
    let slow = json!({"offline": false, "latency": 20_000, "downloadThroughput": -1, "uploadThroughput": -1});
    page.devtools(&json!({"cmd": "Network.enable", "params": {}}));
    page.devtools(&json!({"cmd": "Network.emulateNetworkConditions", "params": slow}));
    page.press("x");
    page.eventually("the card is selected", |page| {
        (page.tasks(".card.selected") == parked[..1]).then_some(())
    });
    page.press("x");
    // Without the bar: it is still being loaded.
    assert_eq!(page.count(".bulk-count"), 0);
    page.eventually("no card is selected", |page| page.tasks(".card.selected").is_empty().then_some(()));
    assert_eq!(page.count(".bulk-count"), 0, "the bar was there before the key");
}

#[test]
fn keys_move_assign_prioritize_and_archive_the_card() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("the task", "true", &["--triage"]);
    fleet.cli(["hold", &task, "--reason", "for the test"]).ok();
    let page = visit(&fleet);
    page.wait(&card(&task));

    page.press("j");
    wait_focus(&page, &task);
    page.press("m");
    choose(&page, "Blocked");
    page.fill("dialog[open] input", "by a key");
    page.press(ENTER);
    page.wait(&card_in("blocked", &task));
    assert_eq!(fleet.wait_for(&task, "blocked")["task"]["block_reason"], "by a key");
    wait_focus(&page, &task);
    page.press("]");
    page.wait_text("dialog[open] h2", "Mark \"the task\" as done?");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    page.press("[");
    fleet.wait_for(&task, "review");
    wait_focus(&page, &task);

    page.press("p");
    choose(&page, "10");
    page.wait_text(&format!("{} .priority", card(&task)), "P10");
    page.press("a");
    choose(&page, "(unassign)");
    page.wait_gone(&format!("{} .person", card(&task)));
    assert_eq!(fleet.show(&task)["task"]["assignee"], serde_json::Value::Null);
    wait_focus(&page, &task);
    page.press("e");
    page.wait_text("dialog[open] h2", "Archive \"the task\"?");
    page.press(ENTER);
    fleet.wait_for(&task, "archived");
    page.wait_gone(&card(&task));
}

#[test]
fn a_card_that_changes_while_a_dialog_is_open_has_the_focus_afterwards() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("the task", "true", &["--triage"]);
    let page = visit(&fleet);
    page.wait(&card(&task));
    page.press("j");
    wait_focus(&page, &task);
    page.press("a");
    page.wait("dialog[open] input");
    fleet.cli(["edit", &task, "--title", "another title"]).ok();
    page.wait_text(&card(&task), "another title");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    wait_focus(&page, &task);
}

#[test]
fn a_key_goes_to_what_needs_a_person_and_another_nudges_the_daemon() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let asks = fleet.create("asks", "supervisor ask 'How many?'", &[]);
    fleet.wait_for(&asks, "blocked");
    let page = visit(&fleet);
    page.wait(&format!(".need[data-task=\"{asks}\"]"));

    page.press("n");
    page.wait_text("#toasts", "The daemon looks for tasks to start");
    let sent = "return performance.getEntriesByType('resource').filter(one => one.name.endsWith('/api/v1/dispatch')).length";
    assert_eq!(page.script(sent, &[]), 1);
    page.click("button.nudge");
    page.eventually("the button sends it, too", |page| (page.script(sent, &[]) == 2).then_some(()));

    page.press("r");
    page.eventually("the answer has the focus", |page| page.is_focused(".need-answer").then_some(()));
    page.press("seven");
    page.press(ENTER);
    page.wait_gone(&format!(".need[data-task=\"{asks}\"]"));
    let events = fleet.show(&asks)["events"].to_string();
    assert!(events.contains("seven"), "{events}");
}
