//! The daemon from its start to its end: lock, recovery, doors, loop, farewell.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Clock as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::host::cgroup::Cgroups;
use super::host::controllers::Handed;
use super::host::examine::{detect_pid_namespace, detect_support, hostname, install_binary};
use super::host::priority;
use super::host::service_link::Manager;
use super::host::sockets;
use super::host::spare::Spares;
use super::host::timer::{Expiry, WallTimer};
use super::owner::action::{Action, Horizon};
use super::owner::board::{forget_old_requests, note_nonspawnable, wake_board};
use super::owner::dispatcher::Dispatcher;
use super::owner::look::read_board;
use super::owner::pass::{LeftWaiting, left_waiting};
use super::run::conclude::end_survivors;
use super::run::launch::Host;
use super::run::pokes::listen_to_shims;
use super::run::recover;
use super::run::run_task::{self, Context, run_task};
use super::run::starts::Starts;
use super::{Event, TaskKey};
use crate::api::{
    Doorway, Listeners, OperatorKey, RunDoors, Sockets, Surface, WorkersRuntime, front, raise_descriptors,
};
use crate::config::{Config, Tuning};
use crate::definitions::Defect;
use crate::exit::Code;
use crate::failure::Failure;
use crate::owner::{DAEMON, OwnerLock};
use crate::paths::Root;
use crate::roster::Roster;
use crate::service::{Mode, Service};

/// How long a start waits for a command that holds the root.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long answers that are under way may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How far a daemon goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until it is told to stop.
    Forever,
    /// Until nothing is left to do; at most this many tasks are started.
    UntilIdle(Option<usize>),
}

impl Extent {
    fn horizon(self) -> Horizon {
        match self {
            Extent::Forever => Horizon::Forever,
            Extent::UntilIdle(max) => Horizon::Idle(max),
        }
    }
}

