//! Identifies the senders of A2A requests by their bearer tokens, and limits their requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use kernel::Actor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use api::hash_token;
use service::Service;
use setup::config::Config;
use setup::config::a2a::A2aSender;

/// Limit on the requests in progress of one sender, streams included.
const AT_ONCE: usize = 16;
/// Period of the limit on requests.
const WINDOW: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
pub(super) struct A2aCaller {
    pub(super) name: String,
    pub(super) terms: A2aSender,
}

impl A2aCaller {
    /// Returns the name by which the tasks of the sender are recognised.
    pub(super) fn mark(&self) -> String {
        format!("a2a:{}", self.name)
    }

    /// Returns the sender as a user of its tenant.
    pub(super) fn actor(&self) -> Actor {
        Actor { tenant: Some(self.terms.tenant.clone()), ..Actor::person(format!("a2a-{}", self.name)) }
    }
}

/// Reason for which the request of a sender is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SenderRefusal {
    /// The token is missing or unknown.
    Unknown,
    /// The sender has sent too many requests in a minute, or has too many in progress. The value is the pause before
    /// another try.
    TooMuch(Duration),
}

/// Request counters of a sender.
#[derive(Debug)]
struct SenderUsage {
    begun: Instant,
    requests: u32,
    permits: Arc<Semaphore>,
}

/// Digests of the senders' tokens, for one configuration. They are read again for each new configuration, so a changed
/// secret applies after a reload.
#[derive(Debug)]
struct SenderTokens {
    config: Arc<Config>,
    digests: Vec<([u8; 32], String)>,
}

#[derive(Debug, Default)]
pub(super) struct Senders {
    tokens: Mutex<Option<SenderTokens>>,
    counts: Mutex<HashMap<String, SenderUsage>>,
}

impl Senders {
    /// Identifies the sender of a request by its headers and counts the request. The returned permit counts it as in progress
    /// until it is dropped.
    pub(super) fn admit(
        &self,
        service: &Service,
        headers: &HeaderMap,
    ) -> Result<(A2aCaller, OwnedSemaphorePermit), SenderRefusal> {
        let shown = headers.get(hyper::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = |text: &str| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| hash_token(token.trim()))
        };
        let digest = shown.and_then(bearer).ok_or(SenderRefusal::Unknown)?;
        let config = service.config();
        let name = self.name_of(service, &config, &digest).ok_or(SenderRefusal::Unknown)?;
        let terms = config.a2a.senders.get(&name).cloned().ok_or(SenderRefusal::Unknown)?;
        let room = self.count(&name, config.a2a.per_minute)?;
        Ok((A2aCaller { name, terms }, room))
    }

    fn name_of(&self, service: &Service, config: &Arc<Config>, digest: &[u8; 32]) -> Option<String> {
        let mut known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.config, config));
        if !is_fresh {
            let stores = service.root().secret_stores();
            let read = |(name, sender): (&String, &A2aSender)| match sender
                .secret
                .fetch(&format!("a2a sender {name}"), &stores)
            {
                Ok(value) => {
                    let text = String::from_utf8_lossy(value.bytes()).trim().to_owned();
                    (!text.is_empty()).then(|| (hash_token(&text), name.clone()))
                }
                Err(error) => {
                    tracing::warn!(sender = name.as_str(), %error, "a2a_sender_without_token");
                    None
                }
            };
            let digests = config.a2a.senders.iter().filter_map(read).collect();
            *known = Some(SenderTokens { config: Arc::clone(config), digests });
        }
        // The digests of tokens are compared, so that the time of the comparison reveals nothing about a token.
        known.as_ref()?.digests.iter().find(|(own, _)| own == digest).map(|(_, name)| name.clone())
    }

    fn count(&self, name: &str, per_minute: u32) -> Result<OwnedSemaphorePermit, SenderRefusal> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh =
            || SenderUsage { begun: Instant::now(), requests: 0, permits: Arc::new(Semaphore::new(AT_ONCE)) };
        // The names come from the configuration, so they are few.
        let count = counts.entry(name.to_owned()).or_insert_with(fresh);
        let elapsed = count.begun.elapsed();
        if elapsed >= WINDOW {
            (count.begun, count.requests) = (Instant::now(), 0);
        }
        if count.requests >= per_minute {
            return Err(SenderRefusal::TooMuch(WINDOW.saturating_sub(elapsed)));
        }
        count.requests += 1;
        Arc::clone(&count.permits)
            .try_acquire_owned()
            .map_err(|_| SenderRefusal::TooMuch(Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_its_share_of_requests_and_no_more_at_once() {
        let senders = Senders::default();
        let held: Vec<_> = (0..AT_ONCE).map(|_| senders.count("a", 100).unwrap()).collect();
        assert_eq!(senders.count("a", 100).unwrap_err(), SenderRefusal::TooMuch(Duration::from_secs(1)));
        assert!(senders.count("b", 100).is_ok(), "another one does not wait");
        drop(held);
        assert!(senders.count("a", 100).is_ok());
        assert!(matches!(senders.count("a", 10).unwrap_err(), SenderRefusal::TooMuch(_)), "of this minute");
    }
}
