//! Second story: fifty tenants at once. Among them are one with a question, a crash, a worker that never ends and a
//! thief.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kernel::{BlockKind, Counted, Outcome, Status, Task, TaskId};

use super::board::{DemoBoard, find};
use super::directory::Owners;
use super::probes::{self, Attempts, ProbeTarget};
use super::processes::{self, SeenProcess};
use super::progress::DemoProgress;
use super::report::{DemoReport, ExpectationResult, RefusedAttempt, Story};
use super::tenants::{COUNT, DemoRole, DemoTenant, quoted};
use api::Verb;
use base::failure::Failure;
use base::paths::Root;
use base::time::duration::WrittenDuration;
use verbs::{Create, List, Show, Unblock};

const STORY: Story = Story::Fleet;

/// Shortest time limit of the worker that never ends.
const LIMIT: Duration = Duration::from_secs(2);
/// Share of the others' start-up time that it gets at least, so that a slow host sees it at work.
const PART_OF_START: u32 = 4;

#[derive(Debug)]
struct FleetTask {
    place: DemoTenant,
    task: TaskId,
}

/// Target of the thief, with the result of an attempt outside of the sandbox.
struct TheftTarget {
    target: ProbeTarget,
    what: &'static str,
    outside: probes::ProbeAttempt,
}

/// Tasks of the story for a closer look.
#[derive(Debug)]
pub(super) struct Fleet {
    /// Task with a question.
    pub(super) asks: TaskId,
    /// Task of the thief.
    pub(super) steals: TaskId,
    /// Task that never ends.
    pub(super) overruns: TaskId,
}

pub(super) async fn play(
    board: &mut DemoBoard,
    root: &Root,
    daemon: i32,
    owners: Owners,
    report: &mut DemoReport,
    progress: &DemoProgress,
) -> Result<Fleet, Failure> {
    progress.now("fleet: the tenants move in");
    let tenants = root.dir().with_file_name("tenants");
    base::paths::make_dir(&tenants, 0o711)?;
    let mut places = Vec::new();
    for number in 1..=COUNT {
        places.push(DemoTenant::make(&tenants, number, owners)?);
    }
    let loot = loot(root, &places, daemon);
    let words: Vec<String> = loot.iter().map(|loot| quoted(&loot.target.to_string())).collect();
    let mut fleet = Vec::new();
    let overrunner = places.pop();
    let begun = Instant::now();
    for place in places {
        fleet.push(enlist(board, place, &words.join(" "), None).await?);
    }
    // Each worker waits at its gate, so that all are alive at one moment.
    let gated = fleet.len();
    let at_work = |task: &Task| task.worker_pid.is_some() && task.status == Status::Running;
    board
        .until("the fleet is at work", |tasks| {
            let up = fleet.iter().filter(|one| find(tasks, &one.task).is_some_and(at_work)).count();
            progress.now(format!("fleet: {up} of {COUNT} workers are up"));
            (up == gated).then_some(())
        })
        .await?;
    // Last, because its time is short and the others must be running by then.
    if let Some(place) = overrunner {
        let limit = LIMIT.max(begun.elapsed() / PART_OF_START);
        fleet.push(enlist(board, place, "", Some(limit)).await?);
    }
    let overruns = one(&fleet, DemoRole::Overruns)?.task.clone();
    board
        .until("the one that never ends has its grandchildren", |tasks| {
            let task = find(tasks, &overruns)?;
            let over = task.started_at.is_some() && task.current_run_id.is_none();
            let up = task.last_heartbeat_at.is_some() && task.worker_pid.is_some();
            (up || over).then_some(())
        })
        .await?;
    let descendants = survey(board, &fleet, &overruns, report, progress).await?;
    // The live workers have been counted; now they may end.
    for member in &fleet {
        member.place.open_gate()?;
    }
    settle(board, &fleet, progress).await?;
    check_work(board, &fleet, owners, report).await?;
    if owners.differ() {
        report.not_of_root(STORY, "no tenant's file is root's", &tenants);
    }
    check_question(&board.show(&one(&fleet, DemoRole::Asks)?.task).await?, report);
    check_crash(&board.show(&one(&fleet, DemoRole::Crashes)?.task).await?, report);
    check_overrun(&board.show(&overruns).await?, &descendants, report);
    let steals = one(&fleet, DemoRole::Steals)?.task.clone();
    check_theft(&board.show(&steals).await?, &loot, report);
    Ok(Fleet { asks: one(&fleet, DemoRole::Asks)?.task.clone(), steals, overruns })
}

