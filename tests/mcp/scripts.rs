//! `execute_code`: a script has its tools and nothing else of the server, stays within its limits, and leaves nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{Agent, text};
use super::stdio::CLIENT;
use crate::harness::{Fleet, skip};
use crate::listeners::{as_worker, idle_worker};

/// Returns true if the host has the interpreter.
fn has_python() -> bool {
    let has = Path::new("/usr/bin/python3").exists();
    if !has {
        skip("scripts of agents: needs /usr/bin/python3");
    }
    has
}

/// An agent of a run, and the task of that run.
fn agent(fleet: &Fleet) -> (Agent, String) {
    let (task, token) = idle_worker(fleet, &[]);
    let mut agent = Agent::of_a_worker(fleet, &task, &token);
    agent.open("2025-11-25");
    (agent, task)
}

/// Runs a script and returns its structured result.
#[track_caller]
fn executed(agent: &mut Agent, code: &str) -> Value {
    agent.call("execute_code", &json!({"code": code}))["structuredContent"].clone()
}

/// The payloads of the calls that the log has of a task, oldest first.
fn noted(fleet: &Fleet, task: &str) -> Vec<Value> {
    let told = fleet.json(["events", "--task", task, "--kind", "tool_called"]);
    let mut events = told["events"].as_array().unwrap().clone();
    events.sort_by_key(|event| event["id"].as_u64());
    events.into_iter().map(|event| event["payload"].clone()).collect()
}

/// Returns true if a process of this host has a word among its arguments.
fn is_alive(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    })
}

/// Script that tries to find the token in all possible places.
const THIEF: &str = r#"
import os, glob
found = [name for name in os.environ if "TOKEN" in name or name.startswith("SUPERVISOR")]
readable = 0
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        text = open(path, "rb").read()
    except OSError:
        continue
    readable += 1
    if b"SUPERVISOR_TOKEN=" in text:
        found.append(path)
print("found", found, "of", readable > 0)
try:
    os.kill(os.getppid(), 9)
    print("killed")
except PermissionError:
    print("its server is out of reach")
"#;

#[test]
fn a_script_in_the_sandbox_calls_tools_and_cannot_get_at_the_token() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let code = format!(
        "from supervisor_tools import kanban_show, kanban_comment\n\
         for number in range(3):\n    kanban_comment(f'number {{number}}')\n\
         print('task', kanban_show()['task']['title'])\n{THIEF}"
    );
    let asked = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"code": code}}});
    let script = format!(
        "cat > ask.json <<'END'\n{asked}\nEND\n{CLIENT}
tr '\\0' '\\n' < /proc/$!/environ | grep -c SUPERVISOR_TOKEN > open-without-the-domain
ask \"$(cat ask.json)\"
supervisor complete --summary done
exec 3>&-
wait"
    );
    let task = fleet.create("works", &script, &[]);

    let shown = fleet.wait_for(&task, "done");

    let workspace = Path::new(shown["runs"][0]["workspace_path"].as_str().unwrap()).to_owned();
    let open = std::fs::read_to_string(workspace.join("open-without-the-domain")).unwrap();
    assert_eq!(open.trim(), "1", "the probe reads what the script may not");
    let said = std::fs::read_to_string(workspace.join("said")).unwrap();
    let answer: Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["status"], "success", "{answer}");
    assert_eq!(result["output"], "task works\nfound [] of True\nits server is out of reach\n", "{answer}");
    assert_eq!((&result["errors"], &result["tool_calls_made"]), (&json!(""), &json!(4)), "{answer}");
    assert!(result["duration_seconds"].as_f64().unwrap() > 0.0, "{answer}");
    assert_eq!(shown["comments"].as_array().unwrap().len(), 3);
    let noted = noted(&fleet, &task);
    let tools: Vec<&str> = noted.iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["kanban_comment", "kanban_comment", "kanban_comment", "kanban_show", "execute_code"]);
    assert_eq!((&noted[4]["result"], &noted[4]["tool_calls"]), (&json!("success"), &json!(4)));
    assert!(!noted.iter().any(|call| call.to_string().contains("number 1")), "no arguments: {noted:?}");
}