/// Runs the daemon of a root. Returns when every task of its own has ended; shims may go on.
pub(crate) async fn run(
    root: Root,
    extent: Extent,
    tuning: Tuning,
    surface: Surface,
    ready: impl FnOnce(),
) -> Result<LeftWaiting, Failure> {
    let descriptors = raise_descriptors();
    root.create()?;
    let root = root.canonical()?;
    root.check_reachable()?;
    let lock = own_root(&root, extent).await?;
    if extent == Extent::Forever {
        priority::go_first();
    }
    let config = tuning.applied(Config::load(&root)?);
    install_binary(&root)?;
    // The probe has ended before the daemon changes its group.
    let support = detect_support().await?;
    let (cgroups, handed) = serve_cgroups(&root);
    let Handed { controllers, gap: handed_gap } = handed;
    let support = support.with_controllers(controllers);
    let (events, mut inbox) = mpsc::unbounded_channel();
    let service = Arc::new(Service::new(root.clone(), config, Mode::Daemon(events.clone())));
    service.use_roster(Roster::load(&root).on(&support));
    let roster = service.roster();
    report(&service);
    let boards = open_boards(&service, extent)?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let workers = WorkersRuntime::start()?;
    let doorway = doorway(&service, surface, descriptors, &stop)?;
    let served = doorway.tasks.clone();
    let sockets = match support.board_access_kind() {
        policies::BoardKind::Socket => Sockets::Unix,
        policies::BoardKind::Port => Sockets::Loopback,
    };
    let listeners = Listeners::bind(&root, sockets)?;
    let doors = Arc::new(RunDoors::new(&root, &doorway, &workers)?);
    let spares = Spares::new(extent, cgroups.as_ref().ok());
    let ways = (listeners.port(), Arc::clone(&doors));
    let host = make_host(&root, support, cgroups, spares, ways).await?;
    if let Some(why) = handed_gap {
        tracing::info!(%why, "limits_not_held");
    }
    let context = Arc::new(Context {
        service: Arc::clone(&service),
        host,
        events: events.clone(),
        tasks: tasks.clone(),
        starts: Starts::default(),
        tuning,
    });
    let mut dispatcher = Dispatcher::new(boards.clone(), extent.horizon(), service.config());
    // Before the look at what runs: what a shim reports after that look is heard.
    listen_to_shims(&context, &root, &served, &stop)?;
    let made = sockets::files(&root);
    recover_all(&context, &boards, &mut dispatcher)?;
    if let Err(error) = workspace::sweep_leases(&root.leases()) {
        tracing::warn!(%error, "leases_not_swept");
    }
    forget_old_requests(&context, &boards);
    listeners.serve(&doorway, &doors)?;
    doors.begin();
    listen_to_signals(&events, &served, &stop)?;
    for name in boards {
        // Nobody has closed the inbox: it is read below.
        drop(events.send(Event::BoardChanged(name)));
    }
    let mut manager = Manager::find();
    manager.ready();
    tracing::info!(root = %root.dir().display(), pid = std::process::id(), "ready");
    context.refill();
    ready();
    let open = || {
        Listeners::bind(&root, Sockets::Unix)?
            .serve(&doorway, &doors)
            .and_then(|()| listen_to_shims(&context, &root, &served, &stop))
            .and_then(|()| doors.put_back())
    };
    let outcome = tokio::select! {
        outcome = own(&context, &mut dispatcher, roster, &mut inbox, &mut manager) => outcome,
        // It is dropped when the loop has ended: then the sockets go.
        never = sockets::keep(&root, made, open) => match never {},
        never = doors.keep() => match never {},
    };
    let waiting = left_waiting(&context, &dispatcher, extent);
    manager.stopping();
    end_survivors(&context, dispatcher.survivors()).await;
    stop.cancel();
    served.close();
    // Watchers may hang on to their connections; they see them closed when the process ends.
    drop(tokio::time::timeout(FAREWELL, served.wait()).await);
    context.host.spares.close();
    if let Ok(cgroups) = &context.host.cgroups {
        cgroups.remove();
    }
    sockets::remove(&root);
    let closing = Arc::clone(&service);
    // It says itself what it could not do.
    drop(tokio::task::spawn_blocking(move || closing.close()).await);
    tracing::info!("stopped");
    if !dispatcher.has_runs() {
        drop(lock);
        return outcome.map(|()| waiting);
    }
    // Claims and starts of those runs may still be under way on other threads. They end with the process, and so does
    // the lock: another daemon must not look at the runs before.
    std::mem::forget(lock);
    match (extent, outcome) {
        (Extent::UntilIdle(_), Ok(())) => Err(cut_short()),
        (_, outcome) => outcome.map(|()| waiting),
    }
}

fn cut_short() -> Failure {
    Failure::new(Code::TryAgain, "dispatch was interrupted before its runs ended")
        .hint("the runs continue; the next daemon or dispatch takes them over")
}

/// What the doors lead to.
fn doorway(
    service: &Arc<Service>,
    surface: Surface,
    descriptors: u64,
    stop: &CancellationToken,
) -> Result<Doorway, Failure> {
    let key = OperatorKey::ensure(service.root())?;
    Ok(Doorway {
        front: front(Arc::clone(service), Some(key), surface),
        service: Arc::clone(service),
        descriptors,
        tasks: TaskTracker::new(),
        stop: stop.clone(),
    })
}

/// The groups of the root's runs, and what is handed on to them.
fn serve_cgroups(root: &Root) -> (Result<Cgroups, String>, Handed) {
    match Cgroups::serve(root.dir()) {
        Ok((cgroups, handed)) => (Ok(cgroups), handed),
        Err(why) => (Err(why), Handed::default()),
    }
}

