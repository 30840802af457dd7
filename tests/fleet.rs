//! A fleet: one task for each directory and tick, for as many accounts as there are, of which none holds up another.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Fleet, User, skip};

/// The directory of a fleet with accounts that belong to an ordinary user, as whom their workers run.
fn insta(fleet: &Fleet, accounts: &[&str]) -> PathBuf {
    let root = fleet.home().join("insta");
    for dir in std::iter::once(root.clone()).chain(accounts.iter().map(|name| root.join(name))) {
        fs::create_dir(&dir).unwrap();
        give(&dir);
    }
    root
}

/// Gives a directory to the ordinary user.
pub(super) fn give(dir: &std::path::Path) {
    if let Some(id) = User::ordinary().id() {
        chown(dir, Some(id), Some(id)).unwrap();
    }
}

fn dispatch(fleet: &Fleet, root: &std::path::Path, more: &[&str]) -> Value {
    let root = root.display().to_string();
    fleet.json([&["dispatch-fleet", "shell", &root], more].concat())
}

fn counts(reply: &Value) -> (u64, u64, u64) {
    let count = |name: &str| reply[name].as_u64().unwrap();
    (count("created"), count("existing"), count("refused"))
}

fn task_of<'a>(reply: &'a Value, directory: &str) -> &'a str {
    let lines = reply["directories"].as_array().unwrap();
    let line = lines.iter().find(|line| line["directory"] == directory).unwrap();
    line["task_id"].as_str().unwrap()
}

