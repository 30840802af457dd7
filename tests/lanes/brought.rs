//! A program that nobody has heard of, installed as npm does it beneath its user's home, is brought by one file and what `lane check` says.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use crate::harness::{Fleet, Output, User, skip};

/// The page that an engineer follows.
const PAGE: &str = include_str!("../../docs/lanes.md");

/// An agent of its own kind: it wants a key, does its work and reports by the command that its prompt names.
const PARROT: &str = r#"#!/bin/sh
[ "$1" = --ask ] || { echo "usage: parrot --ask TEXT" >&2; exit 64; }
[ "$PARROT_KEY" = polly ] || { echo "parrot: no key" >&2; exit 3; }
. "$(dirname "$(readlink -f "$0")")/words.sh"
echo "$WORDS" > said.txt
line=$(printf '%s\n' "$2" | grep -o -m 1 "supervisor complete --summary '[^']*'") && eval "$line"
"#;

/// The file of the lane, as the page has it.
fn lane_of_the_page() -> String {
    let (_, rest) =
        PAGE.split_once("`lanes.d/parrot.toml` is\n\n   ```toml\n").expect("the page has the file");
    let (file, _) = rest.split_once("   ```").unwrap();
    file.lines().flat_map(|line| [line.strip_prefix("   ").unwrap_or(line), "\n"]).collect()
}

/// `lane check`, by somebody who has the program on the PATH: its code, and what it says to do.
fn check(fleet: &Fleet, path: &str) -> (i32, Vec<String>) {
    let said = Output::of(fleet.command(["lane", "check", "parrot", "--json"]).env("PATH", path));
    let checks = said.json()["checks"].as_array().unwrap().clone();
    let hints = checks
        .iter()
        .filter(|check| check["severity"] == "error")
        .map(|check| check["actions"][0]["label"].clone());
    (said.code, hints.map(|hint| hint.as_str().unwrap_or_default().to_owned()).collect())
}

#[test]
fn a_program_that_nobody_has_heard_of_is_brought_by_one_file_and_what_check_says() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let npm = fleet.home().join(".npm-global");
        let (bin, package) = (npm.join("bin"), npm.join("lib/node_modules/parrot"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("cli.sh"), PARROT).unwrap();
        fs::write(package.join("words.sh"), "WORDS=hello\n").unwrap();
        fs::set_permissions(package.join("cli.sh"), Permissions::from_mode(0o755)).unwrap();
        symlink("../lib/node_modules/parrot/cli.sh", bin.join("parrot")).unwrap();
        // Homes of people are often closed to others.
        fs::set_permissions(&npm, Permissions::from_mode(0o700)).unwrap();
        fleet.give(&npm);
        fleet.lane("parrot", &lane_of_the_page());
        let path = format!("/usr/bin:/bin:{}", bin.display());

        let (code, hints) = check(&fleet, &path);
        let Some(command) =
            hints.iter().find_map(|hint| hint.split_once("you have it:\n")).map(|(_, line)| line)
        else {
            return skip("a lane under the policy `agent`: this host cannot enforce it");
        };
        assert!(code == 1 && hints.iter().any(|hint| hint.contains("secrets/parrot-key")), "{hints:?}");
        fleet.write_config("secrets/parrot-key", "polly");
        let secret = fleet.root().join("secrets/parrot-key");
        fs::set_permissions(secret, Permissions::from_mode(0o600)).unwrap();
        let mut shell = Command::new("sh");
        fleet.dress(&mut shell);
        Output::of(shell.args(["-c", command])).ok();
        assert_eq!(check(&fleet, &path), (0, Vec::new()));

        let tested = fleet.cli(["lane", "test", "parrot"]).ok().stdout;
        for step in ["start: its program was executed", "ending: completed", "report: by `complete`"] {
            assert!(tested.contains(step), "{tested}");
        }
        fleet.start();
        let task =
            fleet.json(["create", "Say hello", "--assignee", "parrot"])["id"].as_str().unwrap().to_owned();
        let shown = fleet.wait_for(&task, "done");
        let said = std::path::Path::new(shown["task"]["workspace_path"].as_str().unwrap()).join("said.txt");
        assert_eq!(fs::read_to_string(said).unwrap(), "hello\n", "it read what its link leads to");
    }
}