/// What a run needs to know of this host and of its daemon.
async fn make_host(
    root: &Root,
    support: policies::Support,
    cgroups: Result<Cgroups, String>,
    spares: Spares,
    (port, doors): (Option<u16>, Arc<RunDoors>),
) -> Result<Host, Failure> {
    let pid_namespace = match &cgroups {
        Ok(_) => Err("runs have cgroups".to_owned()),
        Err(_) => detect_pid_namespace(&support).await,
    };
    if let Err(why) = &cgroups {
        tracing::info!(%why, ?pid_namespace, "no_cgroups");
    }
    Ok(Host {
        root: root.clone(),
        support,
        spares,
        cgroups,
        pid_namespace,
        port,
        doors,
        hostname: hostname(),
        boot_id: crate::rundir::boot_id()
            .map_err(|e| Failure::failed(format!("failed to read the boot id: {e}")))?,
        root_id: root.identity().map_err(|e| Failure::file("look at", root.dir(), &e))?,
    })
}

/// Takes the root's lock. Another daemon is refused to at once; a command that works offline is done in a moment.
async fn own_root(root: &Root, extent: Extent) -> Result<OwnerLock, Failure> {
    let who = if extent == Extent::Forever { DAEMON } else { "a dispatch pass" };
    let until = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = OwnerLock::try_acquire(root, who)? {
            return Ok(lock);
        }
        let holder = OwnerLock::holder(root);
        let serves = OwnerLock::daemon(root).is_some();
        if serves || tokio::time::Instant::now() >= until {
            let holder = holder.unwrap_or_else(|| "another process".to_owned());
            return Err(Failure::new(
                Code::Conflict,
                format!("{} is already served: {holder}", root.dir().display()),
            )
            .hint("supervisor status shows it; one root has one daemon"));
        }
        // Nothing announces a free lock.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Takes over what runs, and sweeps the cgroups of runs that are over.
fn recover_all(
    context: &Arc<Context>,
    boards: &[BoardName],
    dispatcher: &mut Dispatcher,
) -> Result<(), Failure> {
    let service = &context.service;
    let mut live = BTreeSet::new();
    for name in boards {
        let recovered = recover::recover(context, &service.board(name)?, dispatcher)?;
        if !recovered.is_empty() {
            tracing::info!(board = %name, runs = recovered.len(), "recovered");
        }
        for run in &recovered {
            live.extend(recover::groups_of(context, name, run));
        }
    }
    if let Ok(cgroups) = &context.host.cgroups
        && !service.refuses_any()
    {
        // The runs of a board that is not served cannot be told from those that are over.
        cgroups.sweep(&live);
    }
    if !service.refuses_any() {
        context.host.doors.sweep();
    }
    Ok(())
}

/// The owner loop: one event at a time, decisions first, then the actions they ask for.
async fn own(
    context: &Arc<Context>,
    dispatcher: &mut Dispatcher,
    mut roster: Arc<Roster>,
    inbox: &mut mpsc::UnboundedReceiver<Event>,
    manager: &mut Manager,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("the timer failed: {e}"));
    let timer = WallTimer::new().map_err(failed)?;
    loop {
        let event = tokio::select! {
            // Cancel-safe: an event that is not taken stays in the channel.
            event = inbox.recv() => match event {
                Some(event) => event,
                None => return Ok(()),
            },
            // Cancel-safe: an expiry that is not taken stays readable.
            expired = timer.expired() => {
                match expired.map_err(failed)? {
                    Expiry::Due => Event::Tick,
                    Expiry::ClockSet => Event::ClockSet,
                }
            }
        };
        for action in dispatcher.decide(event, kernel::SystemClock.now()) {
            match action {
                Action::Read(board, room, noted) => read_board(context, &roster, board, *room, noted),
                Action::Wake(board) => wake_board(context, board),
                Action::Withdraw(board, failure) => {
                    tracing::error!(%board, error = %failure, "board_damaged");
                    // Who has it open keeps it open; nobody waits for that.
                    drop(context.service.withdraw(&board, failure.not_served(&board)));
                }
                Action::Start(board, attempt) => match context.service.board(&board) {
                    Ok(handle) => {
                        let key = TaskKey { board, task: attempt.candidate.task.clone() };
                        let cancel = context.starts.begin(&key);
                        let task =
                            run_task(Arc::clone(context), handle, *attempt, Arc::clone(&roster), cancel);
                        context.tasks.spawn(task);
                    }
                    Err(failure) => {
                        let key = TaskKey { board, task: attempt.candidate.task };
                        drop(context.events.send(Event::ClaimFailed(key, failure)));
                    }
                },
                Action::GiveUp(key) => context.starts.give_up(&key),
                Action::Stop(key, shim, request) => run_task::stop(context, key, &shim, &request),
                Action::NoteNonspawnable(key, why) => note_nonspawnable(context, key, why),
                Action::Arm(at) => timer.set(at).map_err(failed)?,
                Action::Say(text) => crate::terminal::complain(&text),
                Action::LimitDrain => limit_drain(context),
                Action::Reload => {
                    manager.reloading();
                    roster = reload(context);
                    for action in dispatcher.reconfigure(context.service.config()) {
                        if let Action::Read(board, room, noted) = action {
                            read_board(context, &roster, board, *room, noted);
                        }
                    }
                    manager.ready();
                }
                Action::Finish => return Ok(()),
            }
        }
        manager.status(dispatcher);
    }
}

