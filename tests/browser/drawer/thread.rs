//! The comments of a task.

use super::{open, part};
use crate::browser::driver::{ENTER, SHIFT};
use crate::browser::{fleet, visit};
use crate::harness::User;

const COMPOSER: &str = "#drawer .composer textarea";

#[test]
fn enter_sends_a_comment_and_a_new_line_takes_shift() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("to talk about", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);

    page.eventually("the key goes to the comment", |page| {
        if !page.is_focused(COMPOSER) {
            page.press("m");
        }
        page.is_focused(COMPOSER).then_some(())
    });
    page.fill(COMPOSER, "a *remark*");
    page.chord(SHIFT, ENTER);
    page.press("of two lines");
    assert_eq!(page.count("#drawer .comment"), 0, "it is not sent yet");
    page.press(ENTER);
    page.wait_text("#drawer .comment em", "remark");
    page.eventually("the field is empty again", |page| page.value(COMPOSER)?.is_empty().then_some(()));
    let comments = fleet.show(&task)["comments"].clone();
    assert_eq!(comments[0]["body"], "a *remark*\nof two lines", "{comments:#}");
    assert_eq!(comments.as_array().unwrap().len(), 1, "{comments:#}");

    // Nothing is sent where nothing is said.
    page.press(ENTER);
    page.fill(COMPOSER, "another");
    page.click("#drawer .composer button[type=submit]");
    page.wait_text("#drawer .comments", "another");
    assert_eq!(fleet.show(&task)["comments"].as_array().unwrap().len(), 2);
    page.wait_text(&format!("{} .drawer-count", part("Comments")), "2");
    page.is_content();
}

#[test]
fn an_at_sign_completes_the_profiles_which_the_comment_mentions() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let profile = ["profile", "create", "researcher", "--lane", "shell", "--description", "finds papers"];
    fleet.cli(profile).ok();
    let task = fleet.create("to talk about", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);

    page.fill(COMPOSER, "ask @res");
    page.wait_text("#drawer .composer [role=option][aria-selected=true]", "researcher");
    page.wait_text("#drawer .composer [role=option]", "finds papers");
    page.press(ENTER);
    page.eventually("the name is there", |page| (page.value(COMPOSER)? == "ask @researcher ").then_some(()));
    assert_eq!(page.count("#drawer .comment"), 0, "Enter took the name alone");
    page.press("please");
    page.press(ENTER);
    page.wait_text("#drawer .comments", "ask @researcher please");
    page.wait_text("#toasts", "researcher is mentioned");
    // An address is no mention.
    page.fill(COMPOSER, "mail ann@res");
    assert!(!page.sees("#drawer .composer [role=option]"));
}

#[test]
fn older_comments_come_on_demand_and_all_of_them() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("talked about", "true", &["--triage"]);
    for n in 1..=70 {
        fleet.cli(["comment", &task, &format!("remark {n}.")]).ok();
    }
    let page = visit(&fleet);
    open(&page, &task);

    page.wait_text("#drawer .comments", "remark 70.");
    assert_eq!(page.count("#drawer .comment"), 20);
    while page.sees(&format!("{} .drawer-older", part("Comments"))) {
        let before = page.count("#drawer .comment");
        page.click(&format!("{} .drawer-older", part("Comments")));
        page.eventually("there are more", |page| (page.count("#drawer .comment") > before).then_some(()));
    }
    let bodies = page.texts("#drawer .comment-body");
    let expected: Vec<_> = (1..=70).map(|n| format!("remark {n}.")).collect();
    assert_eq!(bodies, expected);
}
