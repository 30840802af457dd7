//! Text form of schedules.

use std::collections::BTreeMap;

use kernel::{Clock as _, Counted, ScheduleTick, SystemClock, TickOutcome, Timestamp};

use super::line::ScheduleLine;
use base::cli_context;
use base::terminal::{Cell, Screen, printable};
use base::time::timestamp;
use setup::automation::schedules::ScheduleText;

/// Shows a table of schedules.
pub(super) fn show(lines: &[ScheduleLine], screen: &mut Screen) {
    if lines.is_empty() {
        screen.line(cli_context::repeated(
            "No schedules. Add one with: supervisor schedules add NAME --cron '0 9 * * *' …",
        ));
        return;
    }
    let now = SystemClock.now();
    let rows = lines.iter().map(|line| {
        [
            Cell::from(line.name.clone()),
            Cell::or_dash(line.schedule.as_ref().map(when)),
            Cell::from(next(line, now)),
            Cell::or_dash(line.last.as_ref().map(|tick| timestamp::soon(tick.tick, now))),
            Cell::or_dash(line.last.as_ref().map(|tick| outcome(tick, line))),
        ]
    });
    screen.table(["NAME", "WHEN", "NEXT", "LAST", "OUTCOME"], rows);
    for line in lines {
        if let Some(defect) = &line.defect {
            screen.hanging(&format!("{}: ", printable(&line.name)), &printable(defect));
        }
    }
}

fn next(line: &ScheduleLine, now: Timestamp) -> String {
    match line.next {
        _ if line.schedule.is_none() => "cannot be read".to_owned(),
        _ if line.paused => "paused".to_owned(),
        Some(at) => timestamp::soon(at, now),
        None => "over".to_owned(),
    }
}

/// Ticks of a schedule, in a few words.
fn when(text: &ScheduleText) -> String {
    let every = text.every.map(|every| format!("every {}", kernel::brief(every.duration())));
    let times = text.at.iter().map(|at| format!("at {at}"));
    let mut words: Vec<String> = text.cron.clone().into_iter().chain(every).chain(times).collect();
    if let Some(zone) = &text.time_zone {
        words.push(format!("({zone})"));
    }
    words.join(" ")
}

/// Result of the latest tick and of its tasks.
fn outcome(tick: &ScheduleTick, line: &ScheduleLine) -> String {
    let mut words = vec![tick_result(tick)];
    if tick.outcome == TickOutcome::Made && !line.tasks.is_empty() {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for task in &line.tasks {
            let status = task.status.map_or_else(|| "deleted".to_owned(), |status| status.to_string());
            *counts.entry(status).or_default() += 1;
        }
        let one = line.tasks.len() == 1;
        let shown =
            counts.iter().map(|(status, n)| if one { status.clone() } else { format!("{n} {status}") });
        words = vec![shown.collect::<Vec<_>>().join(", ")];
        if let [task] = line.tasks.as_slice() {
            words.push(task.id.to_string());
        }
    }
    if line.queued > 0 {
        words
            .push(format!("{} waiting", Counted(usize::try_from(line.queued).unwrap_or(usize::MAX), "tick")));
    }
    words.join("; ")
}

/// Returns the result of a tick in a few words, for a table.
fn tick_result(tick: &ScheduleTick) -> String {
    let text = match &tick.note {
        Some(note) => format!("{}: {note}", tick.outcome),
        None => tick.outcome.to_string(),
    };
    if tick.missed == 0 {
        return printable(&text).clone();
    }
    let most = if tick.more { "more than " } else { "" };
    printable(&format!("{text} ({most}{} missed)", tick.missed)).clone()
}

/// Shows a schedule with its ticks.
pub fn show_one(line: &ScheduleLine, screen: &mut Screen) {
    screen.line(printable(&line.name));
    let mut field = |name: &str, value: &str| screen.hanging(&format!("  {name:<12}"), &printable(value));
    let text = line.schedule.as_ref();
    let now = SystemClock.now();
    let fields = [
        ("defect", line.defect.clone()),
        ("for", text.and_then(|text| text.description.clone())),
        ("from", Some(line.path.display().to_string())),
        ("board", line.board.as_ref().map(ToString::to_string)),
        ("when", text.map(when)),
        ("start", text.and_then(|text| text.start.clone())),
        ("end", text.and_then(|text| text.end.clone())),
        ("jitter", text.and_then(|text| text.jitter).map(|most| kernel::brief(most.duration()))),
        ("missed", text.map(|text| text.missed.to_string())),
        ("overlap", text.map(|text| text.overlap.to_string())),
        ("channel", text.and_then(|text| text.channel.clone())),
        ("command", text.and_then(|text| text.command.clone())),
        ("paused", line.paused.then(|| "yes".to_owned())),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            field(name, &value);
        }
    }
    for task in text.iter().flat_map(|text| text.task.iter().chain(&text.tasks)) {
        let who = task.assignee.as_ref().map(|who| format!(" ({who})")).unwrap_or_default();
        field("task", &format!("{}{who}", task.title));
    }
    for at in &line.ahead {
        field("next", &timestamp::local(*at));
    }
    for tick in &line.ticks {
        let tasks: Vec<&str> = tick.tasks.iter().map(kernel::TaskId::as_str).collect();
        field(
            "last",
            &format!("{} {} {}", timestamp::soon(tick.tick, now), tick_result(tick), tasks.join(" ")),
        );
    }
}
