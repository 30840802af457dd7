//! Programs that a person has installed beneath their home, as npm and rustup do, are there for workers without a word about them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use crate::harness::{Fleet, Output, User, binary, skip};

/// Makes a program.
fn program(at: &Path, text: &str) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command line where the home of root is another directory; none where this host lets nobody mount.
fn run_in(fleet: &Fleet, home: &Path, words: &str) -> Option<Output> {
    let root_home = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(0)).unwrap().unwrap().dir;
    let script = format!(
        "mount --bind {} {} && exec {} --root {} {words}",
        home.display(),
        root_home.display(),
        binary(),
        fleet.root().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-c", &script]);
    fleet.dress(&mut command);
    let output = Output::of(&mut command);
    let is_refused = output.stderr.contains("mount:") || output.stderr.contains("unshare:");
    (!is_refused).then_some(output)
}

#[test]
fn an_agent_of_npm_works_and_a_check_by_cargo_passes_without_a_line_about_either() {
    if User::current() != User::Root {
        return skip("programs beneath a home: needs root, which can show another home");
    }
    let fleet = Fleet::offline();
    let home = fleet.home();
    let package = home.join(".npm-global/lib/node_modules/@x/agent");
    program(&package.join("cli.sh"), "#!/usr/bin/env runs-agents\n. \"${0%/*}/../agent/part.sh\"\n");
    fs::write(package.join("part.sh"), "supervisor complete --summary 'an agent of npm'\n").unwrap();
    program(&home.join(".local/bin/runs-agents"), "#!/bin/sh\nexec /bin/sh \"$(readlink -f \"$1\")\"\n");
    fs::create_dir_all(home.join(".npm-global/bin")).unwrap();
    symlink("../lib/node_modules/@x/agent/cli.sh", home.join(".npm-global/bin/agent-of-npm")).unwrap();
    program(&home.join(".cargo/bin/cargo"), "#!/bin/sh\necho \"cargo $1 in $RUSTUP_HOME\" >&2\n");
    fs::write(home.join(".cargo/credentials.toml"), "secret").unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    fleet.lane("npm", "argv = [\"agent-of-npm\"]\npolicy = \"agent\"\n");
    let create = [
        "create",
        "x",
        "--assignee",
        "npm",
        "--max-retries",
        "1",
        "--check",
        "cargo test && ! cat ~/.cargo/credentials.toml",
    ];
    let task = fleet.json(create)["id"].as_str().unwrap().to_owned();
    let tenants = [&create[..], &["--tenant", "other"]].concat();
    let tenants = fleet.json(tenants.as_slice())["id"].as_str().unwrap().to_owned();

    let Some(output) = run_in(&fleet, &home, "dispatch") else {
        return skip("programs beneath a home: this host lets nobody mount");
    };

    let shown = fleet.show(&task);
    let told = format!("{}{} {shown:#}", output.stdout, output.stderr);
    assert_eq!(shown["task"]["status"], "done", "{told}");
    assert_eq!(shown["latest_summary"], "an agent of npm", "{told}");
    // What is the supervisor's user's is not a tenant's.
    let shown = fleet.show(&tenants);
    assert_ne!(shown["task"]["status"], "done", "{shown:#}");
    // Nor does its creator hear that it is there.
    let warned = |more: &str| {
        run_in(&fleet, &home, &format!("create x --assignee npm --triage {more}")).unwrap().ok().stderr
    };
    assert!(!warned("").contains("agent-of-npm"), "{}", warned(""));
    let words = "the program `agent-of-npm` of the lane npm was not found";
    assert!(warned("--tenant other").contains(words), "{}", warned("--tenant other"));
}
