//! `[prices]`: token prices of models whose agents report no cost.

use std::collections::BTreeMap;

use kernel::{Price, Prices};
use serde::Deserialize;

use super::budgets::micros;

/// Prices by model name. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct PricesConfig(BTreeMap<String, PriceConfig>);

/// Price of a model, in US dollars per million tokens; stored in millionths of a dollar.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceConfig {
    /// Price of input tokens.
    #[serde(deserialize_with = "micros")]
    input: Option<u64>,
    /// Price of cached input tokens [default: as `input`].
    #[serde(default, deserialize_with = "micros")]
    cached_input: Option<u64>,
    /// Price of output tokens.
    #[serde(deserialize_with = "micros")]
    output: Option<u64>,
}

impl PricesConfig {
    /// Returns the prices for the boards.
    pub(super) fn prices(&self) -> Prices {
        let price = |config: &PriceConfig| {
            let input = config.input.unwrap_or_default();
            Price {
                input,
                cached_input: config.cached_input.unwrap_or(input),
                output: config.output.unwrap_or_default(),
            }
        };
        Prices::new(self.0.iter().map(|(model, config)| (model.clone(), price(config))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_in_dollars_for_a_million_tokens_and_cached_ones_cost_as_others_unless_it_is_said() {
        let text = "\"gpt-5*\" = { input = 1.25, cached_input = 0.125, output = 10 }\nlocal = { input = 0.5, output = 0 }\n";
        let prices = toml::from_str::<PricesConfig>(text).unwrap().prices();
        let price = |input, cached_input, output| Some(Price { input, cached_input, output });
        assert_eq!(prices.for_model("gpt-5.1-codex"), price(1_250_000, 125_000, 10_000_000));
        assert_eq!(prices.for_model("local"), price(500_000, 500_000, 0));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in [
            "m = 3",
            "m = { input = 1 }",
            "m = { input = -1, output = 1 }",
            "m = { input = 1, output = 1, per = 2 }",
        ] {
            toml::from_str::<PricesConfig>(text).unwrap_err();
        }
    }
}
