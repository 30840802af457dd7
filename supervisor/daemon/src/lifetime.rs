//! Life of the daemon: takes the lock, recovers runs, opens listeners, runs the owner loop, shuts down.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::BoardName;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::owner::board::{follow_set_clock, forget_old_requests};
use super::owner::dispatcher::Dispatcher;
use super::owner::event::Event;
use super::owner::event_loop::{own, report as report_configuration};
use super::owner::link::{OwnerLink, open as open_link};
use super::owner::mode::DaemonMode;
use super::owner::pass::{LeftWaiting, left_waiting};
use super::owner::stopping::StopMode;
use super::run::context::{Context, UnderWay};
use super::run::end_run::end_survivors;
use super::run::heard_runs::HeardRuns;
use super::run::order::Host;
use super::run::pending_starts::PendingStarts;
use super::run::report::Reports;
use super::run::shim_events::listen_to_shims;
use super::run::{recover, unserved};
use super::watchdog;
use api::{
    BackgroundWork, InProcessRouter, ListenerContext, Listeners, OperatorKey, OwnListener, RunListeners,
    Sockets, Surface, WorkersRuntime, api_router, raise_descriptors,
};
use base::exit::Code;
use base::failpoint;
use base::failure::Failure;
use base::owner::{OwnerLock, Role};
use base::paths::Root;
use delivery::notify;
use delivery::plugins;
use host::cgroup::Cgroups;
use host::controllers::Handed;
use host::examine::{detect_pid_namespace, detect_support, hostname, install_binary};
use host::manager_socket::{self, OperatorSocket};
use host::service_link::ServiceLink;
use host::shim_program::ShimProgram;
use host::sockets;
use host::spare::Spares;
use net::proxy::RunProxies;
use net::telemetry::Tracer;
use service::{Listener as _, Mode, Service};
use setup::config::definitions::Defect;
use setup::config::{Config, Tuning};
use setup::roster::Roster;

