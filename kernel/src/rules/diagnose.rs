//! Diagnosis: finds the problems of tasks, with their age and remedies. The rules examine facts that the board has
//! read, and read nothing themselves.

use std::cmp::Reverse;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::event::EventKind;
use crate::model::examined_task::ExaminedTask;
use crate::model::finding::{Finding, FindingCode, Seen, Severity};
use crate::model::hold::{Hold, HoldKind, HoldScope};
use crate::model::id::{Profile, TaskId};
use crate::model::note::Event;
use crate::model::outcome::{Denied, Outcome};
use crate::model::remedy::Remedy;
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::task::Task;

/// Time after which an unclaimed ready task counts as stranded. After twice this time, this is an error; after six
/// times, it is critical.
const STRANDED: Duration = Duration::from_mins(30);
/// Time after which a blocked task counts as forgotten.
const FORGOTTEN: Duration = Duration::from_hours(24);
/// Number of unblocks from which on a further unblock is not expected to help.
const CYCLES: usize = 3;
/// Number of failures or crashes in a row from which on they are reported.
const REPEATED: u32 = 2;
/// Time after a task's start time from which on the task counts as overdue.
const OVERDUE: Duration = Duration::from_mins(5);

/// Kinds of events of failed runs that may carry a sandbox denial.
pub(crate) const ENDINGS: [EventKind; 3] =
    [EventKind::Crashed, EventKind::SpawnFailed, EventKind::ProtocolViolation];

/// Findings about a task, or about the whole root. The JSON of a task is the same as in Hermes Kanban.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosed {
    /// Task; null for the root.
    pub task_id: Option<TaskId>,
    /// Title of the task, else the subject of the finding.
    pub title: String,
    /// Status of the task; null for the root.
    pub status: Option<Status>,
    /// Assignee of the task; null for the root.
    pub assignee: Option<Profile>,
    /// Findings, the most severe first.
    pub diagnostics: Vec<Finding>,
}

impl Diagnosed {
    /// Makes the findings about a task.
    pub fn of_task(task: &Task, diagnostics: Vec<Finding>) -> Self {
        let (title, assignee) = (task.title.clone(), task.assignee.clone());
        let (task_id, status) = (Some(task.id.clone()), Some(task.status));
        Diagnosed { task_id, title, status, assignee, diagnostics }
    }

    /// Makes the row of a finding about the root.
    pub fn of_root(finding: Finding) -> Self {
        let title = finding.subject.clone();
        Diagnosed { task_id: None, title, status: None, assignee: None, diagnostics: vec![finding] }
    }

    /// Sorts rows by their worst finding, the worst first, then by the task.
    pub fn sort(rows: &mut [Diagnosed]) {
        rows.sort_by_key(|row| {
            (row.diagnostics.first().map(|worst| Reverse(worst.severity)), row.task_id.clone())
        });
    }
}

/// Facts about a task that the rules examine.
pub(crate) struct Facts<'a> {
    pub(crate) examined: &'a ExaminedTask,
    /// Event of the latest failed run; read only for a task with failures.
    pub(crate) ending: Option<Event>,
    /// Runs, oldest first; read only for [`is_failing`].
    pub(crate) runs: Vec<Run>,
    /// Events that unblocked the task; read only for a task that was blocked.
    pub(crate) unblocked: Vec<Event>,
    /// Holds that have not ended.
    pub(crate) holds: &'a [Hold],
    pub(crate) now: Timestamp,
}

/// Returns true if the runs of the task have to be read: it failed repeatedly, or it gave up after any number of
/// failures.
pub(crate) fn is_failing(examined: &ExaminedTask) -> bool {
    examined.failures >= REPEATED || examined.gave_up()
}

/// Returns a phrase with the number of failed checks if these used up the attempts, else with the number of failures.
pub(crate) fn gave_up(failures: u32, checks: Option<u32>) -> String {
    match checks {
        Some(checks) => format!("gave up after {}", Counted(checks, "failed check")),
        None => format!("gave up after {}", Counted(failures, "failure")),
    }
}

