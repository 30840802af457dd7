//! Kinds of objects for the error that a named object does not exist.

use crate::model::words::words;

words! {
    /// Kind of a named object that does not exist, or whose existence the caller may not learn.
    "thing that is missing"
    Missing {
        Task => "task",
        /// A task named as a parent.
        Parent => "parent task",
        /// A task in the tree of a mission.
        TaskOfMission => "task of the mission",
        /// The first task of a mission.
        Mission => "mission",
        Run => "run",
        /// The record of a run's end.
        EndOfRun => "end of run",
        Hold => "hold",
        /// A message of the outbox.
        Message => "message",
        /// The position of a plugin in the event log.
        PluginEvents => "events of the plugin",
        Tenant => "tenant",
        /// A subscription of a chat to a task.
        Subscription => "subscription",
        Attachment => "attachment",
        /// A link between two tasks.
        Link => "link",
        Schedule => "schedule",
    }
}

impl Missing {
    /// Returns a hint with the command that lists the existing objects of this kind, if any lists them.
    pub(crate) fn hint(self) -> Option<&'static str> {
        match self {
            Missing::Task | Missing::Parent => Some("see `supervisor list`"),
            Missing::TaskOfMission | Missing::Mission => Some("see `supervisor mission list`"),
            Missing::Schedule => Some("see `supervisor schedules list`"),
            Missing::Subscription => Some("see `supervisor notify-list`"),
            Missing::Attachment => Some("see `supervisor attachments TASK`"),
            Missing::Link => {
                Some("`supervisor show TASK` lists parents and children; the parent is named first")
            }
            Missing::Run => Some("see `supervisor runs TASK`"),
            Missing::Hold => Some("see `supervisor holds`"),
            Missing::Message => Some("see `supervisor notify outbox`"),
            Missing::PluginEvents => Some("see `supervisor plugin list`"),
            Missing::Tenant => Some("see `supervisor tenant list`"),
            Missing::EndOfRun => None,
        }
    }
}