/// Longest wait for a command that owns the root at the start.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);
/// Time that replies in progress get at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs the daemon of a root. Returns once all of its own tasks have ended; shims may outlive it.
pub async fn run(
    root: Root,
    mode: DaemonMode,
    tuning: Tuning,
    surface: Surface,
    ready: impl FnOnce(),
) -> Result<LeftWaiting, Failure> {
    let descriptors = raise_descriptors();
    root.create()?;
    let root = root.canonical()?;
    root.check_reachable()?;
    let lock = own_root(&root, mode).await?;
    go_first(mode);
    let (config, defect) = Config::load_for_daemon(&root, mode == DaemonMode::Ending)?;
    install_binary(&root)?;
    // The probe's process ends before the daemon moves itself into another cgroup.
    let support = detect_support().await?;
    let (cgroups, Handed { controllers, gap }) = serve_cgroups(&root, mode);
    let support = support.with_controllers(controllers);
    let (reports, runs) = Reports::queue();
    let (tracer, exporter) = Tracer::open();
    let (link, inbox) = open_link(runs, tracer.clone());
    let service = serve_root(&root, config, defect, tuning, &link);
    service.use_roster(Roster::load(&root).on(&support));
    let roster = service.roster();
    report_configuration(&service);
    let boards = open_boards(&service, mode)?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let workers = WorkersRuntime::start()?;
    let (background_work, own_listeners) = (surface.background.clone(), surface.listeners.clone());
    let listener_context = listener_context(&service, surface, descriptors, &stop)?;
    let background = listener_context.tasks.clone();
    let operator = operator_socket(&root, mode)?;
    let is_managers = operator.is_managers();
    failpoint::pass("before-listeners");
    let (listeners, self_probe) = Listeners::bind(&root, sockets_of_runs(&support), operator)?;
    let run_listeners = Arc::new(RunListeners::new(&root, &listener_context, &workers)?);
    let spares = spares_of(mode, &root, cgroups.as_ref().ok());
    let proxies = RunProxies::new(descriptors, service.quotas());
    let access = RunAccess { port: listeners.port(), run_listeners: Arc::clone(&run_listeners), proxies };
    let host = make_host(&root, support, cgroups, spares, access).await?;
    gap.inspect(|why| tracing::info!(%why, "limits_not_held"));
    let context = Arc::new(Context {
        service: Arc::clone(&service),
        host,
        reports,
        tasks: tasks.clone(),
        pending_starts: PendingStarts::default(),
        wakeups: link.wakeups(),
        tracer,
        plugins: link.plugins().clone(),
        commands: UnderWay::default(),
        tuning,
    });
    let mut dispatcher = Dispatcher::new(boards.clone(), mode, service.config());
    // Listens before it looks at the live runs, so that no report of a shim is missed.
    listen_to_shims(&context, &root, &background, &stop)?;
    let socket_files = sockets::files(&root);
    // Before the listeners serve: a request must find the live runs adopted.
    recover_all(&context, &boards, &mut dispatcher)?;
    workspace::sweep_leases(&root.leases())
        .map_or_else(|error| tracing::warn!(%error, "leases_not_swept"), drop);
    forget_old_requests(&context, &boards);
    follow_set_clock(&service);
    listeners.serve(&listener_context, &run_listeners)?;
    run_listeners.begin();
    listen_to_signals(&link, &background, &stop)?;
    background.spawn(exporter.run(Arc::clone(&service), context.host.hostname.clone(), stop.clone()));
    if mode != DaemonMode::Ending {
        start_background_work(&link, &listener_context, background_work, own_listeners);
    }
    begin(&link, &boards, mode).await;
    let mut notices = ServiceLink::find();
    notices.ready();
    let signs = watchdog::start(&link, &service, self_probe)
        .map_err(|e| Failure::failed(format!("failed to start the watchdog: {e}")))?;
    tracing::info!(root = %root.dir().display(), pid = std::process::id(), "ready");
    context.refill();
    ready();
    let open = || {
        // The first listener stays open, and accepts the self-probe.
        let (listeners, _) = Listeners::bind(&root, Sockets::Unix, OperatorSocket::Free)?;
        listeners
            .serve(&listener_context, &run_listeners)
            .and_then(|()| listen_to_shims(&context, &root, &background, &stop))
            .and_then(|()| run_listeners.put_back())
    };
    let outcome = tokio::select! {
        outcome = own(&context, &link, &mut dispatcher, roster, inbox, &mut notices) => outcome,
        // Dropped when the loop has ended, so that removed socket files are not restored any more.
        never = sockets::keep(&root, socket_files, open) => match never {},
        never = run_listeners.keep() => match never {},
    };
    // Asked before the survivors are ended, because the answer describes the pass itself.
    let waiting = left_waiting(&service, &dispatcher, mode);
    // The service manager waits for the end from now on, and expects no more signs of life.
    drop(signs);
    notices.stopping();
    end_survivors(&context, dispatcher.survivors()).await;
    let outcome = outcome.and(end_unserved(&context, &dispatcher).await);
    stop.cancel();
    close(&context, &root, &background, socket_files[0].filter(|_| is_managers)).await;
    tracing::info!("stopped");
    if !dispatcher.has_runs() {
        drop(lock);
        return outcome.map(|()| waiting);
    }
    // Claims and starts of those runs may still be in progress on other threads. They end with the process, and so must
    // the lock: another daemon must not look at the runs before.
    std::mem::forget(lock);
    match (mode, outcome) {
        (DaemonMode::UntilIdle(_), Ok(())) => Err(cut_short()),
        (_, outcome) => outcome.map(|()| waiting),
    }
}

/// Makes the service of a root. Remembers a defect of its settings, so that `status` names it.
fn serve_root(
    root: &Root,
    config: Config,
    defect: Option<Defect>,
    tuning: Tuning,
    link: &OwnerLink,
) -> Arc<Service> {
    let mode = Mode::Daemon(Arc::new(link.clone()));
    let service = Arc::new(Service::new(root.clone(), tuning.applied(config), mode));
    if let Some(defect) = defect {
        service.use_settings(Err(defect));
    }
    service
}

/// Starts the tasks beside the boards: message delivery, plugins, bridges and extra listeners.
fn start_background_work(
    link: &OwnerLink,
    listener_context: &ListenerContext,
    background_work: Vec<BackgroundWork>,
    own_listeners: Vec<OwnListener>,
) {
    let (service, served, stop) =
        (&listener_context.service, &listener_context.tasks, &listener_context.stop);
    served.spawn(notify::deliver(Arc::clone(service), link.plugins().clone(), stop.clone()));
    for work in background_work {
        served.spawn(work(Arc::clone(service), stop.clone()));
    }
    for listener in own_listeners {
        served.spawn(listener(listener_context.clone()));
    }
    link.plugins().use_router(InProcessRouter::from_listeners(listener_context));
    served.spawn(plugins::deliver(Arc::clone(service), link.plugins().clone(), stop.clone()));
}

