//! A task that is tried again goes on in the session of its agent, and begins a new one where that is gone.

use serde_json::json;

use super::{STAND_INS, StandIn, create, stand_ins};
use crate::harness::User;

/// Returns the directory of each lane's sessions in its home, and its error for a missing session.
fn habits(lane: &str) -> Option<(&'static str, &'static str)> {
    match lane {
        "claude" => Some((".claude", "No conversation found with session ID: s-1")),
        "codex" => Some((".codex", "Error: no rollout found for thread id s-1")),
        "opencode" => Some((".local/share/opencode", "Error: Session not found: s-1")),
        "gemini" => Some((".gemini/tmp", "Invalid session identifier \"s-1\"")),
        _ => None,
    }
}

/// A program that keeps a file with its session. `first` is what it does without one, `again` what with one.
fn agent(one: &StandIn, first: &str, again: &str) -> String {
    let Some((state, gone)) = habits(one.lane) else { return "exit 1".to_owned() };
    format!(
        "prompt=$(read_prompt)\nstate=$HOME/{state}\nsay() {{ cat <<'END'\n{}\nEND\n}}\ngone() {{ echo '{gone}' >&2; exit 1; }}\n\
         end() {{ supervisor complete --summary \"$1\" > /dev/null; exit 0; }}\n\
         case \"$*\" in *s-1*) {again} ;; *) {first} ;; esac\n",
        one.well
    )
}

fn keepers() -> impl Iterator<Item = &'static StandIn> {
    STAND_INS.iter().filter(|one| habits(one.lane).is_some())
}

#[test]
fn a_task_that_is_tried_again_goes_on_in_its_session_and_learns_what_is_new() {
    for user in User::all() {
        let fleet = stand_ins(user, |one| {
            let first = "echo begun > \"$state/kept\"; supervisor comment mine > /dev/null; say; exit 1";
            let again = "[ -s \"$state/kept\" ] || end 'its session is gone'
                case $prompt in *'the parser'* | *mine*) end 'it got all of it again' ;; esac
                case $prompt in *'ended'*'crashed'*'supervisor complete'*) end 'went on' ;; esac
                end \"$prompt\"";
            agent(one, first, again)
        });
        for one in keepers() {
            let task = create(&fleet, one.lane);
            let shown = fleet.wait_for(&task, "done");
            assert_eq!(shown["latest_summary"], "went on", "{}: {shown:#}", one.lane);
            let sessions = fleet.root().join("sessions/default").join(&task);
            assert!(sessions.is_dir(), "{}", sessions.display());
            fleet.cli(["archive", &task]).ok();
            assert!(!sessions.exists(), "the sessions of a task go with it: {}", sessions.display());
        }
    }
}

#[test]
fn a_session_that_is_gone_costs_no_attempt_and_the_next_run_begins_anew() {
    let fleet = stand_ins(User::current(), |one| {
        let first = "case $prompt in *'the parser'*) ;; *) end 'it was told too little' ;; esac
            [ -e \"$state/kept\" ] && end 'began anew'
            echo begun > \"$state/kept\"; say; exit 1";
        agent(one, first, "gone")
    });
    for one in keepers() {
        let words =
            ["create", "fix it", "--assignee", one.lane, "--body", "the parser", "--max-retries", "2"];
        let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], "began anew", "{}: {shown:#}", one.lane);
        let outcomes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
        assert_eq!(outcomes, [&json!("crashed"), &json!("spawn_failed"), &json!("completed")], "{shown:#}");
    }
}

#[test]
fn a_run_whose_sessions_were_taken_away_begins_anew() {
    let fleet = stand_ins(User::current(), |one| {
        let first = "case $prompt in *'an answer'*) end 'began anew' ;; esac
            say; supervisor block 'which one?' --kind needs_input > /dev/null; exit 0";
        agent(one, first, "end 'it went on'")
    });
    let task = create(&fleet, "claude");
    fleet.wait_for(&task, "blocked");
    let sessions = fleet.root().join("sessions/default").join(&task);
    std::fs::remove_dir_all(&sessions).unwrap();
    fleet.cli(["comment", &task, "an answer"]).ok();
    fleet.cli(["unblock", &task]).ok();
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "began anew");
}

#[test]
fn a_directory_that_a_worker_puts_in_the_place_of_its_sessions_leads_nobody_astray() {
    let fleet = stand_ins(User::current(), |one| {
        // Its home is its own: the link may go, and what it leads to stays where it is.
        let first = "rm -f \"$state\"; ln -s /etc \"$state\"; say; exit 1";
        agent(one, first, "[ -w \"$state/\" ] && end 'its own'; end 'another one'")
    });
    let task = create(&fleet, "claude");
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "its own");
}
