//! Prices of tokens, for agents that report the number of their tokens without the cost.
//!
//! The program ships no prices: they change more often than releases are made, and a wrong price would stop work too early
//! or too late. A price applies to the use that is reported after it was configured. That use is the run's part of the
//! counters of its session.

use std::collections::BTreeMap;

use super::spent::Tokens;

/// Prices of a million tokens of a model, in millionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Price of input tokens that do not come from a cache.
    pub input: u64,
    /// Price of input tokens that come from a cache.
    pub cached_input: u64,
    /// Price of output tokens.
    pub output: u64,
}

/// Price list, by the name of a model or by the beginning of a name with `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(BTreeMap<String, Price>);

impl Price {
    /// Returns the price of tokens, in millionths of a US dollar, rounded up. `tokens.input` includes the cached tokens.
    fn cost(&self, tokens: Tokens) -> u64 {
        let fresh = tokens.input.saturating_sub(tokens.cached);
        let parts = [
            (fresh, self.input),
            (tokens.cached.min(tokens.input), self.cached_input),
            (tokens.output, self.output),
        ];
        let sum: u128 = parts.iter().map(|(count, price)| u128::from(*count) * u128::from(*price)).sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

impl Prices {
    /// Creates a price list by name of the model. A name that ends with `*` covers all models whose names begin with the
    /// text before it.
    pub fn new(prices: BTreeMap<String, Price>) -> Self {
        Self(prices)
    }

    /// Returns the price of a model: the entry with its name, else the entry with the longest beginning of its name; none
    /// if no entry covers it.
    pub fn for_model(&self, model: &str) -> Option<Price> {
        let begins = |name: &str| name.strip_suffix('*').is_some_and(|start| model.starts_with(start));
        let exact = self.0.get(model);
        let listed_price = exact.or_else(|| {
            let named = self.0.iter().filter(|(name, _)| begins(name));
            named.max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
        });
        listed_price.copied()
    }

    /// Returns the cost of a run's tokens, in millionths of a US dollar: the cost that the agent reports, else the cost by
    /// the price of the model. A reported cost of 0 counts only if the model has no price, because it means that the agent
    /// does not know the price. None if neither is known.
    pub(crate) fn cost(&self, reported: Option<u64>, model: Option<&str>, used: Tokens) -> Option<u64> {
        let price = || model.and_then(|model| self.for_model(model)).map(|price| price.cost(used));
        reported.filter(|cost| *cost > 0).or_else(price).or(reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINI: Price = Price { input: 250_000, cached_input: 25_000, output: 2_000_000 };
    const LARGE: Price = Price { input: 1_250_000, cached_input: 125_000, output: 10_000_000 };

    fn prices() -> Prices {
        let named = [
            ("gpt-5*", LARGE),
            ("gpt-5-mini*", MINI),
            ("gpt-5-mini-free", Price { input: 0, cached_input: 0, output: 0 }),
        ];
        Prices::new(named.into_iter().map(|(name, price)| (name.to_owned(), price)).collect())
    }

    #[test]
    fn the_price_of_a_model_is_its_own_or_that_of_the_longest_beginning() {
        let prices = prices();
        assert_eq!(prices.for_model("gpt-5.1-codex"), Some(LARGE));
        assert_eq!(prices.for_model("gpt-5-mini-2026"), Some(MINI));
        assert_eq!(prices.for_model("gpt-5-mini-free").unwrap().input, 0);
        assert_eq!(prices.for_model("gpt-4"), None);
    }

    #[test]
    fn tokens_cost_what_their_kind_costs_and_parts_of_a_millionth_are_rounded_up() {
        let tokens = |input, cached, output| Tokens { input, cached, output };
        assert_eq!(LARGE.cost(tokens(1_000_000, 400_000, 100_000)), 750_000 + 50_000 + 1_000_000);
        assert_eq!(MINI.cost(tokens(1, 0, 0)), 1);
        assert_eq!(MINI.cost(tokens(0, 0, 0)), 0);
        assert_eq!(MINI.cost(tokens(u64::MAX, 0, u64::MAX)), u64::MAX, "more than a number can hold");
    }

    #[test]
    fn what_an_agent_reports_goes_before_a_price_unless_it_reports_nothing() {
        let (prices, used) = (prices(), Tokens { input: 4, cached: 0, output: 0 });
        let cost = |reported, model| prices.cost(reported, model, used);
        assert_eq!(cost(Some(9), Some("gpt-5-mini")), Some(9));
        assert_eq!(cost(Some(0), Some("gpt-5-mini")), Some(1));
        assert_eq!(cost(None, Some("gpt-5-mini")), Some(1));
        assert_eq!((cost(None, Some("gpt-4")), cost(Some(0), None), cost(None, None)), (None, Some(0), None));
    }
}
