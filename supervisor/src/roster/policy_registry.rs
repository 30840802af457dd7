//! The policies that there are: those built in, and those of `policies.d/*.toml`, one file a policy, named by the file; and
//! which of them this host cannot enforce.

use std::collections::BTreeMap;

use policies::{Boundary, Policy, Source, Support};

use super::CannotRun;
use crate::config::definitions::{self, Defect, Definitions, Found, Subject};
use crate::failure::with_causes;
use crate::paths::Root;

/// All policies, by name.
#[derive(Clone, Debug)]
pub(crate) struct PolicyRegistry {
    defined: Definitions<Policy>,
    /// Those that this host cannot enforce, and why; empty where nobody has examined the host.
    unenforceable: BTreeMap<String, String>,
    /// The host, where somebody has examined it.
    host: Option<Support>,
}

impl PolicyRegistry {
    /// The built-in policies and those of the configuration.
    pub(super) fn load(root: &Root) -> Self {
        let built_in = Policy::builtin_names().iter();
        let mut defined = Definitions::builtin(
            built_in.filter_map(|name| Some(((*name).to_owned(), Ok(Policy::builtin(name)?)))),
        );
        // All of them are read before any is understood: one may extend another.
        let mut sources = BTreeMap::new();
        let listed = definitions::read_all(
            &root.policies_dir(),
            "toml",
            Subject::Policy,
            |name, path, text| match text {
                Ok(text) => drop(sources.insert(name.to_owned(), Source { origin: path.to_owned(), text })),
                Err(defect) => defined.define(name, Err(defect)),
            },
        );
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        let boundary = Boundary::around(&root.closed());
        for (name, source) in &sources {
            let defect = |message| Defect::new(Subject::Policy(name.clone()), &source.origin, message);
            let read = match &boundary {
                Ok(boundary) => Policy::from_source(source, &sources)
                    .and_then(|policy| policy.check_closed(source, boundary).map(|()| policy))
                    .map_err(|e| {
                        Defect { path: e.origin().into(), ..defect(e.what()) }
                            .at(e.line(), e.key().map(str::to_owned))
                    }),
                // What would be closed to its workers is not known.
                Err(e) => Err(defect(format!("the table of mounts cannot be read: {e}"))),
            };
            defined.define(name, read);
        }
        PolicyRegistry { defined, unenforceable: BTreeMap::new(), host: None }
    }

    /// Keeps what was good in `before` and is defective now.
    pub(super) fn keep(&mut self, before: &Self) {
        self.defined.keep(&before.defined);
    }

    /// The same, on a host: policies that it cannot enforce start nothing.
    pub(super) fn on(self, host: &Support) -> Self {
        let unenforceable = self.defined.usable().filter_map(|(name, policy)| {
            Some((name.to_owned(), with_causes(&policy.check_host(host).err()?)))
        });
        let unenforceable = unenforceable.collect();
        PolicyRegistry { unenforceable, host: Some(host.clone()), ..self }
    }

    /// The host that was examined.
    pub(super) fn host(&self) -> Option<&Support> {
        self.host.as_ref()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// The policy of a name, on whatever host.
    pub(crate) fn find(&self, name: &str) -> Result<&Policy, CannotRun> {
        let policy = name.to_owned();
        match self.defined.find(name) {
            Found::Usable(policy) => Ok(policy),
            Found::Disabled(defect) => {
                Err(CannotRun::PolicyDisabled { policy, defect: Box::new(defect.clone()) })
            }
            Found::Absent => {
                let known = self.defined.names().map(str::to_owned).collect();
                Err(CannotRun::PolicyUnknown { policy, known })
            }
        }
    }

    /// The policy of a name, for the program of `who`, which has no proxy.
    pub(crate) fn without_proxy(&self, name: &str, who: &str) -> Result<&Policy, String> {
        let policy = self.find(name).map_err(|why| why.to_string())?;
        if policy.has_proxy() {
            return Err(format!(
                "the policy {name} needs a proxy, and {who} has none; name a policy with mode \"none\" or \"host\""
            ));
        }
        Ok(policy)
    }

    /// The policy of a name, where this host can enforce it.
    pub(super) fn enforceable(&self, name: &str) -> Result<&Policy, CannotRun> {
        let policy = self.find(name)?;
        match self.unenforceable.get(name) {
            Some(why) => Err(CannotRun::PolicyUnenforceable { policy: name.to_owned(), why: why.clone() }),
            None => Ok(policy),
        }
    }

    /// The policies that this host cannot enforce, each with the reason.
    pub(crate) fn unenforceable(&self) -> &BTreeMap<String, String> {
        &self.unenforceable
    }

    pub(super) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}
