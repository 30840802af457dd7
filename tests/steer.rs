//! Messages to running agents: each reaches its agent once, or it is said that it did not.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Fleet, Terminal, User};

/// A lane whose workers are scripts that speak as Claude Code does.
const AGENT: &str = r#"argv = ["/bin/sh", "{home}/agent"]
session = "stream-json"
stdout = "claude-stream-json"
on_clean_exit = "complete"
"#;

/// Common functions of the scripts: `take` reads a message, `confirm` repeats it, `turn` ends a turn, `rest` repeats
/// the first two until no message is left.
const WORDS: &str = r#"
take() { read -r line && printf '%s\n' "$line" >> heard; }
confirm() { id=${line##*\"uuid\":\"}; echo "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"${id%%\"*}\"}"; }
turn() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1\",\"session_id\":\"s-1\"}"; }
rest() { while take; do confirm; done; }
wait_for() { while [ ! -e "$1" ]; do sleep 0.02; done; }
take
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
"#;

/// The lane whose program is a script.
fn playing(script: &str) -> String {
    let script = format!("{WORDS}{script}");
    let mut lane: toml::Table = toml::from_str(AGENT).unwrap();
    let files = toml::Table::from_iter([("agent".to_owned(), script.into())]);
    lane.insert("files".to_owned(), files.into());
    lane.to_string()
}

/// A task whose agent is a script, which writes what it has read into `heard` in its workspace.
struct Stage {
    fleet: Fleet,
    task: String,
    workspace: PathBuf,
}

impl Stage {
    fn open(script: &str) -> Self {
        Stage::open_as(User::current(), script)
    }

    fn open_as(user: User, script: &str) -> Self {
        let fleet = Fleet::offline_as(user);
        fleet.lane("agent", &playing(script));
        fleet.start();
        let words = ["create", "fix it", "--assignee", "agent", "--max-retries", "1", "--body", "the parser"];
        let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
        fleet.eventually("the agent has begun", || {
            fleet.cli(["log", &task]).stdout.contains("init").then_some(())
        });
        let workspace = fleet.show(&task)["task"]["workspace_path"].as_str().unwrap().into();
        Stage { fleet, task, workspace }
    }

    /// Lets the script go on that waits for a file.
    fn show_file(&self, name: &str) {
        fs::write(self.workspace.join(name), "").unwrap();
    }

    /// Returns the state of each message.
    fn states(&self) -> Vec<String> {
        let shown = self.fleet.show(&self.task);
        let messages = shown["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|message| message["state"].as_str().unwrap().to_owned()).collect()
    }

    /// The texts that the agent has read, after its prompt.
    fn received(&self) -> Vec<String> {
        let all = fs::read_to_string(self.workspace.join("heard")).unwrap();
        let text = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            message["message"]["content"][0]["text"].as_str().unwrap().to_owned()
        };
        all.lines().skip(1).map(text).collect()
    }

    fn kinds(&self) -> Vec<String> {
        let page = self.fleet.json(["events", "--task", &self.task]);
        let kinds = page["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap());
        kinds.filter(|kind| kind.starts_with("message")).map(str::to_owned).collect()
    }
}

#[test]
fn a_message_reaches_the_running_agent_once_and_all_say_what_became_of_it() {
    for user in User::all() {
        let stage = Stage::open_as(user, "take; confirm; turn \"did it\"; rest");
        let said =
            stage.fleet.cli(["steer", &stage.task, "use \"the\" new\nendpoint", "--timeout", "1m"]).ok();
        assert!(said.stdout.starts_with("Delivered message 1 to run 1 of t_"), "{}", said.stdout);
        let shown = stage.fleet.wait_for(&stage.task, "done");
        assert_eq!(stage.received(), ["use \"the\" new\nendpoint"]);
        assert_eq!(shown["latest_summary"], "did it", "{shown:#}");
        assert_eq!(stage.states(), ["delivered"]);
        let kinds = stage.kinds();
        assert!(
            kinds.first().unwrap() == "message_queued" && kinds.last().unwrap() == "message_delivered",
            "{kinds:?}"
        );
        let text = stage.fleet.cli(["show", &stage.task]).ok().stdout;
        assert!(text.contains("Messages to the agent") && text.contains(": delivered"), "{text}");
        let log = stage.fleet.cli(["log", &stage.task]).ok().stdout;
        assert!(log.contains("[supervisor: message 1 was taken up by the agent]"), "{log}");
        let attached = stage.fleet.cli(["attach", &stage.task, "--json"]).ok().stdout;
        let lines: Vec<Value> = attached.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // The agent's own are JSON here, and those of the supervisor stand among them as in the log.
        let texts: Vec<&str> = lines.iter().map(|line| line["line"].as_str().unwrap()).collect();
        assert!(texts.contains(&"[supervisor: message 1 was taken up by the agent]"), "{attached}");
        assert!(texts.iter().any(|text| text.starts_with('{')), "{attached}");
        assert!(
            texts.iter().all(|text| text.starts_with('{') || text.starts_with("[supervisor: message 1 ")),
            "{attached}"
        );
    }
}

#[test]
fn a_conversation_ends_with_the_turn_after_which_nobody_has_said_anything() {
    let stage = Stage::open("turn \"first\"; rest; echo over");
    assert_eq!(stage.fleet.wait_for(&stage.task, "done")["latest_summary"], "first");
    let refused = stage.fleet.cli(["steer", &stage.task, "more"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("was not delivered: it has no agent at work, its status is done"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("supervisor reopen"), "{}", refused.stderr);
}

#[test]
fn a_message_that_comes_in_the_middle_of_a_turn_may_begin_the_next_one() {
    let stage = Stage::open("wait_for go; turn first; take; confirm; wait_for on; turn second; rest");
    let sent = stage.fleet.json(["steer", &stage.task, "and the docs", "--timeout", "0s"]);
    assert_ne!(sent["state"], "delivered", "{sent:#}");
    stage.fleet.eventually("it is in its input", || (stage.states() == ["written"]).then_some(()));
    stage.show_file("go");
    stage.fleet.eventually("it is taken up", || (stage.states() == ["delivered"]).then_some(()));
    stage.show_file("on");
    assert_eq!(stage.fleet.wait_for(&stage.task, "done")["latest_summary"], "second");
}

#[test]
fn comments_of_people_reach_the_agent_and_its_own_do_not() {
    let stage = Stage::open("supervisor comment 'my own' > mine; take; confirm; turn done; rest");
    stage.fleet.cli(["comment", &stage.task, "look at the tests"]).ok();
    stage.fleet.wait_for(&stage.task, "done");
    let heard = stage.received();
    assert!(heard.len() == 1 && heard[0].ends_with("on your task:\n\nlook at the tests"), "{heard:?}");
    let shown = stage.fleet.show(&stage.task);
    assert_eq!(shown["comments"].as_array().unwrap().len(), 2, "{shown:#}");
}

#[test]
fn a_message_that_the_agent_does_not_take_up_is_sent_and_not_called_delivered() {
    let stage = Stage::open("sleep 600");
    let large = "x".repeat(100_000);
    let sent = stage.fleet.cli(["steer", &stage.task, "small", "--timeout", "1s"]).ok();
    assert!(!sent.stdout.starts_with("Delivered"), "{}", sent.stdout);
    for _ in 0..4 {
        stage.fleet.cli(["steer", &stage.task, &large, "--timeout", "0s"]).ok();
    }
    // It reads nothing, and everybody else goes on.
    let other = stage.fleet.create("beside it", "echo hi", &[]);
    assert_eq!(stage.fleet.wait_for(&other, "done")["latest_summary"], "hi");
    stage.fleet.eventually("the first is in its input", || (stage.states()[0] == "written").then_some(()));
    stage.fleet.cli(["archive", &stage.task]).ok();
    stage.fleet.wait_for(&stage.task, "archived");
    assert_eq!(stage.states(), ["not_delivered"; 5]);
    let why = stage.fleet.show(&stage.task)["messages"][0]["reason"].clone();
    assert_eq!(why, json!("its agent ended without reading it"));
}

#[test]
fn what_an_agent_confirms_that_nobody_has_said_changes_nothing() {
    let stage = Stage::open(
        "id=00000000-0000-4000-8000-000000000000
        echo '{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"'$id'\"}'; echo '{\"number\":1,\"receipt\":\"confirmed\"}'
        wait_for go; take; turn done; rest",
    );
    stage.fleet.cli(["steer", &stage.task, "x", "--timeout", "0s"]).ok();
    stage.fleet.eventually("it is in its input", || (stage.states() == ["written"]).then_some(()));
    stage.show_file("go");
    // It never confirms it, so what is known at the end is that it was written.
    stage.fleet.wait_for(&stage.task, "done");
    assert_eq!(stage.states(), ["written"]);
}

#[test]
fn a_message_is_neither_lost_nor_doubled_by_the_end_of_a_daemon() {
    let stage = Stage::open("wait_for go; take; confirm; take; confirm; turn done; rest");
    stage.fleet.kill_daemon();
    // Without a daemon it waits on the board.
    stage.fleet.cli(["comment", &stage.task, "first"]).ok();
    let refused = stage.fleet.cli(["steer", &stage.task, "x"]);
    assert_eq!(refused.code, 69, "{}", refused.stderr);
    // The next daemon dies between the run directory and the shim.
    let mut command = stage.fleet.command(["daemon"]);
    command.env("SUPERVISOR_FAIL_POINT", "after-post").stdout(std::process::Stdio::null());
    stage.fleet.adopt(command.stderr(std::process::Stdio::null()).spawn().unwrap());
    stage.fleet.reap_daemon();
    stage.fleet.start();
    stage.fleet.eventually("it is in its input", || (stage.states() == ["written"]).then_some(()));
    stage.fleet.restart();
    stage.fleet.cli(["steer", &stage.task, "last", "--timeout", "0s"]).ok();
    stage.show_file("go");
    stage.fleet.wait_for(&stage.task, "done");
    assert_eq!(stage.states(), ["delivered", "delivered"]);
    let heard = stage.received();
    assert!(heard.len() == 2 && heard[0].ends_with("first") && heard[1] == "last", "{heard:?}");
}

#[test]
fn a_lane_that_takes_no_messages_says_so_with_what_to_do() {
    let fleet = Fleet::boot();
    let task = fleet.create("plain", "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let refused = fleet.cli(["steer", &task, "x"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("its lane has no `session`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("supervisor comment"), "{}", refused.stderr);
    assert!(fleet.show(&task)["messages"].is_null());
}

#[test]
fn an_agent_that_ends_by_a_signal_or_a_code_ends_its_run_so() {
    for (script, key, value) in [("kill -9 $$", "signal", 9), ("exit 7", "exit_code", 7)] {
        let stage = Stage::open(script);
        let shown = stage.fleet.wait_for(&stage.task, "blocked");
        let run = &shown["runs"][0];
        assert_eq!((&run["outcome"], &run[key]), (&json!("crashed"), &json!(value)), "{run:#}");
    }
}

#[test]
fn a_signal_to_the_worker_reaches_the_agent_and_a_stop_reaches_it_once() {
    let stage = Stage::open(
        "trap 'echo usr1 >> got' USR1; trap 'echo term >> got; turn done; exit 0' TERM; echo armed; while :; do sleep 0.1; done",
    );
    stage.fleet.eventually("it is ready", || {
        stage.fleet.cli(["logs", &stage.task]).stdout.contains("armed").then_some(())
    });
    stage.fleet.cli(["kill", &stage.task, "--signal", "USR1"]).ok();
    let got = || fs::read_to_string(stage.workspace.join("got")).unwrap_or_default();
    stage.fleet.eventually("it has got the signal", || (got() == "usr1\n").then_some(()));
    // What would stop its relay alone is refused.
    for signal in ["STOP", "WINCH", "ALRM"] {
        let why = format!(
            "{signal} would not reach its agent, whose session takes HUP, INT, QUIT, TERM, USR1, USR2"
        );
        stage.fleet.cli(["kill", &stage.task, "--signal", signal]).refused(4, &why);
    }
    stage.fleet.cli(["reclaim", &stage.task]).ok();
    stage.fleet.eventually("its run has ended", || {
        (stage.fleet.show(&stage.task)["runs"][0]["outcome"] == "reclaimed").then_some(())
    });
    assert_eq!(got(), "usr1\nterm\n");
}

#[test]
fn a_session_whose_program_is_missing_is_a_failure_of_the_lane() {
    let fleet = Fleet::offline();
    fleet.lane("agent", &playing("").replace("/bin/sh", "no-such-agent"));
    fleet.start();
    let task = fleet.json(["create", "x", "--assignee", "agent"])["id"].as_str().unwrap().to_owned();
    let shown = fleet.eventually("it waits for the program", || {
        let shown = fleet.show(&task);
        shown["why"]["text"].as_str().is_some_and(|why| why.contains("no-such-agent")).then_some(shown)
    });
    assert_eq!(shown["task"]["consecutive_failures"], json!(0), "{shown:#}");
}

#[test]
fn what_an_agent_does_is_shown_over_its_attempts_until_the_task_is_over() {
    let work = r#"first=; [ -e again ] || first=1; : > again
        echo '{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"ls -l"}}]}}'
        echo 'a warning' >&2; [ -z "$first" ] || sleep 600
        turn 'all good'; rest"#;
    let stage = Stage::open(work);
    let shown = stage.fleet.home().join("shown");
    let mut command = stage.fleet.command(["attach", &stage.task]);
    let mut child = command.stdout(fs::File::create(&shown).unwrap()).spawn().unwrap();
    let read = || fs::read_to_string(&shown).unwrap();
    stage.fleet.eventually("the first attempt is shown", || read().contains("→ Bash ls -l").then_some(()));
    stage.fleet.cli(["reclaim", &stage.task]).ok();
    let ended = stage.fleet.eventually("it ends with the task", || child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", read());
    let all = read();
    for line in [
        "[run 1]",
        "I look.",
        "a warning",
        "[run 2]",
        "[turn ended]",
        "[run 2 ended: completed; the task is done]",
    ] {
        assert!(all.lines().any(|one| one == line), "{line}: {all}");
    }
    let raw = stage.fleet.cli(["attach", &stage.task, "--json"]).ok().stdout;
    let lines: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["run_id"] == 2), "{raw}");
    assert!(
        lines.iter().any(|line| line["line"].as_str().unwrap().starts_with("{\"type\":\"assistant\"")),
        "{raw}"
    );
}

#[test]
fn what_a_person_types_at_an_agent_reaches_it() {
    let stage = Stage::open("take; confirm; turn done; rest");
    let mut terminal = Terminal::run(&mut stage.fleet.command(["attach", &stage.task]));
    terminal.until("Press Ctrl-C");
    terminal.press("look at the tests\n");
    terminal.until("Sent message 1 to run 1.");
    terminal.until("the task is done");
    assert_eq!(terminal.end().code(), Some(0));
    assert_eq!(stage.received(), ["look at the tests"]);
    assert_eq!(stage.states(), ["delivered"]);
}

/// A program that speaks as `codex app-server` does.
const SERVER: &str = r#"
read -r line; printf '{"id":0,"result":{}}\n'
read -r line; read -r line
case $line in *thread/resume*) [ -e "$HOME/.state/t-1" ] || { printf '{"id":1,"error":{"message":"no rollout found"}}\n'; read -r line; exit 0; } ;; esac
: > "$HOME/.state/t-1"
printf '{"id":1,"result":{"thread":{"id":"t-1"},"model":"m"}}\n{"method":"thread/started","params":{"thread":{"id":"t-1"}}}\n'
take() { read -r line || exit 0; printf '%s\n' "$line" >> heard; }
confirm() { id=${line#*\"clientUserMessageId\":\"}; printf '{"method":"item/started","params":{"item":{"type":"userMessage","clientId":"%s"}}}\n' "${id%%\"*}"; }
say() { printf '{"method":"item/completed","params":{"item":{"type":"agentMessage","text":"%s"}}}\n' "$1"; }
turn() { printf '{"method":"turn/completed","params":{"turn":{"status":"completed"}}}\n'; }
take; printf '{"method":"turn/started","params":{}}\n'
"#;

#[test]
fn an_app_server_is_told_its_prompt_its_messages_and_the_session_that_it_goes_on_in() {
    let fleet = Fleet::offline();
    let script = "case $line in *'the parser'*) take; confirm; say 'did it'; supervisor block 'go on?' > /dev/null ;; *) say 'went on'; supervisor complete --summary 'went on' > /dev/null ;; esac; turn; take";
    let files = toml::Table::from_iter([("agent".to_owned(), format!("{SERVER}{script}").into())]);
    let mut lane: toml::Table = toml::from_str(
        "argv = [\"/bin/sh\", \"{home}/agent\"]\nsession = \"app-server\"\nstdout = \"codex-app-server\"\nstate = \".state\"",
    )
    .unwrap();
    lane.insert("files".to_owned(), files.into());
    fleet.lane("agent", &lane.to_string());
    fleet.start();
    let task = fleet.json(["create", "fix it", "--assignee", "agent", "--body", "the parser"]);
    let task = task["id"].as_str().unwrap().to_owned();
    fleet.eventually("it is at work", || (fleet.status_of(&task) == "running").then_some(()));
    let said = fleet.cli(["steer", &task, "and the docs", "--timeout", "1m"]).ok();
    assert!(said.stdout.starts_with("Delivered message 1"), "{}", said.stdout);
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["spent"]["session"], "t-1", "{shown:#}");
    let place = PathBuf::from(shown["task"]["workspace_path"].as_str().unwrap());
    let heard = fs::read_to_string(place.join("heard")).unwrap();
    assert!(heard.lines().count() == 2 && heard.contains("and the docs"), "{heard}");
    fleet.cli(["unblock", &task]).ok();
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "went on");
}
