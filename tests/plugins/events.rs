//! Plugins are written, installed and removed, and get their events after the commit, over daemons that die.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{checked, installed, kept, line, written};
use crate::harness::{Fleet, User};

/// A plugin that keeps the ids of the events that it gets, one a line.
const KEEPS: &str =
    r#"id=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/'); echo "$id" >> "$PLUGIN_STATE/tasks"; echo '{}'"#;
/// It wants to hear of new tasks.
const CREATED: &str = "[[events]]\nkinds = ['created']";

fn tasks(fleet: &Fleet, name: &str) -> Vec<String> {
    kept(fleet, name, "tasks").lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_plugin_that_is_written_works_in_both_languages_and_for_each_user() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        for (name, language) in [("diary", "sh"), ("snake", "python")] {
            let home = fleet.home().display().to_string();
            fleet.cli(["plugin", "create", name, "--language", language, "--directory", &home]).ok();
            let dir = fleet.home().join(name).display().to_string();
            let mut test = Command::new(format!("{dir}/test.sh"));
            fleet.dress(&mut test);
            assert_eq!(String::from_utf8_lossy(&test.output().unwrap().stdout), "ok\n");
            let (ok, steps) = checked(&fleet, &dir);
            assert!(ok, "{steps:#?}");

            fleet.cli(["plugin", "install", &dir, "--yes"]).ok();

            let (ok, steps) = checked(&fleet, name);
            assert!(ok && !fleet.home().join(name).join("state").exists(), "{steps:#?}");
            let task = fleet.create("say", "echo hello", &[]);
            fleet.wait_for(&task, "done");
            fleet.eventually("it has kept the event", || {
                kept(&fleet, name, "events.jsonl").contains("completed").then_some(())
            });
        }
        let listed = fleet.cli(["plugin", "list"]).ok().stdout;
        assert!(listed.contains("diary") && listed.contains("completed, gave_up"), "{listed}");
        fleet.cli(["plugin", "uninstall", "diary"]).ok();
        assert!(!fleet.root().join("plugins.d/diary").exists());
        fleet.cli(["plugin", "uninstall", "diary"]).refused(3, "there is no plugin `diary`");
        let left = fs::read_dir(fleet.root().join("plugins.d")).unwrap().count();
        assert_eq!(left, 1, "only the other one is there");
    }
}

#[test]
fn an_installation_asks_first_refuses_a_second_one_and_keeps_the_state_of_one_that_is_replaced() {
    let fleet = Fleet::boot();
    let dir = written(&fleet, "keeper", CREATED, KEEPS).display().to_string();
    fleet.cli(["plugin", "install", &dir]).refused(2, "asks first");
    assert!(!fleet.root().join("plugins.d/keeper").exists());
    let said = fleet.json(["plugin", "install", &dir, "--yes", "--name", "other"]);
    assert_eq!(said["name"], "other");
    fleet.json(["plugin", "install", &dir, "--yes"]);
    fleet.cli(["plugin", "install", &dir, "--yes"]).refused(4, "exists already");
    let before = fleet.create("one", "true", &[]);
    fleet.eventually("it came", || (tasks(&fleet, "keeper") == [before.as_str()]).then_some(()));

    fleet.cli(["plugin", "install", &dir, "--yes", "--force"]).ok();

    let after = fleet.create("two", "true", &[]);
    fleet.eventually("the second came too", || {
        (tasks(&fleet, "keeper") == [before.as_str(), after.as_str()]).then_some(())
    });
    let home = fleet.home().display().to_string();
    fleet.cli(["plugin", "create", "keeper", "--directory", &home]).refused(4, "exists already");
    fleet.cli(["plugin", "create", "list", "--directory", &home]).refused(2, "is a command of this program");
    fleet.cli(["plugin", "check", "nothing"]).refused(3, "there is no plugin `nothing`");
}

#[test]
fn a_daemon_that_is_killed_loses_no_event_and_gives_none_out_of_order() {
    let fleet = Fleet::boot();
    installed(&fleet, "keeper", CREATED, KEEPS);
    let mut ids = Vec::new();
    for round in 0..3 {
        for n in 0..3 {
            ids.push(fleet.create(&format!("task {round} {n}"), "true", &["--triage"]));
        }
        fleet.kill_daemon();
        ids.push(fleet.json(["create", "without a daemon", "--triage"])["id"].as_str().unwrap().to_owned());
        fleet.start();
    }
    let last = ids.last().unwrap().clone();
    fleet.eventually("the last has come", || tasks(&fleet, "keeper").contains(&last).then_some(()));
    let mut came = tasks(&fleet, "keeper");
    came.dedup();
    assert_eq!(came, ids, "each once, but for one that was under way");
}

