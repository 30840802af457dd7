//! Decides which messages are sent next and when, from the waiting and the recent ones. Does no input or output.
//!
//! Pauses that a service asks for hold for the whole channel and are not stored: a new daemon tries once, and is
//! asked to wait again. The shown time of the next try is the later time of the message and the channel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kernel::{Address, BoardName, DeliveryQueue, Tenant, Timestamp};

/// Messages of one tenant to one address, on one board.
pub(super) type Group = (BoardName, Address, Option<Tenant>);

/// Farthest plausible time of a try. A later one was planned before the clock was set back.
const FARTHEST: Duration = Duration::from_hours(12);
/// Period of the limit on messages.
const MINUTE: Duration = Duration::from_mins(1);

/// State of the channels beside their messages.
#[derive(Debug, Default)]
pub(super) struct Channels {
    by_name: BTreeMap<String, ChannelUse>,
    /// Turn in which each group was last served. The group with the lowest turn is next.
    turns: BTreeMap<Group, u64>,
    turn: u64,
}

/// State of a channel that decides when it may be used next.
#[derive(Debug, Default)]
struct ChannelUse {
    is_busy: bool,
    /// End of the pause that the service asked for.
    not_before: Option<Timestamp>,
    /// Times of the deliveries within the last minute.
    sent: VecDeque<Timestamp>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveryPlan {
    /// At most one group for each free channel.
    pub(super) now: Vec<(BoardName, DeliveryQueue)>,
    /// Time of the next delivery, if nothing else happens.
    pub(super) next: Option<Timestamp>,
    /// Channels that send nothing before a time, with that time.
    pub(super) resting: BTreeMap<String, Timestamp>,
}

impl Channels {
    /// Makes the plan. `per_minute` returns the limit of a channel; none for a channel that does not exist, which is
    /// tried anyway.
    pub(super) fn plan(
        &mut self,
        waiting: Vec<(BoardName, DeliveryQueue)>,
        per_minute: impl Fn(&str) -> Option<u32>,
        now: Timestamp,
    ) -> DeliveryPlan {
        let groups: BTreeSet<Group> = waiting.iter().map(|(board, queue)| group(board, queue)).collect();
        self.turns.retain(|group, _| groups.contains(group));
        let mut plan = DeliveryPlan::default();
        let mut first: BTreeMap<String, (BoardName, DeliveryQueue)> = BTreeMap::new();
        for (board, queue) in waiting {
            let channel_use = self.by_name.entry(queue.address.channel.clone()).or_default();
            if channel_use.is_busy {
                // The end of its delivery triggers another plan.
                continue;
            }
            let free_at = channel_use.free_at(per_minute(&queue.address.channel), now);
            if free_at > now {
                plan.resting.insert(queue.address.channel.clone(), free_at);
            }
            // A time too far ahead was set before the clock was set back.
            let due = if queue.due_at > now.after(FARTHEST) { now } else { queue.due_at };
            let at = due.max(free_at);
            if at > now {
                plan.next = Some(plan.next.map_or(at, |next| next.min(at)));
                continue;
            }
            let one = (board, queue);
            let turn = |(board, queue): &(BoardName, DeliveryQueue)| {
                self.turns.get(&group(board, queue)).copied().unwrap_or(0)
            };
            match first.get(&one.1.address.channel) {
                Some(before) if turn(before) <= turn(&one) => {}
                Some(_) | None => drop(first.insert(one.1.address.channel.clone(), one)),
            }
        }
        plan.now = first.into_values().collect();
        plan
    }

    /// Records the start of a delivery.
    pub(super) fn begin(&mut self, board: &BoardName, queue: &DeliveryQueue, now: Timestamp) {
        self.turn += 1;
        self.turns.insert(group(board, queue), self.turn);
        let channel_use = self.by_name.entry(queue.address.channel.clone()).or_default();
        channel_use.is_busy = true;
        channel_use.sent.push_back(now);
    }

    /// Records the end of a delivery, and the pause that the service asked for.
    pub(super) fn end(&mut self, channel: &str, pause: Option<Duration>, now: Timestamp) {
        let Some(channel_use) = self.by_name.get_mut(channel) else { return };
        channel_use.is_busy = false;
        channel_use.not_before = pause.map(|pause| now.after(pause));
    }

