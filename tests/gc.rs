//! What is over goes, what is in use or somebody else's stays, and the log that was folded replays to the same board.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Fleet, Output, User};
use crate::http::Http;

/// A task that has worked, and is archived.
fn archived(fleet: &Fleet, title: &str, script: &str, more: &[&str]) -> String {
    let id = fleet.create(title, script, more);
    fleet.wait_for(&id, "done");
    fleet.cli(["archive", &id]).ok();
    id
}

fn scratch(fleet: &Fleet, id: &str) -> PathBuf {
    fleet.root().join("workspaces/default").join(id)
}

fn logs(fleet: &Fleet, id: &str) -> PathBuf {
    fleet.root().join("logs/default").join(id)
}

/// Kind and path of each thing of a list.
fn things(collected: &Value, list: &str) -> Vec<(String, String)> {
    let word = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let items = collected[list].as_array().unwrap().iter();
    items.map(|item| (word(item, "kind"), word(item, "path"))).collect()
}

/// Why something is kept.
#[track_caller]
fn why(collected: &Value, path: &Path) -> String {
    let path = path.display().to_string();
    let kept = collected["kept"].as_array().unwrap().iter().find(|item| item["path"] == path.as_str());
    kept.unwrap_or_else(|| panic!("{path} is not kept: {collected:#}"))["why"].as_str().unwrap().to_owned()
}

fn replays(fleet: &Fleet) {
    assert_eq!(fleet.json(["doctor", "--replay"])["ok"], true);
}

#[test]
fn a_deleted_task_is_gone_with_its_files_and_its_children_go_on() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let parent = archived(&fleet, "parent", "mkdir -p a/b && echo x > a/b/c", &[]);
        let live = fleet.create("live", "sleep 600", &[]);
        fleet.wait_for(&live, "running");
        let child = fleet.create("child", "echo went on", &["--parent", &parent, "--parent", &live]);
        assert!(scratch(&fleet, &parent).is_dir() && logs(&fleet, &parent).is_dir());

        let both = fleet.cli(["archive", "--json", "--rm", &parent, &live]);

        assert_eq!(both.code, 4, "{}{}", both.stdout, both.stderr);
        let results = both.json()["results"].clone();
        assert_eq!((&results[0]["ok"], &results[1]["ok"]), (&json!(true), &json!(false)));
        assert!(results[1]["hint"].as_str().unwrap().contains("archive it first"), "{results}");
        assert!(!scratch(&fleet, &parent).exists() && !logs(&fleet, &parent).exists());
        fleet.cli(["show", &parent]).refused(3, "no such task");
        assert!(scratch(&fleet, &live).is_dir());
        fleet.cli(["archive", &live, "--detach"]).ok();
        fleet.wait_for(&live, "archived");
        assert_eq!(fleet.wait_for(&child, "done")["latest_summary"], "went on");
        let events = fleet.json(["events", "--task", &parent]);
        let last = events["events"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["kind"], &last["payload"]["title"]), (&json!("deleted"), &json!("parent")));
        assert_eq!(last["payload"]["children"], json!([child]));
        replays(&fleet);
    }
}

#[test]
fn a_task_is_deleted_over_http_too() {
    let fleet = Fleet::boot();
    let id = fleet.create("a", "true", &[]);
    fleet.wait_for(&id, "done");
    let http = Http::at(fleet.root().join("run/supervisor.sock"));
    let path = format!("/api/v1/tasks/{id}");
    assert_eq!(http.send("DELETE", &path, b"").json(409)["code"], "conflict");
    fleet.cli(["archive", &id]).ok();
    assert_eq!(http.send("DELETE", &path, b"").json(200)["results"][0]["ok"], true);
    assert_eq!(http.send("DELETE", &path, b"").json(404)["code"], "not_found");
}

