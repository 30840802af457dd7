//! The real programs of agents, each through the daemon and its sandbox, with no network but loopback, against a provider that plays a script.
//!
//! A program that is not installed is a skip: `tests/run --lanes` installs them. Those whose lane has a `session` are steered in the middle of a
//! turn as well.
//!
//! A script in the place of a program would hold only the beliefs of its author. The position in a scene is read from
//! the tool results of a request, so a repeated request gets the same answer. The thread of a test has a network
//! namespace with a loopback interface alone, and keys are dummies. A line of a program that a lane misread becomes a
//! test of its format, which needs no program.

mod dialects;
mod equipped;
mod mended;
mod programs;
mod provider;

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use self::equipped::{directs, has_its_skill, is_not_led_by_a_repository};
use self::mended::mends_a_test_with_a_key_that_it_never_has;
use self::programs::Program;
use self::provider::{Act, Provider};
use crate::harness::{Fleet, Repository};

/// Time limit for a test with an agent. The limits inside are far shorter, and the limit of the task ends it earlier.
const LIMIT: Duration = Duration::from_mins(5);
/// The same as a limit of a task, which has to be the shorter one.
const MAX_RUNTIME: &str = "4m";
/// Longest time without output of an agent.
const IDLE_LIMIT: &str = "45s";

/// A task of an agent, and the provider that it asks.
struct Stage {
    fleet: Fleet,
    provider: Provider,
    lane: &'static str,
    task: String,
}

impl Stage {
    /// Begins a task whose model plays a script. None where the host lacks what it needs.
    fn open(program: &Program, script: &[Act]) -> Option<Self> {
        Self::open_as(program, program.lane, script)
    }

    /// The same for a profile in the lane of the program: `lead` is an orchestrator, and `tidier` has a skill.
    fn open_as(program: &Program, assignee: &str, script: &[Act]) -> Option<Self> {
        Self::open_in(program, assignee, script, |_| None)
    }

    /// The same in a repository.
    fn open_in(
        program: &Program,
        assignee: &str,
        script: &[Act],
        repository: impl FnOnce(&Fleet) -> Option<Repository>,
    ) -> Option<Self> {
        if !programs::leave_the_network() {
            return None;
        }
        let provider = Provider::play(script);
        let fleet = program.fleet(provider.port(), IDLE_LIMIT)?;
        let lead = format!(
            "---\nrole: orchestrator\nlane: {}\npolicy: orchestrate\nskills: [board-orchestrator]\n---\nYou direct.\n",
            program.lane
        );
        fleet.write_config("profiles.d/lead.md", &lead);
        fleet.write_config(
            "profiles.d/tidier.md",
            &format!("---\nlane: {}\nskills: [tidy]\n---\n", program.lane),
        );
        let skill = "---\nname: tidy\ndescription: How the zebra house is tidied\n---\nBegin at the top.\n";
        std::fs::create_dir_all(fleet.root().join("skills.d/tidy")).unwrap();
        fleet.write_config("skills.d/tidy/SKILL.md", skill);
        fleet.start();
        let workspace = repository(&fleet).map_or_else(|| "scratch".to_owned(), |one| one.workspace());
        let task = create(&fleet, assignee, &workspace);
        Some(Stage { fleet, provider, lane: program.lane, task })
    }

    /// Waits until something is so of the task, and returns all about it.
    #[track_caller]
    fn until(&self, what: &str, look: impl Fn(&Value) -> bool) -> Value {
        let shown = self.fleet.eventually_within(LIMIT, what, || {
            let shown = self.fleet.show(&self.task);
            let run = &shown["runs"][0];
            // Whatever else is awaited, a run that has ended otherwise does not come to it.
            let is_over = run["outcome"].is_string();
            (look(&shown) || is_over).then_some(shown)
        });
        assert!(look(&shown), "it is not so that {what}\n{}", self.state(&shown));
        shown
    }

    /// Waits until the first run has ended, and checks that it left nothing.
    #[track_caller]
    fn ended(&self, outcome: &str) -> Value {
        let shown =
            self.until(&format!("its run is {outcome}"), |shown| shown["runs"][0]["outcome"] == outcome);
        let marker = format!("SUPERVISOR_RUN_ID={}", shown["runs"][0]["id"]);
        let left = self.fleet.processes_with(&marker);
        assert!(left.is_empty(), "left over: {left:#?}");
        shown
    }

