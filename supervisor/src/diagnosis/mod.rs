//! What the supervisor adds to what a board finds wrong: why nobody takes a stranded task, runs of which nobody knows
//! whether they are over, and what concerns the whole root.

mod whole;
pub(crate) mod why;

use std::cmp::Reverse;

use kernel::{
    Clock as _, Diagnosed, Diagnostic, Filter, Profile, Remedy, Severity, Status, SystemClock, Task, TaskId,
    Waiting, WaitingCode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::Call;
use crate::failure::Failure;

/// The most running tasks that are examined.
const RUNNING: u32 = 10_000;
/// The most ready tasks that are examined: a defect shows at the first of them.
const READY: u32 = 500;

/// A task, or the root as a whole, with what is wrong about it. The JSON of a task is the established board's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Finding {
    /// The task; null for what concerns the whole root.
    pub(crate) task_id: Option<TaskId>,
    /// Its title; else the name of what is wrong.
    pub(crate) title: String,
    /// Where the task stands.
    pub(crate) status: Option<Status>,
    /// Who is to do it.
    pub(crate) assignee: Option<Profile>,
    /// What is wrong, the worst first.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Finding {
    /// What is wrong about a task.
    pub(crate) fn of_task(task: &Task, diagnostics: Vec<Diagnostic>) -> Self {
        let (title, assignee) = (task.title.clone(), task.assignee.clone());
        Finding { task_id: Some(task.id.clone()), title, status: Some(task.status), assignee, diagnostics }
    }

    /// Something that is wrong about the whole root.
    fn of_root(title: String, diagnostic: Diagnostic) -> Self {
        Finding { task_id: None, title, status: None, assignee: None, diagnostics: vec![diagnostic] }
    }

    /// What stands before its lines: the task, or `root`.
    pub(crate) fn label(&self) -> String {
        self.task_id.as_ref().map_or_else(|| format!("{:<12}", "root"), |task| format!("{task}  "))
    }
}

impl From<Diagnosed> for Finding {
    fn from(of: Diagnosed) -> Self {
        let Diagnosed { task_id, title, status, assignee, diagnostics } = of;
        Finding { task_id: Some(task_id), title, status: Some(status), assignee, diagnostics }
    }
}

/// Adds it: for one task, or for all and the root.
pub(crate) async fn complete(
    call: &Call,
    found: Vec<Diagnosed>,
    task: Option<&TaskId>,
) -> Result<Vec<Finding>, Failure> {
    let mut found: Vec<Finding> = found.into_iter().map(Finding::from).collect();
    let stranded: Vec<TaskId> = found
        .iter()
        .filter(|one| one.diagnostics.iter().any(is_stranded))
        .filter_map(|one| one.task_id.clone())
        .collect();
    let only = task.cloned();
    let tasks = call
        .read(move |view| {
            let running = Filter { statuses: vec![Status::Running], limit: RUNNING, ..Filter::default() };
            let ready = Filter { statuses: vec![Status::Ready], limit: READY, ..Filter::default() };
            let mut tasks = match only {
                Some(task) => vec![view.expect_task(&task)?],
                None => [view.tasks(&running)?.tasks, view.tasks(&ready)?.tasks].concat(),
            };
            tasks.retain(|task| matches!(task.status, Status::Running | Status::Ready));
            let stranded = stranded.iter().filter(|id| !tasks.iter().any(|task| task.id == **id));
            let stranded: Vec<TaskId> = stranded.cloned().collect();
            for task in &stranded {
                tasks.extend(view.task(task)?);
            }
            Ok(tasks)
        })
        .await?;
    for task in why::explain(call, tasks).await? {
        let Some(why) = &task.why else { continue };
        let unended = match why.code {
            WaitingCode::Unkillable => Some(unkillable(&task, why)),
            WaitingCode::Survivors => Some(survivors(&task, why)),
            WaitingCode::Stuck => Some(stuck(&task, why)),
            WaitingCode::Environment => {
                found.retain(|one| {
                    one.task_id.as_ref() != Some(&task.id) || !one.diagnostics.iter().all(is_stranded)
                });
                Some(broken(&task, why))
            }
            _ => None,
        };
        if let Some(unended) = unended {
            found.push(unended);
        } else if let Some(one) = found.iter_mut().find(|one| one.task_id.as_ref() == Some(&task.id)) {
            // What somebody holds back on purpose is not stranded.
            one.diagnostics.retain(|diagnostic| why.code != WaitingCode::Hold || !is_stranded(diagnostic));
            for diagnostic in one.diagnostics.iter_mut().filter(|diagnostic| is_stranded(diagnostic)) {
                diagnostic.detail = why::line(why);
            }
        }
    }
    if task.is_none() {
        found.extend(whole::wrong(call).await?);
    }
    found.retain(|one| !one.diagnostics.is_empty());
    found.sort_by_key(|one| {
        (one.diagnostics.first().map(|worst| Reverse(worst.severity)), one.task_id.clone())
    });
    Ok(found)
}

