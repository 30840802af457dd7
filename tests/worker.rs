//! The worker's contract: what it is given, what it may do with its token, and how its ending is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Fleet, User};
use crate::http::Http;
use crate::listeners::{as_worker, workers_door};

/// A script that keeps its worker alive until a file appears in its workspace.
const HOLD: &str = "touch up; while [ ! -e go ]; do sleep 0.02; done";

/// A live worker under the test's hand.
pub(crate) struct Worker<'a> {
    fleet: &'a Fleet,
    pub(crate) task: String,
    pub(crate) workspace: PathBuf,
    token: String,
}

impl<'a> Worker<'a> {
    /// Starts a worker that holds, and takes its token out of its environment file.
    pub(crate) fn hold(fleet: &'a Fleet, more: &[&str]) -> Self {
        let task = fleet.create("holds", &format!("env > env; {HOLD}"), more);
        let workspace = fleet.eventually("the worker is up", || {
            let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
            path.join("up").exists().then_some(path)
        });
        let token = environment(&workspace.join("env"))["SUPERVISOR_TOKEN"].clone();
        Worker { fleet, task, workspace, token }
    }

    /// Lets it end.
    pub(crate) fn go(&self) {
        fs::write(self.workspace.join("go"), "").unwrap();
    }

    /// Its token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The workers' door, with this worker's token.
    pub(crate) fn door(&self) -> Http {
        as_worker(self.fleet, &self.token)
    }

    /// Calls a verb with the token and returns status and body.
    pub(crate) fn call(&self, verb: &str, body: &Value) -> (u16, Value) {
        let answer = self.door().post(&format!("/api/v1/verbs/{verb}"), body);
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }
}

fn environment(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[test]
fn a_worker_is_told_who_it_is_and_nothing_of_what_the_operator_has() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let mut daemon = fleet.command(["daemon"]);
        let log = fs::File::create(fleet.log_file()).unwrap();
        daemon.stderr(log).env("AWS_SECRET_ACCESS_KEY", "hunter2").env("SSH_AUTH_SOCK", "/hunter2");
        daemon
            .env("LD_PRELOAD_NOT", "hunter2")
            .env("GIT_DIR", "/hunter2")
            .env("ANTHROPIC_API_KEY", "hunter2");
        fleet.adopt(daemon.spawn().unwrap());
        fleet.eventually("the daemon serves", || fleet.log().contains(" serves ").then_some(()));

        let worker = Worker::hold(&fleet, &["--tenant", "acme", "--max-runtime", "1h"]);

        let env = environment(&worker.workspace.join("env"));
        let told = |name: &str| env.get(name).map(String::as_str).unwrap_or_default();
        let workspace = worker.workspace.to_str().unwrap();
        for (name, value) in
            [("TASK", worker.task.as_str()), ("RUN_ID", "1"), ("BOARD", "default"), ("WORKSPACE", workspace)]
        {
            assert_eq!(told(&format!("SUPERVISOR_{name}")), value, "{name}");
            assert_eq!(told(&format!("HERMES_KANBAN_{name}")), value, "{name}");
        }
        for name in ["SUPERVISOR_TENANT", "HERMES_TENANT"] {
            assert_eq!(told(name), "acme");
        }
        for name in ["SUPERVISOR_PROFILE", "HERMES_PROFILE"] {
            assert_eq!(told(name), "shell");
        }
        assert_eq!(told("SUPERVISOR_TOKEN").len(), 64);
        assert!(
            told("SUPERVISOR_SOCKET").ends_with("/sock") || told("SUPERVISOR_SOCKET").starts_with("tcp://")
        );
        assert_eq!(told("HERMES_KANBAN_CLAIM_LOCK").split(':').count(), 3);
        assert!(workspace.starts_with(told("HERMES_KANBAN_WORKSPACES_ROOT")));
        let left = told("SUPERVISOR_DEADLINE").parse::<i64>().unwrap() - kernel_now();
        assert!((3000..=3600).contains(&left), "{left}");
        assert!(!env.contains_key("HERMES_KANBAN_DB"));
        let text = fs::read_to_string(worker.workspace.join("env")).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(!text.contains(fleet.home().to_str().unwrap()), "the home is not the operator's: {text}");
        worker.go();
        fleet.wait_for(&worker.task, "done");
    }
}

fn kernel_now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

