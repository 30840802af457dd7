//! Start and end of a page: the settings in `[dashboard]`, the switch of boards, and the logout.

use super::driver::ESCAPE;
use super::{card, column, enter, fleet, visit};
use crate::harness::User;

/// Chooses an entry of a list, once it is there.
#[track_caller]
fn choose(page: &super::driver::Browser, select: &str, value: &str) {
    page.eventually(&format!("{value:?} can be chosen"), |page| {
        let chosen = page.script(
            "const [css, value] = arguments;
             const select = document.querySelector(css);
             if (![...select?.options ?? []].some(option => option.value === value)) return false;
             select.value = value; select.dispatchEvent(new Event('change')); return true;",
            &[select.into(), value.into()],
        );
        chosen.as_bool().filter(|chosen| *chosen)
    });
}

#[test]
fn the_keys_of_the_configuration_say_how_a_board_begins() {
    let set = "default_tenant = \"acme\"\nlane_by_profile = false\ninclude_archived_by_default = true\nrender_markdown = false\n";
    let Some(fleet) = fleet(User::current(), set) else { return };
    let parked =
        |tenant: &str| fleet.create(tenant, "true", &["--initial-status", "blocked", "--tenant", tenant]);
    let (ours, theirs, old) = (parked("acme"), parked("globex"), parked("acme"));
    fleet.cli(["comment", &ours, "some **words**"]).ok();
    fleet.cli(["archive", &old]).ok();
    let runs = fleet.create("runs", "sleep 600", &["--tenant", "acme"]);
    fleet.wait_for(&runs, "running");

    let page = visit(&fleet);
    page.wait(&card(&ours));
    page.wait_address("tenant=acme", true);
    assert!(!page.sees(&card(&theirs)));
    page.wait(&format!("{} {}", column("archived"), card(&old).trim_start_matches(".columns ")));
    page.wait(&card(&runs));
    assert_eq!(page.count(".lane"), 0, "no lanes");
    page.click(&format!("{} .card-title", card(&ours)));
    page.wait_text("#drawer .comments", "some **words**");
    page.press(ESCAPE);
    page.wait_gone("#drawer");

    // All tenants are chosen in words that are kept and linked.
    choose(&page, "select[aria-label=Tenant]", "");
    page.wait(&card(&theirs));
    page.wait_address("tenant=*", true);
    page.reload();
    page.wait(&card(&theirs));
    page.press("gw");
    page.wait(".work-page");
    page.wait_text(".workers", "runs");
    page.press("gb");
    page.wait(&card(&theirs));
    page.go("/board");
    page.wait(&card(&ours));
    page.wait_address("tenant=acme", true);

    // The other way round.
    let listen = page.script("return location.host", &[]);
    fleet.configure(&format!("[dashboard]\nlisten = {listen}\n"));
    fleet.restart();
    page.go("/board");
    page.wait(&card(&theirs));
    page.wait_address("tenant", false);
    page.wait(".lane[data-lane=shell]");
    assert!(!page.sees(&column("archived")));
    page.click(&format!("{} .card-title", card(&ours)));
    page.wait_text("#drawer .comment-body strong", "words");
    page.is_content();
}

#[test]
fn another_board_is_chosen_in_the_header_and_stands_in_the_address() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let here = fleet.create("here", "true", &["--initial-status", "blocked"]);
    fleet.cli(["boards", "create", "other", "--name", "The other one"]).ok();
    let made = fleet.json(["--board", "other", "create", "there", "--initial-status", "blocked"]);
    let there = made["id"].as_str().unwrap();
    let page = visit(&fleet);
    page.wait(&card(&here));
    page.wait_text("select[aria-label=Board]", "The other one");
    choose(&page, "select[aria-label=Board]", "other");
    page.wait(&card(there));
    page.wait_address("board=other", true);
    assert!(!page.sees(&card(&here)));
    page.reload();
    page.wait(&card(there));
    // What happens there is seen, and the other pages are of this board, too.
    let made = fleet.json(["--board", "other", "create", "later", "--initial-status", "blocked"]);
    page.wait(&card(made["id"].as_str().unwrap()));
    page.press("gr");
    page.wait_address("/reviews?board=other", true);
    choose(&page, "select[aria-label=Board]", "default");
    page.wait(&card(&here));
    page.wait_address("board=", false);
    page.is_content();
}

#[test]
fn who_signs_out_has_no_session_any_more() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    let sessions = || fleet.json(["dashboard", "sessions"]).as_array().unwrap().len();
    assert_eq!(sessions(), 1);
    page.click("#account");
    page.wait_text("dialog[open]", "Signed in as");
    page.click_text("dialog[open] button", "Sign out");
    page.wait_text("#main", "This browser has no session");
    assert_eq!(sessions(), 0);
    // Nothing listens after the last session; another one begins anew.
    enter(&page, &fleet);
    assert_eq!(sessions(), 1);
}
