//! `[limits]`, `[pools]` and `[dispatch]`: limits on concurrent runs, and conditions for starts. All are reloaded on
//! SIGHUP. Live runs continue, even above a new cap.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kernel::{Pool, Profile, Tenant};
use policies::ByteSize;
use serde::Deserialize;

use base::time::duration::WrittenDuration;

/// Capacity of each pool. A pool of capacity 0 is closed.
pub type Pools = BTreeMap<Pool, usize>;

/// Caps on concurrent workers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// All workers of this daemon. Default: four per CPU, at least 4 and at most 32.
    pub max_running: Option<usize>,
    /// Slots that one tenant leaves to the others. Default: 1.
    pub reserve: Option<usize>,
    /// Workers of each tenant.
    pub per_tenant: Option<usize>,
    /// Workers of each profile.
    pub(crate) per_profile: Option<usize>,
    /// Workers of each lane, across all its profiles.
    pub per_lane: Option<usize>,
    /// Workers of single profiles; takes precedence over `per_profile`.
    pub profiles: BTreeMap<Profile, usize>,
    /// Workers of single tenants; takes precedence over `per_tenant`.
    pub tenants: BTreeMap<Tenant, usize>,
    /// Workers of single lanes; takes precedence over `per_lane`.
    pub lanes: BTreeMap<Profile, usize>,
}

impl Limits {
    /// Returns the cap on workers of a tenant, if any.
    pub fn of_tenant(&self, tenant: &Tenant) -> Option<usize> {
        self.tenants.get(tenant).copied().or(self.per_tenant)
    }

    /// Returns the number of slots that one tenant may take of `slots`: all but the reserve, and at least one.
    pub fn without_reserve(&self, slots: usize) -> usize {
        slots.saturating_sub(self.reserve.unwrap_or(1)).max(1)
    }

    /// Returns the cap on workers of a profile, if any: the profile's entry in `profiles`, else `own` from its file,
    /// else `per_profile`.
    pub fn of_profile(&self, profile: &Profile, own: Option<usize>) -> Option<usize> {
        self.profiles.get(profile).copied().or(own).or(self.per_profile)
    }

    /// Returns the cap on workers of a lane, if any; the order of precedence is as in `of_profile`.
    pub fn of_lane(&self, lane: &Profile, own: Option<usize>) -> Option<usize> {
        self.lanes.get(lane).copied().or(own).or(self.per_lane)
    }

    /// Returns the cap on all workers.
    pub fn total(&self) -> usize {
        self.max_running.unwrap_or_else(|| {
            // Computed once: the count is read from cgroup files, and each event calls this function.
            static CPUS: OnceLock<usize> = OnceLock::new();
            let cpus =
                CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
            (cpus * 4).clamp(4, 32)
        })
    }
}

/// Conditions for starts of workers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DispatchConfig {
    /// Allows starts. Live runs continue in any case.
    pub enabled: bool,
    /// Least available memory of the host at which workers start.
    pub min_free_memory: Option<ByteSize>,
    /// Highest load of the last minute, per processor, at which workers start.
    pub max_load: Option<f64>,
    /// Highest pressure on memory, processors and storage at which workers start.
    pub max_pressure: MaxPressure,
    /// Number of consecutive immediate failures of one tenant's runs within `death_window` that suspend the tenant's
    /// starts for a while; 0 disables this breaker.
    pub max_deaths: usize,
    pub death_window: WrittenDuration,
}

/// Limits on resource pressure: percentage of the last ten seconds in which some task of the host waited for the
/// resource (`some avg10` of the kernel's `Documentation/accounting/psi.rst`).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MaxPressure {
    pub memory: Option<f64>,
    pub cpu: Option<f64>,
    pub io: Option<f64>,
}

