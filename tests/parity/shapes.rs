//! The JSON of `hermes kanban`: each key that a script may read is there, under the same name and of the same type.

use serde_json::{Value, json};

use super::{TypedRoot, id};

/// The type of a key's value; the second of a pair of columns. A question mark behind it allows null.
type Keys = &'static str;

const TASK: Keys = "id:text title:text body:text? assignee:text? status:text priority:int tenant:text? \
    workspace_kind:text workspace_path:text? branch_name:text? project_id:text? created_by:text? created_at:int \
    started_at:int? completed_at:int? result:text? skills:list max_retries:int? session_id:text? \
    workflow_template_id:text? current_step_key:text?";
const SHOW: Keys =
    "task:object latest_summary:text? parents:list children:list comments:list events:list runs:list";
const COMMENT: Keys = "author:text body:text created_at:int";
const EVENT: Keys = "kind:text payload:object? created_at:int run_id:int?";
const RUN: Keys = "id:int profile:text? status:text outcome:text? started_at:int ended_at:int? summary:text? \
    error:text? metadata:object? worker_pid:int? step_key:text?";
const STATS: Keys = "by_status:object by_assignee:object oldest_ready_age_seconds:int? now:int";
const ASSIGNEE: Keys = "name:text on_disk:bool counts:object";
const BOARD: Keys = "slug:text name:text description:text icon:text color:text default_workdir:text? created_at:int? \
    archived:bool db_path:text is_current:bool counts:object total:int";
const SUBSCRIPTION: Keys = "task_id:text platform:text chat_id:text thread_id:text user_id:text? \
    notifier_profile:text? created_at:int last_event_id:int";
const DISPATCH: Keys = "reclaimed:int crashed:list timed_out:list stale:list auto_blocked:list promoted:int \
    spawned:list skipped_unassigned:list skipped_nonspawnable:list skipped_per_profile_capped:list \
    auto_assigned_default:list";
const SPAWNED: Keys = "task_id:text assignee:text workspace:text";
const CAPPED: Keys = "task_id:text assignee:text current:int";
const PROMOTION: Keys = "task_id:text promoted:bool dry_run:bool forced:bool reason:text? error:text?";
const ATTACHMENT: Keys =
    "id:int filename:text content_type:text? size:int uploaded_by:text? stored_path:text created_at:int";
const DIAGNOSED: Keys = "task_id:text title:text status:text assignee:text? diagnostics:list";
const DIAGNOSTIC: Keys = "kind:text severity:text title:text detail:text actions:list first_seen_at:int last_seen_at:int \
    count:int run_id:int? data:object";
const ACTION: Keys = "kind:text label:text payload:object suggested:bool";
const SWARM: Keys = "root_id:text worker_ids:list verifier_id:text synthesizer_id:text";

/// Nullable fields of a value: all present, or some null.
#[derive(Clone, Copy, PartialEq)]
enum Filled {
    All,
    Some,
}

#[track_caller]
fn assert_shape(value: &Value, keys: Keys, filled: Filled) {
    for key in keys.split_whitespace() {
        let (name, kind) = key.split_once(':').unwrap();
        let found = value.get(name).unwrap_or_else(|| panic!("no {name} in {value}"));
        let nullable = kind.ends_with('?') && filled == Filled::Some;
        let fits = match kind.trim_end_matches('?') {
            "text" => found.is_string(),
            "int" => found.is_i64(),
            "bool" => found.is_boolean(),
            "list" => found.is_array(),
            "object" => found.is_object(),
            other => panic!("no such type: {other}"),
        };
        assert!(fits || (nullable && found.is_null()), "{name} is {found} and not {kind} in {value}");
    }
}

/// A task that has everything a task can have, and its run.
fn full(desk: &TypedRoot) -> String {
    let made = desk.json(
        "create full --body 'echo done' --assignee shell --tenant acme --priority 2 --project p1 --branch topic \
         --created-by bob --skill git --max-retries 3 --session s1 --workflow-template-id w1 --step-key build",
    );
    let task = id(&made);
    let pass = desk.json("dispatch");
    assert_shape(&pass, DISPATCH, Filled::All);
    assert_shape(&pass["spawned"][0], SPAWNED, Filled::All);
    desk.ok(&format!("edit {task} --result short --metadata '{{\"n\":1}}'"));
    desk.ok(&format!("comment {task} 'well done'"));
    task
}

