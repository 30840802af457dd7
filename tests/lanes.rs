//! Lanes of one's own: what an agent says about its ending on its standard output.

mod brought;
mod checked;
mod live;
mod prompts;
mod sessions;
mod tools;
mod turns;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Fleet, Output, User, skip};

/// A lane whose workers are scripts that write what an agent would.
const AGENT: &str = r#"argv = ["/bin/sh", "{prompt_file}"]
prompt = "body-file"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

/// Runs a script in that lane until its task has a status, and returns all about it.
fn run(script: &str, status: &str) -> Value {
    let fleet = Fleet::offline();
    fleet.lane("agent", AGENT);
    fleet.start();
    let create = ["create", "fix it", "--assignee", "agent", "--max-retries", "1", "--body", script];
    let id = fleet.json(create)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&id, status)
}

#[test]
fn the_summary_is_the_final_message_however_much_else_there_is() {
    let shown = run(
        r#"echo '{"type":"system","subtype":"init"}'
           echo 'a warning' >&2
           echo '{"type":"result","subtype":"success","is_error":false,"result":"fixed the parser"}'
           head -c 20000 /dev/zero | tr '\0' x; echo
           head -c 20000 /dev/zero | tr '\0' y >&2"#,
        "done",
    );
    assert_eq!(shown["latest_summary"], "fixed the parser", "{shown:#}");
}

