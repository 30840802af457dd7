//! Forks: a new task that begins from the session of another one's run, which stays as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::harness::{Fleet, Repository, User};

/// A lane whose program keeps its sessions by workspace, goes on in one and forks one.
const LANE: &str = r#"argv = ["/bin/sh", "{home}/agent", ["--resume", "{session}"]]
fork = ["--fork", "{session}"]
state = ".state"
projects = ".state/projects"
session_gone = ["no such session"]
stdout = "claude-stream-json"
on_clean_exit = "complete"

[files]
agent = '''
dir=$HOME/.state/projects/$(pwd | tr -c 'A-Za-z0-9\n' '-')
if [ -n "$2" ] && [ ! -e "$dir/$2" ]; then echo "no such session" >&2; exit 1; fi
case $1 in
    --fork) id=s-fork; cp "$dir/$2" "$dir/$id" ;;
    --resume) id=$2 ;;
    *) id=s-$SUPERVISOR_RUN_ID; mkdir -p "$dir" ;;
esac
cat > prompt; cat prompt >> "$dir/$id"
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\"}"
if grep -q 'commit it' prompt; then echo work > made; git add made >&2; git -c user.name=a -c user.email=a@b commit -qm made >&2; fi
if grep -q 'wait for it' prompt; then while [ ! -e go ]; do sleep 0.02; done; fi
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1 $(grep -c zebra "$dir/$id") stripes$(cat made 2>/dev/null)\",\"session_id\":\"$id\"}"
'''
"#;

