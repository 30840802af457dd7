//! Statistics of one run's proxy: requests and bytes for each host, and refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Clock as _, Denied, Egress, HostEgress, SpentBudget, SystemClock, Timestamp};
use policies::{LaneHosts, Policy, Target};
use tokio::sync::Notify;

use super::host_check::RefusedTarget;
use setup::lanes::{Contact, HostReply, OwnRefusal};

/// Limit on the refused hosts that become events. More are only counted: a worker can invent any number of names.
const EVENTS: usize = 20;
/// Limit on the hosts with statistics of their own. Others are added up together: a worker can reach any number of
/// names of a domain.
const NAMED: usize = 32;
/// Name for those others.
const OTHERS: &str = "others";

/// Statistics of one run.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    hosts: Mutex<BTreeMap<String, Arc<HostTraffic>>>,
    denied: AtomicU64,
    over_budget: AtomicU64,
    recorded: Mutex<RecordedRefusals>,
    latest: Mutex<LatestRequests>,
    /// Notifies the task that stores the statistics.
    pub(super) changed: Notify,
}

/// Statistics of one host.
#[derive(Debug, Default)]
pub(super) struct HostTraffic {
    requests: AtomicU64,
    throttled: AtomicU64,
    unauthorized: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Time at which the host accepts requests again, by its latest response.
    opens: Mutex<Option<Timestamp>>,
    /// Latest response, if a broker made the request.
    last_response: Mutex<Option<LastResponse>>,
    /// Time of the latest bytes from the host, if it is a service of the run's lane.
    lane_service: Mutex<LaneService>,
}

/// Traffic of a host inside its connections, whose replies a tunnel hides.
#[derive(Clone, Copy, Debug, Default)]
enum LaneService {
    /// The host is no service of the lane, as far as is known.
    #[default]
    Unwatched,
    Service(Instant),
}

/// Latest response of a host, and the times at which it refused and accepted requests.
#[derive(Clone, Copy, Debug)]
struct LastResponse {
    status: u16,
    opens: Option<Timestamp>,
    at: Instant,
    refusing_since: Option<Instant>,
    well_at: Option<Instant>,
    is_login_refused: bool,
}

/// Time after a refusal, or after the time that it named, within which another refusal belongs to the same series.
/// Agents wait a minute at most.
const SAME_SERIES: Duration = Duration::from_mins(2);

impl LastResponse {
    /// Returns the start of the series of refusals, if a refusal at this time continues it.
    fn refusing_until(self, at: Instant) -> Option<Instant> {
        let is_same = at.duration_since(self.at) <= SAME_SERIES
            || self.opens.is_some_and(|opens| SystemClock.now().since(opens) <= SAME_SERIES);
        self.refusing_since.filter(|_| is_same)
    }
}

/// Times of the latest requests, by their result.
#[derive(Debug, Default)]
struct LatestRequests {
    /// Connection to a service of the run's lane.
    reached: Option<Instant>,
    /// Attempt to connect to a service of the run's lane, with or without success.
    tried: Option<Instant>,
    /// Attempt to connect to any host.
    tried_any: Option<Instant>,
    /// Reply of the proxy itself.
    by_proxy: Option<Instant>,
    /// Refusal of any host by the policy.
    denied: Option<Instant>,
    /// Refusal of a service of the run's lane by the policy.
    barred: Option<Instant>,
}

impl LatestRequests {
    /// `heard` is the time of the latest bytes from a service of the run's lane.
    fn own_refusal(&self, heard: Option<Instant>) -> OwnRefusal {
        let is_barred = self.barred > self.tried;
        let is_denied_all = self.denied.is_some() && self.tried_any.is_none();
        if is_barred || is_denied_all {
            OwnRefusal::Service
        } else if self.by_proxy > self.reached.max(heard) {
            OwnRefusal::AnyHost
        } else {
            OwnRefusal::None
        }
    }
}

