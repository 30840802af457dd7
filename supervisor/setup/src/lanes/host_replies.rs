//! Last replies of a lane's service to a run, as the run's proxy saw them. They reveal refusals that an agent never
//! reports, because it retries silently.
//!
//! See decision 0087.

use std::time::{Duration, Instant};

use kernel::{Clock as _, SystemClock, Timestamp};
use serde::{Deserialize, Serialize};

use super::formats::{Finish, Refuser, Reset, by_status};
use super::lane::Lane;

/// Last reply of a host that has a broker.
#[derive(Clone, Debug)]
pub struct HostReply {
    /// Host with its port.
    pub host: String,
    pub status: u16,
    /// Time at which the host accepts requests again, if the reply names one.
    pub opens: Option<Timestamp>,
    pub at: Instant,
    /// Start of the current unbroken series of refusals.
    pub refusing_since: Option<Instant>,
    /// Time of the last successful reply.
    pub well_at: Option<Instant>,
    /// True if the host refused the login, and has accepted no request since.
    pub is_login_refused: bool,
}

/// Contact of a run with the services of its lane, as the run's proxy saw it.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    /// Last replies of hosts to requests through brokers.
    pub replies: Vec<HostReply>,
    /// Replies of the proxy itself since the run last reached a service of its lane.
    pub refused: OwnRefusal,
}

/// Replies that a proxy gave in the place of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnRefusal {
    /// None. A run without a proxy has this value as well.
    #[default]
    None,
    /// The proxy answered a request for a host that may be the service.
    AnyHost,
    /// The proxy refused the service itself, or all hosts that the run requested.
    Service,
}

/// Age up to which a reply can explain the end of a run. After a longer time the run may have failed for another
/// reason.
const RECENT: Duration = Duration::from_mins(5);

impl HostReply {
    /// Returns true if the run may have been waiting for another reply when it ended.
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < RECENT
            || self.opens.is_some_and(|opens| opens > SystemClock.now())
    }
}

/// Hosts that a lane contacts through its own brokers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Services(Vec<String>);

impl Services {
    pub(super) fn for_lane(lane: &Lane) -> Self {
        Services(lane.additions.brokers.iter().map(|broker| broker.host.target().to_string()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the replies of these services.
    fn of_services<'a>(&self, answers: &'a [HostReply]) -> impl Iterator<Item = &'a HostReply> {
        answers.iter().filter(|answer| self.0.contains(&answer.host))
    }

    /// Returns the last reply of these services; none if the proxy saw none.
    fn last<'a>(&self, answers: &'a [HostReply]) -> Option<&'a HostReply> {
        self.of_services(answers).max_by_key(|answer| answer.at)
    }

    /// Checks a worker's claim about its service. A claim that may stem from a reply of the proxy itself is a plain
    /// failure, because the service has said nothing. Refused hosts beside the service, such as statistics, do not matter
    /// to a claim that stems from the service alone.
    pub(super) fn believed(&self, claim: Finish, contact: &Contact) -> Finish {
        let is_of_service = match claim {
            // A broker has read the status of the service.
            Finish::NotLoggedIn(_) if self.last(&contact.replies).is_some() => {
                self.of_services(&contact.replies).any(|answer| answer.is_login_refused)
            }
            Finish::NotLoggedIn(Refuser::Unclear) => contact.refused == OwnRefusal::None,
            Finish::NotLoggedIn(Refuser::Service) | Finish::Unavailable => {
                contact.refused != OwnRefusal::Service
            }
            Finish::Well | Finish::Unsaid | Finish::Failed | Finish::RateLimited(_) | Finish::OwnLimit(_) => {
                true
            }
        };
        if is_of_service { claim } else { Finish::Failed }
    }

    /// Returns true if the last reply of these services was a success, so the account is not refused.
    pub(super) fn is_serving(&self, answers: &[HostReply]) -> bool {
        self.last(answers).is_some_and(|last| (200..300).contains(&last.status))
    }

    /// Returns the refusal of the run by a service; none if the last reply was a success, or refused only that
    /// request.
    pub(super) fn refusal(&self, answers: &[HostReply]) -> Option<Refusal> {
        self.refusal_at(answers, Instant::now())
    }

    fn refusal_at(&self, answers: &[HostReply], now: Instant) -> Option<Refusal> {
        let last = self.last(answers).filter(|last| last.is_recent(now))?;
        let reset = last.opens.map(Reset::At);
        let finish = match by_status(last.status.into(), reset) {
            // The reply names a time to retry, as a rate limit does.
            Finish::Unavailable if reset.is_some() => Finish::RateLimited(reset),
            // The key was accepted before, so only this request is refused.
            Finish::NotLoggedIn(_) if last.well_at.is_some() => return None,
            refused @ (Finish::RateLimited(_) | Finish::NotLoggedIn(_) | Finish::Unavailable) => refused,
            Finish::Well | Finish::Unsaid | Finish::Failed | Finish::OwnLimit(_) => return None,
        };
        Some(Refusal {
            finish,
            trouble: format!("the last answer of {} was HTTP {}", last.host, last.status),
        })
    }

    /// Returns the time for which these services have only refused the run's requests.
    pub(super) fn refused_for(&self, answers: &[HostReply]) -> Option<Duration> {
        self.refusal(answers)?;
        let last = self.last(answers)?;
        // A success of another service of the lane restarts the period: the agent can continue with that service.
        let since = last.refusing_since?;
        let since = self.of_services(answers).filter_map(|answer| answer.well_at).fold(since, Instant::max);
        Some(last.at.duration_since(since))
    }
}

