//! Who asks: a person, the worker of one run, or the supervisor itself.

use serde::{Deserialize, Serialize};

use crate::id::{RunId, TaskId, Tenant};
use crate::words::words;

words! {
    /// What kind of caller it is.
    "actor kind"
    ActorKind {
        /// An operator or a service of theirs.
        Person => "person",
        /// The worker of one run.
        Worker => "worker",
        /// The supervisor.
        System => "system",
    }
}

/// The run that a worker speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// The run.
    pub run: RunId,
    /// Its task.
    pub task: TaskId,
}

/// Who asks. A worker is limited by what its run may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// What kind of caller it is.
    pub kind: ActorKind,
    /// The name that notes carry.
    pub name: String,
    /// The user id of the connection.
    pub uid: Option<u32>,
    /// The run a worker speaks for.
    pub run: Option<RunRef>,
    /// The only tenant that the caller sees, where it is limited to one.
    pub tenant: Option<Tenant>,
}

impl Actor {
    /// Makes a person.
    pub fn person(name: impl Into<String>) -> Self {
        Self { kind: ActorKind::Person, name: name.into(), uid: None, run: None, tenant: None }
    }

    /// Makes the supervisor itself.
    pub fn system() -> Self {
        Self { kind: ActorKind::System, name: "supervisor".to_owned(), uid: None, run: None, tenant: None }
    }

    /// Makes the worker of a run.
    pub fn worker(name: impl Into<String>, run: RunId, task: TaskId, tenant: Option<Tenant>) -> Self {
        let run = Some(RunRef { run, task });
        Self { kind: ActorKind::Worker, name: name.into(), uid: None, run, tenant }
    }

    pub(crate) fn label(&self) -> String {
        format!("{}:{}", self.kind, self.name)
    }
}
