//! A root that is moved while a worker of it lives: the next daemon finds the run where it is, and starts no second one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;

use crate::harness::{Fleet, Output, User};
use crate::journal::{Journal, PATIENT, of_task, outcomes, records};

/// A fleet's root under another name, with a daemon over it.
struct MovedRoot<'a> {
    fleet: &'a Fleet,
    place: PathBuf,
    daemon: Child,
}

impl<'a> MovedRoot<'a> {
    fn to(fleet: &'a Fleet, name: &str) -> Self {
        let place = fleet.root().with_file_name(name);
        fs::rename(fleet.root(), &place).unwrap();
        let log = fs::File::options().append(true).open(fleet.log_file()).unwrap();
        let before = fleet.log().len();
        let mut command = command(fleet, &place, &["daemon"]);
        command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
        let daemon = command.spawn().unwrap();
        let moved = MovedRoot { fleet, place, daemon };
        fleet.eventually("the daemon serves the moved root", || {
            fleet.log()[before..].contains(" serves ").then_some(())
        });
        moved
    }

    fn json(&self, args: &[&str]) -> Value {
        Output::of(&mut command(self.fleet, &self.place, &[args, &["--json"]].concat())).ok().json()
    }
}

impl Drop for MovedRoot<'_> {
    fn drop(&mut self) {
        Output::of(&mut command(self.fleet, &self.place, &["stop", "--kill"]));
        drop(self.daemon.wait());
        fs::rename(&self.place, self.fleet.root()).unwrap();
    }
}

fn command(fleet: &Fleet, root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(fleet.binary());
    command.arg("--root").arg(root).args(args);
    fleet.dress(&mut command);
    command
}

/// A task whose worker has begun, and what its workers note.
fn working(fleet: &Fleet) -> (Journal, String) {
    let journal = Journal::of(fleet, 2, "");
    let task = fleet.create("works on", &Journal::script(PATIENT), &[]);
    fleet.start();
    fleet.eventually("it works", || {
        (journal.begun() == 1 && !records(fleet, "started").is_empty()).then_some(())
    });
    (journal, task)
}

/// Its daemon finds nothing at the old place any more, and must not take that for a run that never started.
#[test]
fn a_run_that_ends_while_the_root_is_moved_under_its_daemon_is_known_by_its_record() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let (journal, task) = working(&fleet);
        let away = fleet.root().with_file_name("away");
        fs::rename(fleet.root(), &away).unwrap();
        journal.let_go();
        fleet.eventually("its processes are gone", || {
            fleet.processes_with(&of_task(&task)).is_empty().then_some(())
        });
        fleet.kill_daemon();
        // What the daemon has made at the old place meanwhile is not the root.
        drop(fs::remove_dir_all(fleet.root()));
        fs::rename(&away, fleet.root()).unwrap();

        fleet.start();

        let shown = fleet.wait_for(&task, "done");
        assert_eq!((outcomes(&shown), journal.begun()), (vec!["completed"], 1), "{shown:#}");
    }
}

#[test]
fn a_run_goes_on_under_the_next_daemon_of_a_root_that_was_moved() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let (journal, task) = working(&fleet);
        fleet.kill_daemon();

        let moved = MovedRoot::to(&fleet, "moved");

        let status = moved.json(&["status"]);
        assert_eq!(
            (&status["workers"][0]["task"], journal.begun()),
            (&task.as_str().into(), 1),
            "{status:#}"
        );
        // What was started at the old place may not be able to report, and ends all the same.
        let next = moved.json(&["create", "next", "--assignee", "shell", "--body", &Journal::script("true")]);
        let done = |task: &Value| {
            fleet.eventually("it is done", || {
                let shown = moved.json(&["show", task.as_str().unwrap()]);
                (shown["task"]["status"] == "done").then_some(shown)
            })
        };
        done(&next["id"]);
        journal.let_go();
        let shown = done(&Value::from(task.as_str()));
        assert_eq!(outcomes(&shown), ["completed"], "{shown:#}");
        let told: Vec<String> =
            journal.lines().into_iter().filter(|line| line.task == task).map(|line| line.what).collect();
        assert_eq!(told, ["start", "end"]);
    }
}
