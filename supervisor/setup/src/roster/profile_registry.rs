//! All profiles: the shipped ones, and those in `profiles.d/*.md`, one file a profile, named by the file.

use std::path::{Path, PathBuf};

use kernel::Profile;

use super::ProfileDefinition;
use crate::config::definitions::{Defect, FileDefinition, NamedFile, Subject, with_ending};
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

impl FileDefinition for ProfileDefinition {
    const SUBJECT: fn(String) -> Subject = Subject::Profile;

    fn directory(root: &Root) -> PathBuf {
        root.profiles_dir()
    }

    fn builtin() -> Vec<(String, Result<Self, Defect>)> {
        let read = |name: &str, text| {
            let origin = format!("the shipped profile {name}");
            let read = ProfileDefinition::parse(name, text, Path::new(&origin));
            read.map(|definition| ProfileDefinition { is_shipped: true, ..definition })
        };
        SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), read(name, text))).collect()
    }

    fn file_of(entry: &Path) -> Option<NamedFile> {
        with_ending(entry, &["md"])
    }

    fn check(name: &str, _path: &Path) -> Result<(), String> {
        name.parse::<Profile>()
            .map(drop)
            .map_err(|e| format!("{e}; the file's name is the profile's name, which tasks are assigned to"))
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        ProfileDefinition::parse(name, text, path)
    }
}