#[test]
fn a_task_and_all_that_belongs_to_it_have_the_keys_of_the_other_board() {
    let desk = TypedRoot::new();
    let task = full(&desk);
    let bare = desk.json("create bare --tenant acme");
    assert_shape(&bare, TASK, Filled::Some);
    assert_eq!(bare["skills"], json!([]), "a list, though none was named");
    desk.ok(&format!("link {task} {}", id(&bare)));

    let shown = desk.json(&format!("show {task}"));

    assert_shape(&shown, SHOW, Filled::All);
    assert_shape(&shown["task"], TASK, Filled::All);
    assert_shape(&shown["comments"][0], COMMENT, Filled::All);
    assert_eq!(shown["children"], json!([id(&bare)]));
    for event in shown["events"].as_array().unwrap() {
        assert_shape(event, EVENT, Filled::Some);
    }
    let started =
        shown["events"].as_array().unwrap().iter().find(|event| event["kind"] == "spawned").unwrap();
    assert_shape(started, EVENT, Filled::All);
    let run = &desk.json(&format!("runs {task}"))[0];
    assert_eq!(run, &shown["runs"][0]);
    assert_shape(run, RUN, Filled::Some);
    for key in ["profile", "outcome", "ended_at", "summary", "metadata", "step_key"] {
        assert!(!run[key].is_null(), "{key} in {run}");
    }
    for listed in desk.json("list").as_array().unwrap() {
        assert_shape(listed, TASK, Filled::Some);
    }
}

#[test]
fn counts_have_the_keys_of_the_other_board_and_no_zeros() {
    let desk = TypedRoot::new();
    let task = desk.task("--assignee ann");
    let moved = desk.task("--assignee ann");
    desk.ok(&format!("complete {moved}"));

    let stats = desk.json("stats");

    assert_shape(&stats, STATS, Filled::All);
    assert_eq!(stats["by_status"], json!({"ready": 1, "done": 1}));
    assert_eq!(stats["by_assignee"], json!({"ann": {"ready": 1, "done": 1}}));
    for line in desk.json("assignees").as_array().unwrap() {
        assert_shape(line, ASSIGNEE, Filled::All);
    }
    desk.ok(&format!("complete {task}"));
    assert_eq!(desk.json("stats")["by_status"], json!({"done": 2}), "what is nowhere is not counted");
    desk.ok("boards create b --default-workdir /srv");
    for board in desk.json("boards list").as_array().unwrap() {
        assert_shape(board, BOARD, Filled::Some);
    }
    assert_shape(&desk.json("boards list")[0], BOARD, Filled::All);
}

#[test]
fn a_plan_names_whose_profile_is_full_as_the_other_board_does() {
    let desk = TypedRoot::new();
    desk.fleet.configure("[limits]\nper_profile = 1\n");
    let [first, second] = [0, 1].map(|_| desk.task("--assignee shell --body true"));

    let plan = desk.json("dispatch --dry-run");

    assert_shape(&plan, DISPATCH, Filled::All);
    assert_eq!(plan["spawned"][0]["task_id"], first);
    let capped = &plan["skipped_per_profile_capped"][0];
    assert_shape(capped, CAPPED, Filled::All);
    assert_eq!(
        [&capped["task_id"], &capped["assignee"], &capped["current"]],
        [&json!(second), &json!("shell"), &json!(1)]
    );
    assert!(desk.ok("dispatch --dry-run").contains(&second), "a person sees it as well");
}

#[test]
fn files_and_what_is_wrong_have_the_keys_of_the_other_board() {
    let desk = TypedRoot::new();
    let task = desk.task("--assignee ann");
    let path = desk.fleet.home().join("a");
    std::fs::write(&path, "abc").unwrap();
    desk.fleet.give(&path);
    desk.ok(&format!("attach {task} {} --content-type text/plain", path.display()));
    assert_shape(&desk.json(&format!("attachments {task}"))[0], ATTACHMENT, Filled::All);
    for kind in ["needs_input", "capability", "transient"] {
        desk.ok(&format!("block {task} 'not yet' --kind {kind}"));
        desk.ok(&format!("unblock {task}"));
    }

    let found = desk.json("diagnostics");

    assert_shape(&found[0], DIAGNOSED, Filled::All);
    assert_eq!(found[0]["task_id"], task);
    for diagnostic in found[0]["diagnostics"].as_array().unwrap() {
        assert_shape(diagnostic, DIAGNOSTIC, Filled::Some);
        for action in diagnostic["actions"].as_array().unwrap() {
            assert_shape(action, ACTION, Filled::All);
        }
    }
}

#[test]
fn what_is_made_of_several_pieces_has_the_keys_of_the_other_board() {
    let desk = TypedRoot::new();
    assert_shape(&desk.json("swarm goal --worker a --verifier b --synthesizer c"), SWARM, Filled::All);
    let task = desk.task("--triage");
    assert_shape(&desk.json(&format!("promote {task} 'good idea'")), PROMOTION, Filled::Some);
    let chat = "--platform slack --chat-id C1 --thread-id 1 --user-id u --notifier-profile ann";
    desk.ok(&format!("notify-subscribe {task} {chat}"));
    assert_shape(&desk.json("notify-list")[0], SUBSCRIPTION, Filled::All);
}
