//! `upgrade --check`: what a release would adopt of what runs here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::CommandLine;
use super::restore::refuse_worker;
use crate::doctor::Verdict;
use crate::doctor::upgrade::{Adoption, BoardFound, RunFound, adoption};
use crate::exit::Code;
use crate::failure::Failure;
use crate::terminal::{Ink, Screen, printable};

/// Say what another release would adopt
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
It changes nothing, and a daemon may run. It lists the runs that are not over, the
boards and the configuration, and says of each whether the release can go on with
it: whether it reads the version of the run's directory, whether it knows the
schema of the board or migrates it (an earlier release cannot read the board then),
and which files of the configuration it refuses. The release that is asked looks
itself: that of the given program, else of this one.

Exit code: 0 if all of it is adopted, 1 if not.

Examples:
  supervisor upgrade --check
  supervisor upgrade --check ./supervisor-new
  supervisor upgrade --check ./supervisor-new --json")]
pub(super) struct Upgrade {
    /// Look and change nothing; with a program, its release looks
    #[arg(long, value_name = "NEW_BINARY", required = true, num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "an option whose value may be left out")]
    check: Option<Option<PathBuf>>,
}

pub(super) async fn run(line: &CommandLine, upgrade: Upgrade) -> Result<u8, Failure> {
    refuse_worker(&line.client()?)?;
    match upgrade.check.flatten() {
        Some(program) => ask(line, &program),
        None => look(line),
    }
}

fn look(line: &CommandLine) -> Result<u8, Failure> {
    let found = adoption(&line.root()?)?;
    if line.output.json() {
        line.output.value(&found)?;
    } else {
        let mut screen = line.output.screen();
        show(&found, &mut screen);
        line.output.text(&screen.into_text())?;
    }
    Ok(if found.ok { 0 } else { Code::Failed.exit() })
}

/// Has the release of a program look at the same root, and passes on what it says.
fn ask(line: &CommandLine, program: &Path) -> Result<u8, Failure> {
    let root = line.root()?;
    let mut command = Command::new(program);
    command.args(line.global.root.options()).args(["upgrade", "--check"]);
    if line.output.json() {
        command.arg("--json");
    }
    let told = command.output().map_err(|e| {
        Failure::file("execute", program, &e)
            .hint("name the program of the other release, such as ./supervisor-new")
    })?;
    match told.status.code() {
        Some(code @ (0 | 1)) if !told.stdout.is_empty() => {
            line.output.text(&String::from_utf8_lossy(&told.stdout))?;
            Ok(u8::try_from(code).unwrap_or(1))
        }
        _ => {
            let said = String::from_utf8_lossy(&told.stderr);
            let said = said.lines().next().unwrap_or("it said nothing");
            let why = format!(
                "{} does not say what it would adopt of {} ({}): {}",
                program.display(),
                root.dir().display(),
                told.status,
                printable(said)
            );
            Err(Failure::failed(why).hint(
                "it is another program, or a release without `upgrade --check`: try it on a copy of the root that no \
                 daemon serves",
            ))
        }
    }
}

fn show(found: &Adoption, screen: &mut Screen) {
    let Adoption { version, run_directories, runs, boards, configuration, ok } = found;
    screen.line(format!(
        "supervisor {version} reads run directories of version {} to {}",
        run_directories.oldest, run_directories.newest
    ));
    for run in runs {
        let (verdict, text) = of_run(run);
        row(screen, verdict, &text);
    }
    if runs.is_empty() {
        row(screen, Verdict::Ok, "runs: none is open");
    }
    for board in boards {
        let (verdict, text) = of_board(board);
        row(screen, verdict, &text);
        if let Some(hint) = &board.hint {
            screen.hanging("        ", &printable(hint));
        }
    }
    for check in configuration {
        row(screen, check.verdict, &format!("{}: {}", check.subject, check.detail));
        if let Some(hint) = &check.hint {
            screen.hanging("        ", &printable(hint));
        }
    }
    screen.line(if *ok {
        "It adopts all of it."
    } else {
        "It does not adopt all of it: see the errors above."
    });
}

fn row(screen: &mut Screen, verdict: Verdict, text: &str) {
    let (ink, word) = match verdict {
        Verdict::Ok => (Ink::Green, "ok"),
        Verdict::Warning => (Ink::Yellow, "warning"),
        Verdict::Error => (Ink::Red, "error"),
    };
    let label = screen.paint(ink, word);
    screen.hanging(&format!("{label}{}", " ".repeat(8 - word.len())), &printable(text));
}

fn of_run(found: &RunFound) -> (Verdict, String) {
    let RunFound { board, run, task, version, has_ended, adopted, why } = found;
    let task = task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
    let head = format!("run {run}{task} on board {board}");
    if !adopted {
        return (Verdict::Error, format!("{head}: {}", why.as_deref().unwrap_or("it is not adopted")));
    }
    let version = version.map(|version| format!("version {version}, ")).unwrap_or_default();
    let what = if *has_ended { "its end is recorded" } else { "it is taken over" };
    (Verdict::Ok, format!("{head}: {version}{what}"))
}

fn of_board(found: &BoardFound) -> (Verdict, String) {
    let BoardFound { board, schema, known, migrated, why, .. } = found;
    let number = |schema: &Option<i64>| schema.map_or_else(|| "?".to_owned(), |schema| schema.to_string());
    match (why, migrated) {
        (Some(why), _) => (Verdict::Error, format!("board {board}: {why}")),
        (None, true) => (
            Verdict::Warning,
            format!(
                "board {board}: its first start migrates schema {} to {}; make a backup, for an earlier release does not read \
                 it then",
                number(schema),
                number(known)
            ),
        ),
        (None, false) => (Verdict::Ok, format!("board {board}: schema {}", number(schema))),
    }
}
