//! What is wrong on a board, since when, and what to do about it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::board::view::View;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::filter::EventFilter;
use crate::model::hold::HoldScope;
use crate::model::id::{Profile, RunId, TaskId};
use crate::model::outcome::{Denied, Outcome};
use crate::model::status::Status;
use crate::model::words::words;
use crate::store::suspects::Suspect;

/// A ready task that nobody has claimed for so long is stranded; twice that is an error, six times is critical.
const STRANDED: Duration = Duration::from_mins(30);
/// A task that is blocked for so long was forgotten.
const FORGOTTEN: Duration = Duration::from_hours(24);
/// A task that was unblocked so often is not helped by it.
const CYCLES: usize = 3;
/// So many failures, or crashes, in a row are no accident.
const REPEATED: u32 = 2;
/// A task whose time came so long ago was not woken.
const OVERDUE: Duration = Duration::from_mins(5);

/// The events of runs that failed.
const ENDINGS: [&str; 3] = ["crashed", "spawn_failed", "protocol_violation"];

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

/// Something to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// What kind of thing: `cli_hint`, a command.
    pub kind: String,
    /// What it does.
    pub label: String,
    /// Its details: the `command`, as it is typed.
    pub payload: Value,
    /// Whether it is the first thing to try.
    pub suggested: bool,
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