#[test]
fn inside_a_run_the_command_line_speaks_for_the_run() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let parent = fleet.create("parent", "echo found it", &[]);
        let script = "set -ex
            supervisor show --json > show
            supervisor context > context
            supervisor heartbeat --note 'half way'
            supervisor comment 'a note of mine'
            child=$(supervisor create 'follow up' --assignee ghost --json | sed 's/.*\"id\":\"\\(t_[0-9a-f]*\\)\".*/\\1/')
            supervisor link $SUPERVISOR_TASK $child
            supervisor complete --summary 'all good' --metadata '{\"tests\": 14}'";
        let task = fleet.create("works", script, &["--parent", &parent]);

        let shown = fleet.wait_for(&task, "done");

        assert_eq!(shown["latest_summary"], "all good", "{}", fleet.cli(["log", &task]).stdout);
        let run = &shown["runs"][0];
        assert_eq!((&run["outcome"], &run["metadata"]["tests"]), (&json!("completed"), &json!(14)));
        let comment = &shown["comments"][0];
        assert_eq!((&comment["body"], &comment["author_kind"]), (&json!("a note of mine"), &json!("worker")));
        let child = fleet.show(shown["children"][0].as_str().unwrap());
        assert_eq!(
            (&child["task"]["title"], &child["task"]["status"]),
            (&json!("follow up"), &json!("ready"))
        );
        let workspace = PathBuf::from(run["workspace_path"].as_str().unwrap());
        assert!(fs::read_to_string(workspace.join("context")).unwrap().contains("found it"));
        let own: Value = serde_json::from_str(&fs::read_to_string(workspace.join("show")).unwrap()).unwrap();
        assert_eq!((&own["task"]["id"], &own["task"]["status"]), (&json!(task), &json!("running")));
        let kinds = fleet.json(["events", "--task", &task, "--kind", "heartbeat"]);
        assert_eq!(kinds["events"][0]["payload"]["note"], "half way");
    }
}

#[test]
fn a_worker_that_blocks_asks_its_question_and_goes_on_with_the_answer() {
    let fleet = Fleet::boot();
    let script = "if supervisor context | grep -q '^> UNBLOCK: use the left'; then echo used left; \
                  else supervisor block 'which one?' --kind needs_input; fi";
    let task = fleet.create("asks", script, &[]);
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["task"]["block_reason"], "which one?");
    assert_eq!(shown["runs"][0]["outcome"], "blocked");

    fleet.cli(["unblock", &task, "--reason", "use the left one"]).ok();

    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "used left");
}

#[test]
fn a_worker_touches_its_own_run_and_its_own_tenant_only() {
    let fleet = Fleet::boot();
    let id = |created: Value| created["id"].as_str().unwrap().to_owned();
    let neighbour = id(fleet.json(["create", "near", "--tenant", "acme"]));
    let stranger = id(fleet.json(["create", "far", "--tenant", "other"]));
    let worker = Worker::hold(&fleet, &["--tenant", "acme"]);

    let (status, problem) = worker.call("complete", &json!({"task_ids": [neighbour]}));
    assert_eq!((status, &problem["code"]), (403, &json!("not_permitted")), "{problem}");
    assert!(problem["hint"].is_string());
    for (verb, body) in [
        ("block", json!({"task_id": neighbour, "reason": "x"})),
        ("heartbeat", json!({"task_id": neighbour})),
        ("link", json!({"parent_id": worker.task, "child_id": neighbour})),
        ("create", json!({"title": "x", "tenant": "other"})),
        ("create", json!({"title": "x", "workspace": "dir:/etc"})),
        ("create", json!({"title": "x", "policy": "unconfined"})),
        ("complete", json!({"task_ids": [worker.task], "expected_run": 99})),
    ] {
        let (status, problem) = worker.call(verb, &body);
        assert!([403, 409].contains(&status), "{verb} {body}: {status} {problem}");
    }
    // To this worker another tenant's task does not exist.
    for verb in ["show", "context", "runs", "comment"] {
        let body = match verb {
            "comment" => json!({"task_id": stranger, "body": "x"}),
            _ => json!({"task_id": stranger}),
        };
        let (status, problem) = worker.call(verb, &body);
        let unknown = worker.call(
            verb,
            &if verb == "comment" {
                json!({"task_id": "t_00000000", "body": "x"})
            } else {
                json!({"task_id": "t_00000000"})
            },
        );
        assert_eq!((status, unknown.0), (404, 404), "{verb}: {problem}");
        assert_eq!(problem["hint"], unknown.1["hint"]);
    }
    assert_eq!(worker.call("comment", &json!({"task_id": neighbour, "body": "hello"})).0, 200);
    for verb in [
        "list",
        "assign",
        "unlink",
        "claim",
        "unblock",
        "archive",
        "reclaim",
        "reopen",
        "unarchive",
        "dispatch",
        "status",
        "events",
        "stats",
        "stop",
        "init",
        "log",
        "diff",
        "patch",
        "bulk-patch",
        "markdown",
    ] {
        let (status, problem) = worker.call(verb, &json!({"task_id": worker.task, "profile": "x"}));
        assert!([403, 422].contains(&status), "{verb}: {status} {problem}");
    }
    for (method, path) in [
        ("GET", "/api/v1/board"),
        ("GET", "/api/v1/tasks"),
        ("GET", "/api/v1/events"),
        ("GET", "/api/v1/stream"),
        ("GET", "/api/v1/runs/live"),
        ("GET", "/api/v1/config"),
        ("GET", "/api/plugins/kanban/board"),
        ("GET", "/api/plugins/kanban/events"),
        ("POST", "/api/v1/dispatch"),
    ] {
        assert_eq!(worker.door().send(method, path, b"").status, 403, "{path}");
    }
    assert_eq!(fleet.status_of(&neighbour), "ready");
    assert_eq!(fleet.show(&stranger)["comments"], json!([]));
    worker.go();
    fleet.wait_for(&worker.task, "done");
}