#[test]
fn each_directory_has_one_task_a_tick_with_its_name_as_tenant() {
    let fleet = Fleet::offline();
    let root = insta(&fleet, &["acct-2", "acct-1", ".hidden"]);
    fs::write(root.join("notes.txt"), "no directory").unwrap();
    symlink(root.join("acct-1"), root.join("link")).unwrap();

    let first = dispatch(&fleet, &root, &["--tick", "2026-11-23T08:00"]);
    let again = dispatch(&fleet, &root, &["--tick", "2026-11-23T08:00"]);
    let next = dispatch(&fleet, &root, &["--tick", "2026-11-23T12:00"]);

    assert_eq!((counts(&first), counts(&again), counts(&next)), ((2, 0, 0), (0, 2, 0), (2, 0, 0)));
    let names: Vec<&str> = first["directories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["directory"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["acct-1", "acct-2"]);
    assert_eq!(task_of(&first, "acct-1"), task_of(&again, "acct-1"));
    let task = &fleet.show(task_of(&first, "acct-1"))["task"];
    assert_eq!((&task["tenant"], &task["title"]), (&"acct-1".into(), &"engage acct-1".into()));
    assert_eq!(task["workspace"], format!("dir:{}", root.join("acct-1").display()));
    assert!(first["warnings"].to_string().contains("not followed: link"), "{first}");
    let text = fleet
        .cli(["dispatch-fleet", "shell", &root.display().to_string(), "--tick", "2026-11-23T08:00"])
        .ok()
        .stdout;
    assert!(text.contains("0 created, 2 existed, 0 refused") && text.contains("exists"), "{text}");
}

#[test]
fn what_is_chosen_and_said_decides_what_is_created() {
    let fleet = Fleet::offline();
    let root = insta(&fleet, &["acct-1", "acct-2", "other"]);
    fs::write(fleet.home().join("body"), "work as {tenant} at {tick}").unwrap();
    let body = fleet.home().join("body").display().to_string();

    let dry = dispatch(&fleet, &root, &["--match", "acct-?", "--dry-run", "--tick", "7"]);
    assert_eq!((counts(&dry), &dry["directories"][0]["task_id"]), ((2, 0, 0), &Value::Null));
    assert_eq!(fleet.json(["list"]).as_array().map(Vec::len), Some(0));
    let limits = ["--priority", "7", "--max-runtime", "60", "--policy", "strict"];
    let texts =
        ["--match", "acct-1", "--tick", "7", "--title", "{profile} {directory}", "--body-file", &body];
    let made = dispatch(&fleet, &root, &[texts.as_slice(), &limits].concat());
    let task = &fleet.show(task_of(&made, "acct-1"))["task"];
    assert_eq!((&task["title"], &task["body"]), (&"shell acct-1".into(), &"work as acct-1 at 7".into()));
    assert_eq!((&task["priority"], &task["policy"]), (&7.into(), &"strict".into()));
    let one =
        dispatch(&fleet, &root, &["--match", "o*", "--tick", "7", "--tenant", "acme", "--body", "true"]);
    assert_eq!(fleet.show(task_of(&one, "other"))["task"]["tenant"], "acme");
    let own = dispatch(&fleet, &root, &["--match", "o*", "--tick", "8", "--tenant-from-directory"]);
    assert_eq!(fleet.show(task_of(&own, "other"))["task"]["tenant"], "other");
    let later = dispatch(&fleet, &root, &["--tick", "9", "--jitter", "6d"]);
    let starts = ["acct-1", "acct-2", "other"].map(|name| {
        let task = &fleet.show(task_of(&later, name))["task"];
        assert_eq!(task["status"], "scheduled", "{task}");
        task["not_before"].as_i64().unwrap()
    });
    assert!(starts[0] != starts[1] && starts[1] != starts[2], "each has a time of its own: {starts:?}");
    let shown = root.display().to_string();
    fleet.cli(["dispatch-fleet", "shell", &shown, "--limit", "2"]).refused(2, "has 3 directories");
    fleet.cli(["dispatch-fleet", "shell", &shown, "--tick", "a/b"]).refused(2, "tick");
    let none = dispatch(&fleet, &root, &["--match", "nobody"]);
    assert!(none["warnings"].to_string().contains("no directory that matches"), "{none}");
}

#[test]
fn what_another_user_may_have_put_there_is_refused_and_the_others_are_made() {
    let fleet = Fleet::offline();
    let root = insta(&fleet, &["acct-1", "a b", "acct-2"]);
    let line = |directory: &str, reply: &Value| {
        let lines = reply["directories"].as_array().unwrap();
        lines.iter().find(|line| line["directory"] == directory).unwrap().clone()
    };
    let mut more = 1;
    if User::current() == User::Root {
        chown(root.join("acct-2"), Some(4242), Some(4242)).unwrap();
        more += 1;
    } else {
        skip("a directory of another user: needs root");
    }
    let mut command =
        fleet.command(["dispatch-fleet", "shell", &root.display().to_string(), "--json", "--tick", "7"]);
    let output = crate::harness::Output::of(&mut command);
    let reply = output.json();
    assert_eq!((output.code != 0, counts(&reply)), (true, (3 - more, 0, more)), "{reply}");
    assert!(line("a b", &reply)["error"].as_str().unwrap().contains("name"), "{reply}");
    if more == 2 {
        assert!(line("acct-2", &reply)["error"].as_str().unwrap().contains("another user"), "{reply}");
    }
    let alias = fleet.home().join("alias");
    symlink(&root, &alias).unwrap();
    fleet.cli(["dispatch-fleet", "shell", &alias.display().to_string()]).refused(2, "symbolic link");
    fleet.cli(["dispatch-fleet", "shell", "/nowhere/insta"]).refused(3, "/nowhere/insta");
}

#[test]
fn thousands_of_directories_are_refused_at_once_and_many_go_in_parts() {
    let fleet = Fleet::offline();
    let root = insta(&fleet, &[]);
    for at in 0..10_000 {
        fs::create_dir(root.join(format!("acct-{at}"))).unwrap();
    }
    let shown = root.display().to_string();
    fleet.cli(["dispatch-fleet", "shell", &shown]).refused(2, "10000 directories, and this call takes 1000");
    assert_eq!(fleet.json(["list"]).as_array().map(Vec::len), Some(0));
}

/// Script of an account: the seventeenth meets a captcha and asks, the others post.
const ENGAGE: &str = "set -e; mkdir -p logs; echo \"{tenant} {tick}\" >> logs/{tick}.jsonl; \
     if [ {tenant} = acct-17 ] && [ ! -e solved ]; then touch solved; \
     supervisor block 'captcha: what does the picture show?' --kind needs_input; exit 0; fi; echo posted";

#[test]
fn fifty_accounts_work_beside_one_that_meets_a_captcha_until_a_person_answers() {
    let fleet = Fleet::offline();
    let accounts: Vec<String> = (1..=50).map(|n| format!("acct-{n}")).collect();
    let root = insta(&fleet, &accounts.iter().map(String::as_str).collect::<Vec<_>>());
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    let caps: Vec<String> = accounts.iter().map(|name| format!("\"{name}\" = 1")).collect();
    fleet.configure(&format!("[limits]\nmax_running = 8\ntenants = {{ {} }}\n", caps.join(", ")));
    fleet.start();

    let first = dispatch(&fleet, &root, &["--tick", "1", "--body", ENGAGE]);
    assert_eq!(counts(&first), (50, 0, 0));
    let blocked = task_of(&first, "acct-17").to_owned();
    let counted = |status: &str| fleet.json(["stats"])["by_status"][status].as_u64().unwrap_or(0);
    fleet.eventually("49 accounts are done and one asks", || {
        (counted("done") == 49 && counted("blocked") == 1).then_some(())
    });
    assert_eq!(fleet.show(&blocked)["task"]["block_kind"], "needs_input");

    let next = dispatch(&fleet, &root, &["--tick", "2", "--body", ENGAGE]);
    assert_eq!(counts(&next), (50, 0, 0), "a tick beside the one that waits");
    fleet.eventually("the next tick of all is done", || (counted("done") == 99).then_some(()));
    assert_eq!(fleet.status_of(&blocked), "blocked");

    fleet.cli(["unblock", &blocked, "--reason", "a traffic light"]).ok();
    fleet.wait_for(&blocked, "done");
    assert_eq!(counts(&dispatch(&fleet, &root, &["--tick", "1", "--body", ENGAGE])), (0, 50, 0));
    for name in &accounts {
        let log = fs::read_to_string(root.join(name).join("logs/2.jsonl")).unwrap();
        assert_eq!(log, format!("{name} 2\n"), "each account works in its own directory");
    }
}
