//! Checks of `doctor` on the configuration and on this host.

use std::ffi::OsStr;

use policies::USUAL_PATH;

use super::{Check, Verdict};
use base::owner::OwnerLock;
use base::paths::Root;
use host::examine::examine_host;
use host::find_program::find_python;
use setup::automation::chat::Chats;
use setup::automation::plugins::Plugins;
use setup::automation::schedules::Schedules;
use setup::config::Config;
use setup::config::tenants::Tenants;
use setup::roster::Roster;

/// Reports configuration files that cannot be used.
pub(super) fn configuration(root: &Root) -> Vec<Check> {
    let (mut checks, mut tenants) = (Vec::new(), Tenants::default());
    let (roster, schedules, plugins) = (Roster::load(root), Schedules::load(root), Plugins::load(root));
    match Config::load(root) {
        Ok(config) => {
            let loose = roster.loose_names(&config).into_iter();
            checks.extend(
                loose.map(|loose| Check::new("configuration", Verdict::Warning, loose.text).hint(loose.hint)),
            );
            tenants = config.tenants;
        }
        Err(failure) => checks.push(Check::failed("configuration", failure)),
    }
    let chats = Chats::load(root);
    let defects = roster.defects().chain(schedules.defects()).chain(plugins.defects());
    for defect in tenants.defects().chain(defects).chain(chats.defects()) {
        let text = format!("{defect}; {}", defect.consequence());
        checks.push(Check::new("configuration", Verdict::Error, text).hint(defect.hint()));
    }
    if checks.is_empty() {
        checks.push(Check::new("configuration", Verdict::Ok, "every file is valid"));
    }
    checks
}

/// Reports policies that this host cannot enforce.
fn unenforceable(root: &Root, host: &policies::Support) -> Vec<Check> {
    let roster = Roster::load(root).on(host);
    let unenforceable = roster.policies().unenforceable().iter();
    unenforceable
        .map(|(policy, why)| {
            let text = format!("this host cannot enforce it, so its tasks wait: {why}");
            Check::new(format!("policy {policy}"), Verdict::Error, text)
        })
        .collect()
}

/// Checks that agents can run scripts that call tools.
fn scripts() -> Check {
    match find_python(OsStr::new(USUAL_PATH)) {
        Some(python) => {
            Check::new("scripts", Verdict::Ok, format!("execute_code runs scripts by {}", python.display()))
        }
        None => Check::new(
            "scripts",
            Verdict::Warning,
            format!("execute_code is refused: no python3 in {USUAL_PATH}"),
        )
        .hint("install Python 3 where workers may execute it, such as /usr/bin"),
    }
}

/// Describes the confinement of workers on this host, as far as the host supports it, in words for an operator.
pub(super) fn host(root: &Root) -> Vec<Check> {
    let daemon = OwnerLock::owner(root).and_then(|owner| owner.pid);
    let host = examine_host(daemon);
    let abi = host.support.landlock_abi;
    let landlock = match abi {
        0 => Check::new(
            "files",
            Verdict::Error,
            "this kernel has no Landlock: workers cannot be confined to their files",
        )
        .hint("boot with lsm=landlock,… on Linux 6.12 or newer"),
        1..4 => Check::new(
            "files",
            Verdict::Warning,
            format!("workers are confined to their files; TCP is not restricted (Landlock ABI {abi})"),
        ),
        4..6 => Check::new(
            "files",
            Verdict::Warning,
            format!(
                "workers are confined to their files and ports; signals and abstract sockets are not restricted (Landlock ABI {abi})"
            ),
        ),
        _ => Check::new(
            "files",
            Verdict::Ok,
            format!("workers are confined to their files, ports and signals (Landlock ABI {abi})"),
        ),
    };
    let seccomp = if host.support.seccomp {
        Check::new("system calls", Verdict::Ok, "dangerous system calls are refused (seccomp)")
    } else {
        Check::new("system calls", Verdict::Error, "this kernel cannot filter system calls")
    };
    let view = match &host.support.view {
        policies::View::Privileged => {
            Check::new("view", Verdict::Ok, "each worker sees only what it is granted")
        }
        policies::View::UserNamespace => {
            Check::new("view", Verdict::Ok, "each worker sees only what it is granted (in a user namespace)")
        }
        policies::View::Unavailable { why } => Check::new(
            "view",
            Verdict::Warning,
            format!("workers see the names of files that they may not open: {why}"),
        ),
    };
    let socket = match host.support.board_access_kind() {
        policies::BoardKind::Socket => {
            Check::new("board access", Verdict::Ok, "workers reach the board through one Unix socket")
        }
        policies::BoardKind::Port => Check::new(
            "board access",
            Verdict::Warning,
            "workers reach the board through a loopback port, because other Unix sockets cannot be hidden from them",
        ),
    };
    let groups = match (host.cgroups, &host.gap) {
        (Ok(()), None) => Check::new(
            "cgroups",
            Verdict::Ok,
            "each run has a group of its own, is ended as a whole and is kept to its memory, cpu and pids",
        ),
        (Ok(()), Some(why)) => Check::new(
            "cgroups",
            Verdict::Warning,
            format!(
                "each run has a group of its own and is ended as a whole; not all limits are enforced: {why}"
            ),
        )
        .hint("a policy that limits memory or cpu is refused here, unless its compatibility is best_effort"),
        (Err(why), _) => Check::new(
            "cgroups",
            Verdict::Warning,
            format!("a run's processes are found one by one, and memory is not limited: {why}"),
        ),
    };
    let uid = if host.support.uid == 0 {
        Check::new("users", Verdict::Ok, "each task's worker has a user of its own")
    } else {
        Check::new(
            "users",
            Verdict::Warning,
            format!(
                "workers run as your own user (uid {}): only the sandbox keeps them from your files",
                host.support.uid
            ),
        )
        .hint("a daemon run by root gives each task a user of its own")
    };
    let mut checks = vec![landlock, seccomp, view, socket, groups, uid, scripts()];
    checks.extend(unenforceable(root, &host.support));
    checks
}
