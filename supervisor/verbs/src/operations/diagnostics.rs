//! `diagnostics`: lists the problems of tasks and of the host, with their age and their remedies.

use kernel::{Diagnosed, Severity, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::findings::ink;
use base::terminal::{Screen, printable};
use upkeep::diagnosis;

/// Show problems, their age and how to fix them
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    visible_alias = "diag",
    after_help = "\
A problem of no single task has a row too: `root` in the list, and in JSON a
null task_id and status. Of the tasks, 100 of each kind are examined: the ready
ones that waited longest, the most important blocked ones, those with the most
failures, some that were blocked before and those that are most overdue.

Examples:
  supervisor diagnostics
  supervisor diagnostics --severity error
  supervisor diagnostics --task t_0123abcd --json"
)]
pub struct Diagnostics {
    /// Only problems of at least this severity
    #[arg(long, value_name = "SEVERITY", value_parser = parse::word::<Severity>(Severity::PROBLEMS.iter().map(|word| word.as_str())))]
    pub severity: Option<Severity>,
    /// Only problems of this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskId>,
}

impl Verb for Diagnostics {
    verb! { "diagnostics": Operator, Read => Vec<Diagnosed> }

    async fn run(self, call: Call) -> Result<Vec<Diagnosed>, Failure> {
        let board = call.board()?.name().clone();
        let named = self.task.clone();
        let (task, found) = call
            .read(move |view| {
                let task = named.as_ref().map(|named| view.expect_task(named)).transpose()?;
                Ok((task, view.diagnose(named.as_ref())?))
            })
            .await?;
        let mut found = diagnosis::complete(&call, found, self.task.as_ref()).await?;
        let least = self.severity.unwrap_or(Severity::Warning);
        for one in &mut found {
            one.diagnostics.retain(|finding| finding.severity >= least);
            // The commands for the root have their board already.
            let of_task = one.diagnostics.iter_mut().filter(|_| one.task_id.is_some());
            for remedy in of_task.flat_map(|finding| &mut finding.remedies) {
                remedy.aim(&board);
            }
        }
        found.retain(|one| !one.diagnostics.is_empty());
        // A task named in the request gets a row even without problems, unless a severity is named as well.
        if let Some(task) = task.filter(|_| self.severity.is_none())
            && found.is_empty()
        {
            found.push(Diagnosed::of_task(&task, Vec::new()));
        }
        Ok(found)
    }
}

impl Command for Diagnostics {
    fn show(reply: &Vec<Diagnosed>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("Nothing is wrong.");
            return;
        }
        for one in reply.iter().filter(|one| one.diagnostics.is_empty()) {
            let status = one.status.map(|status| format!(" ({status})")).unwrap_or_default();
            let head = format!("{}{status}: nothing is wrong", one.title);
            screen.hanging(&label(one), &printable(&head));
        }
        for severity in [Severity::Critical, Severity::Error, Severity::Warning] {
            let mut found =
                reply.iter().flat_map(|one| one.diagnostics.iter().map(move |found| (one, found)));
            let mut found = found.by_ref().filter(|(_, found)| found.severity == severity).peekable();
            if found.peek().is_some() {
                let heading = screen.paint(ink(severity), severity.as_str());
                screen.heading(&heading);
            }
            for (one, found) in found {
                let head = format!("{} ({}): {}", one.title, found.code, found.text);
                screen.finding(&label(one), &head, found);
            }
        }
    }
}

/// Returns the prefix of a row: the task, or `root`.
fn label(of: &Diagnosed) -> String {
    of.task_id.as_ref().map_or_else(|| format!("{:<12}", "root"), |task| format!("{task}  "))
}
