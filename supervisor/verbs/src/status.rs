//! `status`: shows the daemon, its live workers, and why tasks wait.

mod disk;
mod health;
mod measure;
mod nothing;
mod open;
mod order;
mod screen;
mod worker;

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::{
    AskingMission, BoardName, Clock as _, ClockSet, Hold, HoldKind, HoldScope, Holder, Mail, PluginCursor,
    Profile, TaskId, Tenant, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::disk::Room;
use self::health::Health;
use self::measure::{daemon_line, measured};
use self::open::{Open, orphan};
use self::order::Order;
pub use self::worker::WorkerHealth;
use api::command::Command;
use api::{Call, Verb, confine_to, verb};
use base::failure::Failure;
use base::owner::{Owner, OwnerLock};
use base::terminal::Screen;
use daemon::{Broken, Event, LiveRun, OwnerLink, PoolUse, troubles};
use host::socket_file::in_its_place;
use host::usage::{Tree, Usage};
use setup::config::definitions::Defect;

/// Time limit of the request: the daemon reads memory only, and the command is used when it is in trouble.
const ANSWERED: Duration = Duration::from_secs(10);

/// Limit on the waiting tasks that are listed.
const TOLD: u32 = 20;

/// Time for which a correction of stored times is shown.
const SHOWN_CORRECTION: Duration = Duration::from_hours(24);

/// Limit on the processes shown of a run.
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
    // A daemon of an earlier release refuses what it does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<Profile>,
    /// The order of the workers [default: age]
    #[arg(long, value_name = "ORDER", value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Reason why it starts no tasks; none if it does.
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
    /// Until its deadline, in seconds.
    pub left_seconds: Option<u64>,
    pub usage: Option<Usage>,
    /// True if a signal such as SIGSTOP has stopped its first process.
    #[serde(default)]
    pub is_stopped: bool,
    /// Its state; none from a daemon of an earlier release.
    #[serde(default)]
    pub health: WorkerHealth,
    /// Note of its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_note: Option<String>,
    /// Its processes, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
}

/// A task that waits, and what for.
#[derive(Debug, Serialize, Deserialize)]
pub struct WaitingTask {
    pub board: kernel::BoardName,
    pub task: kernel::TaskId,
    #[serde(default)]
    pub title: String,
    pub why: kernel::Waiting,
}

/// Next tick of a schedule.
#[derive(Debug, Serialize, Deserialize)]
pub struct NextTick {
    pub schedule: kernel::ScheduleName,
    pub at: Timestamp,
}

/// A schedule whose ticks make nothing, because the tasks of an earlier tick wait for a person.
#[derive(Debug, Serialize, Deserialize)]
pub struct StuckSchedule {
    pub schedule: kernel::ScheduleName,
    /// Time of the latest tick.
    pub tick: Timestamp,
    /// Task of an earlier tick that waits for a person.
    pub task: TaskId,
}

