//! Statistics of one run's proxy: requests and bytes for each host, and refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Clock as _, Denied, Egress, HostEgress, SpentBudget, SystemClock, Timestamp};
use policies::{LaneHosts, Policy, Target};
use tokio::sync::Notify;

use super::verdict::Refusal;
use setup::lanes::{Answer, Contact, OwnRefusal};

/// Limit on the refused hosts that become events. More are only counted: a worker can invent any number of names.
const NOTED: usize = 20;
/// Limit on the hosts with statistics of their own. Others are added up together: a worker can reach any number of
/// names of a domain.
const NAMED: usize = 32;
/// Name for those others.
const OTHERS: &str = "others";

/// Statistics of one run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    lines: Mutex<BTreeMap<String, Arc<Line>>>,
    denied: AtomicU64,
    over_budget: AtomicU64,
    refused: Mutex<Refused>,
    latest: Mutex<Latest>,
    /// Notifies the task that stores the statistics.
    pub(super) changed: Notify,
}

/// Statistics of one host.
#[derive(Debug, Default)]
pub(super) struct Line {
    requests: AtomicU64,
    throttled: AtomicU64,
    unauthorized: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Time at which the host accepts requests again, by its latest response.
    opens: Mutex<Option<Timestamp>>,
    /// Latest response, if a broker made the request.
    last: Mutex<Option<Last>>,
    /// Time of the latest bytes from the host, if it is a service of the run's lane.
    heard: Mutex<Heard>,
}

/// Traffic of a host inside its connections, whose replies a tunnel hides.
#[derive(Clone, Copy, Debug, Default)]
enum Heard {
    /// The host is no service of the lane, as far as is known.
    #[default]
    Unwatched,
    Service(Instant),
}

/// Response of a host.
#[derive(Clone, Copy, Debug)]
struct Last {
    status: u16,
    opens: Option<Timestamp>,
    at: Instant,
    refusing_since: Option<Instant>,
    well_at: Option<Instant>,
    is_login_refused: bool,
}

/// Time after a refusal, or after the time that it named, within which another refusal belongs to the same series.
/// Agents wait a minute at most.
const AGAIN: Duration = Duration::from_mins(2);

impl Last {
    /// Returns the start of the series of refusals, if a refusal at this time continues it.
    fn refusing_until(self, at: Instant) -> Option<Instant> {
        let is_same = at.duration_since(self.at) <= AGAIN
            || self.opens.is_some_and(|opens| SystemClock.now().since(opens) <= AGAIN);
        self.refusing_since.filter(|_| is_same)
    }
}

/// Times of the latest requests, by their result.
#[derive(Debug, Default)]
struct Latest {
    /// Connection to a service of the run's lane.
    reached: Option<Instant>,
    /// Attempt to connect to a service of the run's lane, with or without success.
    tried: Option<Instant>,
    /// Attempt to connect to any host.
    tried_any: Option<Instant>,
    /// Reply of the proxy itself.
    own: Option<Instant>,
    /// Refusal of any host by the policy.
    denied: Option<Instant>,
    /// Refusal of a service of the run's lane by the policy.
    barred: Option<Instant>,
}

impl Latest {
    /// `heard` is the time of the latest bytes from a service of the run's lane.
    fn own_refusal(&self, heard: Option<Instant>) -> OwnRefusal {
        let is_barred = self.barred > self.tried;
        let is_denied_all = self.denied.is_some() && self.tried_any.is_none();
        if is_barred || is_denied_all {
            OwnRefusal::Service
        } else if self.own > self.reached.max(heard) {
            OwnRefusal::AnyHost
        } else {
            OwnRefusal::None
        }
    }
}

#[derive(Debug, Default)]
struct Refused {
    /// Hosts that became events.
    hosts: BTreeSet<String>,
    /// Keys of spent budgets that became events.
    budgets: BTreeSet<String>,
    last: Option<DeniedHost>,
}

/// Attempt of a run's proxy to connect to a host.
pub(super) struct Tried<'a> {
    pub(super) policy: &'a Policy,
    pub(super) lane: Option<&'a LaneHosts>,
    pub(super) target: &'a Target,
    /// True if the host was reached.
    pub(super) is_reached: bool,
}

