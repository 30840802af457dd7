//! The threads that serve workers, and the descriptors of the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::failure::Failure;

/// Threads on which workers' requests go on: they never block.
const THREADS: usize = 1;
/// Threads on which workers' requests read the board and write files. More of them than processors only wait for each
/// other; what comes meanwhile waits in the order in which it came.
const BLOCKING: usize = 8;

/// The runtime of the workers' doors. Nothing that a worker asks for runs on the threads of the operator's socket, the
/// owner loop and the dispatcher.
#[derive(Debug)]
pub(crate) struct WorkersRuntime(Option<Runtime>);

impl WorkersRuntime {
    /// Starts the threads.
    pub(crate) fn start() -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(BLOCKING)
            .thread_name("workers-door")
            .enable_all()
            .build()
            .map_err(|e| Failure::failed(format!("failed to start the threads of the workers' door: {e}")))?;
        Ok(WorkersRuntime(Some(runtime)))
    }

    /// Where to spawn; none once it was stopped.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for WorkersRuntime {
    fn drop(&mut self) {
        // It may be dropped on a thread of another runtime, which must not wait for its threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Raises the limit of descriptors to the most that this process may have, and returns it. Workers get limits of their own.
pub(crate) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "descriptor_limit_not_raised");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
