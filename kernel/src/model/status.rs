//! Words for the status of a task.

use crate::model::words::words;

words! {
    /// Status of a task.
    "status"
    Status {
        /// An idea that a person or a profile has to specify.
        Triage => "triage",
        /// The task waits for its parents.
        Todo => "todo",
        /// The task waits for a time.
        Scheduled => "scheduled",
        /// A run may claim the task.
        Ready => "ready",
        /// A run is open.
        Running => "running",
        /// The work waits for a reviewer, or for its check.
        Review => "review",
        /// The task waits for a person. Nothing automatic leaves this status.
        Blocked => "blocked",
        /// The task is finished.
        Done => "done",
        /// The task is hidden from lists.
        Archived => "archived",
    }
}

words! {
    /// Tells a finished archived task from an abandoned task.
    "finished"
    WasDone {
        /// The task was done.
        Yes => "yes",
        /// The task was given up.
        No => "no",
    }
}
