//! `status`: shows the daemon, its live workers, and the reasons why tasks wait.

mod disk;
mod health;
mod measure;
mod nothing;
mod open;
mod order;
mod screen;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use kernel::{
    AskingMission, BoardName, Clock as _, ClockSet, Finding, Holder, Profile, Run, RunId, Tenant, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::disk::DiskSpace;
use self::health::Health;
use self::measure::{daemon_line, measured};
use self::open::{OpenRunRecords, orphan};
use self::order::Order;
pub use self::worker::WorkerHealth;
use api::command::Command;
use api::{Call, Verb, confine_to, verb};
use base::failure::Failure;
use base::owner::{Owner, OwnerLock};
use base::terminal::Screen;
use daemon::{Broken, Event, LiveRun, OwnerLink, PoolUse, problems};
use host::socket_file::in_its_place;
use host::usage::{Tree, Usage};
use service::board_subject;
use upkeep::diagnosis;

/// Time limit of the request. It is short, because a healthy daemon answers from memory, and the command has to report
/// an unhealthy daemon.
const ANSWERED: Duration = Duration::from_secs(10);

/// Limit on the waiting tasks that are listed.
const LISTED: u32 = 20;

/// Time for which a correction of stored times is shown after it was made.
const SHOWN_CORRECTION: Duration = Duration::from_hours(24);

/// Limit on the processes that are shown for a run.
const TREE: usize = 50;

/// Show the health, the live workers and the waiting tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Exit code: 0 if all is well; 1 if the daemon runs but cannot do part of its
work (nothing is started, a file of the configuration or a policy cannot be used, a
lane is broken, the end of a run is unknown); 3 if no daemon runs; 75 if the daemon
is stopped or does not answer in time.

Below a worker stand the layers that its sandbox lacks beyond those that all lack, and
what holds it up.

Examples:
  supervisor status
  supervisor status --tree
  supervisor status --assignee shell --sort memory
  supervisor status --watch
  supervisor status --tenant acme --json")]
pub struct Status {
    /// Only workers, counts, slots and waiting tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
    /// Only workers, counts, slots and waiting tasks of this assignee
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<Profile>,
    /// The order of the workers [default: age]
    #[arg(long, value_name = "ORDER", value_enum)]
    pub sort: Option<Order>,
    /// Show the processes of each worker
    #[arg(long)]
    pub tree: bool,
    /// Refresh until interrupted
    #[arg(long, short)]
    #[serde(skip)]
    pub watch: bool,
    /// Seconds between refreshes with --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    #[serde(skip)]
    pub interval: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DaemonLine {
    pub pid: u32,
    pub version: String,
    pub uptime_seconds: u64,
    /// Its resident memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Limit on workers at once.
    pub slots: usize,
    /// Number of workers now.
    #[serde(default)]
    pub taken: usize,
    /// Taken slots of each pool.
    #[serde(default)]
    pub pools: Vec<PoolUse>,
    /// Reason why it starts no tasks; none if it starts tasks.
    pub paused: Option<String>,
    /// Mode of its stop, while it is stopping.
    pub stopping: Option<String>,
    /// Number of wake-ups of its owner loop.
    pub wakeups: u64,
    /// Number of its commits to the board of the request.
    pub commits: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WorkerLine {
    #[serde(flatten)]
    pub run: LiveRun,
    /// Age of its claim, in seconds.
    pub age_seconds: u64,
    /// Time until its deadline, in seconds.
    pub left_seconds: Option<u64>,
    pub usage: Option<Usage>,
    /// True if a signal such as SIGSTOP has stopped its first process.
    #[serde(default)]
    pub is_stopped: bool,
    /// Its state.
    pub health: WorkerHealth,
    /// Note of its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_note: Option<String>,
    /// Its processes; none if the request does not ask for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
}

/// Waiting task, with the reason.
#[derive(Debug, Serialize, Deserialize)]
pub struct WaitingTask {
    pub board: kernel::BoardName,
    pub task: kernel::TaskId,
    #[serde(default)]
    pub title: String,
    pub why: kernel::Waiting,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NextTick {
    pub schedule: kernel::ScheduleName,
    pub at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// State of the service.
    #[serde(default)]
    pub health: Health,
    /// Problems that degrade the service, each in a few words.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// Problems beside single tasks: of the configuration, the host, the board, its automation and its runs.
    #[serde(default)]
    pub problems: Vec<Finding>,
    /// The daemon; none if none runs.
    pub daemon: Option<DaemonLine>,
    /// The process that holds the lock of the root while no daemon answers: its socket was removed, or it is starting
    /// or ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// True if the process in `holder` started only a moment ago.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_starting: bool,
    /// Remedy if another file is at the path of the daemon's socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_its_place: Option<String>,
    pub root: std::path::PathBuf,
    /// The file system of the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSpace>,
    /// Board that the request names.
    pub board: kernel::BoardName,
    /// The tenant of the request; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The assignee of the request; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<Profile>,
    /// Reason why the board cannot be written to or opened; none if it can.
    #[serde(default)]
    pub(crate) board_trouble: Option<String>,
    pub workers: Vec<WorkerLine>,
    /// Number of the board's tasks in each status.
    pub counts: BTreeMap<kernel::Status, i64>,
    /// Lanes, environments and other requirements of several tasks that are broken.
    pub broken: Vec<Broken>,
    /// The next ticks of the schedules of the board, soonest first; at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<NextTick>,
    /// The missions at a limit, each with its question to a person; at most 20, the latest question first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asking: Vec<AskingMission>,
    /// Stored times that were recomputed within the last day, because the clock was set back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_set: Option<ClockSet>,
    /// Waiting tasks with the reasons; at most 20.
    pub waiting: Vec<WaitingTask>,
    pub(crate) waiting_more: i64,
    /// Warnings about names in the request that exist neither on the board nor in the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub now: Timestamp,
}

impl StatusReport {
    /// Removes the data that a tenant's users may not see: data of the host, of other tenants, and of their use.
    fn of_tenant_alone(self) -> Self {
        let daemon = self.daemon.map(|daemon| DaemonLine {
            memory_bytes: None,
            pools: Vec::new(),
            wakeups: 0,
            commits: 0,
            ..daemon
        });
        StatusReport { daemon, broken: Vec::new(), holder: None, in_its_place: None, disk: None, ..self }
    }
}

impl Status {
    /// Returns warnings about a tenant or an assignee in the request that does not exist. Users of a tenant get none
    /// about their own tenant.
    fn nowhere(&self, call: &Call) -> Vec<String> {
        let config = call.service.config();
        let tenant = self.tenant.as_ref().filter(|name| config.tenants.get(name).is_none());
        let tenant = tenant.filter(|_| call.confined().is_none()).map(|name| {
            format!(
                "no task of this board and no configuration has the tenant {name}: supervisor tenant list"
            )
        });
        let assignee =
            self.assignee.as_ref().filter(|name| !call.service.roster().knows(name)).map(|name| {
                format!("no task, lane or profile has the assignee {name}: supervisor assignees")
            });
        tenant.into_iter().chain(assignee).collect()
    }

    /// Returns the limit on concurrent workers of the tenant and the assignee in the request: the smallest of their
    /// limits and of the host's.
    fn slots(&self, call: &Call) -> usize {
        let config = call.service.config();
        let limits = &config.limits;
        let of_tenant = self.tenant.as_ref().and_then(|tenant| limits.of_tenant(tenant));
        let of_one = self.tenant.as_ref().map(|_| limits.without_reserve(limits.total()));
        let of_assignee = self.assignee.as_ref().and_then(|assignee| {
            let share = call.service.roster().pool_claim(assignee, &config);
            let of_lane = share.lane.as_ref().and_then(|lane| limits.of_lane(lane, share.most_of_lane));
            limits.of_profile(assignee, share.most_of_profile).into_iter().chain(of_lane).min()
        });
        [of_tenant, of_one, of_assignee].into_iter().flatten().fold(limits.total(), usize::min)
    }
}

impl Verb for Status {
    verb! { "status": Operator, Read, members, on(IfServed) => StatusReport }

    fn answered_within(&self) -> Duration {
        ANSWERED
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, call: Call) -> Result<StatusReport, Failure> {
        let snapshot = match OwnerLink::from_service(&call.service) {
            Some(daemon) => Some(daemon.ask(Event::Look).await?),
            None => None,
        };
        let board = call.board_name().clone();
        let of_boards = call.service.board_findings(call.board().ok());
        let own = board_subject(&board);
        let board_trouble =
            of_boards.into_iter().find(|problem| problem.subject == own).map(|problem| problem.to_string());
        let (tenant, assignee, actor) = (self.tenant.clone(), self.assignee.clone(), call.actor.clone());
        let member = call.confined().cloned();
        let is_alone = snapshot.is_none();
        let read = call
            .read(move |view| {
                let (tenant, assignee) = (tenant.as_ref(), assignee.as_ref());
                let counts = view.tasks_by_status(tenant, assignee)?;
                let open = OpenRunRecords::read(view, is_alone, tenant, assignee, &actor)?;
                let automation = problems::of_board(view, member.as_ref())?;
                Ok((counts, open, view.waiting_tasks(tenant, assignee, LISTED)?, automation))
            })
            .await;
        // If the board cannot be read, the reply contains the reason and the daemon's own data.
        let (counts, open, told, automation) = unless_troubled(read, board_trouble.as_ref())?;
        let mut problems = diagnosis::collect(&call, automation, snapshot.as_ref());
        let now = kernel::SystemClock.now();
        let commits = call.board().map(|board| board.commits()).unwrap_or_default();
        let is_asked_about = |run: &LiveRun| {
            (self.tenant.is_none() || run.tenant == self.tenant)
                && (self.assignee.is_none() || run.profile == self.assignee)
        };
        let daemon = snapshot.as_ref().map(|snapshot| {
            let takes_slot = |run: &&LiveRun| is_asked_about(run) && !run.phase.is_out_of_reach();
            let taken = snapshot.live.iter().filter(takes_slot).count();
            DaemonLine { slots: self.slots(&call), taken, commits, ..daemon_line(snapshot) }
        });
        let mut waiting = Vec::new();
        let explained = diagnosis::why::explain(&call, told).await;
        for task in unless_troubled(explained, board_trouble.as_ref())? {
            let Some(why) = task.why else { continue };
            waiting.push(WaitingTask { board: board.clone(), task: task.id, title: task.title, why });
        }
        let warnings = if counts.is_empty() { self.nowhere(&call) } else { Vec::new() };
        let told = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
        let waiting_more = kernel::waiting_count(&counts).saturating_sub(told).max(0);
        let broken = snapshot.as_ref().map(|snapshot| snapshot.broken.clone()).unwrap_or_default();
        let live: Vec<LiveRun> = if let Some(snapshot) = snapshot {
            with_reports(snapshot.live, &board, &open)
        } else {
            let run_here = open.runs.iter().filter(|run| run.holder == Holder::Supervisor);
            run_here.map(|run| orphan(&board, run, open.tasks.get(&run.task_id))).collect()
        };
        let live = live.into_iter().filter(is_asked_about).collect();
        let root = call.service.root().dir().to_owned();
        let (mut workers, disk) = measured(root.clone(), live, now, self.tree.then_some(TREE)).await?;
        for worker in workers.iter_mut().filter(|worker| worker.run.board == board) {
            worker.last_note = open.notes.get(&worker.run.run).cloned();
        }
        order::sort(&mut workers, self.sort.unwrap_or(Order::Age));
        problems.extend(problems::of_runs(workers.iter().map(|worker| worker.run.phase)));
        Finding::sort(&mut problems);
        let owner = daemon.is_none().then(|| OwnerLock::daemon(call.service.root())).flatten();
        let (is_starting, holder) =
            (owner.is_some_and(Owner::is_starting), owner.map(|owner| owner.to_string()));
        let in_its_place = holder.as_ref().and_then(|_| in_its_place(&call.service.root().operator_socket()));
        let report = StatusReport {
            health: Health::of(daemon.is_some(), &problems),
            troubles: Finding::errors_in_lines(&problems),
            problems,
            daemon,
            holder,
            is_starting,
            in_its_place,
            root,
            disk,
            board,
            tenant: self.tenant,
            assignee: self.assignee,
            board_trouble,
            workers,
            counts,
            broken,
            ticks: open.ticks,
            asking: open.asking,
            clock_set: open.clock_set,
            waiting,
            waiting_more,
            warnings,
            now,
        };
        Ok(if call.confined().is_some() { report.of_tenant_alone() } else { report })
    }
}

/// Adds the data of the board that the owner loop does not keep: heartbeats and usage of the runs, and edited titles.
fn with_reports(mut live: Vec<LiveRun>, board: &BoardName, open: &OpenRunRecords) -> Vec<LiveRun> {
    let by_id: HashMap<RunId, &Run> = open.runs.iter().map(|run| (run.id, run)).collect();
    for run in &mut live {
        if let Some(title) = open.titles.get(&run.task).filter(|_| run.board == *board) {
            run.title.clone_from(title);
        }
        let known = by_id.get(&run.run).filter(|_| run.board == *board);
        run.last_heartbeat_at = known.and_then(|known| known.last_heartbeat_at);
        run.spent = known.and_then(|known| known.spent.clone());
        run.egress = known.and_then(|known| known.egress.clone());
    }
    live
}

impl Command for Status {
    fn show(reply: &StatusReport, screen: &mut Screen) {
        screen::show(reply, screen);
    }

    fn warnings(reply: &StatusReport) -> &[String] {
        &reply.warnings
    }

    fn verdict(reply: &StatusReport) -> u8 {
        reply.health.exit()
    }
}

/// Returns the read data of a board, or empty data if the read failed and the board is known to be faulty.
fn unless_troubled<T: Default>(read: Result<T, Failure>, trouble: Option<&String>) -> Result<T, Failure> {
    match read {
        Err(_) if trouble.is_some() => Ok(T::default()),
        read => read,
    }
}
