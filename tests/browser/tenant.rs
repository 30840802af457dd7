//! A session of a tenant: what it sees, and what it must not see or press.

use super::driver::Browser;
use super::{card, fleet, visit};
use crate::harness::User;

#[test]
fn a_session_of_a_tenant_sees_its_own_tasks_and_no_button_of_operators() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.cli(["tenant", "create", "acme"]).ok();
    let ours = fleet.create("ours", "true", &["--initial-status", "blocked", "--tenant", "acme"]);
    let theirs = fleet.create("theirs", "true", &["--initial-status", "blocked", "--tenant", "globex"]);
    let free = fleet.create("of nobody", "true", &["--initial-status", "blocked"]);
    let operator = visit(&fleet);
    operator.wait("button.nudge");
    operator.wait(&card(&theirs));
    let page = Browser::start();
    let url = fleet.json(["dashboard", "--tenant", "acme"])["url"].as_str().unwrap().to_owned();
    page.open(&url);

    page.wait(&card(&ours));
    for other in [&theirs, &free] {
        assert!(!page.sees(&card(other)));
    }
    let text = page.text("body").unwrap();
    assert!(!text.contains("globex") && !text.contains("theirs"), "{text}");
    page.wait_text("#account", "acme");
    assert!(!page.sees("button.nudge"), "a tenant nudges nobody");
    page.press("n");
    page.press("?");
    page.wait_text("dialog[open]", "Keyboard shortcuts");
    let keys = page.text("dialog[open]").unwrap();
    assert!(!keys.contains("Nudge") && !keys.contains("Missions"), "{keys}");
    page.press(super::driver::ESCAPE);
    page.wait_gone("dialog[open]");
    let sent = "return performance.getEntriesByType('resource').filter(one => one.name.endsWith('/api/v1/dispatch')).length";
    assert_eq!(page.script(sent, &[]), 0);
    assert!(!page.texts("#nav a").contains(&"Missions".to_owned()));

    // What is done for others does not arrive, and what is its own does.
    let hidden = fleet.create("hidden", "true", &["--triage"]);
    let new = fleet.create("new", "true", &["--triage", "--tenant", "acme"]);
    page.wait(&card(&new));
    assert!(!page.sees(&card(&hidden)));

    // Its own task is opened and changed; the address of another one is that of none.
    page.click(&format!("{} .card-title", card(&ours)));
    page.wait_text("#drawer .drawer-title", "ours");
    page.fill("#drawer .composer textarea", "from a tenant");
    page.press(super::driver::ENTER);
    page.wait_text("#drawer .comments", "from a tenant");
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();
    page.open(&format!("{origin}/board?task={theirs}"));
    page.wait_text("#drawer", "This task does not exist");
    assert!(!page.text("#drawer").unwrap().contains("theirs"));
}

#[test]
fn a_tenant_is_offered_the_moves_that_it_may_make() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.cli(["tenant", "create", "acme"]).ok();
    let made = fleet.json(["create", "ours", "--tenant", "acme"]);
    let ours = made["id"].as_str().unwrap();
    let page = Browser::start();
    let url = fleet.json(["dashboard", "--tenant", "acme"])["url"].as_str().unwrap().to_owned();
    page.open(&url);
    page.click(&format!("{} .card-title", card(ours)));
    page.wait("#drawer .drawer-moves");

    let allowed = page.script(
        "return fetch('/api/v1/verbs', {headers: {'X-Supervisor-Dashboard': localStorage['supervisor.key']}})
             .then(got => got.json()).then(rows => rows.map(row => row.name))",
        &[],
    );
    let allowed: Vec<String> = serde_json::from_value(allowed).unwrap();
    let may = |verb: &str| allowed.iter().any(|name| name == verb);
    assert!(may("block") && !may("dispatch"), "{allowed:?}");
    let verbs =
        [("hold", "hold"), ("block", "block"), ("review", "request-review"), ("complete", "complete")];
    for (button, verb) in verbs {
        page.eventually(&format!("{button} is offered: {}", may(verb)), |page| {
            (page.sees(&format!("#drawer [data-move={button}]")) == may(verb)).then_some(())
        });
    }
}
