//! Proxies of all runs: opened when a run has begun or is taken over, and closed with the run.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kernel::{BoardId, Denied, Egress, RunId, SharedQuotas, SpentBudget, Tenant, Timestamp};
use policies::{LaneHosts, Policy, SecretStores, Target, ask_keeper, receive_listener};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use super::authority::Authority;
use super::connection::serve;
use super::connection_rate::ConnectionRate;
use super::meter::{DayBudgets, Meter, ReadBalance};
use super::reach::Lookups;
use super::resource_claims::{ResourceHolder, SharedResource};
use super::terms::{BrokerKeys, ProxyTerms};
use super::tls::Trust;
use super::traffic::{DeniedHost, Traffic};
use base::failure::Failure;
use host::accept::next_connection;
use service::BoardHandle;
use setup::lanes::Contact;

/// Limit on the connections of a run. More wait in the kernel's queue of the run.
const OF_RUN: usize = 64;
/// Limit on the connections of all runs; each uses two descriptors and two buffers.
pub(super) const OF_ALL: usize = 4096;
/// Limit on concurrent name look-ups of all runs.
pub(super) const LOOKUP_THREADS: usize = 64;
/// Number of tenants that can make one look-up each beyond that limit: each tenant with runs always has one.
const FURTHER_THREADS: usize = 448;
/// Threads reserved for reading brokers' secrets, however many look-ups run.
const READING_THREADS: usize = 8;
/// Name in the log for traffic that a board did not record.
const NOT_NOTED: &str = "egress_not_noted";
/// Delay before changed statistics are stored, to combine changes.
const KEEP: Duration = Duration::from_secs(1);
/// First and longest interval between checks for a shim that is starting.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

type RunKey = (BoardId, RunId);
/// Tenant of a board; none for the tasks without a tenant.
type TenantKey = (BoardId, Option<Tenant>);

/// Proxies of one daemon.
#[derive(Debug)]
pub struct RunProxies {
    runtime: Mutex<Option<Runtime>>,
    connections: Arc<SharedResource>,
    lookups: Arc<SharedResource>,
    /// Takers of look-ups, while a run of the tenant has a proxy.
    tenants: Mutex<HashMap<TenantKey, Weak<ResourceHolder>>>,
    trust: Arc<Trust>,
    quotas: SharedQuotas,
    day_budgets: Arc<DayBudgets>,
    proxies: Mutex<HashMap<RunKey, RunProxy>>,
}

/// Run whose proxy is served.
#[derive(Debug)]
pub struct ProxiedRun<'a> {
    pub run: RunId,
    pub tenant: Option<Tenant>,
    pub policy: &'a Policy,
    /// Lane of its work, with the hosts that the lane names; none for a check.
    pub lane: Option<LaneHosts>,
    /// Socket of the keeper, which holds the listening socket.
    pub keeper: PathBuf,
    /// Run directory, which contains the key of its authority.
    pub dir: &'a Path,
    /// Stores of its brokers' secrets.
    pub stores: SecretStores,
    /// Certificates that its brokers trust in addition to the host's.
    pub ca: Option<PathBuf>,
}

/// Proxy that serves one run, with the counters of its traffic.
#[derive(Debug)]
struct RunProxy {
    board: Arc<BoardHandle>,
    traffic: Arc<Traffic>,
    close: CancellationToken,
}

impl RunProxies {
    /// Makes the set without proxies. Connections are limited to a part of the descriptor limit.
    pub fn new(descriptors: u64, quotas: SharedQuotas) -> Self {
        let all = usize::try_from(descriptors / 8).unwrap_or(OF_ALL).clamp(1, OF_ALL);
        RunProxies {
            runtime: Mutex::default(),
            connections: SharedResource::new(all),
            lookups: SharedResource::new(LOOKUP_THREADS),
            tenants: Mutex::default(),
            trust: Arc::default(),
            quotas,
            day_budgets: Arc::default(),
            proxies: Mutex::default(),
        }
    }