impl Facts<'_> {
    /// Returns the findings about the task, the most severe first.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let found = [
            self.denied(),
            self.failing(),
            self.crashing(),
            self.forgotten(),
            self.cycling(),
            self.paused(),
            self.stranded(),
            self.overdue(),
        ];
        let mut findings: Vec<Finding> = found.into_iter().flatten().collect();
        Finding::sort(&mut findings);
        findings
    }

    /// Reports a sandbox denial. A single failure is enough, because the sandbox will deny the same act again.
    fn denied(&self) -> Option<Finding> {
        let examined = self.examined;
        if examined.failures == 0 {
            return None;
        }
        let reported = |event: &Event| {
            let denied = event.payload.as_ref()?.get(Denied::KEY)?;
            serde_json::from_value::<Denied>(denied.clone()).ok()
        };
        let last = self.ending.as_ref().and_then(|event| Some((event, reported(event)?)));
        let (event, Denied { policy, act, line, text }) = last?;
        let (id, at) = (&examined.id, event.created_at);
        let seen = Seen {
            first_seen_at: at,
            last_seen_at: at,
            count: examined.failures,
            run_id: event.run_id,
            data: json!({ "policy": policy, "act": act, "line": line }),
        };
        let found =
            task_finding(FindingCode::SandboxDenied, Severity::Error, format!("its sandbox denied {act}"));
        let logs = Remedy::command("see the output of its last run", format!("logs {id}")).suggested();
        Some(found.detail(text).remedy(logs).seen(seen))
    }

    fn failing(&self) -> Option<Finding> {
        let examined = self.examined;
        if !is_failing(examined) {
            return None;
        }
        let runs = &self.runs;
        // The number of consecutive failures selects the failed runs, because other runs may lie in between that do not
        // count, such as lost ones.
        let failed = runs.iter().rev().filter(|run| run.outcome.is_some_and(crate::rules::retry::counts));
        let failed: Vec<_> = failed.take(usize::try_from(examined.failures).unwrap_or(usize::MAX)).collect();
        let ended = |run: &Run| run.ended_at.unwrap_or(run.started_at);
        let (last, first) = (failed.first(), failed.last());
        let id = &examined.id;
        let has_given_up = examined.gave_up();
        let by_checks = runs.last().is_some_and(|run| run.outcome == Some(Outcome::CheckFailed));
        let checks = (has_given_up && by_checks).then_some(examined.failed_checks);
        // A single failure is no repetition, even if the task allows only one.
        let is_repeated = examined.failures >= REPEATED;
        let code = if is_repeated { FindingCode::RepeatedFailures } else { FindingCode::GaveUp };
        let (severity, text) = if has_given_up {
            (Severity::Critical, gave_up(examined.failures, checks))
        } else {
            (Severity::Error, format!("failed {} times in a row", examined.failures))
        };
        let seen = Seen {
            first_seen_at: first.map_or(examined.since, |run| ended(run)),
            last_seen_at: last.map_or(examined.since, |run| ended(run)),
            count: checks.unwrap_or(examined.failures),
            run_id: last.map(|run| run.id),
            data: json!({ "consecutive_failures": examined.failures, "gave_up": has_given_up }),
        };
        let logs = Remedy::command("see the output of its last run", format!("logs {id}")).suggested();
        let mut found = task_finding(code, severity, text).remedy(logs).seen(seen);
        if has_given_up {
            found = found.remedy(Remedy::command("try it again", format!("unblock {id}")));
        }
        Some(
            found
                .detail(examined.error.clone().or_else(|| examined.block_reason.clone()).unwrap_or_default()),
        )
    }

    fn crashing(&self) -> Option<Finding> {
        let examined = self.examined;
        if !is_failing(examined) {
            return None;
        }
        let runs = &self.runs;
        let over = runs.iter().rev().filter(|run| run.ended_at.is_some());
        let crashes: Vec<_> = over.take_while(|run| run.outcome == Some(Outcome::Crashed)).collect();
        let (Some(last), Some(first)) = (crashes.first(), crashes.last()) else { return None };
        let count = u32::try_from(crashes.len()).unwrap_or(u32::MAX);
        if count < REPEATED {
            return None;
        }
        let id = &examined.id;
        let seen = Seen {
            first_seen_at: first.ended_at.unwrap_or(first.started_at),
            last_seen_at: last.ended_at.unwrap_or(last.started_at),
            count,
            run_id: Some(last.id),
            data: json!({ "exit_code": last.exit_code, "signal": last.signal }),
        };
        let text = format!("its worker crashed {count} times in a row");
        let found = task_finding(FindingCode::RepeatedCrashes, Severity::Error, text)
            .detail(last.error.clone().unwrap_or_default())
            .remedy(Remedy::command("compare its runs", format!("runs {id}")).suggested())
            .remedy(Remedy::command("see the output of the last one", format!("logs {id}")));
        Some(found.seen(seen))
    }

    fn forgotten(&self) -> Option<Finding> {
        let examined = self.examined;
        let age = self.now.since(examined.since);
        if examined.status != Status::Blocked || age < FORGOTTEN {
            return None;
        }
        let id = &examined.id;
        let text = format!("blocked for {} h", age.as_secs() / 3600);
        let found = task_finding(FindingCode::StuckInBlocked, Severity::Warning, text)
            .detail(examined.block_reason.clone().unwrap_or_default())
            .remedy(Remedy::command("see what it waits for", format!("show {id}")).suggested())
            .remedy(Remedy::command("unblock it", format!("unblock {id}")));
        Some(found.seen(Seen { data: json!({ "age_seconds": age.as_secs() }), ..self.lasting() }))
    }

    fn cycling(&self) -> Option<Finding> {
        let examined = self.examined;
        let events = &self.unblocked;
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return None };
        if events.len() < CYCLES {
            return None;
        }
        let id = &examined.id;
        let seen = Seen {
            first_seen_at: first.created_at,
            last_seen_at: last.created_at,
            count: u32::try_from(events.len()).unwrap_or(u32::MAX),
            ..self.lasting()
        };
        let text = format!("unblocked {} times", events.len());
        let found = task_finding(FindingCode::BlockUnblockCycling, Severity::Warning, text)
            .detail("unblocking it does not help; it may need a better description, or another assignee")
            .remedy(Remedy::command("read its history", format!("show {id}")).suggested());
        Some(found.seen(seen))
    }

    /// Reports that the task's mission waits for a person.
    fn paused(&self) -> Option<Finding> {
        let examined = self.examined;
        let is_of_mission = |hold: &&Hold| hold.kind == HoldKind::Limit && hold.name == examined.mission();
        let hold = self.holds.iter().find(is_of_mission).filter(|_| examined.status == Status::Ready)?;
        let (first_seen_at, run_id) = (hold.created_at, hold.run_id);
        let data = json!({ "mission": hold.name });
        let text = format!("the mission {} is paused", hold.name);
        let found = task_finding(FindingCode::MissionPaused, Severity::Error, text)
            .detail(hold.reason.clone())
            .remedy(Remedy::command("grant as much again", format!("answer {} 1", hold.name)).suggested());
        Some(found.seen(Seen { first_seen_at, run_id, data, ..self.lasting() }))
    }

    fn stranded(&self) -> Option<Finding> {
        let examined = self.examined;
        let age = self.now.since(examined.since);
        if examined.status != Status::Ready || age < STRANDED {
            return None;
        }
        // A task under a person's hold is not stranded.
        let held = self.holds.iter().any(|hold| {
            let profile = examined.assignee.as_ref().map(Profile::as_str);
            (hold.scope == HoldScope::Task && hold.name == examined.id.as_str())
                || (hold.scope == HoldScope::Mission && hold.name == examined.mission())
                || (hold.scope == HoldScope::Profile && Some(hold.name.as_str()) == profile)
        });
        if held {
            return None;
        }
        let id = &examined.id;
        let severity = match age {
            age if age >= STRANDED * 6 => Severity::Critical,
            age if age >= STRANDED * 2 => Severity::Error,
            _ => Severity::Warning,
        };
        let detail = match (&examined.assignee, &examined.nonspawnable) {
            (None, _) => "it has no assignee".to_owned(),
            (Some(_), Some(why)) => why.clone(),
            (Some(profile), None) => format!("nobody has claimed it for {profile}"),
        };
        let text = format!("ready for {} min, but not started", age.as_secs() / 60);
        let show = Remedy::command("see why", format!("show {id}"));
        let found = task_finding(FindingCode::StrandedInReady, severity, text).detail(detail);
        let found = if examined.assignee.is_none() || examined.nonspawnable.is_some() {
            let assign = Remedy::command("give it to the lane `shell`", format!("assign {id} shell"));
            found.remedy(assign.suggested()).remedy(show)
        } else {
            found.remedy(show.suggested())
        };
        Some(found.seen(Seen { data: json!({ "age_seconds": age.as_secs() }), ..self.lasting() }))
    }

    fn overdue(&self) -> Option<Finding> {
        let examined = self.examined;
        let at = examined.not_before.filter(|_| examined.status == Status::Scheduled)?;
        let late = self.now.since(at);
        if late < OVERDUE {
            return None;
        }
        let text = format!("its time came {} min ago", late.as_secs() / 60);
        let found = task_finding(FindingCode::Overdue, Severity::Error, text)
            .detail("no daemon is running that would start it")
            .remedy(Remedy::command("see whether one runs", "status").suggested());
        let data = json!({ "late_seconds": late.as_secs() });
        Some(found.seen(Seen { first_seen_at: at, data, ..self.lasting() }))
    }

    /// Returns the history of a problem that lasts from the task's last transition until now.
    fn lasting(&self) -> Seen {
        Seen::lasting(self.examined.since, self.now)
    }
}

/// Makes a finding about a task. Its subject is empty, because it is listed with its task.
fn task_finding(code: FindingCode, severity: Severity, text: String) -> Finding {
    Finding::new(code, severity, text).about("")
}
