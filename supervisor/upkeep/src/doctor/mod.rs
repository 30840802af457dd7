//! Checks of `doctor`: the root, its boards, the configuration and this host. Blocks.

mod automation;
mod boards;
mod channels;
mod dashboard;
mod host;
pub mod upgrade;

use std::collections::BTreeMap;

use kernel::BoardName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::automation::Disconnected;
use base::failure::Failure;
use base::owner::OwnerLock;
use base::paths::Root;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    Ok,
    Warning,
    Error,
}

/// A check with its result.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostCheck {
    #[serde(rename = "check")]
    pub subject: String,
    pub verdict: CheckResult,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl HostCheck {
    pub fn new(subject: impl Into<String>, verdict: CheckResult, detail: impl Into<String>) -> Self {
        HostCheck { subject: subject.into(), verdict, detail: detail.into(), hint: None }
    }

    pub fn failed(subject: impl Into<String>, failure: Failure) -> Self {
        HostCheck { hint: failure.hint, ..HostCheck::new(subject, CheckResult::Error, failure.message) }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        HostCheck { hint: Some(hint.into()), ..self }
    }
}

/// All checks.
#[derive(Debug, Serialize, Deserialize)]
pub struct DoctorReport {
    /// True if there are no errors; warnings are ignored.
    pub ok: bool,
    pub checks: Vec<HostCheck>,
}

/// Actions beside the checks.
#[derive(Clone, Copy, Debug)]
pub struct Examination {
    /// True to replay the event log of each board.
    pub replay: bool,
    /// True to repair damaged boards. The caller holds the root's lock.
    pub repair: bool,
}

/// Reasons why a running daemon does not write to some boards.
pub type BoardFaults = BTreeMap<BoardName, String>;

/// Checks a root and this host. `unheard` lists the parts that a running daemon does not receive messages for.
pub fn examine(
    root: &Root,
    asked: Examination,
    troubles: BoardFaults,
    unheard: Option<&Disconnected>,
) -> Result<DoctorReport, Failure> {
    let mut checks = vec![reachable(root), served(root)];
    checks.extend(boards::examine(root, asked, troubles)?);
    checks.extend(host::configuration(root));
    checks.extend(channels::examine(root));
    checks.extend(automation::examine(root, unheard));
    checks.extend(dashboard::examine(root));
    checks.extend(host::host(root));
    Ok(DoctorReport { ok: checks.iter().all(|check| check.verdict != CheckResult::Error), checks })
}

fn reachable(root: &Root) -> HostCheck {
    let dir = root.dir();
    if !dir.is_dir() {
        return HostCheck::new("root", CheckResult::Warning, format!("{} does not exist yet", dir.display()))
            .hint("supervisor init makes it");
    }
    if let Err(e) = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK) {
        return HostCheck::failed("root", Failure::file("write to", dir, &e.into()));
    }
    if rustix::fs::statvfs(dir).is_ok_and(|system| system.f_bavail == 0) {
        return HostCheck::failed("root", Failure::file("write to", dir, &rustix::io::Errno::NOSPC.into()));
    }
    match root.check_reachable() {
        Ok(()) => HostCheck::new("root", CheckResult::Ok, format!("{} can be served", dir.display())),
        Err(failure) => HostCheck::failed("root", failure),
    }
}

fn served(root: &Root) -> HostCheck {
    let owner = OwnerLock::owner(root);
    if let Some((owner, pid)) = owner.and_then(|owner| Some((owner, owner.stopped()?))) {
        return HostCheck::new(
            "daemon",
            CheckResult::Error,
            format!("{owner}, is stopped and answers nobody"),
        )
        .hint(format!("kill -CONT {pid}"));
    }
    match owner {
        Some(owner) => HostCheck::new("daemon", CheckResult::Ok, owner.to_string()),
        None => HostCheck::new("daemon", CheckResult::Warning, "none is running, so nothing is started")
            .hint("supervisor daemon"),
    }
}
