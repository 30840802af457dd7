//! What is wrong on a board, since when, and what to do about it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::clock::Timestamp;
use crate::model::counted::Counted;
use crate::model::event::EventKind;
use crate::model::hold::{Hold, HoldKind, HoldScope};
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::note::Event;
use crate::model::outcome::{Denied, Outcome};
use crate::model::run::Run;
use crate::model::status::Status;
use crate::model::suspect::Suspect;
use crate::model::words::words;
use crate::rules::remedy::Remedy;

/// A ready task that nobody has claimed for so long is stranded; twice that is an error, six times is critical.
const STRANDED: Duration = Duration::from_mins(30);
/// A task that is blocked for so long was forgotten.
const FORGOTTEN: Duration = Duration::from_hours(24);
/// A task that was unblocked so often is not helped by it.
const CYCLES: usize = 3;
/// Failures, or crashes, in a row that are reported.
const REPEATED: u32 = 2;
/// A task whose time came so long ago was not woken.
const OVERDUE: Duration = Duration::from_mins(5);

/// The events of runs that failed.
pub(crate) const ENDINGS: [EventKind; 3] =
    [EventKind::Crashed, EventKind::SpawnFailed, EventKind::ProtocolViolation];

words! {
    /// How bad it is.
    "severity"
    Severity {
        /// Look at it.
        Warning => "warning",
        /// It does not get better by itself.
        Error => "error",
        /// It has gone on for long.
        Critical => "critical",
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// What, as a word.
    pub kind: String,
    /// How bad it is.
    pub severity: Severity,
    /// What, in a line.
    pub title: String,
    /// More of it.
    pub detail: String,
    /// What to do about it.
    pub actions: Vec<Remedy>,
    /// Since when.
    pub first_seen_at: Timestamp,
    /// When it last showed.
    pub last_seen_at: Timestamp,
    /// How often it showed.
    pub count: u32,
    /// The run in which it last showed.
    pub run_id: Option<RunId>,
    /// Figures.
    pub data: Value,
}

/// A task with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosed {
    /// The task.
    pub task_id: TaskId,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: Status,
    /// Who is to do it.
    pub assignee: Option<Profile>,
    /// What is wrong, the worst first.
    pub diagnostics: Vec<Diagnostic>,
}

/// What the board knows of a suspect.
pub(crate) struct Facts<'a> {
    pub(crate) suspect: &'a Suspect,
    /// The last end of a run of it that failed; read where it has failed.
    pub(crate) ending: Option<Event>,
    /// Its runs, oldest first; read where [`is_failing`].
    pub(crate) runs: Vec<Run>,
    /// The events that unblocked it; read where it was blocked.
    pub(crate) unblocked: Vec<Event>,
    /// The holds that have not ended.
    pub(crate) holds: &'a [Hold],
    pub(crate) now: Timestamp,
}

/// Returns whether a task has failed often enough for its runs to be looked at; one that gave up has, however few there were.
pub(crate) fn is_failing(suspect: &Suspect) -> bool {
    suspect.failures >= REPEATED || suspect.gave_up()
}

/// Says after what a task gave up: after how many failed checks where those used up its attempts, else after how many failures.
pub(crate) fn gave_up(failures: u32, checks: Option<u32>) -> String {
    match checks {
        Some(checks) => format!("gave up after {}", Counted(checks, "failed check")),
        None => format!("gave up after {}", Counted(failures, "failure")),
    }
}

