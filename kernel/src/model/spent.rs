//! What the agent of a run says that it has used of a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most that counts of an amount that somebody has used, so that a sum over any number of rows is a number.
pub(crate) const MOST: u64 = 1 << 46;

/// What the agent of a run says that it has used. All of it is the agent's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// The conversation, as the agent names it.
    pub session: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The tokens that it was given, with those of a cache.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    pub cached_tokens: u64,
    /// The tokens that it made.
    pub output_tokens: u64,
    /// What it cost, in millionths of a US dollar: as the agent says it, else by the price of its model.
    pub cost_micros: Option<u64>,
    /// How often it was asked.
    pub turns: Option<u64>,
    /// The calls of tools that the agent itself refused.
    pub denials: u64,
    /// What the tokens count.
    #[serde(skip)]
    pub counters: Counters,
}

/// What the counters of tokens have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counters {
    /// What this run has used.
    #[default]
    OfRun,
    /// All of the session so far, also in earlier runs.
    OfSession,
}

/// Three counters of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

impl Spent {
    /// Returns the tokens that it was given and made, as `spend` and budgets count them.
    pub fn all_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).min(MOST)
    }

    pub(crate) fn tokens(&self) -> Tokens {
        Tokens { input: self.input_tokens, cached: self.cached_tokens, output: self.output_tokens }
    }
}

impl Tokens {
    /// What was counted since `before`; all of it where the counters have begun anew.
    pub(crate) fn since(self, before: Tokens) -> Tokens {
        let difference = |counters: fn(Tokens) -> u64| counters(self).checked_sub(counters(before));
        match (difference(|t| t.input), difference(|t| t.cached), difference(|t| t.output)) {
            (Some(input), Some(cached), Some(output)) => Tokens { input, cached, output },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_session_are_charged_since_the_run_before_and_whole_where_they_begin_anew() {
        let tokens = |input, cached, output| Tokens { input, cached, output };
        assert_eq!(tokens(33, 11, 7).since(tokens(22, 11, 5)), tokens(11, 0, 2));
        assert_eq!(tokens(33, 11, 4).since(tokens(22, 11, 5)), tokens(33, 11, 4));
    }
}
