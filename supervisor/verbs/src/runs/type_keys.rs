//! `type`: sends keys to the terminal of a running worker. `attach` uses it for what a person types.

use std::sync::{Arc, Weak};

use kernel::{Counted, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shim::rundir::{Keyed, NotKeyed, RunDir, TerminalSize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::{Failure, with_causes};
use base::terminal::Screen;
use service::BoardHandle;
use service::terminal_owner::Ownership;

/// Key under which the board stores that a request has begun to type.
const BEGUN: &str = "type: begun";
/// Limit on the name of an attached terminal, in bytes.
const HOLDER_BYTES: usize = 64;

/// Type at the terminal of a running worker
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
For lanes with `terminal`. The text goes to the worker as if it had been typed at its
terminal; `attach` shows the terminal, and lets a person type there. The log of events
has who has typed how many bytes, and not what.

Exit code: 4 if nothing was typed, because no worker is at work, its lane has no
terminal, or somebody else types; 75 if the worker does not read what was typed before.

Examples:
  supervisor type t_0123abcd 'yes' --enter
  supervisor type t_0123abcd $'\\x03'    (Ctrl-C)")]
pub struct Type {
    /// The task
    pub task_id: TaskId,
    /// The characters to type, at most 4093 bytes
    #[arg(default_value = "", hide_default_value = true)]
    #[serde(default)]
    pub text: String,
    /// Press Enter afterwards
    #[arg(long)]
    #[serde(default)]
    pub enter: bool,
    /// The name of an attached terminal: the keyboard is its own until it leaves, or says nothing for 15 seconds
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The size of an attached terminal; the terminal of the worker follows it
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<RequestedSize>,
    /// The attached terminal gives the keyboard back
    #[arg(skip)]
    #[serde(default)]
    pub leave: bool,
}

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestedSize {
    pub rows: u16,
    pub columns: u16,
}

/// The outcome.
#[derive(Debug, Serialize, Deserialize)]
pub struct Typed {
    pub task_id: TaskId,
    pub run_id: RunId,
    /// Number of bytes passed to the worker.
    pub bytes: usize,
    /// The client that has the keyboard, if this kept the input from the worker.
    pub typist: Option<String>,
    /// True if the input was dropped because the worker has not read earlier input.
    pub is_full: bool,
}

impl Type {
    /// Message of an attached terminal.
    pub fn attached(task: &TaskId, holder: &str) -> Self {
        Type {
            task_id: task.clone(),
            text: String::new(),
            enter: false,
            holder: Some(holder.to_owned()),
            size: None,
            leave: false,
        }
    }

    /// Bytes to pass, in their order.
    fn keyed(&self) -> Result<(Option<Keyed>, Option<Keyed>), Failure> {
        let size = match self.size {
            Some(RequestedSize { rows, columns }) if rows < 1 || columns < 1 => {
                return Err(Failure::usage("a terminal has at least one line and one column"));
            }
            Some(RequestedSize { rows, columns }) => Some(Keyed::Size(TerminalSize { rows, columns })),
            None => None,
        };
        let mut bytes = self.text.clone().into_bytes();
        if self.enter {
            bytes.push(b'\r');
        }
        if bytes.len() > Keyed::BYTES {
            return Err(Failure::new(
                Code::TooLarge,
                format!("the text has {} bytes; at most {} are typed at once", bytes.len(), Keyed::BYTES),
            )
            .hint("type it in pieces"));
        }
        Ok((size, Some(bytes).filter(|bytes| !bytes.is_empty()).map(Keyed::Text)))
    }

    /// Types without an attached terminal, unless another client has the keyboard. The typist is recorded before the
    /// text is passed on. The length is recorded afterwards, with the reply for a repeated request.
    async fn once(self, call: &Call, text: Option<Keyed>) -> Result<Typed, Failure> {
        let Some(text) = text else {
            return Err(Failure::usage("there is nothing to type").hint("name a text, or --enter"));
        };
        if let Some(reply) = call.acted(BEGUN).await? {
            return Ok(reply);
        }
        let (run, dir) = self.terminal(call).await?;
        let _keyboard = call.board()?.take_terminal_once(run, &call.actor).map_err(|name| {
            Failure::new(
                Code::Conflict,
                format!("nothing was typed: {name} types at the terminal of run {run}"),
            )
            .hint("try again when they have left it; `supervisor attach` shows the terminal")
        })?;
        let (task, begun, bytes) = (self.task_id.clone(), self.task_id, length(&text));
        let typing = async move {
            pass(dir, vec![text]).await.map_err(|error| refusal(&error, run))?;
            Ok(Typed { task_id: task, run_id: run, bytes, typist: None, is_full: false })
        };
        call.act_once(
            BEGUN,
            move |board, actor| board.begin_typing(&begun, actor).map(drop),
            typing,
            move |board, actor| board.record_typed(run, u64::try_from(bytes).unwrap_or(u64::MAX), actor),
        )
        .await
    }

    /// Handles a message of an attached terminal. The terminal keeps the keyboard as long as it sends messages.
    async fn held(
        self,
        call: &Call,
        holder: String,
        text: Option<Keyed>,
        size: Option<Keyed>,
    ) -> Result<Typed, Failure> {
        if holder.is_empty() || holder.len() > HOLDER_BYTES {
            return Err(Failure::usage(format!(
                "the name of an attached terminal has 1 to {HOLDER_BYTES} bytes"
            )));
        }
        let board = Arc::clone(call.board()?);
        let (run, dir) = self.terminal(call).await?;
        let task_id = self.task_id;
        let mut reply =
            Typed { task_id: task_id.clone(), run_id: run, bytes: 0, typist: None, is_full: false };
        if self.leave {
            if let Some(held) = board.terminal_owners().leave(run, &holder) {
                board.record_typed(run, held);
            }
            return Ok(reply);
        }
        let typed_before = match board.take_terminal(run, &holder, &call.actor) {
            Ownership::Others(name) => {
                reply.typist = Some(name);
                return Ok(reply);
            }
            Ownership::Now => {
                tokio::spawn(watch(Arc::downgrade(&board), run, holder.clone()));
                0
            }
            Ownership::Before(bytes) => bytes,
        };
        if let Some(text) = &text {
            if typed_before == 0 {
                // The log names the typist before any input reaches the worker.
                let begun = call.write_further(move |board, actor| board.begin_typing(&task_id, actor)).await;
                if begun.is_err() {
                    // A caller who may not type must not keep the keyboard from others.
                    board.terminal_owners().leave(run, &holder);
                }
                begun?;
            }
            // The length is set before the input is passed, so that it is counted even if the daemon ends in between.
            reply.bytes = length(text);
        }
        match pass(dir, size.into_iter().chain(text).collect()).await {
            Ok(()) => board.terminal_owners().typed(run, &holder, reply.bytes),
            Err(NotKeyed::Full) => (reply.is_full, reply.bytes) = (true, 0),
            Err(error) => return Err(refusal(&error, run)),
        }
        Ok(reply)
    }

    /// The live run of the task, and its directory.
    async fn terminal(&self, call: &Call) -> Result<(RunId, RunDir), Failure> {
        let (id, actor) = (self.task_id.clone(), call.actor.clone());
        let run = call.read(move |view| view.run_to_type_at(&id, &actor)).await?.id;
        // The path is derived, never taken from a request.
        let dir = RunDir::open(&call.service.root().run_dir(call.board_name(), run));
        match dir {
            Ok(dir) if dir.has_terminal() => Ok((run, dir)),
            Ok(_) | Err(_) => Err(refusal(&NotKeyed::Absent, run)),
        }
    }
}

fn length(keyed: &Keyed) -> usize {
    match keyed {
        Keyed::Text(bytes) => bytes.len(),
        Keyed::Size(_) => 0,
    }
}

async fn pass(dir: RunDir, all: Vec<Keyed>) -> Result<(), NotKeyed> {
    let passed = blocking("nothing was typed", move || all.iter().try_for_each(|keyed| dir.key(keyed))).await;
    passed.unwrap_or(Err(NotKeyed::Absent))
}

fn refusal(error: &NotKeyed, run: RunId) -> Failure {
    match error {
        NotKeyed::Absent => {
            Failure::new(Code::Conflict, format!("nothing was typed: run {run} has no terminal, or none yet"))
                .hint(
                    "`terminal` in the file of its lane gives it one; `steer` speaks to lanes with `session`",
                )
        }
        NotKeyed::Full => Failure::new(
            Code::TryAgain,
            format!("nothing more was typed: the worker of run {run} does not read what was typed before"),
        )
        .hint("look at what it does: supervisor attach"),
        NotKeyed::Write { .. } => Failure::failed(format!("nothing was typed: {}", with_causes(error))),
    }
}

/// Releases a keyboard when its holder sends no more messages.
async fn watch(board: Weak<BoardHandle>, run: RunId, holder: String) {
    loop {
        let Some(until) = board.upgrade().and_then(|board| board.terminal_owners().until(run, &holder))
        else {
            return;
        };
        if until <= std::time::Instant::now() {
            break;
        }
        tokio::time::sleep_until(until.into()).await;
    }
    let Some(board) = board.upgrade() else { return };
    if let Some(held) = board.terminal_owners().leave(run, &holder) {
        board.record_typed(run, held);
    }
}

impl Verb for Type {
    verb! { "type": Operator, Daemon, members => Typed }

    async fn run(self, call: Call) -> Result<Typed, Failure> {
        if call.service.daemon().is_none() {
            return Err(Failure::new(
                Code::Unreachable,
                format!("nothing was typed at {}: no daemon is running", self.task_id),
            )
            .hint("start one with: supervisor daemon"));
        }
        let (size, text) = self.keyed()?;
        match self.holder.clone() {
            Some(holder) => self.held(&call, holder, text, size).await,
            None => self.once(&call, text).await,
        }
    }
}

impl Command for Type {
    fn show(reply: &Typed, screen: &mut Screen) {
        let Typed { task_id, run_id, bytes, .. } = reply;
        let bytes = Counted(u64::try_from(*bytes).unwrap_or(u64::MAX), "byte");
        screen.line(format!("Typed {bytes} at the terminal of run {run_id} of {task_id}"));
    }
}
