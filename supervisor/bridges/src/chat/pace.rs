//! Rate limits of chat senders: a number of messages per minute, then one refusal.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Period of the limit on messages.
const MINUTE: Duration = Duration::from_mins(1);
/// Interval between two refusals to an unknown sender.
const STRANGER: Duration = Duration::from_hours(1);
/// Limit on the unknown senders that are refused in this period; the rest are ignored.
const STRANGERS: usize = 20;

/// Handling of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Answer,
    /// Refused, with a reply.
    Refuse,
    Ignore,
}

/// Recent messages.
#[derive(Debug, Default)]
pub(super) struct Pace {
    said: BTreeMap<String, Lately>,
    strangers: VecDeque<(Instant, String)>,
}

#[derive(Debug, Default)]
struct Lately {
    at: VecDeque<Instant>,
    /// True once the rate limit has been reported.
    is_warned: bool,
}

impl Pace {
    /// Counts a message of a known sender. Their number is limited by the file.
    pub(super) fn of_sender(&mut self, id: &str, per_minute: u32, now: Instant) -> Turn {
        let lately = self.said.entry(id.to_owned()).or_default();
        while lately.at.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            lately.at.pop_front();
        }
        if lately.at.len() < per_minute as usize {
            lately.at.push_back(now);
            lately.is_warned = false;
            return Turn::Answer;
        }
        if std::mem::replace(&mut lately.is_warned, true) { Turn::Ignore } else { Turn::Refuse }
    }

    /// Counts a message of an unknown sender.
    pub(super) fn of_stranger(&mut self, id: &str, now: Instant) -> Turn {
        while self.strangers.front().is_some_and(|(at, _)| now.duration_since(*at) >= STRANGER) {
            self.strangers.pop_front();
        }
        if self.strangers.len() >= STRANGERS || self.strangers.iter().any(|(_, known)| known == id) {
            return Turn::Ignore;
        }
        self.strangers.push_back((now, id.chars().take(128).collect()));
        Turn::Refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_who_says_too_much_is_refused_once_and_heard_again_later_and_others_are_heard_meanwhile() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let turns: Vec<Turn> = (0..5).map(|_| pace.of_sender("a", 2, start)).collect();
        assert_eq!(turns, [Turn::Answer, Turn::Answer, Turn::Refuse, Turn::Ignore, Turn::Ignore]);
        assert_eq!(pace.of_sender("b", 2, start), Turn::Answer);
        assert_eq!(pace.of_sender("a", 2, start + MINUTE), Turn::Answer);
        assert_eq!(pace.said["a"].at.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn a_stranger_is_answered_once_in_a_while_and_many_are_not() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.of_stranger("0", start), Turn::Refuse);
        assert_eq!(pace.of_stranger("0", start), Turn::Ignore);
        let answered = (0..1000).filter(|n| pace.of_stranger(&n.to_string(), start) == Turn::Refuse).count();
        assert_eq!(answered + 1, STRANGERS);
        assert_eq!(pace.of_stranger("0", start + STRANGER), Turn::Refuse);
    }
}
