//! How a lane starts a run: the command, its environment, its prompt, and what it may read for that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernel::{BoardName, Run, Task};
use policies::BoardAccess;
use shim::rundir::Stdin;

use super::environment;
use super::lane::{Lane, Prompt};

/// The places that a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) tmp: &'a Path,
    /// The files of its task, and those handed over to it.
    pub(crate) files: &'a Path,
    /// The file that has its prompt.
    pub(crate) prompt: &'a Path,
    /// The directory of all workspaces of its board.
    pub(crate) workspaces: &'a Path,
}

/// What the start of a run is made from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) board: &'a BoardName,
    pub(crate) task: &'a Task,
    pub(crate) run: &'a Run,
    /// What its worker shows to the board.
    pub(crate) token: &'a str,
    pub(crate) places: Places<'a>,
    /// How it reaches the board.
    pub(crate) access: &'a BoardAccess,
    /// When it is ended, in epoch seconds.
    pub(crate) deadline: Option<i64>,
}

/// How a worker is started.
pub(crate) struct Start {
    pub(crate) argv: Vec<String>,
    /// The variables that tell it about its run; the policy adds those that it lets through.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) stdin: Stdin,
    /// What it may read: the files of its task, and its prompt where that is a file.
    pub(crate) read: Vec<PathBuf>,
}

/// The lane runs the body of its tasks, and this one has none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task has no body, and its lane runs the body")]
pub(crate) struct NoBody;

impl Lane {
    /// The text of the prompt: the context of the task, or its bare body.
    pub(crate) fn prompt_text<'a>(&self, task: &'a Task, context: &'a str) -> Result<&'a str, NoBody> {
        match self.prompt {
            Prompt::Stdin | Prompt::File => Ok(context),
            Prompt::BodyFile => task.body.as_deref().filter(|body| !body.trim().is_empty()).ok_or(NoBody),
        }
    }

    /// Makes the start of a run whose prompt is in its file.
    pub(crate) fn start(&self, facts: &Facts<'_>) -> Start {
        let Places { workspace, prompt, files, .. } = facts.places;
        let mut read = vec![files.to_owned()];
        let stdin = match self.prompt {
            Prompt::Stdin => Stdin::File(prompt.to_owned()),
            Prompt::File | Prompt::BodyFile => {
                read.push(prompt.to_owned());
                Stdin::Null
            }
        };
        Start {
            argv: self.command(prompt, workspace, facts.task.id.as_str()),
            env: environment::variables(facts),
            stdin,
            read,
        }
    }
}
