//! The head of the drawer: the status, the title, and why the task waits.

use super::open;
use crate::browser::{fleet, visit};
use crate::harness::User;

#[test]
fn the_drawer_says_why_its_task_waits() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parent = fleet.create("the parent", "true", &["--initial-status", "blocked"]);
    let child = fleet.create("the child", "true", &["--parent", &parent]);
    let page = visit(&fleet);

    open(&page, &parent);
    page.wait_text("#drawer .drawer-status", "blocked");
    page.wait("#drawer .drawer-why");
    assert_eq!(page.texts("#drawer .drawer-why > *"), ["Blocked", "Held at creation"]);
    page.click("#drawer .links a");
    page.wait_text("#drawer .drawer-title", "the child");
    page.wait_text("#drawer .drawer-id", &child);
    assert_eq!(page.texts("#drawer .drawer-why > *"), ["Why", "Waits for the parent (blocked)"]);

    fleet.cli(["complete", &parent]).ok();
    page.wait_text("#drawer .drawer-status", "done");
    page.wait_gone("#drawer .drawer-why");
}
