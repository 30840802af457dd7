//! Data of finished work is removed; data in use and data of others stay. The folded log replays to the same board.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Fleet, Output, Repository, User, skip};
use crate::http::Http;

/// A task that has worked, and is archived.
fn archived(fleet: &Fleet, title: &str, script: &str, more: &[&str]) -> String {
    let id = fleet.create(title, script, more);
    fleet.wait_for(&id, "done");
    fleet.cli(["archive", &id]).ok();
    id
}

/// Makes a task whose scratch workspace is still there, as after an interrupted removal.
fn left_behind(fleet: &Fleet, title: &str, script: &str) -> String {
    let id = fleet.create(title, script, &[]);
    fleet.wait_for(&id, "done");
    let (place, aside) =
        (scratch(fleet, &id), fleet.root().join("workspaces/default").join(format!(".{id}")));
    fs::rename(&place, &aside).unwrap();
    fleet.cli(["archive", &id]).ok();
    fs::rename(&aside, &place).unwrap();
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
        let parent = left_behind(&fleet, "parent", "mkdir -p a/b && echo x > a/b/c");
        let live = fleet.create("live", "sleep 600", &[]);
        fleet.wait_for(&live, "running");
        fleet.eventually("its workspace is there", || scratch(&fleet, &live).is_dir().then_some(()));
        let child = fleet.create("child", "echo went on", &["--parent", &parent, "--parent", &live]);
        assert!(scratch(&fleet, &parent).is_dir() && logs(&fleet, &parent).is_dir());

        fleet.cli(["archive", "--rm"]).refused(2, "no task to delete is named");
        let both = fleet.cli(["archive", "--json", &parent, &live, "--rm"]);

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
        let over = left_behind(&fleet, "over", "head -c 100000 /dev/zero > zeros; mkdir -m 0 closed");
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
    let (linked, foreign) = (left_behind(&fleet, "a", "true"), left_behind(&fleet, "b", "true"));
    let noted = left_behind(&fleet, "c", "true");
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
    fs::write(logs(&fleet, &noted).join("notes.txt"), "").unwrap();

    let gone = fleet.json(["gc", "--log-retention-days", "0"]);

    assert!(why(&gone, &scratch(&fleet, &linked)).contains("symbolic link"));
    assert!(why(&gone, &base.join("backup")).contains("did not make it"));
    assert!(why(&gone, &base.join("t_00000000")).contains("no task of this board"));
    assert!(why(&gone, &logs(&fleet, &noted).join("notes.txt")).contains("not a log of a run"));
    if User::current() == User::Root {
        assert!(why(&gone, &scratch(&fleet, &foreign)).contains("belongs to uid 12345"));
        assert!(scratch(&fleet, &foreign).join("kept").exists());
    }
    assert!(outside.join("kept").exists() && scratch(&fleet, &linked).is_symlink());
    let text = fleet.cli(["gc"]).ok().stdout;
    assert!(text.contains("Kept") && text.contains("it is a symbolic link"), "{text}");
}

#[test]
fn a_worktree_goes_when_nothing_in_it_would_be_lost() {
    let fleet = Fleet::boot();
    let repository = Repository::new(&fleet, "repository");
    let workspace = repository.workspace();
    let more = ["--workspace", workspace.as_str()];
    let clean = archived(&fleet, "clean", "true", &more);
    let dirty = archived(&fleet, "dirty", "echo 2 > new", &more);
    let ahead = archived(&fleet, "ahead", "echo 2 > file; git commit -qam 2", &more);
    let open = fleet.create("open", "true", &more);
    fleet.wait_for(&open, "done");
    let tree = |id: &str| repository.tree(id);

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
fn the_scratch_of_a_task_goes_when_it_is_archived_and_what_it_handed_over_stays() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "echo result > out.txt; supervisor complete --summary made --artifact out.txt";
        let made = fleet.create("made", script, &[]);
        fleet.wait_for(&made, "done");
        let live = fleet.create("live", "echo x > x; exec sleep 600", &[]);
        fleet.eventually("it works", || scratch(&fleet, &live).join("x").exists().then_some(()));

        fleet.cli(["archive", &made, &live]).ok();

        assert!(!scratch(&fleet, &made).exists());
        let files = fleet.json(["attachments", &made]);
        assert!(files.to_string().contains("out.txt"), "{files}");
        fleet.wait_for(&live, "archived");
        fleet.eventually("its workspace is gone", || (!scratch(&fleet, &live).exists()).then_some(()));
        let both = fleet.create("both", "echo x > x", &[]);
        fleet.wait_for(&both, "done");
        fleet.cli(["archive", &both, "--rm", &both]).ok();
        assert!(!scratch(&fleet, &both).exists());
        fleet.cli(["show", &both]).refused(3, "no such task");
        replays(&fleet);
    }
}

