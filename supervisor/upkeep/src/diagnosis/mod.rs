//! Adds the supervisor's findings to a board's: the reasons of stranded tasks, runs whose end is unknown, and problems
//! of the whole root.

mod whole;
pub mod why;

use std::cmp::Reverse;

use kernel::{
    Clock as _, Diagnosed, Diagnostic, Filter, Profile, Remedy, Severity, Status, SystemClock, Task, TaskId,
    Waiting, WaitingCode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use api::Call;
use base::failure::Failure;

/// Limit on the running tasks that are examined.
const RUNNING: u32 = 10_000;
/// Limit on the ready tasks that are examined. A defect shows at the first of them.
const READY: u32 = 500;

/// Findings about a task, or about the whole root. The JSON of a task is the same as in Hermes Kanban.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosedSubject {
    /// Task; null for the whole root.
    pub task_id: Option<TaskId>,
    /// Title of the task, else the subject of the problem.
    pub title: String,
    /// Status of the task; null for the root.
    pub status: Option<Status>,
    /// Assignee of the task; null for the root.
    pub assignee: Option<Profile>,
    /// Problems, worst first.
    pub diagnostics: Vec<Diagnostic>,
}

impl DiagnosedSubject {
    /// Makes the findings about a task.
    pub fn of_task(task: &Task, diagnostics: Vec<Diagnostic>) -> Self {
        let (title, assignee) = (task.title.clone(), task.assignee.clone());
        DiagnosedSubject {
            task_id: Some(task.id.clone()),
            title,
            status: Some(task.status),
            assignee,
            diagnostics,
        }
    }

    /// Makes a finding about the whole root.
    fn of_root(title: String, diagnostic: Diagnostic) -> Self {
        DiagnosedSubject { task_id: None, title, status: None, assignee: None, diagnostics: vec![diagnostic] }
    }

    /// Returns the prefix of its lines: the task, or `root`.
    pub fn label(&self) -> String {
        self.task_id.as_ref().map_or_else(|| format!("{:<12}", "root"), |task| format!("{task}  "))
    }
}

impl From<Diagnosed> for DiagnosedSubject {
    fn from(of: Diagnosed) -> Self {
        let Diagnosed { task_id, title, status, assignee, diagnostics } = of;
        DiagnosedSubject { task_id: Some(task_id), title, status: Some(status), assignee, diagnostics }
    }
}

/// Completes the findings of a board: about one task, or about all tasks and the root.
pub async fn complete(
    call: &Call,
    found: Vec<Diagnosed>,
    task: Option<&TaskId>,
) -> Result<Vec<DiagnosedSubject>, Failure> {
    let mut found: Vec<DiagnosedSubject> = found.into_iter().map(DiagnosedSubject::from).collect();
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
                // A broken environment explains why the task is stranded, so that finding goes.
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
            // A task that a person holds back is not stranded.
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

/// Reports a run whose processes outlive SIGKILL.
fn unkillable(task: &Task, why: &Waiting) -> DiagnosedSubject {
    let actions = vec![
        Remedy::command("see the processes of the run", "status --tree").suggested(),
        Remedy::command("see what this host lacks", "doctor"),
    ];
    unended(task, why, "unkillable", "SIGKILL does not end the processes of its run", actions)
}

/// Reports a run whose processes may still live.
fn survivors(task: &Task, why: &Waiting) -> DiagnosedSubject {
    let actions = vec![
        Remedy::command("see what runs", "status"),
        Remedy::command("end what was found and free the task", format!("reclaim {}", task.id)).suggested(),
    ];
    unended(task, why, "survivors_unknown", "processes of its run may still live", actions)
}

/// Reports a run without processes whose end cannot be proved or recorded.
fn stuck(task: &Task, why: &Waiting) -> DiagnosedSubject {
    let actions = vec![
        Remedy::command("check the host and the board", "doctor"),
        Remedy::command("end it without artifacts that cannot be kept", format!("reclaim {}", task.id))
            .suggested(),
    ];
    unended(task, why, "run_not_ended", "its run cannot be ended yet", actions)
}

/// Reports a task whose environment is broken. The wait costs the task nothing, and ends once the environment works.
fn broken(task: &Task, why: &Waiting) -> DiagnosedSubject {
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

fn unended(task: &Task, why: &Waiting, kind: &str, title: &str, actions: Vec<Remedy>) -> DiagnosedSubject {
    let text = DiagnosticText { title: title.to_owned(), detail: why.text.clone() };
    let diagnostic = Diagnostic {
        first_seen_at: task.updated_at,
        run_id: task.current_run_id,
        ..now(kind, Severity::Critical, text, actions)
    };
    DiagnosedSubject::of_task(task, vec![diagnostic])
}

/// Texts of a diagnostic.
struct DiagnosticText {
    title: String,
    detail: String,
}

/// Makes a diagnostic of a present problem without a history.
fn now(kind: &str, severity: Severity, text: DiagnosticText, actions: Vec<Remedy>) -> Diagnostic {
    let DiagnosticText { title, detail } = text;
    let now = SystemClock.now();
    let (first_seen_at, last_seen_at, kind) = (now, now, kind.to_owned());
    let (count, run_id, data) = (1, None, json!({}));
    Diagnostic { kind, severity, title, detail, actions, first_seen_at, last_seen_at, count, run_id, data }
}
