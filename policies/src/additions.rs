//! Additions to a policy for some of its runs: the hosts, the secrets and the brokers that their lane names.

use std::collections::{BTreeMap, BTreeSet};

use crate::broker::Broker;
use crate::environment::is_reserved;
use crate::hosts::HostRule;
use crate::network::Mode;
use crate::policy::Policy;
use crate::secret_stores::SecretStores;
use crate::secrets::Secret;

/// Hosts, secrets and brokers that the lane of a run adds to its policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions {
    /// Hosts, where the policy has a proxy.
    pub hosts: BTreeSet<HostRule>,
    /// Variables with secret values.
    pub secrets: BTreeMap<String, Secret>,
    /// Brokers, where the policy has a proxy.
    pub brokers: Vec<Broker>,
}

impl Additions {
    /// Returns the first of its variables that the supervisor sets itself.
    pub fn reserved(&self) -> Option<&str> {
        let mut names = self.secrets.keys().map(String::as_str);
        names.find(|name| is_reserved(name, Mode::Proxy) || *name == "PATH")
    }
}

impl Policy {
    /// Returns the policy of a run with additions, on a host with these secrets. The policy's own variables and headers
    /// take precedence. A variable of a broker gets no secret, because the run must not have it.
    #[must_use]
    pub fn with(&self, additions: &Additions, stores: &SecretStores) -> Self {
        let mut policy = self.clone();
        if policy.has_proxy() {
            policy.network.hosts.extend(additions.hosts.iter().cloned());
            let is_new = |broker: &&Broker| {
                !self.broker.iter().any(|own| own.host == broker.host && own.header == broker.header)
            };
            policy.broker.extend(additions.brokers.iter().filter(is_new).cloned());
            policy.broker.retain(|broker| !broker.optional || broker.secret.is_there(stores));
        }
        for (variable, secret) in &additions.secrets {
            policy.env.secret.entry(variable.clone()).or_insert_with(|| secret.clone());
        }
        let of_brokers = policy.broker_environment();
        policy.env.secret.retain(|variable, _| !of_brokers.contains_key(variable));
        policy
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn additions() -> Additions {
        let name = |name: &str| Secret::Named(name.to_owned().try_into().unwrap());
        Additions {
            hosts: ["api.example:443".parse().unwrap()].into(),
            secrets: [("A", "of-lane"), ("B", "of-lane")].map(|(key, at)| (key.to_owned(), name(at))).into(),
            brokers: Vec::new(),
        }
    }

    #[test]
    fn hosts_come_to_a_policy_that_has_a_proxy_and_secrets_to_every_one() {
        let read = |lines: &str| {
            let text = format!("version = 1\n{lines}\n[env]\nsecret = {{ A = 'of-policy' }}");
            Policy::from_toml(&text, Path::new("p.toml")).unwrap()
        };
        let with = read("[network]\nmode = 'proxy'\nhosts = ['own.example']")
            .with(&additions(), &SecretStores::default());
        let hosts: Vec<String> = with.network.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["api.example:443", "own.example"]);
        for policy in [with, read("[network]\nmode = 'host'").with(&additions(), &SecretStores::default())] {
            let secrets: Vec<String> =
                policy.env.secret.iter().map(|(key, at)| format!("{key} {at:?}")).collect();
            assert!(secrets[0].contains("of-policy") && secrets[1].contains("of-lane"), "{secrets:?}");
        }
        assert!(
            read("[network]\nmode = 'ports'")
                .with(&additions(), &SecretStores::default())
                .network
                .hosts
                .is_empty()
        );
    }

    #[test]
    fn a_broker_of_a_lane_comes_to_a_proxy_unless_the_policy_has_it_or_nobody_has_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there"), "x").unwrap();
        let stores = SecretStores { credentials: None, directory: Some(dir.path().to_owned()) };
        let of = |host: &str, secret: &str, more: &str| {
            format!("[[broker]]\nhost = '{host}'\nheader = 'key'\nsecret = '{secret}'\n{more}\n")
        };
        let read = |text: &str| {
            let text = format!("version = 1\n[network]\nmode = 'proxy'\n{text}");
            Policy::from_toml(&text, Path::new("p.toml")).unwrap()
        };
        let brought = [
            of("own.example", "of-lane", ""),
            of("a.example", "there", "optional = true\nkey_env = 'A'"),
            of("b.example", "missing", "optional = true"),
            of("c.example", "missing", ""),
        ];
        let additions = Additions { brokers: read(&brought.concat()).broker, ..additions() };
        let with = read(&of("own.example", "of-policy", "")).with(&additions, &stores);
        let hosts: Vec<String> = with.broker.iter().map(|broker| broker.host.to_string()).collect();
        assert_eq!(hosts, ["own.example", "a.example", "c.example"]);
        assert!(format!("{:?}", with.broker[0].secret).contains("of-policy"));
        let variables: Vec<&str> = with.env.secret.keys().map(String::as_str).collect();
        assert_eq!(variables, ["B"], "the variable of a broker has no secret");
        let none = Policy::from_toml("version = 1", Path::new("p.toml")).unwrap();
        assert!(none.with(&additions, &stores).broker.is_empty());
    }

    #[test]
    fn a_variable_of_the_supervisors_own_is_found() {
        assert_eq!(additions().reserved(), None);
        let secret = additions().secrets["A"].clone();
        for name in ["HOME", "PATH", "SUPERVISOR_TOKEN", "https_proxy"] {
            let secrets = BTreeMap::from([(name.to_owned(), secret.clone())]);
            assert_eq!(Additions { secrets, ..Additions::default() }.reserved(), Some(name));
        }
    }
}
