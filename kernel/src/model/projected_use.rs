//! What a worker that brings its own board has used of a model.

use super::spent::Spent;

/// What all conversations of a worker have used, as its program counts it. All of it is the worker's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedUse {
    /// What they have used, by the name and the model of the one that was spoken in last.
    pub spent: Spent,
    /// Whether the last word there is the model's: what was said or done last has had an answer.
    pub is_answered: bool,
}

impl ProjectedUse {
    /// Returns what has come since `before`.
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
