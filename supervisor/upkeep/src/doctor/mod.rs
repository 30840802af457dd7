//! Checks of `doctor`: the root, its boards, the configuration and this host. Blocks.

mod automation;
mod boards;
mod channels;
mod dashboard;
mod host;
pub mod upgrade;

use kernel::{Finding, FindingCode};
use serde::{Deserialize, Serialize};

use base::failure::Failure;
use base::findings::failed;
use base::owner::OwnerLock;
use base::paths::Root;

/// All checks.
#[derive(Debug, Serialize, Deserialize)]
pub struct DoctorReport {
    /// True if there are no errors; warnings are ignored.
    pub ok: bool,
    pub checks: Vec<Finding>,
}

impl DoctorReport {
    pub fn new(checks: Vec<Finding>) -> Self {
        DoctorReport { ok: !checks.iter().any(Finding::is_error), checks }
    }
}

/// Actions beside the checks.
#[derive(Clone, Copy, Debug)]
pub struct Examination {
    /// True to replay the event log of each board.
    pub replay: bool,
    /// True to repair damaged boards. The caller holds the root's lock.
    pub repair: bool,
}

/// Checks a root and this host. `daemon` has the problems that a running daemon reports.
pub fn examine(root: &Root, asked: Examination, daemon: Option<&[Finding]>) -> Result<DoctorReport, Failure> {
    let mut checks = vec![reachable(root), served(root)];
    checks.extend(boards::examine(root, asked, daemon.unwrap_or_default())?);
    checks.extend(host::configuration(root));
    checks.extend(channels::examine(root));
    checks.extend(automation::examine(root, daemon));
    checks.extend(dashboard::examine(root));
    checks.extend(host::host(root));
    Ok(DoctorReport::new(checks))
}

fn reachable(root: &Root) -> Finding {
    let dir = root.dir();
    if !dir.is_dir() {
        return Finding::warning(FindingCode::Root, format!("{} does not exist yet", dir.display()))
            .advice("supervisor init makes it");
    }
    if let Err(e) = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK) {
        return failed(FindingCode::Root, Failure::file("write to", dir, &e.into()));
    }
    if rustix::fs::statvfs(dir).is_ok_and(|system| system.f_bavail == 0) {
        return failed(FindingCode::Root, Failure::file("write to", dir, &rustix::io::Errno::NOSPC.into()));
    }
    match root.check_reachable() {
        Ok(()) => Finding::ok(FindingCode::Root, format!("{} can be served", dir.display())),
        Err(failure) => failed(FindingCode::Root, failure),
    }
}

fn served(root: &Root) -> Finding {
    let owner = OwnerLock::owner(root);
    if let Some((owner, pid)) = owner.and_then(|owner| Some((owner, owner.stopped()?))) {
        return Finding::error(FindingCode::Daemon, format!("{owner}, is stopped and answers nobody"))
            .advice(format!("kill -CONT {pid}"));
    }
    match owner {
        Some(owner) => Finding::ok(FindingCode::Daemon, owner.to_string()),
        None => Finding::warning(FindingCode::Daemon, "none is running, so nothing is started")
            .advice("supervisor daemon"),
    }
}
