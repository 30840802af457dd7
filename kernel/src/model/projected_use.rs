//! What a worker that brings its own board has used of a model.

/// What all conversations of a worker have used, as its program counts it. All of it is the worker's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectedUse {
    /// The conversation that was spoken in last.
    pub session: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The tokens that were given, with those of a cache.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    pub cached_tokens: u64,
    /// The tokens that were made.
    pub output_tokens: u64,
    /// What it cost, in millionths of a US dollar, as far as it is known.
    pub cost_micros: Option<u64>,
    /// How often the model was asked.
    pub turns: u64,
    /// Whether the last word there is the model's: what was said or done last has had an answer.
    pub is_answered: bool,
}

impl ProjectedUse {
    /// Returns what has come since `before`.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        let cost = |now: u64| now.saturating_sub(before.cost_micros.unwrap_or_default());
        ProjectedUse {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(before.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_micros: self.cost_micros.map(cost),
            turns: self.turns.saturating_sub(before.turns),
            ..self
        }
    }
}
