//! Secrets of a policy: the worker has the value, and nobody else finds its bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Fleet, User};

/// A value that is nowhere by chance.
const VALUE: &str = "sk-7c1f0e5b-never-shown";

/// Writes a secret of the fleet's user beside its root, with a mode.
fn secret(fleet: &Fleet, mode: u32) -> PathBuf {
    let path = fleet.home().join("anthropic");
    fs::write(&path, format!("{VALUE}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    fleet.give(&path);
    path
}

fn with_key(fleet: &Fleet, secret: &str) {
    let text = format!("version = 1\nextends = 'default'\n[env]\nsecret = {{ API_KEY = {secret} }}\n");
    fleet.policy("with-key", &text);
}

/// The files beneath a directory that have the value.
fn holders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holders(&path));
        } else if kind.is_file() && has(&fs::read(&path).unwrap_or_default()) {
            found.push(path);
        }
    }
    found
}

fn has(bytes: &[u8]) -> bool {
    // Quicker than the windows of a slice: the root has a copy of the program.
    regex::bytes::Regex::new(&regex::escape(VALUE)).unwrap().is_match(bytes)
}

/// The processes of the fleet that have the value in their arguments or, where they are the supervisor's own, in their environment.
fn processes(fleet: &Fleet) -> Vec<String> {
    let mut found = Vec::new();
    for process in fleet.processes() {
        let at = |file: &str| fs::read(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
        let is_own = ["__shim", "__init", " daemon"].iter().any(|word| process.command.contains(word));
        if has(&at("cmdline")) || (is_own && has(&at("environ"))) {
            found.push(process.command);
        }
    }
    found
}

#[test]
fn a_worker_has_its_secret_and_nothing_else_has_its_bytes() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let path = secret(&fleet, 0o600);
        with_key(&fleet, &format!("{{ file = '{}' }}", path.display()));
        fleet.start();
        let script = "printf %s \"$API_KEY\" | sha256sum; until supervisor show --json | grep -q 'go-o[n]'; do sleep 0.05; done";
        let task = fleet.create("has a key", script, &["--policy", "with-key"]);
        let digest =
            Command::new("sh").args(["-c", &format!("printf %s {VALUE} | sha256sum")]).output().unwrap();
        let digest = String::from_utf8(digest.stdout).unwrap();
        fleet.eventually("the worker has its key", || {
            fleet.cli(["log", &task]).stdout.contains(digest.trim()).then_some(())
        });

        assert_eq!(holders(&fleet.root()), Vec::<PathBuf>::new(), "while it runs");
        assert_eq!(processes(&fleet), Vec::<String>::new());
        fleet.cli(["comment", &task, "go-on"]).ok();
        fleet.wait_for(&task, "done");
        assert_eq!(holders(&fleet.root()), Vec::<PathBuf>::new(), "when it has ended");
        for args in [vec!["show", &task, "--json"], vec!["events", "--json"], vec!["runs", &task, "--json"]] {
            assert!(!has(fleet.cli(args).ok().stdout.as_bytes()));
        }
        assert!(!has(fleet.log().as_bytes()));
    }
}

#[test]
fn a_secret_that_others_can_read_starts_nothing_and_costs_no_attempt() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let path = secret(&fleet, 0o644);
        with_key(&fleet, &format!("{{ file = '{}' }}", path.display()));
        fleet.start();
        let task = fleet.create("waits for a key", "true", &["--policy", "with-key"]);
        let why = fleet.eventually("it says what it waits for", || {
            let why = fleet.show(&task)["why"]["text"].as_str()?.to_owned();
            why.contains("chmod 600").then_some(why)
        });
        let named = [path.to_str().unwrap(), "API_KEY", "with-key", "0644"];
        assert!(named.iter().all(|word| why.contains(word)) && !has(why.as_bytes()), "{why}");
        assert!(!has(fleet.log().as_bytes()));

        secret(&fleet, 0o600);
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown}");
    }
}

#[test]
fn a_credential_of_the_unit_is_found_and_one_that_is_missing_is_named() {
    let fleet = Fleet::offline();
    let path = secret(&fleet, 0o400);
    with_key(&fleet, "{ credential = 'anthropic' }");
    fleet.start_by(
        Command::new("env")
            .arg("--")
            .arg(format!("CREDENTIALS_DIRECTORY={}", path.parent().unwrap().display()))
            .arg(fleet.binary())
            .arg("--root")
            .arg(fleet.root())
            .arg("daemon"),
    );
    let task = fleet.create("has a key", &format!("test \"$API_KEY\" = {VALUE}"), &["--policy", "with-key"]);
    fleet.wait_for(&task, "done");
    fleet.policy(
        "lost",
        "version = 1\nextends = 'default'\n[env]\nsecret = { KEY = { credential = 'lost' } }\n",
    );
    fleet.signal(nix::sys::signal::Signal::SIGHUP);
    let create = ["create", "x", "--assignee", "shell", "--body", "true", "--policy", "lost", "--json"];
    let lost = fleet.eventually("the policy is there", || {
        let created = fleet.cli(create);
        (created.code == 0).then(|| created.json()["id"].as_str().unwrap().to_owned())
    });
    fleet.eventually("it says what it waits for", || {
        let why = fleet.show(&lost)["why"]["text"].as_str()?.to_owned();
        (why.contains("KEY") && why.contains("the credential lost")).then_some(())
    });
}
