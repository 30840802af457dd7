//! Reads `supervisor.toml`, the configuration of a root. An unknown key is an error that names its line.

pub mod a2a;
pub mod admission;
pub mod api;
mod approvals;
mod budgets;
pub mod dashboard;
pub mod definitions;
#[cfg(test)]
mod fuzz_tests;
mod missions;
pub mod notify;
mod prices;
mod reading;
mod run;
mod runtime;
pub mod settings;
pub mod telemetry;
pub mod tenants;
pub mod triage;
pub mod uid_map;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Bound, MissionLimits, Profile, Quotas};
use serde::Deserialize;

use self::a2a::A2aConfig;
use self::admission::{DispatchConfig, Limits, Pools};
use self::api::ApiConfig;
use self::approvals::ApprovalsConfig;
use self::budgets::BudgetsConfig;
use self::dashboard::DashboardConfig;
use self::missions::MissionConfig;
use self::notify::NotifyConfig;
use self::prices::PricesConfig;
use self::run::RunConfig;
use self::runtime::RuntimeConfig;
use self::telemetry::TelemetryConfig;
use self::tenants::Tenants;
use self::triage::TriageConfig;
use self::uid_map::{Range, UidMap};
use base::time::duration::WrittenDuration;

/// Configuration of one root. Every key has a safe default, so an absent file is like an empty one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub limits: Limits,
    /// Capacity of each pool.
    pub pools: Pools,
    pub dispatch: DispatchConfig,
    pub worker: WorkerConfig,
    /// Limits on the runtime of tenants' runs.
    pub runtime: RuntimeConfig,
    /// Limits on callers of the API.
    pub api: ApiConfig,
    /// Limits on the writes of a run and the storage of a tenant.
    quotas: QuotaConfig,
    missions: MissionConfig,
    /// Profiles that make proposals.
    pub triage: TriageConfig,
    /// Actions that need an approval.
    approvals: ApprovalsConfig,
    /// Limits on the use by runs, tenants and accounts.
    budgets: BudgetsConfig,
    prices: PricesConfig,
    /// Connections of brokers to hosts.
    pub proxy: ProxyConfig,
    pub review: ReviewConfig,
    /// Limits on checks.
    pub check: CheckConfig,
    /// Defaults of `supervisor run`.
    pub run: RunConfig,
    /// Destination of traces.
    pub telemetry: TelemetryConfig,
    /// Tenants, from files of their own.
    #[serde(skip)]
    pub tenants: Tenants,
    /// Channels for notifications.
    pub notify: NotifyConfig,
    /// Offers to other agents.
    pub a2a: A2aConfig,
    pub dashboard: DashboardConfig,
}

/// Connections of brokers to hosts. Reloaded on SIGHUP, for runs that begin afterwards.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxyConfig {
    /// File of PEM certificates that are trusted in addition to the host's.
    pub ca: Option<PathBuf>,
}

/// Limits on the checks of tasks. Reloaded on SIGHUP, for checks that begin afterwards. An absent value is taken from
/// the limits of the task's work.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckConfig {
    pub max_runtime: Option<WrittenDuration>,
    /// Bytes of output that are kept.
    pub log_cap: Option<u64>,
}

/// Default reviewer. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewConfig {
    /// Profile whose workers review; none for a person.
    pub profile: Option<Profile>,
}

/// Limits on the writes of a run and the storage of a tenant. Reloaded on SIGHUP. An absent limit has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaConfig {
    creates: Option<u64>,
    comments: Option<u64>,
    attachments: Option<u64>,
    attachment_bytes: Option<u64>,
    links: Option<u64>,
    holds: Option<u64>,
    notes: Option<u64>,
    text_bytes: Option<u64>,
    tenant_entries: Option<u64>,
    tenant_bytes: Option<u64>,
    tenant_events: Option<u64>,
    /// Longest hold that a worker may place on its account.
    longest_hold: Option<WrittenDuration>,
}

impl QuotaConfig {
    /// Returns the limits that are set.
    pub(super) fn limits(&self) -> impl Iterator<Item = (Bound, u64)> + use<> {
        let limits = [
            (Bound::Creates, self.creates),
            (Bound::Comments, self.comments),
            (Bound::Attachments, self.attachments),
            (Bound::AttachmentBytes, self.attachment_bytes),
            (Bound::Links, self.links),
            (Bound::Holds, self.holds),
            (Bound::Notes, self.notes),
            (Bound::TextBytes, self.text_bytes),
            (Bound::TenantEntries, self.tenant_entries),
            (Bound::TenantBytes, self.tenant_bytes),
            (Bound::TenantEvents, self.tenant_events),
        ];
        limits.into_iter().filter_map(|(bound, limit)| Some((bound, limit?)))
    }

