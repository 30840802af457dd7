//! The versions of the protocol: those with a handshake, and the one without.

use serde_json::{Value, json};

use super::agent::{Agent, names, text};
use super::stdio::{OF_A_RUN, OF_A_WORKER};
use crate::harness::Fleet;
use crate::listeners::idle_worker;

/// Returns the metadata of each request without a session.
pub(super) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn the_handshake_gives_the_version_that_was_asked_for_or_the_newest_that_has_one() {
    let fleet = Fleet::boot();
    for (asked, given) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("1999-12-31", "2025-11-25"),
    ] {
        let mut agent = Agent::of_the_operator(&fleet);

        let opened = agent.open(asked);

        assert_eq!(opened["protocolVersion"], json!(given), "{opened}");
        assert_eq!(opened["serverInfo"]["name"], json!("supervisor"));
        assert!(opened["capabilities"]["tools"].is_object(), "{opened}");
        assert!(opened["instructions"].as_str().unwrap().contains("kanban_show"), "{opened}");
        assert!(agent.tools().contains(&"kanban_create".to_owned()));
        let called = agent.call("kanban_assignees", &json!({}));
        assert!(called.get("resultType").is_none(), "it is of a later version: {called}");
    }
}

#[test]
fn the_version_without_a_handshake_is_spoken_from_the_first_request() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let mut agent = Agent::of_a_worker(&fleet, &task, &token);

    let found = agent.ask("server/discover", &json!({"_meta": meta()}))["result"].clone();
    let listed = agent.ask("tools/list", &json!({"_meta": meta()}))["result"].clone();
    let called = agent.ask(
        "tools/call",
        &json!({"name": "kanban_comment", "arguments": {"body": "no handshake"}, "_meta": meta()}),
    )["result"]
        .clone();

    let all = json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    assert_eq!(found["supportedVersions"], all, "{found}");
    assert_eq!(names(&listed), [&OF_A_WORKER[..], &OF_A_RUN].concat());
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(listed["ttlMs"], json!(0), "{listed}");
    assert_eq!(called["resultType"], json!("complete"), "{called}");
    assert!(text(&called).contains("no handshake"), "{called}");
    assert_eq!(fleet.show(&task)["comments"][0]["body"], "no handshake");
}