#[test]
fn a_script_has_the_tools_of_the_list_and_no_script_of_its_own() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, task) = agent(&fleet);
    let code = "import supervisor_tools as t\n\
                print([name for name in dir(t) if name.startswith('kanban')])\n\
                for name in ['kanban_complete', 'execute_code', 'kanban_dance']:\n\
                \x20   try:\n        t._call(name, {})\n    except t.ToolError as e:\n        print(e)\n\
                try:\n    t.kanban_attach(path='/proc/self/environ', filename='x')\nexcept t.ToolError as e:\n    print('no file:', str(e).splitlines()[0])\n\
                try:\n    t.kanban_comment('')\nexcept t.ToolError as e:\n    print(e.code)\n";

    let result = executed(&mut agent, code);

    let output = result["output"].as_str().unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines[0],
        "['kanban_attach', 'kanban_attachments', 'kanban_comment', 'kanban_create', 'kanban_heartbeat', 'kanban_link', 'kanban_show']",
        "{result}"
    );
    assert_eq!(
        lines[1],
        "Tool 'kanban_complete' is not available in execute_code. Use it as a normal tool call instead."
    );
    assert_eq!(lines[2], "a script begins no other script");
    assert!(
        lines[3].starts_with("Unknown tool: kanban_dance. Available: kanban_create, kanban_show"),
        "{result}"
    );
    assert!(lines[4].contains("does not read /proc/self/environ"), "{result}");
    assert_eq!(lines[5], "usage", "{result}");
    assert_eq!(result["tool_calls_made"], json!(5));
    assert_eq!(fleet.status_of(&task), "running");
    assert_eq!(fleet.show(&task)["attachments"], json!([]));
    let failed = noted(&fleet, &task).iter().filter(|call| call["result"] == "error").count();
    assert_eq!(failed, 5, "what is refused is noted too");
}

#[test]
fn the_limits_of_a_script_hold_and_what_is_cut_is_said() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, task) = agent(&fleet);

    let wrong = executed(&mut agent, "def f(:\n");
    assert_eq!((&wrong["status"], &wrong["output"]), (&json!("error"), &json!("")), "{wrong}");
    let errors = wrong["errors"].as_str().unwrap();
    assert!(errors.contains("SyntaxError") && errors.ends_with("[exit code 1]"), "{wrong}");
    let long = executed(&mut agent, "import sys\nprint('o' * 60000)\nprint('e' * 20000, file=sys.stderr)");
    assert_eq!(long["status"], "success", "{long}");
    let output = long["output"].as_str().unwrap();
    assert!(output.ends_with("o\n[output truncated at 50KB: 8801 of 60001 bytes left out]"), "{output}");
    let errors = long["errors"].as_str().unwrap();
    assert!(errors.ends_with("e\n[output truncated at 10KB: 9761 of 20001 bytes left out]"), "{errors}");
    let calls = executed(
        &mut agent,
        "import supervisor_tools as t\nfor number in range(60):\n    try:\n        t.kanban_heartbeat()\n    except t.ToolError as e:\n        print(number, e)\n        break",
    );
    let output = calls["output"].as_str().unwrap();
    assert!(output.starts_with("50 this script has made its 50 calls"), "{calls}");
    assert_eq!(calls["tool_calls_made"], json!(50));
    let fresh = executed(
        &mut agent,
        "import os\nprint('SUPERVISOR_TOKEN' in os.environ, os.getsid(0) == os.getpid())",
    );
    assert_eq!(fresh["output"], "False True\n", "{fresh}");
    for (arguments, why) in [
        (json!({"code": "1", "timeout_seconds": 121}), "timeout_seconds: 121 is not between 1 and 120"),
        (json!({"cod": "1"}), "unknown field `cod`"),
        (json!({"code": "#".repeat(2 << 20)}), "more than 1 MiB"),
    ] {
        let refused = agent.call("execute_code", &arguments);
        assert!(
            text(&refused).contains(why) && text(&refused).contains("Nothing was run."),
            "{}",
            text(&refused)
        );
    }
    assert_eq!(fleet.status_of(&task), "running");
}

#[test]
fn a_script_that_takes_too_long_is_ended_with_all_that_it_has_started() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, task) = agent(&fleet);
    // A child in a session of its own that ignores TERM, and whose parent has gone.
    let code = "import os, signal, subprocess, sys, time\n\
                signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                print('begun')\n\
                subprocess.run(['sh', '-c', \"trap '' TERM; setsid sh -c 'trap \\\"\\\" TERM; while :; do sleep 1; done # left-by-a-script' &\"])\n\
                time.sleep(600)\n";
    let began = Instant::now();

    let result =
        agent.call("execute_code", &json!({"code": code, "timeout_seconds": 5}))["structuredContent"].clone();

    assert_eq!((&result["status"], &result["output"]), (&json!("timeout"), &json!("begun\n")), "{result}");
    assert!(result["errors"].as_str().unwrap().contains("longer than 5 s"), "{result}");
    assert!(began.elapsed() >= Duration::from_secs(10), "TERM has five seconds: {:?}", began.elapsed());
    assert!(!is_alive("left-by-a-script"), "what it has left is ended before the result comes");
    assert_eq!(noted(&fleet, &task).last().unwrap()["result"], "timeout");
    let next = executed(&mut agent, "print(1)");
    assert_eq!(next["status"], "success", "the next script runs: {next}");
}

