//! Creation and search of tasks: `create`, `swarm`, `list`, `show`, `edit` and the read-only verbs.

use serde_json::{Value, json};

use super::{TypedRoot, assert_has, id};
use crate::harness::{Fleet, User};

pub(super) fn walk(desk: &TypedRoot) {
    create(desk);
    list(desk);
    swarm(desk);
    assert_eq!(desk.json("stats")["by_status"]["archived"], 1);
    let assignees = desk.json("assignees");
    let names: Vec<&Value> = assignees.as_array().unwrap().iter().map(|line| &line["name"]).collect();
    assert!(names.contains(&&json!("shell")) && names.contains(&&json!("ann")), "{assignees}");
    let task = desk.task("--body 'the body'");
    assert!(desk.ok(&format!("context {task}")).contains("the body"));
    edit(desk);
}

fn create(desk: &TypedRoot) {
    let parent = desk.task("--tenant acme");
    let line = format!(
        "create 'all of it' --body 'the body' --assignee ann --parent {parent} --workspace scratch --branch topic \
         --project p1 --tenant acme --priority 7 --idempotency-key k1 --max-runtime 5m --created-by bob \
         --skill git --skill rust --max-retries 3 --goal --goal-max-turns 9"
    );
    let made = desk.json(&line);
    let said = json!({
        "title": "all of it", "body": "the body", "assignee": "ann", "workspace_kind": "scratch",
        "branch_name": "topic", "project_id": "p1", "tenant": "acme", "priority": 7, "idempotency_key": "k1",
        "max_runtime_seconds": 300, "created_by": "bob", "skills": ["git", "rust"], "max_retries": 3,
        "goal_mode": true, "goal_max_turns": 9, "status": "todo",
    });
    assert_has(&made, &said);
    assert_eq!(desk.json(&format!("show {}", id(&made)))["parents"], json!([parent]));
    assert_eq!(desk.json(&line)["id"], made["id"], "a key names one task");
    for (words, status) in [
        ("--triage", "triage"),
        ("--initial-status blocked", "blocked"),
        ("--initial-status running", "ready"),
    ] {
        assert_eq!(desk.json(&format!("create x {words}"))["status"], status, "{words}");
    }
    for (said, seconds) in [("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("90", 90)] {
        let made = desk.json(&format!("create x --max-runtime {said}"));
        assert_eq!(made["max_runtime_seconds"], seconds, "{said}");
    }
    for priority in [-5, 0, 99_999_999_999_i64] {
        assert_eq!(desk.json(&format!("create x --priority {priority}"))["priority"], priority);
    }
    desk.run("create x --priority high").refused(2, "it is not a whole number");
    desk.run("create x --initial-status done").refused(2, "possible values: running, blocked");
    let home = desk.fleet.home();
    let made = desk.json(&format!("create x --workspace dir:{}", home.display()));
    assert_eq!(made["workspace_kind"], "dir");
}

fn list(desk: &TypedRoot) {
    let me = desk.json("create 'by me'")["created_by"].as_str().unwrap().to_owned();
    let mine = desk.task(&format!("--assignee {me} --tenant lists --priority 5"));
    let old =
        desk.task("--tenant lists --session s1 --workflow-template-id w1 --step-key build --assignee zoe");
    desk.ok(&format!("archive {old}"));
    let new =
        desk.task("--tenant lists --session s1 --workflow-template-id w1 --step-key build --assignee zoe");
    let ids = |words: &str| -> Vec<String> {
        let listed = desk.json(&format!("list {words}"));
        listed.as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids("--mine"), [mine.as_str()]);
    assert_eq!(ids("--assignee zoe"), [new.as_str()]);
    assert_eq!(ids("--session s1"), [new.as_str()]);
    assert_eq!(ids("--workflow-template-id w1"), [new.as_str()]);
    assert_eq!(ids("--step-key build"), [new.as_str()]);
    assert_eq!(ids("--status archived"), [old.as_str()]);
    assert_eq!(ids("--tenant lists"), [mine.as_str(), &new]);
    assert_eq!(ids("--tenant lists --archived").len(), 3);
    let first = |order: &str| ids(&format!("--tenant lists --sort {order}"))[0].clone();
    desk.ok(&format!("comment {mine} 'changes nothing of it'"));
    desk.ok(&format!("edit {mine} --title 'z, the last of all'"));
    let zoe_first = if me.as_str() < "zoe" { &mine } else { &new };
    for (order, wanted) in [
        ("priority", &mine),
        ("priority-desc", &mine),
        ("created", &mine),
        ("created-desc", &new),
        ("status", &mine),
        ("assignee", zoe_first),
        ("title", &new),
        ("updated", &mine),
    ] {
        assert_eq!(&first(order), wanted, "--sort {order}");
    }
    assert!(desk.ok("ls").contains(&new));
    for status in ["blocked", "done", "ready", "review", "running", "scheduled", "todo", "triage"] {
        desk.ok(&format!("list --status {status}"));
    }
}

fn swarm(desk: &TypedRoot) {
    let line = "swarm 'which database?' --worker ann --worker 'bob:look at prices:web,charts' --verifier vera \
                --synthesizer sid --tenant swarms --priority 4 --created-by carol --idempotency-key sw1";
    let made = desk.json(line);
    assert_eq!(desk.json(line), made, "a key names one swarm");
    let of = |key: &str| desk.now(made[key].as_str().unwrap());
    let common = json!({"tenant": "swarms", "priority": 4, "created_by": "carol"});
    for key in ["root_id", "verifier_id", "synthesizer_id"] {
        assert_has(&of(key), &common);
    }
    assert_eq!(of("root_id")["status"], "done");
    let workers: Vec<Value> =
        made["worker_ids"].as_array().unwrap().iter().map(|id| desk.now(id.as_str().unwrap())).collect();
    assert_has(&workers[0], &json!({"assignee": "ann", "status": "ready", "title": "which database?"}));
    let second = json!({"assignee": "bob", "title": "look at prices", "skills": ["web", "charts"]});
    assert_has(&workers[1], &second);
    assert_has(&of("verifier_id"), &json!({"assignee": "vera", "status": "todo"}));
    assert_has(&of("synthesizer_id"), &json!({"assignee": "sid", "status": "todo"}));
    let board = desk.comments(made["root_id"].as_str().unwrap());
    assert!(board[0].starts_with("[swarm:blackboard] {\"key\":\"topology\","), "{board:?}");
    for worker in made["worker_ids"].as_array().unwrap() {
        desk.ok(&format!("complete {}", worker.as_str().unwrap()));
    }
    assert_eq!(of("verifier_id")["status"], "ready");
    desk.ok(&format!("complete {}", made["verifier_id"].as_str().unwrap()));
    assert_eq!(of("synthesizer_id")["status"], "ready");
    desk.run("swarm 'no workers' --verifier v --synthesizer s").refused(2, "--worker");
}

fn edit(desk: &TypedRoot) {
    let task = desk.task("");
    desk.ok(&format!("complete {task} --summary first"));
    desk.ok(&format!("edit {task} --result 'in 2.1' --summary second --metadata '{{\"n\":1}}'"));
    let shown = desk.json(&format!("show {task}"));
    assert_eq!(shown["task"]["result"], "in 2.1");
    assert_eq!(shown["latest_summary"], "second");
    assert_eq!(shown["runs"][0]["metadata"], json!({"n": 1}));
}

#[test]
fn a_list_is_an_array_unless_pages_are_asked_for_and_pages_leave_nothing_out() {
    let desk = TypedRoot::new();
    let mut made: Vec<String> = (0..5).map(|_| desk.task("")).collect();
    made.sort();
    for order in ["created", "created-desc", "title", "updated", "priority"] {
        let plain = desk.json(&format!("list --sort {order} --limit 2"));
        assert_eq!(plain.as_array().map(Vec::len), Some(2), "{plain}");
        let mut seen = Vec::new();
        let mut line = format!("list --sort {order} --limit 2 --page");
        loop {
            let page = desk.json(&line);
            seen.extend(page["tasks"].as_array().unwrap().iter().map(id));
            let Some(next) = page["next"].as_str() else { break };
            line = format!("list --sort {order} --limit 2 --cursor {next}");
        }
        assert_eq!(seen.len(), 5, "{order}: {seen:?}");
        seen.sort();
        assert_eq!(seen, made, "{order}");
    }
    let told = desk.ok("list --limit 2");
    let (_, cursor) = told.trim_end().rsplit_once(" --cursor ").expect("a table says that there is more");
    assert_eq!(
        desk.ok(&format!("list --limit 3 --cursor {cursor}")).lines().count(),
        4,
        "and shows the rest"
    );
    assert!(!desk.ok("list --limit 5").contains("--cursor"));
    desk.run("list --cursor nonsense").refused(2, "cursor");
    desk.run("list --limit 0").refused(2, "0 is not in");
}

#[test]
fn sixty_four_who_start_a_swarm_with_one_key_at_once_start_one() {
    let fleet = Fleet::boot_as(User::ordinary());
    let line = ["swarm", "goal", "--worker", "a", "--worker", "b", "--verifier", "v", "--synthesizer", "s"];
    let line = [&line[..], &["--idempotency-key", "k", "--json"]].concat();

    let swarms: Vec<Value> = std::thread::scope(|scope| {
        let each: Vec<_> = (0..64).map(|_| scope.spawn(|| fleet.cli(&line).ok().json())).collect();
        each.into_iter().map(|one| one.join().unwrap()).collect()
    });

    for swarm in &swarms {
        assert_eq!(swarm["worker_ids"], swarms[0]["worker_ids"]);
        assert_eq!(swarm["synthesizer_id"], swarms[0]["synthesizer_id"]);
    }
    assert_eq!(fleet.json(["list"]).as_array().map(Vec::len), Some(5));
}
