//! Shows the commits and files of a run in git beside its worker's report.

use kernel::{Counted, Run, RunId};
use workspace::Evidence;

use crate::terminal::printable;

/// Length of a commit's name that is shown.
const SHORT: usize = 10;

/// Returns the changes of the last run with any in git, as the supervisor has found them: the names of lines, each with its text.
pub(super) fn lines(runs: &[Run]) -> Option<(RunId, Vec<(&'static str, String)>)> {
    let (run, evidence) = runs.iter().rev().find_map(|run| Some((run.id, run.evidence.as_ref()?)))?;
    let lines = if let Ok(evidence) = serde_json::from_value::<Evidence>(evidence.clone()) {
        found(&evidence)
    } else {
        let why = evidence["error"].as_str().unwrap_or("another release has written it");
        vec![("not found", printable(why))]
    };
    Some((run, lines))
}

fn found(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let commits = evidence.commits.len().saturating_add(evidence.more_commits);
    let commits = Counted(commits, "commit");
    let lines = match (evidence.insertions, evidence.deletions) {
        (Some(more), Some(less)) => format!(", +{more} -{less}"),
        _ => String::new(),
    };
    let files = Counted(evidence.files, "changed path");
    let mut told = vec![("changes", format!("{commits}, {files}{lines}"))];
    for commit in &evidence.commits {
        let id: String = commit.id.chars().take(SHORT).collect();
        told.push(("commit", printable(&format!("{id} {}", commit.subject))));
    }
    for changed in &evidence.changed {
        told.push((changed.change.as_str(), printable(&changed.path)));
    }
    let more = evidence.files.saturating_sub(evidence.changed.len());
    if more > 0 {
        told.push(("and", format!("{more} more")));
    }
    told
}
