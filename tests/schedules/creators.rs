//! The user who saved a schedule is the creator of its tasks: they may work where that user may have work done.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Fleet, User, skip};

/// The owner of a directory in which a worker is to work, and another user.
const OWNER: u32 = 4242;
const OTHER: u32 = 4243;

fn directory(fleet: &Fleet, owner: u32) -> PathBuf {
    let path = fleet.home().join("work");
    fs::create_dir(&path).unwrap();
    chown(&path, Some(owner), Some(owner)).unwrap();
    path
}

/// The file of a schedule of each second, whose task notes its user in a directory.
fn text(dir: &Path) -> String {
    format!(
        "every = \"1s\"\n[task]\ntitle = \"t\"\nassignee = \"shell\"\nmax_retries = 1\n\
         workspace = \"dir:{}\"\nbody = \"id -u >> who\"\n",
        dir.display()
    )
}

/// Writes the file of a schedule as a user does by hand, and has it read.
fn by_hand(fleet: &Fleet, name: &str, text: &str, owner: u32) -> PathBuf {
    fs::create_dir_all(fleet.root().join("schedules.d")).unwrap();
    let path = fleet.root().join(format!("schedules.d/{name}.toml"));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    chown(&path, Some(owner), None).unwrap();
    path
}

/// Why the task of the first tick of a schedule is blocked.
fn why(fleet: &Fleet, name: &str) -> String {
    let listed = fleet.eventually("its task is blocked", || {
        let listed = fleet.json(["list", "--status", "blocked"]);
        let own = |task: &&Value| task["schedule"] == name;
        listed.as_array().unwrap().iter().find(own).cloned()
    });
    fleet.show(listed["id"].as_str().unwrap())["runs"][0]["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_schedule_of_root_or_of_the_owner_has_its_work_done_in_the_directory_of_a_user() {
    if User::current() != User::Root {
        skip("a directory of another user: needs root");
        return;
    }
    let fleet = Fleet::boot();
    let dir = directory(&fleet, OWNER);
    let place = format!("dir:{}", dir.display());
    let wrote = |what: &str| {
        fleet.eventually(what, || {
            fs::read_to_string(dir.join("who")).ok().filter(|who| who.lines().all(|who| who == "4242"))
        });
        fs::remove_file(dir.join("who")).unwrap();
    };
    let words = ["schedules", "add", "saved", "--every", "1s", "--title", "t", "--assignee", "shell"];
    let more = ["--workspace", &place, "--body", "id -u >> who"];
    fleet.cli([&words[..], &more].concat()).ok();
    wrote("root's schedule ticks");
    fleet.cli(["schedules", "rm", "saved"]).ok();
    let path = by_hand(&fleet, "own", &text(&dir), OWNER);
    fleet.cli(["service", "reload"]).ok();
    wrote("the owner's schedule ticks");
    // Another writes the file for the owner, who stays its creator.
    fleet.cli(["schedules", "pause", "own"]).ok();
    assert_eq!(fs::metadata(&path).unwrap().uid(), 0);
    assert!(fs::read_to_string(&path).unwrap().contains("saved_by = 4242\n"));
    fleet.cli(["schedules", "resume", "own"]).ok();
    drop(fs::remove_file(dir.join("who")));
    wrote("the owner's schedule ticks again");
    let shown = fleet.json(["schedules", "show", "own"]);
    assert_eq!(shown["creator_uid"], OWNER, "{shown:#}");
}

#[test]
fn nobody_gains_the_user_of_a_directory_by_the_file_of_a_schedule() {
    if User::current() != User::Root {
        skip("a directory of another user: needs root");
        return;
    }
    let fleet = Fleet::boot();
    let dir = directory(&fleet, OWNER);
    let claimed = |uid: u32| format!("saved_by = {uid}\n{}", text(&dir));
    by_hand(&fleet, "other", &claimed(0), OTHER);
    by_hand(&fleet, "named", &claimed(OTHER), 0);
    let open = by_hand(&fleet, "open", &text(&dir), 0);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    let roots = fleet.home().join("roots.toml");
    fs::write(&roots, text(&dir)).unwrap();
    symlink(&roots, fleet.root().join("schedules.d/link.toml")).unwrap();
    fleet.cli(["service", "reload"]).ok();
    for name in ["other", "named"] {
        let why = why(&fleet, name);
        assert!(why.contains("made by uid 4243, who may not act as that user"), "{name}: {why}");
        assert!(why.contains(&format!("supervisor schedules edit {name}")), "{name}: {why}");
    }
    for name in ["open", "link"] {
        let why = why(&fleet, name);
        assert!(why.contains(&format!("not known who saved the schedule {name}")), "{name}: {why}");
    }
    fleet.eventually("the blocked schedules degrade the status", || {
        (fleet.cli(["status"]).code == 1).then_some(())
    });
    // What root runs itself is as little root's own.
    let tick = fleet.json(["schedules", "run", "other"]);
    let task = tick["tasks"][0].as_str().unwrap();
    let shown = fleet.wait_for(task, "blocked");
    assert!(shown["runs"][0]["error"].as_str().unwrap().contains("uid 4243"), "{shown:#}");
    assert!(!dir.join("who").exists());
}

#[test]
fn the_command_of_a_schedule_acts_for_the_user_who_saved_it() {
    if User::current() != User::Root {
        skip("a directory of another user: needs root");
        return;
    }
    let fleet = Fleet::boot();
    let dir = directory(&fleet, OWNER);
    let account = dir.join("account");
    fs::create_dir(&account).unwrap();
    chown(&account, Some(OWNER), Some(OWNER)).unwrap();
    let text = format!("every = \"1s\"\ncommand = \"dispatch-fleet shell {}\"\n", dir.display());
    by_hand(&fleet, "other", &text, OTHER);
    by_hand(&fleet, "own", &text, OWNER);
    fleet.cli(["service", "reload"]).ok();
    let last = |name: &str, outcome: &str| {
        fleet.eventually("a tick is over", || {
            let shown = fleet.json(["schedules", "show", name]);
            let ticks = shown["ticks"].as_array()?.clone();
            ticks.into_iter().find(|tick| tick["outcome"] == outcome)
        })
    };
    let failed = last("other", "failed");
    assert!(failed["note"].as_str().unwrap().contains("belongs to uid 4242"), "{failed:#}");
    last("own", "made");
    let named = format!("every = \"1h\"\ncommand = \"dispatch-fleet --creator 0 shell {}\"\n", dir.display());
    let path = fleet.home().join("named.toml");
    fs::write(&path, named).unwrap();
    let words = ["schedules", "add", "named", "--file", path.to_str().unwrap()];
    fleet.cli(words).refused(2, "--creator is decided by the schedule");
}