/// Refusal of a run by a service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) finish: Finish,
    /// Reply of the service, for people.
    pub(super) trouble: String,
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the reply of a host, a number of seconds after the first.
    pub(crate) fn answer(first: Instant, host: &str, status: u16, seconds: u64) -> HostReply {
        let at = first + Duration::from_secs(seconds);
        let refusing_since = Some(first).filter(|_| status >= 400);
        let well_at = Some(at).filter(|_| status < 400);
        let is_login_refused = matches!(status, 401 | 403);
        HostReply {
            host: host.to_owned(),
            status,
            opens: None,
            at,
            refusing_since,
            well_at,
            is_login_refused,
        }
    }

    fn services() -> Services {
        let broker = |host: &str| format!("[[broker]]\nhost = '{host}'\nheader = 'x-key'\nsecret = 'key'\n");
        let text = format!("argv = ['x']\n{}{}", broker("a.example"), broker("b.example:8443"));
        Services::for_lane(&Lane::parse("l", &text, Path::new("/l.toml")).unwrap())
    }

    #[test]
    fn the_last_answer_of_a_service_of_the_lane_counts_and_no_other_host() {
        let (services, first) = (services(), Instant::now());
        let refusal = |answers: &[HostReply]| services.refusal(answers).map(|refusal| refusal.finish);
        assert_eq!(refusal(&[]), None);
        assert_eq!(refusal(&[answer(first, "other.example:443", 429, 9)]), None);
        let limited = answer(first, "a.example:443", 429, 5);
        assert_eq!(refusal(std::slice::from_ref(&limited)), Some(Finish::RateLimited(None)));
        let later = |status| [limited.clone(), answer(first, "b.example:8443", status, 6)];
        assert_eq!(refusal(&later(200)), None);
        assert_eq!(refusal(&later(401)), Some(Finish::NotLoggedIn(Refuser::Service)));
        assert_eq!(refusal(&later(502)), Some(Finish::Unavailable));
        assert_eq!(refusal(&later(404)), None, "it has refused that request alone");
        assert_eq!(
            services.refusal(&later(529)).unwrap().trouble,
            "the last answer of b.example:8443 was HTTP 529"
        );
        let opens = Some(Timestamp::from_secs(90));
        let reply = HostReply { opens, ..answer(first, "a.example:443", 503, 7) };
        assert_eq!(refusal(&[reply]), Some(Finish::RateLimited(Some(Reset::At(Timestamp::from_secs(90))))));
    }

    #[test]
    fn a_reply_of_the_proxy_itself_is_no_reply_of_the_service() {
        let (services, first) = (services(), Instant::now());
        let (login, outage) = (Finish::NotLoggedIn(Refuser::Unclear), Finish::Unavailable);
        let of_service = Finish::NotLoggedIn(Refuser::Service);
        let claim = |claim, answers: &[HostReply], refused| {
            services.believed(claim, &Contact { replies: answers.to_vec(), refused })
        };
        for (refused, of_login, of_401, of_outage) in [
            (OwnRefusal::None, login, of_service, outage),
            (OwnRefusal::AnyHost, Finish::Failed, of_service, outage),
            (OwnRefusal::Service, Finish::Failed, Finish::Failed, Finish::Failed),
        ] {
            assert_eq!(claim(login, &[], refused), of_login, "{refused:?}");
            assert_eq!(claim(of_service, &[], refused), of_401, "{refused:?}");
            assert_eq!(claim(outage, &[], refused), of_outage, "{refused:?}");
            let limited = Finish::RateLimited(None);
            assert_eq!(claim(limited, &[], refused), limited, "{refused:?}");
        }
        for (status, believed) in [(401, login), (403, login), (200, Finish::Failed), (502, Finish::Failed)] {
            let answers = [answer(first, "a.example:443", status, 5)];
            assert_eq!(claim(login, &answers, OwnRefusal::AnyHost), believed, "{status}");
            assert_eq!(claim(login, &answers, OwnRefusal::None), believed, "{status}");
        }
        // The service has refused another request since, and accepted none.
        let later = HostReply { is_login_refused: true, ..answer(first, "a.example:443", 404, 5) };
        assert_eq!(claim(login, &[later], OwnRefusal::AnyHost), login);
        let other = [answer(first, "other.example:443", 401, 5)];
        assert_eq!(claim(login, &other, OwnRefusal::AnyHost), Finish::Failed);
    }

    #[test]
    fn a_service_refuses_a_run_for_as_long_as_that_goes_on_to_ask() {
        let (services, first) = (services(), Instant::now());
        let refused_for = |answer: HostReply| services.refused_for(&[answer]);
        assert_eq!(refused_for(answer(first, "a.example:443", 500, 40)), Some(Duration::from_secs(40)));
        assert_eq!(refused_for(answer(first, "a.example:443", 200, 40)), None);
        assert_eq!(refused_for(answer(first, "a.example:443", 404, 40)), None);
        let both = [answer(first, "a.example:443", 429, 40), answer(first, "b.example:8443", 200, 39)];
        assert_eq!(services.refused_for(&both), Some(Duration::from_secs(1)), "another service has answered");
    }

    #[test]
    fn a_key_that_was_accepted_is_no_missing_login_and_an_old_answer_says_nothing() {
        let (services, first) = (services(), Instant::now());
        let refused = answer(first, "a.example:443", 403, 5);
        assert_eq!(
            services.refusal(std::slice::from_ref(&refused)).unwrap().finish,
            Finish::NotLoggedIn(Refuser::Unclear)
        );
        let known = HostReply { well_at: Some(first), ..refused };
        assert_eq!(services.refusal(&[known]), None);
        let old = answer(first, "a.example:443", 429, 1);
        let later = first + RECENT * 2;
        assert_eq!(services.refusal_at(std::slice::from_ref(&old), later), None);
        let opens = Some(SystemClock.now().after(RECENT));
        assert!(
            services.refusal_at(&[HostReply { opens, ..old }], later).is_some(),
            "the run was told to wait"
        );
    }
}
