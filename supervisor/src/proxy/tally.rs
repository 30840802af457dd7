//! What one run has done with its proxy: requests and bytes, and the hosts that it was refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kernel::{Denied, Egress};
use policies::Policy;

use super::verdict::Refusal;

/// How many hosts that a run was refused are events. More are counted only: a worker can make up any number of names.
const NOTED: usize = 20;

/// The figures of one run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU64,
    denied: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    refused: Mutex<Refused>,
}

#[derive(Debug, Default)]
struct Refused {
    /// The hosts that are events.
    hosts: BTreeSet<String>,
    last: Option<Denied>,
}

impl Tally {
    /// Counts a request that is let through.
    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes from the worker.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes to the worker.
    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a request that is refused. Returns what is denied, and whether it is to be noted.
    pub(super) fn refuse(&self, policy: &Policy, refusal: &Refusal) -> (Denied, Note) {
        self.denied.fetch_add(1, Ordering::Relaxed);
        let denial = policy.host_denial(&refusal.target, &refusal.named);
        let denied = Denied {
            policy: policy.name().to_owned(),
            text: policy.tell(&denial),
            act: denial.act,
            line: denial.line,
        };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.last = Some(denied.clone());
        let is_new = refused.hosts.len() < NOTED && refused.hosts.insert(refusal.target.to_string());
        (denied, if is_new { Note::Yes } else { Note::No })
    }

    /// What was refused last.
    pub(super) fn last_denied(&self) -> Option<Denied> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// The figures as they are now.
    pub(super) fn figures(&self) -> Egress {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Egress {
            requests: read(&self.requests),
            denied: read(&self.denied),
            sent_bytes: read(&self.sent),
            received_bytes: read(&self.received),
        }
    }
}

/// Whether a refusal is to be an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Yes,
    /// The host is one already, or there are enough.
    No,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use policies::Target;

    use super::*;

    #[test]
    fn each_host_is_noted_once_and_only_so_many_of_them() {
        let text = "version = 1\n[network]\nmode = 'proxy'";
        let policy = Policy::from_toml(text, Path::new("agent.toml")).unwrap();
        let tally = Tally::default();
        let refuse = |name: &str| {
            let target = Target::parse(name, None).unwrap();
            tally.refuse(&policy, &Refusal { named: target.clone(), target })
        };
        let (denied, note) = refuse("a.example:443");
        assert_eq!((note, denied.policy.as_str()), (Note::Yes, "agent"));
        assert!(denied.text.contains("a.example:443") && denied.line.unwrap().contains("a.example:443"));
        assert_eq!(refuse("a.example:443").1, Note::No);
        let noted = (0..100).filter(|n| refuse(&format!("n{n}.example:443")).1 == Note::Yes).count();
        assert_eq!(noted, NOTED - 1);
        assert_eq!(tally.figures().denied, 102);
        assert!(tally.last_denied().unwrap().act.contains("n99.example"));
    }
}
