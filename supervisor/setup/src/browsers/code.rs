//! One-time codes of the dashboard's sign-in links, kept in memory for five minutes.

use std::time::{Duration, Instant};

use super::session::Owner;
use super::{digest, secret};
use base::exit::Code;
use base::failure::Failure;

pub const LIFETIME: Duration = Duration::from_mins(5);
/// Limit on the unused links of one owner. A new link replaces the oldest.
const EACH: usize = 4;
/// Limit on the unused links of all owners.
const ALL: usize = 64;

/// Session that a link offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Owner of the future session.
    pub owner: Owner,
    /// Browsers that may follow the link.
    pub follower: Follower,
}

/// Browsers that may follow a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follower {
    /// A browser of any user of the host.
    Any,
    /// A browser of this Unix user.
    Only(u32),
}

#[derive(Debug)]
struct Pending {
    digest: [u8; 32],
    offer: Offer,
    until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Codes(Vec<Pending>);

impl Codes {
    /// Returns a new code for an offer. Only the digest of the code is kept.
    ///
    /// # Errors
    /// [`Code::Throttled`] if [`ALL`] links are unused.
    pub(super) fn add(&mut self, offer: Offer, now: Instant) -> Result<String, Failure> {
        self.tidy(now);
        let of_owner = |pending: &Pending| pending.offer.owner == offer.owner;
        if self.0.iter().filter(|pending| of_owner(pending)).count() >= EACH
            && let Some(oldest) = self.0.iter().position(of_owner)
        {
            self.0.remove(oldest);
        }
        if self.0.len() >= ALL && !offer.owner.is_member {
            // The links of tenants' users must not block an operator, so the oldest of these is dropped.
            if let Some(oldest) = self.0.iter().position(|pending| pending.offer.owner.is_member) {
                self.0.remove(oldest);
            }
        }
        if self.0.len() >= ALL {
            let full = format!("{ALL} links wait to be followed, the most that there may be");
            return Err(Failure::new(Code::Throttled, full).hint("try again in 5 minutes"));
        }
        let code = secret();
        self.0.push(Pending { digest: digest(&code), offer, until: now + LIFETIME });
        Ok(code)
    }

    /// Returns the offer of a code, unless the code was used or has expired.
    pub(super) fn find(&self, code: &str, now: Instant) -> Option<Offer> {
        let digest = digest(code);
        let matches_code = |pending: &&Pending| pending.digest == digest && now < pending.until;
        self.0.iter().find(matches_code).map(|pending| pending.offer.clone())
    }

    /// Invalidates a code.
    pub(super) fn take(&mut self, code: &str) {
        let digest = digest(code);
        self.0.retain(|pending| pending.digest != digest);
    }

    /// Removes the codes of the owners that match.
    pub(super) fn forget(&mut self, is_of_owner: impl Fn(&Owner) -> bool) {
        self.0.retain(|pending| !is_of_owner(&pending.offer.owner));
    }

    /// Removes expired codes. Returns the time until the next code expires; none if there are no codes.
    pub(super) fn tidy(&mut self, now: Instant) -> Option<Duration> {
        self.0.retain(|pending| now < pending.until);
        self.0.iter().map(|pending| pending.until - now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(name: &str) -> Offer {
        let is_member = name.starts_with("user-");
        let owner = Owner { name: name.to_owned(), uid: Some(7), tenant: None, is_member };
        Offer { owner, follower: Follower::Any }
    }

    #[test]
    fn a_code_is_good_once_and_for_five_minutes() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        let code = codes.add(offer("ada"), now).unwrap();
        assert!(codes.find("", now).is_none() && codes.find(&code[1..], now).is_none());
        assert!(codes.find(&code, now + LIFETIME.saturating_sub(Duration::from_secs(1))).is_some());
        assert!(codes.find(&code, now + LIFETIME).is_none(), "too old");
        codes.take(&code);
        assert!(codes.find(&code, now).is_none(), "used");
    }

    #[test]
    fn links_are_bounded_for_each_owner_and_in_all() {
        let (mut codes, now) = (Codes::default(), Instant::now());
        let own: Vec<String> = (0..=EACH).map(|_| codes.add(offer("ada"), now).unwrap()).collect();
        assert!(codes.find(&own[0], now).is_none() && codes.find(&own[1], now).is_some());
        let refused = (0..ALL).find_map(|at| codes.add(offer(&format!("user-{at}")), now).err());
        assert_eq!(refused.unwrap().code, Code::Throttled);
        assert!(codes.find(&own[1], now).is_some(), "others do not take them away");
        assert!(
            codes.add(offer("ada"), now).is_ok() && codes.add(offer("bea"), now).is_ok(),
            "and keep no operator out"
        );
        assert!(codes.add(offer("eve"), now + LIFETIME).is_ok(), "they end by themselves");
    }
}
