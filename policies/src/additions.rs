//! What comes to a policy for some of its runs: the hosts and the secrets that their lane names.

use std::collections::{BTreeMap, BTreeSet};

use crate::environment::is_reserved;
use crate::hosts::HostRule;
use crate::network::Mode;
use crate::policy::Policy;
use crate::secrets::Secret;

/// What is added to a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Additions {
    /// Hosts, where the policy has a proxy.
    pub hosts: BTreeSet<HostRule>,
    /// Variables with secret values.
    pub secrets: BTreeMap<String, Secret>,
}

impl Additions {
    /// Returns the first variable of them that is the supervisor's own.
    pub fn reserved(&self) -> Option<&str> {
        let mut names = self.secrets.keys().map(String::as_str);
        names.find(|name| is_reserved(name, Mode::Proxy) || *name == "PATH")
    }
}

impl Policy {
    /// Returns the policy with additions. What it says itself of a variable goes before.
    #[must_use]
    pub fn with(&self, additions: &Additions) -> Self {
        let mut policy = self.clone();
        if policy.has_proxy() {
            policy.network.hosts.extend(additions.hosts.iter().cloned());
        }
        for (variable, secret) in &additions.secrets {
            policy.env.secret.entry(variable.clone()).or_insert_with(|| secret.clone());
        }
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
        }
    }

    #[test]
    fn hosts_come_to_a_policy_that_has_a_proxy_and_secrets_to_every_one() {
        let read = |lines: &str| {
            let text = format!("version = 1\n{lines}\n[env]\nsecret = {{ A = 'of-policy' }}");
            Policy::from_toml(&text, Path::new("p.toml")).unwrap()
        };
        let with = read("[network]\nmode = 'proxy'\nhosts = ['own.example']").with(&additions());
        let hosts: Vec<String> = with.network.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["api.example:443", "own.example"]);
        for policy in [with, read("[network]\nmode = 'host'").with(&additions())] {
            let secrets: Vec<String> =
                policy.env.secret.iter().map(|(key, at)| format!("{key} {at:?}")).collect();
            assert!(secrets[0].contains("of-policy") && secrets[1].contains("of-lane"), "{secrets:?}");
        }
        assert!(read("[network]\nmode = 'ports'").with(&additions()).network.hosts.is_empty());
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
