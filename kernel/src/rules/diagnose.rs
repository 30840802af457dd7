//! Diagnosis: finds the problems of tasks, with their age and remedies. The rules examine facts that the board has
//! read, and read nothing themselves.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::event::EventKind;
use crate::model::examined_task::ExaminedTask;
use crate::model::hold::{Hold, HoldKind, HoldScope};
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::note::Event;
use crate::model::outcome::{Denied, Outcome};
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::words::words;
use crate::rules::remedy::Remedy;

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

words! {
    /// Severity of a problem.
    "severity"
    Severity {
        /// An operator should look at it.
        Warning => "warning",
        /// The problem does not go away by itself.
        Error => "error",
        /// The problem has lasted for a long time.
        Critical => "critical",
    }
}

/// Problem of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Kind of the problem, as a word.
    pub kind: String,
    pub severity: Severity,
    /// Description in one line.
    pub title: String,
    /// Details in words.
    pub detail: String,
    /// Commands that may help, the suggested one first.
    pub actions: Vec<Remedy>,
    /// Time at which the problem began.
    pub first_seen_at: Timestamp,
    /// Time at which the problem last showed.
    pub last_seen_at: Timestamp,
    /// Number of times that the problem showed.
    pub count: u32,
    /// Run in which the problem last showed.
    pub run_id: Option<RunId>,
    /// Figures of the problem.
    pub data: Value,
}

