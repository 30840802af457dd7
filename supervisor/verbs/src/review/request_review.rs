//! `request-review`: hands the work to a reviewer before it counts as done.

use kernel::{Handoff, Profile, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::bulk::{Bulk, handed_over, shown};
use crate::views::parse;
use crate::workers::handoff_check;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use setup::roster::CannotRun;

/// Submit the work on a task for review
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Nobody can approve their own work. A named profile, else the one of the configuration,
reviews it in a run of its own; otherwise the task waits for a person.

Examples:
  supervisor request-review --summary 'parser fixed'      (inside a run)
  supervisor request-review t_0123abcd --summary 'parser fixed' \\
      --reviewer critic
  supervisor request-review t_0123abcd --metadata '{\"tests\": 14}'")]
pub struct RequestReview {
    /// The tasks; inside a run, the run's own task if none is named
    #[arg(value_name = "TASK")]
    pub task_ids: Vec<TaskId>,
    /// The profile or lane whose worker reviews it [default: review.profile of the configuration, else a person]
    #[arg(long, value_name = "NAME")]
    pub reviewer: Option<Profile>,
    /// The result itself, if short
    #[arg(long, value_name = "TEXT")]
    pub result: Option<String>,
    /// Summary of the work, for people and later workers
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// Machine-readable facts: a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse::json_object)]
    pub metadata: Option<serde_json::Value>,
    /// A file of the workspace that is part of the result (repeatable)
    #[arg(long = "artifact", value_name = "PATH")]
    pub artifacts: Vec<String>,
    /// Fail if this is not the task's open run
    #[arg(long, value_name = "RUN")]
    pub(crate) expected_run: Option<RunId>,
}

impl Verb for RequestReview {
    verb! {
        "request-review": Worker, Write,
        members,
        tool(Worker, "Call it instead of kanban_complete when somebody has to review the work first; it ends the run.")
        => Bulk
    }

    fn default_to_own(&mut self, own: &TaskId) {
        if self.task_ids.is_empty() {
            self.task_ids.push(own.clone());
        }
    }

    async fn run(self, call: Call) -> Result<Bulk, Failure> {
        if self.task_ids.is_empty() {
            return Err(Failure::usage("no task is named"));
        }
        if self.task_ids.len() > 1 && (self.summary.is_some() || self.metadata.is_some()) {
            return Err(Failure::usage("one summary or metadata cannot describe several tasks")
                .hint("request the reviews one by one, or without --summary and --metadata"));
        }
        call.refuse_live_without_daemon(&self.task_ids).await?;
        let (roster, config) = (call.service.roster(), call.service.config());
        let missing = |reviewer: &Profile| {
            let why = roster.resolve(reviewer, None, &config).err().filter(CannotRun::is_unknown)?;
            Some(format!("{why}, so the review waits for a worker that claims it"))
        };
        let named = self.reviewer.map(|reviewer| (missing(&reviewer), reviewer));
        let usual = config.review.profile.clone().map(|reviewer| (missing(&reviewer), reviewer));
        let handoff = Handoff {
            result: self.result,
            summary: self.summary,
            metadata: self.metadata,
            artifacts: self.artifacts,
        };
        handoff_check::require(&call, &handoff).await?;
        call.write(move |board, actor| {
            Bulk::each(board, self.task_ids, |board, id| {
                // Nobody may review their own work, so a person reviews it.
                let by = board.expect_task(id)?.assignee;
                let usual = usual.clone().filter(|(_, reviewer)| Some(reviewer) != by.as_ref());
                let (missing, reviewer) = named.clone().or(usual).unzip();
                let handed = handoff.clone();
                let settled = board.request_review(id, handed, reviewer, self.expected_run, actor)?;
                let (status, note) = handed_over(&settled, &handoff);
                let notes: Vec<String> = note.into_iter().chain(missing.flatten()).collect();
                Ok((status, (!notes.is_empty()).then(|| notes.join("; "))))
            })
        })
        .await
    }
}

impl Command for RequestReview {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::from_the_workspace(&mut self.artifacts, here);
        parse::own_task_if_none(&mut self.task_ids, here)
    }

    shown!("Review requested of");
}
