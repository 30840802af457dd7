//! Profiles: who workers can be. Their files, their prompt, and the command that keeps them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Fleet, Output, Terminal};
use crate::proxy::{Server, is_possible};

/// A lane whose worker says what it was told, and ends well.
const ECHO: &str = "argv = [\"/bin/sh\", \"-c\", \"cat; echo model={model}\"]\nmodel = \"small\"\non_clean_exit = \"complete\"\norchestrator = [\"bare\"]\n";

fn warnings(output: &Output) -> String {
    output.stderr.clone()
}

#[test]
fn a_worker_of_a_profile_reads_its_role_first_and_has_its_lane_model_policy_and_account() {
    let fleet = Fleet::offline();
    fleet.lane("echo", ECHO);
    fleet.write_config(
        "profiles.d/ann.md",
        "---\nname: ann\nlane: echo\nmodel: big\npolicy: strict\naccount: hers\nlimits: {max_runtime: 7m}\n---\nYou are Ann.\n",
    );
    fleet.start();
    let id = fleet.json(["create", "write it", "--assignee", "ann", "--body", "the body"])["id"].clone();
    let id = id.as_str().unwrap();
    let shown = fleet.wait_for(id, "done");

    let run = &shown["runs"][0];
    assert_eq!((&run["profile"], &run["policy"]), (&json!("ann"), &json!("strict")), "{shown:#}");
    assert_eq!((&run["account"], &run["max_runtime_seconds"]), (&json!("hers"), &json!(420)), "{shown:#}");
    let log = fleet.cli(["log", id]).ok().stdout;
    assert!(log.starts_with("# Your role\n\nYou are Ann.\n\n# Task t_"), "{log}");
    assert!(log.contains("model=big"), "{log}");
}