impl MaxPressure {
    /// Returns each resource, by the name of its file in `/proc/pressure`, with its limit.
    pub fn limits(self) -> [(&'static str, Option<f64>); 3] {
        [("memory", self.memory), ("cpu", self.cpu), ("io", self.io)]
    }

    /// Returns true if no resource is limited.
    pub fn is_empty(self) -> bool {
        self.limits().iter().all(|(_, limit)| limit.is_none())
    }
}

impl Default for DispatchConfig {
    fn default() -> Self {
        DispatchConfig {
            enabled: true,
            min_free_memory: None,
            max_load: None,
            max_pressure: MaxPressure::default(),
            max_deaths: 100,
            death_window: WrittenDuration::from_secs(60),
        }
    }
}

impl DispatchConfig {
    /// Returns the reason why the section is unusable, with a remedy.
    pub(super) fn unusable(&self) -> Option<String> {
        if let Some(load) = self.max_load.filter(|load| !(load.is_finite() && *load > 0.0)) {
            return Some(format!(
                "dispatch.max_load = {load} is not above 0, so nothing would ever start; set a load such as 1.5, for each processor, or leave it out"
            ));
        }
        let is_wrong = |limit: &f64| !(*limit > 0.0 && *limit <= 100.0);
        let wrong =
            self.max_pressure.limits().into_iter().find(|(_, limit)| limit.as_ref().is_some_and(is_wrong));
        let (name, limit) = wrong?;
        let limit = limit.unwrap_or_default();
        Some(format!(
            "dispatch.max_pressure.{name} = {limit} is not a percentage above 0 and up to 100; set one such as 20, of the last ten seconds, or leave it out"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_configured_for_one_goes_before_its_own_file_and_that_before_what_is_for_all() {
        let config = read("[limits]\nper_lane = 9\ntenants = { acme = 2 }\nprofiles = { shell = 3 }\nlanes = { shell = 4 }\n").unwrap();
        let limits = config.limits;
        let (shell, other) = ("shell".parse().unwrap(), "other".parse().unwrap());
        assert_eq!(limits.of_tenant(&"acme".parse().unwrap()), Some(2));
        assert_eq!(limits.of_profile(&shell, Some(9)), Some(3));
        assert_eq!(limits.of_profile(&other, Some(9)), Some(9));
        assert_eq!(limits.of_lane(&shell, Some(7)), Some(4));
        assert_eq!((limits.of_lane(&other, Some(7)), limits.of_lane(&other, None)), (Some(7), Some(9)));
    }

    #[test]
    fn one_tenant_gets_all_slots_but_the_reserve_and_at_least_one() {
        for (text, slots, of_one) in [("", 8, 7), ("", 1, 1), ("reserve = 0", 8, 8), ("reserve = 9", 8, 1)] {
            let config = read(&format!("[limits]\n{text}")).unwrap();
            assert_eq!(config.limits.without_reserve(slots), of_one, "{text} of {slots}");
        }
    }

    #[test]
    fn a_cap_for_what_can_be_no_tenant_profile_lane_or_pool_is_refused() {
        for text in [
            "[limits]\ntenants = { \"\" = 2 }",
            "[limits]\ntenants = { \"a b\" = 2 }",
            "[limits]\nprofiles = { \"\" = 2 }",
            "[limits]\nlanes = { \"\" = 2 }",
            "[pools]\n\"a b\" = 2",
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains("line 2") && message.contains("1 to 64 of"), "{message}");
        }
    }

    #[test]
    fn a_load_that_nothing_could_stay_below_is_refused() {
        for load in ["0.0", "-1.0", "nan"] {
            let config = read(&format!("[dispatch]\nmax_load = {load}\n")).unwrap();
            assert!(config.unusable().unwrap().contains("dispatch.max_load"), "{load}");
        }
        for text in ["memory = 0.0", "cpu = -1", "io = 101", "io = nan"] {
            let config = read(&format!("[dispatch.max_pressure]\n{text}\n")).unwrap();
            assert!(config.unusable().unwrap().contains("dispatch.max_pressure."), "{text}");
        }
        let message = read("[dispatch]\nmax_pressure = { disk = 5 }\n").unwrap_err();
        assert!(message.contains("disk") && message.contains("line 2"), "{message}");
        let config = read("[dispatch]\nmax_pressure = { memory = 10, io = 100.0 }\n").unwrap();
        assert_eq!((config.unusable(), config.dispatch.max_pressure.memory), (None, Some(10.0)));
        let config = read("[dispatch]\nmax_load = 1.5\nmin_free_memory = \"2GiB\"\n").unwrap();
        assert_eq!((config.unusable(), config.dispatch.enabled), (None, true));
    }
}
