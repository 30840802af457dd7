//! Callers of the board: a person, the worker of one run, or the supervisor itself.

use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::words::words;

words! {
    /// Kind of caller.
    "actor kind"
    ActorKind {
        /// An operator or a service of the operator.
        Person => "person",
        /// The worker of one run.
        Worker => "worker",
        /// The supervisor.
        System => "system",
    }
}

words! {
    /// Task of a worker in its fleet.
    #[derive(Default)]
    "worker role"
    WorkerRole {
        /// Does the work of its task.
        #[default]
        Worker => "worker",
        /// Divides work into tasks for others, and does none of it.
        Orchestrator => "orchestrator",
        /// Judges the work of others.
        Reviewer => "reviewer",
    }
}

/// Run that a worker acts for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// Open run of the worker.
    pub run: RunId,
    pub task: TaskId,
}

/// Caller of the board. A worker may do only what its run allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub kind: ActorKind,
    /// Name that comments and events carry.
    pub name: String,
    /// User id of the connection.
    pub uid: Option<u32>,
    /// Run that a worker acts for; none for other callers.
    pub run: Option<RunRef>,
    /// The only tenant that the caller sees; none for a caller that sees all.
    pub tenant: Option<Tenant>,
    pub role: WorkerRole,
}

impl Actor {
    pub fn person(name: impl Into<String>) -> Self {
        let (kind, role) = (ActorKind::Person, WorkerRole::Worker);
        Self { kind, name: name.into(), uid: None, run: None, tenant: None, role }
    }

    /// Creates the supervisor itself.
    pub fn system() -> Self {
        Self { kind: ActorKind::System, ..Self::person("supervisor") }
    }

    /// Creates the worker of a run.
    pub fn worker(name: impl Into<String>, run: RunId, task: TaskId, tenant: Option<Tenant>) -> Self {
        let run = Some(RunRef { run, task });
        Self { kind: ActorKind::Worker, run, tenant, ..Self::person(name) }
    }

    /// Returns true if this is the worker that an assignee names. A person of the same name is another caller.
    pub(crate) fn works_as(&self, profile: &Profile) -> bool {
        self.kind == ActorKind::Worker && self.name == profile.as_str()
    }

    /// Returns true if this is the approver that a task names: `worker:<profile>` is the worker of a profile,
    /// `person:<name>` or a bare name is a person.
    pub(crate) fn is_approver(&self, approver: &str) -> bool {
        let bare = self.kind != ActorKind::Worker && self.name == approver;
        bare || self.is_called(approver)
    }

    /// Returns true if a label names this caller, by its kind and its name.
    pub(crate) fn is_called(&self, label: &str) -> bool {
        self.label() == label
    }

    pub(crate) fn label(&self) -> String {
        Label { kind: Some(self.kind), name: &self.name }.to_string()
    }
}

/// Parts of a caller's label: `person:alice` has a kind and a name, a bare name has no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Kind of the caller; none for a bare name or an unknown kind.
    pub kind: Option<ActorKind>,
    /// Name after the kind: `ann` in `person:ann`.
    pub name: &'a str,
}

impl<'a> Label<'a> {
    /// Parses a label.
    pub fn parse(text: &'a str) -> Self {
        match text.split_once(':') {
            Some((kind, name)) => Self { kind: kind.parse().ok(), name },
            None => Self { kind: None, name: text },
        }
    }

    pub(crate) fn is_worker(self, profile: &Profile) -> bool {
        self.kind == Some(ActorKind::Worker) && self.name == profile.as_str()
    }
}

impl std::fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{kind}:{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_as_it_was_written() {
        let label = Actor::person("al:ice").label();
        assert_eq!(Label::parse(&label), Label { kind: Some(ActorKind::Person), name: "al:ice" });
        assert_eq!(Label::parse("alice"), Label { kind: None, name: "alice" });
    }
}
