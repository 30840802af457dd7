//! All lanes: the built-in ones, and those in `lanes.d/*.toml`, one file a lane, named by the file.

use std::path::Path;

use kernel::Profile;

use super::{Lane, builtin};
use crate::config::definitions::{self, Defect, Definitions, Lookup, Subject};
use base::paths::Root;

/// All lanes by name.
#[derive(Clone, Debug)]
pub struct Lanes {
    defined: Definitions<Lane>,
}

impl Lanes {
    /// Loads the built-in lanes and the lanes of the configuration.
    pub fn load(root: &Root) -> Self {
        let built_in = builtin::ALL.iter().map(|(name, text)| {
            let origin = format!("the built-in lane {name}");
            ((*name).to_owned(), Lane::parse(name, text, Path::new(&origin)))
        });
        let mut defined = Definitions::builtin(built_in);
        let listed = definitions::read_all(&root.lanes_dir(), "toml", Subject::Lane, |name, path, text| {
            let read = name
                .parse::<Profile>()
                .map_err(|e| {
                    let message =
                        format!("{e}; the file's name is the lane's name, which tasks are assigned to");
                    Defect::new(Subject::Lane(name.to_owned()), path, message)
                })
                .and(text)
                .and_then(|text| Lane::parse(name, &text, path));
            defined.define(name, read);
        });
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        Lanes { defined }
    }

    /// Keeps the good versions in `before` of lanes that are defective now.
    pub fn keep(&mut self, before: &Lanes) {
        self.defined.keep(&before.defined);
    }

    pub fn find(&self, assignee: &Profile) -> Lookup<'_, Lane> {
        self.defined.find(assignee.as_str())
    }

    /// Returns true if a lane has this name, usable or not.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.defined.find(name), Lookup::Absent)
    }

    /// Returns all lanes by name, including unusable ones.
    pub fn all(&self) -> impl Iterator<Item = (&str, Lookup<'_, Lane>)> {
        self.names().map(|name| (name, self.defined.find(name)))
    }

    /// Returns the names of all lanes, including unusable ones.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// Returns the account of each lane that has an account.
    pub fn accounts(&self) -> kernel::Accounts {
        let named = self
            .defined
            .usable()
            .filter_map(|(name, lane)| Some((name.parse().ok()?, lane.account.clone()?)));
        named.collect()
    }

    pub fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}