impl View<'_> {
    /// Returns the tasks that something is wrong about, the worst first, by id among equals: of one task, or of all.
    pub fn diagnose(&self, task: Option<&TaskId>) -> Result<Vec<Diagnosed>, Error> {
        let mut found = Vec::new();
        for suspect in self.tx.suspects(task, self.now())? {
            let mut diagnostics = Vec::new();
            diagnostics.extend(self.denied(&suspect)?);
            diagnostics.extend(self.failing(&suspect)?);
            diagnostics.extend(self.crashing(&suspect)?);
            diagnostics.extend(self.forgotten(&suspect));
            diagnostics.extend(self.cycling(&suspect)?);
            diagnostics.extend(self.stranded(&suspect)?);
            diagnostics.extend(self.overdue(&suspect));
            if diagnostics.is_empty() {
                continue;
            }
            diagnostics.sort_by_key(|one| std::cmp::Reverse(one.severity));
            let Suspect { id: task_id, title, status, assignee, .. } = suspect;
            found.push(Diagnosed { task_id, title, status, assignee, diagnostics });
        }
        found.sort_by_key(|one| {
            (one.diagnostics.first().map(|worst| std::cmp::Reverse(worst.severity)), one.task_id.clone())
        });
        Ok(found)
    }

    /// The first failure tells: what a sandbox denies once it denies again.
    fn denied(&self, suspect: &Suspect) -> Result<Option<Diagnostic>, Error> {
        if suspect.failures == 0 {
            return Ok(None);
        }
        let filter = EventFilter {
            task: Some(suspect.id.clone()),
            kinds: ENDINGS.map(str::to_owned).to_vec(),
            limit: 1,
            newest_first: true,
            ..EventFilter::default()
        };
        let told = |event: &crate::Event| {
            let denied = event.payload.as_ref()?.get(Denied::KEY)?;
            serde_json::from_value::<Denied>(denied.clone()).ok()
        };
        let events = self.events(&filter)?;
        let last = events.last().and_then(|event| Some((event, told(event)?)));
        let Some((event, Denied { policy, act, line, text })) = last else { return Ok(None) };
        let (id, at) = (&suspect.id, event.created_at);
        Ok(Some(Diagnostic {
            kind: "sandbox_denied".to_owned(),
            severity: Severity::Error,
            title: format!("its sandbox denied {act}"),
            detail: text,
            actions: suggest(vec![command("see what its last run said", &format!("supervisor log {id}"))]),
            first_seen_at: at,
            last_seen_at: at,
            count: suspect.failures,
            run_id: event.run_id,
            data: json!({ "policy": policy, "act": act, "line": line }),
        }))
    }

    fn failing(&self, suspect: &Suspect) -> Result<Option<Diagnostic>, Error> {
        if suspect.failures < REPEATED {
            return Ok(None);
        }
        let runs = self.runs(&suspect.id)?;
        let failed = runs.iter().rev().filter(|run| run.outcome.is_some_and(crate::rules::retry::counts));
        let failed: Vec<_> = failed.take(usize::try_from(suspect.failures).unwrap_or(usize::MAX)).collect();
        let ended = |run: &crate::Run| run.ended_at.unwrap_or(run.started_at);
        let (last, first) = (failed.first(), failed.last());
        let id = &suspect.id;
        let gave_up = suspect.status == Status::Blocked;
        let mut actions = vec![command("see what its last run said", &format!("supervisor log {id}"))];
        if gave_up {
            actions.push(command("try it again", &format!("supervisor unblock {id}")));
        }
        Ok(Some(Diagnostic {
            kind: "repeated_failures".to_owned(),
            severity: if gave_up { Severity::Critical } else { Severity::Error },
            title: format!("failed {} times in a row", suspect.failures),
            detail: suspect.error.clone().unwrap_or_default(),
            actions: suggest(actions),
            first_seen_at: first.map_or(suspect.since, |run| ended(run)),
            last_seen_at: last.map_or(suspect.since, |run| ended(run)),
            count: suspect.failures,
            run_id: last.map(|run| run.id),
            data: json!({ "consecutive_failures": suspect.failures, "gave_up": gave_up }),
        }))
    }

    fn crashing(&self, suspect: &Suspect) -> Result<Option<Diagnostic>, Error> {
        if suspect.failures < REPEATED {
            return Ok(None);
        }
        let runs = self.runs(&suspect.id)?;
        let over = runs.iter().rev().filter(|run| run.ended_at.is_some());
        let crashes: Vec<_> = over.take_while(|run| run.outcome == Some(Outcome::Crashed)).collect();
        let (Some(last), Some(first)) = (crashes.first(), crashes.last()) else { return Ok(None) };
        let count = u32::try_from(crashes.len()).unwrap_or(u32::MAX);
        if count < REPEATED {
            return Ok(None);
        }
        let id = &suspect.id;
        Ok(Some(Diagnostic {
            kind: "repeated_crashes".to_owned(),
            severity: Severity::Error,
            title: format!("its worker crashed {count} times in a row"),
            detail: last.error.clone().unwrap_or_default(),
            actions: suggest(vec![
                command("compare its runs", &format!("supervisor runs {id}")),
                command("see what the last one said", &format!("supervisor log {id}")),
            ]),
            first_seen_at: first.ended_at.unwrap_or(first.started_at),
            last_seen_at: last.ended_at.unwrap_or(last.started_at),
            count,
            run_id: Some(last.id),
            data: json!({ "exit_code": last.exit_code, "signal": last.signal }),
        }))
    }

    fn forgotten(&self, suspect: &Suspect) -> Option<Diagnostic> {
        let age = self.now().since(suspect.since);
        if suspect.status != Status::Blocked || age < FORGOTTEN {
            return None;
        }
        let id = &suspect.id;
        Some(Diagnostic {
            severity: Severity::Warning,
            title: format!("blocked for {} h", age.as_secs() / 3600),
            detail: suspect.block_reason.clone().unwrap_or_default(),
            actions: suggest(vec![
                command("see what it waits for", &format!("supervisor show {id}")),
                command("let it go on", &format!("supervisor unblock {id}")),
            ]),
            ..self.lasting("stuck_in_blocked", suspect, json!({ "age_seconds": age.as_secs() }))
        })
    }

    fn cycling(&self, suspect: &Suspect) -> Result<Option<Diagnostic>, Error> {
        let kinds = vec!["unblocked".to_owned()];
        let filter = EventFilter { task: Some(suspect.id.clone()), kinds, ..EventFilter::default() };
        let events = if suspect.was_blocked { self.events(&filter)? } else { Vec::new() };
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(None) };
        if events.len() < CYCLES {
            return Ok(None);
        }
        let id = &suspect.id;
        Ok(Some(Diagnostic {
            kind: "block_unblock_cycling".to_owned(),
            severity: Severity::Warning,
            title: format!("unblocked {} times", events.len()),
            detail: "letting it go on does not help it; it may need another text, or another assignee"
                .to_owned(),
            actions: suggest(vec![command("read its history", &format!("supervisor show {id}"))]),
            first_seen_at: first.created_at,
            last_seen_at: last.created_at,
            count: u32::try_from(events.len()).unwrap_or(u32::MAX),
            run_id: None,
            data: json!({}),
        }))
    }

    fn stranded(&self, suspect: &Suspect) -> Result<Option<Diagnostic>, Error> {
        let age = self.now().since(suspect.since);
        if suspect.status != Status::Ready || age < STRANDED {
            return Ok(None);
        }
        // What somebody holds back on purpose is not stranded.
        let held = self.holds()?.into_iter().any(|hold| {
            let profile = suspect.assignee.as_ref().map(Profile::as_str);
            (hold.scope == HoldScope::Task && hold.name == suspect.id.as_str())
                || (hold.scope == HoldScope::Profile && Some(hold.name.as_str()) == profile)
        });
        if held {
            return Ok(None);
        }
        let id = &suspect.id;
        let severity = match age {
            age if age >= STRANDED * 6 => Severity::Critical,
            age if age >= STRANDED * 2 => Severity::Error,
            _ => Severity::Warning,
        };
        let mut actions = vec![command("see why", &format!("supervisor show {id}"))];
        let detail = match (&suspect.assignee, &suspect.nonspawnable) {
            (None, _) => "it has no assignee".to_owned(),
            (Some(_), Some(why)) => why.clone(),
            (Some(profile), None) => format!("nobody has claimed it for {profile}"),
        };
        if suspect.assignee.is_none() || suspect.nonspawnable.is_some() {
            actions
                .insert(0, command("give it to the lane `shell`", &format!("supervisor assign {id} shell")));
        }
        Ok(Some(Diagnostic {
            severity,
            title: format!("ready for {} min, and nobody takes it", age.as_secs() / 60),
            detail,
            actions: suggest(actions),
            ..self.lasting("stranded_in_ready", suspect, json!({ "age_seconds": age.as_secs() }))
        }))
    }

    fn overdue(&self, suspect: &Suspect) -> Option<Diagnostic> {
        let at = suspect.not_before.filter(|_| suspect.status == Status::Scheduled)?;
        let late = self.now().since(at);
        if at > self.now() || late < OVERDUE {
            return None;
        }
        Some(Diagnostic {
            severity: Severity::Error,
            title: format!("its time came {} min ago", late.as_secs() / 60),
            detail: "a daemon wakes what is due; none does".to_owned(),
            actions: suggest(vec![command("see whether one runs", "supervisor status")]),
            first_seen_at: at,
            ..self.lasting("overdue", suspect, json!({ "late_seconds": late.as_secs() }))
        })
    }

    /// A state of a task that lasts since its last transition.
    fn lasting(&self, kind: &str, suspect: &Suspect, data: Value) -> Diagnostic {
        Diagnostic {
            kind: kind.to_owned(),
            severity: Severity::Warning,
            title: String::new(),
            detail: String::new(),
            actions: Vec::new(),
            first_seen_at: suspect.since,
            last_seen_at: self.now(),
            count: 1,
            run_id: None,
            data,
        }
    }
}

fn command(label: &str, command: &str) -> Remedy {
    Remedy {
        kind: "cli_hint".to_owned(),
        label: label.to_owned(),
        payload: json!({ "command": command }),
        suggested: false,
    }
}

fn suggest(mut actions: Vec<Remedy>) -> Vec<Remedy> {
    if let Some(first) = actions.first_mut() {
        first.suggested = true;
    }
    actions
}
