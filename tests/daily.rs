//! The verbs of every day: run a command and wait for it, read what it wrote, find out how it ended.

use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{Fleet, Output, Terminal, User};

/// A script that goes on until a file `go` lies in its workspace.
pub(crate) const GATED: &str = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over";

/// The workspace of the first run of a task, as soon as it has written something.
pub(crate) fn begun(fleet: &Fleet, task: &str) -> String {
    fleet.eventually("the run has begun", || {
        let path = fleet.show(task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        fleet.cli(["logs", task]).stdout.contains("begun").then_some(path)
    })
}

fn open(workspace: &str) {
    std::fs::write(Path::new(workspace).join("go"), "").unwrap();
}

fn spawned(fleet: &Fleet, args: &[&str]) -> Child {
    fleet.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A line, and not a byte more: the rest is read by others.
fn first_line(source: &mut impl Read) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\n") && source.read(&mut byte).unwrap() == 1 {
        line.extend(byte);
    }
    String::from_utf8(line).unwrap()
}

/// The exit code and the two outputs of a command that was started before.
fn ended(child: Child) -> (i32, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn run_shows_what_a_command_writes_and_ends_as_it_does() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let ok = fleet.cli(["run", "--", "echo", "a  b", "$HOME"]).ok();
        assert_eq!(ok.stdout, "a  b $HOME\n");
        let failed = fleet.cli(["run", "echo out; echo err >&2; exit 7"]);
        assert_eq!((failed.code, failed.stdout.lines().count()), (7, 2), "{failed:?}");
        assert!(
            failed.stderr.contains("exit code 7") && failed.stderr.contains("supervisor show t_"),
            "{failed:?}"
        );
        let task = fleet.json(["list", "--sort", "created"])[1].clone();
        assert_eq!(
            (&task["title"], &task["status"]),
            (&json!("echo out; echo err >&2; exit 7"), &json!("blocked"))
        );
        assert_eq!(fleet.json(["runs", task["id"].as_str().unwrap()]).as_array().unwrap().len(), 1);
        assert_eq!(fleet.cli(["run", "kill -9 $$"]).code, 137);
        let blocked = fleet.cli(["run", "supervisor block 'which one?'; sleep 100"]);
        assert_eq!(blocked.code, 5, "{blocked:?}");
        assert!(blocked.stderr.contains("which one?"), "{blocked:?}");
        assert!(!blocked.stderr.contains("?;"), "{blocked:?}");
    }
}

#[test]
fn run_ends_with_75_as_its_command_does_and_a_task_that_is_tried_again_says_what_it_waits_for() {
    let fleet = Fleet::boot();
    let failed = fleet.cli(["run", "--", "sh", "-c", "exit 75"]);
    assert_eq!(failed.code, 75, "{failed:?}");
    assert!(
        failed.stderr.contains("exit code 75") && failed.stderr.contains("supervisor retry t_"),
        "{failed:?}"
    );

    let task = fleet.cli(["run", "--detach", "--max-retries", "2", "exit 75"]).ok().stdout;
    let shown = fleet.wait_for(task.trim(), "scheduled");
    let why = shown["why"]["text"].as_str().unwrap();
    assert!(why.ends_with(": its last run was rate limited (exit code 75)"), "{why}");
}

#[test]
fn what_run_is_told_is_what_the_task_has() {
    let fleet = Fleet::boot();
    let line = "run --title t --tenant acme --policy strict --priority 3 --max-runtime 5m --max-retries 2";
    let failed = fleet.cli([line.split(' ').collect::<Vec<_>>(), vec!["--", "false"]].concat());
    assert_eq!(failed.code, 1, "{failed:?}");
    let task = fleet.json(["list"])[0].clone();
    assert_eq!(
        (&task["title"], &task["tenant"], &task["policy"]),
        (&json!("t"), &json!("acme"), &json!("strict"))
    );
    assert_eq!((&task["priority"], &task["max_runtime_seconds"]), (&json!(3), &json!(300)), "{task:#}");
    assert_eq!(fleet.json(["runs", task["id"].as_str().unwrap()]).as_array().unwrap().len(), 2);
    assert_eq!(fleet.cli(["run", "--max-runtime", "1s", "sleep 100"]).code, 124);
}

