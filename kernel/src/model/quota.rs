//! Quotas: limits on the writes of a run and on the data of a tenant. The defaults are far above the needs of honest
//! work.
//!
//! The counters of a run are rows that are written with their subject, so a refused write is not counted. A write
//! that ends a run is not charged, nor is its reason: a run that could not report its end would be tried again. A
//! refusal by a quota (`exhausted`, exit code 77) does not pass by itself, and a refusal for speed (`throttled`, 75)
//! does.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::model::approval::ApprovalRules;
use crate::model::budget::Budgets;
use crate::model::error::Error;
use crate::model::id::Tenant;
use crate::model::mission::MissionLimits;
use crate::model::price::Prices;
use crate::model::words::words;

words! {
    /// Resource that a quota limits.
    "bound"
    Bound {
        /// Number of tasks that a run makes.
        Creates => "creates",
        /// Number of comments that a run adds.
        Comments => "comments",
        /// Number of files that a run attaches or hands over.
        Attachments => "attachments",
        /// Bytes of these files.
        AttachmentBytes => "attachment_bytes",
        /// Number of links that a run makes or removes.
        Links => "links",
        /// Number of holds that a run places or renews.
        Holds => "holds",
        /// Number of heartbeats of a run that carry a note.
        Notes => "notes",
        /// Bytes of all texts of a run: tasks, comments, notes, reasons.
        TextBytes => "text_bytes",
        /// Number of tasks, comments and files of a tenant.
        TenantEntries => "tenant_entries",
        /// Bytes of a tenant's texts and files.
        TenantBytes => "tenant_bytes",
        /// Number of events of a tenant's tasks in the log. Every act of a worker leaves an event.
        TenantEvents => "tenant_events",
    }
}

impl Bound {
    /// Returns the default limit, in the unit of the bound.
    pub fn default_limit(self) -> u64 {
        self.row().0
    }

    /// Returns the default limit, and the noun for messages.
    fn row(self) -> (u64, &'static str) {
        match self {
            Bound::Creates => (50, "tasks made by this run"),
            Bound::Comments => (1_000, "comments of this run"),
            Bound::Attachments => (200, "files of this run"),
            Bound::AttachmentBytes => (1 << 30, "bytes of files of this run"),
            Bound::Links => (1_000, "links changed by this run"),
            Bound::Holds => (100, "holds placed by this run"),
            Bound::Notes => (20_000, "notes of this run"),
            Bound::TextBytes => (32 << 20, "bytes of text written by this run"),
            Bound::TenantEntries => (2_000_000, "tasks, comments and files of this tenant"),
            Bound::TenantBytes => (64 << 30, "bytes of text and files of this tenant"),
            Bound::TenantEvents => (50_000_000, "events of this tenant"),
        }
    }
}

/// Limits in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    limits: Vec<(Bound, u64)>,
    /// Limits of single tenants, in place of the general limits.
    of_tenants: BTreeMap<Tenant, BTreeMap<&'static str, u64>>,
    /// Longest time for which a worker may hold its account.
    pub longest_hold: Duration,
    pub mission: MissionLimits,
    /// Budgets of runs, tenants and accounts.
    pub budgets: Budgets,
    pub prices: Prices,
    /// Rules for the classes of actions that need an approval.
    pub approvals: ApprovalRules,
}

impl Default for Quotas {
    fn default() -> Self {
        let limits = Bound::ALL.iter().map(|bound| (*bound, bound.default_limit())).collect();
        Self {
            limits,
            of_tenants: BTreeMap::new(),
            longest_hold: Duration::from_hours(24),
            mission: MissionLimits::default(),
            budgets: Budgets::default(),
            prices: Prices::default(),
            approvals: ApprovalRules::default(),
        }
    }
}

impl Quotas {
    /// Returns the limit of a bound, in the unit of the bound.
    pub fn limit(&self, bound: Bound) -> u64 {
        self.limits.iter().find(|(known, _)| *known == bound).map_or(0, |(_, limit)| *limit)
    }

    /// Returns the same limits with one changed.
    #[must_use]
    pub fn with(mut self, bound: Bound, limit: u64) -> Self {
        self.limits.retain(|(known, _)| *known != bound);
        self.limits.push((bound, limit));
        self
    }

    /// Returns the limit of a tenant: its own, else the general limit.
    pub fn limit_of(&self, tenant: Option<&Tenant>, bound: Bound) -> u64 {
        let of_tenant = tenant.and_then(|tenant| self.of_tenants.get(tenant)?.get(bound.as_str()));
        of_tenant.copied().unwrap_or_else(|| self.limit(bound))
    }

    /// Returns the same limits with one changed for one tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: &Tenant, bound: Bound, limit: u64) -> Self {
        self.of_tenants.entry(tenant.clone()).or_default().insert(bound.as_str(), limit);
        self
    }

    /// Refuses a count beyond the limit of a tenant. `count` is the count after the change.
    pub(crate) fn require(&self, tenant: Option<&Tenant>, bound: Bound, count: u64) -> Result<(), Error> {
        let limit = self.limit_of(tenant, bound);
        if count <= limit {
            return Ok(());
        }
        let hint = match bound {
            Bound::TenantEntries | Bound::TenantBytes => {
                "an operator makes room with `supervisor archive --rm`, or raises it in [quotas] of supervisor.toml"
            }
            Bound::TenantEvents => {
                "an operator folds old events with `supervisor gc`, or raises it in [quotas] of supervisor.toml"
            }
            Bound::Creates
            | Bound::Comments
            | Bound::Attachments
            | Bound::AttachmentBytes
            | Bound::Links
            | Bound::Holds
            | Bound::Notes
            | Bound::TextBytes => {
                "finish with what there is, or block with a question to a person; an operator raises it in [quotas] of \
                 supervisor.toml"
            }
        };
        Err(Error::Exhausted {
            message: format!("{bound}: this would be {count} {}, the limit is {limit}", bound.row().1),
            hint: hint.to_owned(),
        })
    }
}

/// Limits that a writer applies. Clones share them, so that they change without a restart.
#[derive(Clone, Debug, Default)]
pub struct SharedQuotas(Arc<RwLock<Arc<Quotas>>>);

impl SharedQuotas {
    /// Creates shared limits.
    pub fn new(quotas: Quotas) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(quotas))))
    }

    /// Replaces the limits, for all clones.
    pub fn set(&self, quotas: Quotas) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(quotas);
    }

    /// Returns the current limits.
    pub fn get(&self) -> Arc<Quotas> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
