//! Reads from a refusal the time at which a service accepts requests again (RFC 9110, section 10.2.3).

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use kernel::Timestamp;

use setup::lanes::LONGEST_LIMIT as LONGEST;

/// Status of an overloaded service; no standard defines it.
const OVERLOADED: u16 = 529;

/// Returns the time at which the service accepts requests again, at most [`LONGEST`] from now. None if the reply is not a
/// temporary refusal, names no time, or names a time in the past.
pub(super) fn read(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let is_for_a_while = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
        || status.as_u16() == OVERLOADED;
    let text = headers.get(RETRY_AFTER).filter(|_| is_for_a_while)?.to_str().ok()?.trim();
    let at = match text.parse() {
        Ok(seconds) => now.after(Duration::from_secs(seconds).min(LONGEST)),
        Err(_) => Timestamp::from_secs(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_second()),
    };
    (at > now).then(|| at.min(now.after(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_is_believed_for_longer_than_a_day() {
        let now = Timestamp::from_secs(1_000_000_000);
        let said = |status: u16, text: &str| {
            let headers = [(RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
            let at = read(StatusCode::from_u16(status).unwrap(), &headers, now)?;
            Some(at.since(now).as_secs())
        };
        assert_eq!(said(429, "90"), Some(90));
        assert_eq!(said(529, " 7 "), Some(7));
        assert_eq!(said(503, "Sun, 09 Sep 2001 01:47:40 GMT"), Some(60));
        assert_eq!(said(429, "99999999"), Some(24 * 60 * 60));
        for (status, text) in [
            (200, "90"),
            (500, "90"),
            (429, "soon"),
            (429, "0"),
            (429, "-1"),
            (429, "Sun, 09 Sep 2001 01:00:00 GMT"),
        ] {
            assert_eq!(said(status, text), None, "{status} {text}");
        }
    }
}