#[test]
fn run_detached_prints_the_id_and_wait_ends_as_the_task_does() {
    let fleet = Fleet::boot();
    let id = |args: &[&str]| fleet.cli(args).ok().stdout.trim().to_owned();
    let (good, bad) = (id(&["run", "--detach", "--", "true"]), id(&["run", "-d", "exit 3"]));
    let slow = id(&["run", "-d", GATED]);
    let workspace = begun(&fleet, &slow);

    let waited = fleet.cli(["wait", &good]).ok();
    assert_eq!(waited.stdout.lines().count(), 1, "{waited:?}");
    assert!(waited.stdout.starts_with(&format!("{good}  done")), "{waited:?}");
    let waited = fleet.cli(["wait", &good, &bad]);
    assert_eq!((waited.code, waited.stdout.lines().count()), (3, 2), "{waited:?}");
    assert_eq!(fleet.cli(["wait", "--any", &slow, &bad]).code, 3);
    fleet.cli(["wait", &slow, &good, "--timeout", "1s"]).refused(75, &slow);
    assert_eq!(fleet.cli(["wait", &good, &bad, "--timeout", "0"]).code, 3);

    let waiting = spawned(&fleet, &["wait", "--json", &slow]);
    open(&workspace);
    let (code, said, _) = ended(waiting);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["status"], &said["exit_code"]), (0, &json!("done"), &json!(0)));
    fleet.cli(["wait", "t_00000000"]).refused(3, "t_00000000");
}

#[test]
fn an_interrupted_run_goes_on_and_says_how_to_end_it() {
    let fleet = Fleet::boot();
    let running = spawned(&fleet, &["run", GATED]);
    let task =
        fleet.eventually("the task is there", || fleet.json(["list"])[0]["id"].as_str().map(str::to_owned));
    let workspace = begun(&fleet, &task);

    kill(Pid::from_raw(i32::try_from(running.id()).unwrap()), Signal::SIGINT).unwrap();

    let (code, _, said) = ended(running);
    assert_eq!(code, 130, "{said}");
    for way in
        [format!("supervisor logs -f {task}"), format!("{task} continues"), "End it: supervisor ".to_owned()]
    {
        assert!(said.contains(&way), "{said}");
    }
    assert_eq!(fleet.status_of(&task), "running");
    open(&workspace);
    fleet.wait_for(&task, "done");
}

#[test]
fn what_follows_a_task_says_when_the_daemon_is_gone_and_goes_on_with_the_next_one() {
    let fleet = Fleet::boot();
    let run = spawned(&fleet, &["run", GATED]);
    let task =
        fleet.eventually("the task is there", || fleet.json(["list"])[0]["id"].as_str().map(str::to_owned));
    let workspace = begun(&fleet, &task);
    let mut following = [run, spawned(&fleet, &["logs", "-f", &task])];
    for child in &mut following {
        assert_eq!(first_line(child.stdout.as_mut().unwrap()), "begun\n");
    }

    fleet.kill_daemon();

    for child in &mut following {
        let said = first_line(child.stderr.as_mut().unwrap());
        assert!(
            said.starts_with("warning: no daemon serves ") && said.contains("supervisor daemon"),
            "{said}"
        );
    }
    fleet.start();
    open(&workspace);
    for child in following {
        let (code, written, said) = ended(child);
        assert_eq!((code, written.as_str()), (0, "over\n"), "{said}");
    }
}

#[test]
fn run_without_a_daemon_creates_nothing_unless_it_is_detached() {
    let fleet = Fleet::offline();
    fleet.cli(["run", "true"]).refused(69, "no daemon serves");
    assert_eq!(fleet.json(["list"]), json!([]));
    fleet.cli(["run", "--detach", "true"]).ok();
    assert_eq!(fleet.json(["list"])[0]["assignee"], "shell");
}

#[test]
fn run_assigns_to_whom_the_configuration_names_and_works_in_the_directory_that_it_is_told() {
    let fleet = Fleet::boot_as(User::ordinary());
    let place = fleet.home().join("project");
    std::fs::create_dir(&place).unwrap();
    fleet.give(&place);
    let mut command = fleet.command(["run", "--here", "pwd > made; cat made"]);
    let said = crate::harness::Output::of(command.current_dir(&place)).ok();
    assert_eq!(said.stdout.trim(), place.to_str().unwrap());
    assert!(place.join("made").exists());
    let other = format!("dir:{}", fleet.home().display());
    fleet.cli(["run", "--detach", "--workspace", &other, "true"]).ok();
    fleet.configure("[run]\nassignee = \"ann\"\n");
    let task = fleet.cli(["run", "-d", "true"]).ok().stdout;
    assert_eq!(fleet.show(task.trim())["task"]["assignee"], "ann");
    let task = fleet.cli(["run", "-d", "--assignee", "bob", "true"]).ok().stdout;
    assert_eq!(fleet.show(task.trim())["task"]["assignee"], "bob");
}

