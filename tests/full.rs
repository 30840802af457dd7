//! A full disk: what was acknowledged stays, what cannot be kept is refused with 75, and work goes on when there is room.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::harness::{Fleet, Output, User, skip};
use crate::invariants::{at_rest, in_lines};

/// A small file system that only commands run through it see.
struct Small {
    keeper: Child,
    mount: PathBuf,
}

impl Small {
    /// Mounts `bytes` of memory over a directory of a fleet's home. None where this host does not let us.
    fn new(fleet: &Fleet, bytes: u64) -> Option<Self> {
        if User::current() != User::Root {
            skip("a full disk: needs root");
            return None;
        }
        let mount = fleet.home().join("small");
        fs::create_dir(&mount).unwrap();
        let script = "mount --make-rprivate / && mount -t tmpfs -o mode=755,size=$1 none $2 && echo mounted && exec cat";
        let mut keeper = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh", &bytes.to_string(), mount.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "mounted\n" {
            drop(keeper.wait());
            skip("a full disk: this host lets nobody mount");
            return None;
        }
        Some(Small { keeper, mount })
    }

    /// A command that sees the file system.
    fn command(&self, fleet: &Fleet, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.keeper.id().to_string(), "--mount", "--", program]).args(args);
        fleet.dress(&mut command);
        command
    }

    /// Runs our binary with its root there.
    fn cli(&self, fleet: &Fleet, args: &[&str]) -> Output {
        let mut command =
            self.command(fleet, crate::harness::binary(), &["--root", self.mount.to_str().unwrap()]);
        Output::of(command.args(args))
    }

    /// Takes all the room that is left.
    fn fill(&self, fleet: &Fleet) {
        let script = "dd if=/dev/zero of=$1/filler bs=4096 2>/dev/null; true";
        Output::of(&mut self.command(fleet, "sh", &["-c", script, "sh", self.mount.to_str().unwrap()])).ok();
    }

    /// The processes that have its mount point in their command line or environment.
    fn processes(&self) -> Vec<String> {
        let mount = self.mount.to_str().unwrap().as_bytes();
        let mentions = |path: PathBuf| {
            fs::read(path).is_ok_and(|text| text.windows(mount.len()).any(|part| part == mount))
        };
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found = all.filter(|dir| {
            let is_keeper = dir.ends_with(self.keeper.id().to_string());
            !is_keeper && ["cmdline", "environ"].iter().any(|file| mentions(dir.join(file)))
        });
        found.map(|dir| fs::read_to_string(dir.join("cmdline")).unwrap_or_default()).collect()
    }

    /// Gives the room back.
    fn free(&self, fleet: &Fleet) {
        let filler = self.mount.join("filler");
        Output::of(&mut self.command(fleet, "rm", &[filler.to_str().unwrap()])).ok();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(self.keeper.kill());
        drop(self.keeper.wait());
    }
}

#[test]
fn a_command_without_a_daemon_is_refused_while_the_disk_is_full_and_loses_nothing() {
    let fleet = Fleet::offline();
    let Some(small) = Small::new(&fleet, 4 << 20) else { return };
    let created = |n: usize| small.cli(&fleet, &["create", &format!("task {n}"), "--json"]);
    created(0).ok();
    small.fill(&fleet);
    let body = "x".repeat(100_000);
    let refused = fleet.eventually("the disk is full", || {
        let output = small.cli(&fleet, &["create", "large", "--body", &body]);
        (output.code != 0).then_some(output)
    });
    refused.refused(75, "full");
    let file = small.mount.join("copy").display().to_string();
    for args in [&["backup", &file][..], &["export", "--file", &file]] {
        let refused = small.cli(&fleet, args).refused(75, "");
        assert!(refused.stderr.contains("space") && !refused.stderr.contains("kernel log"), "{refused:?}");
    }
    let sick = small.cli(&fleet, &["doctor"]);
    assert_eq!(sick.code, 1, "{}", sick.stdout);
    assert!(sick.stdout.contains("No space left on device"), "{}", sick.stdout);
    let listed = small.cli(&fleet, &["list", "--json"]).ok().json();
    let before = listed.as_array().unwrap().len();
    assert!(before >= 1);

    small.free(&fleet);

    created(1).ok();
    assert_eq!(small.cli(&fleet, &["list", "--json"]).ok().json().as_array().unwrap().len(), before + 1);
}

