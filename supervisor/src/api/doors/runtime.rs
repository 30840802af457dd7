//! The threads that receive and serve workers, and the descriptors of the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::failure::Failure;

/// Threads on which workers' requests go on: they never block.
const THREADS: usize = 1;
/// Threads on which workers' requests read the board and write files. More of them than processors only wait for each
/// other; what comes meanwhile waits in the order in which it came.
const BLOCKING: usize = 8;

/// The runtimes of the workers' doors. Nothing that a worker asks for runs on the threads of the operator's socket, the
/// owner loop and the dispatcher.
#[derive(Debug)]
pub(crate) struct WorkersRuntime {
    /// Receives connections, and refuses those that are too many: the queue of the socket is one for all workers, so nothing
    /// else may keep the thread that empties it.
    porter: Option<Runtime>,
    /// Serves those that were let in.
    rooms: Option<Runtime>,
}

impl WorkersRuntime {
    /// Starts the threads.
    pub(crate) fn start() -> Result<Self, Failure> {
        let start = |name: &str| {
            Builder::new_multi_thread()
                .worker_threads(THREADS)
                .max_blocking_threads(BLOCKING)
                .thread_name(name)
                .enable_all()
                .build()
                .map_err(|e| {
                    Failure::failed(format!("failed to start the threads of the workers' door: {e}"))
                })
        };
        Ok(WorkersRuntime { porter: Some(start("workers-porter")?), rooms: Some(start("workers-door")?) })
    }

    /// Where connections are received, and where they are served; none once it was stopped.
    pub(super) fn handles(&self) -> Option<(&Handle, &Handle)> {
        self.porter.as_ref().map(Runtime::handle).zip(self.rooms.as_ref().map(Runtime::handle))
    }
}

impl Drop for WorkersRuntime {
    fn drop(&mut self) {
        // It may be dropped on a thread of another runtime, which must not wait for its threads.
        for runtime in self.porter.take().into_iter().chain(self.rooms.take()) {
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
