//! Runtimes that accept and serve workers, and the descriptor limit of the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Handle, Runtime};

use base::failure::Failure;

/// Number of threads of each runtime that process workers' requests. These threads never block.
const THREADS: usize = 1;
/// Largest number of threads of each runtime on which workers' requests read the board and write files. With more
/// threads than processors, the threads would only wait for each other; further requests queue in order.
const BLOCKING: usize = 8;

/// Runtimes of the workers' listeners. No request of a worker runs on the threads of the operator's socket, the owner
/// loop or the dispatcher.
#[derive(Debug)]
pub struct WorkersRuntime {
    /// Accepts connections and refuses excess ones. Its thread does no other work, because all workers may share one
    /// queue of connections.
    accepting: Option<Runtime>,
    /// Serves admitted connections.
    serving: Option<Runtime>,
}

impl WorkersRuntime {
    /// Starts the threads.
    pub fn start() -> Result<Self, Failure> {
        let start = |name: &str| {
            Builder::new_multi_thread()
                .worker_threads(THREADS)
                .max_blocking_threads(BLOCKING)
                .thread_name(name)
                .enable_all()
                .build()
                .map_err(|e| {
                    Failure::failed(format!("failed to start the threads of the workers' sockets: {e}"))
                })
        };
        Ok(WorkersRuntime {
            accepting: Some(start("workers-porter")?),
            serving: Some(start("workers-listen")?),
        })
    }

    /// Returns the accepting and the serving runtime; none once they are stopped.
    pub(super) fn handles(&self) -> Option<(&Handle, &Handle)> {
        self.accepting.as_ref().map(Runtime::handle).zip(self.serving.as_ref().map(Runtime::handle))
    }
}

impl Drop for WorkersRuntime {
    fn drop(&mut self) {
        // `drop` may run on a thread of another runtime. Dropping a `Runtime` there panics, because it would wait for
        // its threads, so the threads are left to end by themselves.
        for runtime in self.accepting.take().into_iter().chain(self.serving.take()) {
            runtime.shutdown_background();
        }
    }
}

/// Raises the descriptor limit of the daemon to its hard limit (`getrlimit(2)`). Returns the limit in effect, which is
/// the previous one if it cannot be raised. Workers get limits of their own.
pub fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "descriptor_limit_not_raised");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
