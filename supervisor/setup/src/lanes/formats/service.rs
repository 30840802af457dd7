//! Interprets the reply of an agent's service: the HTTP status, or the agent's error message.

use std::time::Duration;

use jiff::Zoned;
use jiff::civil::{DateTime, Time};
use kernel::Timestamp;

use super::{Finish, Refuser, Reset};

/// Returns the ending of a run whose last reply had this status.
pub(in crate::lanes) fn by_status(status: u64, reset: Option<Reset>) -> Finish {
    match status {
        // The proxy of a run refuses with 403 itself, and never replies with 401.
        401 => Finish::NotLoggedIn(Refuser::Service),
        403 => Finish::NotLoggedIn(Refuser::Unclear),
        // Too many requests of this account, or of all accounts.
        429 | 529 => Finish::RateLimited(reset),
        408 | 500..=599 => Finish::Unavailable,
        _ => Finish::Failed,
    }
}

/// Returns the ending for an agent's error message, if the agent reports no status. The text comes from an error
/// event of the agent, never from a model.
pub(super) fn by_words(error: &str) -> Finish {
    by_words_at(error, &Zoned::now())
}

/// Returns the ending for an error message that was written at `now`.
fn by_words_at(error: &str, now: &Zoned) -> Finish {
    let text = error.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["usage limit", "rate limit", "quota", "too many requests"]) || status_in(&text, &[429, 529]) {
        return Finish::RateLimited(pause_in(&text).map(Reset::After).or_else(|| time_in(&text, now)));
    }
    // Services explain a refusal in JSON, and the proxy of a run in plain text.
    if has(&["unauthorized", "401 {", "403 {"]) || status_in(&text, &[401]) {
        return Finish::NotLoggedIn(Refuser::Service);
    }
    if has(&["not logged in", "refresh_token", "refresh token", "invalid api key"])
        || status_in(&text, &[403])
    {
        return Finish::NotLoggedIn(Refuser::Unclear);
    }
    let outages = [
        "stream disconnected",
        "connection refused",
        "error sending request",
        "timed out",
        "dns error",
        "high demand",
        "waiting for network",
    ];
    if has(&outages) || status_in(&text, &[408, 500, 502, 503, 504]) {
        return Finish::Unavailable;
    }
    Finish::Failed
}

/// Returns true if an error names one of these statuses, as `status: 429` and `status 429 Too Many Requests` do.
fn status_in(text: &str, statuses: &[u32]) -> bool {
    text.match_indices("status").any(|(at, word)| {
        let rest = text[at + word.len()..].trim_start_matches([' ', ':', '=', '"']);
        let rest = rest.strip_prefix("code").unwrap_or(rest).trim_start_matches([' ', ':', '=', '"']);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
        digits.parse().is_ok_and(|status: u32| statuses.contains(&status))
    })
}

/// Returns the pause that an error names, as `try again in 2 days 3 hours` and `retry after 1.5s` do.
fn pause_in(text: &str) -> Option<Duration> {
    let start = ["again in ", "retry after ", "retry-after: ", "retry in ", "resets in "]
        .iter()
        .find_map(|words| text.find(words).map(|at| at + words.len()))?;
    let mut rest = &text[start..];
    let mut seconds = 0.0;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else { break };
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" | "" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        seconds += number * unit;
        rest = &rest[end..];
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|pause| !pause.is_zero())
}