/// A fleet whose task has a session: its agent has heard of a zebra.
fn fleet_with_session(user: User, more: &[&str]) -> (Fleet, String) {
    let fleet = Fleet::offline_as(user);
    fleet.lane("agent", LANE);
    fleet.start();
    let words = ["create", "zoo", "--assignee", "agent", "--body", "the word is zebra"];
    let task = fleet.json(words.iter().chain(more))["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&task, "done");
    (fleet, task)
}

fn forked(fleet: &Fleet, task: &str, more: &[&str]) -> String {
    fleet.json(["fork", task, "now try it"].iter().chain(more))["id"].as_str().unwrap().to_owned()
}

fn session(shown: &Value, run: usize) -> &str {
    shown["runs"][run]["spent"]["session"].as_str().unwrap_or_default()
}

#[test]
fn a_fork_knows_what_its_origin_knew_and_leaves_that_as_it_was() {
    for user in User::all() {
        let (fleet, task) = fleet_with_session(user, &[]);
        let sessions = fleet.root().join("sessions/default").join(&task);
        let kept = || {
            let mut files: Vec<_> =
                walk(&sessions).into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
            files.sort();
            files
        };
        let before = kept();
        assert_eq!(before.len(), 1);
        let said = fleet.cli(["fork", &task, "now try it", "--title", "the other way"]).ok().stdout;
        assert!(
            said.contains("the other way (ready), forked from t_") && said.contains("run 1, session s-1"),
            "{said}"
        );
        let fork = said.split_whitespace().nth(1).unwrap().to_owned();
        let shown = fleet.wait_for(&fork, "done");
        assert_eq!(shown["latest_summary"], "--fork 1 stripes", "{shown:#}");
        assert_eq!(session(&shown, 0), "s-fork");
        let origin = &shown["task"]["origin"];
        let origin = if origin.is_null() { &shown["task"] } else { origin };
        assert_eq!(
            (&origin["forked_from"], &origin["forked_session"]),
            (&Value::from(task.as_str()), &Value::from("s-1"))
        );
        let text = fleet.cli(["show", &fork]).ok().stdout;
        assert!(text.contains(&format!("{task}, run 1, session s-1")), "{text}");
        // Its prompt is its own, whole.
        let place = shown["task"]["workspace_path"].as_str().unwrap();
        let prompt = fs::read_to_string(std::path::Path::new(place).join("prompt")).unwrap();
        assert!(prompt.contains("now try it") && !prompt.contains("zebra"), "{prompt}");
        assert_eq!(kept(), before, "the other one is as it was");
        // What follows goes on in the session of the fork.
        fleet.cli(["retry", &fork, "--reason", "again"]).ok();
        let shown = fleet.eventually("it has gone on", || {
            let shown = fleet.show(&fork);
            (shown["runs"].as_array().unwrap().len() == 2 && shown["task"]["status"] == "done")
                .then_some(shown)
        });
        assert_eq!(
            (session(&shown, 1), &shown["latest_summary"]),
            ("s-fork", &Value::from("--resume 1 stripes"))
        );
    }
}

/// All files below a directory.
fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(walk(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

#[test]
fn a_fork_whose_session_is_gone_begins_anew_with_the_whole_task() {
    let (fleet, task) = fleet_with_session(User::current(), &[]);
    for file in walk(&fleet.root().join("sessions/default").join(&task)) {
        fs::remove_file(file).unwrap();
    }
    let fork = forked(&fleet, &task, &[]);
    let shown = fleet.wait_for(&fork, "done");
    assert_eq!(shown["runs"][0]["outcome"], "spawn_failed", "{shown:#}");
    assert!(shown["latest_summary"].as_str().unwrap().contains("0 stripes"), "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], 0);
}

#[test]
fn what_an_agent_has_left_among_its_sessions_does_not_keep_them_from_being_forked() {
    for user in User::all() {
        let (fleet, task) = fleet_with_session(user, &[]);
        let sessions = fleet.root().join("sessions/default").join(&task).join("agent");
        let mut deep = sessions.clone();
        (0..40).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(sessions.join("closed"), "x").unwrap();
        fs::set_permissions(sessions.join("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        let sparse = fs::File::create(sessions.join("sparse")).unwrap();
        sparse.set_len(2 << 30).unwrap();
        let fork = forked(&fleet, &task, &[]);
        let shown = fleet.wait_for(&fork, "done");
        assert_eq!(shown["latest_summary"], "--fork 1 stripes", "{shown:#}");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
    }
}

#[test]
fn a_fork_of_too_many_files_is_blocked_at_once_with_what_to_do() {
    let (fleet, task) = fleet_with_session(User::current(), &[]);
    let sessions = fleet.root().join("sessions/default").join(&task).join("agent");
    (0..20_001).for_each(|n| drop(fs::File::create(sessions.join(format!("f{n}"))).unwrap()));
    let fork = forked(&fleet, &task, &[]);
    let shown = fleet.wait_for(&fork, "blocked");
    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
    let error = shown["runs"][0]["error"].as_str().unwrap();
    assert!(error.contains("more than 20000 files") && error.contains("supervisor create"), "{error}");
    assert!(!fleet.root().join("sessions/default").join(&fork).join(".agent.copy").exists());
}

#[test]
fn what_cannot_be_forked_is_refused_with_what_to_do() {
    let (fleet, task) = fleet_with_session(User::current(), &[]);
    let busy = fleet.json(["create", "busy", "--assignee", "agent", "--body", "wait for it"]);
    let busy = busy["id"].as_str().unwrap().to_owned();
    fleet.eventually("it is at work", || fleet.cli(["log", &busy]).stdout.contains("init").then_some(()));
    fleet.cli(["fork", &busy, "x"]).refused(4, "goes on, and its agent may be in the session");
    fleet.cli(["fork", &task, "x", "--run", "99"]).refused(4, "run 99 of");
    fleet.cli(["fork", &task, " "]).refused(2, "the fork has nothing to do");
    let plain = fleet.create("plain", "true", &[]);
    fleet.wait_for(&plain, "done");
    fleet.cli(["fork", &plain, "x"]).refused(4, "there is nothing to fork");
    fleet.lane("agent", &LANE.replace("fork = [", "# fork = [").replace("projects =", "# projects ="));
    fleet.cli(["service", "reload"]).ok();
    fleet.cli(["fork", &task, "x"]).refused(4, "the lane `agent` does not say how");
}

#[test]
fn a_fork_in_a_worktree_begins_at_the_last_commit_of_its_origin_in_a_tree_of_its_own() {
    let fleet = Fleet::offline();
    fleet.lane("agent", LANE);
    let repository = Repository::new(&fleet, "repository");
    fleet.start();
    let place = repository.workspace();
    let words = ["create", "zoo", "--assignee", "agent", "--workspace", &place, "--body", "zebra: commit it"];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    fleet.wait_for(&task, "done");
    let fork = forked(&fleet, &task, &[]);
    let shown = fleet.wait_for(&fork, "done");
    assert_eq!(shown["latest_summary"], "--fork 1 stripeswork", "{shown:#}");
    assert_ne!(repository.tree(&task), repository.tree(&fork));
    assert_eq!(shown["task"]["branch_name"], format!("task/{task}"), "{shown:#}");
}
