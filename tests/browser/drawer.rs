//! The drawer of a task: what it says, and what is changed in it.

use std::fs;

use super::driver::{ENTER, ESCAPE};
use super::{card, fleet, visit};
use crate::harness::User;

#[test]
fn a_task_is_read_and_changed_in_its_place() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let body = "# Plan\n\nSome *words* and a [link](https://example.com/).";
    let task =
        fleet.json(["create", "old title", "--initial-status", "blocked", "--body", body])["id"].clone();
    let task = task.as_str().unwrap();
    let page = visit(&fleet);
    page.click(&format!("{} .card-title", card(task)));

    page.wait_text("#drawer h1, #drawer .drawer-scroll", "Plan");
    let link = "#drawer a[href='https://example.com/']";
    page.wait(link);
    let relation = page.script("return document.querySelector(arguments[0]).rel", &[link.into()]);
    assert!(relation.as_str().unwrap().contains("noopener"), "{relation}");

    page.click("#drawer .drawer-title");
    page.fill("#drawer .drawer-heading .drawer-input", "new title");
    page.press(ENTER);
    fleet.eventually("the title is changed", || {
        (fleet.show(task)["task"]["title"] == "new title").then_some(())
    });
    page.wait_text(&card(task), "new title");

    page.fill("#drawer .composer textarea", "a remark");
    page.press(ENTER);
    page.wait_text("#drawer .comments", "a remark");
    assert_eq!(fleet.show(task)["comments"][0]["body"], "a remark");

    assert!(page.address().contains(&format!("task={task}")), "{}", page.address());
    page.press(ESCAPE);
    page.press(ESCAPE);
    page.wait_gone("#drawer");
    assert!(!page.address().contains("task="), "{}", page.address());
}

#[test]
fn a_circle_of_tasks_is_refused_in_the_servers_words() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let first = fleet.create("first of both", "true", &["--initial-status", "blocked"]);
    let second = fleet.create("second of both", "true", &["--parent", &first]);
    let page = visit(&fleet);
    page.click(&format!("{} .card-title", card(&first)));

    page.click("#drawer .links-side:first-of-type .links-plus");
    page.fill("#drawer .links-add input", "second of both");
    page.wait_text("#drawer .links-add", &second);
    page.press(ENTER);
    page.wait_text("#drawer", "cycle");
    let parents = fleet.show(&first)["parents"].as_array().map_or(0, Vec::len);
    assert_eq!(parents, 0);
}

#[test]
fn a_file_goes_up_and_comes_down_as_it_was() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("with a file", "true", &["--initial-status", "blocked"]);
    let file = fleet.home().join("figures.csv");
    fs::write(&file, "a,b\n1,2\n").unwrap();
    let page = visit(&fleet);
    page.click(&format!("{} .card-title", card(&task)));

    page.upload("#drawer input[type=file]", &file);
    page.wait_text("#drawer .files", "figures.csv");
    let files = fleet.json(["attachments", &task]);
    assert_eq!(files[0]["filename"], "figures.csv", "{files:#}");
    assert_eq!(files[0]["size"], 8, "{files:#}");
    page.is_content();
}
