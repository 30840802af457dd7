//! `[runtime]`: how long runs of tenants may take, whatever their tasks, profiles and lanes say.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::Tenant;
use serde::Deserialize;

use crate::time::duration::WrittenDuration;

/// Bounds on the time limits of runs. Reloaded on SIGHUP, for runs that begin. What is absent bounds nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RuntimeConfig {
    per_tenant: Option<WrittenDuration>,
    /// Of single tenants, before `per_tenant`.
    tenants: BTreeMap<Tenant, WrittenDuration>,
}

impl RuntimeConfig {
    /// Bounds the runs of one tenant.
    pub(super) fn set(&mut self, tenant: Tenant, most: WrittenDuration) {
        self.tenants.insert(tenant, most);
    }

    /// How long a run of a tenant may take at most.
    pub(crate) fn most(&self, tenant: &Tenant) -> Option<Duration> {
        self.tenants.get(tenant).copied().or(self.per_tenant).map(WrittenDuration::duration)
    }

    /// The first bound under which every run would be ended at once.
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
