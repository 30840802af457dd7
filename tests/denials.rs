//! The denial of a failed run names the line of the policy that allows the act, and with that line the same run works.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::harness::{Fleet, Repository, User};

/// The scripts of runs that fail, and the lines that let them work. `@HOME@` is a directory that is granted to nobody.
const DENIED: [(&str, &str, &str); 14] = [
    ("default", "@HOME@/tools/tool", r#"filesystem.add.rox = ["@HOME@/tools"]"#),
    ("default", "sh -c @HOME@/tools/tool", r#"filesystem.add.rox = ["@HOME@/tools"]"#),
    ("default", "cat @HOME@/file", r#"filesystem.add.ro = ["@HOME@/file"]"#),
    ("default", "echo x > @HOME@/open/x", r#"filesystem.add.rw = ["@HOME@/open"]"#),
    ("default", "cp /etc/passwd @HOME@/open/y", r#"filesystem.add.rw = ["@HOME@/open"]"#),
    ("default", "mkdir @HOME@/open/d", r#"filesystem.add.rw = ["@HOME@/open"]"#),
    ("default", "tar cf @HOME@/open/x.tar .", r#"filesystem.add.rw = ["@HOME@/open"]"#),
    ("default", "python3 -c 'open(\"@HOME@/open/p\", \"w\")'", r#"filesystem.add.rw = ["@HOME@/open"]"#),
    ("default", "cd @HOME@/open", r#"filesystem.add.ro = ["@HOME@/open"]"#),
    // On most hosts a link, to what the policy grants.
    ("strict", "cat /etc/os-release > /dev/null", r#"filesystem.add.ro = ["/etc/os-release"]"#),
    (
        "default",
        "@PERL@ 'IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die \"bind: $!\"'",
        r#"network.mode = "loopback""#,
    ),
    ("default", "perl -e 'syscall(101, 0, 0, 0, 0) == 0 or die \"ptrace: $!\"'", "process.debug = true"),
    ("strict", "cat /proc/self/status > /dev/null", r#"filesystem.proc = "host""#),
    ("strict", "echo x > /dev/shm/x", r#"filesystem.shm = "private""#),
];

/// Acts that no line of a policy allows, with their names in the message.
const NEVER: [(&str, &str); 5] = [
    ("unshare -U true", "making a namespace or a mount"),
    ("mount -t tmpfs x /mnt", "making a namespace or a mount"),
    ("touch f && chmod 4755 f", "setting a set-user-ID or set-group-ID bit"),
    ("echo x > /usr/x", "writing to /usr/x"),
    ("touch /etc/x", "writing to /etc/x"),
];

fn provide(fleet: &Fleet) {
    for (name, mode) in [("tools", 0o755), ("open", 0o777)] {
        let dir = fleet.home().join(name);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(fleet.home().join("file"), "read").unwrap();
    let tool = fleet.home().join("tools/tool");
    fs::write(&tool, "#!/bin/sh\necho works\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
}

fn error(fleet: &Fleet, task: &str) -> String {
    let shown = fleet.wait_for(task, "blocked");
    shown["runs"][0]["error"].as_str().unwrap_or_default().to_owned()
}

/// Returns the part of a sentence between two texts.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    text.split_once(from)?.1.split_once(to).map(|(line, _)| line)
}

#[test]
fn a_run_that_was_denied_something_works_with_the_line_that_is_named() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        provide(&fleet);
        let lacks = |script: &str| {
            let word = script.split(' ').next().unwrap_or_default();
            ["perl", "python3", "tar"].contains(&word) && !Path::new("/usr/bin").join(word).exists()
        };
        let home = fleet.home().display().to_string();
        let real = |text: &str| text.replace("@HOME@", &home).replace("@PERL@", "perl -MIO::Socket::INET -e");
        let known = DENIED.iter().filter(|(_, script, _)| !lacks(&real(script)));
        let mut denied = Vec::new();
        for (policy, script, line) in known {
            let more = ["--policy", policy, "--max-retries", "1"];
            denied.push((*policy, real(script), real(line), fleet.create(script, &real(script), &more)));
        }
        for (n, (policy, script, line, task)) in denied.iter().enumerate() {
            let said = error(&fleet, task);
            let named = between(&said, "does not allow it; ", " in a policy of your own").unwrap_or_default();
            assert_eq!(named, line, "{script}: {said}");
            fleet.policy(&format!("own{n}"), &format!("version = 1\nextends = '{policy}'\n{line}\n"));
        }
        fleet.signal(Signal::SIGHUP);
        for (n, (_, script, _, _)) in denied.iter().enumerate() {
            let name = format!("own{n}");
            let args =
                ["create", "again", "--assignee", "shell", "--body", script, "--policy", &name, "--json"];
            let again = fleet.eventually("the new policy is there", || {
                let made = fleet.cli(args);
                (made.code == 0).then(|| made.json()["id"].as_str().unwrap().to_owned())
            });
            fleet.wait_for(&again, "done");
        }
    }
}

#[test]
fn what_no_policy_allows_is_told_so_and_never_with_a_line_that_changes_nothing() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let mut denied = Vec::new();
        for (script, act) in NEVER {
            denied.push((script, act, fleet.create(script, script, &["--max-retries", "1"])));
        }
        if user == User::Root {
            let script = format!("kill -0 {}", std::process::id());
            let task = fleet.create("signals", &script, &["--max-retries", "1"]);
            denied.push(("kill", "a signal to a process that is not the run's", task));
        }
        // The settings of a repository are shown for reading, whatever a policy grants.
        let repository = Repository::new(&fleet, "repository");
        let workspace = repository.workspace();
        let more = ["--max-retries", "1", "--workspace", workspace.as_str()];
        denied.push(("git config", ".git/config", fleet.create("sets", "git config user.name x", &more)));
        for (script, act, task) in denied {
            let said = error(&fleet, &task);
            let sandbox = between(&said, "the sandbox denied ", ": no policy allows it");
            assert!(sandbox.is_some_and(|told| told.contains(act)), "{script}: {said}");
            assert!(!said.contains("filesystem."), "{script}: {said}");
        }
    }
}

#[test]
fn what_the_rights_of_the_file_refuse_is_not_said_to_be_denied() {
    let fleet = Fleet::boot_as(User::current());
    let task = fleet.create("reads", "cat /etc/shadow", &["--max-retries", "1"]);
    let said = error(&fleet, &task);
    assert!(said.contains("Permission denied") && !said.contains("the sandbox denied"), "{said}");
}
