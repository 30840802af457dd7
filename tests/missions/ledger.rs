//! The ledger: who has used what, while runs go on, and for how long it is known.

use super::{COSTLY, id_of};
use crate::harness::Fleet;

/// Reports a cost and goes on until a file is there.
const REPORTS: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"bought","total_cost_usd":0.25,"usage":{"input_tokens":5,"output_tokens":2}}'
until [ -e go ]; do sleep 0.1; done"#;

#[test]
fn what_a_run_uses_is_seen_by_mission_tenant_account_and_day_while_it_goes_on() {
    let fleet = Fleet::offline();
    fleet.lane("costly", &format!("{COSTLY}account = \"main\"\n"));
    let site = fleet.home().join("site");
    std::fs::create_dir(&site).unwrap();
    crate::fleet::give(&site);
    fleet.start();
    let place = format!("dir:{}", site.display());
    let first = ["mission", "create", "buy", "--tenant", "acme", "--notify", "none"];
    let mission = id_of(&fleet, &first);
    let more = ["--assignee", "costly", "--body", REPORTS, "--workspace", &place, "--mission", &mission];
    let part = id_of(&fleet, &[&["create", "part"], &more[..]].concat());

    let cost = |by: &str| {
        let rows = fleet.json(["spend", "--by", by])["rows"].clone();
        let row = rows.as_array().unwrap().first().cloned().unwrap_or_default();
        (row["name"].as_str().unwrap_or_default().to_owned(), row["cost_micros"].as_u64().unwrap_or(0))
    };
    fleet.eventually("the ledger has what the run reports", || (cost("mission").1 == 250_000).then_some(()));
    assert_eq!(fleet.status_of(&part), "running", "it is live");
    assert_eq!(cost("mission").0, mission);
    assert_eq!(cost("tenant"), ("acme".to_owned(), 250_000));
    assert_eq!(cost("account"), ("main".to_owned(), 250_000));
    let (day, on_day) = cost("day");
    assert_eq!((day.len(), on_day), ("2026-11-23".len(), 250_000), "{day}");
    std::fs::write(site.join("go"), "").unwrap();
    fleet.wait_for(&part, "done");
    assert_eq!(cost("mission").1, 250_000, "what was reported counts once");
}

#[test]
fn the_ledger_has_its_days_until_they_are_collected() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a board"]);
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    let used = "INSERT INTO spend (day, mission, tenant, account, profile, cost_micros) \
                VALUES (date('now', ?1), 't_1', 'acme', 'main', 'bob', 1000000)";
    for ago in ["-2 days", "-399 days", "-402 days", "-4000 days"] {
        board.execute(used, [ago]).unwrap();
    }
    drop(board);
    let days = || fleet.json(["spend", "--by", "day"])["rows"].as_array().unwrap().len();
    let ledger = |collected: &serde_json::Value| {
        let removed = collected["removed"].as_array().unwrap().clone();
        removed.iter().find(|item| item["kind"] == "ledger").map(|item| item["entries"].as_u64().unwrap())
    };

    assert_eq!(ledger(&fleet.json(["gc", "--dry-run"])), Some(2));
    assert_eq!(days(), 4, "nothing was changed");
    assert_eq!(ledger(&fleet.json(["gc"])), Some(2));
    assert_eq!(days(), 2);
    assert_eq!(ledger(&fleet.json(["gc"])), None);
    assert_eq!(ledger(&fleet.json(["gc", "--spend-retention-days", "30"])), Some(1));
    assert_eq!(days(), 1);
}
