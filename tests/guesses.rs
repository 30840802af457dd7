//! Replies to a first guess at a command, and to a command with a missing argument.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::json;

use crate::daily::{GATED, begun};
use crate::harness::{Fleet, Output, User, skip};

#[test]
fn words_of_other_programs_are_refused_with_ours() {
    let fleet = Fleet::offline();
    let task = fleet.create("x", "true", &[]);
    for (line, way) in [
        ("run view {}", "supervisor show {}"),
        ("run list", "supervisor runs TASK"),
        ("service restart", "supervisor service reload"),
        ("reset-failed", "supervisor retry --failed"),
        ("delete {}", "supervisor archive {} --rm {}"),
        ("priority {}", "supervisor edit {} --priority 10"),
        ("attachments get {} 1", "supervisor attachments {}"),
        ("attachments get {} notes.txt", "supervisor attachments {}"),
        ("hold {}", "supervisor hold {} --reason 'not before the release'"),
        ("help config", "supervisor help docs/configuration.md"),
        ("kill --all", "supervisor kill --status running"),
        ("run -it bash", "supervisor attach"),
    ] {
        let line = line.replace("{}", &task);
        fleet.cli(line.split(' ')).refused(2, &way.replace("{}", &task));
    }
    fleet.cli(["archive", &task, "--rm", &task]).ok();
    fleet.create("y", "true", &[]);
    let listed: serde_json::Value = fleet.cli(["list", "--format", "json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn what_is_missing_is_named_in_the_words_of_the_line() {
    let fleet = Fleet::boot();
    fleet.cli(["run", ""]).refused(2, "the command is empty");
    let script =
        "supervisor block --kind needs_input --question 'which one?' --choice a --choice b; sleep 100";
    let asked = fleet.cli(["run", script]);
    let task = fleet.json(["list"])[0]["id"].as_str().unwrap().to_owned();
    assert!(asked.stderr.contains(&format!("supervisor answer {task} 1")), "{asked:?}");
    for (flag, text) in [("--tenant", "has the tenant nosuch"), ("--assignee", "has the assignee nosuch")] {
        let status = fleet.cli(["status", flag, "nosuch"]).ok();
        assert!(status.stderr.contains(text), "{status:?}");
    }
    assert!(!fleet.cli(["status", "--assignee", "shell"]).ok().stderr.contains("has the assignee"));
    let quiet = fleet.cli(["create", "nobody's", "--quiet"]).ok();
    assert_eq!((quiet.stdout.lines().count(), quiet.stderr.lines().count()), (1, 1), "{quiet:?}");
    assert!(quiet.stderr.trim_end().ends_with("has no assignee, so nothing runs it"), "{quiet:?}");

    let failed = fleet.create("fails", "echo out; exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&failed, "blocked");
    fleet.cli(["reopen", &failed]).refused(4, &format!("supervisor retry {failed}"));
    fleet.cli(["unarchive", &failed]).refused(4, "it is on the board");
    assert_eq!(fleet.cli(["logs", &failed, &failed]).ok().stdout, "out\n");
    let wrong = fleet.cli(["logs", "--follow", &failed, "t_00000000"]).refused(3, "t_00000000");
    assert_eq!(wrong.stdout, "");
    fleet.cli(["archive", &failed]).ok();
    let archived = fleet.cli(["logs", "--follow", &failed]);
    assert_eq!(archived.code, 1, "{archived:?}");
    assert!(archived.stderr.contains(&format!("supervisor unarchive {failed}")), "{archived:?}");
}

#[test]
fn a_running_task_is_shown_with_its_worker() {
    let fleet = Fleet::boot();
    let task = fleet.create("lives", &format!("supervisor heartbeat --note 'half way'; {GATED}"), &[]);
    begun(&fleet, &task);
    let pid = fleet.eventually("it has said something", || {
        let worker = fleet.json(["status"])["workers"][0].clone();
        worker["last_note"].is_string().then(|| worker["pid"].to_string())
    });
    let shown = fleet.cli(["show", &task]).ok().stdout;
    let (_, worker) = shown.split_once("Worker\n").unwrap_or_else(|| panic!("{shown}"));
    for word in ["running", &format!("pid {pid}"), "CPU ", "memory ", "half way"] {
        assert!(worker.contains(word), "`{word}` is not in {worker}");
    }
}

#[test]
fn status_answers_without_a_configuration_that_can_be_used_and_without_a_root() {
    let fleet = Fleet::offline();
    let task = fleet.create("x", "true", &[]);
    fleet.write_config("supervisor.toml", "[limits]\nmax_runing = 3\n");
    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.stdout.contains("no daemon is running"), "{status:?}");
    assert!(status.stdout.contains("supervisor.toml:2 (max_runing)"), "{status:?}");
    fleet.cli(["logs", &task]).ok();
    fleet.cli(["metrics"]).ok();

    let root = fleet.home().join("none");
    let mut own = Command::new(fleet.binary());
    fleet.dress(&mut own);
    let status = Output::of(own.args(["status", "--root"]).arg(&root));
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.stdout.contains("no daemon is running"), "{status:?}");
    assert!(!root.exists(), "nothing was made");
    if User::current() != User::Root {
        return skip("another user of the host: needs root");
    }
    let mut stranger = Command::new(fleet.binary());
    fleet.dress(&mut stranger);
    stranger.args(["status", "--json", "--root", "/var/lib/supervisor-of-nobody"]).uid(65_533).gid(65_533);
    let status = Output::of(stranger.current_dir("/"));
    assert_eq!((status.code, &status.json()["health"]), (3, &json!("not_running")));
}
