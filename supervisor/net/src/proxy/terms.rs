//! State shared by all connections of a run, and the reporting of refusals.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::SpentBudget;
use policies::{LaneHosts, Policy, SecretStores, Target};
use rustls::{ClientConfig, ServerConfig};

use super::authority::Authority;
use super::host_check::RefusedTarget;
use super::meter::Meter;
use super::reach::{Lookups, Unreached};
use super::tls::{TlsError, Trust};
use super::traffic::{BecomesEvent, HostAttempt, Traffic};

/// Callback for refusals that become events.
pub(super) type OnRefusal = Box<dyn Fn(kernel::Denied, &Target) + Send + Sync>;

/// Callback for spent budgets that become events.
pub(super) type OnSpentBudget = Box<dyn Fn(SpentBudget) + Send + Sync>;

/// State shared by all connections of a run.
pub(super) struct ProxyTerms {
    pub(super) policy: Policy,
    pub(super) lane: Option<LaneHosts>,
    pub(super) traffic: Arc<Traffic>,
    pub(super) lookups: Lookups,
    pub(super) keys: BrokerKeys,
    /// Authority that certifies the hosts of its brokers; none if the run was started without.
    pub(super) authority: Option<Authority>,
    pub(super) meter: Arc<Meter>,
    pub(super) note: OnRefusal,
    pub(super) note_budget: OnSpentBudget,
}

impl ProxyTerms {
    /// Records an attempt to connect to a host, unless its policy refused it.
    pub(super) fn note_attempt<T>(&self, target: &Target, reached: &Result<T, Unreached>) {
        if matches!(reached, Err(Unreached::Refused(_))) {
            return;
        }
        let (policy, lane) = (&self.policy, self.lane.as_ref());
        self.traffic.try_host(&HostAttempt { policy, lane, target, is_reached: reached.is_ok() });
    }

    /// Returns the TLS configuration that terminates a tunnel to a host; none if the host has no broker, so that the
    /// tunnel is passed through.
    pub(super) fn certified(&self, target: &Target) -> Option<Arc<ServerConfig>> {
        let authority = self.authority.as_ref()?;
        self.policy.brokers_of(target).next()?;
        match authority.certify(target) {
            Ok(config) => Some(config),
            Err(error) => {
                tracing::error!(host = %target, %error, "host_not_certified");
                None
            }
        }
    }
}

/// Secret stores and trust of a run's brokers.
#[derive(Clone, Debug)]
pub(super) struct BrokerKeys {
    pub(super) stores: SecretStores,
    pub(super) ca: Option<PathBuf>,
    pub(super) trust: Arc<Trust>,
}

impl BrokerKeys {
    /// Returns the TLS configuration of the brokers. Blocking.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        self.trust.config(self.ca.as_deref())
    }
}

/// Counts a refusal, and reports it if it is new. Returns its text.
pub(super) fn refused(terms: &ProxyTerms, refusal: &RefusedTarget) -> String {
    let (denied, is_new) = terms.traffic.refuse(&terms.policy, terms.lane.as_ref(), refusal);
    let text = denied.text.clone();
    if is_new == BecomesEvent::Yes {
        (terms.note)(denied, &refusal.target);
    }
    text
}

/// Text for a request that is not admitted because the use could not be read.
pub(super) const UNKNOWN: &str =
    "what the budgets have left cannot be read at the moment; the log of the supervisor says why; try again";

/// Seconds after which a request refused with [`UNKNOWN`] may be retried.
pub(super) const RETRY_AFTER: u16 = 1;

/// Counts a request refused for a spent budget, and reports it if it is new. Returns the text.
pub(super) fn over_budget(terms: &ProxyTerms, spent: &SpentBudget) -> String {
    let text = format!(
        "{}; finish with what there is, or block the task and say what is left to do",
        spent.to_text()
    );
    if terms.traffic.refuse_over_budget(spent) == BecomesEvent::Yes {
        (terms.note_budget)(spent.clone());
    }
    text
}
