//! `upgrade --check`: reports which runs, boards and configuration another release could take over.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kernel::{Finding, FindingCode};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::CommandLine;
use super::restore::refuse_worker;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, cut, printable};
use upkeep::doctor::upgrade::{Adoption, BoardFound, RunFound, adoption};

/// Time limit of another program's response. A release reads a few small files for each run.
const WITHIN: Duration = Duration::from_mins(1);
/// Limit on the bytes of a response. Thousands of runs need less.
const LONGEST: u64 = 16 << 20;
/// Limit on the characters shown of another program's standard error.
const SHOWN: usize = 200;

/// Check what another release would take over
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
It changes nothing, and a daemon may run. It lists the runs that are not over, the
boards and the configuration, and says of each whether the release can work with
it: whether it reads the version of the run's directory, whether it knows the
schema of the board or migrates it (an earlier release cannot read the board then),
and which files of the configuration it refuses. The release itself does the
check: that of the given program, else this one.

Exit code: 0 if all of it is adopted, 1 if not or if the program does not answer
within a minute, 3 if there is no such program.

Examples:
  supervisor upgrade --check
  supervisor upgrade --check ./supervisor-new
  supervisor upgrade --check ./supervisor-new --json")]
pub(super) struct Upgrade {
    /// Check and change nothing; with a program, that release checks
    #[arg(long, value_name = "NEW_BINARY", required = true, num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "an option whose value may be left out")]
    check: Option<Option<PathBuf>>,
}

pub(super) async fn run(line: &CommandLine, upgrade: Upgrade) -> Result<u8, Failure> {
    refuse_worker(&line.client()?)?;
    match upgrade.check.flatten() {
        Some(program) => ask(line, &program).await,
        None => report(line, &adoption(&line.root()?)?),
    }
}

fn report(line: &CommandLine, found: &Adoption) -> Result<u8, Failure> {
    if line.output.json() {
        line.output.value(found)?;
    } else {
        let mut screen = line.output.screen();
        show(found, &mut screen);
        line.output.text(&screen.into_text())?;
    }
    Ok(if found.ok { 0 } else { Code::Failed.exit() })
}

/// Makes the release of another program check the same root, and shows its record. Other output and the exit code are
/// ignored, as any program may produce these.
async fn ask(line: &CommandLine, program: &Path) -> Result<u8, Failure> {
    let mut command = Command::new(program);
    command.args(line.global.root.options()).args(["upgrade", "--check", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut asked = command.spawn().map_err(|e| {
        Failure::named_file(
            "execute",
            program,
            &e,
            "the program of the other release, such as ./supervisor-new",
        )
    })?;
    let Ok(output) = tokio::time::timeout(WITHIN, ProgramOutput::read_from(&mut asked)).await else {
        let why = format!("it has not answered within {}", kernel::brief(WITHIN));
        return Err(no_answer(line, program, &why));
    };
    let output = output.map_err(|e| Failure::file("read the answer of", program, &e))?;
    if let Ok(found) = serde_json::from_slice::<Adoption>(&output.stdout) {
        report(line, &found)
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.lines().next().map(|stderr| format!(": {}", cut(&printable(stderr), SHOWN)));
        let why = format!("it prints no record ({}){}", output.status, stderr.unwrap_or_default());
        Err(no_answer(line, program, &why))
    }
}

/// Answer of another program.
struct ProgramOutput {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ProgramOutput {
    /// Reads both streams up to a limit until the program ends. A program that writes more is ended by its closed pipe.
    async fn read_from(asked: &mut Child) -> std::io::Result<Self> {
        let streams = tokio::try_join!(start_of(asked.stdout.take()), start_of(asked.stderr.take()));
        let (stdout, stderr) = streams?;
        Ok(ProgramOutput { status: asked.wait().await?, stdout, stderr })
    }
}

async fn start_of(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(LONGEST).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn no_answer(line: &CommandLine, program: &Path, why: &str) -> Failure {
    let root = line.root().map(|root| root.dir().display().to_string()).unwrap_or_default();
    Failure::failed(format!("{} does not say what it would take over from {root}: {why}", program.display())).hint(
        "it is another program, or a release without `upgrade --check`: try it on a copy of the root that no \
         daemon serves",
    )
}

fn show(found: &Adoption, screen: &mut Screen) {
    let Adoption { version, run_directories, runs, boards, configuration, ok } = found;
    screen.line(format!(
        "supervisor {} reads run directories of version {}",
        printable(version),
        shim::rundir::versions(run_directories.oldest, run_directories.newest)
    ));
    let mut findings: Vec<Finding> = runs.iter().map(of_run).collect();
    if runs.is_empty() {
        findings.push(Finding::ok(FindingCode::Run, "none is open").about("runs"));
    }
    findings.extend(boards.iter().map(of_board));
    screen.findings(&findings);
    screen.findings(configuration);
    screen.line(if *ok {
        "It adopts all of it."
    } else {
        "It does not adopt all of it: see the errors above."
    });
}

fn of_run(found: &RunFound) -> Finding {
    let RunFound { board, run, task, version, has_ended, adopted, why } = found;
    let finding = if *adopted {
        let version = version.map(|version| format!("version {version}, ")).unwrap_or_default();
        let end = if *has_ended { "its end is recorded" } else { "it is taken over" };
        Finding::ok(FindingCode::Run, format!("{version}{end}"))
    } else {
        Finding::error(FindingCode::Run, why.as_deref().unwrap_or("it is not adopted"))
    };
    let task = task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
    finding.about(format!("run {run}{task} on board {board}"))
}

fn of_board(found: &BoardFound) -> Finding {
    let BoardFound { board, schema, known, migrated, why, hint, .. } = found;
    let number = |schema: &Option<i64>| schema.map_or_else(|| "?".to_owned(), |schema| schema.to_string());
    let finding = match (why, migrated) {
        (Some(why), _) => Finding::error(FindingCode::Board, why),
        (None, true) => Finding::warning(
            FindingCode::Board,
            format!(
                "its first start migrates schema {} to {}; make a backup, for an earlier release does not read it then",
                number(schema),
                number(known)
            ),
        ),
        (None, false) => Finding::ok(FindingCode::Board, format!("schema {}", number(schema))),
    };
    let finding = finding.named(board);
    match hint {
        Some(hint) => finding.advice(hint),
        None => finding,
    }
}
