//! Budgets: how much runs may use, each by itself and all of a tenant or an account on one day.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::hold::HoldScope;
use crate::model::id::Tenant;
use crate::model::words::words;

words! {
    /// What a budget is of, by its key in the tables of `[budgets]`.
    "amount"
    Amount {
        /// Requests through proxies.
        Requests => "requests",
        /// The bytes of those, in both directions.
        Bytes => "bytes",
        /// Tokens of models, as agents report them.
        Tokens => "tokens",
        /// Cost, as agents report it.
        Cost => "cost_usd",
    }
}

words! {
    /// Whose use is added up for each day.
    "payer"
    PayerKind {
        /// A tenant.
        Tenant => "tenant",
        /// A profile.
        Profile => "profile",
        /// An account of a service.
        Account => "account",
    }
}

/// Whose use is added up for each day.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Payer {
    /// Whether it is a tenant, a profile or an account.
    pub scope: PayerKind,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Payer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.scope, self.name)
    }
}

impl PayerKind {
    /// What a hold on it is on.
    pub(crate) fn hold_scope(self) -> HoldScope {
        match self {
            PayerKind::Tenant => HoldScope::Tenant,
            PayerKind::Profile => HoldScope::Profile,
            PayerKind::Account => HoldScope::Account,
        }
    }
}

/// What was used: requests and bytes through proxies, and what agents report of their models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consumed {
    /// Requests that were let through.
    pub requests: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Tokens, read and made.
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Consumed {
    /// Returns the count of an amount.
    pub fn of(&self, amount: Amount) -> u64 {
        match amount {
            Amount::Requests => self.requests,
            Amount::Bytes => self.bytes,
            Amount::Tokens => self.tokens,
            Amount::Cost => self.cost_micros,
        }
    }

    /// Returns the sum of each amount.
    #[must_use]
    pub fn plus(self, more: Consumed) -> Self {
        self.each(more, u64::saturating_add)
    }

    /// Returns how much more of each amount this is than `before`; nothing where it is less.
    #[must_use]
    pub fn since(self, before: Consumed) -> Self {
        self.each(before, u64::saturating_sub)
    }

    /// Returns the larger count of each amount.
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
    /// What the ledger is added up by.
    "sum"
    SpendBy {
        /// The first tasks of missions; a task that nobody has divided is its own.
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

/// One sum of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spend {
    /// Of what; none for what has no tenant, account or profile.
    pub name: Option<String>,
    /// The title of the first task of a mission, as long as it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What was used.
    #[serde(flatten)]
    pub consumed: Consumed,
}

/// What somebody has used on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayUse {
    /// Who.
    #[serde(flatten)]
    pub payer: Payer,
    /// The calendar day, such as `2026-05-01`.
    pub day: String,
    /// What.
    #[serde(flatten)]
    pub consumed: Consumed,
    /// How often a person has granted as much again on that day.
    #[serde(default)]
    pub more: u64,
}

/// The table of one budget: the limit of each amount, none where it is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Tokens.
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

/// All budgets. What is absent is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// What one run may use.
    pub per_run: Budget,
    /// How much an account counts of the tokens and the cost that the agent of one run reports.
    pub claimed_per_run: Budget,
    /// Of each tenant on a day.
    pub per_tenant: Budget,
    /// Of each account on a day.
    pub per_account: Budget,
    /// Of single tenants, before `per_tenant`.
    pub tenants: BTreeMap<Tenant, Budget>,
    /// Of single accounts, before `per_account`.
    pub accounts: BTreeMap<String, Budget>,
}

/// How a run and those that pay for it stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// What the run has used.
    pub run: Consumed,
    /// What those that pay for it have used today.
    pub payers: Vec<DayUse>,
}