    /// Serves the proxy of a run, once its keeper has a listening socket. Does nothing if the policy has no proxy.
    pub fn open(&self, board: &Arc<BoardHandle>, served: ProxiedRun<'_>) -> Result<(), Failure> {
        let ProxiedRun { run, tenant, policy, lane, keeper, dir, stores, ca } = served;
        if !policy.has_proxy() {
            return Ok(());
        }
        let runtime = self.handle()?;
        let (traffic, close) = (Arc::new(Traffic::default()), CancellationToken::new());
        let proxy =
            RunProxy { board: Arc::clone(board), traffic: Arc::clone(&traffic), close: close.clone() };
        // A run that is taken over again replaces its former proxy.
        if let Some(former) = self.proxies().insert((board.id(), run), proxy) {
            former.close.cancel();
        }
        let (noted, connections) = (Arc::clone(board), Arc::clone(&self.connections));
        let note = move |denied: Denied, target: &Target| {
            let host = target.to_string();
            tracing::info!(%run, host, policy = denied.policy, "egress_denied");
            noted.submit(NOT_NOTED, move |board| board.note_egress_denied(run, &denied, &host));
        };
        let (noted, kept) = (Arc::clone(board), Arc::clone(board));
        let note_budget = move |spent: SpentBudget| {
            tracing::info!(%run, key = spent.key, "budget_spent");
            noted.submit(NOT_NOTED, move |board| board.note_budget_spent(run, &spent));
        };
        let asked = Arc::clone(board);
        let ask: ReadBalance =
            Arc::new(move || asked.readers().with(|view| view.balance(run)).map_err(io::Error::other));
        let (quotas, day_budgets) = (self.quotas.clone(), Arc::clone(&self.day_budgets));
        let meter = Meter::new(board.id(), Arc::clone(&traffic), quotas, day_budgets, ask);
        let counted = Arc::clone(&traffic);
        let authority = Authority::read(dir).unwrap_or_else(|error| {
            tracing::error!(%run, %error, "authority_not_read");
            None
        });
        let terms = ProxyTerms {
            policy: policy.clone(),
            lane,
            traffic,
            meter,
            lookups: Lookups::new(self.tenant((board.id(), tenant)), Arc::clone(&self.lookups)),
            keys: BrokerKeys { stores, ca, trust: Arc::clone(&self.trust) },
            authority,
            note: Box::new(note),
            note_budget: Box::new(note_budget),
        };
        runtime.spawn(async move {
            // Statistics of an earlier daemon come first, so that stored figures never decrease.
            resume(&kept, run, &counted).await;
            let attended = async {
                match listener_of(&keeper).await {
                    Ok(Some(listener)) => {
                        accept_run(listener, Arc::new(terms), &connections, run, &close).await;
                    }
                    // The keeper ended before it had a listening socket.
                    Ok(None) => {}
                    Err(error) => tracing::error!(%run, %error, "proxy_not_served"),
                }
            };
            tokio::select! {
                // Cancel-safe: a connection that is not accepted ends with the listening socket.
                () = attended => {}
                () = keep_figures(&kept, run, &counted) => {}
                () = close.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Closes the proxy of a run without live processes, and records its traffic.
    pub fn close(&self, key: RunKey) {
        let Some(proxy) = self.proxies().remove(&key) else { return };
        proxy.close.cancel();
        let (run, figures) = (key.1, proxy.traffic.figures());
        if figures != Egress::default() {
            proxy.board.submit(NOT_NOTED, move |board| {
                board.record_egress(run, &figures)?;
                board.note_egress(run, &figures)
            });
        }
    }

    /// Stores the statistics of runs that continue without this daemon. The next daemon resumes from them.
    pub fn keep_figures(&self) {
        for ((_, run), proxy) in self.proxies().drain() {
            proxy.close.cancel();
            let figures = proxy.traffic.figures();
            proxy.board.submit(NOT_NOTED, move |board| board.record_egress(run, &figures).map(drop));
        }
    }

    /// Returns the time at which services that refused a run accept requests again, as far as they named times.
    pub fn opens(&self, key: RunKey) -> Option<Timestamp> {
        self.proxies().get(&key)?.traffic.opens()
    }

    /// Returns the contact of a run with its services.
    pub fn contact(&self, key: RunKey) -> Contact {
        self.proxies().get(&key).map(|proxy| proxy.traffic.contact()).unwrap_or_default()
    }

    /// Returns the contact of a run that is over. If it ended while no daemon served its proxy, the recorded statistics
    /// count. Blocking.
    pub fn last_contact(&self, board: &BoardHandle, run: RunId) -> Contact {
        let known = self.proxies().get(&(board.id(), run)).map(|proxy| proxy.traffic.contact());
        known.unwrap_or_else(|| match board.readers().with(|view| view.egress(run)) {
            Ok(counted) => counted.as_ref().map(Traffic::recorded).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%run, %error, "egress_not_read");
                Contact::default()
            }
        })
    }

    /// Returns the latest refusal by a run's proxy.
    pub fn last_denied(&self, key: RunKey) -> Option<DeniedHost> {
        self.proxies().get(&key)?.traffic.last_denied()
    }

    fn tenant(&self, key: TenantKey) -> Arc<ResourceHolder> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|_, claimant| claimant.strong_count() > 0);
        let known = tenants.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let claimant = ResourceHolder::with(LOOKUP_THREADS);
            tenants.insert(key, Arc::downgrade(&claimant));
            claimant
        })
    }

    fn proxies(&self) -> MutexGuard<'_, HashMap<RunKey, RunProxy>> {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the runtime of all proxies, started for the first one. Proxy traffic takes no time of the daemon's
    /// other threads.
    fn handle(&self) -> Result<Handle, Failure> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let built = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(LOOKUP_THREADS + FURTHER_THREADS + READING_THREADS)
            .thread_name("proxy")
            .enable_all()
            .build();
        let built =
            built.map_err(|e| Failure::failed(format!("failed to start the thread of the proxy: {e}")))?;
        Ok(runtime.insert(built).handle().clone())
    }
}

