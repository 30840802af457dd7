//! The words for where a task stands.

use crate::model::words::words;

words! {
    /// Where a task stands.
    "status"
    Status {
        /// An idea that somebody has to specify.
        Triage => "triage",
        /// Waits for its parents.
        Todo => "todo",
        /// Waits for a time.
        Scheduled => "scheduled",
        /// May be claimed.
        Ready => "ready",
        /// A run is open.
        Running => "running",
        /// Waits for a reviewer, or for its check.
        Review => "review",
        /// Waits for a person; nothing automatic leaves it.
        Blocked => "blocked",
        /// Finished.
        Done => "done",
        /// Out of sight.
        Archived => "archived",
    }
}

words! {
    /// Whether an archived task had been done.
    "finished"
    WasDone {
        /// It was done.
        Yes => "yes",
        /// It was given up.
        No => "no",
    }
}
