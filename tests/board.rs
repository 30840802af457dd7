//! Tasks on the board: created, found, shown, handed over, annotated, taken off; with a daemon and without one.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Fleet, Output, tidy};

/// A fleet for each way to the board: in the command's own process, and through the daemon's socket.
fn doors() -> [Fleet; 2] {
    [Fleet::offline(), Fleet::boot()]
}

fn id(created: &Value) -> String {
    created["id"].as_str().unwrap().to_owned()
}

fn titles(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect()
}

#[test]
fn init_makes_a_board_and_says_how_to_start_a_daemon() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    assert_snapshot!(fleet.cli(["init"]).ok().stdout, @r"
    Board default is ready: [dir]/r/boards/default/board.db
    No daemon is running. Start one with:
      supervisor daemon             in a terminal
    ");
    let again = fleet.json(["init"]);
    assert_eq!((&again["board"], &again["daemon"]), (&json!("default"), &json!(false)));
    assert_eq!(fleet.json(["init"])["board_id"], again["board_id"], "a board is made once");

    let other = fleet.json(["--board", "second", "init"]);

    assert_ne!(other["board_id"], again["board_id"]);
    fleet.json(["create", "on the first"]);
    assert_eq!(fleet.json(["list", "--board", "second"]), json!([]));
}