/// Returns the time that an error names, as `try again at 11:31 PM` and `try again at Jan 5th, 2026 11:31 PM` do, in
/// the time zone of this host. None for a past time, also for an earlier time of today, which may be tomorrow's or
/// another zone's.
fn time_in(text: &str, now: &Zoned) -> Option<Reset> {
    let start = text.find("again at ")? + "again at ".len();
    // `5th,` counts as `5`: ordinal endings and commas are dropped.
    let bare = |word: &str| {
        let word = word.trim_end_matches([',', '.']);
        let number = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending));
        number.filter(|number| number.parse::<u8>().is_ok()).unwrap_or(word).to_owned()
    };
    let words: Vec<String> = text[start..].split_whitespace().take(5).map(bare).collect();
    let joined = |count: usize| words.get(..count).map(|words| words.join(" "));
    let dated = || DateTime::strptime("%b %d %Y %I:%M %p", joined(5)?).ok();
    let of_today = || Some(now.date().to_datetime(Time::strptime("%I:%M %p", joined(2)?).ok()?));
    let at = of_today().or_else(dated)?.to_zoned(now.time_zone().clone()).ok()?;
    (at > *now).then(|| Reset::At(Timestamp::from_secs(at.timestamp().as_second())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_one_meaning() {
        let after = Some(Reset::After(Duration::from_secs(9)));
        let table = [
            (401, Finish::NotLoggedIn(Refuser::Service)),
            (403, Finish::NotLoggedIn(Refuser::Unclear)),
            (429, Finish::RateLimited(after)),
            (529, Finish::RateLimited(after)),
            (500, Finish::Unavailable),
            (503, Finish::Unavailable),
            (400, Finish::Failed),
            (0, Finish::Failed),
        ];
        for (status, finish) in table {
            assert_eq!(by_status(status, after), finish, "{status}");
        }
    }

    #[test]
    fn the_words_of_an_error_have_one_meaning() {
        let limited = |seconds: Option<f64>| {
            Finish::RateLimited(seconds.map(|seconds| Reset::After(Duration::from_secs_f64(seconds))))
        };
        let table = [
            ("exceeded retry limit, last status: 429 Too Many Requests", limited(None)),
            ("You've hit your usage limit. Try again in 2 hours 30 minutes.", limited(Some(9000.0))),
            ("rate limit reached, please try again in 1.5s", limited(Some(1.5))),
            ("Rate limit reached, try again in 1e9 years", limited(None)),
            ("unexpected status 401 Unauthorized", Finish::NotLoggedIn(Refuser::Service)),
            ("unexpected status 403 Forbidden", Finish::NotLoggedIn(Refuser::Unclear)),
            (
                "Failed to authenticate. API Error: 403 {\"error\":{\"type\":\"forbidden\"}}",
                Finish::NotLoggedIn(Refuser::Service),
            ),
            ("Your refresh_token was revoked", Finish::NotLoggedIn(Refuser::Unclear)),
            ("exceeded retry limit, last status: 503 Service Unavailable", Finish::Unavailable),
            ("stream disconnected before completion", Finish::Unavailable),
            ("Reconnecting... waiting for network", Finish::Unavailable),
            (
                "Reconnecting... 2/5 (unexpected status 401 Unauthorized)",
                Finish::NotLoggedIn(Refuser::Service),
            ),
            (
                "We’re currently experiencing high demand, which may cause temporary errors.",
                Finish::Unavailable,
            ),
            ("the file has 429 lines", Finish::Failed),
            ("exit status 4290", Finish::Failed),
            ("", Finish::Failed),
        ];
        for (words, finish) in table {
            assert_eq!(by_words(words), finish, "{words}");
        }
    }

    #[test]
    fn a_time_that_an_error_names_is_that_of_the_host_and_in_doubt_none() {
        let now: Zoned = "2026-01-05T20:00[Europe/Berlin]".parse().unwrap();
        let at = |text: &str| {
            let at: Zoned = format!("{text}[Europe/Berlin]").parse().unwrap();
            Some(Reset::At(Timestamp::from_secs(at.timestamp().as_second())))
        };
        let limit =
            "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again";
        for (rest, reset) in [
            ("at 11:31 PM.", at("2026-01-05T23:31")),
            ("at Jan 7th, 2026 9:05 AM.", at("2026-01-07T09:05")),
            ("at Feb 22nd, 2026 12:00 AM.", at("2026-02-22T00:00")),
            ("in 3 days 4 hours 5 minutes.", Some(Reset::After(Duration::from_mins(4565)))),
            ("at 3:41 PM.", None),
            ("at Jan 1st, 2026 9:05 AM.", None),
            ("at Feb 31st, 2026 9:05 AM.", None),
            ("at 25:31 PM.", None),
            ("at noon.", None),
            ("at ", None),
            ("later.", None),
        ] {
            assert_eq!(by_words_at(&format!("{limit} {rest}"), &now), Finish::RateLimited(reset), "{rest}");
        }
    }

    #[test]
    fn a_pause_of_any_length_is_a_time_or_none() {
        assert_eq!(pause_in(&format!("again in {} days", "9".repeat(400))), None);
        assert_eq!(pause_in("again in soon"), None);
        assert_eq!(pause_in("again in 5"), Some(Duration::from_secs(5)));
    }
}