    /// Waits for the end of an agent that does not say why it cannot go on: a failure of its task, within its limits.
    #[track_caller]
    fn gives_up(&self) {
        let shown = self.until("its run has ended", |shown| shown["runs"][0]["outcome"].is_string());
        let outcome = shown["runs"][0]["outcome"].as_str().unwrap();
        assert!(["crashed", "stalled"].contains(&outcome), "{}", self.state(&shown));
        self.ended(outcome);
    }

    /// Waits until the agent has sent a request with this number of tool results, and returns the processes of its run.
    #[track_caller]
    fn asked(&self, results: usize) {
        self.until("it asks its provider", |_| {
            self.provider.asked().iter().any(|asked| asked.results == results)
        });
    }

    /// Sends a signal to all processes of its program.
    fn signal(&self, signal: Signal) {
        let marker = format!("SUPERVISOR_TASK={}", self.task);
        let workers = self.fleet.processes_with(&marker);
        // Those of the supervisor itself, such as `supervisor __kanban`, are not of the program.
        let is_own = |command: &str| command.split(' ').nth(1).is_some_and(|word| word.starts_with("__"));
        let workers: Vec<_> = workers.iter().filter(|process| !is_own(&process.command)).collect();
        assert!(!workers.is_empty());
        for worker in workers {
            // It may have ended with its parent.
            let _: nix::Result<()> = kill(Pid::from_raw(worker.pid), signal);
        }
    }

    /// Describes the state for a failure message.
    fn state(&self, shown: &Value) -> String {
        let asked: Vec<_> = self.provider.asked().iter().map(|asked| asked.results).collect();
        let log = self.fleet.cli(["log", &self.task]);
        let last: Value = self
            .provider
            .asked()
            .last()
            .and_then(|asked| serde_json::from_str(&asked.body).ok())
            .unwrap_or_default();
        let conversation =
            ["messages", "input", "contents"].iter().map(|key| last[*key].to_string()).collect::<String>();
        let end = conversation.floor_char_boundary(conversation.len().saturating_sub(3000));
        format!(
            "{shown:#}\n--- asked {asked:?}, and {:?}\n--- the end of the last conversation\n{}\n--- log of {}\n{}{}",
            self.provider.others(),
            &conversation[end..],
            self.lane,
            log.stdout,
            log.stderr
        )
    }
}

