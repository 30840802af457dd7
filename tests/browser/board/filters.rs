//! Search and filters, which are part of the address.

use super::wait_column;
use crate::browser::driver::ESCAPE;
use crate::browser::{card, fleet, visit};
use crate::harness::User;

#[test]
fn what_is_looked_for_stands_in_the_address() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parked = |title: &str, body: &str, priority: &str| {
        fleet.create(title, body, &["--initial-status", "blocked", "--priority", priority])
    };
    let by_title = parked("find the needle", "true", "2");
    let by_body = parked("a haystack", "echo the Needle", "1");
    let other = parked("hay", "true", "0");
    let page = visit(&fleet);
    page.wait(&card(&other));

    page.press("/");
    page.press("needle");
    page.wait_gone(&card(&other));
    wait_column(&page, "blocked", &[&by_title, &by_body]);
    page.wait_address("q=needle", true);
    page.reload();
    wait_column(&page, "blocked", &[&by_title, &by_body]);

    page.press("/");
    page.press(ESCAPE);
    page.wait_address("q=", false);
    page.wait(&card(&other));
}

#[test]
fn tenant_and_assignee_filter_the_board_and_back_undoes_them() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let parked = |title: &str, more: &[&str]| {
        let args = [&["create", title, "--initial-status", "blocked"], more].concat();
        fleet.json(args)["id"].as_str().unwrap().to_owned()
    };
    let ours = parked("ours", &["--priority", "9", "--tenant", "acme", "--assignee", "shell"]);
    let free = parked("free", &["--priority", "8", "--tenant", "acme"]);
    let theirs = parked("theirs", &["--priority", "7", "--tenant", "globex", "--assignee", "shell"]);
    let page = visit(&fleet);
    wait_column(&page, "blocked", &[&ours, &free, &theirs]);

    let choose = |select: &str, value: &str| {
        page.eventually(&format!("{value} can be chosen"), |page| {
            let chosen = page.script(
                "const [css, value] = arguments;
                 const select = document.querySelector(css);
                 if (![...select.options].some(option => option.value === value)) return false;
                 select.value = value; select.dispatchEvent(new Event('change')); return true;",
                &[select.into(), value.into()],
            );
            chosen.as_bool().filter(|chosen| *chosen)
        });
    };
    choose("select[aria-label=Tenant]", "acme");
    wait_column(&page, "blocked", &[&ours, &free]);
    page.wait_address("tenant=acme", true);
    choose("select[aria-label=Assignee]", "shell");
    wait_column(&page, "blocked", &[&ours]);
    page.wait_address("assignee=shell", true);
    page.reload();
    wait_column(&page, "blocked", &[&ours]);
    assert_eq!(page.value("select[aria-label=Tenant]").as_deref(), Some("acme"));

    // What is made meanwhile is held against the filters, too.
    let more = parked("more of ours", &["--tenant", "acme", "--assignee", "shell"]);
    parked("more of theirs", &["--tenant", "globex"]);
    wait_column(&page, "blocked", &[&ours, &more]);

    page.back();
    wait_column(&page, "blocked", &[&ours, &free, &more]);
    page.back();
    page.wait(&card(&theirs));
    page.wait_address("tenant=", false);

    choose("select[aria-label=Assignee]", "-");
    page.wait_gone(&card(&ours));
    assert!(page.sees(&card(&free)));
    page.click_text("button", "Clear filters");
    page.wait(&card(&ours));
    page.wait_address("assignee", false);
}
