//! What all connections of a run share, and how one of them tells that something is refused.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::SpentBudget;
use policies::{LaneHosts, Policy, SecretStores, Target};
use rustls::{ClientConfig, ServerConfig};

use super::authority::Authority;
use super::meter::Meter;
use super::reach::Lookups;
use super::tally::{Note, Tally};
use super::tls::{TlsError, Trust};
use super::verdict::Refusal;

/// Hears of what is refused and is to be noted.
pub(super) type Refused = Box<dyn Fn(kernel::Denied, &Target) + Send + Sync>;

/// Hears of a spent budget that is to be noted.
pub(super) type OverBudget = Box<dyn Fn(SpentBudget) + Send + Sync>;

/// What all connections of a run share.
pub(super) struct Terms {
    pub(super) policy: Policy,
    pub(super) lane: Option<LaneHosts>,
    pub(super) tally: Arc<Tally>,
    pub(super) lookups: Lookups,
    pub(super) keys: Keys,
    /// Who certifies the hosts of its brokers towards the run; none where it was started without one.
    pub(super) authority: Option<Authority>,
    pub(super) meter: Arc<Meter>,
    pub(super) note: Refused,
    pub(super) note_budget: OverBudget,
}

impl Terms {
    /// Returns how a tunnel to a host is ended here; none where it is not: only the hosts of brokers are.
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

/// What the brokers of a run need: where secrets are, and whom they trust.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) stores: SecretStores,
    pub(super) ca: Option<PathBuf>,
    pub(super) trust: Arc<Trust>,
}

impl Keys {
    /// How hosts are asked over TLS. Blocking.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        self.trust.config(self.ca.as_deref())
    }
}

/// Counts a refusal, has it noted where it is new, and says it.
pub(super) fn refused(terms: &Terms, refusal: &Refusal) -> String {
    let (denied, is_new) = terms.tally.refuse(&terms.policy, terms.lane.as_ref(), refusal);
    let text = denied.text.clone();
    if is_new == Note::Yes {
        (terms.note)(denied, &refusal.target);
    }
    text
}

/// Says that a request is not let through because what is used could not be read.
pub(super) const UNKNOWN: &str =
    "what the budgets have left cannot be read at the moment; the log of the supervisor says why; try again";

/// After how many seconds a request that was answered with [`UNKNOWN`] may be tried again.
pub(super) const RETRY_AFTER: u16 = 1;

/// Counts a request that a spent budget refuses, has that noted where it is new, and says it.
pub(super) fn over_budget(terms: &Terms, spent: &SpentBudget) -> String {
    let text =
        format!("{}; finish with what there is, or block the task and say what is left to do", spent.told());
    if terms.tally.refuse_over_budget(spent) == Note::Yes {
        (terms.note_budget)(spent.clone());
    }
    text
}
