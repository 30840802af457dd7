//! Calls a plugin: a new, confined process with one JSON object in and one out. Limits the concurrent calls.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kernel::{BoardName, PluginName, Tenant};
use policies::{Identity, Policy};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::protocol::{PluginOutput, REPLY, plain};
use super::state::{fits, wait_until_too_large};
use super::users::ensure_state;
use crate::program::{ExcessOutput, Program, ProgramResult};
use api::{InProcessRouter, blocking};
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::automation::plugins::{DirectoryUse, Plugin, inspect};

/// Limit on the concurrent calls of verbs and tools of one plugin.
const CONCURRENT: usize = 4;
/// Longest wait of a caller for its slot.
const WAIT: Duration = Duration::from_secs(30);

/// Cause of a call. Each cause has its own queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallQueue {
    /// An event of a board: one at a time for each board, so that no board waits for another.
    Events(BoardName),
    /// A caller's request: a few at a time.
    Asked,
}

/// Number of workers' calls in progress, by tenant.
pub(super) type OfWorkers = Mutex<BTreeMap<Option<Tenant>, usize>>;

/// Calls of plugins in progress.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    slots: Mutex<BTreeMap<(PluginName, CallQueue), Arc<CallSlots>>>,
    of_workers: OfWorkers,
    /// Held while a plugin gets its user, so that no two get the same.
    users: Arc<Mutex<()>>,
    router: OnceLock<InProcessRouter>,
}

/// Turns of one plugin in one queue. Each has a number, and with it a directory of its own.
#[derive(Debug)]
struct CallSlots {
    free: Mutex<Vec<usize>>,
    permits: Arc<Semaphore>,
}

/// Turn of one call.
struct CallSlot {
    slots: Arc<CallSlots>,
    number: usize,
    // Dropped after the number is returned, so that a holder of a permit always finds a number.
    _permit: OwnedSemaphorePermit,
}

impl CallSlots {
    fn for_queue(queue: &CallQueue) -> Self {
        let count = match queue {
            CallQueue::Events(_) => 1,
            CallQueue::Asked => CONCURRENT,
        };
        CallSlots { free: Mutex::new((0..count).collect()), permits: Arc::new(Semaphore::new(count)) }
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.slots.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

impl Calls {
    /// Sets the access by which plugins' requests are carried out.
    pub fn use_router(&self, inside: InProcessRouter) {
        // A daemon sets it once.
        drop(self.0.router.set(inside));
    }

    pub(super) fn router(&self) -> Option<&InProcessRouter> {
        self.0.router.get()
    }

    pub(super) fn of_workers(&self) -> &OfWorkers {
        &self.0.of_workers
    }

    async fn slot(&self, plugin: &PluginName, queue: &CallQueue) -> Result<CallSlot, Failure> {
        let slots = {
            let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(
                slots
                    .entry((plugin.clone(), queue.clone()))
                    .or_insert_with(|| Arc::new(CallSlots::for_queue(queue))),
            )
        };
        let busy = || Failure::new(Code::TryAgain, format!("{CONCURRENT} calls of it are under way"));
        let permit = Arc::clone(&slots.permits).acquire_owned();
        let permit = match queue {
            // Delivery of events waits as long as needed, because a timeout would count as a failed call.
            CallQueue::Events(_) => permit.await,
            CallQueue::Asked => tokio::time::timeout(WAIT, permit).await.map_err(|_| busy())?,
        };
        let permit = permit.map_err(|_| busy())?;
        let number = slots.free.lock().unwrap_or_else(PoisonError::into_inner).pop().ok_or_else(busy)?;
        Ok(CallSlot { slots, number, _permit: permit })
    }

    /// Makes a call, and returns the reply. An error has a message for the operator.
    pub async fn call(
        &self,
        service: &Arc<Service>,
        plugin: &Plugin,
        request: &Value,
        queue: CallQueue,
    ) -> Result<PluginOutput, Failure> {
        let slot = self.slot(&plugin.name, &queue).await?;
        let kind = match queue {
            CallQueue::Events(board) => format!("event-{board}"),
            CallQueue::Asked => "asked".to_owned(),
        };
        let directory = service.root().plugin_home(&format!("{}.{kind}-{}", plugin.name, slot.number));
        self.call_in(service, plugin, request, &directory).await
    }

    /// Makes a call in the caller's directory.
    pub(super) async fn call_in(
        &self,
        service: &Arc<Service>,
        plugin: &Plugin,
        request: &Value,
        directory: &Path,
    ) -> Result<PluginOutput, Failure> {
        let policy = policy(service, plugin)?;
        let identity = self.ensure_state(service, plugin).await?;
        let ended = run(service, plugin, &policy, identity, request, directory).await?;
        if let Some(why) = ended.failure() {
            return Err(Failure::failed(why));
        }
        let reply = PluginOutput::parse(&ended.output).map_err(Failure::failed)?;
        match reply.error {
            Some(why) => Err(Failure::failed(plain(&why))),
            None => Ok(reply),
        }
    }

    async fn ensure_state(
        &self,
        service: &Arc<Service>,
        plugin: &Plugin,
    ) -> Result<Option<Identity>, Failure> {
        let (service, plugin, users) = (Arc::clone(service), plugin.clone(), Arc::clone(&self.0.users));
        let settle = move || {
            // The directory may have been replaced since the daemon read its files.
            inspect(&plugin.dir, DirectoryUse::Installed)
                .map_err(|unfit| Failure::failed(unfit.to_string()))?;
            fits(&plugin)?;
            let _one = users.lock().unwrap_or_else(PoisonError::into_inner);
            ensure_state(&service, &plugin)
        };
        blocking("the state of the plugin was not made", settle).await?
    }
}

/// Returns the policy of a plugin, if calls can run under it.
pub(super) fn policy(service: &Service, plugin: &Plugin) -> Result<Policy, Failure> {
    let (roster, name) = (service.roster(), &plugin.manifest.policy);
    roster.policies().without_proxy(name, "a plugin").cloned().map_err(Failure::usage)
}

async fn run(
    service: &Arc<Service>,
    plugin: &Plugin,
    policy: &Policy,
    identity: Option<Identity>,
    request: &Value,
    directory: &Path,
) -> Result<ProgramResult, Failure> {
    let (argv, state) = (plugin.command(), plugin.state());
    let mut variables = BTreeMap::new();
    variables.insert("PLUGIN_DIR".to_owned(), plugin.dir.display().to_string());
    variables.insert("PLUGIN_STATE".to_owned(), state.display().to_string());
    let mut execute = vec![plugin.dir.clone()];
    execute.extend(
        argv.first().map(std::path::PathBuf::from).filter(|program| !program.starts_with(&plugin.dir)),
    );
    let program = Program {
        argv: &argv,
        policy,
        identity,
        directory_of_start: directory,
        execute,
        directory: Some(plugin.dir.clone()),
        workspace: Some(state),
        variables,
        limit: plugin.manifest.timeout.duration(),
        kept: REPLY,
        flood: ExcessOutput::End,
    };
    let prepared = program.prepare(service).await?;
    let ended = prepared.run_unless(request.to_string().as_bytes(), wait_until_too_large(plugin)).await;
    ended.map_err(|e| Failure::failed(e.to_string()))
}
