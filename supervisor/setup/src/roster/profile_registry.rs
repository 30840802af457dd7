//! All profiles: the shipped ones, and those in `profiles.d/*.md`, one file a profile, named by the file.

use std::path::Path;

use kernel::Profile;

use super::ProfileDefinition;
use crate::config::definitions::{self, Defect, Definitions, Lookup, Subject};
use base::paths::Root;

const SHIPPED: [(&str, &str); 12] = [
    ("orchestrator", include_str!("builtin/orchestrator.md")),
    ("researcher", include_str!("builtin/researcher.md")),
    ("writer", include_str!("builtin/writer.md")),
    ("analyst", include_str!("builtin/analyst.md")),
    ("backend-eng", include_str!("builtin/backend-eng.md")),
    ("reviewer", include_str!("builtin/reviewer.md")),
    ("ops", include_str!("builtin/ops.md")),
    ("specifier", include_str!("builtin/specifier.md")),
    ("decomposer", include_str!("builtin/decomposer.md")),
    ("planner", include_str!("builtin/planner.md")),
    ("router", include_str!("builtin/router.md")),
    ("overseer", include_str!("builtin/overseer.md")),
];

/// Returns the file of a shipped profile.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

/// All profiles by name.
#[derive(Clone, Debug)]
pub(crate) struct ProfileRegistry {
    defined: Definitions<ProfileDefinition>,
}

impl ProfileRegistry {
    /// Loads the shipped profiles and the profiles of the configuration.
    pub(super) fn load(root: &Root) -> Self {
        let mut defined = Definitions::builtin(SHIPPED.iter().map(|(name, text)| {
            let origin = format!("the shipped profile {name}");
            let read = ProfileDefinition::parse(name, text, Path::new(&origin));
            ((*name).to_owned(), read.map(|definition| ProfileDefinition { is_shipped: true, ..definition }))
        }));
        let listed =
            definitions::read_all(&root.profiles_dir(), "md", Subject::Profile, |name, path, text| {
                defined.define(
                    name,
                    named(name, path).and(text).and_then(|text| ProfileDefinition::parse(name, &text, path)),
                );
            });
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        ProfileRegistry { defined }
    }

    /// Keeps the good versions in `before` of profiles that are defective now.
    pub(super) fn keep(&mut self, before: &Self) {
        self.defined.keep(&before.defined);
    }

    pub(super) fn find(&self, name: &str) -> Lookup<'_, ProfileDefinition> {
        self.defined.find(name)
    }

    /// Returns all names, including names of unusable profiles.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    pub(super) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}

/// Refuses a file name that is not a valid assignee.
fn named(name: &str, path: &Path) -> Result<Profile, Defect> {
    name.parse::<Profile>().map_err(|e| {
        let message = format!("{e}; the file's name is the profile's name, which tasks are assigned to");
        Defect::new(Subject::Profile(name.to_owned()), path, message)
    })
}
