//! Times of schedules: zones, changes of clocks, and due ticks.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn timing(cron: Option<&str>, at: &[&str], zone: &str) -> Timing {
    let at = at.iter().map(|time| (*time).to_owned()).collect();
    Timing { cron: cron.map(str::to_owned), at, time_zone: Some(zone.to_owned()), ..Timing::default() }
}

fn utc(text: &str) -> Timestamp {
    Timestamp::from_micros(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

/// Returns the next ticks after a moment, in the schedule's zone.
fn next(timing: &Timing, from: &str, count: usize) -> Vec<String> {
    let ticks = Ticks::parse(timing).unwrap();
    std::iter::successors(ticks.after(utc(from)), |at| ticks.after(*at))
        .take(count)
        .map(|at| ticks.zoned(at).strftime("%a %m-%d %H:%M %:z").to_string())
        .collect()
}

#[test]
fn a_pattern_ticks_in_its_zone() {
    let workdays = timing(Some("0 9 * * mon-fri"), &[], "Europe/Berlin");
    assert_eq!(
        next(&workdays, "2026-11-20T12:00:00Z", 2),
        ["Mon 11-23 09:00 +01:00", "Tue 11-24 09:00 +01:00"]
    );
    let last = timing(Some("0 0 L * *"), &[], "UTC");
    assert_eq!(next(&last, "2026-02-01T00:00:00Z", 1), ["Sat 02-28 00:00 +00:00"]);
    let second_friday = timing(Some("30 7 * * FRI#2"), &[], "UTC");
    assert_eq!(next(&second_friday, "2026-11-01T00:00:00Z", 1), ["Fri 11-13 07:30 +00:00"]);
}

#[test]
fn times_of_the_calendar_tick_each_day_each_week_and_once() {
    let times = timing(None, &["07:00", "wed 18:30", "2026-11-24 12:00"], "UTC");
    assert_eq!(
        next(&times, "2026-11-23T08:00:00Z", 4),
        [
            "Tue 11-24 07:00 +00:00",
            "Tue 11-24 12:00 +00:00",
            "Wed 11-25 07:00 +00:00",
            "Wed 11-25 18:30 +00:00"
        ]
    );
}

/// In Berlin clocks go from 02:00 to 03:00 on 2026-03-29.
#[test]
fn a_time_that_is_left_out_ticks_after_the_change() {
    let night = timing(Some("30 2 * * *"), &[], "Europe/Berlin");
    let expected = ["Sat 03-28 02:30 +01:00", "Sun 03-29 03:00 +02:00", "Mon 03-30 02:30 +02:00"];
    assert_eq!(next(&night, "2026-03-27T12:00:00Z", 3), expected);
    assert_eq!(next(&timing(None, &["02:30"], "Europe/Berlin"), "2026-03-27T12:00:00Z", 3), expected);
    let hourly = timing(Some("30 * * * *"), &[], "Europe/Berlin");
    assert_eq!(
        next(&hourly, "2026-03-29T00:00:00Z", 2),
        ["Sun 03-29 01:30 +01:00", "Sun 03-29 03:30 +02:00"],
        "a pattern without a fixed hour has no tick there"
    );
}

/// In Berlin clocks go from 03:00 back to 02:00 on 2026-10-25.
#[test]
fn a_time_that_comes_twice_ticks_the_first_time() {
    let night = timing(Some("30 2 * * *"), &[], "Europe/Berlin");
    let expected = ["Sun 10-25 02:30 +02:00", "Mon 10-26 02:30 +01:00"];
    assert_eq!(next(&night, "2026-10-24T12:00:00Z", 2), expected);
    assert_eq!(next(&timing(None, &["02:30"], "Europe/Berlin"), "2026-10-24T12:00:00Z", 2), expected);
    let hourly = timing(Some("30 * * * *"), &[], "Europe/Berlin");
    assert_eq!(
        next(&hourly, "2026-10-25T00:00:00Z", 2),
        ["Sun 10-25 02:30 +02:00", "Sun 10-25 02:30 +01:00"],
        "a pattern without a fixed hour ticks in both"
    );
}

#[test]
fn a_period_counts_from_its_start_else_from_the_hours_of_the_clock() {
    let every = Timing { every: Some(Duration::from_mins(15)), ..timing(None, &[], "UTC") };
    assert_eq!(next(&every, "2026-11-23T08:01:00Z", 1), ["Mon 11-23 08:15 +00:00"]);
    let started =
        Timing { start: Some(utc("2026-11-23T08:07:00Z")), end: Some(utc("2026-11-23T08:30:00Z")), ..every };
    assert_eq!(
        next(&started, "2026-11-20T00:00:00Z", 9),
        ["Mon 11-23 08:07 +00:00", "Mon 11-23 08:22 +00:00"],
        "from the start to the end"
    );
}

#[test]
fn what_is_no_time_is_refused_with_its_key() {
    let refused = |timing: &Timing| Ticks::parse(timing).unwrap_err().to_string();
    let long = "9".repeat(300);
    let at = utc("2026-11-23T08:00:00Z");
    let years = Duration::from_hours(10 * 366 * 24);
    let every = |every| Timing { every: Some(every), ..timing(None, &[], "UTC") };
    let backwards =
        Timing { start: Some(at), end: Some(at.before(NEXT)), ..timing(Some("0 9 * * *"), &[], "UTC") };
    let cases = [
        (timing(None, &[], "UTC"), "when it ticks"),
        (timing(Some("0 9 * *"), &[], "UTC"), "0 9 * *"),
        (timing(Some("0 0 9 * * *"), &[], "UTC"), "0 0 9 * * *"),
        (timing(Some(&long), &[], "UTC"), "200 characters"),
        (timing(Some("0 9 * * *"), &[], "Europe/Nowhere"), "Europe/Nowhere"),
        (timing(None, &["25:00"], "UTC"), "25:00"),
        (timing(None, &["day 07:00"], "UTC"), "day 07:00"),
        (timing(None, &["07:00:30"], "UTC"), "07:00:30"),
        (timing(None, &["07:00:00.5"], "UTC"), "07:00:00.5"),
        (timing(None, &["07:00"; TIMES + 1], "UTC"), "101 times, the limit is 100"),
        (backwards, "before the start"),
        (every(Duration::ZERO), "1 s to 10 years"),
        (every(years + Duration::from_secs(1)), "1 s to 10 years"),
    ];
    for (timing, told) in cases {
        let message = refused(&timing);
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn what_is_as_long_as_it_may_be_is_taken() {
    let pattern = format!("{}0 9 * * *", "0,".repeat(95));
    let instant = Some(utc("2026-11-23T09:00:00Z"));
    for timing in [
        timing(None, &["07:00"; TIMES], "UTC"),
        Timing { every: Some(Duration::from_hours(10 * 366 * 24)), ..timing(None, &[], "UTC") },
        timing(Some(&format!("{pattern} ")), &[], "UTC"),
        Timing { start: instant, end: instant, ..timing(Some("0 9 * * *"), &[], "UTC") },
    ] {
        Ticks::parse(&timing).unwrap();
    }
}

#[test]
fn nothing_is_due_before_the_start_and_a_single_time_once() {
    let due = |timing: &Timing, from: &str, now: &str| {
        Ticks::parse(timing).unwrap().due(Missed::All, utc(from), utc(now)).make
    };
    let daily = Timing { start: Some(utc("2026-11-22T09:00:00Z")), ..timing(Some("0 9 * * *"), &[], "UTC") };
    assert_eq!(
        due(&daily, "2026-11-20T00:00:00Z", "2026-11-23T12:00:00Z"),
        [utc("2026-11-22T09:00:00Z"), utc("2026-11-23T09:00:00Z")]
    );
    let once = timing(None, &["2026-11-24 12:00"], "UTC");
    let noon = utc("2026-11-24T12:00:00Z");
    assert_eq!(due(&once, "2026-11-20T00:00:00Z", "2026-11-24T11:59:59Z"), []);
    assert_eq!(due(&once, "2026-11-20T00:00:00Z", "2026-11-24T12:00:00Z"), [noon]);
    assert_eq!(due(&once, "2026-11-24T12:00:00Z", "2026-11-30T00:00:00Z"), []);
}

#[test]
fn a_pattern_without_a_day_is_refused_soon() {
    let parse_started = Instant::now();
    let message = Ticks::parse(&timing(Some("0 0 31 2 *"), &[], "UTC")).unwrap_err().to_string();
    assert!(message.contains("no date matches it"), "{message}");
    assert!(parse_started.elapsed() < Duration::from_secs(20), "{:?}", parse_started.elapsed());
}

fn timings() -> impl Strategy<Value = Timing> {
    let crons = prop::sample::select(vec!["*/7 * * * *", "30 2 * * *", "0 9 * * mon-fri", "0 0 L * *"]);
    let zones = prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"]);
    (prop::option::of(crons), prop::option::of(1_u64..100_000), zones).prop_map(|(cron, every, zone)| {
        let every = every.or(cron.is_none().then_some(3600)).map(Duration::from_secs);
        Timing { every, ..timing(cron, &["02:30"], zone) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any division of a span into looks, its ticks are found once, in order, and all of them.
    #[test]
    fn each_tick_is_due_once(timing in timings(), looks in prop::collection::vec(1_i64..40_000, 1..30)) {
        let ticks = Ticks::parse(&timing).unwrap();
        let begin = utc("2026-03-27T12:00:00Z");
        let (mut now, mut decided, mut made) = (begin, begin, Vec::new());
        for look in looks {
            now = Timestamp::from_secs(now.as_secs() + look);
            let due = ticks.due(Missed::All, decided, now);
            // At most a thousand are made up for. The others are counted.
            prop_assert_eq!(due.missed > 0, due.make.len() == MADE_UP && due.missed > 0);
            made.extend(due.make);
            decided = due.through.unwrap_or(decided);
        }
        let all: Vec<Timestamp> =
            std::iter::successors(ticks.after(begin), |at| ticks.after(*at)).take_while(|at| *at <= now).collect();
        if made.len() < MADE_UP {
            prop_assert_eq!(made, all);
        }
    }

    /// `once` and `skip` decide about as many ticks as `all` does.
    #[test]
    fn every_rule_decides_all_that_is_due(timing in timings(), span in 1_i64..2_000_000) {
        let ticks = Ticks::parse(&timing).unwrap();
        let begin = utc("2026-10-20T12:00:00Z");
        let now = Timestamp::from_secs(begin.as_secs() + span);
        let [skip, once, all] = [Missed::Skip, Missed::Once, Missed::All].map(|rule| ticks.due(rule, begin, now));
        prop_assert_eq!(skip.through, all.through);
        prop_assert_eq!(once.through, all.through);
        prop_assert_eq!(once.make.last(), all.make.last());
        prop_assert!(once.make.len() <= 1 && skip.make.len() <= 1);
        let count = |due: &Due| due.missed + due.make.len() as u64;
        prop_assert_eq!((count(&skip), count(&once)), (count(&all), count(&all)));
    }
}
