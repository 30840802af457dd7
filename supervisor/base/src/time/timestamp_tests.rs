//! Times as people write them: what is understood, what is refused, and the two nights when clocks change.

use jiff::civil::date;
use proptest::prelude::*;

use super::*;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").expect("the time zones of the host")
}

/// Saturday afternoon in winter.
fn saturday() -> Zoned {
    date(2026, 11, 21).at(14, 2, 7, 0).to_zoned(berlin()).unwrap()
}

#[track_caller]
fn read(text: &str, now: &Zoned) -> String {
    let at = parse(text, now).unwrap_or_else(|error| panic!("{error}"));
    format_in(now.time_zone(), at, "%Y-%m-%d %H:%M:%S %:z")
}

#[test]
fn a_number_with_a_letter_that_is_no_unit_is_no_time_of_day() {
    for text in ["3y", "3 y", "2x", "10a", "12z"] {
        let error = parse(text, &saturday()).unwrap_err();
        assert!(matches!(error, WhenError::Unknown(_)), "{text}: {error}");
    }
}

#[test]
fn times_are_read_as_date_reads_them_and_spans_count_from_now() {
    for (text, at) in [
        ("2026-11-23T09:00:00Z", "2026-11-23 10:00:00 +01:00"),
        ("2026-11-23T09:00:00+05:30", "2026-11-23 04:30:00 +01:00"),
        ("2026-11-23 09:00:00 +05:30", "2026-11-23 04:30:00 +01:00"),
        ("2026-11-23T09:00:00-05:00[America/New_York]", "2026-11-23 15:00:00 +01:00"),
        ("2026-11-23 09:00", "2026-11-23 09:00:00 +01:00"),
        ("2026-11-23T09:00:30", "2026-11-23 09:00:30 +01:00"),
        ("2026-11-23", "2026-11-23 00:00:00 +01:00"),
        ("2026-07-01", "2026-07-01 00:00:00 +02:00"),
        ("23 Nov 2026 9:00", "2026-11-23 09:00:00 +01:00"),
        ("18:30", "2026-11-21 18:30:00 +01:00"),
        ("6:30pm", "2026-11-21 18:30:00 +01:00"),
        ("15:00:01", "2026-11-21 15:00:01 +01:00"),
        ("tomorrow", "2026-11-22 14:02:07 +01:00"),
        ("tomorrow 9am", "2026-11-22 09:00:00 +01:00"),
        ("9am tomorrow", "2026-11-22 09:00:00 +01:00"),
        ("monday 9:00", "2026-11-23 09:00:00 +01:00"),
        ("next month", "2026-12-21 14:02:07 +01:00"),
        ("2 months", "2027-01-21 14:02:07 +01:00"),
        ("90", "2026-11-21 14:03:37 +01:00"),
        ("2h", "2026-11-21 16:02:07 +01:00"),
        ("in 2h", "2026-11-21 16:02:07 +01:00"),
        ("in 2 hours", "2026-11-21 16:02:07 +01:00"),
        ("+30m", "2026-11-21 14:32:07 +01:00"),
        ("1h 30m", "2026-11-21 15:32:07 +01:00"),
        ("1d", "2026-11-22 14:02:07 +01:00"),
        ("1800000000", "2027-01-15 09:00:00 +01:00"),
        ("@1800000000", "2027-01-15 09:00:00 +01:00"),
        ("@0", "1970-01-01 01:00:00 +01:00"),
        ("  2h  ", "2026-11-21 16:02:07 +01:00"),
    ] {
        assert_eq!(read(text, &saturday()), at, "{text}");
    }
}

#[test]
fn what_is_no_time_is_refused_with_its_words() {
    for text in [
        "",
        " ",
        "soon",
        "never",
        "a",
        "z",
        "utc",
        "m",
        "-1",
        "2026-13-01",
        "2026-02-30",
        "25:00",
        "10 9 8 7",
        "1e9",
    ] {
        let refused = parse(text, &saturday());
        assert!(
            refused.as_ref().is_err_and(|error| error.to_string().contains(text.trim())),
            "{text}: {refused:?}"
        );
    }
    for text in ["20261123", "123456789"] {
        assert!(matches!(parse(text, &saturday()), Err(WhenError::Unclear(_))), "{text}");
    }
    for text in ["1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "99999999999999999999", "@253402300799"] {
        assert!(parse(text, &saturday()).is_err(), "{text}");
    }
}

