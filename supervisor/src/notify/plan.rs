//! What is sent next, and when: pure, of what waits and of what was sent before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kernel::{Address, BoardName, Crowd, Tenant, Timestamp};

/// The messages of one tenant to one address, on one board.
pub(super) type Group = (BoardName, Address, Option<Tenant>);

/// How far the clock of the host may have been set back: a try that is due later than this was planned by another clock.
const FARTHEST: Duration = Duration::from_hours(12);
/// The time in which messages are counted.
const MINUTE: Duration = Duration::from_mins(1);

/// What is known of the channels beside their rows.
#[derive(Debug, Default)]
pub(super) struct Channels {
    by_name: BTreeMap<String, Pace>,
    /// When each group was served last, as a count: who waited longest is next.
    turns: BTreeMap<Group, u64>,
    turn: u64,
}

/// How often a channel was used lately.
#[derive(Debug, Default)]
struct Pace {
    is_busy: bool,
    /// The service asked for so long a pause.
    not_before: Option<Timestamp>,
    /// When it was used within the last minute: one message at a time, and no more than it may send in that time.
    sent: VecDeque<Timestamp>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// At most one group of each channel that is free.
    pub(super) now: Vec<(BoardName, Crowd)>,
    /// When there is more to do, if nothing else happens.
    pub(super) next: Option<Timestamp>,
    /// The channels over which nothing is sent before a time, whatever waits.
    pub(super) resting: BTreeMap<String, Timestamp>,
}

impl Channels {
    /// Decides. `per_minute` is how much a channel may send; none for one that does not exist, which is tried all the same.
    pub(super) fn plan(
        &mut self,
        waiting: Vec<(BoardName, Crowd)>,
        per_minute: impl Fn(&str) -> Option<u32>,
        now: Timestamp,
    ) -> Plan {
        let groups: BTreeSet<Group> = waiting.iter().map(group).collect();
        self.turns.retain(|group, _| groups.contains(group));
        let mut plan = Plan::default();
        let mut first: BTreeMap<String, (BoardName, Crowd)> = BTreeMap::new();
        for (board, crowd) in waiting {
            let pace = self.by_name.entry(crowd.address.channel.clone()).or_default();
            if pace.is_busy {
                // The end of the delivery is looked at again.
                continue;
            }
            let free_at = pace.free_at(per_minute(&crowd.address.channel), now);
            if free_at > now {
                plan.resting.insert(crowd.address.channel.clone(), free_at);
            }
            let due = if crowd.due_at > now.after(FARTHEST) { now } else { crowd.due_at };
            let at = due.max(free_at);
            if at > now {
                plan.next = Some(plan.next.map_or(at, |next| next.min(at)));
                continue;
            }
            let one = (board, crowd);
            let turn = |one: &(BoardName, Crowd)| self.turns.get(&group(one)).copied().unwrap_or(0);
            match first.get(&one.1.address.channel) {
                Some(before) if turn(before) <= turn(&one) => {}
                Some(_) | None => drop(first.insert(one.1.address.channel.clone(), one)),
            }
        }
        plan.now = first.into_values().collect();
        plan
    }

    /// A delivery has begun.
    pub(super) fn begin(&mut self, one: &(BoardName, Crowd), now: Timestamp) {
        self.turn += 1;
        self.turns.insert(group(one), self.turn);
        let pace = self.by_name.entry(one.1.address.channel.clone()).or_default();
        pace.is_busy = true;
        pace.sent.push_back(now);
    }

    /// A delivery has ended; the service may have asked for a pause.
    pub(super) fn end(&mut self, channel: &str, pause: Option<Duration>, now: Timestamp) {
        let Some(pace) = self.by_name.get_mut(channel) else { return };
        pace.is_busy = false;
        pace.not_before = pause.map(|pause| now.after(pause));
    }

    /// The configuration has changed: what a service asked for before is forgotten.
    pub(super) fn forget_pauses(&mut self) {
        for pace in self.by_name.values_mut() {
            pace.not_before = None;
        }
    }
}

impl Pace {
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

fn group((board, crowd): &(BoardName, Crowd)) -> Group {
    (board.clone(), crowd.address.clone(), crowd.tenant.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn crowd(channel: &str, tenant: &str, due: i64) -> (BoardName, Crowd) {
        let address =
            Address { channel: channel.to_owned(), chat_id: String::new(), thread_id: String::new() };
        let tenant = Some(tenant.parse().unwrap());
        (BoardName::default(), Crowd { address, tenant, due_at: at(due), waiting: 1 })
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.now.iter().map(|(_, crowd)| crowd.tenant.clone().unwrap().to_string()).collect()
    }

    #[test]
    fn the_tenants_of_a_channel_take_turns_and_one_delivery_is_under_way() {
        let mut channels = Channels::default();
        let waiting = || vec![crowd("a", "x", 0), crowd("a", "y", 0), crowd("b", "z", 0)];
        let mut served = Vec::new();
        for second in 1..5 {
            let plan = channels.plan(waiting(), |_| Some(100), at(second));
            assert_eq!(plan.now.len(), 2);
            served.push(names(&plan)[0].clone());
            channels.begin(&plan.now[0], at(second));
            let during = channels.plan(waiting(), |_| Some(100), at(second));
            assert_eq!(names(&during), ["z"], "the channel is busy");
            channels.end("a", None, at(second));
        }
        assert_eq!(served, ["x", "y", "x", "y"]);
    }

    #[test]
    fn what_is_not_due_is_waited_for_and_a_clock_that_was_set_back_keeps_nothing() {
        let mut channels = Channels::default();
        let plan = channels.plan(vec![crowd("a", "x", 50), crowd("b", "y", 30)], |_| None, at(10));
        assert_eq!((plan.now.len(), plan.next), (0, Some(at(30))));
        let plan = channels.plan(vec![crowd("a", "x", 1_000_000)], |_| None, at(10));
        assert_eq!(names(&plan), ["x"]);
    }

    #[test]
    fn no_more_is_sent_in_a_minute_than_a_channel_takes_and_a_pause_of_the_service_holds() {
        let mut channels = Channels::default();
        let waiting = || vec![crowd("a", "x", 0)];
        for second in 1..4 {
            let plan = channels.plan(waiting(), |_| Some(3), at(second));
            channels.begin(&plan.now[0], at(second));
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
