//! `doctor` at the command line: looks at the root, its boards and this host, says what is wrong, and mends boards.

use std::collections::BTreeSet;

use kernel::{BoardName, Clock as _, Difference, Loss, OpenError, Readers, Repair, SystemClock};
use serde::Serialize;

use super::restore::{lock, refuse_worker};
use super::{CommandLine, attached};
use crate::client::Client;
use crate::exit::Code;
use crate::failure::Failure;
use crate::owner::OwnerLock;
use crate::paths::Root;
use crate::terminal::{Ink, Screen, printable};
use crate::verbs::Status;

/// How many differences between log and board are told.
const TOLD: usize = 10;

/// Check the root, its boards and what this host can enforce
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 if nothing is wrong (warnings aside), else 1.

--repair needs the daemon stopped. It rebuilds the indices and, if that is not
enough, copies every readable row into a new file. The damaged file is always kept
beside the board.

Examples:
  supervisor doctor
  supervisor doctor --replay --json
  supervisor stop --wait && supervisor doctor --repair")]
pub(super) struct Doctor {
    /// Replay each board's event log and compare the result with the board
    #[arg(long)]
    replay: bool,
    /// Repair damaged boards
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

pub(super) async fn run(line: &CommandLine, verb: Doctor) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    refuse_worker(client)?;
    let root = client.root();
    let mut checks = vec![reachable(root), served(root)];
    let names = boards(root)?;
    let mut beyond_repair = BTreeSet::new();
    if verb.repair {
        let _lock = lock(root)?;
        for name in &names {
            let check = repaired(root, name);
            if check.verdict == Verdict::Error {
                beyond_repair.insert(name);
            }
            checks.push(check);
        }
    }
    checks.extend(written(root, &names).await);
    for name in &names {
        let mut found = vec![whole(root, name)];
        if verb.replay {
            found.push(replayed(root, name));
        }
        found.push(attached::check(root, name));
        if beyond_repair.contains(name) {
            // Each of them would name the repair again.
            for check in found.iter_mut().filter(|check| check.verdict == Verdict::Error) {
                check.hint = Some("it could not be repaired: see the line of the repair".to_owned());
            }
        }
        checks.extend(found);
        checks.extend(kept(root, name));
    }
    checks.extend(super::host_checks::configuration(root));
    checks.extend(super::host_checks::host(root));
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

/// What keeps the daemon from writing to boards that it has open: the files that doctor looks at may be others, or gone.
async fn written(root: &Root, names: &[BoardName]) -> Vec<Check> {
    if OwnerLock::holder(root).is_none() {
        return Vec::new();
    }
    // One that is open tells of all; of those that lie here, some may not be.
    for name in names.iter().cloned().chain([BoardName::default()]) {
        let client = Client::new(root.clone(), name, None);
        let Ok(status) = client.call(&Status::default()).await else { continue };
        let check = |(name, trouble)| Check::new(format!("writes {name}"), Verdict::Error, trouble);
        return status.board_troubles.into_iter().map(check).collect();
    }
    Vec::new()
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
            let hint = beyond_repair(root, name, &error);
            Check::failed(check, Failure::from(error).hint(hint))
        }
    }
}

/// What helps where the repair does not: never the repair itself.
fn beyond_repair(root: &Root, name: &BoardName, error: &OpenError) -> String {
    match error {
        // What is wrong is not in the rows.
        OpenError::NewerSchema { .. }
        | OpenError::Mixed { .. }
        | OpenError::Permission { .. }
        | OpenError::NotAFile { .. } => error.hint().unwrap_or_default(),
        _ => {
            let (file, board) = (root.board(name), option(name));
            format!(
                "put a backup back: `supervisor {board}restore <file>`; without one try what still reads the rows, \
                 `supervisor {board}export` or `sqlite3 {0} .recover`; to begin anew, remove {1}",
                file.display(),
                file.parent().unwrap_or(&file).display()
            )
        }
    }
}

/// The option that names a board, where it is not the default one.
fn option(name: &BoardName) -> String {
    if *name == BoardName::default() { String::new() } else { format!("--board {name} ") }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::RootChoice;

    #[test]
    fn what_cannot_be_repaired_is_told_what_can_help_and_never_the_repair() {
        let choice = RootChoice { root: Some("/srv/sv".into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let path = root.board(&BoardName::default());
        let found = [
            OpenError::Missing { path: path.clone() },
            OpenError::Empty { path: path.clone() },
            OpenError::NewerSchema { path: path.clone(), found: 99, known: 1 },
            OpenError::NotAFile { path },
        ];
        for error in found {
            for name in ["default", "other"] {
                let hint = beyond_repair(&root, &name.parse().unwrap(), &error);
                assert!(!hint.is_empty() && !hint.contains("--repair"), "{error}: {hint}");
            }
        }
    }
}