#[test]
fn run_refuses_an_option_or_an_assignee_that_nobody_knows() {
    let fleet = Fleet::boot();
    let refused = fleet.cli(["run", "--detatch", "--", "echo", "hi"]).refused(2, "--detatch");
    assert!(refused.stderr.contains("'--detach'"), "{}", refused.stderr);
    let refused = fleet.cli(["run", "--assignee", "shel", "true"]).refused(2, "no lane or profile");
    assert!(refused.stderr.contains("is `shell` meant?"), "{}", refused.stderr);
    assert_eq!(fleet.json(["list"]), json!([]));
    assert_eq!(fleet.cli(["run", "echo", "-n", "--json", "-x"]).ok().stdout, "--json -x\n");
}

#[test]
fn an_option_that_names_the_root_beats_the_variable_and_two_are_refused() {
    let fleet = Fleet::offline();
    let root = fleet.root().display().to_string();
    fleet.cli(["--root", &root, "--system", "status"]).refused(2, "cannot be used with '--system'");
    let mut command = std::process::Command::new(fleet.binary());
    fleet.dress(&mut command);
    command.args(["--user", "create", "x"]).env("SUPERVISOR_ROOT", fleet.root());
    crate::harness::Output::of(&mut command).ok();
    assert_eq!(fleet.json(["list"]), json!([]), "the variable names another root");
}

#[test]
fn logs_of_several_tasks_say_who_wrote_each_line_and_end_as_their_runs_do() {
    let fleet = Fleet::boot();
    let first = fleet.create("a", "echo one; echo two; printf three", &[]);
    let second = fleet.create("b", "echo four; exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&first, "done");
    fleet.wait_for(&second, "blocked");

    let said = fleet.cli(["logs", &first, &second]).ok().stdout;
    let expected = format!("{first} | one\n{first} | two\n{first} | three\n{second} | four\n");
    assert_eq!(said, expected);
    let followed = fleet.cli(["logs", "-f", "-n", "1", &first, &second]);
    assert_eq!((followed.code, followed.stdout), (3, format!("{first} | three\n{second} | four\n")));
    assert_eq!(fleet.cli(["logs", &first, "--lines", "2"]).ok().stdout, "two\nthree\n");
    assert_eq!(fleet.cli(["logs", &first, "--since", "1h"]).ok().stdout, "one\ntwo\nthree\n");
    let later = fleet.cli(["logs", &first, "--since", "2100-01-01"]).ok();
    assert!(later.stdout.is_empty() && later.stderr.contains("no run of"), "{later:?}");
    fleet.cli(["logs", &first, &second, "--run", "1"]).refused(2, "--run");
}

#[test]
fn a_long_log_is_shown_from_its_beginning() {
    let fleet = Fleet::boot();
    let task = fleet.create("long", "seq 1 300000", &[]);
    fleet.wait_for(&task, "done");
    let said = fleet.cli(["logs", &task]).ok().stdout;
    assert_eq!((said.lines().next(), said.lines().count()), (Some("1"), 300_000));
}

#[test]
fn what_follows_a_run_that_a_person_kills_exits_as_wait_does() {
    let fleet = Fleet::boot();
    for (verb, then) in [("kill", None), ("cancel", None), ("kill", Some("archive"))] {
        let task = fleet.create("is ended", &format!("{GATED}; exit 9"), &[]);
        begun(&fleet, &task);
        let logs = spawned(&fleet, &["logs", "-f", &task]);
        let tail = spawned(&fleet, &["tail", &task]);
        fleet.cli([verb, &task]).ok();
        let code = fleet.cli(["wait", &task]).code;
        assert_eq!((ended(logs).0, ended(tail).0, code), (5, 5, 5), "{verb}");
        if let Some(then) = then {
            fleet.cli([then, &task]).ok();
            let followed = fleet.cli(["logs", "-f", &task]);
            assert_eq!((fleet.cli(["wait", &task]).code, followed.code), (1, 1), "{followed:?}");
        }
    }
}

#[test]
fn an_id_is_accepted_without_its_prefix() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = fleet.create("to be named", "true", &["--initial-status", "blocked"]);
        let bare = &task[2..];
        for line in [
            "show {}",
            "edit {} --priority 3",
            "comment {} added",
            "hold {} --reason r",
            "release {}",
            "hold --mission {} --reason r",
            "release --mission {}",
            "logs {}",
            "events --task {}",
            "diagnostics --task {}",
            "unblock {}",
            "wait {}",
        ] {
            fleet.cli(line.replace("{}", bare).split(' ')).ok();
        }
        let shown = fleet.show(&bare[..5]);
        assert_eq!((&shown["task"]["id"], &shown["task"]["status"]), (&json!(task), &json!("done")));
        assert_eq!(shown["comments"][0]["body"], "added");
        let child = fleet.json(["create", "x", "--parent", bare]);
        assert_eq!(fleet.show(child["id"].as_str().unwrap())["parents"], json!([task]));
        fleet.cli(["show", "0123abcz"]).refused(2, "not a valid task id");
    }
}