#[test]
fn a_daemon_that_dies_after_a_call_makes_it_again_and_what_it_asked_for_is_done_once() {
    let fleet = Fleet::boot();
    let script = r#"cat >> "$PLUGIN_STATE/calls"; echo >> "$PLUGIN_STATE/calls"
        echo '{"requests":[{"verb":"create","body":{"title":"by the plugin","triage":true}}]}'"#;
    installed(&fleet, "maker", &format!("requests = ['create']\n{CREATED}"), script);
    fleet.kill_daemon();
    fleet.json(["create", "cause", "--triage"]);
    let mut command = fleet.command(["daemon"]);
    fleet.adopt(command.env("SUPERVISOR_FAIL_POINT", "after-plugin:1").spawn().unwrap());
    fleet.reap_daemon();

    fleet.start();

    fleet.eventually("it was called again", || {
        (kept(&fleet, "maker", "calls").lines().filter(|line| line.len() > 2).count() == 2).then_some(())
    });
    fleet
        .eventually("it is noted", || (line(&fleet, "maker")["cursor"]["event"].as_i64()? > 0).then_some(()));
    fleet.restart();
    let made = fleet.json(["list"]);
    let made: Vec<&str> =
        made.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect();
    assert_eq!(made.iter().filter(|title| **title == "by the plugin").count(), 1, "{made:?}");
    let events = fleet.json(["events", "--kind", "created"]);
    let by = events["events"].as_array().unwrap().last().unwrap()["actor"].clone();
    assert_eq!(by, json!("system:plugin:maker"), "and it was not called for its own event: {made:?}");
}

#[test]
fn a_plugin_that_fails_waits_is_paused_and_named_and_goes_on_when_it_is_resumed() {
    let fleet = Fleet::boot();
    let script = r#"cat > "$PLUGIN_STATE/last"; test -e "$PLUGIN_DIR/good" || { echo no luck >&2; exit 3; }
        grep -o 't_[0-9a-f]*' "$PLUGIN_STATE/last" | head -1 >> "$PLUGIN_STATE/tasks""#;
    let more = format!("tries = 2\n{CREATED}");
    installed(&fleet, "unlucky", &more, script);
    let (first, second) = (fleet.create("first", "true", &[]), fleet.create("second", "true", &[]));
    let paused = fleet.eventually("it is paused", || {
        let line = line(&fleet, "unlucky");
        (!line["cursor"]["paused_at"].is_null()).then_some(line)
    });
    assert_eq!(paused["cursor"]["attempts"], 2);
    assert_eq!(paused["cursor"]["last_error"], "the program ended with code 3: no luck");
    let found = fleet.json(["diagnostics"]);
    let found =
        found.as_array().unwrap().iter().find(|one| one["title"] == "plugin unlucky").unwrap().clone();
    assert_eq!(found["diagnostics"][0]["kind"], "plugin_fails");
    let listed = fleet.cli(["plugin", "list"]).ok().stdout;
    assert!(listed.contains("paused since") && listed.contains("no luck"), "{listed}");
    let status = fleet.cli(["status"]);
    assert!(status.code == 1 && status.stdout.contains("plugin unlucky: it is paused"), "{status:?}");

    fs::write(written(&fleet, "unlucky", &more, script).join("good"), "").unwrap();
    fleet
        .cli(["plugin", "install", &fleet.home().join("unlucky").display().to_string(), "--yes", "--force"])
        .ok();
    fleet.cli(["plugin", "resume", "unlucky", "--skip"]).ok();

    fleet.eventually("it goes on", || (tasks(&fleet, "unlucky") == [second.as_str()]).then_some(()));
    assert!(!tasks(&fleet, "unlucky").contains(&first), "the first was left out");
    fleet.cli(["plugin", "resume", "nothing"]).refused(3, "there is no plugin");
    assert_eq!(fleet.json(["plugin", "resume", "unlucky"])["attempts"], 0);
}

#[test]
fn a_reply_is_carried_out_as_far_as_the_plugin_may_ask_for_it() {
    let fleet = Fleet::boot();
    let script = r#"task=$(grep -o 't_[0-9a-z]*' | head -1)
        echo "{\"requests\":[{\"verb\":\"comment\",\"body\":{\"task_id\":\"$task\",\"body\":\"seen\"}}]}""#;
    installed(&fleet, "greeter", &format!("requests = ['comment']\ntries = 1\n{CREATED}"), script);
    installed(&fleet, "sneaky", &format!("tries = 1\n{CREATED}"), script);
    let task = fleet.create("hello", "true", &["--triage"]);
    fleet.eventually("it has commented", || {
        let comments = fleet.show(&task)["comments"].as_array().unwrap().clone();
        (comments.len() == 1 && comments[0]["body"] == "seen").then_some(())
    });
    let paused = fleet.eventually("the other one is refused", || {
        let line = line(&fleet, "sneaky");
        (!line["cursor"]["paused_at"].is_null()).then_some(line)
    });
    let why = paused["cursor"]["last_error"].as_str().unwrap();
    assert!(why.contains("asks for `comment`, which its plugin.toml does not name"), "{why}");
}
