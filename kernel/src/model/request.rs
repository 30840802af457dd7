//! Requests that may come again: what makes two of them the same one.

use std::fmt;

use sha2::Digest as _;

use crate::model::actor::{Actor, ActorKind};
use crate::model::id::{Digest, RequestId, RunId};

/// What the name of a run begins with; those of people and of the supervisor begin otherwise.
const RUN: &str = "run:";

/// Who sends a request. Two runs of one profile are two callers, and so are two users of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(String);

impl Caller {
    /// Returns the caller behind an actor.
    pub fn of(actor: &Actor) -> Self {
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

    /// Returns whether it is the worker of a run.
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

/// What a stored reply is kept under. A repeat has the same caller, verb and id, and the same body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) caller: Caller,
    pub(crate) verb: &'static str,
    pub(crate) id: RequestId,
    pub(crate) body: Digest,
}

impl Request {
    /// Returns the id that the caller has given it.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the key of a step of it, which is stored apart: `step` is no name of a verb.
    #[must_use]
    pub fn step(&self, step: &'static str) -> Self {
        Self { verb: step, ..self.clone() }
    }

    /// Makes the key of a request. `body` is all that it asks for.
    pub fn new(caller: Caller, verb: &'static str, id: RequestId, body: &[u8]) -> Self {
        let body = Digest::of(sha2::Sha256::new_with_prefix(body));
        Self { caller, verb, id, body }
    }
}
