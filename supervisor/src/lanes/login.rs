//! What the file of a lane says of logins: the command by which its program gets one, and the files in the home of a worker that
//! outlive its run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::sessions::is_inside;
use super::template::{Place, Template};

/// The most files that are kept of a home: each run reads all of them.
const MOST_FILES: usize = 16;

/// Logins of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Login {
    /// The command at a person's terminal; empty where its program has none.
    pub(super) argv: Vec<Template>,
    /// The files that are kept.
    pub(super) keep: BTreeSet<PathBuf>,
}

/// What is wrong with a key of the file, at the first line that has some words.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) words: String,
    pub(super) message: String,
}

impl Login {
    /// Checks what a file says. `written` are the files that a run finds in its home anyway.
    pub(super) fn check<'a>(self, written: impl Iterator<Item = &'a PathBuf>) -> Result<Self, Wrong> {
        let wrong = |key, words: &str, message: String| Err(Wrong { key, words: words.to_owned(), message });
        let of_a_run = [
            Place::PromptFile,
            Place::PromptText,
            Place::Task,
            Place::Session,
            Place::Tools,
            Place::Supervisor,
            Place::Service,
            Place::BaseUrl,
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
