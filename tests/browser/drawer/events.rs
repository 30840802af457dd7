//! The events of a task: the last twenty, and more on demand.

use super::{open, part};
use crate::browser::{fleet, visit};
use crate::harness::User;

#[test]
fn the_last_events_are_shown_and_all_of_them_on_demand() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("changed often", "true", &["--triage"]);
    for n in 1..=60 {
        fleet.cli(["edit", &task, "--priority", &n.to_string()]).ok();
    }
    let page = visit(&fleet);
    open(&page, &task);

    let events = part("Events");
    page.wait(&format!("{events} .event"));
    assert_eq!(page.count(&format!("{events} .event")), 20);
    page.click(&format!("{events} .drawer-older"));
    page.eventually("all are there", |page| (page.count(&format!("{events} .event")) == 61).then_some(()));
    assert!(!page.sees(&format!("{events} .drawer-older")));
    // The newest goes first, and an event that comes later before it.
    page.wait_text(&format!("{events} .event:last-child .event-kind"), "created");
    fleet.cli(["comment", &task, "a remark"]).ok();
    page.wait_text(&format!("{events} .event:first-child .event-kind"), "comment");
    assert_eq!(page.count(&format!("{events} .event")), 62);

    page.click(&format!("{events} .event:last-child summary"));
    page.wait_text(&format!("{events} .event:last-child pre"), "\"status\": \"triage\"");
    page.is_content();
}
