//! Text form of `status`.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::{AskingMission, Counted, Purpose, Timestamp, brief};

use super::health::Health;
use super::{StatusReport, WorkerLine};
use crate::views::usage_text::bytes_brief;
use base::cli_context;
use base::terminal::{Cell, Ink, Screen, cut, printable};
use base::time::duration::{in_column, processor};
use daemon::{LiveRun, Phase, PoolUse};
use host::usage::{ProcessEntry, Tree};

/// Limit on the characters of a waiting task's title.
const LONGEST_TITLE: usize = 40;
/// Limit on the characters of a worker's last note.
const LONGEST_NOTE: usize = 200;
/// Least width of the column of titles on a wide terminal.
const SHORTEST_TITLE: usize = 20;

/// Shows the whole report.
pub(super) fn show(reply: &StatusReport, screen: &mut Screen) {
    show_daemon(reply, screen);
    if !reply.workers.is_empty() {
        screen.heading("Live workers");
        show_workers(reply, screen);
    }
    if !reply.problems.is_empty() {
        screen.heading("Problems");
        screen.findings(&reply.problems);
    }
    if let Some(set) = &reply.clock_set {
        screen.heading("Clock");
        let at = base::time::timestamp::local(set.at);
        screen.hanging("set back: ", &cli_context::repeated(&format!("{set}, at {at}")));
    }
    if !reply.asking.is_empty() {
        screen.heading("Missions at a limit");
        for mission in &reply.asking {
            show_question(mission, screen);
        }
    }
    if !reply.waiting.is_empty() {
        screen.heading("Waiting");
        for waiting in &reply.waiting {
            let why = upkeep::diagnosis::why::line(&waiting.why);
            let text = format!("{}: {why}", cut(&waiting.title, LONGEST_TITLE));
            screen.hanging(&format!("{}  ", waiting.task), &printable(&text));
        }
        if reply.waiting_more > 0 {
            let tenant = reply.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}"));
            let assignee = reply.assignee.as_ref().map(|assignee| format!(" --assignee {assignee}"));
            let of: String = [tenant, assignee].into_iter().flatten().collect();
            let more = format!("and {} more: supervisor list --why{of}", reply.waiting_more);
            screen.line(cli_context::repeated(&more));
        }
    }
}

/// Question of a mission, and the commands that answer it.
fn show_question(mission: &AskingMission, screen: &mut Screen) {
    screen.hanging(&format!("{}  ", mission.id), &printable(&mission.question.text));
    for (at, choice) in mission.question.choices.iter().enumerate() {
        let answer = cli_context::repeated(&format!("supervisor answer {} {}", mission.id, at + 1));
        screen.line(format!("  {answer}  {}", printable(choice)));
    }
}

