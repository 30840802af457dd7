//! Data of one tenant: its use of resources, and its export.

use std::collections::BTreeMap;
use std::io::Write;

use super::view::View;
use crate::blobs::Blobs;
use crate::model::clock::Day;
use crate::model::error::Error;
use crate::model::id::Tenant;
use crate::model::missing::Missing;
use crate::model::tenant_use::{RunsUse, TenantUse};
use crate::transfer::export::{self, Exported, Portion};

/// Largest number of days in the result.
const DAYS: usize = 366;

impl View<'_> {
    /// Returns true if any task belongs to this tenant.
    pub fn has_tenant(&self, tenant: &Tenant) -> Result<bool, Error> {
        self.tx.has_tenant(tenant)
    }

    /// Returns true if any task of the board belongs to a tenant, or did.
    pub fn has_tenants(&self) -> Result<bool, Error> {
        self.tx.has_tenants()
    }

    /// Returns the data and the use of a tenant. Reads all its runs.
    pub fn tenant_use(&self, tenant: &Tenant) -> Result<TenantUse, Error> {
        let (mut total, mut days) = (RunsUse::default(), BTreeMap::<String, RunsUse>::new());
        self.tx.each_use_of(tenant, |at, used| {
            total.add(&used);
            days.entry(Day::of_host(at).date).or_default().add(&used);
        })?;
        while days.len() > DAYS {
            days.pop_first();
        }
        let (attachments, attachment_bytes) = self.tx.attached_by(tenant)?;
        let stored = self.tx.kept_by_tenant(Some(tenant))?;
        Ok(TenantUse {
            tasks: self.tasks_by_status(Some(tenant), None)?,
            total,
            days,
            attachments,
            attachment_bytes,
            entries: stored.entries,
            bytes: stored.bytes,
            events: stored.events,
        })
    }

    /// Writes the data of one tenant as JSON Lines, with its attachments. An import reads the lines into an empty board.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no task belongs to this tenant.
    pub fn export_tenant(
        &self,
        tenant: &Tenant,
        blobs: &Blobs,
        out: &mut dyn Write,
    ) -> Result<Exported, Error> {
        if !self.has_tenant(tenant)? {
            return Err(Error::missing(Missing::Tenant, tenant));
        }
        export::export(self.tx, blobs, &Portion::Tenant(tenant), out)
    }
}
