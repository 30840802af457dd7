//! Proxy for a command outside of any run: a login at a person's terminal.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Balance, BoardId, Denied, RunId, SharedQuotas};
use policies::{Policy, SecretStores};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::meter::{Meter, ReadBalance};
use super::reach::Lookups;
use super::resource_claims::{ResourceHolder, SharedResource};
use super::run_proxies::{LOOKUP_THREADS, OF_ALL, accept_run, listener_of};
use super::terms::{BrokerKeys, ProxyTerms};
use super::traffic::Traffic;
use base::failure::Failure;

/// Number of threads that resolve names.
const THREADS: usize = 4;

/// Proxy without brokers. It is served until this value is dropped.
#[derive(Debug)]
pub struct CommandProxy {
    runtime: Option<Runtime>,
    close: CancellationToken,
}

impl CommandProxy {
    /// Serves the proxy of a command under a policy. Waits in the background until the socket `keeper` hands over a listening
    /// socket. `note` is called for each refusal.
    pub fn serve(
        policy: &Policy,
        keeper: PathBuf,
        note: impl Fn(&Denied) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(THREADS)
            .thread_name("proxy")
            .enable_all()
            .build();
        let runtime =
            runtime.map_err(|e| Failure::failed(format!("failed to start the thread of the proxy: {e}")))?;
        let close = CancellationToken::new();
        let connections = SharedResource::new(OF_ALL);
        let traffic: Arc<Traffic> = Arc::default();
        // The command belongs to no board, so its use is charged to no budget.
        let ask: ReadBalance = Arc::new(|| Ok(Balance::default()));
        let nobody = BoardId(uuid::Uuid::nil());
        let meter = Meter::new(nobody, Arc::clone(&traffic), SharedQuotas::default(), Arc::default(), ask);
        let terms = ProxyTerms {
            lane: None,
            policy: policy.clone(),
            traffic,
            meter,
            lookups: Lookups::new(ResourceHolder::with(LOOKUP_THREADS), SharedResource::new(LOOKUP_THREADS)),
            keys: BrokerKeys { stores: SecretStores::default(), ca: None, trust: Arc::default() },
            authority: None,
            note: Box::new(move |denied, _| note(&denied)),
            note_budget: Box::new(|_| {}),
        };
        let closed = close.clone();
        runtime.spawn(async move {
            let served = async {
                if let Ok(Some(listener)) = listener_of(&keeper).await {
                    // No run of a board has the number 0.
                    accept_run(listener, Arc::new(terms), &connections, RunId(0), &closed).await;
                }
            };
            tokio::select! {
                // Cancel-safe: a connection that is not accepted is closed with the listening socket.
                () = served => {}
                () = closed.cancelled() => {}
            }
        });
        Ok(CommandProxy { runtime: Some(runtime), close })
    }
}

impl Drop for CommandProxy {
    fn drop(&mut self) {
        self.close.cancel();
        // This may be a thread of another runtime, which must not wait for the threads of this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