#[test]
fn a_local_time_that_does_not_exist_is_taken_later_and_one_that_occurs_twice_is_the_first() {
    let spring = date(2026, 3, 28).at(12, 0, 0, 0).to_zoned(berlin()).unwrap();
    let autumn = date(2026, 10, 24).at(12, 0, 0, 0).to_zoned(berlin()).unwrap();
    for text in ["2026-03-29 02:30", "tomorrow 2:30am"] {
        assert_eq!(read(text, &spring), "2026-03-29 03:30:00 +02:00", "{text}");
    }
    for text in ["2026-10-25 02:30", "tomorrow 2:30am"] {
        assert_eq!(read(text, &autumn), "2026-10-25 02:30:00 +02:00", "{text}");
    }
    assert_eq!(read("2026-10-25 02:30 +01:00", &autumn), "2026-10-25 02:30:00 +01:00");
    // A duration is exact; a word of the calendar keeps the time of day.
    assert_eq!(read("1d", &spring), "2026-03-29 13:00:00 +02:00");
    assert_eq!(read("tomorrow", &spring), "2026-03-29 12:00:00 +02:00");
}

#[test]
fn a_time_of_day_names_its_offset_only_where_clocks_show_it_twice() {
    let at = |text: &str| parse(text, &saturday()).unwrap();
    assert_eq!(clock_in(&berlin(), at("2026-11-21T13:02:07Z")), "14:02:07");
    assert_eq!(clock_in(&berlin(), at("2026-10-25T00:30:00Z")), "02:30:00 +02:00");
    assert_eq!(clock_in(&berlin(), at("2026-10-25T01:30:00Z")), "02:30:00 +01:00");
}

#[test]
fn a_time_of_another_day_has_its_date_however_near_it_is() {
    let at = |text: &str| parse(text, &saturday()).unwrap();
    let soon = |text: &str, now: &str| soon_in(&berlin(), at(text), at(now));
    assert_eq!(soon("2026-11-21T22:59:00Z", "2026-11-20T23:01:00Z"), "23:59:00");
    assert_eq!(soon("2026-11-21T16:07:17Z", "2026-11-20T16:07:19Z"), "2026-11-21 17:07:17 +01:00");
    assert_eq!(soon("2026-11-21T23:01:00Z", "2026-11-21T22:59:00Z"), "2026-11-22 00:01:00 +01:00");
    assert_eq!(soon("2026-11-20T22:59:00Z", "2026-11-20T23:01:00Z"), "2026-11-20 23:59:00 +01:00");
}

#[test]
fn json_has_seconds_or_text_and_a_point_reads_back_as_itself() {
    let seconds: When = serde_json::from_str("1800000000").unwrap();
    assert_eq!(seconds.timestamp().as_secs(), 1_800_000_000);
    let small: When = serde_json::from_str("5").unwrap();
    assert_eq!(small.timestamp().as_secs(), 5, "a number is a point in time, never a duration");
    assert!(
        serde_json::from_str::<When>("\"soon\"").unwrap_err().to_string().contains("`soon` is not a time")
    );
    let exact = When(Timestamp::from_micros(1_800_000_000_123_456));
    assert_eq!(serde_json::from_value::<When>(serde_json::to_value(exact).unwrap()).unwrap(), exact);
}

fn zones() -> impl Strategy<Value = TimeZone> {
    prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
    ])
    .prop_map(|name| TimeZone::get(name).expect("the time zones of the host"))
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back_as_the_same_second(seconds in 0..4_102_444_800_i64, zone in zones()) {
        let shown = format_in(&zone, Timestamp::from_secs(seconds), "%Y-%m-%d %H:%M:%S %:z");
        prop_assert_eq!(parse(&shown, &saturday()).unwrap().as_secs(), seconds, "{}", shown);
    }

    #[test]
    fn local_times_without_an_offset_are_read_in_the_zone_or_right_after_its_gap(
        seconds in 0..4_102_444_800_i64, zone in zones(),
    ) {
        let at = jiff::Timestamp::from_second(seconds).unwrap();
        let civil = zone.to_datetime(at);
        let now = saturday().with_time_zone(zone.clone());
        let read = parse(&civil.strftime("%Y-%m-%d %H:%M:%S").to_string(), &now).unwrap();
        // The first of two, where there are two.
        prop_assert!(read.as_secs() <= seconds);
        let shown = zone.to_datetime(jiff::Timestamp::from_second(read.as_secs()).unwrap());
        prop_assert_eq!(shown, civil);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        drop(parse(&text, &saturday()));
    }

    #[test]
    fn every_duration_is_a_time_that_far_from_now(seconds in 1..100_000_000_u64) {
        let text = format!("{seconds}s");
        let expected = u64::try_from(saturday().timestamp().as_second()).unwrap() + seconds;
        prop_assert_eq!(u64::try_from(parse(&text, &saturday()).unwrap().as_secs()).unwrap(), expected);
    }
}
