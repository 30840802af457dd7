//! First story: three workers read the clone in parallel, one merges their findings, one commits a report.

use kernel::{Counted, Purpose, Run, Status, TaskId};

use super::board::{DemoBoard, find};
use super::directory::Owners;
use super::progress::DemoProgress;
use super::report::{Clone, DemoReport, ExpectationResult, Story};
use super::repository;
use api::Verb;
use base::failure::Failure;
use verbs::{Create, Show};

const STORY: Story = Story::Pipeline;

/// Findings, in the order of the merged report.
const FINDINGS: [(&str, &str, &str); 3] = [
    ("one counts the lines", "count the lines", include_str!("scripts/lines.sh")),
    ("one finds each TODO and FIXME", "find TODO and FIXME", include_str!("scripts/markers.sh")),
    ("one finds the largest files", "find the largest files", include_str!("scripts/largest.sh")),
];

/// Command that checks the report: each finding is in it.
const CHECK: &str = "for kind in lines markers largest; do grep \"^[*] $kind: \" REPORT.md || exit 1; done";

/// Results of the story for the stories after it.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) last: TaskId,
    /// Tasks that used worktrees of the clone.
    pub(super) worktrees: Vec<TaskId>,
    /// Sandbox report of the first worker.
    pub(super) sandbox: Option<serde_json::Value>,
}

type Shown = <Show as Verb>::Reply;

pub(super) async fn play(
    board: &mut DemoBoard,
    clone: &Clone,
    owners: Owners,
    report: &mut DemoReport,
    progress: &DemoProgress,
) -> Result<Pipeline, Failure> {
    let worktree = || Some(format!("worktree:{}", clone.path.display()));
    let mut parents = Vec::new();
    for (_, title, script) in FINDINGS {
        let task = Create { workspace: worktree(), ..Create::default() };
        parents.push(board.create(title, script.to_owned(), task).await?);
    }
    let task = Create { parents: parents.clone(), ..Create::default() };
    let merge = board.create("merge the findings", include_str!("scripts/merge.sh").to_owned(), task).await?;
    let check = Some(CHECK.to_owned());
    let task = Create { parents: vec![merge.clone()], workspace: worktree(), check, ..Create::default() };
    let last = board
        .create("write and commit the report", include_str!("scripts/report.sh").to_owned(), task)
        .await?;
    let all: Vec<TaskId> = parents.iter().chain([&merge, &last]).cloned().collect();
    progress.now("pipeline: 3 workers read the clone");
    board
        .until("the pipeline ends", |tasks| {
            let settled = all.iter().filter(|id| {
                find(tasks, id).is_some_and(|task| matches!(task.status, Status::Done | Status::Blocked))
            });
            let done = settled.count();
            progress.now(format!("pipeline: {done} done of {}", Counted(all.len(), "task")));
            let stuck = tasks.iter().any(|task| task.status == Status::Blocked);
            (done == all.len() || stuck).then_some(())
        })
        .await?;
    let mut findings = Vec::new();
    for id in &parents {
        findings.push(board.show(id).await?);
    }
    let merged = board.show(&merge).await?;
    let written = board.show(&last).await?;
    check_findings(&findings, clone, report);
    check_merge(&findings, &merged, report);
    check_commit(&merged, &written, clone, owners, report);
    check_proof(&written, report);
    if owners.differ() {
        report.not_of_root(STORY, "no file of the clone is root's", &clone.path);
    }
    let sandbox = findings.first().and_then(last_run).and_then(|run| run.sandbox.clone());
    let worktrees = parents.into_iter().chain([last.clone()]).collect();
    Ok(Pipeline { last, worktrees, sandbox })
}

/// Returns the last run that worked on a task.
fn last_run(shown: &Shown) -> Option<&Run> {
    shown.runs.iter().rev().find(|run| run.purpose == Purpose::Work)
}

/// Returns the summary of a task's last run, or its error.
fn summary(shown: &Shown) -> String {
    let run = last_run(shown);
    run.and_then(|run| run.summary.clone().or_else(|| run.error.clone()))
        .unwrap_or_else(|| format!("{} is {}", shown.task.id, shown.task.status))
}