    /// Returns the limits for the boards.
    fn quotas(&self) -> Quotas {
        let mut quotas =
            self.limits().fold(Quotas::default(), |quotas, (bound, limit)| quotas.with(bound, limit));
        if let Some(longest) = self.longest_hold {
            quotas.longest_hold = longest.duration();
        }
        quotas
    }
}

/// Options of a command line that override the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuning {
    /// Limit on concurrent workers, in addition to the file's cap.
    pub max_running: Option<usize>,
    /// Number of consecutive counted failures that block a task.
    pub failure_limit: Option<u32>,
}

impl Tuning {
    /// Returns the configuration with the options applied.
    pub fn applied(self, mut config: Config) -> Config {
        if let Some(most) = self.max_running {
            config.limits.max_running = Some(most.min(config.limits.total()));
        }
        if let Some(limit) = self.failure_limit.and_then(NonZeroU32::new) {
            config.worker.failure_limit = limit;
        }
        config
    }
}

/// Settings of workers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// First uid of the range from which root assigns uids to workers, one per task.
    pub first_uid: u32,
    /// Number of uids in the range.
    pub uid_count: u32,
    /// Directory of the host's ledger of worker uids, shared by all roots of the root user.
    pub uid_ledger: PathBuf,
    /// Runtime limit of tasks that set none.
    pub max_runtime: WrittenDuration,
    /// Longest time without progress, for workers whose profile and lane set no limit; none for no limit.
    pub idle_limit: Option<WrittenDuration>,
    /// Time from SIGTERM to SIGKILL.
    pub grace: WrittenDuration,
    /// Time that a worker may continue after its verdict.
    pub verdict_grace: WrittenDuration,
    /// Bytes of a run's output that are kept.
    pub log_cap: u64,
    /// Policy of tasks that name none.
    pub policy: String,
    /// Lane of profiles that name none.
    pub lane: Profile,
    /// Number of consecutive counted failures that block a task, unless the task sets `--max-retries`.
    pub failure_limit: NonZeroU32,
    /// Time that `drain` waits before it ends workers.
    pub drain: WrittenDuration,
    /// Age up to which a run is taken back when its task is linked behind another task.
    pub link_grace: WrittenDuration,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        let seconds = |s: &str| {
            s.parse::<WrittenDuration>().unwrap_or_else(|_| unreachable!("a literal duration parses"))
        };
        let uids = Range::fitting(&UidMap::own());
        WorkerConfig {
            first_uid: uids.first,
            uid_count: uids.count,
            uid_ledger: "/var/lib/supervisor-uids".into(),
            max_runtime: seconds("4h"),
            idle_limit: None,
            grace: seconds("5s"),
            verdict_grace: seconds("10s"),
            log_cap: 8 << 20,
            policy: "default".to_owned(),
            lane: "claude".parse().unwrap_or_else(|_| unreachable!("a literal name parses")),
            failure_limit: const { NonZeroU32::new(kernel::DEFAULT_FAILURE_LIMIT).unwrap() },
            drain: seconds("30s"),
            link_grace: seconds("30s"),
        }
    }
}

impl WorkerConfig {
    /// Returns the time from SIGTERM to SIGKILL.
    pub fn grace(&self) -> Duration {
        self.grace.duration()
    }
}

impl Config {
    /// Returns the limits for the boards.
    pub fn quotas(&self) -> Quotas {
        let mut quotas = self.quotas.quotas();
        quotas.mission = self.missions.limits();
        quotas.budgets = self.budgets.budgets();
        quotas.prices = self.prices.prices();
        quotas.approvals = self.approvals.rules();
        for (name, tenant) in self.tenants.iter() {
            for (bound, limit) in tenant.bounds() {
                quotas = quotas.with_tenant(&name, bound, limit);
            }
        }
        quotas
    }

    /// Returns the limits of missions.
    pub fn mission_limits(&self) -> MissionLimits {
        self.missions.limits()
    }

