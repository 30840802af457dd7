//! What a first guess at a command leads to, and what a command says where something is missing.

use crate::harness::Fleet;

#[test]
fn words_of_other_programs_are_refused_with_ours() {
    let fleet = Fleet::offline();
    let task = fleet.create("x", "true", &[]);
    for (line, way) in [
        ("run view {}", "supervisor show {}"),
        ("run list", "supervisor runs TASK"),
        ("service restart", "supervisor service reload"),
        ("reset-failed", "supervisor retry --failed"),
        ("delete {}", "supervisor archive {} --rm {}"),
        ("priority {}", "supervisor edit {} --priority 10"),
        ("attachments get {} 1", "supervisor attachments {}"),
        ("attachments get {} notes.txt", "supervisor attachments {}"),
        ("hold {}", "supervisor hold {} --reason 'not before the release'"),
        ("help config", "supervisor help docs/configuration.md"),
        ("kill --all", "supervisor kill --status running"),
        ("run -it bash", "supervisor attach"),
    ] {
        let line = line.replace("{}", &task);
        fleet.cli(line.split(' ')).refused(2, &way.replace("{}", &task));
    }
    fleet.cli(["archive", &task, "--rm", &task]).ok();
    fleet.create("y", "true", &[]);
    let listed: serde_json::Value = fleet.cli(["list", "--format", "json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}
