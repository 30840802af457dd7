//! `logs`: shows the output of runs, of one task or several, once or until they end.
//!
//! A log has the bytes of the worker as they were written. A time before each line would change what a format reads,
//! and a second file of times would have to be cut and synced with it; so `--since` chooses runs.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use kernel::{RunId, Status, TaskId, Timestamp};

use super::daemon_watch::DaemonWatch;
use super::readable_output::{UnfinishedLine, readable};
use super::waits::ReportedReasons;
use super::{CommandLine, outcome, pages};
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Ink, complain, printable_output};
use base::time::since::Since;
use setup::lanes::Format;
use verbs::{Log, LogReply, Runs, Show, own_task_if_none};

/// Time that a request waits at the daemon.
const WAIT_SECONDS: u64 = 30;
/// The same for a run that has not started.
const NOT_STARTED_SECONDS: u64 = 2;

/// Show the output of runs
#[derive(Clone, Debug, clap::Args)]
#[command(
    alias = "log",
    after_help = "\
The latest run of each task is shown, checks excepted; a check is shown by its
number. With several tasks or runs, each line begins with the task that wrote
it. With --follow it exits as the run does: with 0 if the work is done, 5 if a
person has to act, else the exit code of the command.

Log lines have no timestamps: --since selects whole runs, -n the last lines.

Examples:
  supervisor logs t_0123abcd
  supervisor logs t_0123abcd -f -n 20
  supervisor logs t_0123abcd --run 7
  supervisor logs -f t_0123abcd t_4567cdef
  supervisor logs t_0123abcd --since 2h"
)]
pub(super) struct Logs {
    /// The tasks
    #[arg(value_name = "TASK")]
    task_ids: Vec<TaskId>,
    /// The run [default: the latest that is not a check]
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
    /// Only the last N lines; --tail is the same
    #[arg(long, short = 'n', alias = "tail", value_name = "N")]
    lines: Option<u32>,
    /// Only the last N bytes
    #[arg(long, value_name = "N", conflicts_with = "lines")]
    bytes: Option<u64>,
    /// Show the whole log of each run that had not ended by this time: 10m, 2h, 'yesterday', '2026-11-23 09:00'
    #[arg(long, value_name = "WHEN", conflicts_with = "run")]
    since: Option<Since>,
    /// Keep following until the runs end
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn run(line: &CommandLine, mut logs: Logs) -> Result<u8, Failure> {
    let client = &line.client()?;
    own_task_if_none(&mut logs.task_ids, client.here())?;
    logs.task_ids = client.whole_ids(&logs.task_ids).await?;
    let mut seen = BTreeSet::new();
    logs.task_ids.retain(|id| seen.insert(id.clone()));
    if logs.run.is_some() && logs.task_ids.len() > 1 {
        return Err(Failure::usage("--run means a run of one task, and several are named")
            .hint("name one task, or leave --run out"));
    }
    if logs.task_ids.len() > 1 {
        // All tasks are checked before anything is printed.
        for task in &logs.task_ids {
            client.call(&Log { task_id: Some(task.clone()), limit: Some(0), ..Log::default() }).await?;
        }
    }
    let mut sources = sources(client, &logs).await?;
    if !logs.follow {
        for source in &mut sources {
            source.as_it_stands(client, line.output).await?;
        }
        return Ok(0);
    }
    // Existing output comes first, in the order of the tasks; later output comes in the order in which it is written.
    for source in &mut sources {
        source.so_far(client, line.output).await?;
    }
    let ends = sources.iter_mut().map(|source| source.follow_to_end(client, line.output));
    let codes = try_join_all(ends).await?;
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or_default())
}

/// Returns the logs to show, in the order of the tasks.
async fn sources(client: &Client, logs: &Logs) -> Result<Vec<RunLog>, Failure> {
    let mut wanted = Vec::new();
    for task in &logs.task_ids {
        let log = Log {
            task_id: Some(task.clone()),
            run: logs.run,
            tail: logs.bytes,
            lines: logs.lines,
            ..Log::default()
        };
        let Some(since) = logs.since else {
            wanted.push(log);
            continue;
        };
        let runs = live_since(client, task, since.timestamp()).await?;
        if runs.is_empty() {
            complain(&format!("no run of {task} was live since then: supervisor runs {task}"));
        }
        wanted.extend(runs.into_iter().map(|run| Log { run: Some(run), ..log.clone() }));
    }
    let many = wanted.len() > 1;
    let label = |log: &Log| {
        let task = log.task_id.as_ref().filter(|_| many)?;
        Some(log.run.map_or_else(|| task.to_string(), |run| format!("{task} run {run}")))
    };
    Ok(wanted.into_iter().map(|log| RunLog::new(label(&log), log)).collect())
}

