//! Use of a model by the agent of a run, as the agent reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest amount that counts. With this cap, a sum over any number of rows does not overflow.
pub(crate) const MOST: u64 = 1 << 46;

/// Use of a model by the agent of a run. All of it is the agent's claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Name of the conversation, given by the agent.
    pub session: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Input tokens, tokens from a cache included.
    pub input_tokens: u64,
    /// Input tokens that came from a cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar, as the agent reports it, else by the price of its model.
    pub cost_micros: Option<u64>,
    pub turns: Option<u64>,
    /// Number of tool calls that the agent itself refused.
    pub denials: u64,
    /// Scope of the token counters.
    #[serde(skip)]
    pub counters: Counters,
}

/// Scope of token counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counters {
    /// Counters of this run alone.
    #[default]
    OfRun,
    /// The whole session so far, earlier runs included.
    OfSession,
}

/// Tokens that an agent reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

impl Spent {
    /// Returns the sum of input and output tokens, as `spend` and budgets count them.
    pub fn all_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).min(MOST)
    }

    pub(crate) fn tokens(&self) -> Tokens {
        Tokens { input: self.input_tokens, cached: self.cached_tokens, output: self.output_tokens }
    }
}

impl Tokens {
    /// Returns the tokens since `before`; all of them if the counters have started anew.
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
