//! What is wrong with the root as a whole, whether a task waits for it or not: files of the configuration that cannot be
//! used, and a daemon that starts nothing.

use kernel::{Clock as _, Diagnostic, Remedy, Severity, SystemClock};
use serde_json::json;

use super::Finding;
use crate::api::Call;
use crate::config::definitions::{Defect, Effect};
use crate::daemon::{Event, OwnerLink};
use crate::failure::Failure;

/// Finds it.
pub(super) async fn wrong(call: &Call) -> Result<Vec<Finding>, Failure> {
    let mut found: Vec<Finding> = call.service.defects().iter().map(defective).collect();
    if let Some(daemon) = OwnerLink::of(&call.service) {
        found.extend(daemon.ask(Event::Look).await?.paused.as_deref().map(paused));
    }
    Ok(found)
}

/// A file of the configuration that cannot be used.
fn defective(defect: &Defect) -> Finding {
    let severity = match defect.effect {
        Effect::Disabled => Severity::Error,
        Effect::KeptLast => Severity::Warning,
    };
    Finding {
        task_id: None,
        title: defect.subject.to_string(),
        status: None,
        assignee: None,
        diagnostics: vec![Diagnostic {
            kind: "configuration_defect".to_owned(),
            severity,
            title: defect.consequence(),
            detail: format!("{defect}; {}", defect.hint()),
            actions: vec![Remedy::command("check the files again", "doctor").suggested()],
            first_seen_at: defect.seen_at,
            last_seen_at: SystemClock.now(),
            count: 1,
            run_id: None,
            data: json!({ "path": defect.path, "line": defect.line, "key": defect.key }),
        }],
    }
}

/// A daemon that starts nothing, and the reason that it gives.
fn paused(why: &str) -> Finding {
    let now = SystemClock.now();
    Finding {
        task_id: None,
        title: "the daemon".to_owned(),
        status: None,
        assignee: None,
        diagnostics: vec![Diagnostic {
            kind: "dispatch_paused".to_owned(),
            severity: Severity::Critical,
            title: "nothing is started".to_owned(),
            detail: why.to_owned(),
            actions: vec![Remedy::command("check the host and the root", "doctor").suggested()],
            first_seen_at: now,
            last_seen_at: now,
            count: 1,
            run_id: None,
            data: json!({}),
        }],
    }
}