#[test]
fn a_read_only_root_is_read_and_every_refusal_and_the_doctor_say_what_is_wrong() {
    let fleet = Fleet::offline();
    let Some(small) = Small::new(&fleet, 8 << 20) else { return };
    small.cli(&fleet, &["create", "x"]).ok();
    assert!(small.cli(&fleet, &["doctor"]).ok().stdout.contains("can be served"));
    let again = ["-o", "remount,ro", small.mount.to_str().unwrap()];
    Output::of(&mut small.command(&fleet, "mount", &again)).ok();

    small.cli(&fleet, &["list"]).ok();
    for verb in [["create", "y"].as_slice(), &["daemon"]] {
        let refused = small.cli(&fleet, verb).refused(1, "Read-only file system");
        assert!(refused.stderr.contains("hint: its file system is mounted read-only"), "{}", refused.stderr);
    }
    let sick = small.cli(&fleet, &["doctor"]);
    assert_eq!(sick.code, 1);
    assert!(sick.stdout.contains("Read-only file system"), "{}", sick.stdout);
}

#[test]
fn a_daemon_on_a_full_disk_refuses_keeps_its_workers_and_goes_on_when_there_is_room() {
    let fleet = Fleet::offline();
    let room = fs::metadata(crate::harness::binary()).unwrap().len() + (8 << 20);
    let Some(small) = Small::new(&fleet, room) else { return };
    let log = fs::File::create(fleet.log_file()).unwrap();
    let mut daemon = small
        .command(&fleet, crate::harness::binary(), &["--root", small.mount.to_str().unwrap(), "daemon"])
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    fleet.eventually("the daemon serves", || fleet.log().contains(" serves ").then_some(()));
    let script = "while [ ! -e go ]; do sleep 0.02; done; echo went";
    let task = small.cli(&fleet, &["create", "x", "--assignee", "shell", "--body", script, "--json"]);
    let task = task.ok().json()["id"].as_str().unwrap().to_owned();
    let show = || small.cli(&fleet, &["show", &task, "--json"]).ok().json();
    let path = fleet.eventually("it runs", || {
        let shown = show();
        let run = &shown["runs"][0];
        run["worker_pid"].as_i64()?;
        run["workspace_path"].as_str().map(str::to_owned)
    });

    small.fill(&fleet);
    let body = "x".repeat(100_000);
    let refused = fleet.eventually("the disk is full", || {
        let output = small.cli(&fleet, &["create", "large", "--body", &body]);
        (output.code != 0).then_some(output)
    });
    refused.refused(75, "full");
    assert_eq!(show()["task"]["status"], "running", "the worker lives on");
    small.free(&fleet);
    Output::of(&mut small.command(&fleet, "touch", &[&format!("{path}/go")])).ok();

    fleet.eventually("it is done", || (show()["task"]["status"] == "done").then_some(()));
    assert_eq!(show()["latest_summary"], "went");
    small.cli(&fleet, &["stop", "--kill"]).ok();
    assert!(daemon.wait().unwrap().success());
    assert_eq!(in_lines(&at_rest(&|args: &[&str]| small.cli(&fleet, args))), "");
    let script = "find \"$1/runs/default\" \"$1/homes/default\" -mindepth 1";
    let left =
        Output::of(&mut small.command(&fleet, "sh", &["-c", script, "sh", small.mount.to_str().unwrap()]));
    assert_eq!(left.stdout, "", "{}", left.stderr);
    assert_eq!(small.processes(), Vec::<String>::new());
}
