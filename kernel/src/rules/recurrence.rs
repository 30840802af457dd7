//! A task that is blocked for the same kind of reason again and again goes to triage: somebody has to change it.

use serde_json::{Value, json};

use crate::model::outcome::BlockKind;
use crate::model::verdict::Blocking;

/// How often a task may be blocked for the same kind; the next time it goes to triage.
const LIMIT: u32 = 2;

/// How often in a row a task was blocked for one kind of reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recurrence {
    /// The kind of the last block.
    pub(crate) kind: Option<BlockKind>,
    /// How often it came in a row.
    pub(crate) count: u32,
}

impl Recurrence {
    /// Counts another block.
    pub(crate) fn with(self, kind: BlockKind) -> Self {
        let count = if self.kind == Some(kind) { self.count.saturating_add(1) } else { 1 };
        Self { kind: Some(kind), count }
    }

    /// Returns whether to let it go on once more would help no more than before.
    pub(crate) fn is_loop(self) -> bool {
        self.count > LIMIT
    }

    /// Returns what is kept of it where the task goes to triage: the kind, counted anew.
    pub(crate) fn in_triage(self) -> Self {
        Self { count: 0, ..self }
    }

    /// Returns what the event of a block carries. One that leads to triage carries the limit.
    pub(crate) fn payload(self, blocking: &Blocking, limited: Limited) -> Value {
        let mut payload =
            json!({ "reason": blocking.reason, "kind": blocking.kind, "recurrences": self.count });
        if limited == Limited::Yes {
            payload["limit"] = LIMIT.into();
        }
        payload
    }
}

/// Whether a block led to triage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limited {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_block_in_a_row_for_one_kind_is_a_loop_and_another_kind_begins_anew() {
        let once = Recurrence::default().with(BlockKind::NeedsInput);
        let twice = once.with(BlockKind::NeedsInput);
        assert!(!once.is_loop() && !twice.is_loop());
        assert!(twice.with(BlockKind::NeedsInput).is_loop());
        assert_eq!(twice.with(BlockKind::Capability).count, 1);
        let kept = twice.with(BlockKind::NeedsInput).in_triage();
        assert_eq!(kept, Recurrence { kind: Some(BlockKind::NeedsInput), count: 0 });
        assert!(!kept.with(BlockKind::NeedsInput).is_loop());
    }
}