fn check_findings(findings: &[Shown], clone: &Clone, report: &mut DemoReport) {
    for (shown, (name, ..)) in findings.iter().zip(FINDINGS) {
        let metadata = last_run(shown).and_then(|run| run.metadata.as_ref());
        let files = metadata.and_then(|metadata| metadata.get("files")).and_then(serde_json::Value::as_u64);
        let all = u64::try_from(clone.files).ok();
        let ok = shown.task.status == Status::Done && files == all && files.is_some();
        report.check(
            STORY,
            name,
            format!("a finding from each of {}", Counted(clone.files, "file")),
            summary(shown),
            ok,
        );
    }
    let own = |shown: &Shown| {
        let place = clone.path.join(".worktrees").join(shown.task.id.as_str());
        last_run(shown)
            .is_some_and(|run| run.workspace_path.as_deref().map(std::path::Path::new) == Some(&place))
    };
    let seen = findings.iter().filter(|shown| own(shown)).count();
    report.equal(STORY, "each has a worktree of its own", "3 worktrees", format!("{seen} worktrees"));
}

fn check_merge(findings: &[Shown], merged: &Shown, report: &mut DemoReport) {
    let expected: Vec<String> = findings.iter().map(summary).collect();
    let seen = summary(merged);
    let lines = seen.lines().count();
    let ok = merged.task.status == Status::Done && seen == expected.join("\n");
    let seen = if ok { format!("{lines} of 3 results are merged") } else { seen };
    report.check(STORY, "the fan-in has its parents' results", expected.join("; "), seen, ok);
    // Later events have greater ids, so the id of the claim must be greater than the ids of all three ends.
    let ends = findings.iter().filter_map(|shown| event(shown, "completed")).collect::<Vec<_>>();
    let claim = event(merged, "claimed");
    let waited = ends.len() == 3 && claim.is_some_and(|claim| ends.iter().all(|end| *end < claim));
    let seen = format!("ended at events {ends:?}, claimed at {}", claim.unwrap_or_default());
    report.check(STORY, "the fan-in waited for all three", "claimed after all three", seen, waited);
}

fn event(shown: &Shown, kind: &str) -> Option<i64> {
    shown.events.iter().find(|event| event.kind == kind).map(|event| event.id.get())
}

fn check_commit(merged: &Shown, written: &Shown, clone: &Clone, owners: Owners, report: &mut DemoReport) {
    let branch = format!("task/{}", written.task.id);
    let expected =
        format!("REPORT.md with all findings, by shell, on {branch}, on top of {}", short(&clone.commit));
    let name = "the report is on its branch";
    let commit = match repository::tip(clone, &branch, owners) {
        Ok(commit) => commit,
        Err(failure) => {
            let seen = format!("{} ({})", failure.message, summary(written));
            report.check(STORY, name, expected, seen, ExpectationResult::Failed);
            return;
        }
    };
    let text = commit.files.get("REPORT.md").cloned().flatten().unwrap_or_default();
    let whole = summary(merged).lines().all(|line| text.contains(line)) && !text.is_empty();
    let files: Vec<&str> = commit.files.keys().map(String::as_str).collect();
    let seen = format!(
        "{} by {} on {branch}: {}",
        short(&commit.id),
        commit.author,
        if files == ["REPORT.md"] && whole {
            "REPORT.md with all findings".to_owned()
        } else {
            files.join(", ")
        }
    );
    let ok = written.task.status == Status::Done
        && commit.author == "shell"
        && commit.parents == [clone.commit.clone()]
        && files == ["REPORT.md"]
        && whole;
    report.check(STORY, name, expected, seen, ok);
}

/// Checks that the report was completed by its check, after its worker.
fn check_proof(written: &Shown, report: &mut DemoReport) {
    let outcomes: Vec<String> = written
        .runs
        .iter()
        .map(|run| format!("{} {}", run.purpose, run.outcome.map_or("goes on", |outcome| outcome.as_str())))
        .collect();
    report.equal(
        STORY,
        "its check has proved the report",
        "work completed, check check_passed",
        outcomes.join(", "),
    );
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
