//! `demo`: everything that it shows comes true, for root and for an ordinary user, and nothing is left afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Fleet, Output, User};

/// A repository of the fleet's user with two commits, a tag and a file that is not committed.
fn repository(fleet: &Fleet) -> PathBuf {
    let path = fleet.home().join("project");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("main.c"), "int main(void) { return 0; } /* TODO: more */\n").unwrap();
    fleet.give(&path);
    fleet.give(&path.join("main.c"));
    let who = ["-c", "user.name=ann", "-c", "user.email=ann@localhost"];
    for arguments in [
        vec!["init", "-q", "-b", "main"],
        vec!["add", "."],
        vec!["commit", "-q", "-m", "first"],
        vec!["commit", "-q", "--allow-empty", "-m", "second"],
        vec!["tag", "v1"],
    ] {
        git(fleet, &path, &[&who[..], &arguments].concat());
    }
    fs::write(path.join("draft"), "not committed\n").unwrap();
    path
}

fn git(fleet: &Fleet, path: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    fleet.dress(&mut command);
    Output::of(command.current_dir(path).args(arguments)).ok().stdout
}

/// Living processes, this one aside, that name a directory in their command line or environment.
fn mentioning(dir: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let names = |pid: &str, file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(dir)
    };
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    pids.filter(|pid| *pid != own && (names(pid, "cmdline") || names(pid, "environ"))).collect()
}

#[test]
fn everything_that_the_demo_shows_comes_true_and_the_repository_is_as_it_was() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let path = repository(&fleet);
        let standing = || {
            let refs = git(&fleet, &path, &["for-each-ref"]);
            refs + &git(&fleet, &path, &["status", "--porcelain", "--branch"])
        };
        let before = standing();

        let report = fleet.json(["demo", "--repo", path.to_str().unwrap()]);

        assert_eq!(report["ok"], true, "{report:#}");
        let checks = report["checks"].as_array().unwrap();
        assert!(checks.len() >= 23 && checks.iter().all(|check| check["ok"] == true), "{report:#}");
        let denials = report["denials"].as_array().unwrap();
        assert_eq!(denials.len(), 4);
        for denial in denials {
            assert_eq!(denial["outside"], "read", "{denial}");
            assert!(["ENOENT", "EACCES", "EPERM"].contains(&denial["inside"].as_str().unwrap()), "{denial}");
        }
        assert_eq!((&report["survivors"], &report["repository"]["files"]), (&0.into(), &1.into()));
        assert_eq!(standing(), before);
    }
}

#[test]
fn a_demo_that_is_interrupted_cleans_up_and_says_so() {
    let (fleet, report, root) = interrupted(&["demo"]);
    assert!(
        report.starts_with("Ended by Ctrl-C") && report.contains("nothing that the demo started is left"),
        "{report}"
    );
    assert!(!Path::new(&root).exists(), "{root}");
    drop(fleet);
}

#[test]
fn a_demo_that_is_to_keep_its_boards_keeps_them_when_it_is_interrupted() {
    let (fleet, report, root) = interrupted(&["demo", "--keep"]);
    assert!(report.contains("Its root is kept") && Path::new(&root).is_dir(), "{report}");
    fs::remove_dir_all(&root).unwrap();
    drop(fleet);
}

/// A demo that Ctrl-C has ended: what it reported, and where it was.
fn interrupted(args: &[&str]) -> (Fleet, String, String) {
    let fleet = Fleet::offline();
    let mut command = fleet.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut demo = command.spawn().unwrap();
    let mut said = BufReader::new(demo.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let root = line.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(Path::new(&root).is_dir(), "{line}");
    // The stories are under way now: it is the clone or sample that has been made.
    line.clear();
    said.read_line(&mut line).unwrap();

    kill(Pid::from_raw(i32::try_from(demo.id()).unwrap()), Signal::SIGINT).unwrap();

    let mut report = String::new();
    demo.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130), "{report}");
    assert!(mentioning(&root).is_empty(), "{:?}", mentioning(&root));
    (fleet, report, root)
}

#[test]
fn a_repository_that_cannot_be_used_is_refused_before_anything_is_made() {
    let fleet = Fleet::offline();
    let empty = fleet.home().join("empty");
    fs::create_dir(&empty).unwrap();
    fleet.cli(["demo", "--repo", empty.to_str().unwrap()]).refused(3, "no git repository");
    git(&fleet, &empty, &["init", "-q"]);
    fleet.cli(["demo", "--repo", empty.to_str().unwrap()]).refused(4, "no commit yet");
    fleet.cli(["demo", "--repo", "/nowhere/at/all"]).refused(3, "/nowhere/at/all");
}
