//! Reads the login settings of a lane's file: the login command, and the files in a worker's home that outlive its
//! run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::sessions::is_inside;
use super::template::{Placeholder, Template};

/// Limit on the number of kept files: each run reads all of them.
const MOST_FILES: usize = 16;

/// Login settings of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Login {
    /// Command at a person's terminal; empty if the program has no login.
    pub(super) argv: Vec<Template>,
    pub(super) keep: BTreeSet<PathBuf>,
}

/// Defect of a key, located at the first line that contains `words`.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) words: String,
    pub(super) message: String,
}

impl Login {
    /// Checks the settings. `written` are the files that each run finds in its home anyway.
    pub(super) fn check<'a>(self, written: impl Iterator<Item = &'a PathBuf>) -> Result<Self, Wrong> {
        let wrong = |key, words: &str, message: String| Err(Wrong { key, words: words.to_owned(), message });
        let of_a_run = [
            Placeholder::PromptFile,
            Placeholder::PromptText,
            Placeholder::Task,
            Placeholder::Session,
            Placeholder::Tools,
            Placeholder::Supervisor,
            Placeholder::Service,
            Placeholder::BaseUrl,
        ];
        if self.argv.iter().any(|word| of_a_run.into_iter().any(|place| word.has(place))) {
            let message = "a login has no task: its words may have {home}, {tmp} and {workspace}";
            return wrong("login", "login", message.to_owned());
        }
        if !self.argv.is_empty() && self.keep.is_empty() {
            let message = "nothing of it would be kept; name the files of a login: keep = [\".x/auth.json\"]";
            return wrong("login", "login", message.to_owned());
        }
        if self.keep.len() > MOST_FILES {
            return wrong("keep", "keep", format!("it names more than {MOST_FILES} files"));
        }
        let name = |path: &Path| path.to_string_lossy().into_owned();
        if let Some(path) = self.keep.iter().find(|path| !is_inside(path)) {
            let message = format!("`{}` is not a path inside of the home of the worker", path.display());
            return wrong("keep", &name(path), message);
        }
        // A kept file and a file that each run gets would overwrite each other.
        let meets = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
        for file in written {
            if let Some(path) = self.keep.iter().find(|path| meets(path, file)) {
                let message = format!("`{}` is written anew for each run", path.display());
                return wrong("keep", &name(path), message);
            }
        }
        Ok(self)
    }
}
