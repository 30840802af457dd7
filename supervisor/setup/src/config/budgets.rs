//! `[budgets]`: limits on the use of each run, and on the daily use of a tenant or an account.

use std::collections::BTreeMap;

use kernel::{Budget, Budgets, Tenant};
use serde::{Deserialize, Deserializer, de};

/// All budgets. Reloaded on SIGHUP. An absent amount is not limited.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BudgetsConfig {
    per_run: BudgetConfig,
    /// Limit on the use that an account accepts from the report of one run's agent.
    claimed_per_run: ClaimedConfig,
    /// Daily budget of each tenant.
    per_tenant: BudgetConfig,
    /// Daily budget of each account.
    per_account: BudgetConfig,
    /// Budgets of single tenants; takes precedence over `per_tenant`.
    tenants: BTreeMap<Tenant, BudgetConfig>,
    /// Budgets of single accounts; takes precedence over `per_account`.
    accounts: BTreeMap<String, BudgetConfig>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// Requests through proxies.
    requests: Option<u64>,
    /// Bytes through proxies, both directions together.
    bytes: Option<u64>,
    /// Tokens, as agents report them.
    tokens: Option<u64>,
    /// Cost in US dollars, as agents report it; stored in millionths.
    #[serde(deserialize_with = "micros")]
    cost_usd: Option<u64>,
}

/// Amounts that agents report. The proxy counts requests and bytes itself.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClaimedConfig {
    tokens: Option<u64>,
    /// US dollars; stored in millionths.
    #[serde(deserialize_with = "micros")]
    cost_usd: Option<u64>,
}

/// Reads an amount of dollars. Returns millionths of a dollar.
pub(super) fn micros<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if !(0.0..=1e9).contains(&dollars) {
        return Err(de::Error::custom("an amount of US dollars, such as 2.50, is expected"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
    let micros = (dollars * 1e6).round() as u64;
    Ok(Some(micros))
}

impl BudgetConfig {
    /// Returns true if no amount is set.
    pub(super) fn is_empty(&self) -> bool {
        let BudgetConfig { requests, bytes, tokens, cost_usd } = self;
        [requests, bytes, tokens, cost_usd].into_iter().all(Option::is_none)
    }

    fn budget(self) -> Budget {
        let BudgetConfig { requests, bytes, tokens, cost_usd: cost_micros } = self;
        Budget { requests, bytes, tokens, cost_micros }
    }
}

impl BudgetsConfig {
    /// Sets the daily budget of a tenant.
    pub(super) fn set(&mut self, tenant: Tenant, budget: BudgetConfig) {
        self.tenants.insert(tenant, budget);
    }

    /// Returns the budgets for boards and proxies.
    pub(super) fn budgets(&self) -> Budgets {
        let tenants = self.tenants.iter().map(|(name, budget)| (name.clone(), budget.budget()));
        let accounts = self.accounts.iter().map(|(name, budget)| (name.clone(), budget.budget()));
        Budgets {
            per_run: self.per_run.budget(),
            claimed_per_run: Budget {
                tokens: self.claimed_per_run.tokens,
                cost_micros: self.claimed_per_run.cost_usd,
                ..Budget::default()
            },
            per_tenant: self.per_tenant.budget(),
            per_account: self.per_account.budget(),
            tenants: tenants.collect(),
            accounts: accounts.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_and_cost_is_in_dollars_with_cents() {
        let text = "per_run = { requests = 10, cost_usd = 0.25 }\n[per_tenant]\ncost_usd = 7\n[accounts.main]\ntokens = 5\n\
                    [claimed_per_run]\ncost_usd = 2\n";
        let budgets = toml::from_str::<BudgetsConfig>(text).unwrap().budgets();
        let run = Budget { requests: Some(10), cost_micros: Some(250_000), ..Budget::default() };
        assert_eq!(budgets.per_run, run);
        assert_eq!(budgets.per_tenant, Budget { cost_micros: Some(7_000_000), ..Budget::default() });
        assert_eq!(budgets.claimed_per_run, Budget { cost_micros: Some(2_000_000), ..Budget::default() });
        assert_eq!(budgets.accounts["main"], Budget { tokens: Some(5), ..Budget::default() });
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "[per_run]\ncost_usd = -1",
            "[per_run]\ncost_usd = nan",
            "[per_run]\nhours = 1",
            "[claimed_per_run]\nbytes = 1",
            "[tenants.\"a b\"]\n",
        ] {
            toml::from_str::<BudgetsConfig>(text).unwrap_err();
        }
    }
}
