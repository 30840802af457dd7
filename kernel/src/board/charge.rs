//! Counts the writes of workers and of tenants' users, and refuses writes beyond a quota.

use super::Board;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::quota::Bound;

/// Amounts by which one write increases the usage of a run and of a tenant. Lengths and sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    bound: Bound,
    text: u64,
    file: u64,
    links: u64,
}

impl Cost {
    /// Returns the cost of one unit of `bound`, without texts, links and files.
    pub(super) fn one(bound: Bound) -> Self {
        Self { bound, text: 0, file: 0, links: 0 }
    }

    /// Adds the lengths of texts.
    pub(super) fn text<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let length: usize = texts.into_iter().map(str::len).sum();
        Self { text: self.text.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)), ..self }
    }

    /// Sets the number of links.
    pub(super) fn links(self, count: usize) -> Self {
        Self { links: u64::try_from(count).unwrap_or(u64::MAX), ..self }
    }

    /// Sets the size of a file.
    pub(super) fn file(self, size: u64) -> Self {
        Self { file: size, ..self }
    }
}

impl Board<'_> {
    /// Charges a write to the caller's run and tenant, and refuses it beyond a quota. A caller with neither has no quota.
    /// The worker of a proposal may write notes only.
    ///
    /// A verdict is never charged, so that a run without any quota left can still report. The files that a verdict hands
    /// over are charged, and a file beyond the quota is left out.
    pub(super) fn charge(&self, actor: &Actor, cost: Cost) -> Result<(), Error> {
        let tenant = actor.tenant.as_ref();
        if cost.bound != Bound::Notes {
            self.refuse_proposal_worker(actor)?;
        }
        if actor.run.is_none() && tenant.is_none() {
            return Ok(());
        }
        let stored = self.tx.kept_by_tenant(tenant)?;
        let bytes = stored.bytes.saturating_add(cost.text).saturating_add(cost.file);
        self.quotas.require(tenant, Bound::TenantEntries, stored.entries.saturating_add(1))?;
        self.quotas.require(tenant, Bound::TenantBytes, bytes)?;
        self.quotas.require(tenant, Bound::TenantEvents, stored.events.saturating_add(1))?;
        let Some(own) = &actor.run else { return Ok(()) };
        let more = [
            (cost.bound, 1),
            (Bound::TextBytes, cost.text),
            (Bound::AttachmentBytes, cost.file),
            (Bound::Links, cost.links),
        ];
        for (bound, more) in more.into_iter().filter(|(_, more)| *more > 0) {
            self.quotas.require(tenant, bound, self.tx.add_usage(own.run, bound, more)?)?;
        }
        Ok(())
    }
}