#[test]
fn at_most_as_many_workers_of_a_profile_run_as_its_file_allows() {
    let fleet = Fleet::offline();
    fleet.write_config("profiles.d/one.md", "---\nlane: shell\nlimits: {max_running: 1}\n---\n");
    fleet.start();
    let gate = fleet.home().join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let make = |title: &str| {
        let args = ["create", title, "--assignee", "one", "--policy", "unconfined", "--body", &script];
        fleet.json(args)["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (make("first"), make("second"));
    fleet.wait_for(&first, "running");
    let why = fleet.eventually("the second one waits for a slot", || {
        Some(fleet.show(&second)["why"]["text"].as_str()?.to_owned()).filter(|why| why.contains("slot"))
    });
    assert_eq!(why, "waits for a slot of profile one: 1 of 1 is taken");
    fs::write(&gate, "").unwrap();
    fleet.wait_for(&second, "done");
}

#[test]
fn a_profile_is_created_with_all_that_is_said_shown_exported_and_removed() {
    let fleet = Fleet::offline();
    fleet.lane("echo", ECHO);
    fs::write(fleet.home().join("role.md"), "You are Ann.\n").unwrap();
    let create =
        ["profile", "create", "ann", "--description", "writes: a lot", "--lane", "echo", "--model", "big"];
    let more = [
        "--policy",
        "strict",
        "--account",
        "hers",
        "--max-runtime",
        "2h",
        "--max-running",
        "1",
        "--skill",
        "board-worker",
        "--role",
        "reviewer",
        "--home",
        "kept",
        "--host",
        "tools.example:443",
        "--pool",
        "gpu",
    ];
    let created = fleet.cli(create.iter().chain(&more).chain(&["--prompt-file", "role.md"])).ok();
    assert!(created.stdout.starts_with("Created ann  "), "{created:?}");
    let warned = created.stderr.lines().count() == 1 && created.stderr.contains("write gpu = 1 into [pools]");
    assert!(warned, "{created:?}");

    let shown = fleet.json(["profile", "show", "ann"]);
    let expected = json!({
        "description": "writes: a lot", "role": "reviewer", "lane": "echo", "model": "big", "policy": "strict", "account": "hers", "skills": ["board-worker"],
        "max_runtime_seconds": 7200, "max_running": 1, "pools": ["gpu"], "prompt": "You are Ann.", "home": "kept", "hosts": ["tools.example:443"], "mcp_servers": {},
        "origin": shown["profile"]["origin"],
    });
    assert_eq!(shown["profile"], expected, "{shown:#}");
    assert_eq!((&shown["lane"], &shown["cannot_run"]), (&json!("echo"), &Value::Null));
    assert!(fleet.cli(["profile", "show", "ann"]).ok().stdout.contains("You are Ann."));
    let listed = fleet.cli(["profile", "list"]).ok().stdout;
    assert!(listed.contains("ann") && listed.contains("writes: a lot"), "{listed}");
    assert!(fleet.json(["assignees"]).to_string().contains("\"ann\""));

    let again = fleet.cli(create);
    assert_eq!(again.code, 4, "{again:?}");
    let exported = fleet.cli(["profile", "export", "ann"]).ok().stdout;
    fleet.cli(["profile", "rm", "ann"]).ok();
    assert_eq!(fleet.cli(["profile", "show", "ann"]).code, 3);
    let gone = fleet.cli(["profile", "rm", "ann"]).refused(3, "there is no file");
    assert!(gone.stderr.contains("supervisor profile list"), "{}", gone.stderr);
    fleet.cli(["profile", "install", "/dev/zero", "--name", "zero"]).refused(2, "is too large for a profile");
    fleet.cli(["profile", "create", "none", "--lane", "echo"]).refused(2, "`none` means nobody");
    fs::write(fleet.home().join("back.md"), exported).unwrap();
    fleet.cli(["profile", "install", "back.md"]).ok();
    assert_eq!(fleet.json(["profile", "show", "ann"])["profile"], expected);
}

#[test]
fn a_profile_that_is_shipped_is_installed_without_a_file() {
    let fleet = Fleet::offline();
    for name in ["orchestrator", "researcher", "writer", "analyst", "reviewer", "ops"] {
        let said = fleet.cli(["profile", "install", name]).ok().stdout;
        assert_eq!(said, format!("{name} is shipped: it can be used as it is\n"));
    }
    assert_eq!(fleet.json(["profile", "install", "ops"]), json!({"name": "ops", "shipped": true}));
    fleet.cli(["profile", "install", "nobody"]).refused(3, "nobody");
}

#[test]
fn an_agent_file_of_another_program_is_installed_and_what_is_not_kept_is_said() {
    let fleet = Fleet::offline();
    let file =
        "---\nname: critic\ndescription: Reviews code.\ntools: Read, Grep\nmodel: sonnet\n---\nYou review.\n";
    fs::write(fleet.home().join("code-reviewer.md"), file).unwrap();
    let installed = fleet.cli(["profile", "install", "code-reviewer.md"]).ok();
    let said = warnings(&installed);
    assert!(said.contains("`tools: Read, Grep` is not kept"), "{said}");
    let shown = fleet.json(["profile", "show", "critic"]);
    assert_eq!((&shown["lane"], &shown["profile"]["model"]), (&json!("claude"), &json!("sonnet")));
    assert_eq!(shown["profile"]["prompt"], "You review.");

    assert_eq!(fleet.cli(["profile", "install", "code-reviewer.md"]).code, 4);
    fleet.cli(["profile", "install", "code-reviewer.md", "--force"]).ok();
    fleet.cli(["profile", "install", "code-reviewer.md", "--name", "other"]).ok();
    assert_eq!(fleet.json(["profile", "show", "other"])["name"], "other");

    fs::write(fleet.home().join("bad.md"), "---\nlane: claude\nlimit: 3\n---\n").unwrap();
    let refused = fleet.cli(["profile", "install", "bad.md"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("bad.md:3: unknown field"), "{}", refused.stderr);
    assert_eq!(fleet.cli(["profile", "install", "nothing.md"]).code, 3);
}

#[test]
fn a_running_daemon_knows_a_profile_as_soon_as_it_is_written() {
    let fleet = Fleet::boot();
    let waits = fleet.json(["create", "x", "--assignee", "smith", "--body", "true"])["id"].clone();
    let waits = waits.as_str().unwrap();
    assert_eq!(fleet.show(waits)["why"]["code"], "nonspawnable");
    fleet.cli(["profile", "create", "smith", "--lane", "shell"]).ok();
    fleet.wait_for(waits, "done");

    let unfit = fleet.cli(["profile", "create", "carl", "--lane", "shell", "--model", "m"]).ok();
    assert!(warnings(&unfit).contains("nothing runs its tasks for now: the profile `carl`"), "{unfit:?}");
}

#[test]
fn a_bad_profile_disables_itself_alone_and_what_was_read_before_stays() {
    let fleet = Fleet::offline();
    fleet.write_config("profiles.d/ann.md", "---\nlane: shell\n---\n");
    fleet.start();
    fleet.write_config("profiles.d/ann.md", "---\nlane: shell\nlimits:\n  max_runing: 3\n---\n");
    fleet.write_config("profiles.d/bob.md", "---\nlane: shell\n");
    fleet.signal(Signal::SIGHUP);
    let words = "profiles.d/ann.md:4 (max_runing): unknown field";
    fleet.eventually("the daemon says what is wrong", || {
        let status = fleet.cli(["status", "--json"]).json();
        status["problems"].to_string().contains("unknown field `max_runing`").then_some(())
    });
    let doctor = fleet.cli(["doctor"]);
    let joined = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains(words) && joined.contains("profiles.d/bob.md:1: its front matter has no end"),
        "{joined}"
    );
    assert!(fleet.cli(["diagnostics"]).ok().stdout.contains("ann.md"));
    let make = |assignee: &str| {
        fleet.json(["create", "x", "--assignee", assignee, "--body", "true"])["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (kept, disabled) = (make("ann"), make("bob"));
    fleet.wait_for(&kept, "done");
    let why = fleet.show(&disabled)["why"]["text"].as_str().unwrap().to_owned();
    assert!(why.starts_with("waits for the profile bob, which is disabled"), "{why}");
}

#[test]
fn the_shipped_roster_is_on_the_configured_lane_and_what_is_configured_goes_before_it() {
    let fleet = Fleet::offline();
    fleet.lane("echo", ECHO);
    fleet.configure("[worker]\nlane = \"echo\"\n");
    let listed = fleet.json(["profile", "list"]);
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "analyst",
            "backend-eng",
            "decomposer",
            "ops",
            "orchestrator",
            "overseer",
            "planner",
            "researcher",
            "reviewer",
            "router",
            "specifier",
            "writer"
        ]
    );
    for one in listed.as_array().unwrap() {
        assert_eq!((&one["lane"], &one["cannot_run"]), (&json!("echo"), &Value::Null), "{one:#}");
    }
    let text = fleet.cli(["profile", "export", "writer"]).ok().stdout;
    fs::write(fleet.home().join("writer.md"), text.replace("You are a writer.", "You are Ann.")).unwrap();
    fleet.cli(["profile", "install", "writer.md"]).ok();
    let prompt = |name: &str| fleet.json(["profile", "show", name])["profile"]["prompt"].to_string();
    assert!(prompt("writer").contains("You are Ann."));
    fleet.cli(["profile", "rm", "writer"]).ok();
    assert!(prompt("writer").contains("You are a writer."));

    fleet.lane("writer", ECHO);
    let is_lane = fleet.cli(["profile", "show", "writer"]);
    assert_eq!(is_lane.code, 3);
    assert!(is_lane.stderr.contains("it is a lane: `supervisor lane show writer`"), "{}", is_lane.stderr);
    fleet.start();
    let id = fleet.json(["create", "write it", "--assignee", "ops", "--body", "b"])["id"].clone();
    fleet.wait_for(id.as_str().unwrap(), "done");
    let log = fleet.cli(["log", id.as_str().unwrap()]).ok().stdout;
    assert!(log.starts_with("# Your role\n\nYou are an operator of running systems."), "{log}");
}

#[test]
fn create_and_assign_warn_of_an_assignee_that_nothing_runs() {
    let fleet = Fleet::boot();
    fleet.lane("gone", "argv = [\"no-such-agent\"]\n");
    fleet.write_config("profiles.d/ann.md", "---\nlane: gone\n---\n");
    fleet.signal(Signal::SIGHUP);
    fleet.eventually("the daemon knows the profile", || {
        fleet.json(["assignees"]).to_string().contains("\"ann\"").then_some(())
    });
    let words = "the program `no-such-agent` of the lane gone was not found: install it";
    let created = fleet.cli(["create", "x", "--assignee", "ann", "--body", "b", "--not-before", "2h"]).ok();
    assert!(warnings(&created).contains(words), "{created:?}");
    let id = fleet.json(["create", "x", "--triage", "--body", "true"])["id"].as_str().unwrap().to_owned();
    let assigned = fleet.cli(["assign", &id, "ann"]).ok();
    assert!(warnings(&assigned).contains(words), "{assigned:?}");
    assert!(fleet.json(["assign", &id, "ann"])["warnings"].to_string().contains("no-such-agent"));
    let misspelt = fleet.cli(["assign", &id, "sell"]).ok();
    assert!(warnings(&misspelt).contains("did you mean `shell`? The assignees are: "), "{misspelt:?}");
    let idea = fleet.json(["create", "x", "--triage", "--assignee", "ann", "--body", "b"])["id"].clone();
    let promoted = fleet.cli(["promote", idea.as_str().unwrap()]).ok();
    assert!(promoted.stdout.contains(words), "{promoted:?}");
    let mentioned = fleet.cli(["comment", &id, "@ann look"]).ok();
    assert!(warnings(&mentioned).contains(words), "{mentioned:?}");
    fleet.cli(["consult", "ann", "how?"]).refused(4, "nobody would answer: the program `no-such-agent`");
    let unknown = fleet.cli(["assign", &id, "ghost"]).ok();
    assert!(warnings(&unknown).contains("no profile or lane `ghost` exists here"), "{unknown:?}");
    fleet.write_config("lanes.d/late.toml", "argv = [\"true\"]\n");
    let unread = "late.toml is not read yet: supervisor service reload";
    let late = fleet.cli(["assign", &id, "late"]).ok();
    assert!(warnings(&late).contains(unread), "{late:?}");
    fleet.cli(["lane", "show", "late"]).refused(3, unread);
    fleet.write_config("profiles.d/later.md", "---\nlane: shell\n---\n");
    fleet.cli(["profile", "show", "later"]).refused(3, "later.md is not read yet: supervisor service reload");
    fleet.lane("talks", "argv = [\"true\"]\ntools = \"claude\"\n[files]\nservers = \"{tools}\"\n");
    fleet.write_config("profiles.d/bob.md", "---\nlane: talks\n---\n");
    fleet.write_config("profiles.d/cid.md", "---\nlane: talks\nskills: [board-worker]\n---\n");
    fleet.cli(["service", "reload"]).ok();
    let unskilled = fleet.cli(["assign", &id, "bob"]).ok();
    assert!(warnings(&unskilled).contains("write `skills: [board-worker]` into its file"), "{unskilled:?}");
    for assignee in ["cid", "talks", "shell"] {
        assert_eq!(warnings(&fleet.cli(["assign", &id, assignee]).ok()), "", "{assignee}");
    }
    assert_eq!(fleet.json(["assign", &id, "none"])["warnings"], Value::Null);
}

#[test]
fn a_profile_has_servers_of_tools_beside_the_boards_and_hosts_beside_its_lanes() {
    let fleet = Fleet::offline();
    if !is_possible(&fleet) {
        return;
    }
    let (own, other) = (Server::start(), Server::start());
    let lane = "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n\
                policy = \"agent\"\ntools = \"claude\"\n[files]\n\"servers.json\" = \"{tools}\"\n";
    fleet.lane("agent", lane);
    fleet.lane("bare", &lane.replace("tools = \"claude\"\n[files]\n\"servers.json\" = \"{tools}\"\n", ""));
    let front = format!(
        "hosts: ['127.0.0.1:{}']\nmcp_servers:\n  git: {{command: git-mcp, args: [-v], env: [GIT_KEY]}}\n",
        own.port
    );
    fleet.write_config("profiles.d/ann.md", &format!("---\nlane: agent\n{front}---\n"));
    fleet.write_config("profiles.d/bob.md", "---\nlane: agent\n---\n");
    fleet.write_config("profiles.d/eve.md", &format!("---\nlane: bare\n{front}---\n"));
    fleet.start();
    let script = format!(
        "reach() {{ curl -s -f -m 20 -o /dev/null $1 && echo yes || echo no; }}
         echo $(reach {}) $(reach {}) $(grep -o '\"[a-z]*\":{{\"args\"' $HOME/servers.json | tr -d '\":{{')",
        own.url("a"),
        other.url("b")
    );
    let ran = |who: &str| {
        let task = fleet.json(["create", "x", "--assignee", who, "--body", &script])["id"].clone();
        let shown = fleet.wait_for(task.as_str().unwrap(), "done");
        shown["latest_summary"].as_str().unwrap().trim().to_owned()
    };
    assert_eq!(ran("ann"), "yes no boardargs gitargs");
    assert_eq!(ran("bob"), "no no boardargs");
    let unfit = fleet.json(["profile", "show", "eve"])["cannot_run"].as_str().unwrap().to_owned();
    assert!(unfit.contains("the profile's `mcp_servers` have no effect"), "{unfit}");
    let shown = fleet.cli(["profile", "show", "ann"]).ok().stdout;
    assert!(
        shown.contains("git (git-mcp -v)") && shown.contains(&format!("127.0.0.1:{}", own.port)),
        "{shown}"
    );
    // The import of a file from elsewhere prints what it lets workers do.
    let text = fleet.cli(["profile", "export", "ann"]).ok().stdout;
    fs::write(fleet.home().join("new.md"), text).unwrap();
    let installed = fleet.cli(["profile", "install", "new.md"]).ok().stderr;
    assert!(
        installed.contains("its workers reach 127.0.0.1:") && installed.contains("the tools of `git`"),
        "{installed}"
    );
}

#[test]
fn a_profile_does_not_take_the_tasks_of_a_lane_by_its_name_alone() {
    let fleet = Fleet::offline();
    let refused = fleet.cli(["profile", "create", "codex"]).refused(4, "`codex` is a lane");
    assert!(refused.stderr.contains("--lane codex"), "{refused:?}");
    let created = fleet.cli(["profile", "create", "codex", "--lane", "codex"]).ok();
    assert!(
        created.stderr.contains("the tasks of the lane `codex` have this profile from now on"),
        "{created:?}"
    );
    fleet.cli(["profile", "rm", "writer"]).refused(4, "is shipped, and cannot be removed");
    fleet.cli(["profile", "rm", "codex"]).ok();
}

#[test]
fn a_text_that_an_editor_has_left_and_is_refused_is_kept() {
    let fleet = Fleet::offline();
    fleet.cli(["profile", "create", "ann", "--lane", "shell"]).ok();
    let editor = fleet.home().join("editor");
    fs::write(&editor, "#!/bin/sh\nprintf -- '---\\nlime: 3\\n---\\nmy text\\n' > \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fleet.command(["profile", "edit", "ann"]);
    let mut terminal = Terminal::run(command.env("EDITOR", &editor).env("TMPDIR", fleet.home()));
    terminal.until("unknown field");
    terminal.until("your text is in ");
    assert_eq!(terminal.end().code(), Some(2));
    let kept = fs::read_dir(fleet.home()).unwrap().flatten().map(|entry| entry.path());
    let kept: Vec<_> = kept.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(fs::read_to_string(&kept[0]).unwrap().contains("my text"));
}

#[test]
fn a_list_says_which_profiles_nothing_runs_for_and_why() {
    let fleet = Fleet::offline();
    fleet.lane("gone", "argv = [\"no-such-agent\"]\n");
    fleet.write_config("profiles.d/ann.md", "---\nlane: gone\n---\n");
    let listed = fleet.cli(["profile", "list"]).ok().stdout;
    let ann = listed.lines().find(|line| line.starts_with("ann")).unwrap();
    assert!(ann.contains(" no "), "{listed}");
    assert!(
        listed.contains("Nothing runs for ann: the program `no-such-agent` of the lane gone"),
        "{listed}"
    );
    let lane = Output::of(fleet.command(["lane", "show", "gemini"]).env("COLUMNS", "80")).ok().stdout;
    for words in ["exit codes", "login 41 52", "rate limit    account for 5m", "retry limit", "keeps"] {
        assert!(lane.contains(words), "{words}: {lane}");
    }
    assert!(lane.lines().all(|line| line.chars().count() <= 80), "{lane}");
}
