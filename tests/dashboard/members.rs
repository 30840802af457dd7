//! Users of tenants: a session is that of the tenant, as long as the person is one of its users.

use serde_json::json;

use super::wire::{Browser, Served};
use crate::harness::{User, skip};
use crate::tenants::{by, json_by};

/// A user of the tenant.
const ANN: u32 = 4001;

#[test]
fn a_user_of_a_tenant_gets_a_session_of_that_tenant_until_it_leaves_it() {
    if User::current() != User::Root {
        skip("a user of a tenant: needs root");
        return;
    }
    let served = Served::start("");
    let fleet = &served.fleet;
    fleet.cli(["tenant", "create", "acme", "--member", &ANN.to_string()]).ok();
    let ours = fleet.json(["create", "ours", "--tenant", "acme", "--triage"])["id"].clone();
    let theirs = fleet.json(["create", "theirs", "--triage"])["id"].clone();
    let link = by(fleet, ANN, &["dashboard"]).ok().stdout;
    let code = link.trim_end().split_once('#').unwrap().1;
    let browser = Browser::from_response(&served.show(code, &[]));
    let who = served.ask(&browser, "GET", "/session", "").json();
    assert_eq!((&who["actor"], &who["tenant"]), (&json!("uid-4001"), &json!("acme")));
    let board = served.ask(&browser, "GET", "/api/v1/board", "").body;
    assert!(board.contains(ours.as_str().unwrap()) && !board.contains(theirs.as_str().unwrap()), "{board}");
    assert_eq!(served.verb(&browser, "stop", &json!({})).status, 403);

    let operator = served.browser(&[]);
    let own = json_by(fleet, ANN, &["dashboard", "sessions"]);
    assert_eq!((own.as_array().unwrap().len(), &own[0]["session"]), (1, &json!(browser.id)), "{own}");
    by(fleet, ANN, &["dashboard", "revoke", &operator.id]).refused(3, "there is no session");
    by(fleet, ANN, &["dashboard", "revoke", "--all"]).ok();
    assert_eq!(served.ask(&operator, "GET", "/api/v1/board", "").status, 200, "an operator's goes on");
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 401);
    by(fleet, ANN, &["dashboard", "--tenant", "globex"]).refused(77, "sees the tenant acme alone");

    let link = by(fleet, ANN, &["dashboard"]).ok().stdout;
    let browser = Browser::from_response(&served.show(link.trim_end().split_once('#').unwrap().1, &[]));
    fleet.cli(["tenant", "edit", "acme", "--unset", "users"]).ok();
    let refused = served.ask(&browser, "GET", "/api/v1/board", "");
    assert!([401, 403].contains(&refused.status), "it is no user any more: {refused:?}");
}