#[test]
fn a_created_task_is_listed_and_shown_and_create_says_what_keeps_it_from_running() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    // Warnings go to standard error, where they do not mix with what a script reads.
    let said = |args: &[&str]| {
        let output = fleet.cli(args).ok();
        assert!(!output.stdout.contains("warning"), "{}", output.stdout);
        output.stdout + &output.stderr
    };
    assert_snapshot!(fleet.cli(["list"]).ok().stdout, @"No tasks. Create one with: supervisor create '<title>' --assignee shell --body '<script>'");
    assert_snapshot!(said(&["create", "count", "--assignee", "shell", "--body", "ls\nwc -l"]), @r"
    Created t_[id]  count (ready)
    warning: no daemon is running, so nothing runs it yet: supervisor daemon, or supervisor dispatch
    ");
    assert_snapshot!(said(&["create", "weigh", "--assignee", "ghost", "--tenant", "acme"]), @r"
    Created t_[id]  weigh (ready)
    warning: no profile or lane `ghost` exists here, so the task waits for a worker that claims it; the assignees are: a2a, analyst, backend-eng, claude, codex, decomposer, exec, gemini, hermes, http, opencode, ops, orchestrator, overseer, planner, researcher, reviewer, router, shell, specifier, writer
    ");
    for filter in [["--search", "zzz"], ["--since", "2099-01-01 09:00"], ["--status", "done"]] {
        let listed = fleet.cli([&["list"][..], &filter].concat()).ok().stdout;
        assert_eq!(listed, "No task matches.\n", "{filter:?}");
    }
    assert_snapshot!(said(&["create", "name it"]), @r"
    Created t_[id]  name it (ready)
    warning: nobody is assigned, so nothing runs it: supervisor assign t_[id] shell, or another of `supervisor assignees`
    ");
    assert_snapshot!(fleet.cli(["list"]).ok().stdout, @r"
    ID          STATUS  ASSIGNEE  TENANT  TITLE
    t_[id]  ready   shell     -       count
    t_[id]  ready   ghost     acme    weigh
    t_[id]  ready   -         -       name it
    ");
    let first = fleet.json(["list", "--assignee", "shell"])[0]["id"].as_str().unwrap().to_owned();
    fleet.cli(["comment", &first, "hidden", "files", "too"]).ok();
    assert_snapshot!(fleet.cli(["show", &first]).ok().stdout, @r"
    t_[id]  count
      status     ready
      why        no daemon serves this root; start one with: supervisor daemon
      assignee   shell
      workspace  scratch
      created    [time] by [user]
      time limit 4h, as worker.max_runtime says

    Body
    ls
    wc -l

    Comments
    [user] (person), [time]
    hidden files too
    ");
}

#[test]
fn everything_that_create_is_told_is_kept() {
    for fleet in doors() {
        let parent = id(&fleet.json(["create", "parent", "--tenant", "acme"]));
        let mut args =
            vec!["create", "all of it", "--body", "text", "--assignee", "ghost", "--tenant", "acme"];
        args.extend(["--priority", "-7", "--project", "p1", "--branch", "topic", "--skill", "git"]);
        args.extend(["--skill", "rust", "--max-runtime", "90m", "--max-retries", "2", "--policy", "strict"]);
        args.extend(["--created-by", "ann", "--idempotency-key", "once", "--parent", &parent]);
        let created = fleet.json(&args);

        assert_eq!(created["existing"], false);
        let shown = fleet.show(&id(&created));
        let task = &shown["task"];
        let expected = json!({
            "title": "all of it", "body": "text", "assignee": "ghost", "tenant": "acme", "priority": -7,
            "project_id": "p1", "branch_name": "topic", "skills": ["git", "rust"], "max_runtime_seconds": 5400,
            "max_retries": 2, "policy": "strict", "created_by": "ann", "idempotency_key": "once",
            "status": "todo", "workspace": "scratch", "workspace_kind": "scratch",
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&task[key], value, "{key}");
        }
        assert_eq!(shown["parents"], json!([parent]));

        let again = fleet.json(&args);

        assert_eq!((&again["existing"], &again["id"]), (&json!(true), &created["id"]));
        assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_body_comes_from_a_file_or_from_standard_input() {
    for fleet in doors() {
        let path = fleet.home().join("body.md");
        std::fs::write(&path, "from a file\n").unwrap();
        let created = fleet.json(["create", "filed", "--body-file", path.to_str().unwrap()]);
        assert_eq!(created["body"], "from a file\n");

        let mut command = fleet.command(["create", "piped", "--json", "--body-file", "-"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all("через трубу".as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["body"], "через трубу");
    }
}

#[test]
fn where_a_task_starts_follows_from_how_it_is_created() {
    for fleet in doors() {
        let status = |args: &[&str]| fleet.json([&["create", "x"], args].concat())["status"].clone();
        let open = id(&fleet.json(["create", "open"]));
        assert_eq!(status(&[]), "ready");
        assert_eq!(status(&["--triage"]), "triage");
        assert_eq!(status(&["--initial-status", "blocked"]), "blocked");
        assert_eq!(status(&["--not-before", "10m"]), "scheduled");
        assert_eq!(status(&["--not-before", "1000000000"]), "ready", "that moment is over");
        assert_eq!(status(&["--parent", &open]), "todo");
    }
}

#[test]
fn a_scheduled_task_runs_when_its_moment_has_come() {
    let fleet = Fleet::boot();
    let task = fleet.create("later", "echo now", &["--not-before", "1"]);

    let shown = fleet.wait_for(&task, "done");

    let started = shown["runs"][0]["started_at"].as_i64().unwrap();
    assert!(started >= shown["task"]["not_before"].as_i64().unwrap(), "{shown:#}");
}

#[test]
fn list_filters_sorts_and_limits() {
    for fleet in doors() {
        let a =
            id(&fleet.json(["create", "a", "--priority", "1", "--tenant", "acme", "--assignee", "ghost"]));
        fleet.json(["create", "b", "--priority", "3"]);
        fleet.json(["create", "c", "--priority", "2", "--triage", "--assignee", "ghost"]);
        let list = |args: &[&str]| fleet.json([&["list"], args].concat());
        assert_eq!(titles(&list(&["--sort", "created"])), ["a", "b", "c"]);
        assert_eq!(titles(&list(&["--sort", "created-desc"])), ["c", "b", "a"]);
        assert_eq!(titles(&list(&["--sort", "title", "--limit", "2"])), ["a", "b"]);
        assert_eq!(titles(&list(&["--assignee", "ghost", "--sort", "title"])), ["a", "c"]);
        assert_eq!(titles(&list(&["--status", "triage"])), ["c"]);
        assert_eq!(titles(&list(&["--tenant", "acme"])), ["a"]);
        fleet.cli(["archive", &a]).ok();
        assert_eq!(titles(&list(&["--sort", "title"])), ["b", "c"]);
        assert_eq!(titles(&list(&["--sort", "title", "--archived"])), ["a", "b", "c"]);
    }
}

#[test]
fn a_task_is_handed_to_a_profile_and_to_nobody() {
    for fleet in doors() {
        let task = id(&fleet.json(["create", "x"]));
        assert_eq!(fleet.json(["assign", &task, "ghost"])["assignee"], "ghost");
        assert_eq!(fleet.json(["list", "--assignee", "ghost"])[0]["id"], task);
        assert_eq!(fleet.json(["assign", &task, "none"])["assignee"], Value::Null);
        assert_eq!(fleet.show(&task)["why"]["code"], "unassigned");
    }
}

#[test]
fn a_comment_is_signed_shown_and_part_of_what_a_worker_sees() {
    for fleet in doors() {
        let task = id(&fleet.json(["create", "x", "--body", "the body"]));
        let comment = fleet.json(["comment", &task, "two", "words", "--author", "ann"]);
        assert_eq!((&comment["body"], &comment["author"]), (&json!("two words"), &json!("ann")));
        assert_eq!(fleet.show(&task)["comments"][0]["id"], comment["id"]);
        let context = fleet.json(["context", &task]);
        let text = context["text"].as_str().unwrap();
        assert!(text.contains("the body") && text.contains("person `ann`") && text.contains("> two words"));
        assert_eq!(context["omitted"], json!([]));
        assert!(fleet.cli(["context", &task]).ok().stdout.starts_with(&format!("# Task {task}: x\n")));
    }
}

#[test]
fn a_child_waits_for_its_parents_and_links_can_be_made_and_cut() {
    for fleet in doors() {
        let [a, b, c] = ["a", "b", "c"].map(|title| id(&fleet.json(["create", title])));
        for parent in [&a, &b] {
            let linked = fleet.json(["link", parent, &c]);
            assert_eq!((&linked["child_id"], &linked["status"]), (&json!(c), &json!("todo")));
        }
        assert_eq!(fleet.show(&c)["parents"].as_array().unwrap().len(), 2);
        assert_eq!(fleet.show(&a)["children"], json!([c]));
        fleet.cli(["complete", &a]).ok();
        assert_eq!(fleet.status_of(&c), "todo", "one parent is still open");
        fleet.cli(["complete", &b]).ok();
        assert_eq!(fleet.status_of(&c), "ready");

        let [first, next] = ["first", "next"].map(|title| id(&fleet.json(["create", title])));
        fleet.cli(["link", &first, &next]).ok();
        assert_eq!(fleet.status_of(&next), "todo");
        assert_eq!(fleet.json(["unlink", &first, &next])["status"], "ready");
    }
}

#[test]
fn a_claim_by_hand_is_renewed_completed_and_remembered_as_a_run() {
    for fleet in doors() {
        let task = id(&fleet.json(["create", "by hand", "--assignee", "ghost"]));
        let claimed = fleet.json(["claim", &task, "--ttl", "1h"]);
        assert_eq!(
            (&claimed["task"]["status"], &claimed["run"]["hand"]),
            (&json!("running"), &json!("hand"))
        );
        let expires = claimed["run"]["claim_expires"].as_i64().unwrap();
        let beat = fleet.json(["heartbeat", &task, "--note", "half"]);
        assert!(beat["claim_expires"].as_i64().unwrap() >= expires, "{beat}");
        let done =
            fleet.json(["complete", &task, "--summary", "s", "--result", "r", "--metadata", r#"{"n":1}"#]);
        assert_eq!(done["results"][0]["status"], "done");
        let runs = fleet.json(["runs", &task]);
        assert_eq!(runs.as_array().unwrap().len(), 1);
        assert_eq!(
            (&runs[0]["outcome"], &runs[0]["summary"], &runs[0]["metadata"]),
            (&json!("completed"), &json!("s"), &json!({"n": 1}))
        );
        assert_eq!(fleet.show(&task)["task"]["result"], "r");
    }
}

#[test]
fn a_claim_by_hand_that_is_not_renewed_runs_out_and_says_so() {
    let fleet = Fleet::boot();
    let task = id(&fleet.json(["create", "by hand", "--assignee", "ghost"]));
    fleet.cli(["claim", &task, "--ttl", "1"]).ok();

    let shown = fleet.wait_for(&task, "ready");

    assert_ne!(shown["runs"][0]["outcome"], Value::Null, "{shown:#}");
    fleet.cli(["heartbeat", &task]).refused(4, "no open run");
}

#[test]
fn a_task_completed_without_a_claim_keeps_its_handoff_in_a_run_of_no_length() {
    for fleet in doors() {
        let task = id(&fleet.json(["create", "x"]));
        fleet.cli(["complete", &task, "--summary", "was easy"]).ok();
        let shown = fleet.show(&task);
        assert_eq!(
            (&shown["task"]["status"], &shown["latest_summary"]),
            (&json!("done"), &json!("was easy"))
        );
        assert_eq!(shown["runs"][0]["started_at"], shown["runs"][0]["ended_at"]);
    }
}

#[test]
fn a_blocked_task_says_why_and_goes_on_when_it_is_answered() {
    for fleet in doors() {
        let [a, b] = ["a", "b"].map(|title| id(&fleet.json(["create", title])));
        fleet.cli(["block", &a, "which", "one?", "--kind", "needs_input", "--ids", &b]).ok();
        for task in [&a, &b] {
            let shown = fleet.show(task);
            assert_eq!(shown["task"]["block_reason"], "which one?");
            assert_eq!(
                (&shown["task"]["status"], &shown["task"]["block_kind"]),
                (&json!("blocked"), &json!("needs_input"))
            );
        }
        let unblocked = fleet.json(["unblock", &a, &b, "--reason", "the left one"]);
        assert_eq!(unblocked["results"][1]["status"], "ready");
        assert!(fleet.json(["context", &a])["text"].as_str().unwrap().contains("the left one"));
    }
}

#[test]
fn archiving_refuses_to_strand_children_unless_they_are_detached() {
    for fleet in doors() {
        let parent = id(&fleet.json(["create", "parent"]));
        let child = id(&fleet.json(["create", "child", "--parent", &parent]));
        fleet.cli(["archive", &parent]).refused(4, &parent);
        fleet.cli(["archive", &parent, "--detach"]).ok();
        assert_eq!(
            (fleet.status_of(&parent).as_str(), fleet.status_of(&child).as_str()),
            ("archived", "ready")
        );
    }
}

#[test]
fn several_tasks_at_once_are_told_one_by_one_and_one_failure_is_a_failure() {
    for fleet in doors() {
        let [a, b] = ["a", "b"].map(|title| id(&fleet.json(["create", title])));
        let output = fleet.cli(["complete", &a, "t_00000000", &b]);
        assert_eq!(output.code, 3, "{}", output.stderr);
        assert_eq!(
            output.stdout.lines().collect::<Vec<_>>(),
            [
                &format!("Completed {a} (done)"),
                "failed: no such task: t_00000000",
                "        hint: see `supervisor list`",
                &format!("Completed {b} (done)"),
            ]
        );
        assert_eq!((fleet.status_of(&a).as_str(), fleet.status_of(&b).as_str()), ("done", "done"));
        let output = fleet.cli(["archive", "--json", "t_00000000", &b]);
        assert_eq!((output.code, &output.json()["results"][0]["code"]), (3, &json!("not_found")));
    }
}

#[test]
fn stats_count_by_status_and_assignee() {
    for fleet in doors() {
        fleet.json(["create", "a", "--assignee", "ghost"]);
        let b = id(&fleet.json(["create", "b", "--assignee", "ghost"]));
        fleet.json(["create", "c", "--triage"]);
        fleet.cli(["complete", &b]).ok();
        let stats = fleet.json(["stats"]);
        assert_eq!(stats["by_status"], json!({"done": 1, "ready": 1, "triage": 1}));
        assert_eq!(stats["by_assignee"]["ghost"], json!({"done": 1, "ready": 1}));
        assert!(stats["oldest_ready_age_seconds"].is_number());
    }
}

#[test]
fn the_table_of_stats_fits_a_small_board() {
    let fleet = Fleet::offline();
    fleet.json(["create", "a", "--assignee", "ghost"]);
    fleet.json(["create", "c", "--triage"]);
    let _tidy = tidy();
    assert_snapshot!(fleet.cli(["stats"]).ok().stdout, @r"
    STATUS  TASKS
    triage  1
    ready   1

    By assignee
    ASSIGNEE  STATUS  TASKS
    ghost     ready   1
    The oldest ready task has waited [took].
    ");
}

#[test]
fn the_word_of_the_established_tool_may_stand_before_a_verb() {
    let fleet = Fleet::offline();
    let mut command = std::process::Command::new(crate::harness::binary());
    fleet.dress(&mut command);
    command.env("SUPERVISOR_ROOT", fleet.root()).args(["kanban", "create", "x", "--json"]);
    assert_eq!(Output::of(&mut command).ok().json()["title"], "x");
    assert_eq!(fleet.json(["ls"])[0]["title"], "x");
}

#[test]
fn a_task_is_edited_promoted_scheduled_and_passed_on() {
    for fleet in doors() {
        let task = id(&fleet.json(["create", "rough", "--triage", "--assignee", "ghost"]));
        fleet.cli(["edit", &task, "--title", "fine", "--body", "do it", "--priority", "4"]).ok();
        let shown = fleet.show(&task)["task"].clone();
        assert_eq!(
            (&shown["title"], &shown["body"], &shown["priority"]),
            (&json!("fine"), &json!("do it"), &json!(4))
        );
        fleet.cli(["promote", &task]).ok();
        assert_eq!(fleet.status_of(&task), "ready");
        fleet.cli(["schedule", &task, "--at", "10m"]).ok();
        assert_eq!(fleet.status_of(&task), "scheduled");
        fleet.cli(["unblock", &task]).ok();
        assert_eq!(fleet.status_of(&task), "ready");
        fleet.cli(["reassign", &task, "other"]).ok();
        assert_eq!(fleet.show(&task)["task"]["assignee"], "other");
        let assignees = fleet.json(["assignees"]).to_string();
        assert!(assignees.contains("shell") && assignees.contains("other"), "{assignees}");
    }
}