/// Returns the owner of the operator's socket. A daemon that only ends the runs of a dead one needs no socket, and
/// leaves a service manager its own.
fn operator_socket(root: &Root, mode: DaemonMode) -> Result<OperatorSocket, Failure> {
    let path = root.operator_socket();
    match (manager_socket::find(&path)?, mode) {
        (OperatorSocket::Held, DaemonMode::Forever | DaemonMode::UntilIdle(_)) => {
            Err(manager_socket::held(&path))
        }
        (found, _) => Ok(found),
    }
}

/// Returns the kind of socket by which runs reach their board on this host.
fn sockets_of_runs(support: &policies::Support) -> Sockets {
    match support.board_access_kind() {
        policies::BoardKind::Socket => Sockets::Unix,
        policies::BoardKind::Port => Sockets::Loopback,
    }
}

/// Stops serving, and closes the boards. `managers` identifies the socket file that the service manager keeps.
async fn close(context: &Context, root: &Root, served: &TaskTracker, managers: Option<(u64, u64)>) {
    let verbs = context.service.started_verbs();
    served.close();
    verbs.close();
    // Watchers may keep their connections; they see them closed when the process ends. A verb whose caller has gone
    // still finishes.
    let all = async { tokio::join!(served.wait(), verbs.wait()) };
    drop(tokio::time::timeout(FAREWELL, all).await);
    context.host.leave();
    sockets::remove(root, managers);
    let service = Arc::clone(&context.service);
    // `close` logs its own failures.
    drop(tokio::task::spawn_blocking(move || service.close()).await);
}

/// Queues the first events: a read of every board, and a stop at once if the daemon is only to end runs.
async fn begin(link: &OwnerLink, boards: &[BoardName], mode: DaemonMode) {
    for name in boards {
        link.board_changed(name);
    }
    if mode == DaemonMode::Ending {
        let (reply, _) = tokio::sync::oneshot::channel();
        link.send(Event::Stop(StopMode::Preempt, reply)).await;
    }
}

/// Raises the daemon's CPU share. Without it, the daemon waits for a processor as long as a worker does.
fn go_first(mode: DaemonMode) {
    if mode != DaemonMode::Forever {
        return;
    }
    if let Err(error) = shim::priority::go_first() {
        tracing::debug!(%error, "session_share_not_raised");
    }
}

/// Ends the runs of boards that are not served, if this daemon ends all its workers.
async fn end_unserved(context: &Arc<Context>, dispatcher: &Dispatcher) -> Result<(), Failure> {
    let Some(reason) = dispatcher.ends_all() else { return Ok(()) };
    let unended = unserved::end_all(context, reason).await;
    let Some(first) = unended.first() else { return Ok(()) };
    let more = match unended.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Failure::failed(format!(
        "processes of runs of boards that are not served may go on: {}{more}",
        first.display()
    ))
    .hint("the log says why; `pid.json` in the directory names the processes"))
}

fn cut_short() -> Failure {
    Failure::new(Code::TryAgain, "dispatch was interrupted before its runs ended")
        .hint("the runs continue; the next daemon or dispatch takes them over")
}

/// Makes the pool of shims that wait for a run. A pass gets none: it ends with its last run, and a waiting shim would
/// be left without one.
fn spares_of(mode: DaemonMode, root: &Root, cgroups: Option<&Cgroups>) -> Spares {
    let program = ShimProgram::install(root);
    match mode {
        DaemonMode::Forever => Spares::new(program, cgroups),
        DaemonMode::UntilIdle(_) | DaemonMode::Ending => Spares::none(program),
    }
}

/// Makes the state that all listeners share.
fn listener_context(
    service: &Arc<Service>,
    surface: Surface,
    descriptors: u64,
    stop: &CancellationToken,
) -> Result<ListenerContext, Failure> {
    let key = OperatorKey::ensure(service.root())?;
    Ok(ListenerContext {
        api: api_router(Arc::clone(service), Some(key), surface, stop.clone()),
        service: Arc::clone(service),
        descriptors,
        tasks: TaskTracker::new(),
        stop: stop.clone(),
    })
}

/// Sets up the cgroups of the root's runs, and the controllers delegated to them. A daemon that starts no run makes
/// none.
fn serve_cgroups(root: &Root, mode: DaemonMode) -> (Result<Cgroups, String>, Handed) {
    if mode == DaemonMode::Ending {
        return (Err("no run is started".to_owned()), Handed::default());
    }
    match Cgroups::serve(root.dir()) {
        Ok((cgroups, handed)) => (Ok(cgroups), handed),
        Err(why) => (Err(why), Handed::default()),
    }
}

