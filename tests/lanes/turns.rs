//! The end of a turn: an agent that has not reported is reminded, and one with a goal goes on in its session.

use super::{STAND_INS, StandIn, stand_ins};
use crate::harness::{Fleet, User};

fn create(fleet: &Fleet, lane: &str, more: &[&str]) -> String {
    let mut words =
        vec!["create", "fix it", "--assignee", lane, "--body", "the parser", "--max-retries", "1"];
    words.extend(more);
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

/// Finds the hook where the program of its lane would, in its settings or among its arguments, and runs it as that does when a turn ends.
const HOOK: &str = r#"read_prompt > /dev/null
command=$({ cat "$HOME/settings.json" "$HOME/.gemini/settings.json" 2> /dev/null; printf '%s\n' "$@"; } |
    grep -o 'command"*[:=]"[^"]*"' | grep -o -m 1 'supervisor __turn_end[ a-z]*')
stop() { printf '{"hook_event_name":"Stop","session_id":"s-1","stop_hook_active":%s}' "$1" | sh -c "$command"; }
"#;

#[test]
fn a_turn_that_ends_without_a_verdict_goes_on_twice_at_most() {
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
        let hooked = [
            ("claude", "`mcp__board__kanban_complete`"),
            ("codex", "`kanban_complete`"),
            ("gemini", "`mcp_board_kanban_complete`"),
        ];
        for (lane, tool) in hooked {
            let task = create(&fleet, lane, &[]);
            let shown = fleet.wait_for(&task, "done");
            let said = shown["latest_summary"].as_str().unwrap();
            assert_eq!(said.matches("\"decision\":\"block\"").count(), 2, "{lane}: {said}");
            assert!(said.contains("This run has no verdict yet.") && said.contains(tool), "{lane}: {said}");
            assert_eq!(shown["runs"][0]["metadata"]["let_go"], "", "{lane}: {shown:#}");
        }
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

/// A program that ends its turn without a verdict until it was asked for the third time, and says in which session it is.
fn keeps_at_it(one: &StandIn) -> String {
    let state = match one.lane {
        "claude" => ".claude",
        "codex" => ".codex",
        "opencode" => ".local/share/opencode",
        "gemini" => ".gemini/tmp",
        _ => return "exit 1".to_owned(),
    };
    format!(
        "prompt=$(read_prompt); turns=\"$HOME/{state}/turns\"; echo . >> \"$turns\"; n=$(wc -l < \"$turns\")
         case \"$*\" in *s-1*) resumed=yes ;; *) resumed=no ;; esac
         [ $n = 1 ] || [ $resumed = yes ] || exit 9
         printf '%s' \"$prompt\" | grep -q '## Goal' || exit 8
         [ $n = 1 ] || printf '%s' \"$prompt\" | grep -q \"$((n - 1)) of them\" || exit 7
         echo \"$n\" > reached
         [ $n -lt 3 ] || [ -n \"$CHECKED\" ] || supervisor complete --summary \"after $n turns\" > /dev/null
         cat <<'END'\n{}\nEND\n",
        one.well
    )
}

#[test]
fn an_agent_with_a_goal_goes_on_in_its_session_until_it_reports() {
    for user in User::all() {
        let fleet = stand_ins(user, keeps_at_it);
        for one in STAND_INS.iter().filter(|one| one.session.is_some()) {
            let task = create(&fleet, one.lane, &["--goal", "--goal-max-turns", "5"]);
            let shown = fleet.wait_for(&task, "done");
            assert_eq!(shown["latest_summary"], "after 3 turns", "{}: {shown:#}", one.lane);
            let runs = shown["runs"].as_array().unwrap();
            assert_eq!(runs.len(), 3, "{}: {shown:#}", one.lane);
            assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
            assert!(runs.iter().all(|run| run["spent"]["session"] == "s-1"), "{shown:#}");
        }
    }
}

#[test]
fn a_goal_with_a_check_ends_when_that_passes_and_one_without_asks_at_its_limit() {
    let fleet = stand_ins(User::current(), |one| format!("CHECKED=1\n{}", keeps_at_it(one)));
    let check = ["--goal", "--check", "test \"$(cat reached)\" = 2"];
    let task = create(&fleet, "claude", &check);
    let shown = fleet.wait_for(&task, "done");
    let outcomes: Vec<_> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str()).collect();
    let wanted = ["completed", "check_failed", "completed", "check_passed"].map(Some);
    assert_eq!(outcomes, wanted, "{shown:#}");

    let task = create(&fleet, "codex", &["--goal", "--goal-max-turns", "2"]);
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["task"]["block_kind"], "needs_input", "{shown:#}");
    assert!(shown["task"]["question"]["text"].as_str().unwrap().contains("within 2 turns"), "{shown:#}");
    let human = fleet.cli(["show", &task]).ok().stdout;
    assert!(human.contains("goal"), "{human}");

    let warned =
        fleet.json(["create", "x", "--assignee", "shell", "--goal", "--triage"])["warnings"].to_string();
    assert!(warned.contains("cannot resume a session"), "{warned}");
    let warned =
        fleet.json(["create", "x", "--assignee", "shell", "--goal-max-turns", "2", "--triage"])["warnings"]
            .to_string();
    assert!(warned.contains("the task has no goal (--goal)"), "{warned}");
}
