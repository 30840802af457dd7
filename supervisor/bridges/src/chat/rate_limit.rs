//! Rate limits of chat senders: a number of messages per minute, then one refusal.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Period of the limit on messages.
const MINUTE: Duration = Duration::from_mins(1);
/// Interval between two refusals to an unknown sender.
const UNKNOWN_INTERVAL: Duration = Duration::from_hours(1);
/// Limit on the unknown senders that are refused in this period; the rest are ignored.
const UNKNOWN_SENDERS: usize = 20;

/// Decision of the rate limit about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageFate {
    Answer,
    /// Refused, with a reply.
    Refuse,
    Ignore,
}

/// Recent messages.
#[derive(Debug, Default)]
pub(super) struct SenderRates {
    by_sender: BTreeMap<String, RecentMessages>,
    refused_unknown: VecDeque<(Instant, String)>,
}

#[derive(Debug, Default)]
struct RecentMessages {
    at: VecDeque<Instant>,
    /// True once the rate limit has been reported.
    is_warned: bool,
}

impl SenderRates {
    /// Counts a message of a known sender. Their number is limited by the file.
    pub(super) fn count_known(&mut self, id: &str, per_minute: u32, now: Instant) -> MessageFate {
        let recent = self.by_sender.entry(id.to_owned()).or_default();
        while recent.at.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            recent.at.pop_front();
        }
        if recent.at.len() < per_minute as usize {
            recent.at.push_back(now);
            recent.is_warned = false;
            return MessageFate::Answer;
        }
        if std::mem::replace(&mut recent.is_warned, true) { MessageFate::Ignore } else { MessageFate::Refuse }
    }

    /// Counts a message of an unknown sender.
    pub(super) fn count_unknown(&mut self, id: &str, now: Instant) -> MessageFate {
        while self.refused_unknown.front().is_some_and(|(at, _)| now.duration_since(*at) >= UNKNOWN_INTERVAL)
        {
            self.refused_unknown.pop_front();
        }
        if self.refused_unknown.len() >= UNKNOWN_SENDERS
            || self.refused_unknown.iter().any(|(_, known)| known == id)
        {
            return MessageFate::Ignore;
        }
        self.refused_unknown.push_back((now, id.chars().take(128).collect()));
        MessageFate::Refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_who_says_too_much_is_refused_once_and_heard_again_later_and_others_are_heard_meanwhile() {
        let (mut limit, start) = (SenderRates::default(), Instant::now());
        let fates: Vec<MessageFate> = (0..5).map(|_| limit.count_known("a", 2, start)).collect();
        assert_eq!(
            fates,
            [
                MessageFate::Answer,
                MessageFate::Answer,
                MessageFate::Refuse,
                MessageFate::Ignore,
                MessageFate::Ignore
            ]
        );
        assert_eq!(limit.count_known("b", 2, start), MessageFate::Answer);
        assert_eq!(limit.count_known("a", 2, start + MINUTE), MessageFate::Answer);
        assert_eq!(limit.by_sender["a"].at.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn a_stranger_is_answered_once_in_a_while_and_many_are_not() {
        let (mut limit, start) = (SenderRates::default(), Instant::now());
        assert_eq!(limit.count_unknown("0", start), MessageFate::Refuse);
        assert_eq!(limit.count_unknown("0", start), MessageFate::Ignore);
        let answered =
            (0..1000).filter(|n| limit.count_unknown(&n.to_string(), start) == MessageFate::Refuse).count();
        assert_eq!(answered + 1, UNKNOWN_SENDERS);
        assert_eq!(limit.count_unknown("0", start + UNKNOWN_INTERVAL), MessageFate::Refuse);
    }
}
