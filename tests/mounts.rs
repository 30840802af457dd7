//! A directory on a file system that does not answer holds up its own tasks, and nobody else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};

use crate::harness::{Fleet, User, mount_fuse};

/// A mount whose server never answers: what looks into it waits until it is gone.
struct Dead {
    at: PathBuf,
    /// The server's end. Nothing reads from it.
    _server: File,
}

impl Dead {
    /// Mounts it, where this host allows that.
    fn over(at: &Path) -> Option<Self> {
        let server = mount_fuse(at, "a mount that does not answer")?;
        Some(Dead { at: at.to_owned(), _server: server })
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        umount2(&self.at, MntFlags::MNT_DETACH).unwrap();
    }
}

#[test]
fn a_mount_that_does_not_answer_holds_up_its_own_tasks_alone() {
    let fleet = Fleet::offline();
    let outer = fleet.home().join("mount");
    let inner = outer.join("work");
    fs::create_dir_all(&inner).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&inner, Some(64_321), Some(64_321)).unwrap();
    }
    let place = format!("dir:{}", inner.display());
    let task = fleet.create("on the mount", "true", &["--workspace", &place]);
    let mine = fleet.json(["create", "by hand", "--assignee", "somebody-outside", "--workspace", &place]);
    let mine = mine["id"].as_str().unwrap();
    let Some(dead) = Dead::over(&outer) else { return };

    fleet.start();
    let other = fleet.create("elsewhere", "echo fine", &[]);

    assert_eq!(fleet.wait_for(&other, "done")["latest_summary"], "fine");
    fleet.eventually("it says what it waits for", || {
        fleet.show(&task)["why"]["text"].as_str()?.contains("does not answer").then_some(())
    });
    let create = ["create", "another", "--assignee", "shell", "--body", "true", "--workspace", &place];
    fleet.cli(create).refused(75, "does not answer");
    fleet.cli(["edit", &task, "--workspace", &place]).refused(75, "does not answer");
    fleet.cli(["claim", mine]).refused(75, "does not answer");
    let further = fleet.create("elsewhere again", "echo still", &[]);
    assert_eq!(fleet.wait_for(&further, "done")["latest_summary"], "still");

    drop(dead);
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
}
