//! Cards that are dragged, and what is asked before.

use super::card_in;
use crate::browser::driver::{CONTROL, ENTER, ESCAPE};
use crate::browser::{card, column, fleet, visit};
use crate::harness::User;

#[test]
fn a_card_is_dragged_with_the_mouse_and_with_a_finger_and_done_asks_first() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("drag me", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&task));

    page.drag(&card(&task), &column("triage"));
    page.wait(&card_in("triage", &task));
    fleet.wait_for(&task, "triage");

    page.drag(&card(&task), &column("done"));
    page.wait("dialog[open]");
    assert_eq!(fleet.status_of(&task), "triage", "nothing is done before it is confirmed");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(fleet.status_of(&task), "triage");

    page.drag_with_a_finger(&card(&task), &column("done"));
    page.fill("dialog[open] textarea", "it was easy");
    page.click("dialog[open] button.primary");
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["task"]["result"], "it was easy", "{shown:#}");
    page.wait(&card_in("done", &task));
}

#[test]
fn blocked_and_archived_ask_first_and_no_card_is_dragged_to_running() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("drag me", "true", &["--triage"]);
    let page = visit(&fleet);
    page.click("[aria-label='Show archived tasks']");
    page.wait(&column("archived"));

    page.drag_and_escape(&card(&task), &column("ready"));
    assert!(!page.sees("dialog[open]") && !page.sees(".ghost"));

    page.drag(&card(&task), &column("running"));
    page.wait_text("#toasts", "The daemon starts tasks itself");
    assert_eq!(fleet.status_of(&task), "triage");

    page.drag(&card(&task), &column("blocked"));
    page.wait_text("dialog[open]", "Block \"drag me\"?");
    assert_eq!(fleet.status_of(&task), "triage");
    page.fill("dialog[open] input", "no money");
    page.press(ENTER);
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["task"]["block_reason"], "no money", "{shown:#}");

    page.drag(&card(&task), &column("archived"));
    page.wait_text("dialog[open]", "Archive \"drag me\"?");
    page.click_text("dialog[open] button", "Cancel");
    page.wait_gone("dialog[open]");
    page.wait(&card_in("blocked", &task));
    assert_eq!(fleet.status_of(&task), "blocked");
    page.drag(&card(&task), &column("archived"));
    page.click("dialog[open] button.danger");
    fleet.wait_for(&task, "archived");
    page.wait(&card_in("archived", &task));
}

#[test]
fn what_leaves_the_archive_goes_to_the_column_it_is_dropped_on() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ideas = ["one", "two", "three"].map(|title| fleet.create(title, "true", &["--triage"]));
    let finished = fleet.create("four", "true", &[]);
    fleet.wait_for(&finished, "done");
    for task in ideas.iter().chain([&finished]) {
        fleet.cli(["archive", task]).ok();
    }
    let page = visit(&fleet);
    page.click("[aria-label='Show archived tasks']");
    page.wait(&card_in("archived", &ideas[0]));
    // All of these columns stand at the end.
    let drag = |task: &str, to: &str| {
        page.script("document.querySelector('.columns').scrollLeft = 10000", &[]);
        page.drag(&card(task), &column(to));
    };

    drag(&ideas[0], "blocked");
    page.fill("dialog[open] input", "no money");
    page.press(ENTER);
    let shown = fleet.wait_for(&ideas[0], "blocked");
    assert_eq!(shown["task"]["block_reason"], "no money", "{shown:#}");
    page.wait(&card_in("blocked", &ideas[0]));

    drag(&ideas[1], "done");
    page.fill("dialog[open] textarea", "it was easy");
    page.click("dialog[open] button.primary");
    let shown = fleet.wait_for(&ideas[1], "done");
    assert_eq!(shown["task"]["result"], "it was easy", "{shown:#}");

    // Of several, one has the status already that the others still have to get.
    for task in [&ideas[2], &finished] {
        page.click_with(CONTROL, &format!("{} .card-head", card(task)));
    }
    drag(&ideas[2], "done");
    page.click("dialog[open] button.primary");
    for task in [&ideas[2], &finished] {
        fleet.wait_for(task, "done");
        page.wait(&card_in("done", task));
    }
    assert!(!page.sees("dialog[open]"), "nothing was refused");
}

#[test]
fn the_selected_cards_go_along_and_what_ends_a_run_asks_first() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let runs = fleet.create("it runs", "sleep 600", &[]);
    fleet.wait_for(&runs, "running");
    let ideas = [fleet.create("one", "true", &["--triage"]), fleet.create("two", "true", &["--triage"])];
    let page = visit(&fleet);

    page.drag(&card(&runs), &column("triage"));
    page.wait_text("dialog[open]", "Its run is ended");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(fleet.status_of(&runs), "running");
    page.wait(&card_in("running", &runs));

    for idea in &ideas {
        page.click_with(CONTROL, &format!("{} .card-head", card(idea)));
    }
    page.drag(&card(&ideas[0]), &column("done"));
    page.wait_text("dialog[open]", "Move 2 tasks to Done?");
    page.click("dialog[open] button.primary");
    for idea in &ideas {
        fleet.wait_for(idea, "done");
        page.wait(&card_in("done", idea));
    }
}

#[test]
fn a_move_that_is_refused_is_taken_back_and_said() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parent = fleet.create("first", "true", &["--triage"]);
    let child = fleet.create("second", "true", &["--parent", &parent]);
    let page = visit(&fleet);

    page.drag(&card(&child), &column("ready"));
    page.wait_text("#toasts [data-kind=error]", "cannot be ready");
    page.wait(&card_in("todo", &child));
    assert_eq!(fleet.status_of(&child), "todo");
}
