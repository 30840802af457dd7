//! Facts of a run by which the daemon follows its shim.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shim::rundir::RunSpec;

use super::heard_runs::Entry;
use setup::lanes::EndingRules;

/// Facts of a run that this daemon has launched. For a run of an earlier daemon, they are read from its directory.
#[derive(Debug)]
pub(crate) struct Followed {
    heard: Entry,
    /// Rules by which the output of the run is read.
    pub(super) rules: Arc<EndingRules>,
    /// True if its agent takes messages.
    pub(super) takes_messages: bool,
    /// Time at which its shim has to end it; none without a deadline.
    pub(super) due_us: Option<u64>,
    /// True once the owner loop knows that the command has started.
    is_start_told: AtomicBool,
}

impl Followed {
    /// Takes the facts of a run from its spec and from the rules of its lane. `heard` is its entry for notifications.
    pub(super) fn new(spec: &RunSpec, rules: &EndingRules, heard: Entry) -> Self {
        Followed {
            heard,
            rules: Arc::new(rules.clone()),
            takes_messages: takes_messages(spec),
            due_us: due_us(spec),
            is_start_told: AtomicBool::new(false),
        }
    }

    /// Waits until the shim tells that the command has started. Cancel-safe.
    pub(super) async fn started(&self) {
        self.heard.started().await;
    }

    /// Notes that the owner loop knows of the start of the command.
    pub(super) fn note_start_told(&self) {
        self.is_start_told.store(true, Ordering::Relaxed);
    }

    /// Returns true if the owner loop knows of the start of the command.
    pub(super) fn is_start_told(&self) -> bool {
        self.is_start_told.load(Ordering::Relaxed)
    }
}

/// Returns true if the agent of a run takes messages.
pub(super) fn takes_messages(spec: &RunSpec) -> bool {
    spec.conversation.is_some()
}

/// Returns the time of SIGKILL for a run at its deadline, in microseconds of `CLOCK_BOOTTIME`; none without a deadline.
pub(super) fn due_us(spec: &RunSpec) -> Option<u64> {
    spec.deadline_us.map(|deadline| deadline.saturating_add(spec.grace_ms.saturating_mul(1000)))
}