#[test]
fn an_agent_that_ends_well_without_a_result_has_not_reported() {
    let shown = run("echo '{\"type\":\"system\",\"subtype\":\"init\"}'", "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "unreported", "{shown:#}");
}

#[test]
fn a_rate_limit_that_an_agent_reports_is_no_failure() {
    let shown = run(
        r#"echo '{"type":"result","subtype":"success","is_error":true,"result":"limit","api_error_status":429}'; exit 1"#,
        "scheduled",
    );
    assert_eq!(shown["runs"][0]["outcome"], "rate_limited", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], json!(0), "{shown:#}");
}

#[test]
fn what_a_worker_tells_the_board_goes_before_what_it_writes() {
    let shown = run(
        r#"supervisor complete --summary 'told the board'
           echo '{"type":"result","is_error":true,"result":"no","api_error_status":429}'; exit 1"#,
        "done",
    );
    assert_eq!(shown["latest_summary"], "told the board", "{shown:#}");
}

#[test]
fn a_body_is_executed_with_the_interpreter_that_its_first_line_names() {
    let fleet = Fleet::boot();
    let create = |body: &str| {
        let words = ["create", "count", "--assignee", "exec", "--max-retries", "1", "--body", body];
        fleet.json(words)["id"].as_str().unwrap().to_owned()
    };
    let counted =
        create("#! /usr/bin/env -S awk -f\nBEGIN { print 20 + 22 > \"counted\"; print \"well\" }\n");
    let failed = create("#!/bin/sh -e\nfalse\ntrue\n");
    let unnamed = create("echo '#!/bin/sh'\n");
    let shown = fleet.wait_for(&counted, "done");
    assert_eq!(shown["latest_summary"], "well", "{shown:#}");
    let place = std::path::Path::new(shown["task"]["workspace_path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(place.join("counted")).unwrap(), "42\n");
    let shown = fleet.wait_for(&failed, "blocked");
    assert_eq!(shown["runs"][0]["exit_code"], 1, "{shown:#}");
    let shown = fleet.wait_for(&unnamed, "blocked");
    assert_eq!(shown["runs"][0]["exit_code"], 126, "{shown:#}");
    assert!(fleet.cli(["logs", &unnamed]).stdout.contains("names no interpreter"));
}

/// A built-in lane whose program is a script of ours that plays the agent: what it writes, and with which exit code it ends.
struct StandIn {
    lane: &'static str,
    file: &'static str,
    /// The end of what its program writes when it has done its work.
    well: &'static str,
    /// Session of the run in `runs` afterwards.
    session: Option<&'static str>,
    tokens: u64,
}

const STAND_INS: [StandIn; 5] = [
    StandIn {
        lane: "claude",
        file: include_str!("../supervisor/setup/src/lanes/builtin/claude.toml"),
        well: r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s-1","usage":{"input_tokens":7,"output_tokens":2}}"#,
        session: Some("s-1"),
        tokens: 7,
    },
    StandIn {
        lane: "codex",
        file: include_str!("../supervisor/setup/src/lanes/builtin/codex.toml"),
        well: r#"{"type":"thread.started","thread_id":"s-1"}
{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":2}}"#,
        session: Some("s-1"),
        tokens: 7,
    },
    StandIn {
        lane: "opencode",
        file: include_str!("../supervisor/setup/src/lanes/builtin/opencode.toml"),
        well: r#"{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","tokens":{"input":7,"output":2}}}"#,
        session: Some("s-1"),
        tokens: 7,
    },
    StandIn {
        lane: "gemini",
        file: include_str!("../supervisor/setup/src/lanes/builtin/gemini.toml"),
        well: r#"{"type":"init","session_id":"s-1"}
{"type":"result","status":"success","stats":{"input_tokens":7,"output_tokens":2}}"#,
        session: Some("s-1"),
        tokens: 7,
    },
    StandIn {
        lane: "hermes",
        file: include_str!("../supervisor/setup/src/lanes/builtin/hermes.toml"),
        well: "all done",
        session: None,
        tokens: 0,
    },
];

/// Returns the beginning of a script, which reads the prompt as its program does. A program that takes messages gets
/// the prompt as the first one, and its input stays open until it has ended a turn.
fn prelude(lane: &str) -> &'static str {
    if lane == "claude" {
        "#!/bin/sh\nread_prompt() { IFS= read -r line && printf '%s\\n' \"$line\" | sed 's/\\\\n/\\n/g'; }\n"
    } else {
        "#!/bin/sh\nread_prompt() { cat; }\n"
    }
}

/// A root in which each built-in lane of an agent has a script for its program.
fn stand_ins(user: User, script: impl Fn(&StandIn) -> String) -> Fleet {
    let fleet = Fleet::offline_as(user);
    let install = fleet.home().join("agents");
    std::fs::create_dir_all(install.join("bin")).unwrap();
    for one in &STAND_INS {
        let program = install.join("bin").join(one.lane);
        std::fs::write(&program, format!("{}{}", prelude(one.lane), script(one))).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // No test has a way to a service, so none needs the policy that opens one.
        let file = one.file.replace("policy = \"agent\"", "policy = \"default\"");
        fleet.lane(one.lane, &format!("install = [{:?}]\n{file}", install.to_str().unwrap()));
    }
    fleet.start();
    fleet
}

fn create(fleet: &Fleet, lane: &str) -> String {
    let created = fleet.json(["create", "fix it", "--assignee", lane, "--body", "the parser"]);
    created["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_that_reads_its_prompt_ends_its_task_in_every_built_in_lane() {
    for user in User::all() {
        // It runs the first command of the list in its prompt, as that says.
        let fleet = stand_ins(user, |one| {
            format!(
                "case \"$*\" in *'supervisor complete'*) prompt=$* ;; *) prompt=$(read_prompt) ;; esac\n\
                 printf '%s\\n' \"$prompt\" | grep -q 'the parser' || exit 9\n\
                 line=$(printf '%s\\n' \"$prompt\" | grep -o -m 1 \"supervisor complete --summary '[^']*'\") || exit 8\n\
                 eval \"$line\" > /dev/null || exit 7\n\
                 cat <<'END'\n{}\nEND\n",
                one.well
            )
        });
        let tasks: Vec<String> = STAND_INS.iter().map(|one| create(&fleet, one.lane)).collect();
        for (one, task) in STAND_INS.iter().zip(&tasks) {
            let shown = fleet.wait_for(task, "done");
            assert_eq!(shown["latest_summary"], "what was done", "{}: {shown:#}", one.lane);
            let spent = &shown["runs"][0]["spent"];
            assert_eq!(spent["session"].as_str(), one.session, "{}: {shown:#}", one.lane);
            assert_eq!(spent["input_tokens"].as_u64().unwrap_or_default(), one.tokens, "{}", one.lane);
        }
        let shown = fleet.cli(["show", &tasks[0]]).ok().stdout;
        assert!(shown.contains("7 tokens in, 2 out") && shown.contains("s-1"), "{shown}");
        let runs = fleet.cli(["runs", &tasks[0]]).ok().stdout;
        assert!(runs.contains("TOKENS"), "{runs}");
    }
}

#[test]
fn an_agent_that_ends_well_and_reports_nothing_breaks_the_protocol() {
    let fleet = stand_ins(User::current(), |one| {
        format!("read_prompt > /dev/null\ncat <<'END'\n{}\nEND\n", one.well)
    });
    for one in &STAND_INS {
        let task = create(&fleet, one.lane);
        let outcome = fleet.eventually(&format!("a run of {} has ended", one.lane), || {
            fleet.show(&task)["runs"][0]["outcome"].as_str().map(str::to_owned)
        });
        assert_eq!(outcome, "unreported", "{}", one.lane);
        let shown = fleet.show(&task);
        assert_eq!(shown["latest_summary"], Value::Null, "{}: it is no result", one.lane);
        if one.lane == "hermes" {
            assert_eq!(shown["runs"][0]["summary"], "all done", "{shown:#}");
            let text = fleet.cli(["show", &task]).ok().stdout;
            assert!(text.contains("all done"), "{text}");
        }
    }
}

#[test]
fn a_login_that_is_not_accepted_holds_its_account_and_no_task_has_failed() {
    let fleet = stand_ins(User::current(), |one| {
        match one.lane {
        "gemini" => "exit 41".to_owned(),
        _ => r#"echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}'; exit 1"#
            .to_owned(),
    }
    });
    for (lane, account) in [("codex", "openai"), ("gemini", "google")] {
        let (first, second) = (create(&fleet, lane), create(&fleet, lane));
        let held = fleet.eventually("its account is held", || {
            let holds = fleet.json(["holds"]);
            holds.as_array().unwrap().iter().find(|hold| hold["name"] == account).cloned()
        });
        assert_eq!(held["kind"], "login", "{held:#}");
        for task in [&first, &second] {
            let why = fleet.eventually("it says what it waits for", || {
                let shown = fleet.show(task);
                let why = shown["why"]["text"].as_str().unwrap_or_default().to_owned();
                Some(shown).filter(|_| why.contains(&format!("waits for the login of account {account}")))
            });
            assert_eq!(why["task"]["consecutive_failures"], json!(0), "{why:#}");
        }
    }
}

#[test]
fn a_limit_on_turns_asks_a_person_and_a_usage_limit_waits_until_its_reset() {
    let fleet = stand_ins(User::current(), |one| {
        match one.lane {
        "claude" => r#"echo '{"type":"result","subtype":"error_max_turns","is_error":true}'; exit 1"#.to_owned(),
        "gemini" => "exit 53".to_owned(),
        "codex" => r#"echo '{"type":"turn.failed","error":{"message":"usage limit reached, try again in 2 hours"}}'; exit 1"#
            .to_owned(),
        _ => r#"echo '{"type":"error","error":{"name":"APIError","data":{"statusCode":429,"responseHeaders":{"retry-after":"7200"}}}}'; exit 1"#
            .to_owned(),
    }
    });
    for lane in ["claude", "gemini"] {
        let task = create(&fleet, lane);
        let shown = fleet.wait_for(&task, "blocked");
        assert_eq!(shown["task"]["block_kind"], "needs_input", "{shown:#}");
        assert!(shown["task"]["question"]["text"].as_str().unwrap().contains("on turns"), "{shown:#}");
        fleet.cli(["answer", &task, "go on"]).ok();
        assert_eq!(fleet.show(&task)["task"]["consecutive_failures"], json!(0));
    }
    for lane in ["codex", "opencode"] {
        let task = create(&fleet, lane);
        let shown = fleet.wait_for(&task, "scheduled");
        let (ended, until) = (&shown["runs"][0]["ended_at"], &shown["task"]["not_before"]);
        let pause = until.as_i64().unwrap() - ended.as_i64().unwrap();
        assert!((7199..=7201).contains(&pause), "{pause}: {shown:#}");
    }
}

#[test]
fn a_lane_is_listed_shown_checked_and_tried_with_its_own_program() {
    let fleet = stand_ins(User::current(), |one| {
        let line = "line=$(read_prompt | grep -o -m 1 \"supervisor complete --summary '[^']*'\")\neval \"$line\" > /dev/null || exit 7\n";
        match one.lane {
            "claude" => format!("{line}cat <<'END'\n{}\nEND\n", one.well),
            "codex" => "echo 'no key' >&2\necho '{\"type\":\"error\",\"message\":\"status 401\"}'\nexit 1\n"
                .to_owned(),
            _ => "exit 0\n".to_owned(),
        }
    });
    let names: Vec<Value> = fleet.json(["lane", "list"]).as_array().unwrap().clone();
    assert!(
        names
            .iter()
            .any(|lane| lane["name"] == "shell" && lane["lane"]["origin"] == "the built-in lane shell")
    );
    let shown = fleet.cli(["lane", "show", "codex"]).ok().stdout;
    assert!(shown.contains("codex exec --json") && shown.contains("[-m {model}]"), "{shown}");
    let check = |report: &Value, subject: &str| {
        let checks = report["checks"].as_array().unwrap().iter();
        checks.filter(|check| check["subject"] == subject).map(ToString::to_string).collect::<String>()
    };

    let tried = fleet.json(["lane", "test", "claude"]);
    assert_eq!(tried["ok"], true, "{tried:#}");
    assert!(check(&tried, "program").contains("agents/bin/claude"), "{tried:#}");
    assert!(check(&tried, "interpreter").contains("/sh"), "{tried:#}");
    assert!(check(&tried, "ending").contains("completed"), "{tried:#}");
    assert!(check(&tried, "report").contains("complete"), "{tried:#}");
    assert!(check(&tried, "usage").contains("7 tokens in, 2 out"), "{tried:#}");
    assert_eq!(fleet.json(["list"]), json!([]), "the trial leaves nothing on the board");

    let refused = fleet.cli(["lane", "test", "codex", "--timeout", "1m", "--json"]);
    assert_eq!(refused.code, 1);
    assert!(check(&refused.json(), "ending").contains("did not accept its login"), "{}", refused.stdout);
    assert!(check(&refused.json(), "ending").contains("no key"), "{}", refused.stdout);
}

#[test]
fn a_program_that_the_caller_has_and_the_lane_does_not_find_is_named_with_the_line_that_helps() {
    let fleet = Fleet::offline();
    let bin = fleet.home().join("npm/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("agent"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(bin.join("agent"), std::fs::Permissions::from_mode(0o755)).unwrap();
    fleet.lane("gone", "argv = [\"no-such-agent\"]\n");
    let missing = fleet.cli(["lane", "check", "gone"]);
    assert_eq!(missing.code, 1, "{}", missing.stdout);
    assert!(missing.stdout.contains("`no-such-agent` is in none of"), "{}", missing.stdout);
    assert_eq!(fleet.cli(["lane", "check", "nobody"]).code, 3);
    fleet.lane("mine", "argv = [\"agent\"]\n");
    let path = format!("/usr/bin:/bin:{}", bin.display());
    let check = |lane: &str| {
        let mut command = fleet.command(["lane", "check", lane, "--json"]);
        let said = Output::of(command.env("PATH", &path));
        let checks = said.json()["checks"].as_array().unwrap().clone();
        let program = checks.iter().find(|check| check["subject"] == "program");
        let hint = program.and_then(|program| program["actions"][0]["label"].as_str()).unwrap_or_default();
        (said.code, hint.to_owned())
    };
    let (code, hint) = check("mine");
    let line = format!("install = [\"{}\"]", bin.display());
    assert!(code == 1 && hint.contains(&line), "{hint}");

    // For a lane without `install` the hint is a command, and does what it says.
    std::fs::copy(bin.join("agent"), bin.join("claude")).unwrap();
    let secret = fleet.home().join("key");
    std::fs::write(&secret, "none").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let keyed = format!("extends = \"claude\"\n[secrets]\nKEY = {{ file = {secret:?} }}\n");
    for own in [None, Some(keyed)] {
        let file = fleet.root().join("lanes.d/claude.toml");
        if let Some(text) = own {
            std::fs::write(&file, text).unwrap();
        }
        let (code, hint) = check("claude");
        let Some((_, command)) = hint.split_once("you have it:\n") else {
            return skip("a lane under the policy `agent`: this host cannot enforce it");
        };
        let mut shell = Command::new("sh");
        fleet.dress(&mut shell);
        Output::of(shell.args(["-c", command])).ok();
        assert_eq!((code, check("claude").0), (1, 0), "{hint}");
    }
}

#[test]
fn a_worker_without_progress_for_longer_than_its_lane_allows_is_ended_as_stalled() {
    let fleet = Fleet::offline();
    fleet.lane("agent", &format!("idle_limit = \"5s\"\n{AGENT}"));
    fleet.start();
    let create = |script: &str| {
        let words = ["create", "x", "--assignee", "agent", "--max-retries", "1", "--body", script];
        fleet.json(words)["id"].as_str().unwrap().to_owned()
    };
    let silent = create("echo begun; sleep 600");
    let talks =
        create("for i in 1 2 3 4 5 6 7; do echo alive; sleep 1; done; supervisor complete --summary talked");
    let shown = fleet.wait_for(&silent, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "stalled", "{shown:#}");
    assert_eq!(fleet.wait_for(&talks, "done")["latest_summary"], "talked");
}
