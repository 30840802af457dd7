//! Actions of a person on a task: answers, approvals, reviews, another try.

use super::{open, open_by_address};
use crate::browser::driver::ENTER;
use crate::browser::{answered, fleet, visit};
use crate::harness::User;

#[test]
fn questions_are_answered_by_buttons_and_in_words() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let asks = |choices: &str| {
        let script = format!("test -e asked && exit 0; touch asked; supervisor ask 'Which one?' {choices}");
        fleet.create("asks", &script, &[])
    };
    let chooses = asks("--choice red --choice 'light blue'");
    let free = asks("--choice red --choice green --free-text");
    fleet.wait_for(&chooses, "blocked");
    fleet.wait_for(&free, "blocked");
    let page = visit(&fleet);

    open(&page, &chooses);
    page.wait_text("#drawer .drawer-need h3", "Question");
    page.wait_text("#drawer .drawer-question", "Which one?");
    assert_eq!(page.texts("#drawer .drawer-choice"), ["1red", "2light blue"]);
    assert_eq!(page.count("#drawer .drawer-need textarea"), 0, "no other answer is allowed");
    page.click_text("#drawer .drawer-choice", "light blue");
    let shown = fleet.wait_for(&chooses, "done");
    assert_eq!(answered(&shown), "light blue", "{shown:#}");
    page.wait_gone("#drawer .drawer-need");
    page.wait_text("#drawer .drawer-status", "done");

    open_by_address(&page, &free);
    page.wait("#drawer .drawer-need textarea");
    assert!(!page.sees("#drawer .drawer-need button[type=submit]:enabled"), "there is nothing to send yet");
    page.fill("#drawer .drawer-need textarea", "ultramarine");
    page.click("#drawer .drawer-need button[type=submit]");
    let shown = fleet.wait_for(&free, "done");
    assert_eq!(answered(&shown), "ultramarine", "{shown:#}");
    page.is_content();
}

#[test]
fn approvals_are_given_and_denied() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let approval = |title: &str| {
        let more = ["--require-approval", "--approval-class", "spend"];
        fleet.create(title, "true", &more)
    };
    let (good, bad) = (approval("buy it"), approval("buy two"));
    let page = visit(&fleet);

    open(&page, &good);
    page.wait_text("#drawer .drawer-need", "class spend");
    page.click_text("#drawer .drawer-need button", "Approve");
    fleet.wait_for(&good, "done");
    page.wait_gone("#drawer .drawer-need");

    open_by_address(&page, &bad);
    page.click_text("#drawer .drawer-need button", "Deny…");
    page.click_text("#drawer .drawer-need button[type=submit]", "Deny");
    page.wait_text("#drawer .drawer-refusal.is-shown", "reason");
    assert_eq!(fleet.status_of(&bad), "blocked");
    page.fill("#drawer .drawer-need textarea", "one is enough");
    page.click_text("#drawer .drawer-need button[type=submit]", "Deny");
    let shown = fleet.wait_for(&bad, "triage");
    assert_eq!(shown["comments"][0]["body"], "one is enough", "{shown:#}");
    page.wait_gone("#drawer .drawer-need");
    page.wait_text("#drawer .comments", "one is enough");
}

#[test]
fn an_approval_of_somebody_else_is_given_in_their_place_after_a_refusal() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("buy", "true", &["--require-approval", "--approver", "nobody-here"]);
    fleet.wait_for(&task, "blocked");
    let page = visit(&fleet);
    open(&page, &task);
    page.wait_text("#drawer .drawer-need", "approver nobody-here");
    page.click_text("#drawer .drawer-need button", "Approve");
    page.wait_text("#drawer .drawer-need", "may not decide");
    assert_eq!(fleet.status_of(&task), "blocked");
    page.click_text("#drawer .drawer-need button", "Approve in place of nobody-here");
    fleet.wait_for(&task, "done");
    let told = fleet.json(["events", "--task", &task, "--kind", "approval_granted"]);
    assert_eq!(told["events"][0]["payload"]["overridden"], "nobody-here", "{told}");
    page.wait_gone("#drawer .drawer-need");
    page.is_content();
}

#[test]
fn work_is_approved_or_sent_back_and_what_gave_up_is_tried_again() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let script = "supervisor context | grep -q 'too [s]hort' && { supervisor complete --summary longer; exit; }; \
                  supervisor request-review --summary 'please look'";
    let work = fleet.create("some work", script, &[]);
    let fails =
        fleet.create("fails", "test -e again && exit 0; touch again; exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&work, "review");
    fleet.wait_for(&fails, "blocked");
    let page = visit(&fleet);

    open(&page, &work);
    page.wait_text("#drawer .drawer-need", "please look");
    page.wait(&format!("#drawer .drawer-need a[href^='/review/{work}']"));
    page.click_text("#drawer .drawer-need button", "Request changes…");
    assert!(!page.sees("#drawer .drawer-need button[type=submit]:enabled"), "changes need words");
    page.fill("#drawer .drawer-need textarea", "too short");
    page.click("#drawer .drawer-need button[type=submit]");
    let shown = fleet.wait_for(&work, "done");
    assert_eq!(shown["latest_summary"], "longer", "{shown:#}");

    fleet.cli(["reopen", &work]).ok();
    fleet.wait_for(&work, "done");
    let again = fleet.create("more work", "supervisor request-review", &[]);
    fleet.wait_for(&again, "review");
    open_by_address(&page, &again);
    page.click_text("#drawer .drawer-need button", "Approve…");
    page.fill("#drawer .drawer-need textarea", "well done");
    page.click("#drawer .drawer-need button[type=submit]");
    let shown = fleet.wait_for(&again, "done");
    assert!(shown["comments"].to_string().contains("well done"), "{shown:#}");

    open_by_address(&page, &fails);
    page.wait_text("#drawer .drawer-need", "It failed, and is not tried again");
    page.click_text("#drawer .drawer-need button", "Retry…");
    page.fill("#drawer .drawer-move textarea", "it is there now");
    page.chord(crate::browser::driver::CONTROL, ENTER);
    fleet.wait_for(&fails, "done");
    page.wait_text("#drawer .drawer-status", "done");
    page.is_content();
}