/// Task with its problems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosed {
    pub task_id: TaskId,
    pub title: String,
    pub status: Status,
    pub assignee: Option<Profile>,
    /// Problems, the most severe first.
    pub diagnostics: Vec<Diagnostic>,
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
    /// Returns the problems of the task, the most severe first.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
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
        let mut diagnostics: Vec<Diagnostic> = found.into_iter().flatten().collect();
        diagnostics.sort_by_key(|one| std::cmp::Reverse(one.severity));
        diagnostics
    }

    /// Reports a sandbox denial. A single failure is enough, because the sandbox will deny the same act again.
    fn denied(&self) -> Option<Diagnostic> {
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
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("its sandbox denied {act}"),
            detail: text,
            actions: suggest(vec![Remedy::command("see the output of its last run", format!("logs {id}"))]),
            first_seen_at: at,
            last_seen_at: at,
            count: examined.failures,
            run_id: event.run_id,
            ..self.lasting("sandbox_denied", json!({ "policy": policy, "act": act, "line": line }))
        })
    }

    fn failing(&self) -> Option<Diagnostic> {
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
        let mut actions = vec![Remedy::command("see the output of its last run", format!("logs {id}"))];
        if has_given_up {
            actions.push(Remedy::command("try it again", format!("unblock {id}")));
        }
        // A single failure is no repetition, even if the task allows only one.
        let kind = if examined.failures >= REPEATED { "repeated_failures" } else { "gave_up" };
        let data = json!({ "consecutive_failures": examined.failures, "gave_up": has_given_up });
        Some(Diagnostic {
            severity: if has_given_up { Severity::Critical } else { Severity::Error },
            title: if has_given_up {
                gave_up(examined.failures, checks)
            } else {
                format!("failed {} times in a row", examined.failures)
            },
            detail: examined.error.clone().or_else(|| examined.block_reason.clone()).unwrap_or_default(),
            actions: suggest(actions),
            first_seen_at: first.map_or(examined.since, |run| ended(run)),
            last_seen_at: last.map_or(examined.since, |run| ended(run)),
            count: checks.unwrap_or(examined.failures),
            run_id: last.map(|run| run.id),
            ..self.lasting(kind, data)
        })
    }

    fn crashing(&self) -> Option<Diagnostic> {
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
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("its worker crashed {count} times in a row"),
            detail: last.error.clone().unwrap_or_default(),
            actions: suggest(vec![
                Remedy::command("compare its runs", format!("runs {id}")),
                Remedy::command("see the output of the last one", format!("logs {id}")),
            ]),
            first_seen_at: first.ended_at.unwrap_or(first.started_at),
            last_seen_at: last.ended_at.unwrap_or(last.started_at),
            count,
            run_id: Some(last.id),
            ..self.lasting("repeated_crashes", json!({ "exit_code": last.exit_code, "signal": last.signal }))
        })
    }

    fn forgotten(&self) -> Option<Diagnostic> {
        let examined = self.examined;
        let age = self.now.since(examined.since);
        if examined.status != Status::Blocked || age < FORGOTTEN {
            return None;
        }
        let id = &examined.id;
        Some(Diagnostic {
            title: format!("blocked for {} h", age.as_secs() / 3600),
            detail: examined.block_reason.clone().unwrap_or_default(),
            actions: suggest(vec![
                Remedy::command("see what it waits for", format!("show {id}")),
                Remedy::command("unblock it", format!("unblock {id}")),
            ]),
            ..self.lasting("stuck_in_blocked", json!({ "age_seconds": age.as_secs() }))
        })
    }

    fn cycling(&self) -> Option<Diagnostic> {
        let examined = self.examined;
        let events = &self.unblocked;
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return None };
        if events.len() < CYCLES {
            return None;
        }
        let id = &examined.id;
        Some(Diagnostic {
            title: format!("unblocked {} times", events.len()),
            detail: "unblocking it does not help; it may need a better description, or another assignee"
                .to_owned(),
            actions: suggest(vec![Remedy::command("read its history", format!("show {id}"))]),
            first_seen_at: first.created_at,
            last_seen_at: last.created_at,
            count: u32::try_from(events.len()).unwrap_or(u32::MAX),
            ..self.lasting("block_unblock_cycling", json!({}))
        })
    }

    /// Reports that the task's mission waits for a person.
    fn paused(&self) -> Option<Diagnostic> {
        let examined = self.examined;
        let is_of_mission = |hold: &&Hold| hold.kind == HoldKind::Limit && hold.name == examined.mission();
        let hold = self.holds.iter().find(is_of_mission).filter(|_| examined.status == Status::Ready)?;
        let action = Remedy::command("grant as much again", format!("answer {} 1", hold.name));
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("the mission {} is paused", hold.name),
            detail: hold.reason.clone(),
            actions: suggest(vec![action]),
            first_seen_at: hold.created_at,
            run_id: hold.run_id,
            ..self.lasting("mission_paused", json!({ "mission": hold.name }))
        })
    }

    fn stranded(&self) -> Option<Diagnostic> {
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
        let mut actions = vec![Remedy::command("see why", format!("show {id}"))];
        let detail = match (&examined.assignee, &examined.nonspawnable) {
            (None, _) => "it has no assignee".to_owned(),
            (Some(_), Some(why)) => why.clone(),
            (Some(profile), None) => format!("nobody has claimed it for {profile}"),
        };
        if examined.assignee.is_none() || examined.nonspawnable.is_some() {
            actions.insert(0, Remedy::command("give it to the lane `shell`", format!("assign {id} shell")));
        }
        Some(Diagnostic {
            severity,
            title: format!("ready for {} min, but not started", age.as_secs() / 60),
            detail,
            actions: suggest(actions),
            ..self.lasting("stranded_in_ready", json!({ "age_seconds": age.as_secs() }))
        })
    }

    fn overdue(&self) -> Option<Diagnostic> {
        let examined = self.examined;
        let at = examined.not_before.filter(|_| examined.status == Status::Scheduled)?;
        let late = self.now.since(at);
        if late < OVERDUE {
            return None;
        }
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("its time came {} min ago", late.as_secs() / 60),
            detail: "no daemon is running that would start it".to_owned(),
            actions: suggest(vec![Remedy::command("see whether one runs", "status")]),
            first_seen_at: at,
            ..self.lasting("overdue", json!({ "late_seconds": late.as_secs() }))
        })
    }

    /// Returns a warning that lasts from the task's last transition until now, with empty texts.
    fn lasting(&self, kind: &str, data: Value) -> Diagnostic {
        let examined = self.examined;
        Diagnostic {
            kind: kind.to_owned(),
            severity: Severity::Warning,
            title: String::new(),
            detail: String::new(),
            actions: Vec::new(),
            first_seen_at: examined.since,
            last_seen_at: self.now,
            count: 1,
            run_id: None,
            data,
        }
    }
}

fn suggest(mut actions: Vec<Remedy>) -> Vec<Remedy> {
    if let Some(first) = actions.first_mut() {
        first.suggested = true;
    }
    actions
}