#[test]
fn following_a_log_or_the_events_of_a_task_ends_with_it() {
    let fleet = Fleet::boot();
    let task = fleet.create("fails", &format!("{GATED}; exit 9"), &["--max-retries", "1"]);
    let workspace = begun(&fleet, &task);
    let logs = spawned(&fleet, &["logs", "-f", &task]);
    let tail = spawned(&fleet, &["tail", &task]);

    open(&workspace);

    let (code, said, _) = ended(logs);
    assert_eq!((code, said.as_str()), (9, "begun\nover\n"));
    let (code, said, _) = ended(tail);
    assert_eq!((code, said.contains("gave_up")), (9, true), "{said}");
    let done = fleet.create("works", "true", &[]);
    fleet.wait_for(&done, "done");
    assert!(fleet.cli(["tail", &done]).ok().stdout.contains("completed"));
}

#[test]
fn a_task_is_named_by_the_beginning_of_its_id() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let ids: Vec<String> =
            (0..20).map(|_| fleet.create("x", "true", &["--not-before", "1000d"])).collect();
        let id = &ids[7];
        let is_unique = |short: &str| ids.iter().filter(|other| other.starts_with(short)).count() == 1;
        let short = (3..10).map(|length| &id[..length]).find(|short| is_unique(short)).unwrap();
        let other = &ids[3];
        for line in [
            "show {}",
            "comment {} t_1 is a word",
            "edit {} --priority 3",
            "runs {}",
            "logs {}",
            "events --task {}",
            "link {other} {}",
            "unlink {other} {}",
            "cancel {}",
            "retry {}",
            "assign {} none",
            "block {} why --ids {other}",
            "unblock {} {other}",
            "complete {} --summary s",
            "wait {}",
            "tail {}",
            "reopen {}",
            "archive {}",
        ] {
            let line = line.replace("{other}", other).replace("{}", short);
            fleet.cli(line.split(' ')).ok();
        }
        let shown = fleet.show(short);
        assert_eq!((&shown["task"]["id"], &shown["task"]["status"]), (&json!(id), &json!("archived")));
        assert!(shown["comments"].to_string().contains("t_1 is a word"), "{shown:#}");
        let file = fleet.home().join("x.txt");
        std::fs::write(&file, "x").unwrap();
        fleet.give(&file);
        fleet.cli(["attach", short, file.to_str().unwrap()]).ok();
        fleet.cli(["attach", "nope"]).refused(2, "`nope` is not a task id");
        fleet.cli(["show", "t_00000"]).refused(3, "no such task: t_00000");
        // Of 20 ids, two begin with the same of 16 digits.
        let is_shared = |short: &&str| ids.iter().filter(|id| id.starts_with(*short)).count() > 1;
        let shared = ids.iter().map(|id| &id[..3]).find(is_shared).unwrap();
        fleet.cli(["show", shared]).refused(2, "is ambiguous");
    }
}

