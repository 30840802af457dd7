//! Check of `doctor` on the dashboard: it listens, or can.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use kernel::{Finding, FindingCode, Severity};
use procfs::net::{TcpNetEntry, TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process};

use base::owner::OwnerLock;
use base::paths::Root;
use setup::config::Config;

/// Checks the configured address.
pub(super) fn examine(root: &Root) -> Option<Finding> {
    // `configuration` reports a file that cannot be used.
    let config = Config::load(root).ok()?.dashboard;
    let check = |severity, detail: String| Finding::new(FindingCode::Dashboard, severity, detail);
    let at = config.listen;
    if !config.enabled {
        return Some(check(Severity::Ok, "switched off by `enabled` in [dashboard]".to_owned()));
    }
    // The port is free again at once, because nothing has connected.
    Some(match TcpListener::bind(at) {
        Ok(_) => check(Severity::Ok, format!("{at} is free; supervisor dashboard --open listens there")),
        Err(e) if e.kind() == ErrorKind::AddrInUse => {
            let daemon = OwnerLock::daemon(root).and_then(|owner| owner.pid);
            if daemon.is_some_and(|pid| listens(pid, at)) {
                check(Severity::Ok, format!("served at {}", config.base()))
            } else {
                check(Severity::Warning, format!("another program listens on {at}"))
                    .advice("set another port as `listen` in [dashboard] of supervisor.toml")
            }
        }
        Err(e) => check(Severity::Warning, format!("cannot listen on {at}: {e}"))
            .advice("set another address of loopback as `listen` in [dashboard] of supervisor.toml"),
    })
}

/// Returns true if a process has the listening socket of an address.
fn listens(pid: i32, at: SocketAddr) -> bool {
    let table = if at.is_ipv4() { tcp() } else { tcp6() };
    let is_it = |entry: &TcpNetEntry| entry.state == TcpState::Listen && entry.local_address == at;
    let inode = table.ok().and_then(|table| table.into_iter().find(is_it)).map(|entry| entry.inode);
    let files = Process::new(pid).and_then(|process| process.fd());
    let (Some(inode), Ok(files)) = (inode, files) else { return false };
    files.flatten().any(|file| matches!(file.target, FDTarget::Socket(own) if own == inode))
}
