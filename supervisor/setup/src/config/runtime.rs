//! `[runtime]`: upper bounds on the runtime limits of tenants' runs. Tasks, profiles and lanes cannot exceed them.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::Tenant;
use serde::Deserialize;

use base::time::duration::WrittenDuration;

/// Upper bounds on the runtime limits of runs. They are reloaded on SIGHUP, and apply to runs that begin afterwards.
/// An absent value sets no bound.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeConfig {
    per_tenant: Option<WrittenDuration>,
    /// Bounds of single tenants, which take precedence over `per_tenant`.
    tenants: BTreeMap<Tenant, WrittenDuration>,
}

impl RuntimeConfig {
    /// Sets the bound of one tenant.
    pub(super) fn set(&mut self, tenant: Tenant, most: WrittenDuration) {
        self.tenants.insert(tenant, most);
    }

    /// Returns the bound on a run of a tenant, if any.
    pub fn most(&self, tenant: &Tenant) -> Option<Duration> {
        self.tenants.get(tenant).copied().or(self.per_tenant).map(WrittenDuration::duration)
    }

    /// Returns the key of the first bound that is 0, which would end every run at once.
    pub(super) fn shut(&self) -> Option<String> {
        let each = self.tenants.iter().map(|(tenant, bound)| (format!("tenants.{tenant}"), *bound));
        let all = self.per_tenant.map(|bound| ("per_tenant".to_owned(), bound));
        all.into_iter().chain(each).find(|(_, bound)| bound.duration().is_zero()).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_a_single_tenant_goes_before_that_of_all() {
        let read = |text: &str| toml::from_str::<RuntimeConfig>(text).unwrap();
        let most =
            |text: &str, tenant: &str| read(text).most(&tenant.parse().unwrap()).map(|most| most.as_secs());
        let text = "per_tenant = \"1h\"\ntenants = { acme = \"2h\" }";
        assert_eq!(
            (most(text, "acme"), most(text, "other"), most("", "acme")),
            (Some(7200), Some(3600), None)
        );
        assert_eq!(read("tenants = { acme = 0 }").shut().as_deref(), Some("tenants.acme"));
        assert_eq!((read("per_tenant = 0").shut().as_deref(), read(text).shut()), (Some("per_tenant"), None));
    }
}