/// Returns the runs of a task that ended after a time, or not yet.
async fn live_since(client: &Client, task: &TaskId, since: Timestamp) -> Result<Vec<RunId>, Failure> {
    let runs = Runs { task_id: Some(task.clone()), ..Runs::default() };
    let (runs, _) = pages::all(client, &runs).await?;
    let is_live = |run: &kernel::Run| run.ended_at.is_none_or(|ended| ended >= since);
    Ok(runs.into_iter().filter(is_live).map(|run| run.id).collect())
}

/// The log of one run on its way to the reader.
#[derive(Debug)]
pub(super) struct RunLog {
    log: Log,
    /// Prefix of its lines.
    label: Option<String>,
    /// A line that has no end yet, where lines have a label.
    begun: String,
    /// True if the last printed line has an end.
    at_line_start: bool,
    /// Unfinished line of an agent's stream that is shown in its readable form.
    read: Option<UnfinishedLine>,
    format: Option<Format>,
    served: DaemonWatch,
    /// True if anything was printed.
    has_text: bool,
    /// Number of bytes that the log had at the first read and that are not shown yet.
    left: Option<u64>,
    /// The check that has run since.
    check: Option<RunId>,
}

impl RunLog {
    fn new(label: Option<String>, log: Log) -> Self {
        RunLog {
            log,
            label,
            begun: String::new(),
            at_line_start: true,
            read: None,
            format: None,
            served: DaemonWatch::default(),
            has_text: false,
            left: None,
            check: None,
        }
    }

    /// Returns the whole log of one run; the log of an agent in its readable form.
    pub(super) fn of_run(task: &TaskId, run: RunId) -> Self {
        let log = Log { task_id: Some(task.clone()), run: Some(run), offset: Some(0), ..Log::default() };
        RunLog { read: Some(UnfinishedLine::default()), ..RunLog::new(None, log) }
    }

    /// Shows the log written so far. In JSON it is one piece.
    async fn as_it_stands(&mut self, client: &Client, output: Output) -> Result<(), Failure> {
        if output.json() {
            return output.value(&client.call(&self.log).await?);
        }
        self.begin_anew();
        loop {
            let piece = client.call(&self.log).await?;
            self.check = self.check.or(piece.check);
            if piece.run_id.is_none() {
                let label = self.label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default();
                return output.text(&format!("{label}No runs yet.\n"));
            }
            self.take(&piece, output)?;
            if self.is_all_there_was(&piece) {
                self.finish(output)?;
                self.tell(&piece);
                return Ok(());
            }
        }
    }

    /// Returns true if a piece completes the log as it was at the start. A run may write faster than a person reads.
    fn is_all_there_was(&mut self, piece: &LogReply) -> bool {
        let left = self.left.get_or_insert(piece.length.saturating_sub(piece.offset));
        *left = left.saturating_sub(piece.next_offset.saturating_sub(piece.offset));
        *left == 0 || piece.text.is_empty()
    }

    /// Prints that an ended log is empty, or where the log of the check is.
    fn tell(&mut self, piece: &LogReply) {
        let (task, Some(run)) = (&piece.task_id, piece.run_id) else { return };
        if !self.has_text && piece.length == 0 {
            let until = if piece.ended { "" } else { " so far" };
            complain(&format!("Run {run} of {task} has written nothing{until}."));
        }
        if let Some(check) = self.check.take() {
            complain(&format!("Run {check} is its check: supervisor logs {task} --run {check}"));
        }
    }

    /// Shows the log written so far. The last line of a live run stays open.
    async fn so_far(&mut self, client: &Client, output: Output) -> Result<(), Failure> {
        self.begin_anew();
        loop {
            self.served.check(client);
            let piece = client.call(&self.log).await?;
            // An empty piece marks the end of a run, which JSON output reports only in `follow_to_end`.
            if !piece.text.is_empty() {
                self.take(&piece, output)?;
            }
            if self.is_all_there_was(&piece) {
                return if piece.ended { self.finish(output) } else { Ok(()) };
            }
        }
    }

