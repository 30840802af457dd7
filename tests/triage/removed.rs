//! Profiles that are removed while somebody proposes who does what: nothing that names them is applied.

use crate::harness::{Fleet, User};

/// The maker returns an object that names carol, has to be refused for that, and then the same object with dave.
fn maker(object: &str) -> String {
    let object = |name: &str| object.replace("NAME", name);
    let script = format!(
        "supervisor context | grep -q '`carol`' && exit 3; \
         supervisor complete --metadata '{}' 2> refused && exit 4; \
         grep -q 'nobody is called carol; there are .*dave' refused || exit 5; \
         supervisor complete --metadata '{}' --summary \"$(cat refused)\"",
        object("carol"),
        object("dave")
    );
    super::stand_in(&script)
}

/// A fleet whose maker does not start before it is released.
fn held(user: User, key: &str, object: &str) -> Fleet {
    let fleet = Fleet::offline_as(user);
    fleet.configure(&format!("[triage]\n{key} = \"maker\"\n"));
    fleet.lane("maker", &maker(object));
    for name in ["carol", "dave"] {
        fleet.write_config(&format!("profiles.d/{name}.md"), "---\nlane: shell\n---\n");
    }
    fleet.cli(["hold", "--profile", "maker", "--reason", "later"]).ok();
    fleet.start();
    fleet
}

/// Removes carol, lets the maker begin, and returns its task when it is done.
fn without_carol(fleet: &Fleet, made: &str) {
    fleet.cli(["profile", "rm", "carol"]).ok();
    fleet.cli(["release", "--profile", "maker"]).ok();
    let done = fleet.wait_for(made, "done");
    assert!(done["latest_summary"].as_str().unwrap().contains("nobody is called carol"), "{done:#}");
}

#[test]
fn an_idea_is_specified_without_a_profile_that_was_removed_after_it_was_asked_for() {
    for user in User::all() {
        let object = r#"{"title": "a task", "body": "true", "assignee": "NAME"}"#;
        let fleet = held(user, "specifier", object);
        let id = super::idea(&fleet, "rough");
        let asked = fleet.json(["specify", &id]);
        without_carol(&fleet, asked["results"][0]["proposal"].as_str().unwrap());
        assert_eq!(fleet.wait_for(&id, "done")["task"]["assignee"], "dave");
    }
}

#[test]
fn an_idea_is_divided_without_a_profile_that_was_removed_and_no_part_is_made_before_that() {
    let object = r#"{"tasks": [{"name": "a", "title": "part a", "body": "true", "assignee": "dave"},
        {"name": "b", "title": "part b", "body": "true", "assignee": "NAME"}], "body": "true", "assignee": "dave"}"#;
    let fleet = held(User::current(), "decomposer", object);
    let id = super::idea(&fleet, "rough");
    let asked = fleet.json(["decompose", &id]);
    without_carol(&fleet, asked["results"][0]["proposal"].as_str().unwrap());
    assert_eq!(fleet.wait_for(&id, "done")["parents"].as_array().map(Vec::len), Some(2));
    let titles = |title: &str| {
        let listed = fleet.json(["list", "--archived"]);
        listed.as_array().unwrap().iter().filter(|task| task["title"] == title).count()
    };
    assert_eq!((titles("part a"), titles("part b")), (1, 1), "nothing of the refused one was made");
}

#[test]
fn a_mission_is_planned_without_a_profile_that_was_removed() {
    let object = r#"{"tasks": [{"name": "a", "title": "part a", "body": "true", "assignee": "NAME"}], "body": "true", "assignee": "dave"}"#;
    let fleet = held(User::current(), "planner", object);
    let id = fleet.json(["mission", "create", "a site"])["id"].as_str().unwrap().to_owned();
    let asked = fleet.json(["mission", "plan", &id]);
    without_carol(&fleet, asked["results"][0]["proposal"].as_str().unwrap());
    assert_eq!(fleet.wait_for(&id, "done")["parents"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_task_is_routed_to_no_profile_that_was_removed_also_while_no_daemon_ran() {
    let fleet = held(User::current(), "router", r#"{"assignee": "NAME"}"#);
    let id = fleet.json(["create", "write it", "--body", "true"])["id"].as_str().unwrap().to_owned();
    let made = fleet.eventually("the router is asked", || {
        fleet.json(["list", "--assignee", "maker"])[0]["id"].as_str().map(str::to_owned)
    });
    fleet.kill_daemon();
    std::fs::remove_file(fleet.root().join("profiles.d/carol.md")).unwrap();
    fleet.start();
    fleet.cli(["release", "--profile", "maker"]).ok();
    assert!(fleet.wait_for(&made, "done")["latest_summary"].as_str().unwrap().contains("carol"));
    assert_eq!(fleet.wait_for(&id, "done")["task"]["assignee"], "dave");
}
