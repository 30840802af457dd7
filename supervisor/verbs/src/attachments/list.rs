//! `attachments`: the files of a task.

use std::sync::Arc;

use kernel::{Attachment, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Cell, Screen};
use base::time::timestamp;

/// List the files of a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor attachments t_0123abcd
  supervisor attachments t_0123abcd --json
  supervisor attachments                (inside a run: the run's own task)")]
pub struct Attachments {
    /// The task; inside a run, the run's own task if none is named
    pub task_id: Option<TaskId>,
}

/// File of a task, with the path at which the caller can read it.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredAttachment {
    #[serde(flatten)]
    pub file: Attachment,
    /// Path of the file; none if the caller can read it only through the API.
    pub stored_path: Option<String>,
}

impl StoredAttachment {
    pub(crate) fn from_file(file: Attachment, place: &kernel::PlaceOf<'_>) -> Self {
        StoredAttachment { stored_path: place(&file), file }
    }

    pub(crate) fn all(files: Vec<Attachment>, place: &kernel::PlaceOf<'_>) -> Vec<Self> {
        files.into_iter().map(|file| StoredAttachment::from_file(file, place)).collect()
    }
}

impl Verb for Attachments {
    verb! {
        "attachments": Worker, Read,
        members,
        tool(Worker, "Each file is at `stored_path`.")
        => Vec<StoredAttachment>
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    async fn run(self, call: Call) -> Result<Vec<StoredAttachment>, Failure> {
        let id = parse::named(self.task_id)?;
        let (task, actor) = (id.clone(), call.actor.clone());
        let files = call
            .read(move |view| {
                view.task_for(&id, &actor)?;
                view.attachments(&id)
            })
            .await?;
        provide_files(&call, &task).await?;
        let place = place_of(&call)?;
        Ok(StoredAttachment::all(files, &place))
    }
}

impl Command for Attachments {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        parse::default_to_own_task(&mut self.task_id, here)
    }

    fn show(reply: &Vec<StoredAttachment>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No attachments.");
            return;
        }
        table(reply, screen);
    }
}

pub(crate) fn table(files: &[StoredAttachment], screen: &mut Screen) {
    let rows = files.iter().map(|kept| {
        let file = &kept.file;
        [
            Cell::from(file.id.to_string()),
            Cell::from(file.size.to_string()),
            Cell::or_dash(file.content_type.clone()),
            Cell::or_dash(file.uploaded_by.clone()),
            Cell::from(timestamp::local(file.created_at)),
            Cell::from(file.filename.clone()),
        ]
    });
    screen.table(["ID", "BYTES", "TYPE", "BY", "ADDED", "NAME"], rows);
}

/// Returns a function from a file to the path at which the caller can read it: for a run, the copy among the run's
/// files, if it exists; for other callers, the file in the board's store.
pub(crate) fn place_of(call: &Call) -> Result<impl Fn(&Attachment) -> Option<String> + use<>, Failure> {
    let board = Arc::clone(call.board()?);
    let run_files = call.actor.run.as_ref().map(|run| call.service.root().run_files(board.name(), run.run));
    Ok(move |file: &Attachment| {
        let path = match &run_files {
            Some(own) => Some(daemon::path_of(own, file)).filter(|path| path.exists()),
            None => Some(board.blobs().path(&file.sha256)),
        };
        path.map(|path| path.display().to_string())
    })
}

/// Copies the files that were attached to the caller's task after its run began to the run's files. Does nothing if
/// the caller is not a run of this task.
pub(crate) async fn provide_files(call: &Call, task: &TaskId) -> Result<(), Failure> {
    let Some(run) = call.actor.run.clone().filter(|own| own.task == *task) else { return Ok(()) };
    let (actor, id) = (call.actor.clone(), task.clone());
    let files = call
        .read(move |view| {
            view.task_for(&id, &actor)?;
            view.files_of_run(&id)
        })
        .await?;
    let (root, board) = (call.service.root().clone(), Arc::clone(call.board()?));
    blocking("the files were not placed", move || {
        daemon::provide(&root, board.name(), run.run, &files, board.blobs())
    })
    .await?
}