fn one(fleet: &[FleetTask], role: DemoRole) -> Result<&FleetTask, Failure> {
    let member = fleet.iter().find(|member| member.place.role == role);
    member.ok_or_else(|| Failure::failed(format!("nobody in the fleet {role:?}")))
}

/// Creates the task of a tenant. A task with a time limit has one attempt.
async fn enlist(
    board: &DemoBoard,
    place: DemoTenant,
    targets: &str,
    limit: Option<Duration>,
) -> Result<FleetTask, Failure> {
    let create = Create {
        tenant: Some(place.name.clone()),
        workspace: Some(format!("dir:{}", place.dir.display())),
        max_runtime: limit.map(|limit| WrittenDuration::from_secs(limit.as_secs())),
        max_retries: limit.map(|_| 1),
        ..Create::default()
    };
    let task = board.create(&place.title(), place.script(targets), create).await?;
    Ok(FleetTask { place, task })
}

/// Chooses the thief's targets, and tries each without a sandbox, as this process, which has started the daemon.
fn loot(root: &Root, places: &[DemoTenant], daemon: i32) -> Vec<TheftTarget> {
    let thief = places.iter().position(|place| place.role == DemoRole::Steals).unwrap_or_default();
    let neighbour = places.get(thief + 1).map(|place| place.dir.join("ledger.csv")).unwrap_or_default();
    let board = root.board(&kernel::BoardName::default());
    let targets = [
        ("another tenant's file", ProbeTarget::File(neighbour)),
        ("the board", ProbeTarget::File(board)),
        ("the daemon's memory", ProbeTarget::Memory(daemon)),
        ("the daemon's environment", ProbeTarget::Environment(daemon)),
    ];
    targets
        .into_iter()
        .map(|(what, target)| TheftTarget { what, outside: probes::attempt(&target), target })
        .collect()
}

/// Counts the live workers at this moment, and finds the processes of the worker that never ends.
async fn survey(
    board: &DemoBoard,
    fleet: &[FleetTask],
    overruns: &TaskId,
    report: &mut DemoReport,
    progress: &DemoProgress,
) -> Result<Vec<SeenProcess>, Failure> {
    let descendants = processes::mentioning(&format!("SUPERVISOR_TASK={overruns}")).found;
    // The board knows the process of each task, and the host whether it lives.
    let tasks = board.call(&List::default()).await?.split().0;
    let alive: BTreeSet<i32> =
        processes::mentioning("SUPERVISOR_TASK=").found.iter().map(|seen| seen.pid).collect();
    let works = |member: &&FleetTask| {
        find(&tasks, &member.task).and_then(|task| task.worker_pid).is_some_and(|pid| alive.contains(&pid))
    };
    let live = fleet.iter().filter(works).count();
    let expected = format!("{COUNT} live workers at one moment");
    let seen = format!("{live} live workers at one moment");
    progress.done(&format!("fleet: {seen}"));
    report.equal(STORY, format!("{COUNT} tenants work at once"), expected, seen);
    let leader = |seen: &&SeenProcess| seen.pid == seen.session;
    // The worker itself leads a session too.
    let escaped = descendants.iter().filter(leader).count().saturating_sub(1);
    let seen =
        format!("{} while it ran, {escaped} in sessions of their own", Counted(descendants.len(), "process"));
    let name = "one leaves grandchildren behind";
    report.check(STORY, name, "3 or more in sessions of their own", seen, escaped >= 3);
    Ok(descendants)
}

