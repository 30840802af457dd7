//! Invariants that hold whatever process has died at whatever moment: no acknowledged change is lost, no task runs
//! twice at once, nothing is left over, and the board agrees with each run's own record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Fleet, Output, Process, cgroup};
use crate::journal::{Attempts, Journal, JournalLine, entries};

/// Kind of a broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// Something that was acknowledged is not there, or a task is never done.
    Lost,
    /// A task ran twice at once, or was done twice.
    Duplicated,
    /// Something of a run that is over is still there.
    LeftOver,
    /// The board says something else than what has happened.
    Wrong,
}

/// A broken invariant.
#[derive(Clone, Debug)]
pub(crate) struct BrokenInvariant {
    /// Its kind.
    pub(crate) broken: Broken,
    /// Observation that shows it.
    pub(crate) seen: String,
}

impl BrokenInvariant {
    /// A case that was seen.
    pub(crate) fn new(broken: Broken, seen: impl Into<String>) -> Self {
        BrokenInvariant { broken, seen: seen.into() }
    }
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.broken, self.seen)
    }
}

/// Cases, a line each.
pub(crate) fn in_lines(faults: &[BrokenInvariant]) -> String {
    faults.iter().map(BrokenInvariant::to_string).collect::<Vec<_>>().join("\n")
}

/// Returns broken invariants of the runs and of the board. The database must be intact, and its replayed events must
/// lead to the same states.
pub(crate) fn faults(
    journal: &Journal,
    fleet: &Fleet,
    tasks: &[String],
    attempts: Attempts,
) -> Vec<BrokenInvariant> {
    let mut faults = of_runs(journal, fleet, tasks, attempts);
    faults.extend(of_board(fleet));
    faults
}

/// Compares the journal with the board: every task is done by exactly one run, nothing ran that the board does not
/// know, nothing ran twice at once, nothing was counted that should not be.
pub(crate) fn of_runs(
    journal: &Journal,
    fleet: &Fleet,
    tasks: &[String],
    attempts: Attempts,
) -> Vec<BrokenInvariant> {
    let mut faults = Vec::new();
    let lines = journal.lines();
    let overlaps: Vec<&JournalLine> = lines.iter().filter(|line| line.what == "overlap").collect();
    if !overlaps.is_empty() {
        faults.push(BrokenInvariant::new(Broken::Duplicated, format!("ran twice at once: {overlaps:?}")));
    }
    let History { runs, outcomes, faults: ended_twice } = History::of(&asking(fleet));
    faults.extend(ended_twice);
    for id in tasks {
        let mine: Vec<&JournalLine> = lines.iter().filter(|line| &line.task == id).collect();
        let known = runs.get(id).cloned().unwrap_or_default();
        let found = of_task(&mine, &known, &outcomes, attempts);
        if !found.is_empty() {
            let shown = fleet.cli(["show", id, "--json"]).stdout;
            let told = |fault: BrokenInvariant| BrokenInvariant {
                seen: format!("{}: {id}: {mine:?}\n{shown}", fault.seen),
                ..fault
            };
            faults.extend(found.into_iter().map(told));
        }
    }
    let all = fleet.json(["list", "--limit", "5000"]);
    for task in all["tasks"].as_array().unwrap_or_else(|| all.as_array().unwrap()) {
        if task["status"] != "done" {
            faults.push(BrokenInvariant::new(Broken::Lost, format!("a task is not done: {task:#}")));
        }
        if attempts == Attempts::One && task["consecutive_failures"] != 0 {
            faults.push(BrokenInvariant::new(Broken::Wrong, format!("a failure was counted: {task:#}")));
        }
    }
    faults
}

