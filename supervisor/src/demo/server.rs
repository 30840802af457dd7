//! Daemon of a demo: a normal daemon that runs as a child process, with a root of its own.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};

use super::directory::Owners;
use crate::client::Client;
use base::failure::Failure;
use base::paths::Root;
use verbs::Stop;

/// Time limit for a start or a stop.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Configuration of the daemon: slots for all tenants at once, and short waits at the end of a run.
const CONFIG: &str = "\
[limits]
max_running = 64

[worker]
grace = \"1s\"
verdict_grace = \"5s\"
";

#[derive(Debug)]
pub(super) struct DemoServer {
    child: Child,
    pub(super) pid: i32,
}

impl DemoServer {
    /// Starts a daemon, and waits until it serves.
    pub(super) async fn start(root: &Root, owners: Owners) -> Result<Self, Failure> {
        let config = root.config_file();
        let uids =
            owners.of_daemon().map(|(first, count)| format!("first_uid = {first}\nuid_count = {count}\n"));
        let text = format!("{CONFIG}{}", uids.unwrap_or_default());
        std::fs::write(&config, text).map_err(|e| Failure::file("write", &config, &e))?;
        let log = root.dir().join("daemon.log");
        let file = std::fs::File::create(&log).map_err(|e| Failure::file("make the log", &log, &e))?;
        let notices = root.dir().join("ready.sock");
        let ready = UnixDatagram::bind(&notices).map_err(|e| Failure::file("bind", &notices, &e))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("supervisor").arg("--root").arg(root.dir()).arg("daemon");
        for (name, _) in std::env::vars_os() {
            // Variables of a service or a run in which the demo itself runs must not reach its daemon.
            if ["SUPERVISOR_", "HERMES_", "WATCHDOG_"]
                .iter()
                .any(|own| name.to_string_lossy().starts_with(own))
            {
                command.env_remove(name);
            }
        }
        // The daemon reports its readiness to this socket (sd_notify(3)).
        command.env("NOTIFY_SOCKET", &notices).env("NO_COLOR", "1");
        // The daemon has a process group of its own, so that Ctrl-C reaches only this process, which then stops the
        // daemon through its API.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let mut child =
            command.spawn().map_err(|e| Failure::failed(format!("failed to start the daemon: {e}")))?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        let notice = async {
            let mut notice = [0_u8; 512];
            loop {
                let length = ready.recv(&mut notice).await?;
                if notice[..length].starts_with(b"READY=1") {
                    return Ok::<(), std::io::Error>(());
                }
            }
        };
        let started = tokio::select! {
            // The branches that are dropped are not needed afterwards.
            notice = notice => notice.map_err(|e| format!("its notice cannot be read: {e}")),
            ended = child.wait() => Err(match ended {
                Ok(status) => format!("it ended with {status}"),
                Err(e) => e.to_string(),
            }),
            () = tokio::time::sleep(TIMEOUT) => Err(format!("it was not ready after {TIMEOUT:?}")),
        };
        drop(std::fs::remove_file(&notices));
        let server = DemoServer { child, pid };
        match started {
            Ok(()) => Ok(server),
            Err(why) => {
                let log_lines = last_lines(&log);
                server.end().await;
                Err(Failure::failed(format!("the demo's daemon did not start: {why}{log_lines}")))
            }
        }
    }

    /// Asks the daemon to end its workers and itself, and returns its exit status. Returns none if it had to be ended
    /// by signals.
    pub(super) async fn stop(mut self, client: &Client) -> Option<ExitStatus> {
        let asked = client.call(&Stop { now: true, ..Stop::default() }).await;
        if asked.is_ok()
            && let Ok(Ok(status)) = tokio::time::timeout(TIMEOUT, self.child.wait()).await
        {
            return Some(status);
        }
        self.end().await;
        None
    }

    /// Ends the daemon by signals, with three seconds after each: SIGTERM three times, because a repeated SIGTERM makes
    /// the daemon kill its workers, then SIGKILL.
    async fn end(mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGTERM, Signal::SIGTERM, Signal::SIGKILL] {
            // As long as `id` has a value, the child was not reaped, so no other process can have its pid.
            if self.child.id().is_none() || kill(Pid::from_raw(self.pid), signal).is_err() {
                return;
            }
            if tokio::time::timeout(Duration::from_secs(3), self.child.wait()).await.is_ok() {
                return;
            }
        }
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().fold(String::new(), |log_lines, line| log_lines + "\n  " + line)
}
