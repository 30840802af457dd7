//! Actions outside the board that cannot be undone: each is done once for each request.
//!
//! See decision 0199.

use kernel::{Actor, Board};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::call::Call;
use base::exit::Code;
use base::failure::{Failure, Problem};

/// Stored result of such an action.
#[derive(Debug, Serialize, Deserialize)]
enum StoredOutcome<T> {
    Done(T),
    Refused(Problem),
}

impl<T> StoredOutcome<T> {
    fn reply(self) -> Result<T, Failure> {
        match self {
            StoredOutcome::Done(reply) => Ok(reply),
            StoredOutcome::Refused(problem) => Err(problem.into()),
        }
    }
}

impl Call {
    /// Returns the stored result of the same request, if known: its reply, or its refusal. `step` is the step of
    /// [`Call::act_once`].
    ///
    /// # Errors
    /// The action was refused, or it was started and its result is unknown.
    pub async fn acted<T: DeserializeOwned>(&self, step: &'static str) -> Result<Option<T>, Failure> {
        if let Some(outcome) = self.replied::<StoredOutcome<T>>().await? {
            return outcome.reply().map(Some);
        }
        match self.replied_under::<String>(Some(step)).await? {
            Some(_) => Err(not_known()),
            None => Ok(None),
        }
    }

    /// Does an action once for each request. First it commits, with `begin`, that the action starts, under the name
    /// of `step`. Afterwards it stores the result, also a refusal, for a repeat of the request; `record` is committed
    /// with it if the action succeeded.
    ///
    /// # Errors
    /// The errors of `act`; or the same request was started before, and its result is unknown.
    pub async fn act_once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        step: &'static str,
        begin: impl FnOnce(&mut Board<'_>, &Actor) -> Result<(), kernel::Error> + Send + 'static,
        act: impl Future<Output = Result<T, Failure>> + Send,
        record: impl FnOnce(&mut Board<'_>, &Actor) -> Result<(), kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let attempt_id = uuid::Uuid::new_v4().to_string();
        let attempt = attempt_id.clone();
        let intent = move |board: &mut Board<'_>, actor: &Actor| begin(board, actor).map(|()| attempt);
        let committed: String = self.write_under(Some(step), intent).await?;
        // Another attempt committed the start first, so this attempt must not act.
        if committed != attempt_id {
            return Err(not_known());
        }
        let outcome = match act.await {
            Ok(reply) => StoredOutcome::Done(reply),
            Err(failure) => StoredOutcome::Refused(Problem::from(&failure)),
        };
        let kept = move |board: &mut Board<'_>, actor: &Actor| {
            if let StoredOutcome::Done(_) = &outcome {
                record(board, actor)?;
            }
            Ok(outcome)
        };
        self.write(kept).await?.reply()
    }
}

fn not_known() -> Failure {
    Failure::new(Code::Conflict, "this request was started before, and its outcome is not known yet")
        .hint("check whether it took effect; if not, send it again with a new request id")
}
