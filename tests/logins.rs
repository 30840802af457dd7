//! Logins of agents: got by a person at a terminal, kept for a profile and a tenant, and copied into the homes of runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::harness::{Fleet, Terminal, User};

/// A program that logs in with a code, and tells which one it has when it works.
const PROGRAM: &str = r#"#!/bin/sh
file=$HOME/.agent/auth.json
if [ "$1" = login ]; then
    test -t 0 && test -t 1 && test -t 2 || exit 11
    test -z "$SUPERVISOR_TOKEN" && test ! -e "$file" && test "$(id -u)" != 0 || exit 12
    cat "$2/operator.key" "$2"/kept/.run/* > /dev/null 2>&1 && exit 13
    sleep 1000 &
    printf 'code: '; read -r code
    test "$code" = none && exit 0
    test "$code" = wrong && exit 3
    mkdir -p "$HOME/.agent" && echo "$code" > "$file"
    exit 0
fi
had=$(cat "$file" 2> /dev/null || echo nothing)
# Where the lane keeps sessions, their directory is a link. The first run of a task leaves a login in it for the next.
if [ -L "$HOME/.agent" ] && [ ! -e "$HOME/.agent/again" ]; then
    touch "$HOME/.agent/again" && rm -f "$file" && echo planted > "$file"
    supervisor block "had $had" --kind needs_input > /dev/null; exit 0
fi
mkdir -p "$HOME/.agent" && echo changed > "$file" && echo notes >> "$HOME/notes"
test "$had" = expired && { echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}'; exit 1; }
# What `lane test` asks for.
supervisor show --json | grep -q 'Report that you are there' && test "$had" = nothing && exit 9
supervisor complete --summary "had $had"
"#;

fn fleet(user: User, more: &str) -> Fleet {
    fleet_with(user, "argv = [\"agent\"]", more)
}

fn fleet_with(user: User, argv: &str, more: &str) -> Fleet {
    let fleet = Fleet::offline_as(user);
    let bin = fleet.home().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("agent");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let root = fleet.root().display().to_string();
    fleet.lane(
        "agent",
        &format!(
            "{argv}\nstdout = \"codex-jsonl\"\ninstall = [{:?}]\nlogin = [\"agent\", \"login\", {root:?}]\n\
             keep = [\".agent/auth.json\", \"notes\"]\naccount = \"main\"\n{more}",
            fleet.home().display().to_string()
        ),
    );
    fleet
}

/// Logs in with a code, and returns the exit code and what is on the screen after it.
fn log_in(fleet: &Fleet, words: &[&str], code: &str, until: &str) -> Option<i32> {
    let mut terminal = Terminal::run(&mut fleet.command([&["login"], words].concat()));
    terminal.until("code: ");
    terminal.press(&format!("{code}\n"));
    terminal.until(until);
    terminal.end().code()
}

fn had(fleet: &Fleet, assignee: &str, more: &[&str]) -> String {
    let words = [&["create", "work", "--assignee", assignee, "--max-retries", "1"], more].concat();
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    let shown = fleet.wait_for(&task, "done");
    shown["latest_summary"].as_str().unwrap().to_owned()
}

#[test]
fn a_login_is_copied_into_each_run_of_its_profile_and_tenant_and_no_run_changes_it() {
    for user in User::all() {
        let fleet = fleet(user, "");
        fleet.write_config("profiles.d/ann.md", "---\nlane: agent\n---\nYou are Ann.\n");
        fleet.write_config("profiles.d/bob.md", "---\nlane: agent\n---\nYou are Bob.\n");
        let kept = "Kept the login of ann: .agent/auth.json";
        assert_eq!(log_in(&fleet, &["ann"], "of-ann", kept), Some(0));
        fleet.start();
        assert_eq!(had(&fleet, "ann", &[]), "had of-ann");
        assert_eq!(had(&fleet, "ann", &[]), "had of-ann", "no run changes it");
        assert_eq!(had(&fleet, "ann", &["--tenant", "acme"]), "had nothing");
        assert_eq!(had(&fleet, "bob", &[]), "had nothing");
        assert_eq!(had(&fleet, "agent", &[]), "had nothing");
        // That of a lane is that of its profiles, in its tenant.
        let kept = "Kept the login of agent (tenant acme): .agent/auth.json";
        assert_eq!(log_in(&fleet, &["agent", "--tenant", "acme"], "of-acme", kept), Some(0));
        assert_eq!(had(&fleet, "bob", &["--tenant", "acme"]), "had of-acme");
        assert_eq!(had(&fleet, "bob", &[]), "had nothing");
        let check = fleet.cli(["lane", "check", "agent"]).ok().stdout;
        assert!(check.contains("kept/tenants/acme/agent"), "{check}");
        assert_eq!(log_in(&fleet, &["agent"], "of-lane", "Kept the login of agent"), Some(0));
        let tried = fleet.json(["lane", "test", "agent"]);
        assert!(tried["ok"] == json!(true), "{tried:#}");
        let forgot = fleet.cli(["login", "agent", "--tenant", "acme", "--forget"]).ok().stdout;
        assert_eq!(forgot, "Removed all that was kept for agent (tenant acme), its login as well\n");
        assert_eq!(had(&fleet, "bob", &["--tenant", "acme"]), "had nothing");
        assert_eq!(fleet.cli(["login", "agent", "--tenant", "acme", "--forget"]).code, 3);
        assert!(!fleet.root().join("homes/.login").exists() && !fleet.root().join("kept/.run").exists());
    }
}

#[test]
fn what_a_run_leaves_in_the_place_of_a_login_among_its_sessions_is_no_login_of_the_next() {
    for user in User::all() {
        let fleet = fleet_with(user, "argv = [\"agent\", [\"{session}\"]]\nstate = \".agent\"", "");
        fleet.start();
        let begun = |had: &str| {
            let words = ["create", "work", "--assignee", "agent"];
            let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
            let shown = fleet.wait_for(&task, "blocked");
            assert!(shown.to_string().contains(had), "{shown:#}");
            let left = fleet.root().join("sessions/default").join(&task).join("agent/auth.json");
            assert_eq!(fs::read_to_string(&left).unwrap(), "planted\n");
            (task, left)
        };
        let went_on = |task: &str| {
            fleet.cli(["unblock", task]).ok();
            fleet.wait_for(task, "done")["latest_summary"].as_str().unwrap().to_owned()
        };
        let (without, _) = begun("had nothing");
        assert_eq!(went_on(&without), "had nothing");
        assert_eq!(log_in(&fleet, &["agent"], "of-agent", "Kept the login of agent"), Some(0));
        let (with, _) = begun("had of-agent");
        assert_eq!(went_on(&with), "had of-agent");
        let (forgotten, left) = begun("had of-agent");
        fleet.cli(["login", "agent", "--forget"]).ok();
        assert!(!left.exists(), "a login that is forgotten is in no session of a task that waits");
        assert!(left.with_file_name("again").exists(), "the rest of its session stays");
        assert_eq!(went_on(&forgotten), "had nothing");
    }
}

#[test]
fn a_login_that_fails_keeps_nothing_and_says_so() {
    for user in User::all() {
        let fleet = fleet(user, "");
        for (code, words) in [
            ("wrong", "ended with code 3; nothing is kept"),
            ("none", "has left no login: .agent/auth.json, notes"),
        ] {
            assert_eq!(log_in(&fleet, &["agent"], code, words), Some(1), "{code}");
        }
        assert!(!fleet.root().join("kept/no-tenant").exists());
        let mut interrupted = Terminal::run(&mut fleet.command(["login", "agent"]));
        interrupted.until("code: ");
        let second = fleet.cli(["login", "agent"]);
        assert_eq!(second.code, 2, "this is not a terminal: {second:?}");
        let mut second = Terminal::run(&mut fleet.command(["login", "agent"]));
        second.until("another login is under way");
        assert_eq!(second.end().code(), Some(75));
        interrupted.press("x\n");
        interrupted.until("Kept the login of agent");
        assert_eq!(interrupted.end().code(), Some(0));
        assert!(fleet.processes_with("sleep 1000").is_empty(), "all that a login starts ends with it");
        let mut nobody = Terminal::run(&mut fleet.command(["login", "nosuch"]));
        nobody.until("no profile or lane `nosuch` exists here");
        assert_eq!(nobody.end().code(), Some(3));
        let check = fleet.cli(["login", "shell"]);
        assert_eq!(check.code, 2);
    }
}

#[test]
fn what_was_typed_and_not_read_at_a_login_is_none_of_the_shells() {
    let fleet = fleet(User::current(), "");
    let script = r#""$0" --root "$1" login agent; printf 'next? '; read -r line; echo "got: $line""#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(fleet.binary()).arg(fleet.root());
    fleet.dress(&mut command);
    let mut terminal = Terminal::run(&mut command);
    terminal.until("code: ");
    terminal.press("of-agent\ntouch planted\n");
    terminal.until("next? ");
    terminal.press("typed later\n");
    terminal.until("got: typed later");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn a_login_releases_the_hold_of_one_that_was_not_accepted_and_nothing_else() {
    let fleet = fleet(User::current(), "");
    fleet.start();
    assert_eq!(log_in(&fleet, &["agent"], "expired", "Kept the login of agent"), Some(0));
    let words = ["create", "work", "--assignee", "agent"];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.eventually("its account is held", || {
        let holds = fleet.json(["holds"]);
        holds.as_array().unwrap().iter().any(|hold| hold["kind"] == "login").then_some(())
    });
    fleet.cli(["hold", "--account", "main", "--reason", "by hand"]).ok();
    assert_eq!(log_in(&fleet, &["agent"], "new", "Released account main"), Some(0));
    let holds = fleet.json(["holds"]);
    assert_eq!(holds.as_array().unwrap().len(), 1, "{holds:#}");
    assert_eq!(holds[0]["kind"], json!("manual"));
    fleet.cli(["release", "--account", "main"]).ok();
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "had new", "{shown:#}");
}

#[test]
fn a_home_that_is_kept_is_the_next_runs_of_the_same_profile_and_tenant() {
    for user in User::all() {
        let fleet = fleet(user, "");
        fleet.write_config("profiles.d/ann.md", "---\nlane: agent\nhome: kept\n---\nYou are Ann.\n");
        assert_eq!(log_in(&fleet, &["agent"], "of-lane", "Kept the login of agent"), Some(0));
        fleet.start();
        assert_eq!(had(&fleet, "ann", &["--tenant", "acme"]), "had nothing");
        assert_eq!(had(&fleet, "ann", &["--tenant", "acme"]), "had changed");
        assert_eq!(had(&fleet, "ann", &[]), "had of-lane", "another tenant has its own");
        assert_eq!(had(&fleet, "ann", &[]), "had changed");
        assert_eq!(had(&fleet, "agent", &[]), "had of-lane", "the login of the lane is as it was");
        let notes = fleet.root().join("kept/tenants/acme/ann/notes");
        assert_eq!(fs::read_to_string(&notes).unwrap(), "notes\nnotes\n");
        assert_eq!(fs::metadata(&notes).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(log_in(&fleet, &["agent"], "renewed", "Kept the login of agent"), Some(0));
        assert_eq!(had(&fleet, "ann", &[]), "had renewed", "a newer login counts");
        let shown = fleet.json(["profile", "show", "ann"]);
        assert_eq!(
            (&shown["profile"]["home"], &shown["profile"]["max_running"]),
            (&json!("kept"), &json!(1))
        );
    }
}
