//! Missions: how far workers go below one task of a person's, and the question when a limit is reached.

mod asks;
mod bounds;
mod ledger;

use crate::harness::{Fleet, User};

#[test]
fn a_worker_that_makes_tasks_without_end_pauses_its_mission_and_a_person_lets_it_go_on() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[missions]\ntasks = 4\n");
        fleet.start();
        // What it makes waits for it, so that nothing of it has started when the limit is reached.
        let script = "n=0; while supervisor create part --assignee shell --body true --parent $SUPERVISOR_TASK; do n=$((n+1)); done \
                      2> refused; supervisor complete --summary \"made $n: $(cat refused)\"";
        let first = fleet.create("divide it", script, &[]);

        let shown = fleet.wait_for(&first, "done");

        let summary = shown["latest_summary"].as_str().unwrap();
        assert!(summary.starts_with("made 3: "), "{summary}");
        let told = format!("missions.tasks: this would be 5 tasks of the mission {first}, the limit is 4");
        assert!(summary.contains(&told), "{summary}");
        let parts: Vec<String> =
            shown["children"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        let part = fleet.show(&parts[0]);
        assert_eq!(part["task"]["status"], "ready");
        assert_eq!((&part["task"]["mission"], &part["task"]["depth"]), (&first.as_str().into(), &1.into()));
        let verb = format!("`supervisor answer {first} 1`");
        let why = &part["why"]["text"];
        assert!(why.as_str().unwrap().contains("4 tasks of 4 (missions.tasks)"), "{why}");
        assert!(why.as_str().unwrap().contains(&verb), "{why}");
        let wrong = fleet.json(["diagnostics"]).to_string();
        assert!(wrong.contains("mission_paused"), "{wrong}");

        fleet.cli(["release", "--mission", &parts[1]]).ok();
        for part in &parts {
            fleet.wait_for(part, "done");
        }
    }
}

fn id_of(fleet: &Fleet, args: &[&str]) -> String {
    let made = fleet.json(args);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_runaway_stops_at_the_limit_of_its_own_mission_with_a_question_that_a_number_answers() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.start();
        let script = "while supervisor create part --assignee shell --body true --parent $SUPERVISOR_TASK; do :; done 2> refused; \
                      supervisor complete --summary \"$(cat refused)\"";
        let mission = id_of(
            &fleet,
            &[
                "mission",
                "create",
                "divide it",
                "--assignee",
                "shell",
                "--body",
                script,
                "--max-tasks",
                "3",
                "--max-depth",
                "2",
                "--max-runtime",
                "2h",
                "--max-cost",
                "2.50",
            ],
        );

        let done = fleet.wait_for(&mission, "done");

        let told = format!("missions.tasks: this would be 4 tasks of the mission {mission}, the limit is 3");
        assert!(done["latest_summary"].as_str().unwrap().contains(&told), "{done}");
        let shown = fleet.json(["mission", "show", &mission]);
        let usage = &shown["use"];
        assert_eq!((&usage["tasks"]["used"], &usage["max_depth"]), (&3.into(), &2.into()));
        assert_eq!(usage["cost_micros"]["limit"], 2_500_000);
        assert_eq!(usage["runtime_seconds"]["limit"], 7200);
        let choices = &shown["question"]["choices"];
        assert_eq!(choices.as_array().map(Vec::len), Some(2), "{shown}");
        let text = fleet.cli(["mission", "show", &mission]).ok().stdout;
        assert!(text.contains(&format!("supervisor answer {mission} 1")), "{text}");
        let listed = fleet.json(["mission", "list", "--all"]);
        assert_eq!(listed["missions"][0]["id"].as_str(), Some(mission.as_str()));

        fleet.cli(["answer", &mission, "1"]).ok();
        let tree = shown["tree"].as_array().unwrap();
        for part in &tree[1..] {
            fleet.wait_for(part["id"].as_str().unwrap(), "done");
        }
        let shown = fleet.json(["mission", "show", &mission]);
        assert_eq!((&shown["state"], &shown["done"]), (&"done".into(), &3.into()), "{shown}");
    }
}

#[test]
fn a_paused_mission_starts_nothing_and_a_cancelled_one_leaves_no_process() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.start();
        let mission = id_of(&fleet, &["mission", "create", "site", "--assignee", "nobody-yet"]);
        fleet.cli(["mission", "pause", &mission, "--reason", "wait for the design"]).ok();
        let script = "trap '' TERM; sleep 9471 & wait";
        let part = fleet.create("part", script, &["--mission", &mission]);
        // Another task starts, so that the daemon has looked.
        let other = fleet.create("other", "true", &[]);
        fleet.wait_for(&other, "done");
        assert_eq!(fleet.status_of(&part), "ready");
        let why = fleet.show(&part)["why"]["text"].to_string();
        assert!(why.contains("wait for the design"), "{why}");

        fleet.cli(["mission", "resume", &mission, "--reason", "it is there"]).ok();
        fleet.eventually("the worker sleeps", || fleet.processes_with("9471").first().map(drop));
        fleet.cli(["mission", "pause", &part, "--now"]).ok();
        fleet.eventually("its worker is gone", || fleet.processes_with("9471").is_empty().then_some(()));
        fleet.eventually("it is ready again", || (fleet.status_of(&part) == "ready").then_some(()));

        fleet.cli(["mission", "resume", &mission]).ok();
        fleet.eventually("the worker sleeps", || fleet.processes_with("9471").first().map(drop));
        fleet.cli(["mission", "cancel", &mission, "--reason", "no need"]).ok();
        fleet.wait_for(&part, "archived");
        assert!(fleet.processes_with("9471").is_empty());
        assert_eq!(fleet.json(["mission", "show", &mission])["state"], "cancelled");
        assert_eq!(fleet.json(["mission", "list"])["missions"], serde_json::json!([]));
    }
}

