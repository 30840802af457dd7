//! `attach` at the command line: attaches a file to a task. With only a task, it shows the agent's output and sends it
//! what a person types: keys if the program has a terminal, else lines.

use std::io::{BufRead as _, IsTerminal as _};

use kernel::{Run, RunId, Status, TaskId};
use serde_json::json;
use tokio::sync::mpsc;

use super::attach_terminal::{AttachEnd, Keyboard};
use super::outcome;
use super::readable_output::{UnfinishedLine, readable};
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::failure::Failure;
use base::terminal::{Ink, complain, printable};
use base::time::duration::WrittenDuration;
use setup::lanes::Format;
use verbs::{Attach, Events, Log, Show, Steer};

/// Limit on typed lines that wait in memory. Further lines wait in the terminal.
const TYPED: usize = 4;
/// Time that a request waits at the daemon.
const WAIT_SECONDS: u64 = 30;
/// The same until it is known whether the worker has a terminal.
const FIRST_SECONDS: u64 = 1;

pub(super) async fn run(client: &Client, verb: Attach, output: Output) -> Result<u8, Failure> {
    match verb.task_alone(client.here()) {
        Some(task) => Box::pin(follow(client, task, output)).await,
        None => send_file(client, verb, output).await,
    }
}

/// Attaches a file. Its bytes go to a path with the task's full id.
async fn send_file(client: &Client, mut verb: Attach, output: Output) -> Result<u8, Failure> {
    verb.localize(client.here())?;
    let ids: Vec<TaskId> = verb.task_id.iter().cloned().collect();
    verb.task_id = client.whole_ids(&ids).await?.pop();
    output.reply::<Attach>(&client.call(&verb).await?)
}

/// Shows the runs of a task as they happen, from the start of the latest one until no further run starts by itself.
/// Returns the task's exit code.
async fn follow(client: &Client, task: TaskId, output: Output) -> Result<u8, Failure> {
    let mut hands = KeyboardOwner::for_output(output);
    let mut log = Log { task_id: Some(task.clone()), offset: Some(0), ..Log::default() };
    let mut news = Events { task: Some(task.clone()), limit: 1000, ..Events::default() };
    let mut stream = AttachedLog {
        output,
        run: None,
        format: None,
        begun: UnfinishedLine::default(),
        has_text: false,
        has_said_end: false,
    };
    loop {
        log.wait = if matches!(hands, KeyboardOwner::Unknown(_)) { FIRST_SECONDS } else { WAIT_SECONDS };
        let piece = until(client.call(&log), client, &task, &mut hands).await?;
        if stream.run != piece.run_id {
            log.run = piece.run_id;
            stream.begin(piece.run_id, piece.stdout)?;
        }
        if let Some(run) = piece.run_id.filter(|_| piece.terminal)
            && let Some(keyboard) = hands.at_terminal()
        {
            log.wait = WAIT_SECONDS;
            match keyboard.attach(client, &task, run, &mut log, piece).await? {
                AttachEnd::Alone => {
                    complain(&format!(
                        "Detached from the terminal. Run {run} continues; return with: supervisor attach {task}"
                    ));
                    return Ok(0);
                }
                AttachEnd::Signalled(code) => return Ok(code),
                AttachEnd::Over => {
                    // The terminal has shown the log up to this offset.
                    stream.has_text |= log.offset.is_some_and(|offset| offset > 0);
                    continue;
                }
            }
        }
        if !piece.text.is_empty() || piece.ended {
            hands.take_lines();
        }
        log.offset = Some(piece.next_offset);
        stream.show(&piece.text)?;
        if !piece.text.is_empty() || (piece.run_id.is_some() && !piece.ended) {
            continue;
        }
        // The cursor is read before the task, so that changes in between end the wait early.
        news.wait = 0;
        news.since = client.call(&news).await?.cursor;
        let shown = client.call(&Show { task_id: Some(task.clone()), ..Show::default() }).await?;
        let next = shown.runs.iter().find(|run| log.run.is_some_and(|shown| run.id > shown));
        if let Some(next) = next {
            stream.end(shown.runs.iter().find(|run| Some(run.id) == log.run), shown.task.status)?;
            log = Log { run: Some(next.id), offset: Some(0), ..log };
            continue;
        }
        stream.end(shown.runs.last(), shown.task.status)?;
        if let Some(code) = outcome::of_task(&shown) {
            return Ok(code);
        }
        news.wait = WAIT_SECONDS;
        until(client.call(&news), client, &task, &mut hands).await?;
    }
}

/// Waits for an answer, and sends typed lines meanwhile.
async fn until<T>(
    answer: impl Future<Output = Result<T, Failure>>,
    client: &Client,
    task: &TaskId,
    hands: &mut KeyboardOwner,
) -> Result<T, Failure> {
    let mut answer = std::pin::pin!(answer);
    loop {
        // Cancel-safe: the answer stays pinned, and an unread line stays in its channel.
        tokio::select! {
            answer = &mut answer => return answer,
            Some(line) = hands.line() => send(client, task, line).await,
        }
    }
}