/// The faults of one task: what its runs have recorded, which of them the board knows, and how those ended.
fn of_task(
    mine: &[&JournalLine],
    known: &BTreeSet<i64>,
    outcomes: &BTreeMap<i64, String>,
    attempts: Attempts,
) -> Vec<BrokenInvariant> {
    let mut faults = Vec::new();
    let mut check = |holds: bool, broken: Broken, seen: &str| {
        if !holds {
            faults.push(BrokenInvariant::new(broken, seen));
        }
    };
    let of = |what: &str| -> Vec<i64> {
        mine.iter().filter(|line| line.what == what).map(|line| line.run).collect()
    };
    let (starts, ends) = (of("start"), of("end"));
    let begun: BTreeSet<i64> = starts.iter().copied().collect();
    check(begun.len() == starts.len(), Broken::Duplicated, "a run began twice");
    check(begun.is_subset(known), Broken::Wrong, "a run that the board does not know");
    let is_completed = |run: &&i64| outcomes.get(run).is_some_and(|outcome| outcome == "completed");
    let completed: Vec<i64> = known.iter().filter(is_completed).copied().collect();
    check(!completed.is_empty(), Broken::Lost, "no run has completed it");
    check(completed.len() <= 1, Broken::Duplicated, "more than one run has completed it");
    let came_to_its_end = completed.iter().all(|run| ends.contains(run));
    check(came_to_its_end, Broken::Wrong, "the run that completed it did not come to its end");
    for run in known {
        let outcome = outcomes.get(run).map_or("open", String::as_str);
        let has_begun = begun.contains(run);
        check(has_begun || outcome != "completed", Broken::Wrong, "completed without a start");
        check(outcome != "open", Broken::Wrong, "an open run of a task that is done");
        // Taken back because it had never started: then it has not.
        check(!(has_begun && outcome == "reclaimed"), Broken::Wrong, "revoked and begun all the same");
    }
    if attempts == Attempts::One {
        check((starts.len(), ends.len()) == (1, 1), Broken::Duplicated, "more than one attempt");
    }
    faults
}

/// Function by which a checker calls the program for a board.
pub(crate) type BoardQuery<'a> = dyn Fn(&[&str]) -> Output + 'a;

/// Asks the program over the root of a fleet.
pub(crate) fn asking(fleet: &Fleet) -> impl Fn(&[&str]) -> Output {
    move |args| fleet.cli(args)
}

/// Checks the invariants after any fault, for any tasks. Waits until only log and workspace of each run are left. Then
/// no run has ended twice, no task has a current run, the database is intact, and its log leads to the same states.
#[track_caller]
pub(crate) fn invariants_hold(fleet: &Fleet) {
    nothing_is_left(fleet);
    let faults = at_rest(&asking(fleet));
    assert!(faults.is_empty(), "{}", in_lines(&faults));
}

/// Waits until nothing of any run is left beside its logs and workspaces.
#[track_caller]
pub(crate) fn nothing_is_left(fleet: &Fleet) {
    let group = cgroup(&fleet.root());
    fleet.eventually("no run directory, home, cgroup or process of a run is left", || {
        left_over(fleet, group.as_deref()).is_empty().then_some(())
    });
}

/// Returns broken invariants of a board without current runs.
pub(crate) fn at_rest(ask: &BoardQuery<'_>) -> Vec<BrokenInvariant> {
    let mut faults = History::of(ask).faults;
    let listed = ask(&["list", "--archived", "--limit", "5000", "--json"]).ok().json();
    let listed = listed.as_array().or_else(|| listed["tasks"].as_array()).unwrap();
    // What an external worker has claimed goes on elsewhere.
    let goes_on = |task: &&Value| task["status"] == "running" || !task["current_run_id"].is_null();
    for task in listed.iter().filter(|task| task["claim_expires"].is_null()).filter(goes_on) {
        faults.push(BrokenInvariant::new(Broken::Wrong, format!("it is said to have a run: {task:#}")));
    }
    faults.extend(of_report(&ask(&["doctor", "--replay", "--json"]).json()));
    faults
}

/// Checks that the database is intact, and that its log leads to the same states.
pub(crate) fn of_board(fleet: &Fleet) -> Vec<BrokenInvariant> {
    of_report(&fleet.cli(["doctor", "--replay", "--json"]).json())
}

fn of_report(report: &Value) -> Vec<BrokenInvariant> {
    let checks = report["checks"].as_array().unwrap();
    let failed = ["board default", "replay default", "attachments default"].into_iter().filter_map(|name| {
        let check = checks.iter().find(|check| check["subject"] == name);
        let is_ok = check.is_some_and(|check| check["severity"] == "ok");
        (!is_ok).then(|| BrokenInvariant::new(Broken::Wrong, format!("{name}: {check:#?}")))
    });
    failed.collect()
}

