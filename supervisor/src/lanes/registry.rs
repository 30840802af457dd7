//! The lanes that there are: those built in, and those of `lanes.d/*.toml`, one file a lane, named by the file.

use std::path::Path;

use kernel::Profile;

use super::{Lane, builtin};
use crate::config::definitions::{self, Defect, Definitions, Found, Subject};
use crate::paths::Root;

/// All lanes, by name.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    defined: Definitions<Lane>,
}

impl Lanes {
    /// The built-in lanes and those of the configuration.
    pub(crate) fn load(root: &Root) -> Self {
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

    /// Keeps what was good in `before` and is defective now.
    pub(crate) fn keep(&mut self, before: &Lanes) {
        self.defined.keep(&before.defined);
    }

    pub(crate) fn find(&self, assignee: &Profile) -> Found<'_, Lane> {
        self.defined.find(assignee.as_str())
    }

    /// Whether a lane has this name, also one that cannot be used.
    pub(crate) fn has(&self, name: &str) -> bool {
        !matches!(self.defined.find(name), Found::Absent)
    }

    /// All lanes, by name, also those that cannot be used.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Found<'_, Lane>)> {
        self.names().map(|name| (name, self.defined.find(name)))
    }

    /// The names of all lanes, also of those that cannot be used.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// The account of each lane that names one.
    pub(crate) fn accounts(&self) -> kernel::Accounts {
        let named = self
            .defined
            .usable()
            .filter_map(|(name, lane)| Some((name.parse().ok()?, lane.account.clone()?)));
        named.collect()
    }

    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}