fn limit_drain(context: &Arc<Context>) {
    let limit = context.service.config().worker.drain.duration();
    let events = context.events.clone();
    // Not tracked: the daemon may end before the limit does.
    tokio::spawn(async move {
        tokio::time::sleep(limit).await;
        drop(events.send(Event::DrainOver));
    });
}

/// Reads the configuration again. What is defective now stays as it was, and `status` says so.
fn reload(context: &Context) -> Arc<Roster> {
    let service = &context.service;
    let root = service.root();
    let settings = Config::load(root).map(|config| context.tuning.applied(config));
    service.use_settings(settings.map_err(|failure| Defect::settings(&root.config_file(), &failure)));
    service.use_roster(Roster::reload(root, &service.roster()).on(&context.host.support));
    tracing::info!("reloaded");
    report(service);
    service.roster()
}

/// Logs what of the configuration cannot be used, and which policies this host cannot hold.
fn report(service: &Service) {
    for defect in service.defects() {
        tracing::error!(error = %defect, consequence = defect.consequence(), "configuration_defect");
    }
    for (policy, why) in service.roster().policies().unheld() {
        tracing::error!(policy, why, "policy_cannot_be_held");
    }
}

/// Opens every board. One that is damaged is not served, and those that are whole do not suffer from it; a pass that
/// ends by itself has nobody to read the log, so it is refused as a whole.
fn open_boards(service: &Service, extent: Extent) -> Result<Vec<BoardName>, Failure> {
    let mut names = service.board_names()?;
    if !names.contains(&BoardName::default()) {
        names.push(BoardName::default());
    }
    let mut served = Vec::new();
    for name in names {
        match service.board(&name) {
            Ok(_) => served.push(name),
            Err(failure) if extent == Extent::Forever => {
                let hint = failure.hint.as_deref().unwrap_or_default();
                tracing::error!(board = %name, error = %failure, hint, "board_not_served");
                service.refuse(name, failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(served)
}

fn listen_to_signals(
    events: &mpsc::UnboundedSender<Event>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("failed to listen to signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let (events, stop) = (events.clone(), stop.clone());
    tasks.spawn(async move {
        loop {
            // Cancel-safe: a signal that is not taken is still pending in its stream.
            let event = tokio::select! {
                _ = terminate.recv() => Event::Interrupted,
                _ = interrupt.recv() => Event::Interrupted,
                _ = hangup.recv() => Event::Reload,
                () = stop.cancelled() => return,
            };
            drop(events.send(event));
        }
    });
    Ok(())
}
