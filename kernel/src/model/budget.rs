//! Budgets: limits on the use of a single run, and on the use of a tenant or an account on one day.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::hold::HoldScope;
use crate::model::id::Tenant;
use crate::model::words::words;

words! {
    /// Resource that a budget limits, by its key in the tables of `[budgets]`.
    "amount"
    Amount {
        /// Requests through proxies.
        Requests => "requests",
        /// Bytes of these requests, in both directions.
        Bytes => "bytes",
        /// Tokens of models, as agents report them.
        Tokens => "tokens",
        /// Cost, as agents report it.
        Cost => "cost_usd",
    }
}

words! {
    /// Kind of payer: use is added up for each payer and day.
    "payer"
    PayerKind {
        Tenant => "tenant",
        Profile => "profile",
        /// Account of a service, which several profiles may share.
        Account => "account",
    }
}

/// Payer: a tenant, profile or account whose use is added up for each day.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Payer {
    /// Kind of payer.
    pub scope: PayerKind,
    /// Name of the tenant, profile or account.
    pub name: String,
}

impl std::fmt::Display for Payer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.scope, self.name)
    }
}

impl PayerKind {
    /// Returns the scope of a hold on this kind of payer.
    pub(crate) fn hold_scope(self) -> HoldScope {
        match self {
            PayerKind::Tenant => HoldScope::Tenant,
            PayerKind::Profile => HoldScope::Profile,
            PayerKind::Account => HoldScope::Account,
        }
    }
}

/// Use of resources: requests and bytes through proxies, tokens and cost as agents report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consumed {
    /// Requests that the proxy let through.
    pub requests: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Tokens, read and generated.
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Consumed {
    /// Returns the use of one resource.
    pub fn of(&self, amount: Amount) -> u64 {
        match amount {
            Amount::Requests => self.requests,
            Amount::Bytes => self.bytes,
            Amount::Tokens => self.tokens,
            Amount::Cost => self.cost_micros,
        }
    }

    /// Returns the sum, resource by resource.
    #[must_use]
    pub fn plus(self, more: Consumed) -> Self {
        self.each(more, u64::saturating_add)
    }

    /// Returns the growth since `before`, resource by resource; zero where there is none.
    #[must_use]
    pub fn since(self, before: Consumed) -> Self {
        self.each(before, u64::saturating_sub)
    }

    /// Returns the larger use, resource by resource.
    #[must_use]
    pub fn max(self, other: Consumed) -> Self {
        self.each(other, u64::max)
    }

    fn each(self, other: Consumed, join: fn(u64, u64) -> u64) -> Self {
        Consumed {
            requests: join(self.requests, other.requests),
            bytes: join(self.bytes, other.bytes),
            tokens: join(self.tokens, other.tokens),
            cost_micros: join(self.cost_micros, other.cost_micros),
        }
    }
}

words! {
    /// Key by which the ledger is summed.
    "sum"
    SpendBy {
        /// First tasks of missions. A task that is in no mission counts as its own mission.
        Mission => "mission",
        /// Tenants.
        Tenant => "tenant",
        /// Accounts of services.
        Account => "account",
        /// Profiles.
        Profile => "profile",
        /// Calendar days of the host.
        Day => "day",
    }
}

/// Sum of the ledger for one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spend {
    /// Mission, tenant, account, profile or day that is summed; none for use without a tenant, account or profile.
    pub name: Option<String>,
    /// Title of the first task of a mission, as long as that task exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Use of the resources.
    #[serde(flatten)]
    pub consumed: Consumed,
}

/// Use of a payer on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayUse {
    #[serde(flatten)]
    pub payer: Payer,
    /// Calendar day, such as `2026-05-01`.
    pub day: String,
    /// Use of the resources.
    #[serde(flatten)]
    pub consumed: Consumed,
    /// Number of times that a person has granted the budget again on that day.
    #[serde(default)]
    pub more: u64,
}

/// Limits of one budget; a resource without a limit is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    pub requests: Option<u64>,
    pub bytes: Option<u64>,
    pub tokens: Option<u64>,
    /// Cost in millionths of a US dollar.
    pub cost_micros: Option<u64>,
}

impl Budget {
    pub(crate) fn limit(&self, amount: Amount) -> Option<u64> {
        match amount {
            Amount::Requests => self.requests,
            Amount::Bytes => self.bytes,
            Amount::Tokens => self.tokens,
            Amount::Cost => self.cost_micros,
        }
    }
}

/// All budgets. An absent limit means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Budget of one run.
    pub per_run: Budget,
    /// Cap on the tokens and the cost of one run that an account counts, since the agent itself reports them.
    pub claimed_per_run: Budget,
    /// Budget of each tenant for a day.
    pub per_tenant: Budget,
    /// Budget of each account for a day.
    pub per_account: Budget,
    /// Budgets of single tenants, in place of `per_tenant`.
    pub tenants: BTreeMap<Tenant, Budget>,
    /// Budgets of single accounts, in place of `per_account`.
    pub accounts: BTreeMap<String, Budget>,
}

/// Use of a run, and of its payers on this day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub run: Consumed,
    /// Use of its payers today.
    pub payers: Vec<DayUse>,
}
