//! Decides whether a host that a run's proxy has refused is named as the reason of its failure.
//!
//! A program requests more than it needs, such as updates and statistics. A refused host is named if the run ended by
//! itself at most [`RECENT`] after the refusal, and no other denial is known. A claim of the program that its service
//! rejects the login has been judged before, by [`read_ending`](setup::lanes::read_ending).

use std::time::Duration;

use kernel::{EndCause, Ending};

use net::proxy::DeniedHost;

/// Longest time between a refusal and the end of the run for which it is the reason.
const RECENT: Duration = Duration::from_mins(1);

/// Adds the host that the proxy refused last to an ending, if it is a reason of it.
pub(super) fn with_denied_host(ending: Ending, last: Option<DeniedHost>) -> Ending {
    let Some(last) = last.filter(|_| ending.denied.is_none()) else { return ending };
    let is_recent = ending.ended_at.is_some_and(|ended_at| ended_at.since(last.at) <= RECENT);
    let is_own = matches!(ending.cause, EndCause::Exited { .. } | EndCause::Signaled { .. });
    if !is_own || !is_recent {
        return ending;
    }
    let mut denied = last.denied;
    if !last.is_of_lane {
        denied.text = format!("while it ran, {}", denied.text);
    }
    Ending { denied: Some(denied), ..ending }
}

#[cfg(test)]
mod tests {
    use kernel::{Denied, Timestamp};

    use super::*;

    const END: Timestamp = Timestamp::from_secs(1000);

    fn ended(cause: EndCause, is_of_lane: bool, seconds_before: u64) -> Ending {
        let denied = Denied {
            policy: "agent".to_owned(),
            act: "connecting to a.example:443".to_owned(),
            line: None,
            text: "the sandbox denied connecting to a.example:443".to_owned(),
        };
        let last = DeniedHost { denied, at: END.before(Duration::from_secs(seconds_before)), is_of_lane };
        let ending = Ending { ended_at: Some(END), exit_code: Some(77), ..Ending::new(cause) };
        with_denied_host(ending, Some(last))
    }

    fn text(ending: &Ending) -> Option<&str> {
        ending.denied.as_ref().map(|denied| denied.text.as_str())
    }

    #[test]
    fn a_refused_host_is_a_reason_only_of_a_run_that_ended_by_itself_soon_after() {
        let aside = "while it ran, the sandbox denied connecting to a.example:443";
        for (cause, seconds_before, expected) in [
            (EndCause::Exited { code: 1 }, 5, Some(aside)),
            (EndCause::Signaled { signal: 6 }, 5, Some(aside)),
            (EndCause::Exited { code: 1 }, 600, None),
            (EndCause::TimedOut, 5, None),
            (EndCause::OutOfMemory, 5, None),
            (EndCause::Stopped(kernel::StopReason::Stalled), 5, None),
            (EndCause::NotLoggedIn { until: END }, 5, None),
        ] {
            let ending = ended(cause.clone(), false, seconds_before);
            assert_eq!((text(&ending), &ending.cause), (expected, &cause), "{cause:?} {seconds_before}");
        }
    }

    #[test]
    fn a_host_of_the_lane_is_the_reason_itself() {
        let ending = ended(EndCause::Exited { code: 77 }, true, 5);
        assert_eq!(text(&ending), Some("the sandbox denied connecting to a.example:443"));
        let known = Ending { ended_at: Some(END), ..Ending::new(EndCause::Exited { code: 1 }) };
        assert_eq!(with_denied_host(known, None).denied, None);
    }
}