/// Waits for the end of all tasks, and answers the question meanwhile.
async fn settle(board: &mut DemoBoard, fleet: &[FleetTask], progress: &DemoProgress) -> Result<(), Failure> {
    let asks = one(fleet, DemoRole::Asks)?.task.clone();
    let overruns = one(fleet, DemoRole::Overruns)?.task.clone();
    let settled = |task: &Task| {
        matches!(task.status, Status::Done | Status::Blocked | Status::Triage)
            && task.current_run_id.is_none()
    };
    let count =
        |tasks: &[Task]| fleet.iter().filter(|one| find(tasks, &one.task).is_some_and(settled)).count();
    board
        .until("the question is asked", |tasks| {
            progress.now(format!("fleet: {} of {COUNT} have ended; one is about to ask", count(tasks)));
            find(tasks, &asks).is_some_and(settled).then_some(())
        })
        .await?;
    progress.done("fleet: one asks which currency; the answer is EUR");
    let answer = Unblock {
        task_ids: vec![asks.clone()],
        reason: Some("currency: EUR".to_owned()),
        ..Unblock::default()
    };
    board.call(&answer).await?;
    board
        .until("every tenant's task ends", |tasks| {
            let ended = count(tasks);
            let waits =
                if find(tasks, &overruns).is_some_and(settled) { "" } else { "; one overruns its 2 s" };
            progress.now(format!("fleet: {ended} of {COUNT} have ended{waits}"));
            (ended == fleet.len()).then_some(())
        })
        .await
}

async fn check_work(
    board: &DemoBoard,
    fleet: &[FleetTask],
    owners: Owners,
    report: &mut DemoReport,
) -> Result<(), Failure> {
    let mut right = 0;
    let mut wrong = Vec::new();
    let mut uids = BTreeSet::new();
    for member in fleet {
        let shown = board.show(&member.task).await?;
        let last = shown.runs.last();
        uids.extend(last.and_then(|run| run.worker_uid));
        if member.place.role != DemoRole::Works {
            continue;
        }
        let total = last.and_then(|run| run.metadata.as_ref()?.get("total")?.as_u64());
        if shown.task.status == Status::Done && total == Some(member.place.total()) {
            right += 1;
        } else {
            let why = last.and_then(|run| run.error.clone()).unwrap_or_else(|| shown.task.status.to_string());
            wrong.push(format!("{}: {why}", member.place.name));
        }
    }
    let plain = fleet.iter().filter(|member| member.place.role == DemoRole::Works).count();
    let seen = match wrong.first() {
        None => format!("{right} right totals"),
        Some(first) => format!("{right} right totals; {first}"),
    };
    report.equal(STORY, format!("{plain} ledgers are added up"), format!("{plain} right totals"), seen);
    if owners.differ() {
        let name = "each worker has a user of its own";
        let root = if uids.contains(&0) { ", root among them" } else { ", none of them root" };
        report.equal(
            STORY,
            name,
            format!("{COUNT} users, none of them root"),
            format!("{}{root}", Counted(uids.len(), "user")),
        );
    }
    Ok(())
}

type Shown = <Show as Verb>::Reply;

fn outcomes(shown: &Shown) -> String {
    let words: Vec<String> = shown
        .runs
        .iter()
        .map(|run| run.outcome.map_or_else(|| run.status.to_string(), |outcome| outcome.to_string()))
        .collect();
    format!("{}, then {}", words.join(", "), shown.task.status)
}