#[test]
fn a_token_opens_the_board_as_long_as_its_run_lasts() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let worker = Worker::hold(&fleet, &[]);
        let show = json!({"task_id": worker.task});
        assert_eq!(worker.call("show", &show).0, 200);
        assert_eq!(workers_door(&fleet).post("/api/v1/verbs/show", &show).status, 403, "no token");
        let wrong = workers_door(&fleet).with("authorization", &format!("Bearer {}", "0".repeat(64)));
        assert_eq!(wrong.post("/api/v1/verbs/show", &show).status, 403, "a wrong token");
        fleet.restart();
        assert_eq!(worker.call("show", &show).0, 200, "it survives a restart of the daemon");
        worker.go();
        fleet.wait_for(&worker.task, "done");

        let (status, problem) = worker.call("show", &show);

        assert_eq!((status, &problem["code"]), (403, &json!("not_permitted")), "{problem}");
        assert_eq!(worker.call("complete", &json!({"task_ids": [worker.task], "summary": "late"})).0, 403);
        assert_ne!(fleet.show(&worker.task)["latest_summary"], "late");
    }
}

#[test]
fn a_token_that_was_taken_back_may_report_no_more() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\n");
    fleet.start();
    let task = fleet.create("clings", &format!("trap '' TERM; env > env; {HOLD}"), &[]);
    let workspace = fleet.eventually("the worker is up", || {
        let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
        path.join("up").exists().then_some(path)
    });
    let token = environment(&workspace.join("env"))["SUPERVISOR_TOKEN"].clone();
    let worker = Worker { fleet: &fleet, task: task.clone(), workspace: workspace.clone(), token };
    fleet.cli(["reassign", &task, "ghost", "--reclaim"]).ok();

    let (status, problem) = worker.call("complete", &json!({"task_ids": [task], "summary": "late"}));

    assert_eq!(status, 403, "{problem}");
    assert_eq!(fleet.wait_for(&task, "ready")["runs"][0]["outcome"], "reclaimed");
}

#[test]
fn a_worker_that_lingers_after_its_verdict_is_ended_and_the_verdict_stands() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\nverdict_grace = 5\ngrace = 1\n");
    fleet.start();
    let child = fleet.json(["create", "child", "--assignee", "ghost"])["id"].as_str().unwrap().to_owned();
    let script = "supervisor complete --summary said; trap '' TERM; touch up; while :; do sleep 0.05; done";
    let task = fleet.create("lingers", script, &[]);
    fleet.cli(["link", &task, &child]).ok();
    fleet.eventually("the verdict is recorded", || {
        (fleet.show(&task)["why"]["code"] == "ending").then_some(())
    });
    assert_eq!(fleet.status_of(&child), "todo", "a verdict is not the end");

    let shown = fleet.wait_for(&task, "done");

    assert_eq!(
        (&shown["latest_summary"], &shown["runs"][0]["outcome"]),
        (&json!("said"), &json!("completed"))
    );
    assert!(fleet.processes_with(&format!("SUPERVISOR_TASK={task}")).is_empty());
    assert_eq!(fleet.status_of(&child), "ready");
}