impl Facts<'_> {
    /// Returns what is wrong about the task, the worst first.
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
        let mut found: Vec<Diagnostic> = found.into_iter().flatten().collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.severity));
        found
    }

    /// The first failure tells: what a sandbox denies once it denies again.
    fn denied(&self) -> Option<Diagnostic> {
        let suspect = self.suspect;
        if suspect.failures == 0 {
            return None;
        }
        let told = |event: &Event| {
            let denied = event.payload.as_ref()?.get(Denied::KEY)?;
            serde_json::from_value::<Denied>(denied.clone()).ok()
        };
        let last = self.ending.as_ref().and_then(|event| Some((event, told(event)?)));
        let (event, Denied { policy, act, line, text }) = last?;
        let (id, at) = (&suspect.id, event.created_at);
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("its sandbox denied {act}"),
            detail: text,
            actions: suggest(vec![Remedy::command("see the output of its last run", format!("logs {id}"))]),
            first_seen_at: at,
            last_seen_at: at,
            count: suspect.failures,
            run_id: event.run_id,
            ..self.lasting("sandbox_denied", json!({ "policy": policy, "act": act, "line": line }))
        })
    }

    fn failing(&self) -> Option<Diagnostic> {
        let suspect = self.suspect;
        if !is_failing(suspect) {
            return None;
        }
        let runs = &self.runs;
        let failed = runs.iter().rev().filter(|run| run.outcome.is_some_and(crate::rules::retry::counts));
        let failed: Vec<_> = failed.take(usize::try_from(suspect.failures).unwrap_or(usize::MAX)).collect();
        let ended = |run: &Run| run.ended_at.unwrap_or(run.started_at);
        let (last, first) = (failed.first(), failed.last());
        let id = &suspect.id;
        let has_given_up = suspect.gave_up();
        let by_checks = runs.last().is_some_and(|run| run.outcome == Some(Outcome::CheckFailed));
        let checks = (has_given_up && by_checks).then_some(suspect.failed_checks);
        let mut actions = vec![Remedy::command("see the output of its last run", format!("logs {id}"))];
        if has_given_up {
            actions.push(Remedy::command("try it again", format!("unblock {id}")));
        }
        // One failure is no repetition, also where it is as many as the task is allowed.
        let kind = if suspect.failures >= REPEATED { "repeated_failures" } else { "gave_up" };
        let data = json!({ "consecutive_failures": suspect.failures, "gave_up": has_given_up });
        Some(Diagnostic {
            severity: if has_given_up { Severity::Critical } else { Severity::Error },
            title: if has_given_up {
                gave_up(suspect.failures, checks)
            } else {
                format!("failed {} times in a row", suspect.failures)
            },
            detail: suspect.error.clone().or_else(|| suspect.block_reason.clone()).unwrap_or_default(),
            actions: suggest(actions),
            first_seen_at: first.map_or(suspect.since, |run| ended(run)),
            last_seen_at: last.map_or(suspect.since, |run| ended(run)),
            count: checks.unwrap_or(suspect.failures),
            run_id: last.map(|run| run.id),
            ..self.lasting(kind, data)
        })
    }

    fn crashing(&self) -> Option<Diagnostic> {
        let suspect = self.suspect;
        if !is_failing(suspect) {
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
        let id = &suspect.id;
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
        let suspect = self.suspect;
        let age = self.now.since(suspect.since);
        if suspect.status != Status::Blocked || age < FORGOTTEN {
            return None;
        }
        let id = &suspect.id;
        Some(Diagnostic {
            title: format!("blocked for {} h", age.as_secs() / 3600),
            detail: suspect.block_reason.clone().unwrap_or_default(),
            actions: suggest(vec![
                Remedy::command("see what it waits for", format!("show {id}")),
                Remedy::command("unblock it", format!("unblock {id}")),
            ]),
            ..self.lasting("stuck_in_blocked", json!({ "age_seconds": age.as_secs() }))
        })
    }

    fn cycling(&self) -> Option<Diagnostic> {
        let suspect = self.suspect;
        let events = &self.unblocked;
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return None };
        if events.len() < CYCLES {
            return None;
        }
        let id = &suspect.id;
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

    /// Its mission waits for a person.
    fn paused(&self) -> Option<Diagnostic> {
        let suspect = self.suspect;
        let is_of_mission = |hold: &&Hold| hold.kind == HoldKind::Limit && hold.name == suspect.mission();
        let hold = self.holds.iter().find(is_of_mission).filter(|_| suspect.status == Status::Ready)?;
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
        let suspect = self.suspect;
        let age = self.now.since(suspect.since);
        if suspect.status != Status::Ready || age < STRANDED {
            return None;
        }
        // What somebody holds back on purpose is not stranded.
        let held = self.holds.iter().any(|hold| {
            let profile = suspect.assignee.as_ref().map(Profile::as_str);
            (hold.scope == HoldScope::Task && hold.name == suspect.id.as_str())
                || (hold.scope == HoldScope::Mission && hold.name == suspect.mission())
                || (hold.scope == HoldScope::Profile && Some(hold.name.as_str()) == profile)
        });
        if held {
            return None;
        }
        let id = &suspect.id;
        let severity = match age {
            age if age >= STRANDED * 6 => Severity::Critical,
            age if age >= STRANDED * 2 => Severity::Error,
            _ => Severity::Warning,
        };
        let mut actions = vec![Remedy::command("see why", format!("show {id}"))];
        let detail = match (&suspect.assignee, &suspect.nonspawnable) {
            (None, _) => "it has no assignee".to_owned(),
            (Some(_), Some(why)) => why.clone(),
            (Some(profile), None) => format!("nobody has claimed it for {profile}"),
        };
        if suspect.assignee.is_none() || suspect.nonspawnable.is_some() {
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
        let suspect = self.suspect;
        let at = suspect.not_before.filter(|_| suspect.status == Status::Scheduled)?;
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

    /// A state of a task that lasts since its last transition.
    fn lasting(&self, kind: &str, data: Value) -> Diagnostic {
        let suspect = self.suspect;
        Diagnostic {
            kind: kind.to_owned(),
            severity: Severity::Warning,
            title: String::new(),
            detail: String::new(),
            actions: Vec::new(),
            first_seen_at: suspect.since,
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