fn show_daemon(reply: &StatusReport, screen: &mut Screen) {
    let counts: Vec<String> = reply.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "no tasks".to_owned() } else { counts.join(", ") };
    if let Some(daemon) = &reply.daemon {
        let ink = if reply.health == Health::Healthy { Ink::Green } else { Ink::Yellow };
        let dot = screen.paint(ink, "●");
        let memory = daemon.memory_bytes.map(|bytes| format!(", {}", bytes_brief(bytes))).unwrap_or_default();
        screen.line(format!(
            "{dot} supervisor {} up {}, pid {}{memory}, {} of {} slots taken",
            daemon.version,
            brief(Duration::from_secs(daemon.uptime_seconds)),
            daemon.pid,
            daemon.taken,
            daemon.slots
        ));
        if !reply.troubles.is_empty() {
            let label = screen.paint(Ink::Red, "degraded");
            screen.hanging(&format!("  {label}: "), &printable(&reply.troubles.join("; ")));
        }
        if !daemon.pools.is_empty() {
            let pools: Vec<String> = daemon.pools.iter().map(pool).collect();
            screen.hanging("  pools: ", &printable(&pools.join(", ")));
        }
        for (label, text) in [("paused", &daemon.paused), ("stopping", &daemon.stopping)] {
            if let Some(text) = text {
                let label = screen.paint(Ink::Red, label);
                screen.hanging(&format!("  {label}: "), &printable(text));
            }
        }
    } else {
        let dot = screen.paint(Ink::Red, "○");
        let text = match &reply.holder {
            Some(holder) if reply.is_starting && reply.in_its_place.is_none() => {
                format!("{holder}, is starting; try again in a moment")
            }
            Some(holder) => {
                let missing = "it restores a missing socket, so try again in a moment";
                let way = reply.in_its_place.as_deref().unwrap_or(missing);
                format!("{holder} owns this root and does not answer on its socket; {way}")
            }
            None => "no daemon is running; start one with: supervisor daemon".to_owned(),
        };
        screen.hanging(&format!("{dot} "), &cli_context::repeated(&text));
    }
    let tenant = reply.tenant.as_ref().map(|tenant| format!(", tenant {tenant}"));
    let assignee = reply.assignee.as_ref().map(|assignee| format!(", assignee {assignee}"));
    let of: String = [tenant, assignee].into_iter().flatten().collect();
    screen.hanging(&format!("  root {}, board {}{of}: ", reply.root.display(), reply.board), &counts);
    if !reply.ticks.is_empty() {
        let at = |at| base::time::timestamp::soon(at, reply.now);
        let ticks = reply.ticks.iter().map(|tick| format!("{} at {}", tick.schedule, at(tick.at)));
        screen.hanging("  next ticks: ", &printable(&ticks.collect::<Vec<_>>().join(", ")));
    }
}

/// Taken slots of a pool.
fn pool(of: &PoolUse) -> String {
    let places = of.places.map_or_else(|| "none configured".to_owned(), |places| places.to_string());
    format!("{} {} of {places}", of.name, of.taken)
}

/// The columns of a worker on a wide and on a narrow terminal. A title without room is cut. The column of boards is
/// left out if all workers are of the board in the request.
const WIDE: [&str; 13] = [
    "BOARD", "TASK", "RUN", "PROFILE", "TENANT", "PID", "STATE", "AGE", "LEFT", "CPU", "MEM", "BEAT", "TITLE",
];
const NARROW: [&str; 9] = ["BOARD", "TASK", "STATE", "AGE", "LEFT", "CPU", "MEM", "PROFILE", "TITLE"];

fn show_workers(reply: &StatusReport, screen: &mut Screen) {
    let common = common_lacks(&reply.workers);
    let rows = reply
        .workers
        .iter()
        .map(|worker| TableRow { wide: worker_row(worker, reply.now), details: details(worker, &common) });
    if reply.workers.iter().any(|worker| worker.run.board != reply.board) {
        let rows = rows.map(|row| (row.wide.clone(), narrowed(row.wide), row.details));
        table(screen, WIDE, NARROW, rows.collect());
    } else {
        let ([_, wide @ ..], [_, narrow @ ..]) = (WIDE, NARROW);
        let rows = rows.map(|row| {
            let [_, narrow @ ..] = narrowed(row.wide.clone());
            let [_, wide @ ..] = row.wide;
            (wide, narrow, row.details)
        });
        table(screen, wide, narrow, rows.collect());
    }
    show_lacks(&common, screen);
}

/// Cells of a worker.
struct TableRow {
    wide: [Cell; 13],
    details: Vec<Vec<String>>,
}

/// The cells of a narrow terminal.
fn narrowed(wide: [Cell; 13]) -> [Cell; 9] {
    let [board, task, _, profile, _, _, state, age, left, cpu, memory, _, title] = wide;
    [board, task, state, age, left, cpu, memory, profile, title]
}

/// A row of both forms of a table, and the lines below it.
type Shaped<const W: usize, const N: usize> = ([Cell; W], [Cell; N], Vec<Vec<String>>);

