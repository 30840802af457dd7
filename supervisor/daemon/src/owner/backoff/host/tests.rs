//! Tests of the opening and the closing of the host's breakers.

use super::super::testing::{at, key};
use super::*;

fn limits() -> DispatchConfig {
    toml::from_str("max_deaths = 3\ndeath_window = \"10s\"").unwrap()
}

fn acme() -> Tenant {
    "acme".parse().unwrap()
}

fn died(seconds: i64) -> Died {
    Died { tenant: Some(acme()), lived: Some(Duration::ZERO), at: at(seconds) }
}

fn die(backoff: &mut Backoff, n: u32, seconds: i64) {
    backoff.died(&key(n), &died(seconds), &limits(), at(seconds));
}

/// Records the death of one run of each tenant.
fn die_of(backoff: &mut Backoff, tenants: &[Option<&str>], seconds: i64) {
    for tenant in tenants {
        let tenant = tenant.map(|tenant| tenant.parse().unwrap());
        backoff.died(&key(1), &Died { tenant, ..died(seconds) }, &limits(), at(seconds));
    }
}

fn deaths(backoff: &Backoff) -> Option<Waiting> {
    backoff.deaths(Some(&acme()), false)
}

#[test]
fn runs_that_die_at_once_in_a_short_time_stop_their_tenant_and_one_that_lives_goes_on() {
    let mut backoff = Backoff::default();
    for (n, seconds) in [(1, 0), (2, 1), (3, 20), (4, 21)] {
        die(&mut backoff, n, seconds);
    }
    assert_eq!(deaths(&backoff), None, "they are too far apart");
    assert!(!backoff.ended_well(&key(9), Some(&acme()), at(21)));
    die(&mut backoff, 5, 21);
    die(&mut backoff, 5, 21);
    assert_eq!(deaths(&backoff), None, "one has ended well in between");
    die(&mut backoff, 5, 22);
    let waiting = deaths(&backoff).unwrap();
    assert!(
        waiting.text.contains("3 runs in a row failed within 2 s") && !waiting.text.contains("t_"),
        "other workers of the tenant read it: {}",
        waiting.text
    );
    assert!(waiting.text.contains("`supervisor release --host-of acme`"), "{}", waiting.text);
    assert_eq!((waiting.until, backoff.nearest()), (Some(at(82)), Some(at(82))));
    assert!(
        matches!(&backoff.take_changed()[..], [(_, BreakerChange::Open(_, _, until))] if *until == at(82))
    );

    assert!(backoff.expire(at(82)));
    assert_eq!(deaths(&backoff), None, "one tries");
    assert!(backoff.deaths(Some(&acme()), true).is_some(), "beside one that was just admitted no second one");
    backoff.try_host(&key(6), Some(&acme()));
    assert!(deaths(&backoff).is_some(), "and no second one");
    die(&mut backoff, 6, 83);
    assert_eq!(deaths(&backoff).unwrap().until, Some(at(143)));
    assert!(backoff.expire(at(143)));
    backoff.try_host(&key(7), Some(&acme()));
    backoff.lives(&key(7), at(144));
    assert!(!backoff.expire(at(145)) && backoff.expire(at(146)));
    assert_eq!((deaths(&backoff), backoff.broken().len()), (None, 0));
    assert!(matches!(backoff.take_changed().last(), Some((_, BreakerChange::Closed(_)))));
}

#[test]
fn what_dies_of_one_tenant_holds_no_other() {
    let mut backoff = Backoff::default();
    let other: Tenant = "other".parse().unwrap();
    for n in [2, 3] {
        backoff.died(&key(n), &Died { tenant: None, ..died(1) }, &limits(), at(1));
    }
    for n in 5..99 {
        die(&mut backoff, n, 1);
    }
    assert!(deaths(&backoff).is_some());
    assert_eq!((backoff.deaths(Some(&other), false), backoff.deaths(None, false)), (None, None));
    let broken = backoff.broken();
    let waiting = (broken[0].what.as_str(), broken[0].release.as_deref());
    assert_eq!(waiting, ("dispatch for tenant acme", Some("supervisor release --host-of acme")));
    assert_eq!(broken.len(), 1);

    // Each breaker has a probe of its own tenant.
    backoff.died(&key(100), &Died { tenant: None, ..died(1) }, &limits(), at(1));
    assert!(backoff.expire(at(61)));
    backoff.try_host(&key(101), Some(&acme()));
    assert!(deaths(&backoff).is_some());
    assert_eq!(backoff.deaths(None, false), None, "one without a tenant may try beside it");
    backoff.ended_well(&key(102), None, at(62));
    assert!(deaths(&backoff).is_some(), "what ends well elsewhere says nothing of it");
    backoff.ended_well(&key(101), Some(&acme()), at(62));
    assert_eq!(deaths(&backoff), None);
}

