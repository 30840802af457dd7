//! Tasks that need a person, above the columns: they can be previewed, answered and decided there.

use crate::browser::driver::{ENTER, ESCAPE};
use crate::browser::{answered, column, fleet, visit};
use crate::harness::{Fleet, User};

fn need(id: &str) -> String {
    format!(".need[data-task=\"{id}\"]")
}

/// A task that asks, and is done with the answer.
fn asks(fleet: &Fleet, question: &str) -> String {
    let script = format!("test -e asked && exit 0; touch asked; supervisor ask {question}");
    let task = fleet.create("asks", &script, &[]);
    fleet.wait_for(&task, "blocked");
    task
}

#[test]
fn a_question_is_answered_by_one_click_or_in_words() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let chooses = asks(&fleet, "'Which database?' --choice SQLite --choice PostgreSQL");
    let counts = asks(&fleet, "'How many?'");
    let page = visit(&fleet);

    page.wait_text(".needs-head", "2 questions");
    page.wait_text(&need(&chooses), "Which database?");
    page.click_text(&format!("{} .need-choices button", need(&chooses)), "PostgreSQL");
    let shown = fleet.wait_for(&chooses, "done");
    assert_eq!(answered(&shown), "PostgreSQL", "{shown:#}");
    page.wait_gone(&need(&chooses));

    page.fill(&format!("{} input", need(&counts)), "seventeen");
    page.press(ENTER);
    let shown = fleet.wait_for(&counts, "done");
    assert_eq!(answered(&shown), "seventeen", "{shown:#}");
    page.wait_gone(&need(&counts));
    page.wait_text(".needs-head", "Nothing waits for a person");
}

#[test]
fn approvals_are_given_and_denied_and_a_task_that_gave_up_is_retried() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let approval = |title: &str| fleet.create(title, "true", &["--require-approval"]);
    let (good, bad) = (approval("publish it"), approval("delete it"));
    let fails =
        fleet.create("fails", "test -e again && exit 0; touch again; exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&fails, "blocked");
    let page = visit(&fleet);

    page.wait_text(".needs-head", "2 approvals · 1 gave up");
    page.click_text(&format!("{} button", need(&good)), "Approve");
    fleet.wait_for(&good, "done");
    page.wait_gone(&need(&good));

    page.click_text(&format!("{} button", need(&bad)), "Deny");
    page.fill("dialog[open] textarea", "it is needed");
    page.click("dialog[open] button.danger");
    let shown = fleet.wait_for(&bad, "triage");
    assert_eq!(shown["comments"][0]["body"], "it is needed", "{shown:#}");
    page.wait_gone(&need(&bad));

    page.wait_text(&format!("{} .need-matter", need(&fails)), "3");
    page.click_text(&format!("{} button", need(&fails)), "Retry");
    fleet.wait_for(&fails, "done");
    page.wait_gone(&need(&fails));
}

#[test]
fn a_review_is_peeked_at_approved_or_sent_back() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let script = "supervisor context | grep -q 'too [s]hort' && { supervisor complete --summary longer; exit; }; \
                  echo the last line of the log; supervisor request-review --summary 'please look'";
    let [good, bad] = ["good work", "bad work"].map(|title| fleet.create(title, script, &[]));
    fleet.wait_for(&good, "review");
    fleet.wait_for(&bad, "review");
    let page = visit(&fleet);

    page.click(&format!("{} [title=Peek]", need(&good)));
    page.wait_text("dialog[open] .peek", "please look");
    page.wait_text("dialog[open] .peek-log", "the last line of the log");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    page.wait(&format!("{} a[href^='/review/{good}']", need(&good)));
    page.click_text(&format!("{} button", need(&good)), "Approve");
    page.wait_text("dialog[open] h2", "Approve \"good work\"?");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(fleet.status_of(&good), "review", "nothing is approved before it is confirmed");
    page.click_text(&format!("{} button", need(&good)), "Approve");
    page.click("dialog[open] button.primary");
    fleet.wait_for(&good, "done");
    page.wait_gone(&need(&good));

    page.click_text(&format!("{} button", need(&bad)), "Request changes");
    page.fill("dialog[open] textarea", "too short");
    page.click("dialog[open] button.primary");
    let shown = fleet.wait_for(&bad, "done");
    assert_eq!(shown["latest_summary"], "longer", "{shown:#}");
}

#[test]
fn a_running_task_is_peeked_at_and_the_command_that_attaches_is_there_to_copy() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("works", "echo a line of its log; sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);

    page.wait(&format!("{} .card[data-task=\"{task}\"]", column("running")));
    page.press("j");
    page.eventually("the card has the focus", |page| (page.focused_task()? == task).then_some(()));
    page.press(" ");
    page.wait_text("dialog[open] .peek-log", "a line of its log");
    page.click_text("dialog[open] button", "Attach");
    // Where the browser lets no page copy, the command is shown.
    page.eventually("the command is said", |page| {
        let said = page.texts("#toasts, dialog[open] .command").concat();
        said.contains(&format!("supervisor attach {task}")).then_some(())
    });
}

#[test]
fn every_answer_of_a_question_is_in_sight_on_a_wide_and_on_a_narrow_page() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let choices =
        ["Build it now", "Build it next week", "Ask the customer first", "Write a design", "Do not build it"];
    let flags = choices.map(|choice| format!("--choice '{choice}'")).join(" ");
    let task = asks(&fleet, &format!("'What about the export?' {flags} --free-text"));
    let page = visit(&fleet);
    // The buttons that a press at their middle would not reach, or of which a part is cut off.
    let hidden = "const place = document.querySelector(arguments[0]);
        return [...place.querySelectorAll('.need-choices button')].filter(button => {
            const box = button.getBoundingClientRect();
            const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            const inside = [box.left >= 0, box.right <= innerWidth, button.scrollWidth <= button.clientWidth];
            return !button.contains(at) || inside.includes(false);
        }).map(button => button.textContent)";
    for width in [1440, 1024, 390] {
        page.resize(width, 900);
        page.eventually("all answers are there", |page| {
            let buttons = page.texts(&format!("{} .need-choices button", need(&task)));
            (buttons.len() == 6 && buttons[5] == "Other…").then_some(())
        });
        assert_eq!(page.script(hidden, &[need(&task).into()]), serde_json::json!([]), "{width}");
    }
    page.click_text(&format!("{} .need-choices button", need(&task)), "Do not build it");
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(answered(&shown), "Do not build it", "{shown:#}");
    page.is_content();
}
