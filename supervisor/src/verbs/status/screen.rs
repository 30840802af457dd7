//! How `status` shows what it found.

use std::time::Duration;

use kernel::{Purpose, Timestamp};

use super::{StatusReport, WorkerLine};
use crate::daemon::{LiveRun, Phase};
use crate::terminal::{Cell, Ink, Screen, printable};
use crate::time::duration::brief;

/// Shows the whole report.
pub(super) fn show(reply: &StatusReport, screen: &mut Screen) {
    show_daemon(reply, screen);
    if !reply.workers.is_empty() {
        screen.heading("Live workers");
        show_workers(reply, screen);
    }
    if !reply.defects.is_empty() {
        screen.heading("Configuration");
        for defect in &reply.defects {
            let text = format!("{defect}; {}", defect.consequence());
            screen.hanging("  ", &printable(&text));
        }
    }
    if !reply.unheld_policies.is_empty() {
        screen.heading("Policies that this host cannot enforce");
        for (policy, why) in &reply.unheld_policies {
            screen.hanging(&format!("{}: ", printable(policy)), &printable(why));
        }
    }
    if !reply.broken.is_empty() {
        screen.heading("Broken");
        for broken in &reply.broken {
            let again = broken.until.map_or_else(String::new, |at| {
                format!(" (tried again at {})", crate::time::timestamp::soon(at, reply.now))
            });
            let text = format!("{}{again}", broken.why);
            screen.hanging(&format!("{}: ", printable(&broken.what)), &printable(&text));
        }
    }
    if !reply.waiting.is_empty() {
        screen.heading("Waiting");
        for waiting in &reply.waiting {
            screen.hanging(
                &format!("{}  ", waiting.task),
                &printable(&crate::diagnosis::why::line(&waiting.why)),
            );
        }
        if reply.waiting_more > 0 {
            let of = reply.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
            screen.line(format!("and {} more: supervisor list --why{of}", reply.waiting_more));
        }
    }
}

fn show_daemon(reply: &StatusReport, screen: &mut Screen) {
    let counts: Vec<String> = reply.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "no tasks".to_owned() } else { counts.join(", ") };
    if let Some(daemon) = &reply.daemon {
        let dot = screen.paint(Ink::Green, "●");
        let memory = daemon.memory_bytes.map(|bytes| format!(", {}", bytes_brief(bytes))).unwrap_or_default();
        screen.line(format!(
            "{dot} supervisor {} up {}, pid {}{memory}, {} of {} slots taken",
            daemon.version,
            brief(Duration::from_secs(daemon.uptime_seconds)),
            daemon.pid,
            // Nobody knows whether those that are left out still run; they take no slot.
            reply.workers.iter().filter(|worker| worker.run.phase != Phase::Unknown).count(),
            daemon.slots
        ));
        for (label, text) in [("paused", &daemon.paused), ("stopping", &daemon.stopping)] {
            if let Some(text) = text {
                let label = screen.paint(Ink::Red, label);
                screen.line(format!("  {label}: {}", printable(text)));
            }
        }
    } else {
        let dot = screen.paint(Ink::Red, "○");
        screen.line(match &reply.holder {
            Some(holder) => format!(
                "{dot} {holder} owns this root and does not answer on its socket; it restores a missing socket, \
                 so try again in a moment"
            ),
            None => format!("{dot} no daemon is running; start one with: supervisor daemon"),
        });
    }
    screen.hanging(&format!("  root {}, board {}: ", reply.root.display(), reply.board), &counts);
    if let Some(trouble) = &reply.board_trouble {
        let label = screen.paint(Ink::Red, "nothing is written");
        screen.hanging(&format!("  {label}: "), &printable(trouble));
    }
}

/// The columns that a worker has on a wide terminal. A narrow one tells profile and tenant below the row.
const WIDE: [&str; 11] =
    ["TASK", "RUN", "PROFILE", "TENANT", "PID", "STATE", "AGE", "LEFT", "CPU", "MEM", "BEAT"];
const NARROW: [&str; 9] = ["TASK", "RUN", "PID", "STATE", "AGE", "LEFT", "CPU", "MEM", "BEAT"];

fn show_workers(reply: &StatusReport, screen: &mut Screen) {
    let workers = || reply.workers.iter();
    let wide: Vec<[Cell; 11]> = workers().map(|worker| worker_row(worker, reply.now)).collect();
    if screen.fits(&WIDE, &wide) {
        let rows = wide.into_iter().zip(workers()).map(|(row, worker)| (row, details(&worker.run)));
        screen.list_with_details(WIDE, rows.collect());
        return;
    }
    let rows = wide.into_iter().zip(workers()).map(|(row, worker)| {
        let [task, run, _, _, pid, state, age, left, cpu, memory, beat] = row;
        let run_of = &worker.run;
        let mut below = vec![run_of.profile.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)];
        below.extend(run_of.tenant.as_ref().map(|tenant| format!("for {tenant}")));
        below.extend(details(run_of));
        ([task, run, pid, state, age, left, cpu, memory, beat], below)
    });
    screen.list_with_details(NARROW, rows.collect());
}

/// Where a run works, what its sandbox enforces, what its agent has used, and what holds it up.
fn details(run: &LiveRun) -> Vec<String> {
    let place = match &run.workspace_path {
        Some(path) => path.display().to_string(),
        None => run.workspace.clone(),
    };
    let sandbox = run.sandbox.as_ref().map(|sandbox| format!("[{sandbox}]"));
    let spent = run.spent.as_ref().map(crate::verbs::amounts);
    [Some(place).filter(|place| !place.is_empty()), sandbox, spent, run.note.clone()]
        .into_iter()
        .flatten()
        .map(|piece| printable(&piece))
        .collect()
}

fn worker_row(worker: &WorkerLine, now: Timestamp) -> [Cell; 11] {
    let run = &worker.run;
    let (state, ink) = match run.phase {
        Phase::Starting => ("starting", Ink::Yellow),
        Phase::Running if run.purpose == Purpose::Check => ("checking", Ink::Green),
        Phase::Running => ("running", Ink::Green),
        Phase::Ending => ("ending", Ink::Yellow),
        Phase::Settling => ("settling", Ink::Red),
        Phase::Unknown => ("unknown", Ink::Red),
    };
    let short = |seconds: u64| brief(Duration::from_secs(seconds)).replace(' ', "");
    let beat = run
        .last_heartbeat_at
        .map(|at| short((now.as_micros() - at.as_micros()).max(0).unsigned_abs() / 1_000_000));
    let cpu = worker.usage.as_ref().map(|usage| cpu_brief(Duration::from_micros(usage.cpu_us)));
    let memory = worker.usage.as_ref().map(|usage| bytes_brief(usage.memory_bytes).replace(' ', ""));
    [
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
    ]
}

/// Processor time: tenths of a second while it is short.
fn cpu_brief(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        brief(time).replace(' ', "")
    }
}

/// A size in three digits or so: `512 B`, `14 KiB`, `2.1 GiB`.
pub(in crate::verbs) fn bytes_brief(bytes: u64) -> String {
    let mut whole = bytes;
    let mut rest = 0;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if whole < 1024 {
            break;
        }
        rest = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit = next;
    }
    if whole < 10 && unit != "B" { format!("{whole}.{rest} {unit}") } else { format!("{whole} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown: Vec<_> = [0, 1023, 1024, 15_000, 5_000_000, 2_254_857_830].map(bytes_brief).into();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "14 KiB", "4.7 MiB", "2.0 GiB"]);
    }
}
