//! `diff`: the changes that the runs of a task made in git, as files and lines, also during a run.
//!
//! See decision 0175.

use std::time::Duration;

use kernel::{RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workspace::{Detail, Diff as Found, FileDiff, FileStatus, LineKind};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Ink, Screen, printable};
use daemon::{DiffRequest, Work, diff_of_runs};

/// Time limit of a diff, without the time that it waits for other diffs.
const LONGEST: Duration = Duration::from_secs(30);
/// Time after which a client gives up.
const ANSWERED: Duration = Duration::from_mins(1);
/// Limit on the `+` and `-` signs of a file in a summary.
const MARKS: usize = 40;

/// Show the changes that the runs of a task made in git
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Without --run it is the work of all runs of the task, from where the first one began. The
diff of the last run includes what is not committed, and new files that git does not
ignore; that of an earlier run is what it has committed.

At most 300 files and 2 MiB of lines are shown; `truncated` says that there are more.

Examples:
  supervisor diff t_0123abcd
  supervisor diff t_0123abcd --stat
  supervisor diff t_0123abcd --run 17 --json")]
pub struct Diff {
    /// The task; inside a run, the run's own task if none is named
    pub task_id: Option<TaskId>,
    /// Only the work of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<RunId>,
    /// Show only the number of changed lines of each file
    #[arg(long)]
    pub stat: bool,
}

/// The work of runs as files and lines.
#[derive(Debug, Serialize, Deserialize)]
pub struct DiffReply {
    pub task_id: TaskId,
    /// The latest run whose work is included.
    pub run_id: RunId,
    /// True if this run is still active, so that its work may change.
    pub live: bool,
    /// True if lines were left out because counts were asked for.
    pub stat: bool,
    #[serde(flatten)]
    pub diff: Found,
}

impl Verb for Diff {
    verb! { "diff": Operator, Read, members => DiffReply }

    fn answered_within(&self) -> Duration {
        ANSWERED
    }

    async fn run(self, call: Call) -> Result<DiffReply, Failure> {
        let task_id = parse::named(self.task_id)?;
        let (id, actor) = (task_id.clone(), call.actor.clone());
        let (task, runs) = call
            .read(move |view| {
                let task = view.task_for(&id, &actor)?;
                Ok((task, view.runs(&id)?))
            })
            .await?;
        let (service, board) = (call.service.clone(), call.board()?.name().clone());
        let detail = if self.stat { Detail::Counts } else { Detail::Lines };
        let wanted = DiffRequest { task, runs, run: self.run, detail };
        let look = move |cancel: &_| diff_of_runs(service.root(), &board, &wanted, cancel);
        let tenant = call.actor.tenant.clone();
        let looked = call.service.diffs().run_within(LONGEST, &tenant, look).await;
        let late = |why: String| {
            Failure::new(Code::TryAgain, format!("the work of {task_id} was not read: {why}"))
                .hint("try again in a moment; --stat reads less")
        };
        let Work { run, live, diff } = looked.map_err(late)??;
        Ok(DiffReply { task_id, run_id: run, live, stat: self.stat, diff })
    }
}

impl Command for Diff {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &DiffReply, screen: &mut Screen) {
        for warning in &reply.diff.warnings {
            screen.line(screen.paint(Ink::Yellow, &printable(&format!("warning: {warning}"))));
        }
        if reply.diff.files.is_empty() {
            screen.line(format!("Run {} has changed nothing.", reply.run_id));
            return;
        }
        if reply.stat {
            show_counts(&reply.diff, screen);
        } else {
            reply.diff.files.iter().for_each(|file| show_file(file, screen));
        }
        if reply.diff.truncated {
            screen.line(screen.paint(Ink::Yellow, "Not everything is shown."));
        }
    }
}

fn name(file: &FileDiff) -> String {
    match &file.old_path {
        Some(old) => printable(&format!("{old} => {}", file.path)),
        None => printable(&file.path),
    }
}

fn show_file(file: &FileDiff, screen: &mut Screen) {
    let mode = file.mode.as_ref().map(|mode| format!(" (mode {mode})")).unwrap_or_default();
    let heading = format!("{} {}{mode}", file.status.as_str(), name(file));
    screen.line(screen.paint(Ink::Bold, &heading));
    if file.binary {
        screen.line(screen.paint(Ink::Dim, "  (no text)"));
    }
    for hunk in &file.hunks {
        screen.line(screen.paint(Ink::Cyan, &printable(&hunk.header)));
        for line in &hunk.lines {
            let text = printable(&format!("{}{}", line.kind.as_str(), line.text));
            screen.line(match line.kind {
                LineKind::Context => text,
                LineKind::Added => screen.paint(Ink::Green, &text),
                LineKind::Removed => screen.paint(Ink::Red, &text),
            });
        }
    }
    if file.truncated {
        screen.line(screen.paint(Ink::Dim, "  (too long to be shown as a whole)"));
    }
    screen.line("");
}

/// Lines of a summary, one per file, as `git diff --stat` prints them.
fn show_counts(diff: &Found, screen: &mut Screen) {
    let widest = diff.files.iter().map(|file| name(file).chars().count()).max().unwrap_or_default();
    let most = diff.files.iter().map(|file| file.additions + file.deletions).max().unwrap_or_default();
    let marks = |count: usize, mark: &str| mark.repeat((count * MARKS.min(most)).div_ceil(most.max(1)));
    for file in &diff.files {
        let name = format!("{:<widest$}", name(file));
        let lines = if file.binary {
            "no text".to_owned()
        } else if file.truncated {
            "too long".to_owned()
        } else {
            let (more, less) = (marks(file.additions, "+"), marks(file.deletions, "-"));
            let (more, less) = (screen.paint(Ink::Green, &more), screen.paint(Ink::Red, &less));
            format!("{:>5} {more}{less}", file.additions + file.deletions)
        };
        let status = match file.status {
            FileStatus::Added => " (new)",
            FileStatus::Deleted => " (gone)",
            FileStatus::Modified | FileStatus::Renamed => "",
        };
        screen.line(format!(" {name} | {lines}{status}"));
    }
    let (more, less) =
        diff.files.iter().fold((0, 0), |(more, less), file| (more + file.additions, less + file.deletions));
    screen.line(format!("{}, +{more} -{less}", kernel::Counted(diff.files.len(), "file")));
}