#[test]
fn a_deleted_task_leaves_no_worktree_and_no_branch_and_one_with_work_is_refused() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let workspace = repository.workspace();
        let more = ["--workspace", workspace.as_str()];
        let clean = archived(&fleet, "clean", "true", &more);
        let gone = archived(&fleet, "gone", "true", &more);
        let ahead = archived(&fleet, "ahead", "echo 2 > file; git commit -qam 2", &more);
        fs::remove_dir_all(repository.tree(&gone)).unwrap();

        fleet.cli(["archive", "--rm", &clean]).ok();
        fleet.cli(["archive", "--rm", &gone]).ok();
        let refused = fleet.cli(["archive", "--rm", &ahead]);

        refused.refused(4, &format!("git merge task/{ahead}"));
        assert_eq!(fleet.status_of(&ahead), "archived");
        let left = repository.git(&["branch", "--list", "task/*", "--format=%(refname:short)"]);
        assert_eq!(left, format!("task/{ahead}"));
        for id in [&clean, &gone] {
            assert!(!repository.tree(id).exists());
            assert!(!repository.path().join(".git/worktrees").join(id).exists());
        }
        repository.git(&["merge", "-q", &format!("task/{ahead}")]);
        fleet.cli(["archive", "--rm", &ahead]).ok();
        assert_eq!(repository.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }
}

#[test]
fn a_worktree_with_work_goes_with_its_task_where_the_work_is_given_up() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let workspace = repository.workspace();
        let more = ["--workspace", workspace.as_str()];
        let dirty = archived(&fleet, "dirty", "echo 2 > new", &more);
        let ahead = archived(&fleet, "ahead", "echo 2 > file; git commit -qam 2", &more);
        fleet.cli(["archive", &dirty, "--discard-work"]).refused(2, "--rm");

        let told = fleet.json(["gc"]);

        for id in [&dirty, &ahead] {
            let command = format!("supervisor archive --rm {id} --discard-work");
            assert!(why(&told, &repository.tree(id)).contains(&command), "{told:#}");
            fleet.cli(["archive", "--rm", id]).refused(4, &command);
            fleet.cli(["archive", "--rm", id, "--discard-work"]).ok();
            assert!(!repository.tree(id).exists());
            fleet.cli(["show", id]).refused(3, "no such task");
        }
        assert_eq!(repository.git(&["branch", "--list", "task/*"]), "");
        assert_eq!(repository.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }
}

#[test]
fn folded_events_are_told_and_the_rest_replays_to_the_same_board() {
    let fleet = Fleet::boot();
    let first = fleet.create("first", "true", &[]);
    fleet.wait_for(&first, "done");
    let second = left_behind(&fleet, "second", "true");
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

#[test]
fn the_ledger_of_roots_daemons_is_nothing_to_the_root_of_another_user() {
    if User::current() != User::Root {
        return skip("a ledger that the user cannot read: needs root");
    }
    let fleet = Fleet::offline_as(User::ordinary());
    let ledger = tempfile::tempdir().unwrap();
    fs::write(ledger.path().join("ranges.json"), "{}").unwrap();
    fleet.configure(&format!("[worker]\nuid_ledger = '{}'\n", ledger.path().display()));
    fleet.start();
    let old = left_behind(&fleet, "old", "echo old > file");
    assert!(things(&fleet.json(["gc"]), "removed").iter().any(|(_, path)| path.ends_with(&old)));
    fleet.stop(&[]);
    fleet.cli(["gc"]).ok();
}
