//! What `doctor` finds out about the dashboard: whether it can listen, or does.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::{Check, Verdict};
use crate::config::Config;
use crate::paths::Root;

/// Looks at the address of the configuration. `listening` is where the daemon listens that is asked.
pub(super) fn examine(root: &Root, listening: Option<SocketAddr>) -> Option<Check> {
    // `configuration` reports a file that cannot be used.
    let config = Config::load(root).ok()?.dashboard;
    let check = |verdict, detail: String| Check::new("dashboard", verdict, detail);
    let at = config.listen;
    if !config.enabled {
        return Some(check(Verdict::Ok, "switched off by `enabled` in [dashboard]".to_owned()));
    }
    if listening == Some(at) {
        return Some(check(Verdict::Ok, format!("served at {}", config.base())));
    }
    // It is free again at once: nobody has connected.
    Some(match TcpListener::bind(at) {
        Ok(_) => check(Verdict::Ok, format!("{at} is free; supervisor dashboard --open listens there")),
        Err(e) if e.kind() == ErrorKind::AddrInUse => check(
            Verdict::Warning,
            format!("another program listens on {at}"),
        )
        .hint(
            "set another port as `listen` in [dashboard] of supervisor.toml, if it is not this root's daemon",
        ),
        Err(e) => check(Verdict::Warning, format!("{at} cannot be listened on: {e}"))
            .hint("set another address of loopback as `listen` in [dashboard] of supervisor.toml"),
    })
}