/// Shows a table in its wide form if that leaves room for titles, else in its narrow form.
fn table<const W: usize, const N: usize>(
    screen: &mut Screen,
    wide: [&str; W],
    narrow: [&str; N],
    rows: Vec<Shaped<W, N>>,
) {
    let without_title = rows.iter().map(|(row, ..)| {
        let mut row = row.clone();
        if let Some(title) = row.last_mut() {
            *title = Cell::from("-".repeat(SHORTEST_TITLE));
        }
        row
    });
    if screen.fits(&wide, &without_title.collect::<Vec<_>>()) {
        screen.list_with_details(wide, rows.into_iter().map(|(row, _, details)| (row, details)).collect());
    } else {
        screen.list_with_details(narrow, rows.into_iter().map(|(_, row, details)| (row, details)).collect());
    }
}

/// Returns the layers that every worker's sandbox lacks. A layer that the host cannot enforce is one of them.
fn common_lacks(workers: &[WorkerLine]) -> BTreeSet<String> {
    let mut known = workers.iter().map(|worker| &worker.run).filter(|run| run.sandbox.is_some());
    let first: BTreeSet<String> = known.next().map(|run| run.lacks.clone()).unwrap_or_default();
    known.fold(first, |common, run| common.intersection(&run.lacks).cloned().collect())
}

fn show_lacks(common: &BTreeSet<String>, screen: &mut Screen) {
    if !common.is_empty() {
        let lacks = common.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        screen.hanging(
            "Each sandbox lacks: ",
            &printable(&cli_context::repeated(&format!("{lacks}; supervisor doctor says why"))),
        );
    }
}

/// Returns true if a worker's sandbox lacks more than the common layers.
fn lacks_more(run: &LiveRun, common: &BTreeSet<String>) -> bool {
    run.lacks.len() > common.len()
}

/// Returns the lines below a worker: its last note, its agent's usage, missing layers other than the common ones, the
/// reason of a delay, and its processes.
fn details(worker: &WorkerLine, common: &BTreeSet<String>) -> Vec<Vec<String>> {
    let run = &worker.run;
    let sandbox =
        run.sandbox.as_ref().filter(|_| lacks_more(run, common)).map(|sandbox| format!("[{sandbox}]"));
    let spent = run.spent.as_ref().map(crate::amounts);
    let egress = run.egress.as_ref().map(crate::passed);
    let activity = worker
        .last_note
        .as_ref()
        .map(|note| format!("“{}”", cut(note.lines().next().unwrap_or_default(), LONGEST_NOTE)));
    let pieces = [activity, spent, egress, sandbox, run.note.clone()];
    let pieces = pieces.into_iter().flatten().map(|piece| printable(&piece));
    let processes = worker.tree.iter().flat_map(processes).map(|process| vec![process]);
    [pieces.collect()].into_iter().chain(processes).collect()
}

/// The processes of a run, each indented beneath its parent.
fn processes(tree: &Tree) -> Vec<String> {
    let line = |seen: &ProcessEntry| {
        let cpu = cpu_brief(Duration::from_micros(seen.cpu_us));
        let memory = bytes_brief(seen.memory_bytes).replace(' ', "");
        let indent = "  ".repeat(seen.depth);
        format!("{indent}└ {} {} {cpu} {memory} {}", seen.pid, seen.state, printable(&seen.command))
    };
    let more = (tree.more > 0).then(|| format!("… {}", Counted(tree.more as u64, "more process")));
    tree.processes.iter().map(line).chain(more).collect()
}

