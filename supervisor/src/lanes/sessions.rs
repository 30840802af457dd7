//! What the file of a lane says of sessions: where its program keeps them, and how it says that one is gone.

use std::path::{Component, Path, PathBuf};

use shim::rundir::Form as Conversing;

use super::template::{Place, Template};

/// The sessions of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// The directory in the home of its workers that has them, and outlives a run.
    pub(super) state: Option<PathBuf>,
    /// What its program writes where the session that it is to go on in does not exist any more.
    pub(super) gone: Vec<String>,
    /// The words that begin a new session from another one, in the place of those that go on in it; none where its program cannot.
    pub(super) fork: Vec<Template>,
    /// The directory that has one for the sessions of each workspace, where its program keeps them so.
    pub(super) projects: Option<PathBuf>,
    /// Whether the run begins a session from another one.
    pub(super) is_forking: bool,
}

/// What is wrong with a key of the file, at the first line that has some words.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) words: &'static str,
    pub(super) message: String,
}

impl Sessions {
    /// Checks what a file says: a directory of sessions is there where the command goes on in one.
    pub(super) fn check<'a>(
        mut self,
        argv: &[Vec<Template>],
        form: Option<Conversing>,
        mut files: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Self, Wrong> {
        let wrong = |key, message: String| Err(Wrong { key, words: key, message });
        if self.gone.iter().any(|text| text.trim().is_empty()) {
            let message = "one of its texts is empty, which everything contains";
            return wrong("session_gone", message.to_owned());
        }
        if matches!(form, Some(Conversing::AppServer | Conversing::Acp)) {
            // Of the lane that it extends: this one names a session in its conversation, and begins none from another.
            (self.fork, self.projects) = (Vec::new(), None);
        }
        let has_group = argv.iter().flatten().any(|word| word.has(Place::Session));
        let names_one = self.fork.iter().any(|word| word.has(Place::Session));
        if !self.fork.is_empty() && (!has_group || !names_one) {
            let message =
                "it replaces the words of `argv` that contain {session}, so both must contain {session}";
            return wrong("fork", message.to_owned());
        }
        if let Some(projects) = &self.projects
            && (self.fork.is_empty() || self.state.as_ref().is_none_or(|state| !projects.starts_with(state)))
        {
            let message = "it must lie below `state`, and the lane must have `fork`";
            return wrong("projects", message.to_owned());
        }
        // The conversation names the session in which its program goes on.
        let is_told = matches!(form, Some(Conversing::AppServer | Conversing::Acp));
        let resumes = is_told || argv.iter().flatten().any(|word| word.has(Place::Session));
        let Some(state) = &self.state else {
            if resumes && !is_told {
                let message =
                    "`{session}` needs the directory of sessions in the home of a worker: state = \"…\"";
                return Err(Wrong { key: "argv", words: "{session}", message: message.to_owned() });
            }
            return Ok(self);
        };
        if !resumes {
            let message = "nothing uses it; write {session} into `argv`, where its program goes on in one";
            return wrong("state", message.to_owned());
        }
        if !is_inside(state) {
            let message = format!("`{}` is not a path inside of the home of the worker", state.display());
            return wrong("state", message);
        }
        match files.find(|file| file.starts_with(state) || state.starts_with(file)) {
            Some(file) => {
                let file = file.display();
                wrong("state", format!("the file {file} is written anew for each run, and lies in it"))
            }
            None => Ok(self),
        }
    }
}

/// Whether a path leads to something inside of the directory that it begins in.
pub(super) fn is_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}
