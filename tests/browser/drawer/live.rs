//! Changes by others appear at once, and text that is being typed is not lost.

use super::{open, part};
use crate::browser::driver::ENTER;
use crate::browser::{fleet, visit};
use crate::harness::User;

#[test]
fn what_is_typed_outlives_what_others_change_meanwhile() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("old title", "the old text", &["--triage"]);
    fleet.cli(["assign", &task, "none"]).ok();
    let page = visit(&fleet);
    open(&page, &task);

    page.fill("#drawer .composer textarea", "half a rem");
    page.click("#drawer [aria-label='Edit: Description']");
    page.fill(&format!("{} textarea", part("Description")), "my text");
    page.click("#drawer .drawer-title");
    page.fill("#drawer .drawer-heading .drawer-input", "my title");

    fleet.cli(["edit", &task, "--title", "their title", "--body", "their text", "--priority", "8"]).ok();
    fleet.cli(["comment", &task, "their remark"]).ok();
    fleet.cli(["block", &task, "their reason"]).ok();
    page.wait_text("#drawer .comments", "their remark");
    page.wait_text("#drawer .drawer-status", "blocked");
    page.wait_text("#drawer .editable-value[aria-label^='Priority']", "8");
    assert_eq!(page.value("#drawer .drawer-heading .drawer-input").as_deref(), Some("my title"));
    assert_eq!(page.value(&format!("{} textarea", part("Description"))).as_deref(), Some("my text"));
    assert_eq!(page.value("#drawer .composer textarea").as_deref(), Some("half a rem"));
    assert!(page.is_focused("#drawer .drawer-heading .drawer-input"), "the field keeps the focus");
    page.wait_text("#drawer .drawer-heading", "It has been changed since you began");

    page.press("!");
    page.press(ENTER);
    page.wait_text("#drawer .drawer-title", "my title!");
    assert_eq!(fleet.show(&task)["task"]["title"], "my title!");

    // A closed drawer keeps what was not sent.
    page.click("#drawer [aria-label='Close the task']");
    page.wait_gone("#drawer");
    open(&page, &task);
    page.wait("#drawer .composer textarea");
    assert_eq!(page.value("#drawer .composer textarea").as_deref(), Some("half a rem"));
    page.is_content();
}

#[test]
fn a_task_that_is_deleted_below_says_that_it_is_gone() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("soon gone", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);

    fleet.cli(["archive", &task]).ok();
    page.wait_text("#drawer .drawer-status", "archived");
    fleet.cli(["archive", "--rm", &task]).ok();
    page.wait_text("#drawer", "This task does not exist");
}
