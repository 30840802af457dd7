//! Checks and repairs of `doctor` on the files of boards.

use std::collections::BTreeSet;

use kernel::{
    BoardName, Clock as _, Counted, Difference, Finding, FindingCode, Loss, OpenError, Readers, Remedy,
    Repair, SystemClock,
};

use super::Examination;
use crate::transfer::{attached, unfit_workspace};
use base::failure::Failure;
use base::findings::failed;
use base::paths::Root;

/// Limit on the reported differences between log and board, and on the reported rows.
const LISTED: usize = 10;

/// Checks every board of a root.
pub(super) fn examine(root: &Root, asked: Examination, daemon: &[Finding]) -> Result<Vec<Finding>, Failure> {
    let mut checks = Vec::new();
    let names = root.board_names()?;
    let mut beyond_repair = BTreeSet::new();
    if asked.repair {
        for name in &names {
            let check = repaired(root, name);
            if check.is_error() {
                beyond_repair.insert(name);
            }
            checks.push(check);
        }
    }
    // The files may have been replaced since the daemon opened them, so its failures to write are listed too.
    checks.extend(daemon.iter().filter(|problem| problem.code == FindingCode::BoardNotWritten).cloned());
    for name in &names {
        let mut of_board = vec![whole(root, name)];
        if !of_board.iter().any(Finding::is_error) {
            of_board.extend(rows(root, name));
        }
        if asked.replay {
            of_board.push(replayed(root, name));
        }
        of_board.push(attachments(root, name));
        if beyond_repair.contains(name) {
            // The other lines would suggest the repair again.
            for check in of_board.iter_mut().filter(|check| check.is_error()) {
                check.remedies = vec![Remedy::advice("it could not be repaired: see the line of the repair")];
            }
        }
        checks.extend(of_board);
        checks.extend(former_files(root, name));
    }
    Ok(checks)
}

fn whole(root: &Root, name: &BoardName) -> Finding {
    let code = FindingCode::Board;
    match kernel::require_whole(&root.board(name), kernel::Depth::Values) {
        Ok(()) => Finding::ok(code, "its pages, indices, rows and references are intact"),
        Err(error) => failed(code, error.into()),
    }
    .named(name)
}

/// Checks the values of the rows of a sound board; none for a board that a daemon migrates first.
fn rows(root: &Root, name: &BoardName) -> Option<Finding> {
    let code = FindingCode::Rows;
    let checked = match kernel::unfit_rows(&root.board(name), &unfit_workspace) {
        Ok(rows) if rows.is_empty() => Finding::ok(code, "each value is one that a board can have"),
        Ok(rows) => {
            let listed = rows.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
            let more = rows.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            Finding::error(code, format!("{listed}{more}")).advice(
                "another program has written these rows: with the daemon stopped, restore a backup from before, \
                 or correct the rows with sqlite3",
            )
        }
        Err(OpenError::OlderSchema { .. }) => return None,
        Err(error) => failed(code, error.into()),
    };
    Some(checked.named(name))
}

fn attachments(root: &Root, board: &BoardName) -> Finding {
    let code = FindingCode::Attachments;
    match attached::flaws(root, board) {
        Ok((count, flaws)) if flaws.is_empty() => {
            Finding::ok(code, format!("{count} files, none missing or altered"))
        }
        Ok((_, flaws)) => Finding::error(code, attached::listed(&flaws)).advice(
            "attach the same files again, restore boards/<board>/attachments from a copy, or remove them: \
             `supervisor attach-rm`",
        ),
        Err(failure) => failed(code, failure),
    }
    .named(board)
}

fn replayed(root: &Root, name: &BoardName) -> Finding {
    let code = FindingCode::Replay;
    let played = Readers::open(&root.board(name), std::sync::Arc::new(SystemClock))
        .map_err(Failure::from)
        .and_then(|readers| readers.with(|view| view.replay()).map_err(Failure::from));
    match played {
        Ok(differences) if differences.is_empty() => Finding::ok(code, "the event log matches the board"),
        Ok(differences) => {
            let shown: Vec<String> = differences.iter().take(LISTED).map(difference).collect();
            let more = differences.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            Finding::error(code, format!("{}{more}", shown.join("; ")))
                .advice("the board was changed by another program, or repaired after damage")
        }
        Err(failure) => failed(code, failure),
    }
    .named(name)
}