impl WorkerLine {
    /// Hint to `show`, in a line.
    pub fn state_line(&self) -> String {
        let run = &self.run;
        let (state, _) = self.state();
        let pid = run.pid.map(|pid| format!("pid {pid}"));
        let usage = self.usage.as_ref().map(|usage| {
            let cpu = cpu_brief(Duration::from_micros(usage.cpu_us));
            format!("CPU {cpu}, memory {}", bytes_brief(usage.memory_bytes))
        });
        let activity = self
            .last_note
            .as_ref()
            .map(|note| format!("“{}”", cut(note.lines().next().unwrap_or_default(), LONGEST_NOTE)));
        let pieces = [Some(state.to_owned()), pid, usage, activity, run.note.clone()];
        pieces.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Stage of its run, in a word.
    pub fn state(&self) -> (&'static str, Ink) {
        worker_state(self.run.phase, self.run.purpose, self.is_stopped)
    }
}

/// Stage of a run, in a word.
fn worker_state(phase: Phase, purpose: Purpose, is_stopped: bool) -> (&'static str, Ink) {
    match phase {
        Phase::Running if is_stopped => ("stopped", Ink::Yellow),
        Phase::Starting => ("starting", Ink::Yellow),
        Phase::Running if purpose == Purpose::Check => ("checking", Ink::Green),
        Phase::Running => ("running", Ink::Green),
        Phase::Ending => ("ending", Ink::Yellow),
        Phase::Settling => ("settling", Ink::Red),
        Phase::Unkillable => ("unkillable", Ink::Red),
        Phase::Unknown => ("unknown", Ink::Red),
    }
}

fn worker_row(worker: &WorkerLine, now: Timestamp) -> [Cell; 13] {
    let run = &worker.run;
    let (state, ink) = worker.state();
    let short = |seconds: u64| in_column(Duration::from_secs(seconds));
    let beat = run.last_heartbeat_at.map(|at| short(now.since(at).as_secs()));
    let cpu = worker.usage.as_ref().map(|usage| cpu_brief(Duration::from_micros(usage.cpu_us)));
    let memory = worker.usage.as_ref().map(|usage| bytes_brief(usage.memory_bytes).replace(' ', ""));
    [
        Cell::from(run.board.to_string()),
        Cell::from(run.task.to_string()),
        Cell::from(run.run.to_string()),
        Cell::or_dash(run.profile.as_ref()),
        Cell::or_dash(run.tenant.as_ref()),
        Cell::or_dash(run.pid),
        Cell::inked(ink, state),
        Cell::from(short(worker.age_seconds)),
        Cell::or_dash(worker.left_seconds.map(short)),
        Cell::or_dash(cpu),
        Cell::or_dash(memory),
        Cell::or_dash(beat),
        Cell::from(run.title.clone()),
    ]
}

/// Processor time, as a column has it.
fn cpu_brief(time: Duration) -> String {
    processor(time).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_sandbox_lacks_is_said_once_and_a_row_names_its_own_where_it_lacks_more() {
        let worker = |lacks: &[&str]| -> WorkerLine {
            let worker = serde_json::json!({
                "board": "default", "task": "t_0123abcd", "title": "a", "run": 1, "profile": null, "tenant": null,
                "phase": "running", "pid": 7, "started_at": 0, "deadline_us": null, "last_heartbeat_at": null,
                "workspace": "scratch", "workspace_path": null, "cgroup": null, "sandbox": "default abi 7",
                "sandbox_lacks": !lacks.is_empty(), "lacks": lacks, "note": null, "age_seconds": 1,
                "left_seconds": null, "usage": null, "health": "healthy",
            });
            serde_json::from_value(worker).unwrap()
        };
        let workers = [worker(&["cgroup (partial)"]), worker(&["cgroup (partial)", "files (absent)"])];
        let common = common_lacks(&workers);
        assert_eq!(common.iter().collect::<Vec<_>>(), ["cgroup (partial)"]);
        let named = workers.iter().map(|worker| lacks_more(&worker.run, &common));
        assert_eq!(named.collect::<Vec<_>>(), [false, true]);
        assert!(common_lacks(&[worker(&[]), worker(&["uid (absent)"])]).is_empty());
    }

    #[test]
    fn the_page_names_every_state_of_a_worker() {
        let page = include_str!("../../../../../docs/operations.md");
        let phases = [
            Phase::Starting,
            Phase::Running,
            Phase::Ending,
            Phase::Settling,
            Phase::Unkillable,
            Phase::Unknown,
        ];
        let words = phases.map(|phase| worker_state(phase, Purpose::Work, false).0).into_iter();
        let more = [(Purpose::Check, false), (Purpose::Work, true)];
        let more = more.map(|(purpose, is_stopped)| worker_state(Phase::Running, purpose, is_stopped).0);
        for word in words.chain(more) {
            assert!(page.contains(&format!("| `{word}` |")), "docs/operations.md lacks the state {word}");
        }
    }
}
