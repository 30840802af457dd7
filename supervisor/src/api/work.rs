//! Work that its caller need not wait for: in a task that runs to completion, or on a thread of its own.

use std::any::Any;
use std::fmt;
use std::pin::Pin;

use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::service::Service;

/// Does work in a task of its own, which finishes even if nobody waits for it any more. An outcome that nobody takes is
/// dropped. `failing` says what has come to nothing where the work panics.
pub(crate) async fn to_its_end<T: Send + 'static>(
    service: &Service,
    failing: &str,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let (done, outcome) = oneshot::channel();
    // One type for whatever is done: the runtime's part is compiled once, and not for each caller.
    let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move { drop(done.send(work.await)) });
    drop(service.begun().spawn(work));
    outcome.await.map_err(|_| Failure::failed(format!("{failing}: it has ended without an outcome")))?
}

/// Does work that blocks off the runtime's threads. `failing` says what has come to nothing where it panics.
pub(crate) async fn blocking<T: Send + 'static>(
    failing: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    // One type for whatever is done: the runtime's part is compiled once, and not for each caller.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let failed = |why: &dyn fmt::Display| Failure::failed(format!("{failing}: {why}"));
    let done = tokio::task::spawn_blocking(work).await.map_err(|panic| failed(&panic))?;
    done.downcast().map(|done| *done).map_err(|_| failed(&"it came to something else"))
}
