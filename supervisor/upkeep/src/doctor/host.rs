//! Checks of `doctor` on the configuration and on this host.

use std::ffi::OsStr;

use kernel::{Finding, FindingCode};
use policies::USUAL_PATH;

use base::findings::failed;
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
pub(super) fn configuration(root: &Root) -> Vec<Finding> {
    let (mut checks, mut tenants) = (Vec::new(), Tenants::default());
    let (roster, schedules, plugins) = (Roster::load(root), Schedules::load(root), Plugins::load(root));
    match Config::load(root) {
        Ok(config) => {
            checks.extend(roster.loose_names(&config));
            tenants = config.tenants;
        }
        Err(failure) => checks.push(failed(FindingCode::Configuration, failure)),
    }
    let chats = Chats::load(root);
    let defects = roster.defects().chain(schedules.defects()).chain(plugins.defects());
    let defects = tenants.defects().chain(defects).chain(chats.defects());
    // The files were read just now, so a history would say nothing.
    checks.extend(defects.map(|defect| Finding { seen: None, ..Finding::from(defect) }));
    if checks.is_empty() {
        checks.push(Finding::ok(FindingCode::Configuration, "every file is valid"));
    }
    checks
}

/// Checks that agents can run scripts that call tools.
fn scripts() -> Finding {
    match find_python(OsStr::new(USUAL_PATH)) {
        Some(python) => {
            Finding::ok(FindingCode::Scripts, format!("execute_code runs scripts by {}", python.display()))
        }
        None => Finding::warning(
            FindingCode::Scripts,
            format!("execute_code is refused: no python3 in {USUAL_PATH}"),
        )
        .advice("install Python 3 where workers may execute it, such as /usr/bin"),
    }
}

/// Describes the confinement of workers on this host, as far as the host supports it, in words for an operator.
pub(super) fn host(root: &Root) -> Vec<Finding> {
    let daemon = OwnerLock::owner(root).and_then(|owner| owner.pid);
    let host = examine_host(daemon);
    let abi = host.support.landlock_abi;
    let landlock = match abi {
        0 => Finding::error(
            FindingCode::Files,
            "this kernel has no Landlock: workers cannot be confined to their files",
        )
        .advice("boot with lsm=landlock,… on Linux 6.12 or newer"),
        1..4 => Finding::warning(
            FindingCode::Files,
            format!("workers are confined to their files; TCP is not restricted (Landlock ABI {abi})"),
        ),
        4..6 => Finding::warning(
            FindingCode::Files,
            format!(
                "workers are confined to their files and ports; signals and abstract sockets are not restricted (Landlock ABI {abi})"
            ),
        ),
        _ => Finding::ok(
            FindingCode::Files,
            format!("workers are confined to their files, ports and signals (Landlock ABI {abi})"),
        ),
    };
    let seccomp = if host.support.seccomp {
        Finding::ok(FindingCode::SystemCalls, "dangerous system calls are refused (seccomp)")
    } else {
        Finding::error(FindingCode::SystemCalls, "this kernel cannot filter system calls")
    };
    let view = match &host.support.view {
        policies::View::Privileged => {
            Finding::ok(FindingCode::View, "each worker sees only what it is granted")
        }
        policies::View::UserNamespace => {
            Finding::ok(FindingCode::View, "each worker sees only what it is granted (in a user namespace)")
        }
        policies::View::Unavailable { why } => Finding::warning(
            FindingCode::View,
            format!("workers see the names of files that they may not open: {why}"),
        ),
    };
    let socket = match host.support.board_access_kind() {
        policies::BoardKind::Socket => {
            Finding::ok(FindingCode::BoardAccess, "workers reach the board through one Unix socket")
        }
        policies::BoardKind::Port => Finding::warning(
            FindingCode::BoardAccess,
            "workers reach the board through a loopback port, because other Unix sockets cannot be hidden from them",
        ),
    };
    let groups = match (host.cgroups, &host.gap) {
        (Ok(()), None) => Finding::ok(
            FindingCode::Cgroups,
            "each run has a group of its own, is ended as a whole and is kept to its memory, cpu and pids",
        ),
        (Ok(()), Some(why)) => Finding::warning(
            FindingCode::Cgroups,
            format!(
                "each run has a group of its own and is ended as a whole; not all limits are enforced: {why}"
            ),
        )
        .advice(
            "a policy that limits memory or cpu is refused here, unless its compatibility is best_effort",
        ),
        (Err(why), _) => Finding::warning(
            FindingCode::Cgroups,
            format!("a run's processes are found one by one, and memory is not limited: {why}"),
        ),
    };
    let uid = if host.support.uid == 0 {
        Finding::ok(FindingCode::Users, "each task's worker has a user of its own")
    } else {
        Finding::warning(
            FindingCode::Users,
            format!(
                "workers run as your own user (uid {}): only the sandbox keeps them from your files",
                host.support.uid
            ),
        )
        .advice("a daemon run by root gives each task a user of its own")
    };
    let mut checks = vec![landlock, seccomp, view, socket, groups, uid, scripts()];
    checks.extend(Roster::load(root).on(&host.support).policies().unenforceable_findings());
    checks
}
