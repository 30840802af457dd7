//! Runs work outside the caller's future: in a task that runs to its end, or on a blocking thread.

use std::any::Any;
use std::fmt;
use std::pin::Pin;

use tokio::sync::oneshot;

use base::failure::Failure;
use service::Service;

/// Does work in a separate task, which finishes even if the caller stops waiting; its outcome is then dropped.
/// `failing` names the work in the error after a panic.
pub async fn to_its_end<T: Send + 'static>(
    service: &Service,
    failing: &str,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let (done, outcome) = oneshot::channel();
    // Boxed as one type, so that the runtime's part is compiled once and not for each caller.
    let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move { drop(done.send(work.await)) });
    drop(service.started_verbs().spawn(work));
    outcome.await.map_err(|_| Failure::failed(format!("{failing}: it has ended without an outcome")))?
}

/// Does blocking work on a blocking thread. `failing` names the work in the error after a panic.
pub async fn blocking<T: Send + 'static>(
    failing: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    // Boxed as one type, so that the runtime's part is compiled once and not for each caller.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let failed = |why: &dyn fmt::Display| Failure::failed(format!("{failing}: {why}"));
    let done = tokio::task::spawn_blocking(work).await.map_err(|panic| failed(&panic))?;
    done.downcast().map(|done| *done).map_err(|_| failed(&"it came to something else"))
}