#[test]
fn a_dry_run_tells_exactly_what_then_goes_and_what_runs_is_not_touched() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let over = archived(&fleet, "over", "head -c 100000 /dev/zero > zeros; mkdir -m 0 closed", &[]);
        let done = fleet.create("done, not archived", "echo kept > file", &[]);
        fleet.wait_for(&done, "done");
        let live = fleet.create("live", "echo $HOME; exec sleep 600", &[]);
        fleet.wait_for(&live, "running");
        fleet.eventually("its command runs", || (!fleet.processes_with("sleep").is_empty()).then_some(()));
        // What a removal that was cut short leaves: a directory of a run and a home.
        for left in ["runs/default/1", "homes/default/1/home"] {
            let dir = fleet.root().join(left);
            fs::create_dir_all(&dir).unwrap();
            fleet.give(dir.parent().unwrap());
            fleet.give(&dir);
        }
        let args = ["gc", "--log-retention-days", "0"];

        let told = fleet.json([&args[..], &["--dry-run"]].concat());
        assert!(scratch(&fleet, &over).is_dir() && logs(&fleet, &over).is_dir(), "it only looks");
        let gone = fleet.json(args);

        assert_eq!(things(&told, "removed"), things(&gone, "removed"), "{told:#}{gone:#}");
        assert_eq!((&told["kept"], &gone["kept"]), (&json!([]), &json!([])));
        let kinds: Vec<String> = things(&gone, "removed").into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["workspace", "log", "log", "run_directory", "home"], "{gone:#}");
        assert!(gone["freed_bytes"].as_u64().unwrap() >= 100_000, "{gone}");
        for (_, path) in things(&gone, "removed") {
            assert!(!Path::new(&path).exists(), "{path}");
        }
        assert!(scratch(&fleet, &done).join("file").exists(), "it is on the board");
        let run = fleet.show(&live)["runs"][0]["id"].to_string();
        assert!(scratch(&fleet, &live).is_dir() && logs(&fleet, &live).join(format!("{run}.log")).is_file());
        assert!(fleet.root().join("homes/default").join(&run).is_dir());
        assert!(fleet.root().join("runs/default").join(&run).is_dir());
        assert_eq!(fleet.json(args)["removed"], json!([]));
        fleet.cli(["archive", &live]).ok();
        fleet.wait_for(&live, "archived");
    }
}

#[test]
fn what_the_supervisor_did_not_make_stays_and_is_said() {
    let fleet = Fleet::boot();
    let (linked, foreign) = (archived(&fleet, "a", "true", &[]), archived(&fleet, "b", "true", &[]));
    let needed = archived(&fleet, "c", "true", &[]);
    let outside = fleet.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    let base = fleet.root().join("workspaces/default");
    fs::remove_dir_all(scratch(&fleet, &linked)).unwrap();
    symlink(&outside, scratch(&fleet, &linked)).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(scratch(&fleet, &foreign), Some(12_345), Some(12_345)).unwrap();
    }
    fs::write(scratch(&fleet, &foreign).join("kept"), "").unwrap();
    for name in ["backup", "t_00000000"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    fs::write(logs(&fleet, &needed).join("notes.txt"), "").unwrap();
    let inside = format!("dir:{}", scratch(&fleet, &needed).display());
    fleet.json(["create", "works there", "--workspace", &inside]);

    let gone = fleet.json(["gc", "--log-retention-days", "0"]);

    assert!(why(&gone, &scratch(&fleet, &linked)).contains("symbolic link"));
    assert!(why(&gone, &base.join("backup")).contains("did not make it"));
    assert!(why(&gone, &base.join("t_00000000")).contains("no task of this board"));
    assert!(why(&gone, &scratch(&fleet, &needed)).contains("another task works in it"));
    assert!(why(&gone, &logs(&fleet, &needed).join("notes.txt")).contains("no log of a run"));
    if User::current() == User::Root {
        assert!(why(&gone, &scratch(&fleet, &foreign)).contains("belongs to uid 12345"));
        assert!(scratch(&fleet, &foreign).join("kept").exists());
    }
    assert!(outside.join("kept").exists() && scratch(&fleet, &linked).is_symlink());
    let text = fleet.cli(["gc"]).ok().stdout;
    assert!(text.contains("Kept") && text.contains("it is a symbolic link"), "{text}");
}

/// A repository with one commit, of a user who is not root.
fn repository(fleet: &Fleet, owner: u32) -> PathBuf {
    let path = fleet.home().join("repo");
    let script = "git init -q -b main . && echo 1 > file && git add . && git -c user.name=a -c user.email=a@b commit -qm 1";
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
    let mut git = Command::new("sh");
    std::os::unix::process::CommandExt::uid(git.args(["-c", script]).current_dir(&path), owner);
    std::os::unix::process::CommandExt::gid(&mut git, owner);
    assert!(git.env("HOME", "/nonexistent").status().unwrap().success());
    path
}