/// A host that a run's proxy refused.
#[derive(Clone, Debug)]
pub struct DeniedHost {
    pub denied: Denied,
    pub at: Timestamp,
    /// True if the run's lane names it as its service.
    pub is_of_lane: bool,
}

impl Line {
    /// Counts an admitted request.
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
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Heard::Service(at) = &mut *heard {
            *at = Instant::now();
        }
    }

    /// Returns the time of the latest bytes from the host, if it is a service of the run's lane.
    fn heard(&self) -> Option<Instant> {
        match *self.heard.lock().unwrap_or_else(PoisonError::into_inner) {
            Heard::Unwatched => None,
            Heard::Service(at) => Some(at),
        }
    }

    /// Counts a response. `opens` is the time at which the host accepts requests again, if the response names one.
    pub(super) fn answered(&self, status: u16, opens: Option<Timestamp>) {
        if opens.is_some() || (200..400).contains(&status) {
            *self.opens.lock().unwrap_or_else(PoisonError::into_inner) = opens;
        }
        self.remember(status, opens);
        match status {
            429 => drop(self.throttled.fetch_add(1, Ordering::Relaxed)),
            401 | 403 => drop(self.unauthorized.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    /// Stores the latest response. A refusal of the request alone, such as an unknown path, neither starts nor ends a
    /// series of refusals.
    fn remember(&self, status: u16, opens: Option<Timestamp>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, well_at) = (Instant::now(), last.and_then(|last| last.well_at));
        let before = last.and_then(|last| last.refusing_until(at));
        let (refusing_since, well_at) = match status {
            401 | 403 | 408 | 429 | 500.. => (before.or(Some(at)), well_at),
            400..500 => (before, well_at),
            _ => (None, Some(at)),
        };
        let is_login_refused = match status {
            401 | 403 => true,
            400.. => last.is_some_and(|last| last.is_login_refused),
            _ => false,
        };
        *last = Some(Last { status, opens, at, refusing_since, well_at, is_login_refused });
    }

    fn add(&self, counted: &HostEgress) {
        self.requests.fetch_add(counted.requests, Ordering::Relaxed);
        self.throttled.fetch_add(counted.throttled, Ordering::Relaxed);
        self.unauthorized.fetch_add(counted.unauthorized, Ordering::Relaxed);
        self.sent.fetch_add(counted.sent_bytes, Ordering::Relaxed);
        self.received.fetch_add(counted.received_bytes, Ordering::Relaxed);
    }

    fn figures(&self, host: &str) -> HostEgress {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        HostEgress {
            host: host.to_owned(),
            requests: read(&self.requests),
            throttled: read(&self.throttled),
            unauthorized: read(&self.unauthorized),
            sent_bytes: read(&self.sent),
            received_bytes: read(&self.received),
        }
    }
}

impl Tally {
    /// Adds the statistics that an earlier daemon recorded for the run.
    pub(super) fn resume(&self, counted: &Egress) {
        for host in &counted.hosts {
            self.line(&host.host).add(host);
        }
        self.denied.fetch_add(counted.denied, Ordering::Relaxed);
        self.over_budget.fetch_add(counted.over_budget, Ordering::Relaxed);
        // The order of the former requests is not recorded: a refusal counts as the latest of them.
        let mut latest = self.latest();
        let now = Some(Instant::now());
        if counted.requests > 0 {
            latest.tried_any = latest.tried_any.or(now);
        }
        if counted.denied > 0 && latest.tried.is_none() {
            (latest.denied, latest.own) = (now, now);
        }
    }

    /// Returns the contact of a run of which only the recorded statistics are left.
    pub(super) fn recorded(counted: &Egress) -> Contact {
        let tally = Tally::default();
        tally.resume(counted);
        tally.contact()
    }

    /// Returns the statistics of a host.
    pub(super) fn line(&self, host: &str) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if lines.len() < NAMED || lines.contains_key(host) { host } else { OTHERS };
        Arc::clone(lines.entry(name.to_owned()).or_default())
    }

    /// Counts a request that is refused for a spent budget. Returns `Yes` if the refusal becomes an event.
    pub(super) fn refuse_over_budget(&self, spent: &SpentBudget) -> Note {
        self.over_budget.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.budgets.insert(spent.key.clone()) { Note::Yes } else { Note::No }
    }

    /// Counts a refused request. Returns the denial, and `Yes` if it becomes an event.
    pub(super) fn refuse(
        &self,
        policy: &Policy,
        lane: Option<&LaneHosts>,
        refusal: &Refusal,
    ) -> (Denied, Note) {
        self.denied.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        let denial = policy.host_denial(&refusal.target, &refusal.named, lane);
        let denied = Denied {
            policy: policy.name().to_owned(),
            text: policy.tell(&denial),
            act: denial.act,
            line: denial.line,
        };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_lane = is_service(policy, lane, &refusal.target);
        self.answer_itself();
        let mut latest = self.latest();
        latest.denied = latest.own;
        if is_of_lane {
            latest.barred = latest.own;
        }
        drop(latest);
        refused.last = Some(DeniedHost { denied: denied.clone(), at: SystemClock.now(), is_of_lane });
        let is_new = refused.hosts.len() < NOTED && refused.hosts.insert(refusal.target.to_string());
        (denied, if is_new { Note::Yes } else { Note::No })
    }

    /// Records an attempt to connect to a host that the policy permits.
    pub(super) fn try_host(&self, host: &Tried<'_>) {
        let (mut latest, now) = (self.latest(), Some(Instant::now()));
        latest.tried_any = now;
        // A lane without hosts has its service among those of the policy.
        let is_any = host.lane.is_none_or(|lane| lane.hosts.is_empty());
        if is_any || is_service(host.policy, host.lane, host.target) {
            latest.tried = now;
            if host.is_reached {
                latest.reached = now;
                let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                // Beyond the limit of hosts, the traffic of this one is not known by itself.
                if let (Some(line), Some(now)) = (lines.get(&host.target.to_string()), now) {
                    *line.heard.lock().unwrap_or_else(PoisonError::into_inner) = Heard::Service(now);
                }
            }
        }
    }

    /// Records a reply of the proxy itself, which a program may take for the reply of its service.
    pub(super) fn answer_itself(&self) {
        self.latest().own = Some(Instant::now());
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the contact of the run with its services.
    pub(super) fn contact(&self) -> Contact {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = lines.values().filter_map(|line| line.heard()).max();
        drop(lines);
        Contact { answers: self.answers(), refused: self.latest().own_refusal(heard) }
    }

    /// Returns the latest time at which a refusing host accepts requests again, as far as the hosts named times.
    pub(super) fn opens(&self) -> Option<Timestamp> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let opens = |line: &Arc<Line>| *line.opens.lock().unwrap_or_else(PoisonError::into_inner);
        lines.values().filter_map(opens).max()
    }

    /// Returns the latest response of each host that a broker contacted.
    fn answers(&self) -> Vec<Answer> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = |(host, line): (&String, &Arc<Line>)| {
            let Last { status, opens, at, refusing_since, well_at, is_login_refused } =
                (*line.last.lock().unwrap_or_else(PoisonError::into_inner))?;
            let host = host.clone();
            Some(Answer { host, status, opens, at, refusing_since, well_at, is_login_refused })
        };
        lines.iter().filter_map(answer).collect()
    }

    /// Returns the latest refusal.
    pub(super) fn last_denied(&self) -> Option<DeniedHost> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// Returns the number of admitted requests, and their bytes in both directions.
    pub(super) fn passed(&self) -> (u64, u64) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        lines.values().fold((0, 0), |(requests, bytes), line| {
            let passed = read(&line.sent).saturating_add(read(&line.received));
            (requests.saturating_add(read(&line.requests)), bytes.saturating_add(passed))
        })
    }

    /// Returns the present statistics.
    pub(super) fn figures(&self) -> Egress {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts: Vec<HostEgress> = lines.iter().map(|(host, line)| line.figures(host)).collect();
        drop(lines);
        let sum = |of: fn(&HostEgress) -> u64| hosts.iter().map(of).fold(0, u64::saturating_add);
        Egress {
            requests: sum(|host| host.requests),
            denied: self.denied.load(Ordering::Relaxed),
            over_budget: self.over_budget.load(Ordering::Relaxed),
            sent_bytes: sum(|host| host.sent_bytes),
            received_bytes: sum(|host| host.received_bytes),
            hosts,
        }
    }
}

