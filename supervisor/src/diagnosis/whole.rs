//! What is wrong with the root as a whole, whether a task waits for it or not: files of the configuration that cannot be
//! used, and a daemon that starts nothing.

use kernel::{Diagnostic, Remedy, Severity};
use serde_json::json;

use super::{Finding, now};
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
    let told = (defect.consequence(), format!("{defect}; {}", defect.hint()));
    let actions = vec![Remedy::command("check the files again", "doctor").suggested()];
    let diagnostic = Diagnostic {
        first_seen_at: defect.seen_at,
        data: json!({ "path": defect.path, "line": defect.line, "key": defect.key }),
        ..now("configuration_defect", severity, told, actions)
    };
    Finding::of_root(defect.subject.to_string(), diagnostic)
}

/// A daemon that starts nothing, and the reason that it gives.
fn paused(why: &str) -> Finding {
    let told = ("nothing is started".to_owned(), why.to_owned());
    let actions = vec![Remedy::command("check the host and the root", "doctor").suggested()];
    Finding::of_root("the daemon".to_owned(), now("dispatch_paused", Severity::Critical, told, actions))
}