#[test]
fn a_signal_to_a_command_of_run_reaches_the_command() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "trap 'echo poked; exit 0' USR1; echo ready; while :; do sleep 0.05; done";
        let task = fleet.cli(["run", "--detach", "--", "sh", "-c", script]).ok().stdout.trim().to_owned();
        let has = |text: &str| fleet.cli(["logs", &task]).stdout.contains(text).then_some(());
        fleet.eventually("it listens", || has("ready"));
        fleet.cli(["kill", "--signal", "USR1", &task]).ok();
        fleet.wait_for(&task, "done");
        assert!(has("poked").is_some());
        let task = fleet.show(&task)["task"].clone();
        assert!(task["body"].as_str().unwrap().starts_with("exec sh -c "), "{task:#}");
        assert!(task["title"].as_str().unwrap().starts_with("sh -c "), "{task:#}");
        assert_eq!(fleet.cli(["run", "--", "sh", "-c", "kill -TERM $$"]).code, 143);
        // What the shell does itself stays with it.
        assert_eq!(fleet.cli(["run", "--", "cd", "/"]).code, 0);
    }
}

#[test]
fn an_attached_file_is_copied_out_and_replaces_none() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let task = fleet.json(["create", "x"])["id"].as_str().unwrap().to_owned();
        let file = fleet.home().join("notes.txt");
        std::fs::write(&file, "read me\n").unwrap();
        fleet.give(&file);
        fleet.cli(["attach", &task, file.to_str().unwrap()]).ok();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(fleet.cli(["attachments", "get", "1", "--output", "-"]).ok().stdout, "read me\n");
        fleet.cli(["attach-get", "1"]).ok();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "read me\n");
        fleet.cli(["attachments", "get", "1"]).refused(4, "exists already");
        fleet.cli(["attachments", "get", "9"]).refused(3, "no such attachment");
        fleet.cli(["attach", &task, file.to_str().unwrap(), "--name", "-"]).ok();
        let written = fleet.cli(["attach-get", "2"]).ok();
        assert_eq!(written.stdout, "Wrote - (8 bytes)\n");
        assert_eq!(std::fs::read_to_string(fleet.home().join("-")).unwrap(), "read me\n");
        // A worker chooses the name, and a shell reads such a file by itself.
        fleet.cli(["attach", &task, file.to_str().unwrap(), "--name", ".bash_login"]).ok();
        fleet.cli(["attach-get", "3"]).refused(2, "begins with a dot");
        assert!(!fleet.home().join(".bash_login").exists());
        fleet.cli(["attach-get", "3", "--output", "login"]).ok();
    }
}

#[test]
fn no_bytes_of_a_file_reach_a_terminal_unasked() {
    let fleet = Fleet::offline();
    let task = fleet.json(["create", "x"])["id"].as_str().unwrap().to_owned();
    let file = fleet.home().join("escape");
    std::fs::write(&file, "\x1b]0;title\x07").unwrap();
    fleet.cli(["attach", &task, file.to_str().unwrap()]).ok();
    let mut terminal = Terminal::run(&mut fleet.command(["attach-get", "1", "--output", "-"]));
    terminal.until("standard output is a terminal");
    assert_eq!(terminal.end().code(), Some(2));
}

#[test]
fn a_root_is_closed_to_other_users_whatever_the_umask() {
    let fleet = Fleet::offline();
    let above = fleet.home().join("above");
    let root = above.join("more/root");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(fleet.binary()).arg("--root").arg(&root);
    command.args(["create", "x"]);
    fleet.dress(&mut command);
    Output::of(&mut command).ok();
    let mut dirs = vec![above];
    let mut count = 0;
    while let Some(dir) = dirs.pop() {
        count += 1;
        let mode = dir.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", dir.display());
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let mode = entry.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o022, 0, "{}: {mode:o}", entry.path().display());
            }
        }
    }
    assert!(count > 5);
}

#[test]
fn help_has_topics() {
    let fleet = Fleet::offline();
    for topic in ["states", "exit-codes", "times", "ids", "environment"] {
        assert!(fleet.cli(["help", topic]).ok().stdout.lines().count() >= 3);
        assert!(fleet.cli(["--help"]).ok().stdout.contains(&format!("supervisor help {topic}")));
    }
    assert!(fleet.cli(["help", "cancel"]).ok().stdout.contains("Usage: supervisor cancel"));
    fleet.cli(["help", "nonsense"]).refused(2, "nonsense");
}
