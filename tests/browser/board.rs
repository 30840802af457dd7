//! The board: columns, cards, what needs a person, and what is done to many tasks at once.

use super::driver::{CONTROL, ENTER, ESCAPE, SHIFT};
use super::{card, column, fleet, visit};
use crate::harness::User;

#[test]
fn a_newcomer_sees_the_board_and_creates_a_task_in_a_column() {
    for user in User::all() {
        let Some(fleet) = fleet(user, "") else { return };
        let parent = fleet.create("the parent", "true", &["--initial-status", "blocked"]);
        let page = visit(&fleet);
        page.wait(&card(&parent));

        page.click(&format!("{} button[title='Create a task']", column("triage")));
        page.fill(".create .create-title", "an idea from the browser");
        page.fill(".create input[type=number]", "7");
        page.press(ENTER);
        page.wait_text(&column("triage"), "an idea from the browser");

        let made = fleet.json(["list", "--status", "triage"]);
        assert_eq!(made[0]["title"], "an idea from the browser", "{made:#}");
        assert_eq!(made[0]["priority"], 7, "{made:#}");
        page.is_content();
    }
}

#[test]
fn a_card_is_dragged_with_the_mouse_and_with_a_finger_and_done_asks_first() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("drag me", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&task));

    page.drag(&card(&task), &column("triage"));
    page.wait(&format!("{} {}", column("triage"), card(&task).replace(".columns ", "")));
    fleet.wait_for(&task, "triage");

    page.drag(&card(&task), &column("done"));
    page.wait("dialog[open]");
    assert_eq!(fleet.status_of(&task), "triage", "nothing is done before it is confirmed");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(fleet.status_of(&task), "triage");

    page.drag_with_a_finger(&card(&task), &column("done"));
    page.click("dialog[open] button.primary, dialog[open] button.danger");
    fleet.wait_for(&task, "done");
    page.wait(&format!("{} {}", column("done"), card(&task).replace(".columns ", "")));
}

#[test]
fn selected_tasks_are_changed_at_once_and_failures_are_said_by_id() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let first = fleet.create("first", "true", &["--initial-status", "blocked"]);
    let second = fleet.create("second", "true", &["--initial-status", "blocked"]);
    let waits = fleet.create("waits for first", "true", &["--parent", &first]);
    let page = visit(&fleet);

    page.click_with(CONTROL, &format!("{} .card-head", card(&second)));
    page.click_with(CONTROL, &format!("{} .card-head", card(&waits)));
    page.wait_text(".bulk-count", "2 selected");
    page.click(".bulk button:nth-of-type(1)");
    page.fill("dialog[open] input", "ready");
    page.press(ENTER);
    page.wait_text(&format!("dialog[open] [data-failed=\"{waits}\"]"), "cannot be ready");
    page.press(ESCAPE);
    assert_eq!(fleet.status_of(&waits), "todo");
    // The one that could be moved was moved.
    fleet.wait_for(&second, "done");

    page.click_with(SHIFT, &format!("{} .card-head", card(&first)));
    page.click(".bulk button:nth-of-type(4)");
    page.click("dialog[open] button.primary, dialog[open] button.danger");
    page.wait_gone(&card(&first));
    fleet.wait_for(&first, "archived");
}

#[test]
fn what_is_looked_for_stands_in_the_address() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let wanted =
        fleet.create("find the needle", "true", &["--initial-status", "blocked", "--tenant", "acme"]);
    let other = fleet.create("hay", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&other));

    page.press("/");
    page.press("needle");
    page.wait_gone(&card(&other));
    page.eventually("the address has it", |page| page.address().contains("q=needle").then_some(()));
    page.reload();
    page.wait(&card(&wanted));
    assert!(!page.sees(&card(&other)));
}

#[test]
fn a_question_is_answered_by_one_click_and_an_approval_given() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let script = "test -e asked || { touch asked; supervisor ask 'Which database?' --choice SQLite --choice PostgreSQL; exit; }; \
                  supervisor complete --summary \"$(supervisor context | grep -o 'PostgreSQL' | head -1)\"";
    let task = fleet.create("choose", script, &[]);
    fleet.wait_for(&task, "blocked");
    let page = visit(&fleet);

    let need = format!(".need[data-task=\"{task}\"]");
    page.wait_text(&need, "Which database?");
    page.eventually("the second answer is clicked on", |page| {
        page.script(
            "const all = [...document.querySelectorAll(arguments[0])].filter(b => b.textContent.includes('PostgreSQL'));
             if (all.length) all[0].click(); return all.length;",
            &[format!("{need} .need-choices button").into()],
        )
        .as_u64()
        .filter(|found| *found > 0)
    });
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "PostgreSQL", "{shown:#}");
    page.wait_gone(&need);
}