fn create(fleet: &Fleet, lane: &str, workspace: &str) -> String {
    let words = [
        "create",
        "Write the file",
        "--assignee",
        lane,
        "--body",
        "Write a word into out.txt.",
        "--workspace",
        workspace,
        "--max-runtime",
        MAX_RUNTIME,
        "--max-retries",
        "1",
    ];
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

fn run(command: &str) -> Act {
    Act::Run(command.to_owned())
}

/// The model does what the prompt says, by the command of the board.
fn works(program: &Program) {
    let script = [
        run("supervisor comment 'I have looked'"),
        run("echo word > out.txt && supervisor complete --summary 'wrote the word' --artifact out.txt"),
        Act::Say("Done."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("completed");
    assert_eq!(
        (&shown["task"]["status"], &shown["latest_summary"]),
        (&json!("done"), &json!("wrote the word"))
    );
    assert_eq!(shown["comments"][0]["body"], "I have looked", "{shown:#}");
    // What it was asked for is in its first request.
    let first = &stage.provider.asked()[0].body;
    assert!(
        stage.provider.asked().iter().any(|asked| asked.body.contains("Write a word into out.txt.")),
        "{first}"
    );
}

/// The model works with the board that its program brings: what it does there is done on the true one.
fn works_on_its_own_board(program: &Program) {
    let script = [
        Act::Call("kanban_heartbeat", json!({"note": "half of it"})),
        Act::Call(
            "kanban_create",
            json!({"title": "test the word", "assignee": "nobody", "body": "read out.txt"}),
        ),
        run("echo word > out.txt"),
        Act::Call(
            "kanban_complete",
            json!({"summary": "wrote the word", "metadata": {"words": 1}, "artifacts": ["out.txt"]}),
        ),
        Act::Say("Done."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("completed");
    let said = (&shown["latest_summary"], &shown["runs"][0]["metadata"]["words"]);
    assert_eq!(said, (&json!("wrote the word"), &json!(1)), "{}", stage.state(&shown));
    assert!(shown["events"].to_string().contains("half of it"), "{}", stage.state(&shown));
    assert!(shown["attachments"].to_string().contains("out.txt"), "{}", stage.state(&shown));
    let listed = stage.fleet.json(["list", "--assignee", "nobody"]);
    assert_eq!(listed[0]["title"], "test the word", "{listed:#}");
    assert_eq!(shown["comments"].as_array().map(Vec::len), Some(0), "nothing was refused: {shown:#}");
}

/// The use of an agent is recorded even if the worker itself told the board how it ended.
fn is_counted(program: &Program) {
    let Some(stage) = Stage::open(program, &[Act::Say("I have thought about it.")]) else { return };
    let shown = stage.ended("unreported");
    let spent = &shown["runs"][0]["spent"];
    let is_counted = spent["session"].is_string() && spent["input_tokens"].as_u64() > Some(0);
    assert_eq!(is_counted, program.tells_usage, "{}", stage.state(&shown));
}

/// The sandbox refuses the model something, and the model reports it.
fn is_refused_a_tool(program: &Program) {
    let script = [
        run("echo word > /etc/agent-was-here"),
        run("supervisor block 'may not write /etc' --kind capability"),
        Act::Say("I am stuck."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("blocked");
    assert_eq!(
        (&shown["task"]["status"], &shown["task"]["block_kind"]),
        (&json!("blocked"), &json!("capability"))
    );
    assert!(!std::path::Path::new("/etc/agent-was-here").exists());
    let told = stage.provider.asked().into_iter().find(|asked| asked.results == 1).unwrap().body;
    assert!(told.contains("agent-was-here"), "{told}");
}

/// The model says that it is done, and has told the board nothing.
fn lies(program: &Program) {
    let script = [Act::Say("I have written the word into out.txt. The task is complete.")];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("unreported");
    assert_ne!(shown["task"]["status"], "done", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], 1, "{shown:#}");
    let is_reminded = |asked: &provider::ProviderRequest| asked.body.contains("This run has no verdict yet.");
    let is_reminded = stage.provider.asked().iter().any(is_reminded);
    assert_eq!(is_reminded, program.has_hook(), "{}", stage.state(&shown));
}

/// The provider does not accept the key: no failure of the task.
fn has_no_login(program: &Program) {
    let Some(stage) = Stage::open(program, &[Act::Refuse { status: 401, retry_after: None }]) else { return };
    if !program.tells_login {
        return stage.gives_up();
    }
    let shown = stage.until("it waits for a login", |shown| {
        shown["why"]["text"].as_str().is_some_and(|why| why.contains("waits for the login of account"))
    });
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{}", stage.state(&shown));
    let holds = stage.fleet.json(["holds"]);
    assert_eq!(holds[0]["kind"], "login", "{holds:#}");
}

/// The provider has had too many requests: no failure of the task. Returns the seconds for which it is held.
#[track_caller]
fn is_held(program: &Program, status: u16, retry_after: Option<u32>) -> Option<i64> {
    let stage = Stage::open(program, &[Act::Refuse { status, retry_after }])?;
    let is_told = match (status, retry_after) {
        (429, None) => program.tells_refusals,
        (429, Some(_)) => program.tells_limits,
        _ => program.tells_outages,
    };
    if !is_told {
        stage.gives_up();
        return None;
    }
    let shown = stage.ended("rate_limited");
    assert_eq!(shown["task"]["status"], "scheduled", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    let (ended, until) = (&shown["runs"][0]["ended_at"], &shown["task"]["not_before"]);
    Some(until.as_i64().unwrap() - ended.as_i64().unwrap())
}

fn meets_a_limit_with_a_reset(program: &Program) {
    if let Some(pause) = is_held(program, 429, Some(3600)) {
        assert!((200..=3601).contains(&pause), "{pause}");
    }
}

fn meets_a_limit_without_a_reset(program: &Program) {
    if let Some(pause) = is_held(program, 429, None) {
        assert!((299..=301).contains(&pause), "{pause}");
    }
}

/// The provider fails at each request: no failure of the task, which is soon tried again.
fn meets_an_outage(program: &Program) {
    if let Some(pause) = is_held(program, 500, None) {
        assert!((59..=61).contains(&pause), "{pause}");
    }
}

/// The provider breaks the connection in the middle of each answer.
fn is_cut_off(program: &Program) {
    let Some(stage) = Stage::open(program, &[Act::Cut]) else { return };
    let shown = stage.until("its run has ended", |shown| shown["runs"][0]["outcome"].is_string());
    let outcome = shown["runs"][0]["outcome"].as_str().unwrap();
    assert!(
        ["rate_limited", "crashed", "stalled", "unreported"].contains(&outcome),
        "{}",
        stage.state(&shown)
    );
    assert_ne!(shown["task"]["status"], "done");
}

/// The provider takes the request and never answers: the silence ends the run.
fn hangs(program: &Program) {
    let Some(stage) = Stage::open(program, &[Act::Hang]) else { return };
    let shown = stage.ended("stalled");
    assert_eq!(shown["task"]["status"], "blocked", "{shown:#}");
}

/// The agent is killed while it works.
fn crashes(program: &Program) {
    let Some(stage) = Stage::open(program, &[run("echo begun"), Act::Hang]) else { return };
    stage.asked(1);
    stage.signal(Signal::SIGKILL);
    stage.ended("crashed");
}

/// The agent is asked to end while it works; whatever it exits with, its task is not done.
fn is_terminated(program: &Program) {
    let Some(stage) = Stage::open(program, &[run("echo begun"), Act::Hang]) else { return };
    stage.asked(1);
    stage.signal(Signal::SIGTERM);
    let shown = stage.until("its run has ended", |shown| shown["runs"][0]["outcome"].is_string());
    let outcome = shown["runs"][0]["outcome"].as_str().unwrap();
    assert!(["crashed", "unreported"].contains(&outcome), "{}", stage.state(&shown));
    stage.ended(outcome);
}

/// A person ends the run while the agent works.
fn is_reclaimed(program: &Program) {
    let Some(stage) = Stage::open(program, &[run("echo begun"), Act::Hang]) else { return };
    stage.asked(1);
    stage.fleet.cli(["reclaim", &stage.task]).ok();
    stage.ended("reclaimed");
}

/// A person says something while the agent works: its model hears it in the same turn or in the next one, once.
fn is_steered_in_the_middle_of_a_turn(program: &Program) {
    const WORD: &str = "ZEBRA-17";
    let script = [
        run("until [ -e go ]; do sleep 0.1; done"),
        run("supervisor complete --summary 'heard it'"),
        Act::Say("Done."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    stage.asked(0);
    let sent = stage.fleet.json(["steer", &stage.task, &format!("the word is {WORD}"), "--timeout", "0s"]);
    assert_eq!(sent["number"], 1, "{sent:#}");
    if program.hears_at_once {
        stage.until("it is in the agent's input", |shown| {
            ["written", "delivered"].iter().any(|state| shown["messages"][0]["state"] == *state)
        });
    }
    let workspace = stage.fleet.show(&stage.task)["task"]["workspace_path"].as_str().unwrap().to_owned();
    std::fs::write(std::path::Path::new(&workspace).join("go"), "").unwrap();
    let shown = stage.ended("completed");
    assert_eq!(shown["messages"][0]["state"], "delivered", "{}", stage.state(&shown));
    let asked = stage.provider.asked();
    let heard: Vec<_> = asked.iter().map(|asked| asked.body.matches(WORD).count()).collect();
    assert!(
        heard.contains(&1) && heard.iter().all(|count| *count <= 1),
        "{heard:?}\n{}",
        stage.state(&shown)
    );
}

/// A task that is tried again goes on in its session: its model has what it had heard, which its new prompt does not repeat.
fn is_resumed(program: &Program) {
    let goes_on =
        Act::RunIfHeard("with a zebra", "supervisor complete --summary 'went on' || true".to_owned());
    let script = [
        run("supervisor block 'which word?' --kind needs_input"),
        goes_on.clone(),
        // Gemini CLI sends a result twice when it goes on.
        goes_on,
        Act::Say("Done."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("blocked");
    let (before, session) = (stage.provider.asked().len(), shown["runs"][0]["spent"]["session"].clone());
    stage.fleet.cli(["comment", &stage.task, "try it with a zebra"]).ok();
    stage.fleet.cli(["unblock", &stage.task]).ok();
    let shown = stage.fleet.eventually_within(LIMIT, "its second run has ended", || {
        let shown = stage.fleet.show(&stage.task);
        shown["runs"][1]["outcome"].is_string().then_some(shown)
    });
    let ending = (&shown["runs"][1]["outcome"], &shown["latest_summary"]);
    assert_eq!(ending, (&json!("completed"), &json!("went on")), "{}", stage.state(&shown));
    assert!(
        session.is_string() && shown["runs"][1]["spent"]["session"] == session,
        "{}",
        stage.state(&shown)
    );
    let asked = stage.provider.asked().split_off(before);
    let goes_on = |asked: &provider::ProviderRequest| {
        asked.results >= 1 && asked.body.matches("Write a word into out.txt.").count() == 1
    };
    assert!(asked.iter().any(goes_on), "{}", stage.state(&shown));
}

/// A new task begins from the session of one that is done: its model has what that agent had heard, and the other session goes on without it.
fn is_forked(program: &Program) {
    let script = [
        run("echo word > out.txt"),
        run("supervisor complete --summary 'wrote the word'"),
        // The fork begins with the two results of its origin.
        Act::RunIfHeard("with a zebra", "supervisor complete --summary 'tried it'".to_owned()),
        Act::Say("Done."),
    ];
    let Some(stage) = Stage::open(program, &script) else { return };
    let shown = stage.ended("completed");
    let origin = shown["runs"][0]["spent"]["session"].as_str().unwrap_or_default().to_owned();
    let before = stage.provider.asked().len();
    let fork = stage.fleet.json(["fork", &stage.task, "now try it with a zebra"]);
    let fork = Stage { task: fork["id"].as_str().unwrap().to_owned(), ..stage };
    let shown = fork.ended("completed");
    assert_eq!(shown["latest_summary"], "tried it", "{}", fork.state(&shown));
    let asked = fork.provider.asked().split_off(before);
    let knows = |asked: &provider::ProviderRequest| {
        ["Write a word into out.txt.", "now try it with a zebra"]
            .iter()
            .all(|words| asked.body.contains(words))
    };
    assert!(asked.iter().any(knows), "{}", fork.state(&shown));
    let session = &shown["runs"][0]["spent"]["session"];
    assert!(session.is_string() && *session != *origin, "{origin}: {}", fork.state(&shown));
}

/// Every program plays every scene, and some play more.
macro_rules! scenes {
    ($program:ident: $module:ident $(, $more:ident)*) => {
        mod $module {
            use super::programs::$program as PROGRAM;

            scenes!(@ works, has_its_skill, is_counted, is_refused_a_tool, lies, has_no_login, meets_a_limit_with_a_reset,
                meets_a_limit_without_a_reset, meets_an_outage, is_cut_off, hangs, crashes, is_terminated, is_reclaimed $(, $more)*);
        }
    };
    (@ $($scene:ident),+) => {
        $(#[test]
        fn $scene() {
            super::$scene(&PROGRAM);
        })+
    };
}

scenes!(CLAUDE: claude, mends_a_test_with_a_key_that_it_never_has, directs, is_steered_in_the_middle_of_a_turn, is_resumed, is_forked);
scenes!(CODEX: codex, mends_a_test_with_a_key_that_it_never_has, directs, is_resumed, is_forked);
scenes!(CODEX_SESSION: codex_session, is_steered_in_the_middle_of_a_turn);
scenes!(GEMINI: gemini, mends_a_test_with_a_key_that_it_never_has, directs, is_not_led_by_a_repository, is_resumed);
scenes!(GEMINI_SESSION: gemini_session, is_not_led_by_a_repository, is_steered_in_the_middle_of_a_turn);
scenes!(OPENCODE: opencode, mends_a_test_with_a_key_that_it_never_has, directs, is_resumed);
scenes!(HERMES: hermes, directs, is_resumed, works_on_its_own_board);
