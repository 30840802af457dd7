//! Reads the session settings of a lane's file: the directory in which the program keeps sessions, and its message
//! for a missing session.

use std::path::{Component, Path, PathBuf};

use shim::rundir::Form as Conversing;

use super::template::{Placeholder, Template};

/// Session settings of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// Directory in the worker's home that contains the sessions and outlives a run.
    pub(super) state: Option<PathBuf>,
    /// Texts that the program writes if the session to resume no longer exists.
    pub(super) gone: Vec<String>,
    /// Words that fork a session, in place of the words that resume it; empty if the program cannot fork.
    pub(super) fork: Vec<Template>,
    /// Directory with a subdirectory of sessions for each workspace, if the program stores them so.
    pub(super) projects: Option<PathBuf>,
    /// True if the run forks a session.
    pub(super) is_forking: bool,
}

/// Defect of a key, located at the first line that contains `words`.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) words: &'static str,
    pub(super) message: String,
}

impl Sessions {
    /// Checks the settings. A command that resumes sessions needs a directory for them.
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
            // Inherited from the extended lane. Such a program gets the session in its conversation and cannot fork.
            (self.fork, self.projects) = (Vec::new(), None);
        }
        let has_group = argv.iter().flatten().any(|word| word.has(Placeholder::Session));
        let names_one = self.fork.iter().any(|word| word.has(Placeholder::Session));
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
        // The conversation names the session to resume.
        let is_told = matches!(form, Some(Conversing::AppServer | Conversing::Acp));
        let resumes = is_told || argv.iter().flatten().any(|word| word.has(Placeholder::Session));
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

/// Returns true if a path is relative and stays inside its base directory.
pub(super) fn is_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
}