#[test]
fn exit_0_completes_with_the_tail_of_the_output_and_anything_else_is_a_crash_that_is_retried() {
    let fleet = Fleet::boot();
    let clean = fleet.create("clean", "yes filler | head -c 9000; echo; echo the end", &[]);
    let summary = fleet.wait_for(&clean, "done")["latest_summary"].as_str().unwrap().to_owned();
    assert!(summary.ends_with("the end") && summary.len() <= 4096, "{summary}");

    let flaky = fleet.create(
        "flaky",
        "[ -e tried ] && exec echo second time; touch tried; echo oops >&2; exit 7",
        &[],
    );
    let shown = fleet.wait_for(&flaky, "done");
    let runs = shown["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| &run["outcome"]).collect::<Vec<_>>(), ["crashed", "completed"]);
    assert_eq!((&runs[0]["exit_code"], &runs[0]["stderr_tail"]), (&json!(7), &json!("oops\n")));
    assert_eq!(shown["latest_summary"], "second time");
    assert_eq!(shown["task"]["consecutive_failures"], 0);

    let killed = fleet.create("killed", "kill -SEGV $$", &["--max-retries", "1"]);
    let shown = fleet.wait_for(&killed, "blocked");
    assert_eq!(
        (&shown["runs"][0]["outcome"], &shown["runs"][0]["signal"]),
        (&json!("crashed"), &json!(Signal::SIGSEGV as i32))
    );
}

#[test]
fn a_lane_whose_workers_must_report_counts_a_silent_exit_as_unreported() {
    let fleet = Fleet::offline();
    fleet.lane("agent", "argv = [\"/bin/sh\", \"-c\", \"cat > prompt; grep -q 'say so' prompt && supervisor complete --summary reported || true\"]\n");
    fleet.start();
    let create = |body: &str| {
        let args = ["create", "x", "--assignee", "agent", "--max-retries", "1", "--body", body];
        fleet.json(args)["id"].as_str().unwrap().to_owned()
    };
    let (silent, talks) = (create("be silent"), create("please say so"));
    assert_eq!(fleet.wait_for(&talks, "done")["latest_summary"], "reported");
    assert_eq!(fleet.wait_for(&silent, "blocked")["runs"][0]["outcome"], "unreported");
}

#[test]
fn a_login_shell_finds_the_programs_of_its_run() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        // /etc/profile of Debian and others sets PATH, whatever it was.
        let script = "sh -lc 'supervisor comment sh' && bash -lc 'supervisor comment bash'";
        let task = fleet.create("logs in", script, &[]);
        let shown = fleet.wait_for(&task, "done");
        let said: Vec<_> = shown["comments"].as_array().unwrap().iter().map(|one| &one["body"]).collect();
        assert_eq!(said, ["sh", "bash"], "{shown:#}");
    }
}

#[test]
fn what_a_run_leaves_on_the_host_is_its_log_and_its_workspace() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "echo x > $HOME/dot; mkdir -p $TMPDIR/deep/er; echo y > $TMPDIR/deep/er/f; chmod 000 $TMPDIR/deep; echo kept > result; (sleep 600 &) ; echo ok";
        let task = fleet.create("litters", script, &[]);

        let shown = fleet.wait_for(&task, "done");

        assert!(fleet.processes_with(&format!("SUPERVISOR_TASK={task}")).is_empty());
        let path = PathBuf::from(shown["runs"][0]["workspace_path"].as_str().unwrap());
        assert_eq!(fs::read_to_string(path.join("result")).unwrap(), "kept\n");
        fleet.eventually("run directory and home are gone", || {
            let empty =
                |dir: &str| fs::read_dir(fleet.root().join(dir)).is_ok_and(|mut dir| dir.next().is_none());
            (empty("runs/default") && empty("homes/default")).then_some(())
        });
    }
}
