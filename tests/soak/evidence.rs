//! Workers' records of single runs, compared with the board: exit codes, and acknowledged comments.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::Fleet;
use crate::invariants::{Broken, BrokenInvariant, History, asking};
use crate::journal::{Journal, JournalLine};

/// Compares them. Of the runs that were killed nobody knows how far they came.
pub(super) fn faults(journal: &Journal, fleet: &Fleet, killed: &BTreeSet<i64>) -> Vec<BrokenInvariant> {
    let lines = journal.lines();
    let outcomes = History::of(&asking(fleet)).outcomes;
    let mut of_run = BTreeMap::<i64, BTreeSet<&str>>::new();
    for line in &lines {
        of_run.entry(line.run).or_default().insert(&line.what);
    }
    let mut found = Vec::new();
    for (run, said) in of_run.iter().filter(|(run, _)| !killed.contains(run)) {
        let expected = if said.contains("code7") { "crashed" } else { "completed" };
        let outcome = outcomes.get(run).map(String::as_str);
        if outcome != Some(expected) {
            found.push(BrokenInvariant::new(
                Broken::Wrong,
                format!("run {run} was not killed, said {said:?}, and is {outcome:?}"),
            ));
        }
    }
    let mut shown = BTreeMap::<&str, Value>::new();
    for line in lines.iter().filter(|line| ["code7", "kept"].contains(&line.what.as_str())) {
        let shown = shown.entry(&line.task).or_insert_with(|| fleet.show(&line.task));
        found.extend(of_line(line, shown, killed));
    }
    found
}

fn of_line(line: &JournalLine, shown: &Value, killed: &BTreeSet<i64>) -> Option<BrokenInvariant> {
    let run = line.run;
    if line.what == "code7" {
        let runs = shown["runs"].as_array().unwrap();
        let code = runs.iter().find(|one| one["id"] == run).map(|one| &one["exit_code"]);
        let is_right = killed.contains(&run) || code == Some(&7.into());
        return (!is_right).then(|| {
            BrokenInvariant::new(Broken::Wrong, format!("run {run} exited with 7, and has {code:?}"))
        });
    }
    let text = format!("kept by {run}");
    let comments = shown["comments"].as_array().unwrap();
    match comments.iter().filter(|comment| comment["body"] == text.as_str()).count() {
        1 => None,
        0 => {
            Some(BrokenInvariant::new(Broken::Lost, format!("a comment of run {run} that was acknowledged")))
        }
        _ => Some(BrokenInvariant::new(Broken::Duplicated, format!("a comment of run {run}"))),
    }
}