/// Access of runs to the daemon and to the network.
struct RunAccess {
    port: Option<u16>,
    run_listeners: Arc<RunListeners>,
    proxies: RunProxies,
}

/// Makes the record of this host and its daemon that runs need.
async fn make_host(
    root: &Root,
    support: policies::Support,
    cgroups: Result<Cgroups, String>,
    spares: Spares,
    RunAccess { port, run_listeners, proxies }: RunAccess,
) -> Result<Host, Failure> {
    let pid_namespace = match &cgroups {
        Ok(_) => Err("runs have cgroups".to_owned()),
        Err(_) => detect_pid_namespace(&support).await,
    };
    if let Err(why) = &cgroups {
        let pid_namespace = pid_namespace.as_ref().err().map_or("used", String::as_str);
        tracing::info!(%why, pid_namespace, "no_cgroups");
    }
    Ok(Host {
        root: root.clone(),
        support,
        spares,
        heard_runs: HeardRuns::default(),
        cgroups,
        pid_namespace,
        port,
        run_listeners,
        proxies,
        hostname: hostname(),
        boot_id: shim::rundir::boot_id()
            .map_err(|e| Failure::failed(format!("failed to read the boot id: {e}")))?,
        root_id: root.identity().map_err(|e| Failure::file("look at", root.dir(), &e))?,
    })
}

/// Takes the root's lock. Fails at once if another daemon has it; waits for an offline command, which is soon done.
async fn own_root(root: &Root, mode: DaemonMode) -> Result<OwnerLock, Failure> {
    let role = match mode {
        DaemonMode::Forever => Role::Daemon,
        DaemonMode::UntilIdle(_) | DaemonMode::Ending => Role::Pass,
    };
    let until = tokio::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(lock) = OwnerLock::try_acquire(root, role)? {
            return Ok(lock);
        }
        let owner = OwnerLock::owner(root).unwrap_or_default();
        let serves = OwnerLock::daemon(root).is_some();
        if serves || tokio::time::Instant::now() >= until {
            return Err(Failure::new(
                Code::Conflict,
                format!("{} is already served: {owner}", root.dir().display()),
            )
            .hint("supervisor status shows it; one root has one daemon"));
        }
        // The kernel announces no free lock, so this polls.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Adopts live runs, and sweeps the cgroups of ended ones.
fn recover_all(
    context: &Arc<Context>,
    boards: &[BoardName],
    dispatcher: &mut Dispatcher,
) -> Result<(), Failure> {
    let service = &context.service;
    let mut live = BTreeSet::new();
    for name in boards {
        let recovered = recover::recover(context, &service.board(name)?)?;
        if !recovered.is_empty() {
            tracing::info!(board = %name, runs = recovered.len(), "recovered");
        }
        for one in recovered {
            live.extend(recover::groups_of(context, name, &one.run));
            dispatcher.adopt(one.live, one.needs, one.resources);
        }
    }
    if let Ok(cgroups) = &context.host.cgroups
        && !service.refuses_any()
    {
        // Live and ended runs of a board that is not served cannot be told apart, so nothing is swept.
        cgroups.sweep(&live);
    }
    if !service.refuses_any() {
        context.host.run_listeners.sweep();
    }
    Ok(())
}

/// Opens every board. A daemon does not serve a damaged board, and serves the others. A pass is refused as a whole,
/// because its caller does not read the log.
fn open_boards(service: &Service, mode: DaemonMode) -> Result<Vec<BoardName>, Failure> {
    let mut names = service.board_names()?;
    if !names.contains(&BoardName::default()) {
        names.push(BoardName::default());
    }
    let mut served = Vec::new();
    for name in names {
        match service.board(&name) {
            Ok(_) => served.push(name),
            Err(failure) if matches!(mode, DaemonMode::Forever | DaemonMode::Ending) => {
                let hint = failure.hint.as_deref().unwrap_or_default();
                tracing::error!(board = %name, error = %failure, hint, "board_not_served");
                service.refuse(name, failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(served)
}

fn listen_to_signals(link: &OwnerLink, tasks: &TaskTracker, stop: &CancellationToken) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("failed to listen to signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let (link, stop) = (link.clone(), stop.clone());
    tasks.spawn(async move {
        loop {
            // Cancel-safe: an unread signal stays pending in its stream.
            let event = tokio::select! {
                _ = terminate.recv() => Event::Interrupted,
                _ = interrupt.recv() => Event::Interrupted,
                _ = hangup.recv() => Event::Reload,
                () = stop.cancelled() => return,
            };
            link.send(event).await;
        }
    });
    Ok(())
}
