//! Keys of requests. The board stores the reply to a request under its key, so that a repeat gets the same reply.

use std::fmt;

use sha2::Digest as _;

use crate::model::actor::{Actor, ActorKind};
use crate::model::id::{Digest, RequestId, RunId};

/// Prefix of a caller that is a run. The names of people and of the supervisor never begin with it.
const RUN: &str = "run:";

/// Sender of a request. Two runs of one profile are two callers, and so are two users with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(String);

impl Caller {
    /// Returns the caller of an actor: its run, else the uid of a person, else its label.
    pub fn for_actor(actor: &Actor) -> Self {
        match (&actor.run, actor.uid) {
            (Some(own), _) => Self::run(own.run),
            (None, Some(uid)) if actor.kind == ActorKind::Person => Self(format!("uid:{uid}")),
            (None, _) => Self(actor.label()),
        }
    }

    /// Returns the worker of a run, which may have ended.
    pub fn run(run: RunId) -> Self {
        Self(format!("{RUN}{run}"))
    }

    /// Returns true if the caller is the worker of a run.
    pub(crate) fn is_run(&self) -> bool {
        self.0.starts_with(RUN)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Key of a stored reply. A repeat has the same caller, verb, id and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) caller: Caller,
    pub(crate) verb: &'static str,
    pub(crate) id: RequestId,
    pub(crate) body: Digest,
}

impl Request {
    /// Returns the id that the caller chose.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the key of a step of this request, whose reply is stored separately. `step` must not be the name of a verb.
    #[must_use]
    pub fn step(&self, step: &'static str) -> Self {
        Self { verb: step, ..self.clone() }
    }

    /// Creates the key of a request. `body` is the whole content of the request.
    pub fn new(caller: Caller, verb: &'static str, id: RequestId, body: &[u8]) -> Self {
        let body = Digest::from_hash(sha2::Sha256::new_with_prefix(body));
        Self { caller, verb, id, body }
    }
}
