//! Dependencies of a task, and the tasks that depend on it.

use super::open;
use crate::browser::driver::{ENTER, ESCAPE};
use crate::browser::{fleet, visit};
use crate::harness::User;

/// The first list is of what the task waits for, the second of what waits for it.
fn side(at: usize) -> String {
    format!("#drawer .links-side:nth-of-type({at})")
}

#[test]
fn tasks_are_found_linked_opened_and_unlinked() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let [task, before, after] = ["build the house", "pour the foundation", "move in"]
        .map(|title| fleet.create(title, "true", &["--triage"]));
    let page = visit(&fleet);
    open(&page, &task);

    page.click(&format!("{} .links-plus", side(1)));
    page.fill(&format!("{} .links-add input", side(1)), "foundation");
    page.wait_text(&format!("{} .links-add [role=option]", side(1)), &before);
    page.press(ENTER);
    page.wait_text(&format!("{} .link-chip", side(1)), "pour the foundation");
    assert_eq!(fleet.show(&task)["parents"][0], before.as_str());
    page.eventually("its status is a colour", |page| {
        (page.count(&format!("{} .link-chip[data-status=triage]", side(1))) == 1).then_some(())
    });
    // By the beginning of the id; what is linked already is not offered.
    page.click(&format!("{} .links-plus", side(2)));
    page.fill(&format!("{} .links-add input", side(2)), &after[..8]);
    page.wait_text(&format!("{} .links-add [role=option]", side(2)), "move in");
    page.press(ENTER);
    page.wait_text(&format!("{} .link-chip", side(2)), "move in");
    page.click(&format!("{} .links-plus", side(1)));
    page.fill(&format!("{} .links-add input", side(1)), "foundation");
    page.wait_text(&format!("{} .links-add", side(1)), "No task fits");
    page.press(ESCAPE);
    page.press(ESCAPE);
    page.wait_gone(&format!("{} .links-add input", side(1)));
    assert!(page.sees("#drawer"));

    page.click(&format!("{} .link-chip a", side(1)));
    page.wait_text("#drawer .drawer-title", "pour the foundation");
    page.wait_address(&format!("task={before}"), true);
    page.back();
    page.wait_text("#drawer .drawer-title", "build the house");

    page.click(&format!("{} .link-chip [title=Unlink]", side(1)));
    page.wait_gone(&format!("{} .link-chip", side(1)));
    let shown = fleet.show(&task);
    assert_eq!(shown["parents"], serde_json::json!([]), "{shown:#}");
    assert_eq!(shown["children"][0], after.as_str(), "{shown:#}");
    page.is_content();
}

#[test]
fn a_circle_of_tasks_is_refused_in_the_servers_words() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let first = fleet.create("first of both", "true", &["--initial-status", "blocked"]);
    let second = fleet.create("second of both", "true", &["--parent", &first]);
    let page = visit(&fleet);
    open(&page, &first);

    page.click("#drawer .links-side:first-of-type .links-plus");
    page.fill("#drawer .links-add input", "second of both");
    page.wait_text("#drawer .links-add", &second);
    page.press(ENTER);
    page.wait_text("#drawer", "cycle");
    let parents = fleet.show(&first)["parents"].as_array().map_or(0, Vec::len);
    assert_eq!(parents, 0);
    // The words are those of the command line.
    let said = fleet.cli(["link", &second, &first]).stderr;
    let said = said.lines().next().unwrap().trim_start_matches("error: ").to_owned();
    page.wait_text("#drawer .drawer-refusal.is-shown", &said);
}