fn check_question(shown: &Shown, report: &mut DemoReport) {
    let asked = shown.runs.first().and_then(|run| run.error.clone()).unwrap_or_default();
    let answered = shown.runs.last().and_then(|run| run.metadata.as_ref()?.get("currency")?.as_str());
    let seen = format!("{}; asked `{asked}`, used {}", outcomes(shown), answered.unwrap_or("no answer"));
    let expected = "blocked, completed, then done; the answer EUR is used";
    let ok =
        outcomes(shown) == "blocked, completed, then done" && answered == Some("EUR") && !asked.is_empty();
    report.check(STORY, "one asks, is answered, goes on", expected, seen, ok);
}

fn check_crash(shown: &Shown, report: &mut DemoReport) {
    report.equal(STORY, "one crashes and is retried", "crashed, completed, then done", outcomes(shown));
}

fn check_overrun(shown: &Shown, descendants: &[SeenProcess], report: &mut DemoReport) {
    let task = &shown.task;
    let run = shown.runs.last();
    let ok = task.status == Status::Blocked
        && task.block_kind == Some(BlockKind::GaveUp)
        && run.is_some_and(|run| run.outcome == Some(Outcome::TimedOut));
    let kind = task.block_kind.map_or_else(|| "-".to_owned(), |kind| kind.to_string());
    let seen = format!("{} ({kind})", outcomes(shown));
    let limit = kernel::brief(task.limits.max_runtime.unwrap_or_default());
    let name = format!("one runs past its {limit} and is ended");
    report.check(STORY, name, "timed_out, then blocked (gave_up)", seen, ok);
    let census = processes::mentioning(&format!("SUPERVISOR_TASK={}", task.id));
    let left = census.found.len() + descendants.iter().filter(|seen| seen.lives()).count();
    report.processes_checked = report.processes_checked.max(census.checked);
    report.survivors += left;
    let seen =
        format!("{left} of {} left, {} checked", descendants.len(), Counted(census.checked, "process"));
    let ok = left == 0 && !descendants.is_empty();
    report.check(STORY, "its grandchildren end with it", "none left", seen, ok);
}

fn check_theft(shown: &Shown, loot: &[TheftTarget], report: &mut DemoReport) {
    let handed = shown.runs.last().and_then(|run| run.metadata.clone());
    let tried = handed.and_then(|metadata| serde_json::from_value::<Attempts>(metadata).ok());
    for (index, loot) in loot.iter().enumerate() {
        let inside = tried
            .as_ref()
            .and_then(|tried| tried.attempts.get(index))
            .filter(|attempt| attempt.target == loot.target.to_string());
        let word = inside.map_or_else(|| "not tried".to_owned(), probes::ProbeAttempt::word);
        let outside = loot.outside.word();
        let why = why(&loot.target, &word);
        let refused = matches!(word.as_str(), "EACCES" | "EPERM" | "ENOENT");
        let verdict = match (&loot.target, outside == "read") {
            (_, true) => refused.into(),
            // With Yama (ptrace(2)), not even the daemon's parent may look, so a refusal inside proves nothing.
            (ProbeTarget::Memory(_), false) if ptrace_is_closed() => ExpectationResult::Skipped,
            (_, false) => ExpectationResult::Failed,
        };
        let name = format!("a thief is refused {}", loot.what);
        let expected = "read without the sandbox; EACCES, EPERM or ENOENT inside";
        let seen = format!("{outside} without the sandbox; {word} inside");
        report.check(Story::Theft, name, expected, seen, verdict);
        let path = loot.target.path();
        report.denials.push(RefusedAttempt { what: loot.what, path, outside, inside: word, why });
    }
}

/// Returns true if this host forbids ordinary processes to attach to another one.
fn ptrace_is_closed() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.is_ok_and(|scope| matches!(scope.trim(), "2" | "3"))
}

/// Returns the mechanism behind an error.
fn why(target: &ProbeTarget, errno: &str) -> &'static str {
    match (target, errno) {
        (_, "ENOENT") => "not in its view",
        (ProbeTarget::File(_), _) => "not granted",
        (ProbeTarget::Memory(_) | ProbeTarget::Environment(_), _) => "a foreign process",
    }
}