    /// Returns the reason why well-typed values are unusable, with a remedy.
    fn unusable(&self) -> Option<String> {
        let at_least_one = "set it to 1 or more, or leave it out";
        if self.limits.max_running == Some(0) {
            return Some(format!(
                "limits.max_running is 0, so nothing would ever run; {at_least_one}, or set enabled = false in [dispatch]"
            ));
        }
        let of_parts = self.dispatch.unusable().or_else(|| self.notify.unusable());
        if let Some(why) = of_parts.or_else(|| self.a2a.unusable()).or_else(|| self.dashboard.unusable()) {
            return Some(why);
        }
        if let Some(path) = self.proxy.ca.as_ref().filter(|path| !path.is_absolute()) {
            return Some(format!("proxy.ca = \"{}\" is not an absolute path", path.display()));
        }
        if let Some(name) = self.api.shut() {
            return Some(format!("api.{name} is 0, so every caller would be refused; {at_least_one}"));
        }
        let of_tenant = self.runtime.shut().map(|name| format!("runtime.{name}"));
        let of_all = self.worker.max_runtime.duration().is_zero().then(|| "worker.max_runtime".to_owned());
        let is_nothing = |limit: WrittenDuration| limit.duration().is_zero();
        let idle = self.worker.idle_limit.is_some_and(is_nothing).then(|| "worker.idle_limit".to_owned());
        if let Some(name) = of_all.or(of_tenant).or(idle) {
            return Some(format!("{name} is 0, so every run would be ended at once; {at_least_one}"));
        }
        if self.check.max_runtime.is_some_and(is_nothing) {
            return Some(format!(
                "check.max_runtime is 0, so every check would be ended at once; {at_least_one}"
            ));
        }
        if self.dispatch.max_deaths > 0 && is_nothing(self.dispatch.death_window) {
            return Some(format!(
                "dispatch.death_window is 0, so no two failures could fall within it; {at_least_one}, or set max_deaths = 0 to disable this breaker"
            ));
        }
        let WorkerConfig { first_uid, uid_count, .. } = self.worker;
        let end = u64::from(first_uid) + u64::from(uid_count);
        (first_uid < 1000 || uid_count < 64 || end > u64::from(u32::MAX)).then(|| {
            format!(
                "worker.first_uid = {first_uid} and worker.uid_count = {uid_count} are not a usable range of uids; start at 1000 or above, with 64 uids or more"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::failure::Failure;
    use base::paths::RootChoice;

    fn load(text: &str) -> Result<Config, Failure> {
        let dir = tempfile::tempdir().unwrap();
        let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        std::fs::write(root.config_file(), text).unwrap();
        Config::load(&root)
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let failure = load("[limits]\nmax_runing = 3\n").unwrap_err();
        assert!(failure.message.contains("supervisor.toml:2 (max_runing): unknown field"), "{failure}");
        assert_eq!(failure.message.lines().count(), 1, "{failure}");
    }

    #[test]
    fn a_limit_of_no_failures_is_refused() {
        assert_eq!(load("[worker]\nfailure_limit = 1\n").unwrap().worker.failure_limit.get(), 1);
        let failure = load("[worker]\nfailure_limit = 0\n").unwrap_err();
        assert!(
            failure.message.contains("supervisor.toml:2") && failure.message.contains("nonzero"),
            "{failure}"
        );
    }

    #[test]
    fn spans_and_caps_are_read() {
        let config = load("[limits]\nmax_running = 3\n[worker]\nmax_runtime = \"2h\"\ngrace = 7\n").unwrap();
        assert_eq!(config.limits.total(), 3);
        assert_eq!(config.worker.max_runtime.duration().as_secs(), 7200);
        assert_eq!(config.worker.grace().as_secs(), 7);
    }

    #[test]
    fn every_bound_is_configured_under_its_own_name() {
        for bound in Bound::ALL {
            let config = load(&format!("[quotas]\n{bound} = 7\nlongest_hold = \"2h\"\n")).unwrap();
            assert_eq!(config.quotas().limit(*bound), 7);
            assert_eq!(config.quotas().longest_hold.as_secs(), 7200);
        }
    }

    #[test]
    fn a_cap_of_nothing_is_refused() {
        assert!(load("[limits]\nmax_running = 0\n").is_err());
        for (text, name) in [
            ("[worker]\nmax_runtime = 0", "worker.max_runtime"),
            ("[runtime]\nper_tenant = 0", "runtime.per_tenant"),
            ("[worker]\nidle_limit = 0", "worker.idle_limit"),
            ("[check]\nmax_runtime = 0", "check.max_runtime"),
            ("[dispatch]\nmax_deaths = 5\ndeath_window = 0", "dispatch.death_window"),
        ] {
            let failure = load(text).unwrap_err();
            assert!(failure.message.contains(&format!("{name} is 0")), "{failure}");
        }
        assert!(load("[dispatch]\nmax_deaths = 0\ndeath_window = 0").is_ok(), "nothing is counted");
        let failure = load("[api]\nuploads = 0\n").unwrap_err();
        assert!(failure.message.contains("api.uploads"), "{failure}");
    }
}