#[test]
fn a_script_that_names_no_limit_has_two_minutes_and_five_seconds_after_term() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, _) = agent(&fleet);
    // It tells when it gets TERM, and goes on.
    let code = "import signal, time\nbegan = time.monotonic()\n\
                signal.signal(signal.SIGTERM, lambda *_: print('TERM after', int(time.monotonic() - began), flush=True))\n\
                while True:\n    time.sleep(1)\n";
    let began = Instant::now();

    let result = executed(&mut agent, code);

    let took = began.elapsed();
    assert_eq!(result["status"], "timeout", "{result}");
    assert!(result["errors"].as_str().unwrap().contains("longer than 120 s"), "{result}");
    let told = result["output"].as_str().unwrap();
    assert_eq!(told.lines().count(), 1, "it gets TERM once: {told}");
    let at: u64 = told.trim().strip_prefix("TERM after ").unwrap().parse().unwrap();
    assert!((100..125).contains(&at) && took >= Duration::from_secs(at + 4), "{told} of {took:?}");
}

#[test]
fn what_a_script_leaves_behind_is_ended_with_it() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, _) = agent(&fleet);
    let code = "import subprocess\n\
                subprocess.Popen(['setsid', 'sh', '-c', 'while :; do sleep 1; done # left-by-another'])\nprint('gone')";

    let result = executed(&mut agent, code);

    assert_eq!((&result["status"], &result["output"]), (&json!("success"), &json!("gone\n")), "{result}");
    assert!(!is_alive("left-by-another"));
}

#[test]
fn a_script_is_interrupted_by_a_cancelled_request_and_by_the_end_of_the_conversation() {
    if !has_python() {
        return;
    }
    let fleet = Fleet::boot();
    let (mut agent, task) = agent(&fleet);
    let sleeper = |word: &str| json!({"name": "execute_code", "arguments": {"code": format!("import supervisor_tools as t, time\nt.kanban_comment('{word}')\ntime.sleep(600)")}});
    let has_said = |word: &str| {
        fleet.eventually("the script runs", || {
            let shown = fleet.show(&task);
            shown["comments"].as_array().unwrap().iter().any(|one| one["body"] == word).then_some(())
        });
    };
    let id = agent.send("tools/call", &sleeper("first"));
    has_said("first");
    let params = json!({"requestId": id, "reason": "changed its mind"});
    agent.write(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            .to_string()
            .as_bytes(),
    );
    let ended = |count: usize| {
        fleet.eventually("the interruption is in the log", || {
            let noted = noted(&fleet, &task);
            let ended = noted.iter().filter(|call| call["result"] == "interrupted").count();
            (ended == count).then_some(())
        });
    };
    ended(1);

    agent.send("tools/call", &sleeper("second"));
    has_said("second");
    let (status, _) = agent.close();

    assert!(status.success(), "{status}");
    ended(2);
}

#[test]
fn where_there_is_no_run_or_no_python_the_tool_says_why() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    let mut poor = Agent::of_a_worker_with(&fleet, &task, &token, &[("PATH", "/nowhere")]);
    poor.open("2025-11-25");
    let refused = poor.call("execute_code", &json!({"code": "print(1)"}));
    assert_eq!(refused["isError"], json!(true));
    assert!(
        text(&refused).contains("there is no python3 in the search path of this run: /nowhere"),
        "{refused}"
    );

    let mut operator = Agent::of_the_operator(&fleet);
    operator.open("2025-11-25");
    let refused = operator.call("execute_code", &json!({"code": "print(1)"}));
    assert!(text(&refused).contains("inside a run"), "{refused}");
    let door = as_worker(&fleet, &token).with("accept", "application/json, text/event-stream");
    let params = json!({"name": "execute_code", "arguments": {"code": "print(1)"}});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let answer = door.with("mcp-protocol-version", "2025-11-25").post("/mcp", &message).json(200);
    assert!(text(&answer["result"]).contains("inside a run"), "{answer}");

    let doctor = fleet.cli(["doctor"]).stdout;
    assert!(doctor.contains("execute_code"), "{doctor}");
}

#[test]
fn the_script_of_the_manual_works_as_it_is_written() {
    if !has_python() {
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mcp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let code = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let fleet = Fleet::boot();
    let (mut agent, _) = agent(&fleet);

    let result = executed(&mut agent, code);

    assert_eq!((&result["status"], &result["tool_calls_made"]), (&json!("success"), &json!(5)), "{result}");
    assert!(result["output"].as_str().unwrap().starts_with("the last one is t_"), "{result}");
    assert_eq!(fleet.json(["list", "--assignee", "researcher"]).as_array().unwrap().len(), 3);
}
