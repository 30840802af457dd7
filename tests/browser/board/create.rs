//! Tasks that are made in a column.

use super::{card_in, choose};
use crate::browser::driver::{ENTER, ESCAPE};
use crate::browser::{card, column, fleet, visit};
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

/// The label of a field of the form, as what it belongs to.
fn field(name: &str) -> String {
    format!(".create [id$='-{name}']")
}

#[test]
fn a_task_is_created_with_a_parent_skills_an_assignee_and_a_description() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parent = fleet.create("pour the foundation", "true", &["--triage"]);
    let page = visit(&fleet);
    page.wait(&card(&parent));

    page.click(&format!("{} button[title='Create a task']", column("todo")));
    page.fill(".create .create-title", "build the walls");
    page.fill(&field("assignee"), "shell");
    page.fill(&field("body"), "echo walls");
    page.fill(&field("skills"), "masonry, plaster");
    page.click_text(".create button", "Parent");
    choose(&page, "pour");
    page.wait_text(".create-parents .chip", "pour the foundation");
    page.click_text(".create button", "Parent");
    page.wait_text("dialog.picker", "Nothing found");
    page.press(ESCAPE);
    page.wait_gone("dialog.picker");
    page.click(".create button[type=submit]");
    page.wait_text(&column("todo"), "build the walls");

    let made = fleet.json(["list", "--status", "todo"]);
    let id = made[0]["id"].as_str().unwrap();
    let shown = fleet.show(id);
    assert_eq!(shown["parents"][0], parent.as_str(), "{shown:#}");
    let task = &shown["task"];
    assert_eq!(
        (&task["assignee"], &task["body"], &task["skills"]),
        (&"shell".into(), &"echo walls".into(), &serde_json::json!(["masonry", "plaster"])),
        "{shown:#}"
    );

    // The form is there for the next one, until it is closed.
    assert_eq!(page.value(".create .create-title").as_deref(), Some(""));
    page.click(".create-parents [aria-label^='Remove the parent']");
    page.wait_gone(".create-parents .chip");
    page.fill(".create .create-title", "paint");
    page.press(ESCAPE);
    page.wait_gone(".create");
    page.eventually("the button has the focus again", |page| {
        page.is_focused("[title='Create a task']").then_some(())
    });
    assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_time_that_nobody_understands_is_refused_in_the_form_and_what_was_typed_stays() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);

    page.click(&column("scheduled"));
    page.click(&format!("{} button[title='Create a task']", column("scheduled")));
    page.fill(&field("when"), "some day");
    page.fill(".create .create-title", "water the plants");
    page.press(ENTER);
    page.wait_text(".create .field-error", "some day");
    assert_eq!(page.value(".create .create-title").as_deref(), Some("water the plants"));

    page.fill(&field("when"), "2h");
    page.click(".create button[type=submit]");
    page.wait_text(&format!("{} .card", column("scheduled")), "water the plants");
    let made = fleet.json(["list", "--status", "scheduled"]);
    page.wait(&card_in("scheduled", made[0]["id"].as_str().unwrap()));
}
