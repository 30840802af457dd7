//! Workers of a simulation. They report late, twice, on tasks of other workers, and after the end of their runs.

use std::time::Duration;

use kernel::{
    Actor, BlockKind, Blocking, Board, EndCause, Ending, Error, Handed, Handoff, NewTask, RunId, TaskId,
    ToolCall, ToolResult, VerdictKind,
};

use super::bench::Bench;
use super::dice::Dice;
use super::host::{Host, WorkerLife};
use super::ledger::{AcknowledgedTask, Ledger, Speaker};
use super::plant::Plant;

/// Result of a worker's write.
enum Wrote {
    Verdict(VerdictKind),
    Task(TaskId, String),
    Else,
}

const WORDS: [&str; 11] = [
    "completes",
    "completes",
    "blocks",
    "waits",
    "asks for a review",
    "beats",
    "comments",
    "calls a tool",
    "makes a task",
    "approves",
    "requests changes",
];

/// Has a worker write to the board once: mostly a live worker, else any, whose run may have ended long ago.
pub(super) fn act(
    (bench, host): (&mut Bench, &Host),
    ledger: &mut Ledger,
    dice: &mut Dice,
    plant: Option<Plant>,
) -> String {
    let alive: Vec<Speaker> = ledger.speakers.iter().filter(|one| lives(host, one.run)).cloned().collect();
    let from = if dice.one_in(6) || alive.is_empty() { &ledger.speakers } else { &alive };
    let Some(speaker) = dice.pick(from).cloned() else { return "no worker is there".to_owned() };
    let word = *dice.pick(&WORDS).unwrap_or(&"beats");
    // One write in ten is about the task of another worker.
    let about = if dice.one_in(10) { ledger.task(dice.below(20)) } else { None };
    speak(bench, ledger, (&speaker, about.unwrap_or_else(|| speaker.task.clone())), word, plant)
}

/// Has the worker of a run complete its task.
pub(super) fn complete(bench: &mut Bench, ledger: &mut Ledger, run: RunId) -> String {
    let Some(speaker) = ledger.speakers.iter().find(|one| one.run == run).cloned() else {
        return String::new();
    };
    let (word, task) = ("completes", speaker.task.clone());
    speak(bench, ledger, (&speaker, task), word, None)
}

/// Reports the exit of an ended run again. The report must change nothing.
pub(super) fn exit_again(bench: &mut Bench, ledger: &mut Ledger, dice: &mut Dice) -> String {
    let over: Vec<RunId> = ledger.ended.keys().copied().collect();
    let Some(run) = dice.pick(&over).copied() else { return "no run is over".to_owned() };
    let step_text = format!("the exit of run {run} comes again");
    let before = bench.read(|view| view.last_event());
    let ending = Ending::new(EndCause::Exited { code: 1 });
    let done = bench.call(move |board| board.end_run(run, &ending, &Handed::default()));
    let after = bench.read(|view| view.last_event());
    if done.is_ok_and(|finished| !finished.already_finished) || before != after {
        ledger.twice.push(step_text.clone());
    }
    step_text
}

fn lives(host: &Host, run: RunId) -> bool {
    host.get(run).is_some_and(|run| run.worker == WorkerLife::Alive)
}

fn speak(
    bench: &mut Bench,
    ledger: &mut Ledger,
    (speaker, about): (&Speaker, TaskId),
    word: &'static str,
    plant: Option<Plant>,
) -> String {
    let Speaker { run, task, profile, tenant } = speaker.clone();
    let mut actor = Actor::worker(profile.as_str(), run, task, tenant);
    let is_over = bench.read(|view| view.run(run)).is_none_or(|run| run.ended_at.is_some());
    if is_over && plant == Some(Plant::WriteAfterTheEnd) {
        actor = Actor::person("alice");
    }
    let title = format!("task {}", ledger.number());
    let (id, name) = (about.clone(), title.clone());
    let done = bench.call(move |board| write(board, word, &id, name, &actor));
    let mut step_text = format!("the worker of run {run} {word} {about}");
    match done {
        Ok(wrote) => {
            if is_over {
                ledger.late.push(step_text.clone());
            }
            match wrote {
                Wrote::Verdict(kind) if about == speaker.task => drop(ledger.verdicts.insert(run, kind)),
                Wrote::Task(id, title) => {
                    drop(ledger.tasks.insert(id, AcknowledgedTask { title, comments: Vec::new() }));
                }
                Wrote::Verdict(_) | Wrote::Else => {}
            }
        }
        Err(error) => step_text = format!("{step_text}: {error}"),
    }
    step_text
}

fn tool_call() -> ToolCall {
    ToolCall {
        tool: "kanban_show".to_owned(),
        result: ToolResult::Success,
        duration_ms: 1,
        request_bytes: 2,
        reply_bytes: 3,
        tool_calls: None,
    }
}

fn write(
    board: &mut Board<'_>,
    word: &'static str,
    id: &TaskId,
    title: String,
    by: &Actor,
) -> Result<Wrote, Error> {
    let settled = match word {
        "completes" => board.complete(id, Handoff::default(), None, by)?,
        "blocks" => {
            board.block(id, Blocking { kind: BlockKind::NeedsInput, ..Blocking::default() }, None, by)?
        }
        "waits" => {
            board.block(id, Blocking { kind: BlockKind::Dependency, ..Blocking::default() }, None, by)?
        }
        "asks for a review" => {
            board.request_review(id, Handoff::default(), "gamma".parse().ok(), None, by)?
        }
        "approves" => board.approve(id, None, None, by)?,
        "requests changes" => board.request_changes(id, "no", None, by)?,
        "beats" => return board.heartbeat(id, None, by).map(|_| Wrote::Else),
        "comments" => return board.comment(id, "simulated", None, by).map(|_| Wrote::Else),
        "calls a tool" => return board.note_tool_call(id, &tool_call(), by).map(|()| Wrote::Else),
        _ => {
            let not_before = Some(board.now().after(Duration::from_secs(3)));
            let assignee = "beta".parse().ok();
            let new = NewTask { title: title.clone(), assignee, not_before, ..NewTask::default() };
            return board.create(new, by).map(|created| Wrote::Task(created.task.id, title));
        }
    };
    let run = settled.run.and_then(|run| board.run(run).ok().flatten());
    Ok(run.and_then(|run| run.verdict).map_or(Wrote::Else, |verdict| Wrote::Verdict(verdict.kind())))
}