/// True for a service of the run's lane: a host that the lane names, or that has a broker.
fn is_service(policy: &Policy, lane: Option<&LaneHosts>, target: &Target) -> bool {
    lane.is_some_and(|lane| lane.names(target)) || policy.brokers_of(target).next().is_some()
}

/// Decides if a refusal becomes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Yes,
    /// The host is an event already, or there are enough events.
    No,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_host_is_noted_once_and_only_so_many_of_them() {
        let text = "version = 1\n[network]\nmode = 'proxy'";
        let policy = Policy::from_toml(text, Path::new("agent.toml")).unwrap();
        let tally = Tally::default();
        let refuse = |name: &str| {
            let target = Target::parse(name, None).unwrap();
            tally.refuse(&policy, None, &Refusal { named: target.clone(), target })
        };
        let (denied, note) = refuse("a.example:443");
        assert_eq!((note, denied.policy.as_str()), (Note::Yes, "agent"));
        assert!(denied.text.contains("a.example:443") && denied.line.unwrap().contains("a.example:443"));
        assert_eq!(refuse("a.example:443").1, Note::No);
        let noted = (0..100).filter(|n| refuse(&format!("n{n}.example:443")).1 == Note::Yes).count();
        assert_eq!(noted, NOTED - 1);
        assert_eq!(tally.figures().denied, 102);
        assert!(tally.last_denied().unwrap().denied.act.contains("n99.example"));
    }

    #[test]
    fn a_reply_of_the_proxy_counts_until_a_service_of_the_lane_is_reached() {
        let text = "version = 1\n[network]\nmode = 'proxy'\n\
                    [[broker]]\nhost = 'brokered.example'\nheader = 'x-key'\nsecret = 'key'";
        let policy = Policy::from_toml(text, Path::new("agent.toml")).unwrap();
        let hosts = ["api.example".parse().unwrap()].into();
        let lane = LaneHosts { name: "l".to_owned(), has_file: true, hosts };
        let target = |name: &str| Target::parse(name, None).unwrap();
        let (api, other, brokered) =
            (target("api.example:443"), target("other.example:443"), target("brokered.example:443"));
        let tally = Tally::default();
        let refuse = |target: &Target| {
            tally.refuse(&policy, Some(&lane), &Refusal { named: target.clone(), target: target.clone() });
            tally.contact().refused
        };
        let attempt = |target: &Target, is_reached| {
            tally.try_host(&Tried { policy: &policy, lane: Some(&lane), target, is_reached });
            tally.contact().refused
        };
        assert_eq!(tally.contact().refused, OwnRefusal::None);
        assert_eq!(refuse(&other), OwnRefusal::Service, "the run has reached no host");
        assert_eq!(attempt(&api, false), OwnRefusal::AnyHost, "the service is down");
        assert_eq!(attempt(&api, true), OwnRefusal::None);
        assert_eq!(refuse(&other), OwnRefusal::AnyHost);
        assert_eq!(attempt(&other, true), OwnRefusal::AnyHost, "it is no service of the lane");
        assert_eq!(refuse(&api), OwnRefusal::Service);
        assert_eq!(attempt(&brokered, true), OwnRefusal::None);
        assert_eq!(refuse(&brokered), OwnRefusal::Service);
        let without = Tally::default();
        without.answer_itself();
        assert_eq!(without.contact().refused, OwnRefusal::AnyHost, "no host is refused");
        let unnamed = LaneHosts { hosts: [].into(), ..lane.clone() };
        let tried = Tried { policy: &policy, lane: Some(&unnamed), target: &other, is_reached: true };
        without.try_host(&tried);
        assert_eq!(without.contact().refused, OwnRefusal::None, "the service is among the policy's hosts");
    }

    #[test]
    fn a_service_that_is_heard_after_a_reply_of_the_proxy_has_said_the_last_word() {
        let text = "version = 1\n[network]\nmode = 'proxy'";
        let policy = Policy::from_toml(text, Path::new("agent.toml")).unwrap();
        let hosts = ["api.example".parse().unwrap()].into();
        let lane = LaneHosts { name: "l".to_owned(), has_file: true, hosts };
        let target = |name: &str| Target::parse(name, None).unwrap();
        let (api, other) = (target("api.example:443"), target("other.example:443"));
        let tally = Tally::default();
        let (of_api, of_other) = (tally.line("api.example:443"), tally.line("other.example:443"));
        for target in [&api, &other] {
            tally.try_host(&Tried { policy: &policy, lane: Some(&lane), target, is_reached: true });
        }
        let statistics = target("statistics.example:443");
        let refusal = Refusal { named: statistics.clone(), target: statistics };
        tally.refuse(&policy, Some(&lane), &refusal);
        of_other.received(100);
        assert_eq!(tally.contact().refused, OwnRefusal::AnyHost, "it is no service of the lane");
        of_api.received(100);
        assert_eq!(tally.contact().refused, OwnRefusal::None, "its reply came through the open tunnel");
        tally.refuse(&policy, Some(&lane), &refusal);
        assert_eq!(tally.contact().refused, OwnRefusal::AnyHost);
    }

    #[test]
    fn a_host_that_answers_again_refuses_the_run_no_longer() {
        let tally = Tally::default();
        let (one, other) = (tally.line("a.example:443"), tally.line("b.example:443"));
        let at = |secs| Some(Timestamp::from_secs(secs));
        one.answered(429, at(50));
        one.answered(429, at(40));
        other.answered(503, at(10));
        one.answered(500, None);
        assert_eq!(tally.opens(), at(40), "what it has said last counts");
        one.answered(200, None);
        assert_eq!(tally.opens(), at(10));
    }

    #[test]
    fn a_refused_login_stands_until_the_host_accepts_a_request() {
        let tally = Tally::default();
        let line = tally.line("a.example:443");
        for (status, stands) in
            [(200, false), (401, true), (404, true), (503, true), (200, false), (404, false)]
        {
            line.answered(status, None);
            assert_eq!(tally.answers()[0].is_login_refused, stands, "{status}");
        }
    }

    #[test]
    fn each_host_has_its_figures_up_to_a_number_of_them_and_a_later_daemon_goes_on_from_them() {
        let tally = Tally::default();
        for n in 0..NAMED + 9 {
            let line = tally.line(&format!("n{n:03}.example:443"));
            line.request();
            line.sent(10);
        }
        let first = tally.line("n000.example:443");
        first.received(5);
        first.answered(429, None);
        first.answered(401, None);
        first.answered(200, None);
        let figures = tally.figures();
        assert_eq!((figures.requests, figures.sent_bytes, figures.received_bytes), (41, 410, 5));
        assert_eq!((figures.hosts[0].throttled, figures.hosts[0].unauthorized), (1, 1));
        let others = figures.hosts.last().unwrap();
        assert_eq!((others.host.as_str(), others.requests, figures.hosts.len()), (OTHERS, 9, NAMED + 1));
        let later = Tally::default();
        later.resume(&figures);
        assert_eq!(later.figures(), figures);
        assert_eq!(later.contact().refused, OwnRefusal::None);
    }

    #[test]
    fn a_refusal_that_an_earlier_daemon_recorded_counts_as_the_latest_of_the_run() {
        for (denied, requests, refused) in
            [(0, 5, OwnRefusal::None), (1, 0, OwnRefusal::Service), (1, 5, OwnRefusal::AnyHost)]
        {
            let counted = Egress { denied, requests, ..Egress::default() };
            assert_eq!(Tally::recorded(&counted).refused, refused, "{denied} {requests}");
        }
    }
}