fn is_stranded(diagnostic: &Diagnostic) -> bool {
    diagnostic.kind == "stranded_in_ready"
}

/// A run whose processes SIGKILL does not end.
fn unkillable(task: &Task, why: &Waiting) -> Finding {
    let actions = vec![
        Remedy::command("see the processes of the run", "status --tree").suggested(),
        Remedy::command("see what this host lacks", "doctor"),
    ];
    unended(task, why, "unkillable", "SIGKILL does not end the processes of its run", actions)
}

/// A run of which nobody knows whether its processes are gone.
fn survivors(task: &Task, why: &Waiting) -> Finding {
    let actions = vec![
        Remedy::command("see what runs", "status"),
        Remedy::command("end what was found and free the task", format!("reclaim {}", task.id)).suggested(),
    ];
    unended(task, why, "survivors_unknown", "processes of its run may still live", actions)
}

/// A run that is over as far as its processes go, and whose end cannot be proven or recorded.
fn stuck(task: &Task, why: &Waiting) -> Finding {
    let actions = vec![
        Remedy::command("check the host and the board", "doctor"),
        Remedy::command("end it without artifacts that cannot be kept", format!("reclaim {}", task.id))
            .suggested(),
    ];
    unended(task, why, "run_not_ended", "its run cannot be ended yet", actions)
}

/// What a task needs does not work, which costs it nothing and ends by itself once somebody has mended it.
fn broken(task: &Task, why: &Waiting) -> Finding {
    let actions = vec![
        Remedy::command("see what is broken", "status").suggested(),
        Remedy::command("see what this host lacks", "doctor"),
    ];
    let mut diagnosed = unended(task, why, "environment_broken", "what it needs does not work", actions);
    for diagnostic in &mut diagnosed.diagnostics {
        diagnostic.severity = Severity::Error;
        diagnostic.detail = why::line(why);
    }
    diagnosed
}

fn unended(task: &Task, why: &Waiting, kind: &str, title: &str, actions: Vec<Remedy>) -> Finding {
    let diagnostic = Diagnostic {
        first_seen_at: task.updated_at,
        run_id: task.current_run_id,
        ..now(kind, Severity::Critical, (title.to_owned(), why.text.clone()), actions)
    };
    Finding::of_task(task, vec![diagnostic])
}

/// Something that is wrong now, and of which nothing earlier is known.
fn now(
    kind: &str,
    severity: Severity,
    (title, detail): (String, String),
    actions: Vec<Remedy>,
) -> Diagnostic {
    let now = SystemClock.now();
    let (first_seen_at, last_seen_at, kind) = (now, now, kind.to_owned());
    let (count, run_id, data) = (1, None, json!({}));
    Diagnostic { kind, severity, title, detail, actions, first_seen_at, last_seen_at, count, run_id, data }
}
