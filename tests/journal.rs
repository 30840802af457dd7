//! Workers' own records of their runs, outside of the board, and their comparison with the board.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::Fleet;
use crate::invariants::{faults, in_lines, of_runs};

/// The policy of workers that keep a journal: the default one, and the place of the journal.
const DEFAULT_POLICY: &str = include_str!("../policies/src/presets/default.toml");

/// Line that a worker has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalLine {
    pub(crate) what: String,
    pub(crate) task: String,
    pub(crate) run: i64,
}

/// A file that every worker of a fleet may append to.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
}

/// Permitted number of starts of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempts {
    /// Once: nothing but the daemon was disturbed.
    One,
    /// More often: shims or workers were killed.
    Many,
}

/// A script's part that goes on until [`Journal::let_go`].
pub(crate) const PATIENT: &str = "while [ ! -e \"${JOURNAL%/*}/go\" ]; do sleep 0.05; done";

/// Returns the variable in the environment of a task's processes.
pub(crate) fn of_task(task: &str) -> String {
    format!("SUPERVISOR_TASK={task}")
}

/// Returns the outcomes of a task's runs.
pub(crate) fn outcomes(shown: &Value) -> Vec<&str> {
    shown["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap_or("open")).collect()
}

/// Waits until the first run of a task has left a file in its workspace.
pub(crate) fn left(fleet: &Fleet, task: &str, file: &str) {
    fleet.eventually("the run has left its file", || {
        let path = fleet.show(task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        Path::new(&path).join(file).exists().then_some(())
    });
}

impl Journal {
    /// Lets those go on that wait as [`PATIENT`] does.
    pub(crate) fn let_go(&self) {
        fs::write(self.dir().join("go"), "").unwrap();
    }

    /// Makes the journal of a fleet without a daemon, with the policy that opens it to workers. `config` is the rest of
    /// the configuration's `[worker]` table.
    pub(crate) fn of(fleet: &Fleet, slots: usize, config: &str) -> Self {
        let dir = fleet.home().join("journal");
        fs::create_dir(&dir).unwrap();
        let path = dir.join("lines");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        fleet.give(&dir);
        fleet.give(&path);
        let journal = Journal { path };
        journal.policy(fleet, "journal", |_| {});
        let limits = format!("[limits]\nmax_running = {slots}\n");
        fleet.configure(&format!("{limits}[worker]\npolicy = \"journal\"\n{config}"));
        journal
    }

    /// Adds a policy that opens the journal, with changes of the test's own.
    pub(crate) fn policy(&self, fleet: &Fleet, name: &str, change: impl FnOnce(&mut toml::Table)) {
        let mut policy: toml::Table = toml::from_str(DEFAULT_POLICY).unwrap();
        policy.insert("name".to_owned(), name.into());
        let place = toml::Value::from(self.dir().to_str().unwrap());
        policy["filesystem"]["rw"].as_array_mut().unwrap().push(place);
        let set = policy["env"]["set"].as_table_mut().unwrap();
        set.insert("JOURNAL".to_owned(), self.path.to_str().unwrap().into());
        change(&mut policy);
        fleet.policy(name, &policy.to_string());
    }

    /// The directory of the journal: workers may read and write in it what they are allowed to by its modes.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap()
    }

    /// Returns the number of started runs.
    pub(crate) fn begun(&self) -> usize {
        self.lines().iter().filter(|line| line.what == "start").count()
    }

    /// A script that records its beginning and its end, and does something in between.
    ///
    /// It holds a lock of its workspace. Somebody of another run of the task who still has it is an overlap.
    pub(crate) fn script(between: &str) -> String {
        format!(
            "say() {{ echo \"$1 $SUPERVISOR_TASK $SUPERVISOR_RUN_ID\" >> \"$JOURNAL\"; }}\n\
             exec 9>> held\nflock -n 9 || say overlap\nsay start\n{between}\nsay end\necho done\n"
        )
    }

    /// The same for a policy that says nothing of the journal.
    pub(crate) fn own_script(&self, between: &str) -> String {
        format!("JOURNAL='{}'\n{}", self.path.display(), Journal::script(between))
    }

    /// Everything that was written.
    pub(crate) fn lines(&self) -> Vec<JournalLine> {
        let text = fs::read_to_string(&self.path).unwrap();
        text.lines()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                assert_eq!(words.len(), 3, "{line}");
                JournalLine {
                    what: words[0].to_owned(),
                    task: words[1].to_owned(),
                    run: words[2].parse().unwrap(),
                }
            })
            .collect()
    }

    /// Returns the number of tasks that reached the end of their script.
    pub(crate) fn ended(&self) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.what == "end")
            .map(|line| &line.task)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Compares the journal with the board: see [`faults`].
    #[track_caller]
    pub(crate) fn audit(&self, fleet: &Fleet, tasks: &[String], attempts: Attempts) {
        let faults = faults(self, fleet, tasks, attempts);
        assert!(faults.is_empty(), "{}", in_lines(&faults));
    }

    /// The same of the runs alone, where the files of the board are in another mount namespace.
    #[track_caller]
    pub(crate) fn audit_runs(&self, fleet: &Fleet, tasks: &[String], attempts: Attempts) {
        let faults = of_runs(self, fleet, tasks, attempts);
        assert!(faults.is_empty(), "{}", in_lines(&faults));
    }
}

pub(crate) fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The records of the runs that have a directory: run, and one of its files as JSON.
pub(crate) fn records(fleet: &Fleet, name: &str) -> Vec<(PathBuf, Value)> {
    entries(&fleet.root().join("runs/default"))
        .into_iter()
        .filter_map(|dir| {
            let record = serde_json::from_slice(&fs::read(dir.join(name)).ok()?).ok()?;
            Some((dir, record))
        })
        .collect()
}
