//! The end of a turn: an agent that has not reported is reminded.

use super::stand_ins;
use crate::harness::{Fleet, User};

fn create(fleet: &Fleet, lane: &str, more: &[&str]) -> String {
    let mut words =
        vec!["create", "fix it", "--assignee", lane, "--body", "the parser", "--max-retries", "1"];
    words.extend(more);
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

/// Finds the hook where Claude Code would, and runs it as that does when a turn ends.
const HOOK: &str = r#"read_prompt > /dev/null
settings=$(printf '%s\n' "$@" | grep 'settings.json')
command=$(grep -o '"command":"[^"]*"' "$settings" | cut -d '"' -f 4)
stop() { printf '{"hook_event_name":"Stop","session_id":"s-1","stop_hook_active":%s}' "$1" | sh -c "$command"; }
"#;

#[test]
fn a_turn_of_claude_that_ends_without_a_verdict_goes_on_twice_at_most() {
    for user in User::all() {
        let fleet = stand_ins(user, |one| {
            format!(
                "{HOOK}[ -n \"$command\" ] || exit 9
                 first=$(stop false); again=$(stop true); second=$(stop false); third=$(stop false)
                 supervisor complete --summary \"1 $first 2 $second\" --metadata '{{\"let_go\": \"'\"$again$third\"'\"}}'
                 cat <<'END'\n{}\nEND\n",
                one.well
            )
        });
        let task = create(&fleet, "claude", &[]);
        let shown = fleet.wait_for(&task, "done");
        let said = shown["latest_summary"].as_str().unwrap();
        assert_eq!(said.matches("\"decision\":\"block\"").count(), 2, "{said}");
        assert!(
            said.contains("This run has no verdict yet.") && said.contains("mcp__board__kanban_complete"),
            "{said}"
        );
        assert_eq!(shown["runs"][0]["metadata"]["let_go"], "", "{shown:#}");
    }
}

#[test]
fn a_turn_that_ends_with_a_verdict_or_outside_of_any_sense_is_let_go() {
    let fleet = stand_ins(User::current(), |one| {
        format!(
            "{HOOK}printf nonsense | sh -c \"$command\" > $TMPDIR/odd; head -c 3000000 /dev/zero | sh -c \"$command\" >> $TMPDIR/odd
             supervisor complete --summary \"odd$(cat $TMPDIR/odd)\" > /dev/null
             stop false > after; [ ! -s after ] && echo none > after
             supervisor comment \"after: $(cat after)\" > /dev/null
             cat <<'END'\n{}\nEND\n",
            one.well
        )
    });
    let task = create(&fleet, "claude", &[]);
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "odd", "{shown:#}");
    let comments = shown["comments"].to_string();
    assert!(!comments.contains("decision"), "{comments}");
}
