//! `diagnostics`: lists the problems of tasks and of the host, with their age and their remedies.

use kernel::{Severity, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Ink, Screen, printable};
use base::time::timestamp;
use upkeep::diagnosis::{self, DiagnosedSubject};

/// Show problems, their age and how to fix them
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    visible_alias = "diag",
    after_help = "\
A problem of no single task has a row too: `root` in the list, and in JSON a
null task_id and status.

Examples:
  supervisor diagnostics
  supervisor diagnostics --severity error
  supervisor diagnostics --task t_0123abcd --json"
)]
pub struct Diagnostics {
    /// Only problems of at least this severity
    #[arg(long, value_name = "SEVERITY", value_parser = parse::word::<Severity>(Severity::ALL.iter().map(|word| word.as_str())))]
    pub severity: Option<Severity>,
    /// Only problems of this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskId>,
}

impl Verb for Diagnostics {
    verb! { "diagnostics": Operator, Read => Vec<DiagnosedSubject> }

    async fn run(self, call: Call) -> Result<Vec<DiagnosedSubject>, Failure> {
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
            one.diagnostics.retain(|diagnostic| diagnostic.severity >= least);
            for action in one.diagnostics.iter_mut().flat_map(|diagnostic| &mut diagnostic.actions) {
                action.aim(&board);
            }
        }
        found.retain(|one| !one.diagnostics.is_empty());
        // A task named in the request gets a row even without problems, unless a severity is named as well.
        if let Some(task) = task.filter(|_| self.severity.is_none())
            && found.is_empty()
        {
            found.push(DiagnosedSubject::of_task(&task, Vec::new()));
        }
        Ok(found)
    }
}

impl Command for Diagnostics {
    fn show(reply: &Vec<DiagnosedSubject>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("Nothing is wrong.");
            return;
        }
        for one in reply.iter().filter(|one| one.diagnostics.is_empty()) {
            let status = one.status.map(|status| format!(" ({status})")).unwrap_or_default();
            let head = format!("{}{status}: nothing is wrong", one.title);
            screen.hanging(&one.label(), &printable(&head));
        }
        for (severity, ink) in
            [(Severity::Critical, Ink::Red), (Severity::Error, Ink::Red), (Severity::Warning, Ink::Yellow)]
        {
            let of_it =
                |one: &&DiagnosedSubject| one.diagnostics.iter().any(|found| found.severity == severity);
            if !reply.iter().any(|one| of_it(&one)) {
                continue;
            }
            let heading = screen.paint(ink, severity.as_str());
            screen.heading(&heading);
            for one in reply.iter().filter(of_it) {
                for found in one.diagnostics.iter().filter(|found| found.severity == severity) {
                    let head = format!("{} ({}): {}", one.title, found.kind, found.title);
                    screen.hanging(&one.label(), &printable(&head));
                    if !found.detail.is_empty() {
                        screen.hanging("            ", &printable(&found.detail));
                    }
                    let since = timestamp::local(found.first_seen_at);
                    screen.line(format!(
                        "            since {since}, last {}",
                        timestamp::local(found.last_seen_at)
                    ));
                    for action in found.actions.iter().filter(|action| action.suggested) {
                        let command = printable(&action.payload.command.to_string());
                        screen.line(format!("            {}: {command}", action.label));
                    }
                }
            }
        }
    }
}