/// A schedule whose latest tick failed.
#[derive(Debug, Serialize, Deserialize)]
pub struct FailedSchedule {
    pub schedule: kernel::ScheduleName,
    /// Due time of the tick.
    pub tick: Timestamp,
    /// Reason why it made nothing.
    pub why: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// State of the service.
    #[serde(default)]
    pub health: Health,
    /// Defects, each in a few words.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// The daemon; none if none runs.
    pub daemon: Option<DaemonLine>,
    /// The process that holds the root while no daemon answers: its socket is gone, or it is starting or ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// True if this process started a moment ago.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_starting: bool,
    /// Remedy for a foreign file in the place of the daemon's socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_its_place: Option<String>,
    pub root: std::path::PathBuf,
    /// The file system of the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Room>,
    /// The board of the request.
    pub board: kernel::BoardName,
    /// The tenant of the request; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// The assignee of the request; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<Profile>,
    /// Reason why nothing can be written to the board; none if it can.
    #[serde(default)]
    pub(crate) board_trouble: Option<String>,
    /// The same for every open board.
    #[serde(default)]
    pub board_troubles: BTreeMap<kernel::BoardName, String>,
    pub workers: Vec<WorkerLine>,
    /// Number of the board's tasks in each status.
    pub counts: BTreeMap<kernel::Status, i64>,
    /// Files of the configuration that cannot be used.
    pub defects: Vec<Defect>,
    /// Policies that this host cannot enforce, and why: tasks under them wait. Known to a daemon.
    pub unheld_policies: BTreeMap<String, String>,
    /// Broken things that several tasks need.
    pub broken: Vec<Broken>,
    /// Tenants and accounts that have used up a budget of today: their tasks wait.
    #[serde(default)]
    pub(crate) spent_budgets: Vec<Hold>,
    /// Channels of the board that take no messages for long, or did not take some.
    #[serde(default)]
    pub(crate) failing_channels: Vec<Mail>,
    /// Plugins that get no more events of the board, because they failed too often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paused_plugins: Vec<PluginCursor>,
    /// Chats and the A2A bridge that hear nothing, each with the reason. Known to a daemon.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unheard: BTreeMap<String, String>,
    /// The next ticks of the schedules of the board, soonest first; at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<NextTick>,
    /// The schedules whose latest tick failed, and that are not paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_schedules: Vec<FailedSchedule>,
    /// The schedules whose ticks make nothing until a task of an earlier tick no longer waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck_schedules: Vec<StuckSchedule>,
    /// The missions at a limit, each with what it asks; at most 20, the latest question first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asking: Vec<AskingMission>,
    /// Stored times that were recomputed within the last day, because the clock was set back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_set: Option<ClockSet>,
    /// Tasks that wait, and what for; at most 20.
    pub waiting: Vec<WaitingTask>,
    pub(crate) waiting_more: i64,
    /// Names of the request that exist nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub now: Timestamp,
}

impl StatusReport {
    /// Removes what a tenant's users may not see: the host, other tenants, and what these use.
    fn of_tenant_alone(mut self) -> Self {
        self.board_troubles.retain(|board, _| *board == self.board);
        let own = self.tenant.as_ref().map(Tenant::as_str);
        self.spent_budgets.retain(|hold| hold.scope == HoldScope::Tenant && Some(hold.name.as_str()) == own);
        let daemon = self.daemon.map(|daemon| DaemonLine {
            memory_bytes: None,
            pools: Vec::new(),
            wakeups: 0,
            commits: 0,
            ..daemon
        });
        let (defects, broken, paused_plugins) = (Vec::new(), Vec::new(), Vec::new());
        StatusReport {
            daemon,
            defects,
            broken,
            paused_plugins,
            unheld_policies: BTreeMap::new(),
            unheard: BTreeMap::new(),
            holder: None,
            in_its_place: None,
            disk: None,
            ..self
        }
    }
}

impl Status {
    /// Warns of a tenant or assignee in the request that does not exist. Users of a tenant ask about their own one.
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

