//! The text of a task and its result, in Markdown.

use super::{open, part};
use crate::browser::driver::{CONTROL, ENTER, ESCAPE};
use crate::browser::{fleet, visit};
use crate::harness::User;

const BODY: &str = "# Plan\n\nSome *words*, `code` and a [link](https://example.com/).\n\n\
    - [mail](mailto:ann@example.org)\n- [script](javascript:alert(1))\n- [data](data:text/html,x)\n\n<b id=raw>raw</b>\n";

#[test]
fn the_description_is_markdown_whose_links_are_harmless() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task =
        fleet.json(["create", "the plan", "--triage", "--body", BODY])["id"].as_str().unwrap().to_owned();
    let page = visit(&fleet);
    open(&page, &task);

    let body = part("Description");
    page.wait_text(&format!("{body} .editable :is(h1, h2, h3, h4, h5, h6)"), "Plan");
    assert_eq!(page.texts(&format!("{body} em")), ["words"]);
    assert_eq!(page.texts(&format!("{body} code")), ["code"]);
    let links = page.script(
        "return [...document.querySelectorAll(arguments[0])].map(a => [a.textContent, a.getAttribute('href'), a.rel, a.target])",
        &[format!("{body} .editable a").into()],
    );
    let rel = "noopener noreferrer nofollow";
    assert_eq!(
        links,
        serde_json::json!([
            ["link", "https://example.com/", rel, "_blank"],
            ["mail", "mailto:ann@example.org", rel, "_blank"]
        ])
    );
    assert_eq!(page.count(&format!("{body} #raw, {body} b")), 0, "tags of the text are text");
    page.wait_text(&body, "<b id=raw>raw</b>");
    page.is_content();
}

#[test]
fn the_description_and_the_result_are_edited_in_place() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.json(["create", "the plan", "--triage"])["id"].as_str().unwrap().to_owned();
    let page = visit(&fleet);
    open(&page, &task);

    let body = part("Description");
    page.click_text(&format!("{body} button"), "No description. Add one.");
    page.fill(&format!("{body} textarea"), "first line");
    page.press(ENTER);
    page.press("**second** line");
    assert!(page.sees(&format!("{body} textarea")), "Enter is a new line");
    page.chord(CONTROL, ENTER);
    page.wait_text(&format!("{body} strong"), "second");
    assert_eq!(fleet.show(&task)["task"]["body"], "first line\n**second** line");

    // The key opens it, Escape leaves a draft, and that can be continued.
    page.eventually("the key edits it", |page| {
        page.press("e");
        page.sees(&format!("{body} textarea")).then_some(())
    });
    page.fill(&format!("{body} textarea"), "another text");
    page.press(ESCAPE);
    page.wait_gone(&format!("{body} textarea"));
    assert!(page.sees("#drawer"), "Escape left the field alone");
    assert_eq!(fleet.show(&task)["task"]["body"], "first line\n**second** line");
    page.click_text(&format!("{body} button"), "Continue the draft");
    assert_eq!(page.value(&format!("{body} textarea")).as_deref(), Some("another text"));
    page.click_text(&format!("{body} button"), "Save");
    page.wait_text(&body, "another text");
    assert_eq!(fleet.show(&task)["task"]["body"], "another text");

    assert!(!page.sees(&part("Result")), "there is none yet");
    fleet.cli(["complete", &task, "--summary", "*done* well"]).ok();
    page.wait_text("#drawer .drawer-status", "done");
    let result = part("Result");
    page.wait(&result);
    page.click(&format!("{result} [aria-label='Edit: Result']"));
    page.fill(&format!("{result} textarea"), "*all* done");
    page.chord(CONTROL, ENTER);
    page.wait_text(&format!("{result} em"), "all");
    assert_eq!(fleet.show(&task)["task"]["result"], "*all* done");
    page.is_content();
}

#[test]
fn the_body_of_a_task_of_the_shell_is_shown_as_it_is_written() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("a script", "# no heading\necho *", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);

    page.wait_text(&format!("{} .is-script", part("Description")), "# no heading\necho *");
    assert_eq!(page.count(&format!("{} .editable :is(h1, h2, h3, h4, h5, h6)", part("Description"))), 0);
}