fn difference(difference: &Difference) -> String {
    match difference {
        Difference::Illegal { event, task, error } => format!("event {event} of {task}: {error}"),
        Difference::Missing { task, replayed } => {
            format!("{task} is {} in the log and not on the board", replayed.status())
        }
        Difference::State { task, replayed: None, live } => {
            format!("{task} is {} on the board and not in the log", live.status())
        }
        Difference::State { task, replayed: Some(replayed), live } => {
            format!("{task} is {} on the board and {} in the log", live.status(), replayed.status())
        }
    }
}

fn repaired(root: &Root, name: &BoardName) -> Finding {
    let code = FindingCode::Repair;
    match kernel::repair_board(&root.board(name), name, SystemClock.now()) {
        Ok(Repair::Whole) => Finding::ok(code, "nothing to do"),
        Ok(Repair::Reindexed { evidence }) => Finding::warning(
            code,
            format!(
                "the indices were rebuilt, no row was changed; the damaged file is {}",
                evidence.display()
            ),
        ),
        Ok(Repair::Rebuilt { evidence, losses }) => {
            let lost = if losses.is_empty() {
                "nothing is lost".to_owned()
            } else {
                let shown = losses.iter().map(|Loss { table, what }| format!("{table}: {what}"));
                format!("lost: {}", shown.collect::<Vec<_>>().join("; "))
            };
            let text = format!("copied into a new file; {lost}; the damaged file is {}", evidence.display());
            Finding::warning(code, text)
                .advice("supervisor doctor --replay shows where the event log differs")
        }
        Err(error) => {
            let hint = beyond_repair(root, name, &error);
            failed(code, Failure::from(error).hint(hint))
        }
    }
    .named(name)
}

/// Returns a hint for a board that cannot be repaired, without suggesting the repair again.
fn beyond_repair(root: &Root, name: &BoardName, error: &OpenError) -> String {
    match error {
        // The problem is not in the rows.
        OpenError::OlderFormat { .. }
        | OpenError::NewerSchema { .. }
        | OpenError::OlderSchema { .. }
        | OpenError::Mixed { .. }
        | OpenError::Permission { .. }
        | OpenError::NotAFile { .. } => error.hint().unwrap_or_default(),
        _ => {
            let (file, board) = (root.board(name), option(name));
            format!(
                "restore a backup: `supervisor {board}restore <file>`; without one, try to read the rows: \
                 `supervisor {board}export` or `sqlite3 {0} .recover`; to start over, remove {1}",
                file.display(),
                file.parent().unwrap_or(&file).display()
            )
        }
    }
}

/// Returns the option for a board, if it is not the default one.
fn option(name: &BoardName) -> String {
    if *name == BoardName::default() { String::new() } else { format!("--board {name} ") }
}

/// Reports files that earlier repairs and restores left.
fn former_files(root: &Root, name: &BoardName) -> Option<Finding> {
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
        let detail = format!(
            "{} of earlier repairs, restores or drafts, {}",
            Counted(kept, "file"),
            Counted(bytes, "byte")
        );
        Finding::warning(FindingCode::Leftovers, detail).named(name).advice(format!(
            "look at them in {}, and remove what you do not need",
            path.with_file_name("").display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::RootChoice;

    #[test]
    fn what_cannot_be_repaired_is_told_what_can_help_and_never_the_repair() {
        let choice = RootChoice { root: Some("/srv/sv".into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let path = root.board(&BoardName::default());
        let found = [
            OpenError::Missing { path: path.clone() },
            OpenError::Empty { path: path.clone() },
            OpenError::OlderFormat { path: path.clone() },
            OpenError::NewerSchema { path: path.clone(), found: 99, known: 1 },
            OpenError::OlderSchema { path: path.clone(), found: 1, known: 2 },
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
