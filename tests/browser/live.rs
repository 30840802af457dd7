//! What happens elsewhere is seen at once, and a connection that was lost misses nothing.

use super::{card, column, enter, fleet, visit};
use crate::harness::User;

use super::driver::Browser;

#[test]
fn two_browsers_and_the_command_line_see_the_same() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (one, two) = (visit(&fleet), visit(&fleet));
    let task = fleet.create("seen by both", "true", &["--initial-status", "blocked"]);
    one.wait(&card(&task));
    two.wait(&card(&task));

    one.drag(&card(&task), &column("triage"));
    two.wait(&format!("{} [data-task=\"{task}\"]", column("triage")));
    fleet.cli(["archive", &task]).ok();
    one.wait_gone(&card(&task));
    two.wait_gone(&card(&task));
}

#[test]
fn a_page_outlives_a_restart_of_the_daemon_and_misses_nothing() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = Browser::start();
    enter(&page, &fleet);
    page.wait("#connection[data-state=live]");

    fleet.stop(&[]);
    page.wait("#connection:not([data-state=live])");
    let task = fleet.create("made while nobody looked", "true", &["--initial-status", "blocked"]);
    fleet.start();

    page.wait("#connection[data-state=live]");
    page.wait(&card(&task));
}

#[test]
fn a_session_that_is_revoked_ends_and_the_page_says_how_to_go_on() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (page, other) = (visit(&fleet), visit(&fleet));
    let sessions = fleet.json(["dashboard", "sessions"]);
    let of_page = sessions[0]["session"].as_str().unwrap_or_else(|| panic!("{sessions:#}"));
    fleet.cli(["dashboard", "revoke", of_page]).ok();

    let revoked = page.eventually("one of the pages says how to go on", |page| {
        [page, &other]
            .into_iter()
            .position(|page| page.text("body").is_some_and(|text| text.contains("supervisor dashboard")))
    });
    let still = if revoked == 0 { &other } else { &page };
    assert!(still.sees(".board"), "the other session goes on");
    still.wait("#connection[data-state=live]");
}
