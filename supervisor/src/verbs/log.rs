//! `log`: what a run wrote.

use std::io::{Read as _, Seek as _, SeekFrom};

use kernel::{RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::command::Command;
use crate::exit::Code;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::terminal::{Screen, printable_output};

/// The most that one call returns.
const PAGE: u64 = 1 << 20;

/// Show the output of a run
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor log t_0123abcd
  supervisor log t_0123abcd --tail 2000
  supervisor log t_0123abcd --run 7 --follow")]
pub(crate) struct Log {
    /// The task
    #[serde(default)]
    pub(crate) task_id: Option<TaskId>,
    /// Which run [default: the latest]
    #[arg(long, value_name = "RUN")]
    #[serde(default)]
    pub(crate) run: Option<RunId>,
    /// Only the last BYTES bytes
    #[arg(long, value_name = "BYTES")]
    #[serde(default)]
    pub(crate) tail: Option<u64>,
    /// Follow the output until the run ends
    #[arg(long, short)]
    #[serde(skip)]
    pub(crate) follow: bool,
    /// Start at this byte
    #[arg(skip)]
    #[serde(default)]
    pub(crate) offset: Option<u64>,
}

/// A piece of a run's log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Logged {
    pub(crate) task_id: TaskId,
    /// The run; none where the task has not been run yet.
    pub(crate) run_id: Option<RunId>,
    pub(crate) path: Option<String>,
    /// Where this piece starts, in bytes.
    pub(crate) offset: u64,
    /// Where the next piece starts.
    pub(crate) next_offset: u64,
    /// Whether the run has ended, so that nothing more comes.
    pub(crate) ended: bool,
    /// The text; bytes that are no UTF-8 are shown as U+FFFD.
    pub(crate) text: String,
}

impl Logged {
    /// What a task wrote that nobody has run.
    fn of_no_run(task_id: TaskId) -> Self {
        Logged {
            task_id,
            run_id: None,
            path: None,
            offset: 0,
            next_offset: 0,
            ended: false,
            text: String::new(),
        }
    }
}

impl Verb for Log {
    const NAME: &'static str = "log";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    type Reply = Logged;

    async fn run(self, call: Call) -> Result<Logged, Failure> {
        let id = super::texts::named(self.task_id)?;
        let actor = call.actor.clone();
        let task_id = id.clone();
        let runs = call
            .read(move |view| {
                view.task_for(&id, &actor)?;
                view.runs(&id)
            })
            .await?;
        let run = match self.run {
            Some(wanted) => runs.iter().find(|run| run.id == wanted).ok_or_else(|| {
                Failure::new(Code::NotFound, format!("{task_id} has no run {wanted}"))
                    .hint(format!("supervisor runs {task_id}"))
            })?,
            None => match runs.last() {
                Some(run) => run,
                None => return Ok(Logged::of_no_run(task_id)),
            },
        };
        // The path is derived, never taken from a request.
        let path = call.service.root().log(call.board()?.name(), &task_id, run.id);
        let ended = run.ended_at.is_some();
        let (offset, bytes) = read_piece(&path, self.offset, self.tail)?;
        Ok(Logged {
            run_id: Some(run.id),
            path: Some(path.display().to_string()),
            offset,
            next_offset: offset + bytes.len() as u64,
            ended,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            task_id,
        })
    }
}

impl Command for Log {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        self.task_id = Some(super::texts::own_task(self.task_id.take(), here)?);
        Ok(())
    }

    fn show(reply: &Logged, screen: &mut Screen) {
        if reply.run_id.is_none() {
            screen.line("No runs yet.");
        }
        let text = printable_output(&reply.text);
        if !text.is_empty() {
            screen.line(text.trim_end_matches('\n'));
        }
    }
}

fn read_piece(
    path: &std::path::Path,
    offset: Option<u64>,
    tail: Option<u64>,
) -> Result<(u64, Vec<u8>), Failure> {
    let fail = |e: std::io::Error| Failure::file("read the log", path, &e);
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        // A run that has not started yet has written nothing.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((0, Vec::new())),
        Err(e) => return Err(fail(e)),
    };
    let length = file.metadata().map_err(fail)?.len();
    let start = offset.unwrap_or_else(|| length.saturating_sub(tail.unwrap_or(PAGE)));
    file.seek(SeekFrom::Start(start)).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(PAGE).read_to_end(&mut bytes).map_err(fail)?;
    Ok((start, bytes))
}