#[test]
fn a_worktree_goes_when_nothing_in_it_would_be_lost() {
    let fleet = Fleet::boot();
    let owner = if User::current() == User::Root { 64_321 } else { nix::unistd::geteuid().as_raw() };
    let repository = repository(&fleet, owner);
    let workspace = format!("worktree:{}", repository.display());
    let more = ["--workspace", workspace.as_str()];
    let clean = archived(&fleet, "clean", "true", &more);
    let dirty = archived(&fleet, "dirty", "echo 2 > new", &more);
    let ahead = archived(&fleet, "ahead", "echo 2 > file; git commit -qam 2", &more);
    let open = fleet.create("open", "true", &more);
    fleet.wait_for(&open, "done");
    let tree = |id: &str| repository.join(".worktrees").join(id);

    let told = fleet.json(["gc", "--dry-run"]);
    let gone = fleet.json(["gc"]);

    assert_eq!(things(&told, "removed"), things(&gone, "removed"));
    assert_eq!(things(&told, "kept"), things(&gone, "kept"));
    let path = tree(&clean).display().to_string();
    assert_eq!(things(&gone, "removed"), [("worktree".to_owned(), path)], "{gone:#}");
    assert!(!tree(&clean).exists());
    assert!(why(&gone, &tree(&dirty)).contains("uncommitted"), "{gone:#}");
    assert!(why(&gone, &tree(&ahead)).contains(&format!("task/{ahead}")), "{gone:#}");
    for id in [&dirty, &ahead, &open] {
        assert!(tree(id).is_dir(), "{id}");
    }
}

#[test]
fn folded_events_are_told_and_the_rest_replays_to_the_same_board() {
    let fleet = Fleet::boot();
    let first = fleet.create("first", "true", &[]);
    fleet.wait_for(&first, "done");
    let second = archived(&fleet, "second", "true", &[]);
    let before = fleet.json(["events", "--limit", "1000"]);
    let count = before["events"].as_array().unwrap().len();
    assert_eq!(fleet.json(["gc", "--dry-run"])["removed"].as_array().unwrap().len(), 1, "the log is kept");

    let told = fleet.json(["gc", "--dry-run", "--event-retention-days", "0"]);
    let gone = fleet.json(["gc", "--event-retention-days", "0"]);

    let events = |collected: &Value| collected["removed"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(events(&gone)["entries"].as_u64(), Some(count as u64));
    assert_eq!(events(&told), events(&gone));
    replays(&fleet);
    let after = fleet.json(["events", "--since", "0"]);
    assert_eq!((&after["events"], &after["folded"]["through"]), (&json!([]), &before["last_event"]));
    assert_eq!(after["last_event"], before["last_event"], "cursors stay what they were");
    let text = fleet.cli(["events"]).ok().stdout;
    assert!(text.contains("the log starts after event"), "{text}");
    fleet.cli(["archive", &first]).ok();
    fleet.cli(["archive", "--rm", &first, &second]).ok();
    let cursor = before["cursor"].to_string();
    let later = fleet.json(["events", "--since", &cursor]);
    assert_eq!(later["folded"], Value::Null);
    let kinds: Vec<&str> =
        later["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["archived", "deleted", "deleted"]);
    replays(&fleet);
    fleet.cli(["gc", "--event-retention-days", "0"]).ok();
    replays(&fleet);
    fleet.restart();
    replays(&fleet);
    fleet.cli(["export", "--file", "board.jsonl"]).ok();
    fleet.cli(["boards", "create", "copy"]).ok();
    fleet.stop(&["--wait"]);
    fleet.cli(["--board", "copy", "import", "board.jsonl"]).ok();
    replays(&fleet);
    assert_eq!(fleet.json(["--board", "copy", "events"])["folded"]["through"], later["last_event"]);
    assert_eq!(fleet.json(["events", "--since", &cursor])["folded"]["through"], later["last_event"]);
}

#[test]
fn a_collection_that_is_killed_at_any_point_is_finished_by_the_next() {
    let fleet = Fleet::offline();
    let ids: Vec<String> = (0..3).map(|n| fleet.create(&format!("task {n}"), "true", &[])).collect();
    fleet.cli(["dispatch"]).ok();
    fleet.cli(std::iter::once("archive").chain(ids.iter().map(String::as_str))).ok();
    for point in ["begin", "job", "commit", "committed", "after-fold"] {
        let mut command = fleet.command(["gc", "--event-retention-days", "0"]);
        command.env("SUPERVISOR_FAIL_POINT", point).stdout(Stdio::null()).stderr(Stdio::null());
        let killed = Output::of(&mut command);
        assert_eq!(killed.code, 128 + Signal::SIGKILL as i32, "at {point}");
        replays(&fleet);
        // Something to fold at the next point.
        fleet.create(point, "true", &[]);
    }
    fleet.cli(["gc", "--event-retention-days", "0"]).ok();
    replays(&fleet);
    assert_eq!(fleet.json(["events"])["events"], json!([]));
    for id in ids {
        assert!(!scratch(&fleet, &id).exists());
    }
}
