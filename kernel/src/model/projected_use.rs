//! Use of a model by a worker that brings its own board.

use super::spent::Spent;

/// Use of a model by all conversations of a worker, as its program counts it. All of it is the worker's claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedUse {
    /// Sum of the use, under the name and the model of the latest conversation.
    pub spent: Spent,
    /// True if the model has the last word: the latest input has had an answer.
    pub is_answered: bool,
}

impl ProjectedUse {
    /// Returns the use since `before`.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        let (now, before) = (self.spent, &before.spent);
        let beyond = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or_default());
        let spent = Spent {
            input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
            cached_tokens: now.cached_tokens.saturating_sub(before.cached_tokens),
            output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
            cost_micros: now.cost_micros.map(|cost| beyond(cost, before.cost_micros)),
            turns: now.turns.map(|turns| beyond(turns, before.turns)),
            ..now
        };
        ProjectedUse { spent, ..self }
    }
}
