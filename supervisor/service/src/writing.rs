//! Writes to a board that the caller waits for.

use kernel::{Board, Error};
use tokio::sync::oneshot;

use super::BoardHandle;
use base::exit::Code;
use base::failure::Failure;

impl BoardHandle {
    /// Runs a job in the writer's next transaction, and waits for its commit. The write stands even if the caller
    /// stops waiting.
    ///
    /// # Errors
    /// Failure of the job, the commit or the writer.
    pub async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        self.written(job).await?.map_err(Failure::from)
    }

    /// Does the same, and returns the failure of the job or the commit as the board has it.
    ///
    /// # Errors
    /// Failure of the writer.
    pub async fn written<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, Error>, Failure> {
        let (done, reply) = oneshot::channel();
        self.writer()?.submit(job, move |result| drop(done.send(result)));
        reply.await.map_err(stopped)
    }
}

/// Makes the failure of a write without a reply.
pub fn stopped(_: oneshot::error::RecvError) -> Failure {
    Failure::new(Code::TryAgain, "the board's writer has stopped")
}
