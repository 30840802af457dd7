//! `doctor` at the command line: looks at the root, its boards and this host, says what is wrong, and mends boards.

use kernel::{BoardName, Clock as _, Difference, Loss, Readers, Repair, SystemClock};
use serde::Serialize;

use super::restore::{lock, refuse_worker};
use super::{Output, attached};
use crate::client::Client;
use crate::daemon;
use crate::exit::Code;
use crate::failure::Failure;
use crate::owner::OwnerLock;
use crate::paths::Root;
use crate::terminal::{Ink, Screen, printable};

/// How many differences between log and board are told.
const TOLD: usize = 10;

/// Check the root, its boards and what this host can enforce
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 when nothing is wrong (warnings aside), 1 otherwise.

--repair needs the daemon stopped. It makes the indices anew, and where that is
not enough, puts every row that can still be read into a new file. The damaged
file is kept beside the board in any case.

Examples:
  supervisor doctor
  supervisor doctor --replay --json
  supervisor stop --wait && supervisor doctor --repair")]
pub(super) struct Doctor {
    /// Play each board's event log again and compare where it leads
    #[arg(long)]
    replay: bool,
    /// Mend damaged boards
    #[arg(long)]
    repair: bool,
}

/// How one check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    #[serde(rename = "check")]
    subject: String,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    pub(super) fn new(subject: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Check { subject: subject.into(), verdict, detail: detail.into(), hint: None }
    }

    pub(super) fn failed(subject: impl Into<String>, failure: Failure) -> Self {
        Check { hint: failure.hint, ..Check::new(subject, Verdict::Error, failure.message) }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Check { hint: Some(hint.into()), ..self }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

pub(super) fn run(client: &Client, verb: &Doctor, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    let root = client.root();
    let mut checks = vec![reachable(root), served(root)];
    let names = boards(root)?;
    if verb.repair {
        let _lock = lock(root)?;
        checks.extend(names.iter().map(|name| repaired(root, name)));
    }
    for name in &names {
        checks.push(whole(root, name));
        if verb.replay {
            checks.push(replayed(root, name));
        }
        checks.push(attached::check(root, name));
        checks.extend(kept(root, name));
    }
    checks.extend(host());
    let report = Report { ok: checks.iter().all(|check| check.verdict != Verdict::Error), checks };
    if output.json() {
        output.value(&report)?;
    } else {
        let mut screen = output.screen();
        show(&report, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(if report.ok { 0 } else { Code::Failed.exit() })
}

fn show(report: &Report, screen: &mut Screen) {
    for check in &report.checks {
        let (ink, word) = match check.verdict {
            Verdict::Ok => (Ink::Green, "ok"),
            Verdict::Warning => (Ink::Yellow, "warning"),
            Verdict::Error => (Ink::Red, "error"),
        };
        let label = screen.paint(ink, word);
        let gap = " ".repeat(8 - word.len());
        screen.hanging(&format!("{label}{gap}{}: ", check.subject), &printable(&check.detail));
        if let Some(hint) = &check.hint {
            screen.hanging("        ", &printable(hint));
        }
    }
}

fn reachable(root: &Root) -> Check {
    let dir = root.dir();
    if !dir.is_dir() {
        return Check::new("root", Verdict::Warning, format!("{} does not exist yet", dir.display()))
            .hint("supervisor init makes it");
    }
    match root.check_reachable() {
        Ok(()) => Check::new("root", Verdict::Ok, format!("{} can be served", dir.display())),
        Err(failure) => Check::failed("root", failure),
    }
}

fn served(root: &Root) -> Check {
    match OwnerLock::holder(root) {
        Some(holder) => Check::new("daemon", Verdict::Ok, holder),
        None => Check::new("daemon", Verdict::Warning, "none is running, so nothing is started")
            .hint("supervisor daemon"),
    }
}

fn boards(root: &Root) -> Result<Vec<BoardName>, Failure> {
    root.board_names()
}

fn whole(root: &Root, name: &BoardName) -> Check {
    let check = format!("board {name}");
    match kernel::require_whole(&root.board(name), kernel::Depth::Values) {
        Ok(()) => Check::new(check, Verdict::Ok, "its pages, indices, rows and references are whole"),
        Err(error) => Check::failed(check, error.into()),
    }
}

fn replayed(root: &Root, name: &BoardName) -> Check {
    let check = format!("replay {name}");
    let played = Readers::open(&root.board(name), std::sync::Arc::new(SystemClock))
        .map_err(Failure::from)
        .and_then(|readers| readers.with(|view| view.replay()).map_err(Failure::from));
    match played {
        Ok(differences) if differences.is_empty() => {
            Check::new(check, Verdict::Ok, "the event log leads to the board as it is")
        }
        Ok(differences) => {
            let told: Vec<String> = differences.iter().take(TOLD).map(difference).collect();
            let more = differences.len().saturating_sub(TOLD);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            Check::new(check, Verdict::Error, format!("{}{more}", told.join("; ")))
                .hint("the board was changed by something else than supervisor, or mended after damage")
        }
        Err(failure) => Check::failed(check, failure),
    }
}

fn difference(difference: &Difference) -> String {
    match difference {
        Difference::Illegal { event, task, error } => format!("event {event} of {task}: {error}"),
        Difference::Missing { task, replayed } => {
            format!("{task} is {} in the log and not on the board", replayed.status())
        }
        Difference::State { task, replayed: None, live } => {
            format!("{task} is {}, and the log does not know it", live.status())
        }
        Difference::State { task, replayed: Some(replayed), live } => {
            format!("{task} is {}, and the log leads to {}", live.status(), replayed.status())
        }
    }
}

fn repaired(root: &Root, name: &BoardName) -> Check {
    let check = format!("repair {name}");
    match kernel::repair_board(&root.board(name), name, SystemClock.now()) {
        Ok(Repair::Whole) => Check::new(check, Verdict::Ok, "nothing to do"),
        Ok(Repair::Reindexed { evidence }) => Check::new(
            check,
            Verdict::Warning,
            format!("the indices were made anew, no row was touched; as it was: {}", evidence.display()),
        ),
        Ok(Repair::Rebuilt { evidence, losses }) => {
            let lost = if losses.is_empty() {
                "nothing is lost".to_owned()
            } else {
                let told = losses.iter().map(|Loss { table, what }| format!("{table}: {what}"));
                format!("lost are: {}", told.collect::<Vec<_>>().join("; "))
            };
            let text = format!("put into a new file; {lost}; as it was: {}", evidence.display());
            Check::new(check, Verdict::Warning, text)
                .hint("supervisor doctor --replay tells what the event log knows better")
        }
        Err(error) => {
            let failure = Failure::from(error);
            Check::failed(check, failure.hint("put a backup back: supervisor restore <file>"))
        }
    }
}

/// What earlier repairs and restores have kept, and what was cut short.
fn kept(root: &Root, name: &BoardName) -> Option<Check> {
    let path = root.board(name);
    let entries = std::fs::read_dir(path.parent()?).ok()?.flatten();
    let (mut kept, mut bytes) = (0_u32, 0_u64);
    for entry in entries {
        let name = entry.file_name();
        let old = name.to_str().is_some_and(|name| {
            [".replaced-", ".damaged-", ".rebuilt-", ".new-"].iter().any(|mark| name.contains(mark))
        });
        if old {
            kept += 1;
            bytes += entry.metadata().map_or(0, |meta| meta.len());
        }
    }
    (kept > 0).then(|| {
        let detail = format!("{kept} files of earlier repairs, restores or drafts, {bytes} bytes");
        Check::new(format!("leftovers {name}"), Verdict::Warning, detail).hint(format!(
            "look at them in {}, and remove what you do not need",
            path.with_file_name("").display()
        ))
    })
}

/// What this host enforces for workers, in plain words.
fn host() -> Vec<Check> {
    let host = daemon::examine_host();
    let abi = host.support.landlock_abi;
    let landlock = match abi {
        0 => Check::new(
            "files",
            Verdict::Error,
            "this kernel has no Landlock: workers cannot be kept to their files",
        )
        .hint("boot with lsm=landlock,… on Linux 6.12 or newer"),
        1..4 => Check::new(
            "files",
            Verdict::Warning,
            format!("workers are kept to their files; TCP is not ruled (Landlock ABI {abi})"),
        ),
        4..6 => Check::new(
            "files",
            Verdict::Warning,
            format!(
                "workers are kept to their files and ports; signals and abstract sockets are not ruled (Landlock ABI {abi})"
            ),
        ),
        _ => Check::new(
            "files",
            Verdict::Ok,
            format!("workers are kept to their files, ports and signals (Landlock ABI {abi})"),
        ),
    };
    let seccomp = if host.support.seccomp {
        Check::new("system calls", Verdict::Ok, "dangerous system calls are refused (seccomp)")
    } else {
        Check::new("system calls", Verdict::Error, "this kernel cannot filter system calls")
    };
    let view = match &host.support.view {
        policies::View::Privileged => {
            Check::new("view", Verdict::Ok, "each worker sees only what it is granted")
        }
        policies::View::UserNamespace => {
            Check::new("view", Verdict::Ok, "each worker sees only what it is granted (in a user namespace)")
        }
        policies::View::Unavailable { why } => Check::new(
            "view",
            Verdict::Warning,
            format!("workers see the names of files that they may not open: {why}"),
        ),
    };
    let socket = match host.support.board_access_kind() {
        policies::BoardKind::Socket => {
            Check::new("board access", Verdict::Ok, "workers reach the board through one Unix socket")
        }
        policies::BoardKind::Port => Check::new(
            "board access",
            Verdict::Warning,
            "workers reach the board through a loopback port, because other Unix sockets cannot be hidden from them",
        ),
    };
    let groups = match host.cgroups {
        Ok(()) => {
            Check::new("cgroups", Verdict::Ok, "each run has a group of its own and is ended as a whole")
        }
        Err(why) => Check::new(
            "cgroups",
            Verdict::Warning,
            format!("a run's processes are found one by one, and memory is not limited: {why}"),
        ),
    };
    let uid = if host.support.uid == 0 {
        Check::new("users", Verdict::Ok, "each task's worker has a user of its own")
    } else {
        Check::new(
            "users",
            Verdict::Warning,
            format!(
                "workers run as your own user (uid {}): the sandbox alone keeps them from your files",
                host.support.uid
            ),
        )
        .hint("a daemon run by root gives each task a user of its own")
    };
    vec![landlock, seccomp, view, socket, groups, uid]
}