#[derive(Debug, Default)]
struct RecordedRefusals {
    /// Hosts that became events.
    hosts: BTreeSet<String>,
    /// Keys of spent budgets that became events.
    budgets: BTreeSet<String>,
    last: Option<DeniedHost>,
}

/// Attempt of a run's proxy to connect to a host.
pub(super) struct HostAttempt<'a> {
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

impl HostTraffic {
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
        let mut heard = self.lane_service.lock().unwrap_or_else(PoisonError::into_inner);
        if let LaneService::Service(at) = &mut *heard {
            *at = Instant::now();
        }
    }

    /// Returns the time of the latest bytes from the host, if it is a service of the run's lane.
    fn last_received(&self) -> Option<Instant> {
        match *self.lane_service.lock().unwrap_or_else(PoisonError::into_inner) {
            LaneService::Unwatched => None,
            LaneService::Service(at) => Some(at),
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
        let mut last = self.last_response.lock().unwrap_or_else(PoisonError::into_inner);
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
        *last = Some(LastResponse { status, opens, at, refusing_since, well_at, is_login_refused });
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

impl Traffic {
    /// Adds the statistics that an earlier daemon recorded for the run.
    pub(super) fn resume(&self, counted: &Egress) {
        for host in &counted.hosts {
            self.host(&host.host).add(host);
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
            (latest.denied, latest.by_proxy) = (now, now);
        }
    }

    /// Returns the contact of a run of which only the recorded statistics are left.
    pub(super) fn recorded(counted: &Egress) -> Contact {
        let traffic = Traffic::default();
        traffic.resume(counted);
        traffic.contact()
    }

    /// Returns the statistics of a host.
    pub(super) fn host(&self, host: &str) -> Arc<HostTraffic> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if hosts.len() < NAMED || hosts.contains_key(host) { host } else { OTHERS };
        Arc::clone(hosts.entry(name.to_owned()).or_default())
    }

    /// Counts a request that is refused for a spent budget. Returns `Yes` if the refusal becomes an event.
    pub(super) fn refuse_over_budget(&self, spent: &SpentBudget) -> BecomesEvent {
        self.over_budget.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        let mut refused = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.budgets.insert(spent.key.clone()) { BecomesEvent::Yes } else { BecomesEvent::No }
    }

    /// Counts a refused request. Returns the denial, and `Yes` if it becomes an event.
    pub(super) fn refuse(
        &self,
        policy: &Policy,
        lane: Option<&LaneHosts>,
        refusal: &RefusedTarget,
    ) -> (Denied, BecomesEvent) {
        self.denied.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        let denial = policy.host_denial(&refusal.target, &refusal.named, lane);
        let denied = Denied {
            policy: policy.name().to_owned(),
            text: policy.describe(&denial),
            act: denial.act,
            line: denial.line,
        };
        let mut refused = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_lane = is_service(policy, lane, &refusal.target);
        self.responded_itself();
        let mut latest = self.latest();
        latest.denied = latest.by_proxy;
        if is_of_lane {
            latest.barred = latest.by_proxy;
        }
        drop(latest);
        refused.last = Some(DeniedHost { denied: denied.clone(), at: SystemClock.now(), is_of_lane });
        let is_new = refused.hosts.len() < EVENTS && refused.hosts.insert(refusal.target.to_string());
        (denied, if is_new { BecomesEvent::Yes } else { BecomesEvent::No })
    }

    /// Records an attempt to connect to a host that the policy permits.
    pub(super) fn try_host(&self, host: &HostAttempt<'_>) {
        let (mut latest, now) = (self.latest(), Some(Instant::now()));
        latest.tried_any = now;
        // A lane without hosts has its service among those of the policy.
        let is_any = host.lane.is_none_or(|lane| lane.hosts.is_empty());
        if is_any || is_service(host.policy, host.lane, host.target) {
            latest.tried = now;
            if host.is_reached {
                latest.reached = now;
                let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
                // Beyond the limit of hosts, the traffic of this one is not known by itself.
                if let (Some(line), Some(now)) = (hosts.get(&host.target.to_string()), now) {
                    *line.lane_service.lock().unwrap_or_else(PoisonError::into_inner) =
                        LaneService::Service(now);
                }
            }
        }
    }

    /// Records a reply of the proxy itself, which a program may take for the reply of its service.
    pub(super) fn responded_itself(&self) {
        self.latest().by_proxy = Some(Instant::now());
    }

    fn latest(&self) -> MutexGuard<'_, LatestRequests> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the contact of the run with its services.
    pub(super) fn contact(&self) -> Contact {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = hosts.values().filter_map(|host| host.last_received()).max();
        drop(hosts);
        Contact { replies: self.responses(), refused: self.latest().own_refusal(heard) }
    }

    /// Returns the latest time at which a refusing host accepts requests again, as far as the hosts named times.
    pub(super) fn opens(&self) -> Option<Timestamp> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let opens = |host: &Arc<HostTraffic>| *host.opens.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.values().filter_map(opens).max()
    }

    /// Returns the latest response of each host that a broker contacted.
    fn responses(&self) -> Vec<HostReply> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = |(name, host): (&String, &Arc<HostTraffic>)| {
            let LastResponse { status, opens, at, refusing_since, well_at, is_login_refused } =
                (*host.last_response.lock().unwrap_or_else(PoisonError::into_inner))?;
            let host = name.clone();
            Some(HostReply { host, status, opens, at, refusing_since, well_at, is_login_refused })
        };
        hosts.iter().filter_map(answer).collect()
    }

    /// Returns the latest refusal.
    pub(super) fn last_denied(&self) -> Option<DeniedHost> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// Returns the number of admitted requests, and their bytes in both directions.
    pub(super) fn totals(&self) -> (u64, u64) {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        hosts.values().fold((0, 0), |(requests, bytes), host| {
            let passed = read(&host.sent).saturating_add(read(&host.received));
            (requests.saturating_add(read(&host.requests)), bytes.saturating_add(passed))
        })
    }

    /// Returns the present statistics.
    pub(super) fn figures(&self) -> Egress {
        let locked = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts: Vec<HostEgress> = locked.iter().map(|(name, host)| host.figures(name)).collect();
        drop(locked);
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
pub(super) enum BecomesEvent {
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
        let traffic = Traffic::default();
        let refuse = |name: &str| {
            let target = Target::parse(name, None).unwrap();
            traffic.refuse(&policy, None, &RefusedTarget { named: target.clone(), target })
        };
        let (denied, note) = refuse("a.example:443");
        assert_eq!((note, denied.policy.as_str()), (BecomesEvent::Yes, "agent"));
        assert!(denied.text.contains("a.example:443") && denied.line.unwrap().contains("a.example:443"));
        assert_eq!(refuse("a.example:443").1, BecomesEvent::No);
        let noted = (0..100).filter(|n| refuse(&format!("n{n}.example:443")).1 == BecomesEvent::Yes).count();
        assert_eq!(noted, EVENTS - 1);
        assert_eq!(traffic.figures().denied, 102);
        assert!(traffic.last_denied().unwrap().denied.act.contains("n99.example"));
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
        let traffic = Traffic::default();
        let refuse = |target: &Target| {
            traffic.refuse(
                &policy,
                Some(&lane),
                &RefusedTarget { named: target.clone(), target: target.clone() },
            );
            traffic.contact().refused
        };
        let attempt = |target: &Target, is_reached| {
            traffic.try_host(&HostAttempt { policy: &policy, lane: Some(&lane), target, is_reached });
            traffic.contact().refused
        };
        assert_eq!(traffic.contact().refused, OwnRefusal::None);
        assert_eq!(refuse(&other), OwnRefusal::Service, "the run has reached no host");
        assert_eq!(attempt(&api, false), OwnRefusal::AnyHost, "the service is down");
        assert_eq!(attempt(&api, true), OwnRefusal::None);
        assert_eq!(refuse(&other), OwnRefusal::AnyHost);
        assert_eq!(attempt(&other, true), OwnRefusal::AnyHost, "it is no service of the lane");
        assert_eq!(refuse(&api), OwnRefusal::Service);
        assert_eq!(attempt(&brokered, true), OwnRefusal::None);
        assert_eq!(refuse(&brokered), OwnRefusal::Service);
        let without = Traffic::default();
        without.responded_itself();
        assert_eq!(without.contact().refused, OwnRefusal::AnyHost, "no host is refused");
        let unnamed = LaneHosts { hosts: [].into(), ..lane.clone() };
        let tried = HostAttempt { policy: &policy, lane: Some(&unnamed), target: &other, is_reached: true };
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
        let traffic = Traffic::default();
        let (of_api, of_other) = (traffic.host("api.example:443"), traffic.host("other.example:443"));
        for target in [&api, &other] {
            traffic.try_host(&HostAttempt { policy: &policy, lane: Some(&lane), target, is_reached: true });
        }
        let statistics = target("statistics.example:443");
        let refusal = RefusedTarget { named: statistics.clone(), target: statistics };
        traffic.refuse(&policy, Some(&lane), &refusal);
        of_other.received(100);
        assert_eq!(traffic.contact().refused, OwnRefusal::AnyHost, "it is no service of the lane");
        of_api.received(100);
        assert_eq!(traffic.contact().refused, OwnRefusal::None, "its reply came through the open tunnel");
        traffic.refuse(&policy, Some(&lane), &refusal);
        assert_eq!(traffic.contact().refused, OwnRefusal::AnyHost);
    }

    #[test]
    fn a_host_that_answers_again_refuses_the_run_no_longer() {
        let traffic = Traffic::default();
        let (one, other) = (traffic.host("a.example:443"), traffic.host("b.example:443"));
        let at = |secs| Some(Timestamp::from_secs(secs));
        one.answered(429, at(50));
        one.answered(429, at(40));
        other.answered(503, at(10));
        one.answered(500, None);
        assert_eq!(traffic.opens(), at(40), "what it has said last counts");
        one.answered(200, None);
        assert_eq!(traffic.opens(), at(10));
    }

    #[test]
    fn a_refused_login_stands_until_the_host_accepts_a_request() {
        let traffic = Traffic::default();
        let host = traffic.host("a.example:443");
        for (status, stands) in
            [(200, false), (401, true), (404, true), (503, true), (200, false), (404, false)]
        {
            host.answered(status, None);
            assert_eq!(traffic.responses()[0].is_login_refused, stands, "{status}");
        }
    }

    #[test]
    fn each_host_has_its_figures_up_to_a_number_of_them_and_a_later_daemon_goes_on_from_them() {
        let traffic = Traffic::default();
        for n in 0..NAMED + 9 {
            let line = traffic.host(&format!("n{n:03}.example:443"));
            line.request();
            line.sent(10);
        }
        let first = traffic.host("n000.example:443");
        first.received(5);
        first.answered(429, None);
        first.answered(401, None);
        first.answered(200, None);
        let figures = traffic.figures();
        assert_eq!((figures.requests, figures.sent_bytes, figures.received_bytes), (41, 410, 5));
        assert_eq!((figures.hosts[0].throttled, figures.hosts[0].unauthorized), (1, 1));
        let others = figures.hosts.last().unwrap();
        assert_eq!((others.host.as_str(), others.requests, figures.hosts.len()), (OTHERS, 9, NAMED + 1));
        let later = Traffic::default();
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
            assert_eq!(Traffic::recorded(&counted).refused, refused, "{denied} {requests}");
        }
    }
}
