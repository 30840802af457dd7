//! The drawer opens and closes: by the mouse, by keys, and by the address.

use super::open;
use crate::browser::driver::ESCAPE;
use crate::browser::{card, fleet, visit};
use crate::harness::User;

#[test]
fn escape_a_click_outside_and_back_close_it_and_the_focus_returns() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("to open", "true", &["--triage"]);
    let page = visit(&fleet);
    let title = format!("{} .card-title", card(&task));
    let is_back = |how: &str| {
        page.wait_gone("#drawer");
        page.wait_address("task=", false);
        page.eventually(&format!("the focus is back after {how}"), |page| {
            page.is_focused(&title).then_some(())
        });
    };

    open(&page, &task);
    page.wait_address(&format!("task={task}"), true);
    page.eventually("it has the focus", |page| page.is_focused("#drawer, #drawer *").then_some(()));
    page.press(ESCAPE);
    is_back("Escape");

    open(&page, &task);
    // Escape ends what is edited first.
    page.click("#drawer .drawer-title");
    page.wait("#drawer .drawer-heading .drawer-input");
    page.press(ESCAPE);
    page.wait_gone("#drawer .drawer-heading .drawer-input");
    assert!(page.sees("#drawer"));
    page.press_at(300, 700);
    is_back("a click outside");

    open(&page, &task);
    page.click("#drawer [aria-label='Close the task']");
    is_back("the button");

    open(&page, &task);
    page.back();
    page.wait_gone("#drawer");
}

#[test]
fn a_task_has_an_address_on_every_page_and_one_that_is_not_there_is_said() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("to open", "true", &["--triage"]);
    let page = visit(&fleet);
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();

    for path in ["/board", "/work", "/timeline", "/health", "/missions"] {
        page.open(&format!("{origin}{path}?task={task}"));
        page.wait_text("#drawer .drawer-title", "to open");
        page.reload();
        page.wait_text("#drawer .drawer-title", "to open");
        page.press(ESCAPE);
        page.wait_gone("#drawer");
        assert!(page.address().ends_with(path), "{}", page.address());
    }
    page.open(&format!("{origin}/board?task=t_00000000&archived=1&q=open&lanes=0"));
    page.wait_text("#drawer", "This task does not exist");
    page.click_text("#drawer button", "Close");
    page.wait_gone("#drawer");
    assert!(page.address().ends_with("/board?archived=1&q=open&lanes=0"), "{}", page.address());
}

#[test]
fn a_narrow_window_is_all_drawer_and_keeps_the_focus_in_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("to open", "true", &["--triage"]);
    let page = visit(&fleet);
    page.resize(360, 740);
    page.click(".strip [data-status=triage]");
    open(&page, &task);

    let covers = page.script(
        "const box = document.getElementById('drawer').getBoundingClientRect(); return [box.left, box.width, document.getElementById('main').inert]",
        &[],
    );
    assert_eq!(covers, serde_json::json!([0, 360, true]));
    for _ in 0..60 {
        page.press("\u{e004}");
        assert!(page.is_focused("#drawer, #drawer *"), "the focus has left it");
    }
    page.press(ESCAPE);
    page.wait_gone("#drawer");
    assert_eq!(page.script("return document.getElementById('main').inert", &[]), false);
}
