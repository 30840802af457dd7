//! Collects the facts for the database of a program with its own board: the run's task with its comments, and the
//! parents of the task with their results.

use kernel::{Outcome, Projected, ProjectedComment, ProjectedTask, TaskId};

use crate::client::Client;
use base::environment;
use base::failure::Failure;
use verbs::{Show, ShownTask};

/// Reads the facts from the board, with the token of the run that this process belongs to.
pub(super) async fn gather(client: &Client) -> Result<Projected, Failure> {
    let worker = client.worker().ok_or_else(|| Failure::failed("it is not a process of a run"))?;
    let shown = show(client, &worker.task).await?;
    let mut parents = Vec::new();
    for id in &shown.parents {
        // A parent that this run may not read is left out.
        if let Ok(parent) = show(client, id).await {
            parents.push(task(&parent));
        }
    }
    let text = |name: &str| environment::text(name).unwrap_or_default();
    let comments = shown.comments.iter().map(|comment| ProjectedComment {
        author: comment.author.clone(),
        body: comment.body.clone(),
        created_at: comment.created_at.as_secs(),
    });
    Ok(Projected {
        comments: comments.collect(),
        parents,
        run: text("SUPERVISOR_RUN_ID").parse().unwrap_or(1),
        claim: text("HERMES_KANBAN_CLAIM_LOCK"),
        workspace: text("SUPERVISOR_WORKSPACE").into(),
        now: now(),
        own: task(&shown),
    })
}

/// Returns the current time, in seconds since the epoch.
pub(super) fn now() -> i64 {
    use kernel::Clock as _;
    kernel::SystemClock.now().as_secs()
}

async fn show(client: &Client, id: &TaskId) -> Result<ShownTask, Failure> {
    client.call(&Show { task_id: Some(id.clone()), ..Show::default() }).await
}

fn task(shown: &ShownTask) -> ProjectedTask {
    let task = &shown.task;
    let finished = shown.runs.iter().rev().find(|run| run.outcome == Some(Outcome::Completed));
    ProjectedTask {
        id: task.id.to_string(),
        title: task.title.clone(),
        body: task.body.clone(),
        assignee: task.assignee.as_ref().map(ToString::to_string),
        tenant: task.tenant.as_ref().map(ToString::to_string),
        priority: task.priority,
        created_by: task.created_by.clone(),
        created_at: task.created_at.as_secs(),
        result: task.result.clone(),
        summary: shown.latest_summary.clone(),
        metadata: finished.and_then(|run| run.metadata.as_ref()).map(ToString::to_string),
    }
}