/// Input that a person may give while watching.
enum KeyboardOwner {
    /// None: the run takes no input.
    Tied,
    /// Unknown so far: the daemon has not said whether the worker has a terminal. Until then, typed keys wait in the
    /// person's own terminal.
    Unknown(Keyboard),
    /// Keys go to the terminal of the worker.
    Keys(Keyboard),
    /// Lines go to the agent, as messages.
    Lines(mpsc::Receiver<String>),
}

impl KeyboardOwner {
    fn for_output(output: Output) -> Self {
        let is_person = std::io::stdin().is_terminal() && !output.json();
        match (is_person, std::io::stdout().is_terminal()) {
            (true, true) => KeyboardOwner::Unknown(Keyboard::new()),
            (true, false) => KeyboardOwner::Lines(typed()),
            (false, _) => KeyboardOwner::Tied,
        }
    }

    /// Returns the keyboard for a worker with a terminal.
    fn at_terminal(&mut self) -> Option<&mut Keyboard> {
        if let KeyboardOwner::Unknown(_) = self
            && let KeyboardOwner::Unknown(keyboard) = std::mem::replace(self, KeyboardOwner::Tied)
        {
            *self = KeyboardOwner::Keys(keyboard);
        }
        match self {
            KeyboardOwner::Keys(keyboard) => Some(keyboard),
            KeyboardOwner::Tied | KeyboardOwner::Unknown(_) | KeyboardOwner::Lines(_) => None,
        }
    }

    /// Starts to read lines, for a worker without a terminal.
    fn take_lines(&mut self) {
        if let KeyboardOwner::Unknown(_) = self {
            *self = KeyboardOwner::Lines(typed());
        }
    }

    /// Returns the next typed line. Cancel-safe: an unread line stays in the channel.
    async fn line(&mut self) -> Option<String> {
        match self {
            KeyboardOwner::Lines(lines) => lines.recv().await,
            KeyboardOwner::Tied | KeyboardOwner::Unknown(_) | KeyboardOwner::Keys(_) => {
                std::future::pending().await
            }
        }
    }
}

/// Starts a thread that reads lines from standard input.
fn typed() -> mpsc::Receiver<String> {
    let (lines, typed) = mpsc::channel(TYPED);
    complain("A line that you type is sent to the agent. Press Ctrl-C to leave it alone.");
    // The thread ends with the process, because a blocking read of a terminal cannot be cancelled.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if !line.trim().is_empty() && lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    typed
}

async fn send(client: &Client, task: &TaskId, message: String) {
    let steer = Steer { task_id: task.clone(), message, timeout: WrittenDuration::from_secs(0) };
    match client.call(&steer).await {
        Ok(sent) => complain(&format!("Sent message {} to run {}.", sent.number, sent.run_id)),
        Err(failure) => {
            complain(&printable(&failure.message));
            if let Some(hint) = &failure.hint {
                complain(&format!("hint: {}", printable(hint)));
            }
        }
    }
}

/// Output of the runs.
struct AttachedLog {
    output: Output,
    run: Option<RunId>,
    format: Option<Format>,
    begun: UnfinishedLine,
    has_text: bool,
    has_said_end: bool,
}

impl AttachedLog {
    fn begin(&mut self, run: Option<RunId>, format: Option<Format>) -> Result<(), Failure> {
        (self.run, self.format, self.has_text, self.has_said_end) = (run, format, false, false);
        match run {
            Some(run) => self.note(&format!("run {run}")),
            None => Ok(()),
        }
    }

    /// Shows the lines that a piece completes.
    fn show(&mut self, piece: &str) -> Result<(), Failure> {
        self.has_text |= !piece.is_empty();
        self.begun.take(piece).iter().try_for_each(|line| self.line(line))
    }

    fn rest(&mut self) -> Result<(), Failure> {
        self.begun.rest().map_or(Ok(()), |rest| self.line(&rest))
    }

    /// Reports the end of the run, once.
    fn end(&mut self, last: Option<&Run>, status: Status) -> Result<(), Failure> {
        self.rest()?;
        if std::mem::replace(&mut self.has_said_end, true) {
            return Ok(());
        }
        if !self.has_text && self.run.is_some() {
            self.note("it has written nothing")?;
        }
        match last.and_then(|run| Some((run.id, run.outcome?))) {
            Some((run, outcome)) => self.note(&format!("run {run} ended: {outcome}; the task is {status}")),
            None => self.note(&format!("no run yet; the task is {status}")),
        }
    }

    fn line(&self, line: &str) -> Result<(), Failure> {
        if self.output.json() {
            // No line is dropped for its prefix: a worker can imitate the supervisor's own lines.
            if line.trim().is_empty() {
                return Ok(());
            }
            return self.output.value(&json!({ "run_id": self.run, "line": line }));
        }
        self.output.text(&readable(line, self.format, self.output))
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        // Programs that read JSON learn of the ends of runs from the events.
        if self.output.json() {
            return Ok(());
        }
        let text = self.output.screen().paint(Ink::Dim, &format!("[{text}]"));
        self.output.text(&format!("{text}\n"))
    }
}
