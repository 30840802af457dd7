//! Contribution of a lane to the policy of its runs: the hosts of its service, and secrets by reference.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use crate::harness::{Fleet, User};
use crate::proxy::{Server, events, is_possible};

/// A lane whose workers are scripts.
const SCRIPTS: &str =
    "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n";

/// Writes a secret that is named by a name alone.
fn secret(fleet: &Fleet, name: &str, mode: u32) -> PathBuf {
    let dir = fleet.root().join("secrets");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    fs::write(&path, "sk-Value-of-a-lane\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    fleet.give(&dir);
    fleet.give(&path);
    path
}

fn create(fleet: &Fleet, lane: &str, script: &str, more: &[&str]) -> String {
    let mut words = vec!["create", "x", "--assignee", lane, "--max-retries", "1", "--body", script];
    words.extend(more);
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_hosts_of_a_lane_come_to_a_policy_with_a_proxy_and_its_secret_to_its_workers() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        if !is_possible(&fleet) {
            return;
        }
        let (own, other) = (Server::start(), Server::start());
        secret(&fleet, "service-key", 0o600);
        let brings = format!(
            "policy = \"agent\"\nhosts = [\"127.0.0.1:{}\"]\n[secrets]\nSERVICE_KEY = \"service-key\"\n",
            own.port
        );
        fleet.lane("agent", &format!("{SCRIPTS}{brings}"));
        fleet.start();
        let script = format!(
            "test \"$SERVICE_KEY\" = 'sk-''Value-of-a-lane' || exit 9
             curl -s -f -m 20 {} || exit 8
             curl -s -f -m 20 {} && exit 7
             supervisor complete --summary reached",
            own.url("a"),
            other.url("b")
        );
        let task = create(&fleet, "agent", &script, &[]);
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], "reached", "{shown:#}");
        assert_eq!((own.answered.load(Ordering::Acquire), other.answered.load(Ordering::Acquire)), (1, 0));
        assert_eq!(events(&fleet, &task, "egress_denied").len(), 1);
        assert!(!shown.to_string().contains("sk-Value") && !fleet.log().contains("sk-Value"));

        // Its hosts are no grant of the policy: another lane under it does not reach them.
        let alone = format!("{SCRIPTS}policy = \"agent\"\n");
        fleet.lane("alone", &alone);
        fleet.signal(nix::sys::signal::Signal::SIGHUP);
        fleet.eventually("the lane is there", || {
            (fleet.cli(["lane", "show", "alone"]).code == 0).then_some(())
        });
        let task = create(&fleet, "alone", &format!("curl -s -f -m 20 {}", own.url("c")), &[]);
        fleet.wait_for(&task, "blocked");
        assert_eq!(own.answered.load(Ordering::Acquire), 1);
    }
}

#[test]
fn a_secret_of_a_lane_that_cannot_be_read_holds_up_that_lane_alone() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.lane("keyed", &format!("{SCRIPTS}[secrets]\nSERVICE_KEY = \"service-key\"\n"));
        fleet.lane("plain", SCRIPTS);
        fleet.start();
        let task = create(&fleet, "keyed", "test -n \"$SERVICE_KEY\"", &[]);
        let waits = |words: &[&str]| {
            fleet.eventually("it says what it waits for", || {
                let why = fleet.show(&task)["why"]["text"].as_str()?.to_owned();
                words.iter().all(|word| why.contains(word)).then_some(why)
            })
        };
        let path = fleet.root().join("secrets/service-key");
        waits(&["the secrets of the lane keyed", "SERVICE_KEY", path.to_str().unwrap()]);
        let other = create(&fleet, "plain", "true", &[]);
        fleet.wait_for(&other, "done");

        let check = fleet.cli(["lane", "check", "keyed", "--json"]);
        assert_eq!(check.code, 1, "{}", check.stdout);
        assert!(
            check.stdout.contains("SERVICE_KEY") && check.stdout.contains("mode 0600"),
            "{}",
            check.stdout
        );
        secret(&fleet, "service-key", 0o600);
        assert_eq!(fleet.cli(["lane", "check", "keyed"]).code, 0);
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    }
}

#[test]
fn the_check_of_a_task_has_no_secret_of_its_lane() {
    let fleet = Fleet::offline();
    secret(&fleet, "service-key", 0o600);
    fleet.lane("keyed", &format!("{SCRIPTS}[secrets]\nSERVICE_KEY = \"service-key\"\n"));
    fleet.start();
    let script = "test -n \"$SERVICE_KEY\" && supervisor complete --summary keyed";
    let task = create(&fleet, "keyed", script, &["--check", "test -z \"$SERVICE_KEY\""]);
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "keyed");
}

#[test]
fn a_check_of_a_lane_says_which_hosts_it_reaches() {
    let fleet = Fleet::offline();
    fleet.lane("keyed", &format!("{SCRIPTS}policy = \"agent\"\nhosts = [\"api.example:443\"]\n"));
    fleet.lane("mute", &format!("{SCRIPTS}policy = \"agent\"\n"));
    if !is_possible(&fleet) {
        return;
    }
    let check = |lane: &str| fleet.cli(["lane", "check", lane, "--json"]).stdout;
    assert!(check("keyed").contains("through the proxy to api.example:443"), "{}", check("keyed"));
    assert!(check("mute").contains("none is reached"), "{}", check("mute"));
    let shown = fleet.cli(["lane", "show", "claude"]).ok().stdout;
    assert!(shown.contains("api.anthropic.com:443") && shown.contains("agent"), "{shown}");
}
