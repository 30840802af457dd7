//! Block loops: a task that is blocked repeatedly for the same kind of reason goes to triage, where a person changes it.

use serde_json::{Value, json};

use crate::model::outcome::BlockKind;
use crate::model::verdict::Blocking;

/// Number of blocks for the same kind after which the next block sends the task to triage.
const LIMIT: u32 = 2;

/// Number of consecutive blocks of a task for the same kind of reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recurrence {
    /// Kind of the last block.
    pub(crate) kind: Option<BlockKind>,
    /// Number of consecutive blocks of this kind.
    pub(crate) count: u32,
}

impl Recurrence {
    /// Adds a block.
    pub(crate) fn with(self, kind: BlockKind) -> Self {
        let count = if self.kind == Some(kind) { self.count.saturating_add(1) } else { 1 };
        Self { kind: Some(kind), count }
    }

    /// Returns true if the blocks form a loop, so that another unblock would not help.
    pub(crate) fn is_loop(self) -> bool {
        self.count > LIMIT
    }

    /// Returns the value for a task that goes to triage: the same kind, counted anew.
    pub(crate) fn in_triage(self) -> Self {
        Self { count: 0, ..self }
    }

    /// Returns the payload of the event of a block, with the limit if the block leads to triage.
    pub(crate) fn payload(self, blocking: &Blocking, limited: Limited) -> Value {
        let mut payload =
            json!({ "reason": blocking.reason, "kind": blocking.kind, "recurrences": self.count });
        if limited == Limited::Yes {
            payload["limit"] = LIMIT.into();
        }
        payload
    }
}

/// Tells if a block led to triage.
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
        let after = twice.with(BlockKind::NeedsInput).in_triage();
        assert_eq!(after, Recurrence { kind: Some(BlockKind::NeedsInput), count: 0 });
        assert!(!after.with(BlockKind::NeedsInput).is_loop());
    }
}
