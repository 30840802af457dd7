//! Checks of `doctor` on the configuration and on this host.

use std::ffi::OsStr;

use policies::USUAL_PATH;

use super::{CheckResult, HostCheck};
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
pub(super) fn configuration(root: &Root) -> Vec<HostCheck> {
    let (mut checks, mut tenants) = (Vec::new(), Tenants::default());
    let (roster, schedules, plugins) = (Roster::load(root), Schedules::load(root), Plugins::load(root));
    match Config::load(root) {
        Ok(config) => {
            let loose = roster.loose_names(&config).into_iter();
            checks.extend(loose.map(|loose| {
                HostCheck::new("configuration", CheckResult::Warning, loose.text).hint(loose.hint)
            }));
            tenants = config.tenants;
        }
        Err(failure) => checks.push(HostCheck::failed("configuration", failure)),
    }
    let chats = Chats::load(root);
    let defects = roster.defects().chain(schedules.defects()).chain(plugins.defects());
    for defect in tenants.defects().chain(defects).chain(chats.defects()) {
        let text = format!("{defect}; {}", defect.consequence());
        checks.push(HostCheck::new("configuration", CheckResult::Error, text).hint(defect.hint()));
    }
    if checks.is_empty() {
        checks.push(HostCheck::new("configuration", CheckResult::Ok, "every file is valid"));
    }
    checks
}

/// Reports policies that this host cannot enforce.
fn unenforceable(root: &Root, host: &policies::Support) -> Vec<HostCheck> {
    let roster = Roster::load(root).on(host);
    let unenforceable = roster.policies().unenforceable().iter();
    unenforceable
        .map(|(policy, why)| {
            let text = format!("this host cannot enforce it, so its tasks wait: {why}");
            HostCheck::new(format!("policy {policy}"), CheckResult::Error, text)
        })
        .collect()
}

/// Checks that agents can run scripts that call tools.
fn scripts() -> HostCheck {
    match find_python(OsStr::new(USUAL_PATH)) {
        Some(python) => HostCheck::new(
            "scripts",
            CheckResult::Ok,
            format!("execute_code runs scripts by {}", python.display()),
        ),
        None => HostCheck::new(
            "scripts",
            CheckResult::Warning,
            format!("execute_code is refused: no python3 in {USUAL_PATH}"),
        )
        .hint("install Python 3 where workers may execute it, such as /usr/bin"),
    }
}

/// Describes the confinement of workers on this host, as far as the host supports it, in words for an operator.
pub(super) fn host(root: &Root) -> Vec<HostCheck> {
    let daemon = OwnerLock::owner(root).and_then(|owner| owner.pid);
    let host = examine_host(daemon);
    let abi = host.support.landlock_abi;
    let landlock = match abi {
        0 => HostCheck::new(
            "files",
            CheckResult::Error,
            "this kernel has no Landlock: workers cannot be confined to their files",
        )
        .hint("boot with lsm=landlock,… on Linux 6.12 or newer"),
        1..4 => HostCheck::new(
            "files",
            CheckResult::Warning,
            format!("workers are confined to their files; TCP is not restricted (Landlock ABI {abi})"),
        ),
        4..6 => HostCheck::new(
            "files",
            CheckResult::Warning,
            format!(
                "workers are confined to their files and ports; signals and abstract sockets are not restricted (Landlock ABI {abi})"
            ),
        ),
        _ => HostCheck::new(
            "files",
            CheckResult::Ok,
            format!("workers are confined to their files, ports and signals (Landlock ABI {abi})"),
        ),
    };
    let seccomp = if host.support.seccomp {
        HostCheck::new("system calls", CheckResult::Ok, "dangerous system calls are refused (seccomp)")
    } else {
        HostCheck::new("system calls", CheckResult::Error, "this kernel cannot filter system calls")
    };
    let view = match &host.support.view {
        policies::View::Privileged => {
            HostCheck::new("view", CheckResult::Ok, "each worker sees only what it is granted")
        }
        policies::View::UserNamespace => HostCheck::new(
            "view",
            CheckResult::Ok,
            "each worker sees only what it is granted (in a user namespace)",
        ),
        policies::View::Unavailable { why } => HostCheck::new(
            "view",
            CheckResult::Warning,
            format!("workers see the names of files that they may not open: {why}"),
        ),
    };
    let socket = match host.support.board_access_kind() {
        policies::BoardKind::Socket => {
            HostCheck::new("board access", CheckResult::Ok, "workers reach the board through one Unix socket")
        }
        policies::BoardKind::Port => HostCheck::new(
            "board access",
            CheckResult::Warning,
            "workers reach the board through a loopback port, because other Unix sockets cannot be hidden from them",
        ),
    };
    let groups = match (host.cgroups, &host.gap) {
        (Ok(()), None) => HostCheck::new(
            "cgroups",
            CheckResult::Ok,
            "each run has a group of its own, is ended as a whole and is kept to its memory, cpu and pids",
        ),
        (Ok(()), Some(why)) => HostCheck::new(
            "cgroups",
            CheckResult::Warning,
            format!(
                "each run has a group of its own and is ended as a whole; not all limits are enforced: {why}"
            ),
        )
        .hint("a policy that limits memory or cpu is refused here, unless its compatibility is best_effort"),
        (Err(why), _) => HostCheck::new(
            "cgroups",
            CheckResult::Warning,
            format!("a run's processes are found one by one, and memory is not limited: {why}"),
        ),
    };
    let uid = if host.support.uid == 0 {
        HostCheck::new("users", CheckResult::Ok, "each task's worker has a user of its own")
    } else {
        HostCheck::new(
            "users",
            CheckResult::Warning,
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
