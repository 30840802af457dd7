//! Temporary root with a daemon; both are removed when it is dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;
use crate::worker::clock;

/// Path of the measured program.
pub(crate) const SUPERVISOR: &str = env!("CARGO_BIN_EXE_supervisor");
/// Time limit for the start of a daemon, and for a task.
const LIMIT: Duration = Duration::from_mins(5);

/// A temporary root and its daemon.
#[derive(Debug)]
pub(crate) struct Root {
    dir: TempDir,
    daemon: Child,
}

impl Root {
    /// Starts a daemon that runs up to `slots` workers at once.
    pub(crate) fn start(slots: usize) -> Result<Self> {
        Self::start_with(slots, |_| Ok(()))
    }

    /// Starts a daemon after `fill` has prepared the root.
    pub(crate) fn start_with(slots: usize, fill: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("sv-bench-").tempdir()?;
        let path = dir.path();
        // Workers of other uids must be able to pass through.
        fs::set_permissions(path, fs::Permissions::from_mode(0o711))?;
        fs::write(path.join("supervisor.toml"), format!("[limits]\nmax_running = {slots}\n"))?;
        let lanes = path.join("lanes.d");
        fs::create_dir(&lanes)?;
        let bench = path.join("bin/bench");
        let program = bench.display();
        for (lane, word, policy) in [
            ("stamp", "__stamp", "default"),
            ("stamp-open", "__stamp", "unconfined"),
            ("sleep", "__sleep", "default"),
        ] {
            let text = format!(
                "argv = [\"{program}\", \"{word}\"]\non_clean_exit = \"complete\"\npolicy = \"{policy}\"\n"
            );
            fs::write(lanes.join(format!("{lane}.toml")), text)?;
        }
        fill(path)?;
        let daemon = Command::new(SUPERVISOR)
            .args(["daemon", "--root"])
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the daemon")?;
        let root = Root { dir, daemon };
        let until = Instant::now() + LIMIT;
        while root.client().and_then(|mut client| client.call("status", &json!({}))).is_err() {
            if Instant::now() > until {
                bail!("the daemon does not answer");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Every policy lets workers execute what is in `bin`.
        fs::copy(std::env::current_exe()?, &bench)?;
        fs::set_permissions(&bench, fs::Permissions::from_mode(0o755))?;
        Ok(root)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The daemon's pid.
    pub(crate) fn daemon(&self) -> u32 {
        self.daemon.id()
    }

    /// Opens a connection.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::connect(self.path())
    }

    /// Returns a command of the measured program on this root.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(SUPERVISOR);
        command.arg("--root").arg(self.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Waits until a task is done and returns it in the format of `show`.
    pub(crate) fn wait_done(client: &mut Client, task: &str) -> Result<Value> {
        let wait = json!({ "task": task, "kinds": ["completed", "gave_up", "blocked"], "wait": 30 });
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            let page = client.call("events", &wait)?;
            if page["events"].as_array().is_some_and(|events| !events.is_empty()) {
                let shown = client.call("show", &json!({ "task_id": task }))?;
                if shown["task"]["status"] != "done" {
                    bail!("{task} is {}: {}", shown["task"]["status"], shown["runs"]);
                }
                return Ok(shown);
            }
        }
        bail!("{task} is not done after {LIMIT:?}")
    }

    /// Runs a task whose worker prints the time. Returns the times from the request and from its reply to the worker's
    /// time.
    pub(crate) fn stamp(client: &mut Client, lane: &str) -> Result<[Duration; 2]> {
        let asked = clock();
        let created = client.call("create", &json!({ "title": "stamp", "assignee": lane }))?;
        let answered = clock();
        let id = created["id"].as_str().context("the reply has no id")?;
        let shown = Self::wait_done(client, id)?;
        let stamp = shown["latest_summary"].as_str().context("the worker left no stamp")?;
        let stamp = Duration::from_nanos(stamp.trim().parse()?);
        // The daemon clears up after the run; the next one is to find an idle host.
        std::thread::sleep(Duration::from_millis(10));
        Ok([stamp.saturating_sub(asked), stamp.saturating_sub(answered)])
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let told = self.client().and_then(|mut client| client.call("stop", &json!({ "kill": true })));
        if told.is_err() {
            self.daemon.kill().ok();
        }
        self.daemon.wait().ok();
    }
}