    /// Shows the log written so far and then new output, until the run ends. Returns the exit code of the run.
    pub(super) async fn follow_to_end(&mut self, client: &Client, output: Output) -> Result<u8, Failure> {
        self.begin_anew();
        let (mut waits, mut has_told) = (ReportedReasons::default(), false);
        loop {
            self.served.check(client);
            let piece = client.call(&self.log).await?;
            if !piece.ended {
                waits.warn_without_daemon(client).await;
            }
            if piece.run_id.is_none() {
                // The reason of the wait may change without an event of the task, so this polls.
                self.log.wait = NOT_STARTED_SECONDS;
                let task = &piece.task_id;
                if !std::mem::replace(&mut has_told, true) {
                    complain(&format!("{task} has not started yet. Ctrl-C ends this command, not the task."));
                }
                let shown = client.call(&Show { task_id: Some(task.clone()), ..Show::default() }).await?;
                if shown.task.status == Status::Archived {
                    complain(&archived(task));
                    return Ok(Code::Failed.exit());
                }
                waits.tell(&shown);
                continue;
            }
            self.log.wait = WAIT_SECONDS;
            self.take(&piece, output)?;
            if piece.ended && piece.text.is_empty() {
                self.finish(output)?;
                if !output.json() {
                    self.tell(&piece);
                }
                return code(client, &piece).await;
            }
        }
    }

    /// Starts again at the beginning of the log, unless only its end is wanted.
    fn begin_anew(&mut self) {
        if self.log.tail.is_none() && self.log.lines.is_none() {
            self.log.offset.get_or_insert(0);
        }
    }

    /// Prints a piece, and moves the offset behind it.
    fn take(&mut self, piece: &LogReply, output: Output) -> Result<(), Failure> {
        self.check = self.check.or(piece.check);
        self.has_text |= !piece.text.is_empty();
        self.log.run = piece.run_id;
        self.log.offset = Some(piece.next_offset);
        let is_last = piece.ended && piece.text.is_empty();
        if output.json() && (is_last || !piece.text.is_empty()) {
            return output.value(piece);
        }
        if piece.text.is_empty() {
            return Ok(());
        }
        self.format = piece.stdout.filter(|format| format.is_of_events());
        if let Some(read) = self.read.as_mut().filter(|_| self.format.is_some()) {
            let lines = read.take(&piece.text);
            return lines.iter().try_for_each(|line| output.text(&readable(line, self.format, output)));
        }
        self.at_line_start = piece.text.ends_with('\n');
        let text = printable_output(&piece.text);
        let Some(label) = &self.label else { return output.text(&text) };
        self.begun.push_str(&text);
        let whole = self.begun.rfind('\n').map_or(0, |at| at + 1);
        let text = labelled(label, &self.begun[..whole], output);
        self.begun.drain(..whole);
        output.text(&text)
    }

    /// Completes an open last line.
    fn finish(&mut self, output: Output) -> Result<(), Failure> {
        if let Some(rest) = self.read.as_mut().and_then(UnfinishedLine::rest) {
            return output.text(&readable(&rest, self.format, output));
        }
        if std::mem::replace(&mut self.at_line_start, true) || output.json() {
            return Ok(());
        }
        match &self.label {
            None => output.text("\n"),
            Some(label) => output.text(&labelled(label, &std::mem::take(&mut self.begun), output)),
        }
    }
}

fn labelled(label: &str, text: &str, output: Output) -> String {
    let label = output.screen().paint(Ink::Dim, &format!("{label} |"));
    text.lines().flat_map(|line| [label.as_str(), " ", line, "\n"]).collect()
}

/// Returns the message about a task that was archived and cannot continue.
fn archived(task: &TaskId) -> String {
    format!("{task} is archived and was not done: supervisor unarchive {task}")
}

/// Returns the exit code for a run that has ended.
async fn code(client: &Client, piece: &LogReply) -> Result<u8, Failure> {
    let shown = client.call(&Show { task_id: Some(piece.task_id.clone()), ..Show::default() }).await?;
    let runs = Runs { task_id: Some(piece.task_id.clone()), ..Runs::default() };
    let (runs, _) = pages::all(client, &runs).await?;
    let run = runs.iter().find(|run| Some(run.id) == piece.run_id);
    if shown.task.status == Status::Archived && !shown.task.is_done() {
        complain(&archived(&piece.task_id));
    }
    Ok(run.map_or_else(|| Code::Failed.exit(), |run| outcome::after_run(&shown, run)))
}