impl Drop for RunProxies {
    fn drop(&mut self) {
        // May run on a thread of another runtime, which must not wait for these threads.
        if let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }
}

/// Resumes the statistics that an earlier daemon recorded for the run.
async fn resume(board: &Arc<BoardHandle>, run: RunId, traffic: &Traffic) {
    let asked = Arc::clone(board);
    let read = tokio::task::spawn_blocking(move || asked.readers().with(|view| view.egress(run))).await;
    match read.map_err(io::Error::other).and_then(|read| read.map_err(io::Error::other)) {
        Ok(Some(counted)) => traffic.resume(&counted),
        Ok(None) => {}
        Err(error) => tracing::warn!(%run, %error, "egress_not_read"),
    }
}

/// Stores the statistics soon after each change. Never ends.
async fn keep_figures(board: &BoardHandle, run: RunId, traffic: &Traffic) {
    let mut kept = Egress::default();
    loop {
        traffic.changed.notified().await;
        tokio::time::sleep(KEEP).await;
        let figures = traffic.figures();
        if figures != kept {
            kept = figures.clone();
            board.submit(NOT_NOTED, move |board| board.record_egress(run, &figures).map(drop));
        }
    }
}

/// Receives the listening socket of a run from its keeper, once both exist; none if the keeper has ended.
pub(super) async fn listener_of(keeper: &Path) -> io::Result<Option<TcpListener>> {
    let mut pause = LOOK.0;
    let connection = loop {
        match ask_keeper(keeper) {
            Ok(connection) => break UnixStream::from_std(connection)?,
            // The shim is still starting. No event announces its socket.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK.1);
            }
            Err(error) => return Err(error),
        }
    };
    loop {
        connection.readable().await?;
        match connection.try_io(Interest::READABLE, || receive_listener(&connection)) {
            Ok(listener) => return listener.map(TcpListener::from_std).transpose(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Accepts the connections of a run. Yields after each, so that ready listeners take turns.
pub(super) async fn accept_run(
    listener: TcpListener,
    terms: Arc<ProxyTerms>,
    connections: &Arc<SharedResource>,
    run: RunId,
    close: &CancellationToken,
) {
    let (claimant, mut rate) = (ResourceHolder::with(OF_RUN), ConnectionRate::start());
    loop {
        rate.next().await;
        connections.may_claim(&claimant).await;
        let worker = next_connection(&listener, &run).await;
        let connection = connections.claim(&claimant);
        let (terms, close) = (Arc::clone(&terms), close.clone());
        tokio::spawn(async move {
            tokio::select! {
                // The run is over, so the peer is gone too.
                () = serve(worker, &terms) => {}
                () = close.cancelled() => {}
            }
            drop(connection);
        });
        tokio::task::yield_now().await;
    }
}
