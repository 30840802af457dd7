//! What a worker's write costs, and the refusal of what goes beyond its bounds.

use super::Board;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::quota::Bound;

/// What one write adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    bound: Bound,
    text: u64,
    file: u64,
    links: u64,
}

impl Cost {
    /// One of what a bound counts.
    pub(super) fn one(bound: Bound) -> Self {
        Self { bound, text: 0, file: 0, links: 0 }
    }

    /// The same with texts.
    pub(super) fn text<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let length: usize = texts.into_iter().map(str::len).sum();
        Self { text: self.text.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)), ..self }
    }

    /// The same with links.
    pub(super) fn links(self, count: usize) -> Self {
        Self { links: u64::try_from(count).unwrap_or(u64::MAX), ..self }
    }

    /// The same with a file.
    pub(super) fn file(self, size: u64) -> Self {
        Self { file: size, ..self }
    }
}

impl Board<'_> {
    /// Counts a write of a worker and refuses it beyond a bound. People are not bound, but those who see one tenant alone: they
    /// may not go beyond what it keeps.
    ///
    /// A verdict is never charged: a run that has used up everything can still say how it went. The files that it hands over are,
    /// and one that does not fit is left out.
    pub(super) fn charge(&self, actor: &Actor, cost: Cost) -> Result<(), Error> {
        let tenant = actor.tenant.as_ref();
        if cost.bound != Bound::Notes {
            self.only_proposes(actor)?;
        }
        if actor.run.is_none() && tenant.is_none() {
            return Ok(());
        }
        let kept = self.tx.kept_by_tenant(tenant)?;
        let bytes = kept.bytes.saturating_add(cost.text).saturating_add(cost.file);
        self.quotas.require(tenant, Bound::TenantEntries, kept.entries.saturating_add(1))?;
        self.quotas.require(tenant, Bound::TenantBytes, bytes)?;
        self.quotas.require(tenant, Bound::TenantEvents, kept.events.saturating_add(1))?;
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