    /// Returns the limit on concurrent workers of the tenant and the assignee in the request.
    fn slots(&self, call: &Call) -> usize {
        let config = call.service.config();
        let limits = &config.limits;
        let of_tenant = self.tenant.as_ref().and_then(|tenant| limits.of_tenant(tenant));
        let of_one = self.tenant.as_ref().map(|_| limits.without_reserve(limits.total()));
        let of_assignee = self.assignee.as_ref().and_then(|assignee| {
            let share = call.service.roster().share(assignee, &config);
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
        let snapshot = match OwnerLink::of(&call.service) {
            Some(daemon) => Some(daemon.ask(Event::Look).await?),
            None => None,
        };
        let board = call.board_name().clone();
        let board_troubles = of_boards(&call);
        let board_trouble = board_troubles.get(&board).cloned();
        let (tenant, assignee, actor) = (self.tenant.clone(), self.assignee.clone(), call.actor.clone());
        let asked_at = kernel::SystemClock.now();
        let is_alone = snapshot.is_none();
        let read = call
            .read(move |view| {
                let (tenant, assignee) = (tenant.as_ref(), assignee.as_ref());
                let counts = view.tasks_by_status(tenant, assignee)?;
                let is_spent = |hold: &Hold| hold.kind == HoldKind::Budget && !hold.is_over(asked_at);
                let spent: Vec<Hold> = view.holds()?.into_iter().filter(is_spent).collect();
                let open = Open::read(view, is_alone, tenant, assignee, &actor)?;
                let silent = (troubles::failing(view, &actor)?, troubles::paused(view)?);
                Ok((counts, open, view.waiting_tasks(tenant, assignee, TOLD)?, (spent, silent)))
            })
            .await;
        // If the board cannot be read, the reply contains the reason and the daemon's own data.
        let (counts, open, told, (spent_budgets, (failing_channels, paused_plugins))) =
            unless_troubled(read, board_trouble.as_ref())?;
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
        let explained = upkeep::diagnosis::why::explain(&call, told).await;
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
            let own = open.runs.iter().filter(|run| run.holder == Holder::Supervisor);
            own.map(|run| orphan(&board, run, open.tasks.get(&run.task_id))).collect()
        };
        let live = live.into_iter().filter(is_asked_about).collect();
        let root = call.service.root().dir().to_owned();
        let (mut workers, disk) = measured(root.clone(), live, now, self.tree.then_some(TREE)).await?;
        for worker in workers.iter_mut().filter(|worker| worker.run.board == board) {
            worker.last_note = open.notes.get(&worker.run.run).cloned();
        }
        order::sort(&mut workers, self.sort.unwrap_or(Order::Age));
        let owner = daemon.is_none().then(|| OwnerLock::daemon(call.service.root())).flatten();
        let (is_starting, holder) =
            (owner.is_some_and(Owner::is_starting), owner.map(|owner| owner.to_string()));
        let in_its_place = holder.as_ref().and_then(|_| in_its_place(&call.service.root().operator_socket()));
        let report = StatusReport {
            health: Health::default(),
            troubles: Vec::new(),
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
            board_troubles,
            workers,
            counts,
            defects: call.service.defects(),
            unheld_policies: call.service.roster().policies().unenforceable().clone(),
            broken,
            spent_budgets,
            failing_channels,
            paused_plugins,
            unheard: call.service.unheard(),
            ticks: open.ticks,
            failed_schedules: open.failed_schedules,
            stuck_schedules: open.stuck_schedules,
            asking: open.asking,
            clock_set: open.clock_set,
            waiting,
            waiting_more,
            warnings,
            now,
        };
        let report = if call.confined().is_some() { report.of_tenant_alone() } else { report };
        let (health, troubles) = health::of(&report);
        Ok(StatusReport { health, troubles, ..report })
    }
}

/// Adds data that the owner loop does not follow: heartbeats and usage of the runs, and edited titles.
fn with_reports(mut live: Vec<LiveRun>, board: &BoardName, open: &Open) -> Vec<LiveRun> {
    for run in &mut live {
        if let Some(title) = open.titles.get(&run.task).filter(|_| run.board == *board) {
            run.title.clone_from(title);
        }
        let known = open.runs.iter().find(|known| run.board == *board && known.id == run.run);
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

/// Returns data of a board; empty data if the board is known to be faulty.
fn unless_troubled<T: Default>(read: Result<T, Failure>, trouble: Option<&String>) -> Result<T, Failure> {
    match read {
        Err(_) if trouble.is_some() => Ok(T::default()),
        read => read,
    }
}

/// Returns the faulty boards, which cannot be written to or opened, with the reasons.
fn of_boards(call: &Call) -> BTreeMap<kernel::BoardName, String> {
    let said = |failure: Failure| format!("{} ({})", failure.message, failure.hint.unwrap_or_default());
    let refusals = call.service.refusals().into_iter().map(|(board, failure)| (board, said(failure)));
    troubles(call).into_iter().chain(refusals).collect()
}

/// Returns the open boards that cannot be written to, with the reasons.
pub(super) fn troubles(call: &Call) -> BTreeMap<kernel::BoardName, String> {
    let mut open = call.service.served();
    open.extend(call.board().ok().cloned());
    let trouble = |board: &service::BoardHandle| {
        let present = board.readers().require_present();
        // A process that only reads has no writer to ask.
        let own = || board.writer().map_or(Ok(()), kernel::Writer::require_own);
        let error = present.and_then(|()| own()).err()?;
        Some((board.name().clone(), format!("{error} ({})", error.hint().unwrap_or_default())))
    };
    open.iter().filter_map(|board| trouble(board)).collect()
}
