//! `status`: the daemon, its live workers, and what waits for what.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{Clock as _, Holder, Tenant, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::command::Command;
use crate::daemon::{Broken, Event, LiveRun, Phase, Snapshot, Waiting};
use crate::definitions::Defect;
use crate::duration::brief;
use crate::exit::Code;
use crate::failure::Failure;
use crate::owner::OwnerLock;
use crate::rundir::boottime_us;
use crate::sample::{Sampler, Usage};
use crate::terminal::{Cell, Ink, Screen, printable};

/// How many waiting tasks are told one by one.
const TOLD: u32 = 20;

/// Show live workers and waiting tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Exit code: 0 with a daemon, 69 without one.

Examples:
  supervisor status
  supervisor status --watch
  supervisor status --tenant acme --json")]
pub(crate) struct Status {
    /// Only workers, counts, slots and waiting tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<Tenant>,
    /// Refresh until interrupted
    #[arg(long, short)]
    #[serde(skip)]
    pub(crate) watch: bool,
    /// Seconds between refreshes with --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    #[serde(skip)]
    pub(crate) interval: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DaemonLine {
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// How long it has run, in seconds.
    pub(crate) uptime_seconds: u64,
    /// Its resident memory, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// How many workers may run at once.
    pub(crate) slots: usize,
    /// Why nothing is started, where nothing is.
    pub(crate) paused: Option<String>,
    /// Whether it is stopping, and how.
    pub(crate) stopping: Option<String>,
    /// How often its owner loop has woken up.
    pub(crate) wakeups: u64,
    /// How many commits it has made to the board that was asked about.
    pub(crate) commits: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerLine {
    #[serde(flatten)]
    pub(crate) run: LiveRun,
    /// How long ago it was claimed, in seconds.
    pub(crate) age_seconds: u64,
    /// Until its deadline, in seconds.
    pub(crate) left_seconds: Option<u64>,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StatusReport {
    /// The daemon; none where none runs.
    pub(crate) daemon: Option<DaemonLine>,
    /// Who holds the root where no daemon answers: one whose socket is gone, or that is starting or ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    pub(crate) root: std::path::PathBuf,
    /// The board that was asked about.
    pub(crate) board: kernel::BoardName,
    /// The tenant that was asked about; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Tenant>,
    /// Why nothing is written to it, where nothing is.
    #[serde(default)]
    pub(crate) board_trouble: Option<String>,
    /// The same of every board that is served.
    #[serde(default)]
    pub(crate) board_troubles: BTreeMap<kernel::BoardName, String>,
    pub(crate) workers: Vec<WorkerLine>,
    /// How many tasks of the board are in which status.
    pub(crate) counts: BTreeMap<String, i64>,
    /// Files of the configuration that cannot be used.
    pub(crate) defects: Vec<Defect>,
    /// Policies that this host cannot hold, and why: tasks under them wait. Known to a daemon.
    pub(crate) unheld_policies: BTreeMap<String, String>,
    /// What several tasks need and what does not work.
    pub(crate) broken: Vec<Broken>,
    /// Tasks that wait, and what for; at most 20.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) waiting_more: i64,
    pub(crate) now: Timestamp,
}

impl Verb for Status {
    const NAME: &'static str = "status";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    type Reply = StatusReport;

    async fn run(self, call: Call) -> Result<StatusReport, Failure> {
        let snapshot = match call.service.daemon() {
            Some(daemon) => Some(daemon.ask(Event::Look).await?),
            None => None,
        };
        let board = call.board()?.name().clone();
        let board_troubles = troubles(&call);
        let board_trouble = board_troubles.get(&board).cloned();
        let tenant = self.tenant.clone();
        let read = call
            .read(move |view| {
                let tenant = tenant.as_ref();
                let counts = view.tasks_by_status(tenant)?;
                Ok((counts, view.open_runs()?, view.waiting_tasks(tenant, TOLD)?))
            })
            .await;
        // What is wrong with the board is told; what the daemon knows is told all the same.
        let (counts, open, told) = unless_troubled(read, board_trouble.as_ref())?;
        let now = kernel::SystemClock.now();
        let commits = call.board()?.commits();
        let limits = call.service.config().limits.clone();
        let slots = match &self.tenant {
            Some(tenant) => limits.of_tenant(tenant).map_or(limits.total(), |cap| cap.min(limits.total())),
            None => limits.total(),
        };
        let daemon = snapshot.as_ref().map(|snapshot| daemon_line(snapshot, slots, commits));
        let mut waiting = Vec::new();
        let explained = crate::why::explain(&call, told).await;
        for task in unless_troubled(explained, board_trouble.as_ref())? {
            let Some(why) = task.why else { continue };
            waiting.push(Waiting { board: board.clone(), task: task.id, why });
        }
        let told = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
        let waiting_more = kernel::waiting_count(&counts).saturating_sub(told).max(0);
        let broken = snapshot.as_ref().map(|snapshot| snapshot.broken.clone()).unwrap_or_default();
        let live = match snapshot {
            Some(mut snapshot) => {
                // Heartbeats go to the board; the owner loop does not follow them.
                for run in &mut snapshot.live {
                    let known = open.iter().find(|known| run.board == board && known.id == run.run);
                    run.last_heartbeat_at = known.and_then(|known| known.last_heartbeat_at);
                }
                snapshot.live
            }
            None => open
                .into_iter()
                .filter(|run| run.holder == Holder::Supervisor)
                .map(|run| orphan(&board, &run))
                .collect(),
        };
        let live =
            live.into_iter().filter(|run| self.tenant.is_none() || run.tenant == self.tenant).collect();
        let sampled = tokio::task::spawn_blocking(move || measure(live, now));
        let workers = sampled.await.map_err(|e| Failure::failed(format!("procfs could not be read: {e}")))?;
        let root = call.service.root().dir().to_owned();
        let holder = daemon
            .is_none()
            .then(|| OwnerLock::daemon(call.service.root()))
            .flatten()
            .map(|owner| owner.to_string());
        let defects = call.service.defects();
        let unheld_policies = call.service.roster().policies().unheld().clone();
        Ok(StatusReport {
            daemon,
            holder,
            root,
            board,
            tenant: self.tenant,
            board_trouble,
            board_troubles,
            workers,
            counts,
            defects,
            unheld_policies,
            broken,
            waiting,
            waiting_more,
            now,
        })
    }
}

impl Command for Status {
    fn show(reply: &StatusReport, screen: &mut Screen) {
        show_daemon(reply, screen);
        if !reply.workers.is_empty() {
            screen.heading("Live workers");
            show_workers(reply, screen);
        }
        if !reply.defects.is_empty() {
            screen.heading("Configuration");
            for defect in &reply.defects {
                let text = format!("{defect}; {}", defect.consequence());
                screen.hanging("  ", &printable(&text));
            }
        }
        if !reply.unheld_policies.is_empty() {
            screen.heading("Policies that this host cannot hold");
            for (policy, why) in &reply.unheld_policies {
                screen.hanging(&format!("{}: ", printable(policy)), &printable(why));
            }
        }
        if !reply.broken.is_empty() {
            screen.heading("Broken");
            for broken in &reply.broken {
                let again = broken.until.map_or_else(String::new, |at| {
                    format!(" (tried again at {})", crate::timestamp::soon(at, reply.now))
                });
                let text = format!("{}{again}", broken.why);
                screen.hanging(&format!("{}: ", printable(&broken.what)), &printable(&text));
            }
        }
        if !reply.waiting.is_empty() {
            screen.heading("Waiting");
            for waiting in &reply.waiting {
                screen.hanging(&format!("{}  ", waiting.task), &printable(&crate::why::line(&waiting.why)));
            }
            if reply.waiting_more > 0 {
                let of =
                    reply.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
                screen.line(format!("and {} more: supervisor list --why{of}", reply.waiting_more));
            }
        }
    }

    fn verdict(reply: &StatusReport) -> u8 {
        if reply.daemon.is_some() { 0 } else { Code::Unreachable.exit() }
    }
}

/// What was read of a board; nothing where the board is in trouble and could not be read.
fn unless_troubled<T: Default>(read: Result<T, Failure>, trouble: Option<&String>) -> Result<T, Failure> {
    match read {
        Err(_) if trouble.is_some() => Ok(T::default()),
        read => read,
    }
}

/// Why nothing is written to boards that are open here, where nothing is.
pub(super) fn troubles(call: &Call) -> BTreeMap<kernel::BoardName, String> {
    let mut open = call.service.served();
    open.extend(call.board().ok().cloned());
    let trouble = |board: &crate::service::BoardHandle| {
        let present = board.readers().require_present();
        // A process that only reads has no writer that could know.
        let own = || board.writer().map_or(Ok(()), kernel::Writer::require_own);
        let error = present.and_then(|()| own()).err()?;
        Some((board.name().clone(), format!("{error} ({})", error.hint().unwrap_or_default())))
    };
    open.iter().filter_map(|board| trouble(board)).collect()
}

fn daemon_line(snapshot: &Snapshot, slots: usize, commits: u64) -> DaemonLine {
    let own = procfs::process::Process::myself().and_then(|process| process.stat()).ok();
    let page = procfs::page_size();
    let start_us =
        own.as_ref().map(|stat| stat.starttime.saturating_mul(1_000_000) / procfs::ticks_per_second());
    DaemonLine {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: start_us.map_or(0, |start| boottime_us().saturating_sub(start) / 1_000_000),
        memory_bytes: own.map(|stat| stat.rss.saturating_mul(page)),
        slots,
        paused: snapshot.paused.clone(),
        stopping: snapshot.stopping.clone(),
        wakeups: snapshot.wakeups,
        commits,
    }
}

/// An open run as the board alone knows it, while no daemon runs.
fn orphan(board: &kernel::BoardName, run: &kernel::Run) -> LiveRun {
    LiveRun {
        phase: Phase::Running,
        note: Some("no daemon watches it; the next one takes it over".to_owned()),
        ..LiveRun::of(board, run, None)
    }
}

fn measure(live: Vec<LiveRun>, now: Timestamp) -> Vec<WorkerLine> {
    let sampler = Sampler::new();
    let boottime = boottime_us();
    live.into_iter()
        .map(|run| WorkerLine {
            age_seconds: (now.as_micros() - run.started_at.as_micros()).max(0).unsigned_abs() / 1_000_000,
            left_seconds: run.deadline_us.map(|deadline| deadline.saturating_sub(boottime) / 1_000_000),
            usage: sampler.usage(run.cgroup.as_deref(), run.pid),
            run,
        })
        .collect()
}

fn show_daemon(reply: &StatusReport, screen: &mut Screen) {
    let counts: Vec<String> = reply.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "no tasks".to_owned() } else { counts.join(", ") };
    if let Some(daemon) = &reply.daemon {
        let dot = screen.paint(Ink::Green, "●");
        let memory = daemon.memory_bytes.map(|bytes| format!(", {}", bytes_brief(bytes))).unwrap_or_default();
        screen.line(format!(
            "{dot} supervisor {} up {}, pid {}{memory}, {} of {} slots taken",
            daemon.version,
            brief(Duration::from_secs(daemon.uptime_seconds)),
            daemon.pid,
            // Nobody knows whether those that are left out still run; they take no slot.
            reply.workers.iter().filter(|worker| worker.run.phase != Phase::Unknown).count(),
            daemon.slots
        ));
        for (label, text) in [("paused", &daemon.paused), ("stopping", &daemon.stopping)] {
            if let Some(text) = text {
                let label = screen.paint(Ink::Red, label);
                screen.line(format!("  {label}: {}", printable(text)));
            }
        }
    } else {
        let dot = screen.paint(Ink::Red, "○");
        screen.line(match &reply.holder {
            Some(holder) => format!(
                "{dot} {holder} owns this root and does not answer on its socket; it restores a missing socket, \
                 so try again in a moment"
            ),
            None => format!("{dot} no daemon is running; start one with: supervisor daemon"),
        });
    }
    screen.hanging(&format!("  root {}, board {}: ", reply.root.display(), reply.board), &counts);
    if let Some(trouble) = &reply.board_trouble {
        let label = screen.paint(Ink::Red, "nothing is written");
        screen.hanging(&format!("  {label}: "), &printable(trouble));
    }
}

/// The columns that a worker has on a wide terminal. A narrow one tells profile and tenant below the row.
const WIDE: [&str; 11] =
    ["TASK", "RUN", "PROFILE", "TENANT", "PID", "STATE", "AGE", "LEFT", "CPU", "MEM", "BEAT"];
const NARROW: [&str; 9] = ["TASK", "RUN", "PID", "STATE", "AGE", "LEFT", "CPU", "MEM", "BEAT"];

fn show_workers(reply: &StatusReport, screen: &mut Screen) {
    let workers = || reply.workers.iter();
    let wide: Vec<[Cell; 11]> = workers().map(|worker| worker_row(worker, reply.now)).collect();
    if screen.fits(&WIDE, &wide) {
        let rows = wide.into_iter().zip(workers()).map(|(row, worker)| (row, details(&worker.run)));
        screen.list_with_details(WIDE, rows.collect());
        return;
    }
    let rows = wide.into_iter().zip(workers()).map(|(row, worker)| {
        let [task, run, _, _, pid, state, age, left, cpu, memory, beat] = row;
        let run_of = &worker.run;
        let mut below = vec![run_of.profile.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)];
        below.extend(run_of.tenant.as_ref().map(|tenant| format!("for {tenant}")));
        below.extend(details(run_of));
        ([task, run, pid, state, age, left, cpu, memory, beat], below)
    });
    screen.list_with_details(NARROW, rows.collect());
}

/// Where a run works, what its sandbox enforces, and what holds it up.
fn details(run: &LiveRun) -> Vec<String> {
    let place = match &run.workspace_path {
        Some(path) => path.display().to_string(),
        None => run.workspace.clone(),
    };
    let sandbox = run.sandbox.as_ref().map(|sandbox| format!("[{sandbox}]"));
    [Some(place).filter(|place| !place.is_empty()), sandbox, run.note.clone()]
        .into_iter()
        .flatten()
        .map(|piece| printable(&piece))
        .collect()
}

fn worker_row(worker: &WorkerLine, now: Timestamp) -> [Cell; 11] {
    let run = &worker.run;
    let (state, ink) = match run.phase {
        Phase::Starting => ("starting", Ink::Yellow),
        Phase::Running => ("running", Ink::Green),
        Phase::Ending => ("ending", Ink::Yellow),
        Phase::Settling => ("settling", Ink::Red),
        Phase::Unknown => ("unknown", Ink::Red),
    };
    let short = |seconds: u64| brief(Duration::from_secs(seconds)).replace(' ', "");
    let beat = run
        .last_heartbeat_at
        .map(|at| short((now.as_micros() - at.as_micros()).max(0).unsigned_abs() / 1_000_000));
    let cpu = worker.usage.as_ref().map(|usage| cpu_brief(Duration::from_micros(usage.cpu_us)));
    let memory = worker.usage.as_ref().map(|usage| bytes_brief(usage.memory_bytes).replace(' ', ""));
    [
        Cell::from(run.task.to_string()),
        Cell::from(run.run.to_string()),
        Cell::or_dash(run.profile.as_ref()),
        Cell::or_dash(run.tenant.as_ref()),
        Cell::or_dash(run.pid),
        Cell::inked(ink, state),
        Cell::from(short(worker.age_seconds)),
        Cell::or_dash(worker.left_seconds.map(short)),
        Cell::or_dash(cpu),
        Cell::or_dash(memory),
        Cell::or_dash(beat),
    ]
}

/// Processor time: tenths of a second while it is short.
fn cpu_brief(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        brief(time).replace(' ', "")
    }
}

/// A size in three digits or so: `512 B`, `14 KiB`, `2.1 GiB`.
pub(super) fn bytes_brief(bytes: u64) -> String {
    let mut whole = bytes;
    let mut rest = 0;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if whole < 1024 {
            break;
        }
        rest = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit = next;
    }
    if whole < 10 && unit != "B" { format!("{whole}.{rest} {unit}") } else { format!("{whole} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown: Vec<_> = [0, 1023, 1024, 15_000, 5_000_000, 2_254_857_830].map(bytes_brief).into();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "14 KiB", "4.7 MiB", "2.0 GiB"]);
    }
}