#[test]
fn where_the_runs_of_several_tenants_die_those_of_all_stop_and_not_by_one_or_two_of_them() {
    let open = |backoff: &Backoff| {
        let broken = backoff.broken();
        broken.iter().map(|broken| broken.what.replace("dispatch for ", "")).collect::<Vec<_>>()
    };
    let mut backoff = Backoff::default();
    die_of(&mut backoff, &[Some("a"), Some("b"), Some("a")], 1);
    assert_eq!(open(&backoff), [""; 0], "they are two");
    die_of(&mut backoff, &[None], 2);
    assert_eq!(open(&backoff), ["tasks without a tenant", "tenant a", "tenant b"]);
    let waiting = backoff.deaths(Some(&"b".parse().unwrap()), false).unwrap();
    assert!(waiting.text.contains("3 runs in a row, of several tenants, failed"), "{}", waiting.text);
    assert!(waiting.text.contains("`supervisor release --host-of b`"), "{}", waiting.text);
    assert_eq!(backoff.deaths(Some(&acme()), false), None, "one that has not died may start");
    die_of(&mut backoff, &[Some("acme")], 3);
    assert!(deaths(&backoff).is_some(), "its first death is one more of the same");
    assert_eq!(backoff.take_changed().len(), 4);

    // Each breaker has a probe of its own tenant; a probe that lives shows that the host works.
    assert!(backoff.expire(at(63)));
    backoff.try_host(&key(7), Some(&"a".parse().unwrap()));
    backoff.ended_well(&key(7), Some(&"a".parse().unwrap()), at(64));
    assert_eq!(open(&backoff), ["tasks without a tenant", "tenant acme", "tenant b"]);
    die_of(&mut backoff, &[Some("a"), Some("a"), Some("c"), Some("c"), Some("d")], 64);
    assert_eq!(open(&backoff).len(), 3, "they died when it lived");
}

#[test]
fn a_run_that_lives_has_the_deaths_of_several_tenants_counted_anew() {
    let mut backoff = Backoff::default();
    die_of(&mut backoff, &[Some("a"), Some("b")], 1);
    backoff.ended_well(&key(9), Some(&acme()), at(2));
    die_of(&mut backoff, &[Some("c"), Some("a")], 3);
    die_of(&mut backoff, &[Some("d")], 20);
    assert_eq!(backoff.broken().len(), 0);
}

#[test]
fn one_tenant_counts_for_no_more_than_its_part_among_several() {
    let mut backoff = Backoff::default();
    let limits: DispatchConfig = toml::from_str("max_deaths = 9\ndeath_window = \"10s\"").unwrap();
    let mut die = |tenant: &str, times: usize| {
        for _ in 0..times {
            let tenant = Some(tenant.parse().unwrap());
            backoff.died(&key(1), &Died { tenant, ..died(1) }, &limits, at(1));
        }
        backoff.broken().len()
    };
    assert_eq!([die("hostile", 8), die("other", 8), die("victim", 2)], [0, 0, 0]);
    assert_eq!(die("victim", 1), 3, "three of each: the host is what they have in common");
}

#[test]
fn a_host_that_is_slow_to_record_an_end_has_its_breaker_as_well() {
    let mut backoff = Backoff::default();
    for (n, heard) in [(1, 30), (2, 60), (3, 90)] {
        backoff.died(&key(n), &died(i64::from(n)), &limits(), at(heard));
    }
    assert_eq!(deaths(&backoff).unwrap().until, Some(at(150)));
}

#[test]
fn what_fails_after_a_while_and_what_is_switched_off_opens_nothing() {
    let mut backoff = Backoff::default();
    let off = toml::from_str("max_deaths = 0").unwrap();
    for n in 0..9 {
        let late = Died { lived: Some(AT_ONCE), ..died(3) };
        backoff.died(&key(n), &late, &limits(), at(3));
        assert!(!backoff.died(&key(n), &Died { lived: None, ..died(3) }, &off, at(3)));
    }
    assert_eq!(deaths(&backoff), None);
}

#[test]
fn no_more_tenants_are_remembered_than_have_just_run() {
    let mut backoff = Backoff::default();
    // No breaker opens with so few deaths each; open ones would be remembered until their release.
    let limits = toml::from_str("max_deaths = 100\ndeath_window = \"10s\"").unwrap();
    for n in 0..1000 {
        let tenant = Some(format!("tenant-{n}").parse().unwrap());
        backoff.died(&key(n), &Died { tenant, ..died(i64::from(n)) }, &limits, at(i64::from(n)));
    }
    assert!(backoff.host.of.len() <= 10, "{}", backoff.host.of.len());
}