/// A lane whose agents say what they have cost.
const COSTLY: &str = r#"
argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

#[test]
fn a_mission_stops_at_the_cent_and_the_ledger_says_who_has_spent_it() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.lane("costly", COSTLY);
        fleet.start();
        let script = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"bought","total_cost_usd":0.01,"usage":{"input_tokens":5,"output_tokens":2}}'"#;
        let mission = id_of(
            &fleet,
            &[
                "mission",
                "create",
                "buy",
                "--assignee",
                "costly",
                "--body",
                script,
                "--tenant",
                "acme",
                "--max-cost",
                "0.01",
            ],
        );
        fleet.wait_for(&mission, "done");
        let next = fleet.create("again", "true", &["--mission", &mission, "--tenant", "acme"]);
        let other = fleet.create("other", "true", &[]);
        fleet.wait_for(&other, "done");
        assert_eq!(fleet.status_of(&next), "ready");
        let why = fleet.show(&next)["why"]["text"].to_string();
        assert!(why.contains("$0.01 of $0.01 (missions.cost_usd)"), "{why}");

        let rows = |args: &[&str]| fleet.json(args)["rows"].clone();
        assert_eq!(rows(&["spend"])[0]["name"], mission.as_str());
        assert_eq!(rows(&["spend", "--by", "tenant"])[0]["cost_micros"], 10_000);
        assert_eq!(rows(&["spend", "--by", "day", "--since", "1d"])[0]["tokens"], 7);
        assert_eq!(rows(&["spend", "--tenant", "other"]), serde_json::json!([]));
        assert!(fleet.cli(["spend"]).ok().stdout.contains("$0.01"));
        fleet.cli(["answer", &mission, "1"]).ok();
        fleet.wait_for(&next, "done");
    }
}

#[test]
fn a_comment_hands_work_to_the_profiles_that_it_mentions_and_to_no_lane() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.write_config("profiles.d/greeter.md", "---\nlane: shell\n---\n");
        fleet.start();
        let site = fleet.json(["create", "site"])["id"].as_str().unwrap().to_owned();
        let text = "supervisor complete --summary hello # @greeter, not @shell, @nobody or `@writer`";
        let said = fleet.json(["comment", &site, text]);
        let mentioned = said["mentioned"].as_array().unwrap();
        assert_eq!(mentioned.len(), 1, "{said}");
        let made = mentioned[0]["task"].as_str().unwrap();
        let shown = fleet.wait_for(made, "done");
        assert_eq!(shown["latest_summary"], "hello");
        assert_eq!(shown["task"]["mission"], site.as_str());
        let plain = fleet.json(["comment", &site, "> @greeter said so"]);
        assert_eq!(plain["mentioned"], serde_json::Value::Null);
    }
}

#[test]
fn a_worker_that_asks_for_an_approval_waits_for_it_and_its_next_run_reads_who_gave_it() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure(
            "[approvals.spend]\nmessage = 'purchase: {text}'\n[approvals.deploy]\ngate = 'allow'\n",
        );
        fleet.start();
        // Its context has the script as well, which the patterns do not match.
        let script = "if supervisor context | grep -q 'APPROVED (spen[d])'; then supervisor complete --summary bought; \
                      elif supervisor context | grep -q 'DENIED (spen[d])'; then supervisor complete --summary 'not bought'; \
                      else supervisor approve $SUPERVISOR_TASK; supervisor ask 'TLV to NYC for 420 USD' --class spend; fi";
        let buys = fleet.create("buy the ticket", script, &[]);
        let waits = fleet.wait_for(&buys, "blocked");
        assert_eq!(waits["task"]["block_kind"], "approval", "{waits}");
        assert_eq!(waits["task"]["question"]["text"], "purchase: TLV to NYC for 420 USD");
        fleet.cli(["approve", &buys]).ok();
        assert_eq!(fleet.wait_for(&buys, "done")["latest_summary"], "bought");

        let dear = fleet.create("buy two tickets", script, &[]);
        fleet.wait_for(&dear, "blocked");
        fleet.cli(["deny", &dear, "--reason", "too dear"]).ok();
        assert_eq!(fleet.wait_for(&dear, "done")["latest_summary"], "not bought");

        let script =
            "supervisor ask 'to production?' --class deploy && supervisor complete --summary deployed";
        let deploys = fleet.create("deploy", script, &[]);
        assert_eq!(fleet.wait_for(&deploys, "done")["latest_summary"], "deployed");
    }
}
