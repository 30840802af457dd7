//! Changed policies and names of hosts are read or refused, and mean the same when they are written out again.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use crate::hosts::is_normal;
use crate::{BrokerHost, ByteSize, Host, HostRule, Policy, Target, presets};

#[test]
fn a_policy_that_is_read_is_the_same_in_its_own_toml_and_json() {
    let policy = |text: &str| Policy::from_toml(text, Path::new("fuzzed"));
    let mut target = fuzz::Target::new("policy", fuzz::Shape::Toml);
    for name in Policy::builtin_names() {
        target = target.seed(presets::text(name).unwrap());
    }
    // What a policy extends is read with it.
    target.memory(8 << 20, 64).check(|input| {
        let Ok(text) = str::from_utf8(input) else { return "no text".to_owned() };
        let first = match policy(text) {
            Ok(first) => first,
            Err(error) => return error.to_string(),
        };
        let json = serde_json::to_string(&first).expect("a policy has a JSON form");
        assert_eq!(serde_json::from_str::<Policy>(&json).expect("its JSON is refused"), first);
        let toml = toml::to_string(&first).expect("a policy has a TOML form");
        assert_eq!(policy(&toml).expect("its TOML is refused"), first);
        "a policy".to_owned()
    });
}

/// Reads a text as a value, and what that is written as.
fn written<T: FromStr<Err: Display> + Display>(text: &str) -> String {
    match text.parse::<T>() {
        Err(error) => error.to_string(),
        Ok(value) => {
            let first = value.to_string();
            let again = first.parse::<T>().map(|value| value.to_string()).map_err(|error| error.to_string());
            assert_eq!(again, Ok(first));
            "read".to_owned()
        }
    }
}

#[test]
fn a_host_that_is_read_is_the_same_when_it_is_written() {
    let target = fuzz::Target::new("host", fuzz::Shape::Text).longest(1 << 10);
    target
        .seed("*.example.org:443")
        .seed("[2001:db8::1]:8080")
        .seed("10.0.0.0/8")
        .seed("ünï.example.")
        .check(|input| {
            let text = String::from_utf8_lossy(input);
            let seen = [written::<Host>(&text), written::<HostRule>(&text), written::<BrokerHost>(&text)];
            if let Ok(Host::Name(name)) = text.parse() {
                assert!(is_normal(&name), "a process of a run refuses {name}");
            }
            let target = Target::parse(&text, Some(80));
            if let Ok(target) = &target {
                assert_eq!(Target::parse(&target.to_string(), None).as_ref(), Ok(target));
            }
            let size = text.parse::<ByteSize>().is_ok();
            format!("{seen:?} {size} {}", target.is_ok())
        });
}
