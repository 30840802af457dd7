//! Rules for budgets: their limits, and the message for a spent budget.
//!
//! See decision 0116.

use crate::model::budget::{Amount, Budget, Budgets, Consumed, DayUse, Payer, PayerKind};
use crate::model::figures::Dollars;

/// Divisor of an account's day budget. The reports of a single run of a shared account count for at most this part.
const PART: u64 = 4;

/// Sharing of an account between tenants on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// A single tenant, or only tasks without a tenant.
    Nobody,
    Tenants,
}

/// Budget with nothing left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentBudget {
    /// Payer of the budget; none for the budget of the run itself.
    pub payer: Option<Payer>,
    /// Resource that is spent.
    pub amount: Amount,
    /// Key that sets the limit, such as `budgets.per_run.requests`.
    pub key: String,
    /// Amount used.
    pub count: u64,
    /// Amount allowed, grants included.
    pub allowed: u64,
}

/// Formats the figures, such as `10 requests of 10 (budgets.per_run.requests)`.
impl std::fmt::Display for SpentBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SpentBudget { amount, key, count, allowed, .. } = self;
        match amount {
            Amount::Cost => write!(f, "{} of {}", Dollars(*count), Dollars(*allowed))?,
            Amount::Requests | Amount::Bytes | Amount::Tokens => write!(f, "{count} {amount} of {allowed}")?,
        }
        write!(f, " ({key})")
    }
}

impl SpentBudget {
    /// Returns a sentence, without its period, with the owner and the figures of the budget.
    pub fn to_text(&self) -> String {
        match &self.payer {
            None => format!("the budget of this run is spent: {self}"),
            Some(payer) => format!("the budget of {payer} for today is spent: {self}"),
        }
    }
}

impl Budgets {
    /// Returns the first budget of its own that a run has used up.
    pub fn spent_by_run(&self, used: &Consumed) -> Option<SpentBudget> {
        spent(used, 0, |amount| Some((self.per_run.limit(amount)?, format!("budgets.per_run.{amount}"))))
            .map(|found| SpentBudget { payer: None, ..found })
    }

    /// Returns the first budget that a payer has used up on a day.
    pub fn spent_on_day(&self, day: &DayUse) -> Option<SpentBudget> {
        let limit = |amount| self.limit_of(&day.payer, amount);
        let obstacle = spent(&day.consumed, day.more, limit)?;
        Some(SpentBudget { payer: Some(day.payer.clone()), ..obstacle })
    }

    /// Returns the part of an agent's report that its account counts.
    ///
    /// The report is the agent's claim. On an account that several tenants share, a false report would spend the budget
    /// of all of them. A single run therefore counts at most its own limit, or else a part of the account's budget of a
    /// day.
    pub(crate) fn believed(&self, reported: Consumed, account: &str, sharing: Sharing) -> Consumed {
        let payer = Payer { scope: PayerKind::Account, name: account.to_owned() };
        let capped = |amount, count: u64| {
            let of_shared = || {
                let of_day = || self.limit_of(&payer, amount).map(|(limit, _)| limit / PART);
                self.per_run.limit(amount).or_else(of_day).filter(|_| sharing == Sharing::Tenants)
            };
            count.min(self.claimed_per_run.limit(amount).or_else(of_shared).unwrap_or(u64::MAX))
        };
        Consumed {
            tokens: capped(Amount::Tokens, reported.tokens),
            cost_micros: capped(Amount::Cost, reported.cost_micros),
            ..reported
        }
    }

    /// Returns a payer's limit for a day, with the key that sets it.
    fn limit_of(&self, payer: &Payer, amount: Amount) -> Option<(u64, String)> {
        let (own, table, every): (Option<&Budget>, &str, &Budget) = match payer.scope {
            PayerKind::Tenant => {
                let own = self.tenants.iter().find(|(name, _)| name.as_str() == payer.name);
                (own.map(|(_, budget)| budget), "tenants", &self.per_tenant)
            }
            PayerKind::Account => (self.accounts.get(&payer.name), "accounts", &self.per_account),
            PayerKind::Profile => return None,
        };
        let own = own.and_then(|budget| budget.limit(amount));
        let own = own.map(|limit| (limit, format!("budgets.{table}.{}.{amount}", payer.name)));
        own.or_else(|| Some((every.limit(amount)?, format!("budgets.per_{}.{amount}", payer.scope))))
    }
}

fn spent(used: &Consumed, more: u64, limit: impl Fn(Amount) -> Option<(u64, String)>) -> Option<SpentBudget> {
    Amount::ALL.iter().find_map(|amount| {
        let (limit, key) = limit(*amount)?;
        let (count, allowed) = (used.of(*amount), limit.saturating_mul(more.saturating_add(1)));
        (count >= allowed).then_some(SpentBudget { payer: None, amount: *amount, key, count, allowed })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(scope: PayerKind, name: &str, consumed: Consumed, more: u64) -> DayUse {
        DayUse { payer: Payer { scope, name: name.to_owned() }, day: "2026-05-01".to_owned(), consumed, more }
    }

    #[test]
    fn a_budget_is_spent_at_its_number_and_named_with_count_limit_and_key() {
        let budgets = Budgets {
            per_run: Budget { requests: Some(10), cost_micros: Some(1_500_000), ..Budget::default() },
            ..Budgets::default()
        };
        let used = Consumed { requests: 9, bytes: u64::MAX, cost_micros: 1_499_999, ..Consumed::default() };
        assert_eq!(budgets.spent_by_run(&used), None);
        let text_of = |used: Consumed| budgets.spent_by_run(&used).unwrap().to_text();
        assert_eq!(
            text_of(Consumed { requests: 10, ..used }),
            "the budget of this run is spent: 10 requests of 10 (budgets.per_run.requests)"
        );
        assert_eq!(
            text_of(Consumed { cost_micros: 1_510_000, ..used }),
            "the budget of this run is spent: $1.51 of $1.50 (budgets.per_run.cost_usd)"
        );
    }

    #[test]
    fn each_amount_of_a_day_has_its_own_limit_before_that_of_all_and_as_much_again_where_it_was_granted() {
        let budgets = Budgets {
            per_tenant: Budget { requests: Some(10), bytes: Some(100), ..Budget::default() },
            tenants: [("acme".parse().unwrap(), Budget { requests: Some(20), ..Budget::default() })].into(),
            ..Budgets::default()
        };
        let used = |requests, bytes| Consumed { requests, bytes, ..Consumed::default() };
        let key = |name: &str, consumed, more| {
            budgets.spent_on_day(&new(PayerKind::Tenant, name, consumed, more)).map(|spent| spent.key)
        };
        assert_eq!(key("beta", used(10, 0), 0).as_deref(), Some("budgets.per_tenant.requests"));
        assert_eq!(key("acme", used(19, 0), 0), None);
        assert_eq!(key("acme", used(20, 0), 0).as_deref(), Some("budgets.tenants.acme.requests"));
        assert_eq!(key("acme", used(20, 0), 1), None);
        assert_eq!(key("acme", used(0, 100), 0).as_deref(), Some("budgets.per_tenant.bytes"));
        assert_eq!(budgets.spent_on_day(&new(PayerKind::Account, "acme", used(99, 999), 0)), None);
    }
}
