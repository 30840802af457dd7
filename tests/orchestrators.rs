//! Orchestrators: they divide work and direct the tasks that they have made, and cannot do the work.

use serde_json::json;

use crate::harness::Fleet;
use crate::mcp::CLIENT;

/// A lane whose program would have no tools of its own with the argument `bare`.
const LANE: &str = "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\norchestrator = [\"bare\"]\n";

fn fleet() -> Fleet {
    let fleet = Fleet::offline();
    fleet.lane("agent", LANE);
    fleet.write_config(
        "profiles.d/lead.md",
        "---\nrole: orchestrator\nlane: agent\npolicy: orchestrate\n---\n",
    );
    fleet.write_config("profiles.d/hand.md", "---\nlane: agent\n---\n");
    fleet
}

fn run(fleet: &Fleet, assignee: &str, script: &str) -> String {
    let args = ["create", "plan", "--assignee", assignee, "--max-retries", "1", "--body", script];
    let id = fleet.json(args)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&id, "done");
    fleet.cli(["log", &id]).ok().stdout
}

#[test]
fn an_orchestrator_starts_without_the_tools_of_its_program_and_cannot_write_its_workspace() {
    let fleet = fleet();
    fleet.start();
    let script = "echo \"told $1.\"; touch here 2> /dev/null || echo kept; touch $TMPDIR/x && echo tmp";
    assert_eq!(run(&fleet, "lead", script), "told bare.\nkept\ntmp\n");
    assert_eq!(run(&fleet, "hand", script), "told .\ntmp\n");
}

#[test]
fn an_orchestrator_starts_outside_of_its_workspace_where_its_lane_says_so() {
    let fleet = fleet();
    fleet.lane("agent", &format!("{LANE}orchestrator_outside = true\n"));
    fleet.start();
    let script = "[ \"$(pwd -P)\" = \"$SUPERVISOR_WORKSPACE\" ] && echo inside || echo outside
        touch x 2> /dev/null || echo kept; ls \"$SUPERVISOR_WORKSPACE\"";
    assert_eq!(run(&fleet, "lead", script), "outside\nkept\n");
    assert_eq!(run(&fleet, "hand", script), "inside\nx\n");
    assert_eq!(run(&fleet, "agent", script), "inside\nx\n");
    let shown = fleet.json(["lane", "show", "agent"]);
    assert_eq!(shown["lane"]["orchestrator_outside"], true, "{shown:#}");
    let gemini = fleet.json(["lane", "show", "gemini"]);
    assert_eq!(gemini["lane"]["orchestrator_outside"], true, "{gemini:#}");
}

#[test]
fn an_orchestrator_directs_the_tasks_that_its_own_task_has_made_and_no_other() {
    let fleet = fleet();
    fleet.start();
    let other = fleet.json(["create", "other", "--triage"])["id"].as_str().unwrap().to_owned();
    let script = format!(
        "id=$(supervisor create part --assignee nobody-yet --initial-status blocked --body 'echo did it' --quiet)\n\
         supervisor assign $id shell && supervisor unblock $id && echo directed\n\
         supervisor assign {other} shell || echo refused\n\
         supervisor create x --policy unconfined --quiet || echo no policy\n"
    );
    let told = run(&fleet, "lead", &script);
    assert!(told.contains("directed"), "{told}");
    assert!(
        told.contains("an orchestrator may assign a task only if its own task") && told.contains("refused"),
        "{told}"
    );
    assert!(told.contains("no policy"), "{told}");
    let parts = fleet.json(["list", "--assignee", "shell"]);
    let part = parts[0]["id"].as_str().unwrap();
    let done = fleet.wait_for(part, "done");
    assert_eq!(
        done["runs"][0]["policy"],
        json!("default"),
        "its tasks do not work under its own policy: {done:#}"
    );

    let told = run(&fleet, "hand", &format!("supervisor assign {other} shell || echo refused\n"));
    assert!(told.contains("`assign` is not for workers") && told.contains("refused"), "{told}");
}

#[test]
fn a_policy_that_somebody_has_named_for_the_orchestrator_holds_for_its_tasks() {
    let fleet = fleet();
    fleet.start();
    let script = "supervisor create part --assignee shell --body true --quiet";
    let args = ["create", "plan", "--assignee", "lead", "--policy", "strict", "--body", script];
    let id = fleet.json(args)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&id, "done");
    let part = fleet.json(["list", "--assignee", "shell"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(fleet.wait_for(&part, "done")["runs"][0]["policy"], json!("strict"));
}

#[test]
fn a_lane_whose_program_keeps_its_tools_has_no_orchestrators() {
    let fleet = fleet();
    fleet.write_config("profiles.d/boss.md", "---\nrole: orchestrator\nlane: shell\n---\n");
    let shown = fleet.json(["profile", "show", "boss"]);
    let why = shown["cannot_run"].as_str().unwrap();
    assert!(why.contains("its lane `shell` is not for orchestrators"), "{why}");
    let shipped = fleet.json(["profile", "show", "orchestrator"]);
    assert_eq!(
        (&shipped["profile"]["role"], &shipped["policy"]),
        (&json!("orchestrator"), &json!("orchestrate"))
    );
}

#[test]
fn an_orchestrator_is_offered_neither_scripts_nor_files_by_its_tools() {
    let fleet = fleet();
    fleet.start();
    let text = format!(
        "cd $TMPDIR; {CLIENT}
echo secret > kept.txt
ask '{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}}'
tool execute_code '{{\"code\": \"print(6 * 7)\"}}'
tool kanban_attach '{{\"path\": \"kept.txt\"}}'
tool kanban_attach '{{\"filename\": \"plan.md\", \"content\": \"a plan\"}}'
cat said
exec 3>&-
wait"
    );

    let told = run(&fleet, "lead", &text);

    let answers: Vec<serde_json::Value> =
        told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [_, listed, script, path, content] = answers.as_slice() else { panic!("{told}") };
    let listed = listed["result"].to_string();
    assert!(listed.contains("kanban_assign") && !listed.contains("execute_code"), "{listed}");
    assert!(script.to_string().contains("execute_code is not a tool of an orchestrator"), "{script}");
    assert!(path.to_string().contains("the daemon does not read kept.txt"), "{path}");
    assert_eq!(content["result"]["structuredContent"]["filename"], "plan.md", "{content}");
    let worker = run(&fleet, "hand", &text);
    assert!(worker.contains("execute_code") && worker.contains("\\\"output\\\":\\\"42"), "{worker}");
    assert!(worker.contains("\"filename\":\"kept.txt\""), "{worker}");
}
