//! Shows the commits and files of a run in git beside its worker's report.

use kernel::{Counted, Run, RunId};
use workspace::{Evidence, Uncommitted};

use base::terminal::printable;

/// Number of shown characters of a commit's id.
const SHORT: usize = 10;

/// Returns the latest run with evidence, and the evidence as pairs of a label and a text: the run's changes in git as
/// the supervisor found them.
pub(crate) fn lines(runs: &[Run]) -> Option<(RunId, Vec<(&'static str, String)>)> {
    let (run, evidence) = runs.iter().rev().find_map(|run| Some((run.id, run.evidence.as_ref()?)))?;
    let lines = if let Ok(evidence) = serde_json::from_value::<Evidence>(evidence.clone()) {
        found(&evidence)
    } else {
        let why = evidence["error"].as_str().unwrap_or("another release has written it");
        let uncommitted = serde_json::from_value(evidence["uncommitted"].clone());
        let rest = uncommitted.map(|uncommitted| rest(&uncommitted)).unwrap_or_default();
        std::iter::once(("not found", printable(why))).chain(rest).collect()
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
    let mut lines = vec![("changes", format!("{commits}, {files}{lines}"))];
    for commit in &evidence.commits {
        let id: String = commit.id.chars().take(SHORT).collect();
        lines.push(("commit", printable(&format!("{id} {}", commit.subject))));
    }
    for changed in &evidence.changed {
        lines.push((changed.change.as_str(), printable(&changed.path)));
    }
    let more = evidence.files.saturating_sub(evidence.changed.len());
    if more > 0 {
        lines.push(("and", format!("{more} more")));
    }
    if let Some(uncommitted) = &evidence.uncommitted {
        lines.extend(rest(uncommitted));
    }
    lines
}

/// Returns the lines about uncommitted changes: the commit that the supervisor made of them, and the remaining paths
/// with the reasons.
fn rest(uncommitted: &Uncommitted) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(commit) = &uncommitted.commit {
        let id: String = commit.chars().take(SHORT).collect();
        let paths = Counted(uncommitted.committed, "path");
        lines.push((
            "committed",
            printable(&format!("by the supervisor: {paths} that the run left, as {id}")),
        ));
    }
    if let Some(why) = &uncommitted.hindrance {
        lines.push(("uncommitted", printable(&format!("nothing could be committed: {why}"))));
    }
    for left in &uncommitted.left {
        lines.push(("uncommitted", printable(&format!("{} ({})", left.path, left.why.as_str()))));
    }
    if uncommitted.more > 0 {
        lines.push(("and", format!("{} more are uncommitted", uncommitted.more)));
    }
    lines
}
