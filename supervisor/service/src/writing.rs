//! Writes to a board, with or without a caller that waits.

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

    /// Submits a job without waiting for it. `failed` is the name of its failure in the log. A board that is only read
    /// gets no job.
    pub fn submit<T: Send + 'static>(
        &self,
        failed: &'static str,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) {
        let Ok(writer) = self.writer() else { return };
        let board = self.name().clone();
        writer.submit(job, move |result| {
            if let Err(error) = result {
                tracing::warn!(%board, %error, "{failed}");
            }
        });
    }
}

/// Makes the failure of a write without a reply.
pub fn stopped(_: oneshot::error::RecvError) -> Failure {
    Failure::new(Code::TryAgain, "the board's writer has stopped")
}
