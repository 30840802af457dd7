//! All policies: the built-in ones, and those in `policies.d/*.toml`, one file a policy, named by the file; with the
//! policies that this host cannot enforce.

use std::collections::BTreeMap;

use kernel::{Finding, FindingCode};
use policies::{Boundary, Policy, Source, Support};

use super::CannotRun;
use crate::config::definitions::{Defect, Definitions, Lookup, NamedFile, Subject, files_of, with_ending};
use crate::config::settings;
use base::failure::with_causes;
use base::paths::Root;

/// All policies by name.
#[derive(Clone, Debug)]
pub struct PolicyRegistry {
    defined: Definitions<Policy>,
    /// Policies that this host cannot enforce, with the reasons; empty while the host is not examined.
    unenforceable: BTreeMap<String, String>,
    host: Option<Support>,
}

impl PolicyRegistry {
    /// Loads the built-in policies and the policies of the configuration.
    pub(super) fn load(root: &Root) -> Self {
        let built_in = Policy::builtin_names().iter();
        let mut defined = Definitions::builtin(
            built_in.filter_map(|name| Some(((*name).to_owned(), Ok(Policy::builtin(name)?)))),
        );
        // All texts are read before any is parsed, because policies may extend each other.
        let mut sources = BTreeMap::new();
        let files = files_of(&root.policies_dir(), |entry| with_ending(entry, &["toml"]));
        let files = files.unwrap_or_else(|defect| {
            defined.not_listed(defect);
            Vec::new()
        });
        for NamedFile { name, path } in files {
            match settings::read(&path) {
                Ok(text) => drop(sources.insert(name, Source { origin: path, text })),
                Err(e) => {
                    let defect = Defect::unreadable(Subject::Policy(name.clone()), &path, &e);
                    defined.define(&name, Err(defect));
                }
            }
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
                // Without the mount table, the paths that are closed to workers are unknown.
                Err(e) => Err(defect(format!("the table of mounts cannot be read: {e}"))),
            };
            defined.define(name, read);
        }
        PolicyRegistry { defined, unenforceable: BTreeMap::new(), host: None }
    }

    /// Keeps the good versions in `before` of policies that are defective now.
    pub(super) fn keep(&mut self, before: &Self) {
        self.defined.keep(&before.defined);
    }

    /// Sets the host, and finds the policies that it cannot enforce.
    pub(super) fn on(self, host: &Support) -> Self {
        let unenforceable = self.defined.usable().filter_map(|(name, policy)| {
            Some((name.to_owned(), with_causes(&policy.check_host(host).err()?)))
        });
        let unenforceable = unenforceable.collect();
        PolicyRegistry { unenforceable, host: Some(host.clone()), ..self }
    }

    /// Returns the examined host.
    pub(super) fn host(&self) -> Option<&Support> {
        self.host.as_ref()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// Returns the policy of a name, enforceable or not.
    pub fn find(&self, name: &str) -> Result<&Policy, CannotRun> {
        let policy = name.to_owned();
        match self.defined.find(name) {
            Lookup::Usable(policy) => Ok(policy),
            Lookup::Disabled(defect) => {
                Err(CannotRun::PolicyDisabled { policy, defect: Box::new(defect.clone()) })
            }
            Lookup::Absent => {
                let known = self.defined.names().map(str::to_owned).collect();
                Err(CannotRun::PolicyUnknown { policy, known })
            }
        }
    }

    /// Returns true if the policy of a name is usable and confines its runs.
    pub fn confines(&self, name: &str) -> bool {
        self.find(name).is_ok_and(Policy::is_confined)
    }

    /// Returns the policy of a name for the program of `who`; refuses a policy with a proxy, which such a program
    /// lacks.
    pub fn without_proxy(&self, name: &str, subject: &str) -> Result<&Policy, String> {
        let policy = self.find(name).map_err(|why| why.to_string())?;
        if policy.has_proxy() {
            return Err(format!(
                "the policy {name} needs a proxy, and {subject} has none; name a policy with mode \"none\" or \"host\""
            ));
        }
        Ok(policy)
    }

    /// Returns the policy of a name if this host can enforce it.
    pub(super) fn enforceable(&self, name: &str) -> Result<&Policy, CannotRun> {
        let policy = self.find(name)?;
        match self.unenforceable.get(name) {
            Some(why) => Err(CannotRun::PolicyUnenforceable { policy: name.to_owned(), why: why.clone() }),
            None => Ok(policy),
        }
    }

    /// Returns the policies that this host cannot enforce, with the reasons.
    pub fn unenforceable(&self) -> &BTreeMap<String, String> {
        &self.unenforceable
    }

    /// Returns a finding for each policy that the host cannot enforce.
    pub fn unenforceable_findings(&self) -> impl Iterator<Item = Finding> {
        self.unenforceable.iter().map(|(policy, why)| {
            Finding::error(
                FindingCode::PolicyUnenforceable,
                format!("this host cannot enforce it, so its tasks wait: {why}"),
            )
            .about(format!("policy {policy}"))
        })
    }

    pub(super) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}
