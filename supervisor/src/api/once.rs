//! What a verb does outside of the board, and cannot be undone: it is done once for each request.

use kernel::{Actor, Board};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::call::Call;
use crate::exit::Code;
use crate::failure::{Failure, Problem};

/// What became of what was done once. A reply that an earlier release has kept is one that was done.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Outcome<T> {
    Done(T),
    Refused(Problem),
}

impl<T> Outcome<T> {
    fn reply(self) -> Result<T, Failure> {
        match self {
            Outcome::Done(reply) => Ok(reply),
            Outcome::Refused(problem) => Err(problem.into()),
        }
    }
}

impl Call {
    /// What became of the same request before, where that is known: its reply, or its refusal. `step` is that of [`Call::act_once`].
    ///
    /// # Errors
    /// It was refused; or it has begun, and what came of it is not recorded.
    pub(crate) async fn acted<T: DeserializeOwned>(&self, step: &'static str) -> Result<Option<T>, Failure> {
        if let Some(outcome) = self.replied::<Outcome<T>>().await? {
            return outcome.reply().map(Some);
        }
        match self.replied_under::<String>(Some(step)).await? {
            Some(_) => Err(not_known()),
            None => Ok(None),
        }
    }

    /// Does once for each request what is outside of the board and cannot be undone. That it begins is committed first, with `begin`,
    /// under a name of its own; what it came to, a refusal too, is kept for a repeat of the request, with `record` where it was done.
    ///
    /// # Errors
    /// Those of `act`; and the same request has begun before, and nobody knows what came of it.
    pub(crate) async fn act_once<T: Serialize + DeserializeOwned + Send + 'static>(
        &self,
        step: &'static str,
        begin: impl FnOnce(&mut Board<'_>, &Actor) -> Result<(), kernel::Error> + Send + 'static,
        act: impl Future<Output = Result<T, Failure>> + Send,
        record: impl FnOnce(&mut Board<'_>, &Actor) -> Result<(), kernel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let own = uuid::Uuid::new_v4().to_string();
        let attempt = own.clone();
        let intent = move |board: &mut Board<'_>, actor: &Actor| begin(board, actor).map(|()| attempt);
        let committed: String = self.write_under(Some(step), intent).await?;
        if committed != own {
            return Err(not_known());
        }
        let outcome = match act.await {
            Ok(reply) => Outcome::Done(reply),
            Err(failure) => Outcome::Refused(Problem::from(&failure)),
        };
        let kept = move |board: &mut Board<'_>, actor: &Actor| {
            if let Outcome::Done(_) = &outcome {
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
