//! Adds the supervisor's findings to a board's: the reasons of stranded tasks, runs whose end is unknown, and problems
//! of the whole root.

pub mod why;

use kernel::{
    Clock as _, Diagnosed, Filter, Finding, FindingCode, Remedy, Seen, Severity, Status, SystemClock, Task,
    TaskId, Waiting, WaitingCode,
};

use api::Call;
use base::failure::Failure;
use daemon::{Event, OwnerLink, Snapshot, problems};
use service::board_subject;

/// Limit on the running tasks that are examined.
const RUNNING: u32 = 10_000;
/// Limit on the ready tasks that are examined. A defect shows at the first of them.
const READY: u32 = 100;

/// Collects the problems of the service, of the board of a call, and of its daemon, as far as the caller may see them. The
/// most severe are first. `of_board` has the problems of the board's automation.
pub fn collect(call: &Call, mut of_board: Vec<Finding>, daemon: Option<&Snapshot>) -> Vec<Finding> {
    for remedy in of_board.iter_mut().flat_map(|finding| &mut finding.remedies) {
        remedy.aim(call.board_name());
    }
    let mut findings = call.service.board_findings(call.board().ok());
    findings.extend(daemon.iter().flat_map(|daemon| daemon.state_findings()));
    if call.confined().is_some() {
        // A tenant's members learn nothing of other boards, of the host and of the configuration.
        let own = board_subject(call.board_name());
        findings.retain(|finding| finding.code != FindingCode::BoardNotWritten || finding.subject == own);
        findings.extend(of_board);
    } else {
        findings.extend(call.service.findings());
        findings.extend(daemon.iter().flat_map(|daemon| daemon.broken_findings()));
        // A daemon knows the breakers of all boards, so those that a board has stored are not listed twice.
        let is_new = |finding: &Finding| daemon.is_none() || finding.code != FindingCode::BreakerOpen;
        findings.extend(of_board.into_iter().filter(is_new));
    }
    Finding::sort(&mut findings);
    findings
}

/// Completes the findings of a board: about one task, or about all tasks and the root.
pub async fn complete(
    call: &Call,
    mut found: Vec<Diagnosed>,
    task: Option<&TaskId>,
) -> Result<Vec<Diagnosed>, Failure> {
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
        if why.code == WaitingCode::Environment {
            // A broken environment explains why the task is stranded, so that finding goes.
            found.retain(|one| {
                one.task_id.as_ref() != Some(&task.id) || !one.diagnostics.iter().all(is_stranded)
            });
        }
        if let Some(unended) = unended(&task, why) {
            found.push(Diagnosed::of_task(&task, vec![unended]));
        } else if let Some(one) = found.iter_mut().find(|one| one.task_id.as_ref() == Some(&task.id)) {
            // A task that a person holds back is not stranded.
            one.diagnostics.retain(|finding| why.code != WaitingCode::Hold || !is_stranded(finding));
            for finding in one.diagnostics.iter_mut().filter(|finding| is_stranded(finding)) {
                finding.detail = why::line(why);
            }
        }
    }
    if task.is_none() {
        found.extend(of_root(call).await?.into_iter().map(Diagnosed::of_root));
    }
    found.retain(|one| !one.diagnostics.is_empty());
    Diagnosed::sort(&mut found);
    Ok(found)
}

/// Returns the problems of the whole root.
async fn of_root(call: &Call) -> Result<Vec<Finding>, Failure> {
    let of_board = call.read(|view| problems::of_board(view, None)).await?;
    let snapshot = match OwnerLink::from_service(&call.service) {
        Some(daemon) => Some(daemon.ask(Event::Look).await?),
        None => None,
    };
    Ok(collect(call, of_board, snapshot.as_ref()))
}

fn is_stranded(finding: &Finding) -> bool {
    finding.code == FindingCode::StrandedInReady
}

/// Returns the finding about a run that does not end, or a task whose environment is broken. Such a wait costs the task
/// nothing.
fn unended(task: &Task, why: &Waiting) -> Option<Finding> {
    let id = &task.id;
    let finding = |code, text: &str| {
        let seen = Seen { run_id: task.current_run_id, ..Seen::lasting(task.updated_at, SystemClock.now()) };
        Finding::new(code, Severity::Critical, text).about("").detail(why.text.clone()).seen(seen)
    };
    Some(match why.code {
        WaitingCode::Unkillable => {
            finding(FindingCode::Unkillable, "SIGKILL does not end the processes of its run")
                .remedy(Remedy::command("see the processes of the run", "status --tree").suggested())
                .remedy(Remedy::command("see what this host lacks", "doctor"))
        }
        WaitingCode::Survivors => {
            finding(FindingCode::SurvivorsUnknown, "processes of its run may still live")
                .remedy(Remedy::command("see what runs", "status"))
                .remedy(
                    Remedy::command("end what was found and free the task", format!("reclaim {id}"))
                        .suggested(),
                )
        }
        WaitingCode::Stuck => finding(FindingCode::RunNotEnded, "its run cannot be ended yet")
            .remedy(Remedy::command("check the host and the board", "doctor"))
            .remedy(
                Remedy::command("end it without artifacts that cannot be kept", format!("reclaim {id}"))
                    .suggested(),
            ),
        WaitingCode::Environment => {
            let finding = finding(FindingCode::EnvironmentBroken, "what it needs does not work")
                .detail(why::line(why))
                .remedy(Remedy::command("see what is broken", "status").suggested())
                .remedy(Remedy::command("see what this host lacks", "doctor"));
            Finding { severity: Severity::Error, ..finding }
        }
        _ => return None,
    })
}
