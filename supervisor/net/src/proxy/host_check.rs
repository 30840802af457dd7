//! Decides if a worker may reach a target: by its name, then by the addresses of the name. No other code decides this.

use std::net::{IpAddr, SocketAddr};

use policies::{Host, Policy, Target};

use super::addresses::is_public;

/// Refusal of a target that a worker may not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedTarget {
    pub(super) target: Target,
    /// Target that the policy would have to name to permit it.
    pub(super) named: Target,
}

/// Refuses a target that the policy does not name.
pub(super) fn check_target(policy: &Policy, target: &Target) -> Result<(), RefusedTarget> {
    // A host with a broker is reachable through the broker alone. Through a tunnel, a worker could use a key of its own,
    // and its requests would not be counted.
    let is_brokered = policy.brokers_of(target).next().is_some();
    if policy.network.permits(target) && !is_brokered {
        return Ok(());
    }
    Err(RefusedTarget { target: target.clone(), named: target.clone() })
}

/// Returns the permitted addresses of a permitted target: addresses of the public internet, and addresses that the policy
/// names. Refuses a target all of whose addresses are refused.
pub(super) fn check_addresses(
    policy: &Policy,
    target: &Target,
    found: impl IntoIterator<Item = IpAddr>,
) -> Result<Vec<SocketAddr>, RefusedTarget> {
    let (mut permitted, mut refused) = (Vec::new(), None);
    for address in found.into_iter().map(|address| address.to_canonical()) {
        let named = Target { host: Host::Address(address), port: target.port };
        let is_named = policy.network.permits(&named) || policy.brokers_of(&named).next().is_some();
        if is_public(address) || is_named {
            permitted.push(SocketAddr::new(address, target.port));
        } else {
            refused.get_or_insert(named);
        }
    }
    match refused {
        Some(named) if permitted.is_empty() => Err(RefusedTarget { target: target.clone(), named }),
        Some(_) | None => Ok(permitted),
    }
}

/// Returns the address that a policy would have to name to make a target reachable; none if it is reachable.
pub fn unnamed_address(
    policy: &Policy,
    target: &Target,
    found: impl IntoIterator<Item = IpAddr>,
) -> Option<Target> {
    check_addresses(policy, target, found).err().map(|refusal| refusal.named)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn policy() -> Policy {
        let text = "version = 1\n[network]\nmode = 'proxy'\n\
                    hosts = ['api.example:443', '*.rebound.example', '10.0.0.0/8:443', '127.0.0.1:9000']";
        Policy::from_toml(text, Path::new("p.toml")).unwrap()
    }

    fn addresses(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    #[test]
    fn a_target_is_what_the_policy_names_and_nothing_else() {
        for (asked, is_permitted) in [
            ("api.example:443", true),
            ("api.example:80", false),
            ("x.rebound.example:80", true),
            ("127.0.0.1:9000", true),
            ("127.0.0.1:9001", false),
            ("8.8.8.8:443", false),
        ] {
            assert_eq!(check_target(&policy(), &target(asked)).is_ok(), is_permitted, "{asked}");
        }
        let none = Policy::from_toml("version = 1\n[network]\nmode = 'proxy'", Path::new("p.toml")).unwrap();
        assert!(check_target(&none, &target("api.example:443")).is_err(), "no hosts are not all hosts");
    }

    #[test]
    fn what_has_a_broker_is_no_target_and_its_address_is_named_by_it() {
        let text = "version = 1\n[network]\nmode = 'proxy'\nhosts = ['api.example', 'b.example']\n\
                    [[broker]]\nhost = 'api.example'\nheader = 'a'\nsecret = 'k'\n\
                    [[broker]]\nhost = '127.0.0.1:9000'\nheader = 'a'\nsecret = 'k'";
        let policy = Policy::from_toml(text, Path::new("p.toml")).unwrap();
        for (asked, is_permitted) in [
            ("api.example:443", false),
            ("api.example:80", true),
            ("b.example:443", true),
            ("127.0.0.1:9000", false),
        ] {
            assert_eq!(check_target(&policy, &target(asked)).is_ok(), is_permitted, "{asked}");
        }
        let own = target("127.0.0.1:9000");
        assert!(check_addresses(&policy, &own, addresses(&["127.0.0.1"])).is_ok());
        assert!(check_addresses(&policy, &target("api.example:443"), addresses(&["127.0.0.1"])).is_err());
        let unnamed = |found: &[&str]| unnamed_address(&policy, &target("b.example:443"), addresses(found));
        assert_eq!(unnamed(&["::1"]), Some(target("[::1]:443")));
        assert_eq!((unnamed(&["1.1.1.1", "::1"]), unnamed(&[])), (None, None));
    }

    #[test]
    fn an_address_that_is_not_the_internets_is_connected_to_where_it_is_named() {
        for (asked, found, connected) in [
            ("api.example:443", &["1.1.1.1"][..], &["1.1.1.1:443"][..]),
            ("api.example:443", &["10.2.3.4", "192.168.0.1"], &["10.2.3.4:443"]),
            ("api.example:443", &["::ffff:10.2.3.4"], &["10.2.3.4:443"]),
            ("x.rebound.example:80", &["127.0.0.1", "1.1.1.1"], &["1.1.1.1:80"]),
            ("127.0.0.1:9000", &["127.0.0.1"], &["127.0.0.1:9000"]),
            ("api.example:443", &[], &[]),
        ] {
            let connected: Vec<SocketAddr> = connected.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(
                check_addresses(&policy(), &target(asked), addresses(found)),
                Ok(connected),
                "{asked}"
            );
        }
    }

    #[test]
    fn a_name_that_leads_only_to_addresses_that_are_not_named_is_refused_with_the_first() {
        for (asked, found, named) in [
            ("x.rebound.example:443", &["169.254.169.254", "127.0.0.1"][..], "169.254.169.254:443"),
            ("x.rebound.example:80", &["10.0.0.1"], "10.0.0.1:80"),
            ("x.rebound.example:80", &["::ffff:127.0.0.1"], "127.0.0.1:80"),
            ("x.rebound.example:80", &["::1"], "[::1]:80"),
        ] {
            let refusal = RefusedTarget { target: target(asked), named: target(named) };
            assert_eq!(check_addresses(&policy(), &target(asked), addresses(found)), Err(refusal), "{asked}");
        }
    }
}