    /// Forgets the pauses, because the configuration has changed.
    pub(super) fn forget_pauses(&mut self) {
        for channel_use in self.by_name.values_mut() {
            channel_use.not_before = None;
        }
    }
}

impl ChannelUse {
    fn free_at(&mut self, per_minute: Option<u32>, now: Timestamp) -> Timestamp {
        while self.sent.front().is_some_and(|sent| sent.after(MINUTE) <= now || *sent > now) {
            self.sent.pop_front();
        }
        let most = per_minute.map_or(usize::MAX, |most| most as usize);
        let by_pace =
            (self.sent.len() >= most).then(|| self.sent.front().map(|sent| sent.after(MINUTE))).flatten();
        let pause = self.not_before.filter(|at| *at <= now.after(FARTHEST));
        by_pace.into_iter().chain(pause).max().unwrap_or(now)
    }
}

fn group(board: &BoardName, queue: &DeliveryQueue) -> Group {
    (board.clone(), queue.address.clone(), queue.tenant.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn queue(channel: &str, tenant: &str, due: i64) -> (BoardName, DeliveryQueue) {
        let address =
            Address { channel: channel.to_owned(), chat_id: String::new(), thread_id: String::new() };
        let tenant = Some(tenant.parse().unwrap());
        (BoardName::default(), DeliveryQueue { address, tenant, due_at: at(due), waiting: 1 })
    }

    fn names(plan: &DeliveryPlan) -> Vec<String> {
        plan.now.iter().map(|(_, queue)| queue.tenant.clone().unwrap().to_string()).collect()
    }

    #[test]
    fn the_tenants_of_a_channel_take_turns_and_one_delivery_is_under_way() {
        let mut channels = Channels::default();
        let waiting = || vec![queue("a", "x", 0), queue("a", "y", 0), queue("b", "z", 0)];
        let mut served = Vec::new();
        for second in 1..5 {
            let plan = channels.plan(waiting(), |_| Some(100), at(second));
            assert_eq!(plan.now.len(), 2);
            served.push(names(&plan)[0].clone());
            let (board, queue) = &plan.now[0];
            channels.begin(board, queue, at(second));
            let during = channels.plan(waiting(), |_| Some(100), at(second));
            assert_eq!(names(&during), ["z"], "the channel is busy");
            channels.end("a", None, at(second));
        }
        assert_eq!(served, ["x", "y", "x", "y"]);
    }

    #[test]
    fn what_is_not_due_is_waited_for_and_a_clock_that_was_set_back_keeps_nothing() {
        let mut channels = Channels::default();
        let plan = channels.plan(vec![queue("a", "x", 50), queue("b", "y", 30)], |_| None, at(10));
        assert_eq!((plan.now.len(), plan.next), (0, Some(at(30))));
        let plan = channels.plan(vec![queue("a", "x", 1_000_000)], |_| None, at(10));
        assert_eq!(names(&plan), ["x"]);
    }

    #[test]
    fn no_more_is_sent_in_a_minute_than_a_channel_takes_and_a_pause_of_the_service_holds() {
        let mut channels = Channels::default();
        let waiting = || vec![queue("a", "x", 0)];
        for second in 1..4 {
            let plan = channels.plan(waiting(), |_| Some(3), at(second));
            let (board, queue) = &plan.now[0];
            channels.begin(board, queue, at(second));
            channels.end("a", None, at(second));
        }
        let plan = channels.plan(waiting(), |_| Some(3), at(4));
        assert_eq!((plan.now.len(), plan.next), (0, Some(at(61))));
        assert_eq!(plan.resting, BTreeMap::from([("a".to_owned(), at(61))]));
        assert_eq!(channels.plan(waiting(), |_| Some(3), at(61)).now.len(), 1);
        channels.end("a", Some(Duration::from_secs(30)), at(61));
        assert_eq!(channels.plan(waiting(), |_| Some(3), at(62)).next, Some(at(91)));
        channels.forget_pauses();
        assert_eq!(channels.plan(waiting(), |_| Some(3), at(62)).now.len(), 1);
    }
}