/// History of the runs by the events.
pub(crate) struct History {
    /// The runs of each task that were claimed.
    runs: BTreeMap<String, BTreeSet<i64>>,
    /// Outcome of each run.
    pub(crate) outcomes: BTreeMap<i64, String>,
    /// Runs that ended twice.
    faults: Vec<BrokenInvariant>,
}

impl History {
    pub(crate) fn of(ask: &BoardQuery<'_>) -> Self {
        let mut history = History { runs: BTreeMap::new(), outcomes: BTreeMap::new(), faults: Vec::new() };
        let mut since = 0;
        loop {
            let page =
                ask(&["events", "--since", &since.to_string(), "--limit", "1000", "--json"]).ok().json();
            let events = page["events"].as_array().unwrap();
            for event in events {
                history.take(event);
            }
            if events.len() < 1000 {
                return history;
            }
            since = page["cursor"].as_i64().unwrap();
        }
    }

    fn take(&mut self, event: &Value) {
        let Some(run) = event["run_id"].as_i64() else { return };
        let outcome = match event["kind"].as_str().unwrap() {
            "claimed" => {
                let task = event["task_id"].as_str().unwrap().to_owned();
                self.runs.entry(task).or_default().insert(run);
                return;
            }
            "completed" => Some("completed"),
            _ => event["payload"]["outcome"].as_str(),
        };
        if let Some(outcome) = outcome
            && self.outcomes.insert(run, outcome.to_owned()).is_some()
        {
            self.faults
                .push(BrokenInvariant::new(Broken::Duplicated, format!("a run has ended twice: {event:#}")));
        }
    }
}

/// Returns the remains of runs beside logs and workspaces: directories, cgroups beneath one, and processes.
pub(crate) fn left_over(fleet: &Fleet, group: Option<&Path>) -> Vec<String> {
    let places = ["runs/default", "homes/default"];
    let mut left: Vec<PathBuf> = places.iter().flat_map(|place| entries(&fleet.root().join(place))).collect();
    // A shim that waits for the daemon's next run stands in a group of its own.
    let waits = |path: &PathBuf| path.to_string_lossy().contains("/spare.");
    left.extend(group.map(entries).into_iter().flatten().filter(|path| path.is_dir() && !waits(path)));
    let mut left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let daemon = fleet.daemon();
    let is_own = |process: &&Process| Some(process.pid) == daemon || process.mentions("__shim --wait");
    let processes = fleet.processes();
    let strays = processes.iter().filter(|process| !is_own(process));
    left.extend(strays.map(|process| format!("process {} ({})", process.pid, process.command)));
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &str, run: i64) -> JournalLine {
        JournalLine { what: what.to_owned(), task: "t_00000001".to_owned(), run }
    }

    /// A checker that finds nothing proves nothing: each fault is found where it is.
    #[test]
    fn each_fault_is_seen() {
        let seen = |lines: &[JournalLine], ended: &[(i64, &str)]| {
            let mine: Vec<&JournalLine> = lines.iter().collect();
            let outcomes: BTreeMap<i64, String> =
                ended.iter().map(|(run, how)| (*run, (*how).to_owned())).collect();
            let known = outcomes.keys().copied().collect();
            of_task(&mine, &known, &outcomes, Attempts::Many)
                .into_iter()
                .map(|fault| fault.broken)
                .collect::<Vec<_>>()
        };
        let whole = [line("start", 1), line("end", 1)];
        assert_eq!(seen(&whole, &[(1, "completed")]), []);
        assert_eq!(seen(&whole, &[(1, "crashed")]), [Broken::Lost]);
        let twice = [line("start", 1), line("end", 1), line("start", 2), line("end", 2)];
        assert_eq!(seen(&twice, &[(1, "completed"), (2, "completed")]), [Broken::Duplicated]);
        assert_eq!(
            seen(&[line("start", 1), line("start", 1), line("end", 1)], &[(1, "completed")]),
            [Broken::Duplicated]
        );
        assert_eq!(seen(&whole[..1], &[(1, "completed")]), [Broken::Wrong]);
        assert_eq!(seen(&twice, &[(1, "reclaimed"), (2, "completed")]), [Broken::Wrong]);
        assert_eq!(seen(&twice, &[(2, "completed")]), [Broken::Wrong], "a run that the board does not know");
    }
}
