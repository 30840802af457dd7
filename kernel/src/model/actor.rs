//! Who asks: a person, the worker of one run, or the supervisor itself.

use serde::{Deserialize, Serialize};

use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::words::words;

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

words! {
    /// What a worker is there for.
    #[derive(Default)]
    "worker role"
    WorkerRole {
        /// It does the work of its task.
        #[default]
        Worker => "worker",
        /// It divides work into tasks for others, and does none of it.
        Orchestrator => "orchestrator",
        /// It judges the work of others.
        Reviewer => "reviewer",
    }
}

/// The run that a worker speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRef {
    /// The open run that the worker acts for.
    pub run: RunId,
    /// The task of that run.
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
    /// What a worker is there for.
    pub role: WorkerRole,
}

impl Actor {
    /// Makes a person.
    pub fn person(name: impl Into<String>) -> Self {
        let (kind, role) = (ActorKind::Person, WorkerRole::Worker);
        Self { kind, name: name.into(), uid: None, run: None, tenant: None, role }
    }

    /// Makes the supervisor itself.
    pub fn system() -> Self {
        Self { kind: ActorKind::System, ..Self::person("supervisor") }
    }

    /// Makes the worker of a run.
    pub fn worker(name: impl Into<String>, run: RunId, task: TaskId, tenant: Option<Tenant>) -> Self {
        let run = Some(RunRef { run, task });
        Self { kind: ActorKind::Worker, run, tenant, ..Self::person(name) }
    }

    /// Returns whether it is the worker that an assignee names. A person of the same name is somebody else.
    pub(crate) fn works_as(&self, profile: &Profile) -> bool {
        self.kind == ActorKind::Worker && self.name == profile.as_str()
    }

    /// Returns whether it is the approver that a task names: `worker:<profile>` is the worker of a profile, `person:<name>` or a
    /// bare name is a person.
    pub(crate) fn is_approver(&self, approver: &str) -> bool {
        let bare = self.kind != ActorKind::Worker && self.name == approver;
        bare || self.is_called(approver)
    }

    /// Returns whether a label names it: its kind and its name.
    pub(crate) fn is_called(&self, label: &str) -> bool {
        self.label() == label
    }

    pub(crate) fn label(&self) -> String {
        Label { kind: Some(self.kind), name: &self.name }.to_string()
    }
}

/// What a label says of a caller: `person:alice` has a kind and a name, a bare name has no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its kind; none of a bare name.
    pub kind: Option<ActorKind>,
    /// The name behind the kind: `ann` of `person:ann`.
    pub name: &'a str,
}

impl<'a> Label<'a> {
    /// Reads a label.
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
