//! Pauses of a channel: as long as its service demands, and after its limit per minute.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::played::{OK, Played, PlayedAnswer};
use super::{done, outbox, secret};
use crate::harness::Fleet;
use crate::http::free_port;

/// A fleet with one channel of a kind, which sends each message by itself.
fn fleet_of(kind: &str, url: &str, more: &str) -> Fleet {
    let fleet = Fleet::offline();
    let token = secret(&fleet, "token", "1:abc\n");
    fleet.configure(&format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = '{kind}'\nurl = '{url}'\nsecret = {token}\nto = '5'\n\
         retry_first = 0\ndigest_above = 0\n{more}"
    ));
    fleet
}

/// Returns the time of the next attempt for each waiting message, in seconds since 1970.
fn next_tries(fleet: &Fleet) -> Vec<u64> {
    outbox(fleet).iter().map(|letter| letter["due_at"].as_u64().unwrap()).collect()
}

fn later(moment: SystemTime, by: Duration) -> u64 {
    (moment.duration_since(UNIX_EPOCH).unwrap() + by).as_secs()
}

#[test]
fn nothing_is_sent_over_a_channel_before_the_pause_is_over_that_its_service_asks_for() {
    let telegram: PlayedAnswer = (
        "429 Too Many Requests",
        "",
        "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests\",\"parameters\":{\"retry_after\":3600}}",
    );
    let slack =
        ("429 Too Many Requests", "retry-after: 3600\r\n", "{\"ok\":false,\"error\":\"ratelimited\"}");
    let discord =
        ("429 Too Many Requests", "", "{\"message\":\"slow\",\"retry_after\":3600.0,\"global\":true}");
    for (kind, refusal) in [("telegram", telegram), ("slack", slack), ("discord", discord)] {
        let played = Played::start(move |_, before| if before == 0 { refusal } else { OK });
        let fleet = fleet_of(kind, &played.url(), "");
        done(&fleet, "one", "ok", &[]);
        done(&fleet, "two", "ok", &["--notify", "ops:77"]);
        fleet.start();

        fleet.eventually("the pause is noted", || {
            let rests = later(SystemTime::now(), Duration::from_mins(30));
            (next_tries(&fleet).iter().all(|at| *at > rests)).then_some(())
        });

        let over = later(played.asked()[0].at, Duration::from_hours(1));
        let tries = next_tries(&fleet);
        assert!(tries.len() == 2 && tries.iter().all(|at| *at >= over), "{kind}: {tries:?} {over}");
        let shown = fleet.cli(["notify", "outbox"]).ok().stdout;
        assert!(!shown.contains(" due "), "{shown}");
        // A message that comes meanwhile waits as well.
        done(&fleet, "three", "ok", &["--notify", "ops:78"]);
        let status = fleet.cli(["status"]);
        assert!(
            status.stdout.contains("channel ops: ") && status.stdout.contains("3 waiting, 0 dead"),
            "{status:?}"
        );
        assert_eq!((played.asked().len(), next_tries(&fleet).len()), (1, 3), "{kind}");
    }
}

#[test]
fn a_channel_sends_no_more_messages_a_minute_than_it_may() {
    let played = Played::start(|_, _| OK);
    let fleet = fleet_of("telegram", &played.url(), "per_minute = 2\n");
    for n in 0..5 {
        done(&fleet, &format!("task {n}"), "ok", &[]);
    }
    let before = SystemTime::now();
    fleet.start();

    fleet.eventually("two are sent, and the others wait for the end of the minute", || {
        let rests = later(SystemTime::now(), Duration::from_secs(1));
        let tries = next_tries(&fleet);
        (tries.len() == 3 && tries.iter().all(|at| *at > rests)).then_some(())
    });

    let over = later(before, Duration::from_mins(1));
    let tries = next_tries(&fleet);
    assert!(played.asked().len() == 2 && tries.iter().all(|at| *at >= over), "{tries:?} {over}");
}

#[test]
fn a_channel_that_has_just_failed_is_shown_and_is_no_trouble_yet() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let fleet = fleet_of("telegram", &url, "");
    done(&fleet, "one", "ok", &[]);
    fleet.start();
    fleet.eventually("it was tried", || outbox(&fleet)[0]["attempts"].as_u64().filter(|tries| *tries > 0));

    let status = fleet.cli(["status"]).ok().stdout;

    assert!(status.contains("warning channel ops: ") && status.contains("1 waiting, 0 dead: "), "{status}");
    assert!(!fleet.json(["diagnostics", "--severity", "error"]).to_string().contains("messages_undelivered"));
}
