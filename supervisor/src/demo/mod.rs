//! `demo`: shows the supervisor at work on real input, with real processes, in a temporary root.
//!
//! The demo starts its own daemon, makes a private clone of a repository, and plays a pipeline and a fleet of tasks. Each
//! claim is a named check with its expectation and its evidence. The exit code is 0 only if all checks pass.

mod board;
mod directory;
mod fleet;
mod pipeline;
mod probes;
mod processes;
mod progress;
mod report;
mod repository;
mod server;
mod show;
mod tenants;

use kernel::Counted;
use std::path::{Path, PathBuf};

pub(crate) use probes::main as probe_main;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::TaskTracker;

use self::board::DemoBoard;
pub(crate) use self::directory::DemoDirectory;
use self::directory::Owners;
use self::fleet::Fleet;
use self::pipeline::Pipeline;
use self::progress::DemoProgress;
use self::report::{DemoReport, Expectation, ExpectationResult, NextCommand, Story};
use self::repository::RepositorySource;
use self::server::DemoServer;
use crate::output::Output;
use api::blocking;
use base::failure::Failure;
use base::paths::{Root, RootChoice};
use host::cgroup;
use host::examine::examine_host;

/// Demonstrate the supervisor on a real repository with real processes
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The demo uses a temporary root, a daemon of its own and a private clone: the repository is not changed. Everything is
removed at the end unless --keep is given. Outside a repository it creates a small sample.

Exit code: 0 if every expectation is met, else 1; 130 after Ctrl-C.

Examples:
  supervisor demo
  supervisor demo --repo ~/src/project
  supervisor demo --keep
  supervisor demo --json")]
pub(crate) struct Demo {
    /// The git repository to work on; a private clone is used [default: the repository of the current directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Keep the root for inspection
    #[arg(long)]
    keep: bool,
}

/// Exit code of a command that Ctrl-C ended, as in shells.
const INTERRUPTED: u8 = 130;
/// Section of the report with the checks on the demo as a whole.
const WHOLE: Story = Story::Afterwards;
/// Name of the root in the directory of the demo.
const ROOT: &str = "root";

pub(crate) async fn run(demo: Demo, output: Output) -> Result<u8, Failure> {
    let progress = DemoProgress::new(output);
    let mut interrupt = Interrupt::listen()?;
    refuse_weak_host().await?;
    let source = repository::choose(demo.repo.as_deref())?;
    let place = DemoDirectory::make("supervisor-demo-")?;
    let dir = place.dir().canonicalize().map_err(|e| Failure::file("resolve", place.dir(), &e))?;
    // The clone and the tenants' directories are beside the root, because no directory in the root can be a workspace.
    let root = RootChoice { root: Some(dir.join(ROOT)), ..RootChoice::default() }.resolve(|_| None)?;
    base::paths::make_dir(root.dir(), 0o711)?;
    let mut report = DemoReport { base: dir.clone(), ..DemoReport::default() };
    let owners = Owners::of_this_process();
    report.users = users(owners);
    let server = DemoServer::start(&root, owners).await?;
    let mut board = DemoBoard::new(&root);
    let mut played = FinishedStories::default();
    // Blocking work continues when its future is dropped, so its end is awaited below.
    let threads = TaskTracker::new();
    let scene = DemoContext { root: &root, source: &source, owners, daemon: server.pid, threads: &threads };
    let stories = stories(&scene, &mut board, &mut report, &mut played, &progress);
    let ended = tokio::select! {
        // The stories only wait for replies, so their future can be dropped; the processes that they started are
        // stopped below.
        ended = stories => ended,
        name = interrupt.wait() => {
            report.interrupted = Some(name.to_owned());
            Ok(())
        }
    };
    if let (Err(failure), None) = (ended, &report.interrupted) {
        let seen = match &failure.hint {
            Some(hint) => format!("{} ({hint})", failure.message),
            None => failure.message,
        };
        report.check(
            WHOLE,
            "the stories are played to their end",
            "they end",
            seen,
            ExpectationResult::Failed,
        );
    }
    progress.now("cleaning up");
    threads.close();
    threads.wait().await;
    clean_up(server, &board, &root, &mut report).await;
    let marks: Vec<String> =
        played.pipeline.iter().flat_map(|pipeline| &pipeline.worktrees).map(ToString::to_string).collect();
    // The daemon and all workers have ended, so the repository can be compared.
    repository::check(&source, played.after_clone.as_ref(), &marks, &mut report);
    put_away(place, demo.keep, &root, &played, &mut report);
    progress.finish();
    report.took("in all", progress.elapsed());
    report.ok = report.interrupted.is_none() && !report.checks.iter().any(Expectation::failed);
    if output.json() {
        output.value(&report)?;
    } else {
        let mut screen = output.screen();
        report.show(&mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(match (&report.interrupted, report.ok) {
        (Some(_), _) => INTERRUPTED,
        (None, true) => 0,
        (None, false) => 1,
    })
}

/// Policy of every task of the demo, as in a root without a configuration.
const POLICY: &str = "default";

/// Refuses a host that cannot enforce the policy of the demo's workers, because none of them would start.
async fn refuse_weak_host() -> Result<(), Failure> {
    let host = blocking("failed to examine the host", || examine_host(None)).await?;
    let held = policies::Policy::builtin(POLICY).map_or(Ok(()), |policy| policy.check_host(&host.support));
    held.map_err(|why| {
        Failure::failed(format!(
            "this host cannot enforce the policy `{POLICY}`, under which the demo's workers run: {}",
            base::failure::with_causes(&why)
        ))
        .hint("supervisor doctor says what this host lacks, and `supervisor help docs/policies.md` what each policy needs")
    })
}

/// Results of the stories that were played, for the suggested commands.
#[derive(Debug, Default)]
struct FinishedStories {
    pipeline: Option<Pipeline>,
    fleet: Option<Fleet>,
    /// State of the source repository after the clone was made.
    after_clone: Option<workspace::repository::RepositorySnapshot>,
}

struct DemoContext<'a> {
    root: &'a Root,
    source: &'a RepositorySource,
    owners: Owners,
    daemon: i32,
    threads: &'a TaskTracker,
}

async fn stories(
    scene: &DemoContext<'_>,
    board: &mut DemoBoard,
    report: &mut DemoReport,
    played: &mut FinishedStories,
    progress: &DemoProgress,
) -> Result<(), Failure> {
    let DemoContext { root, source, owners, daemon, threads } = *scene;
    progress.done(&format!("a daemon (pid {daemon}) serves {}", root.dir().display()));
    progress.now("cloning the repository");
    let started = progress.elapsed();
    let clone = {
        let (source, to) = (source.clone(), root.dir().with_file_name("clone"));
        let made = threads.spawn_blocking(move || repository::provide(&source, &to, owners));
        made.await.map_err(|e| Failure::failed(format!("the clone was not made: {e}")))??
    };
    let from = match source {
        RepositorySource::Repository { path, .. } => format!("a private clone of {}", path.display()),
        RepositorySource::Sample(why) => format!("{why}: a small sample repository is made"),
    };
    progress.done(&format!("{from} ({} at {:.10})", Counted(clone.files, "file"), clone.commit));
    report.repository = Some(clone.clone());
    if let RepositorySource::Repository { path, .. } = source {
        played.after_clone = Some(repository::snapshot(path)?);
    }
    report.took("clone", progress.elapsed().saturating_sub(started));

    let started = progress.elapsed();
    let pipeline = pipeline::play(board, &clone, owners, report, progress).await?;
    report.sandbox = sandbox(pipeline.sandbox.as_ref());
    played.pipeline = Some(pipeline);
    report.took("pipeline", progress.elapsed().saturating_sub(started));
    progress.done("pipeline: 3 workers read, one merged, one committed a report");

    let started = progress.elapsed();
    played.fleet = Some(fleet::play(board, root, daemon, owners, report, progress).await?);
    report.took("fleet", progress.elapsed().saturating_sub(started));
    progress.done("fleet: every tenant's task has ended");
    Ok(())
}

fn users(owners: Owners) -> String {
    if owners.differ() {
        "each tenant's directory belongs to a user of its own, and so does its worker; none is root"
            .to_owned()
    } else {
        "all workers are this user's: run it as root to give each a user of its own".to_owned()
    }
}

/// Returns a summary of a run's sandbox on one line.
fn sandbox(report: Option<&serde_json::Value>) -> String {
    let report = report.cloned().and_then(|value| serde_json::from_value::<policies::Report>(value).ok());
    let Some(report) = report else { return "not known".to_owned() };
    let enforced: Vec<String> = report
        .layers
        .iter()
        .filter(|layer| layer.state == policies::State::Enforced)
        .map(|layer| layer.layer.to_string())
        .collect();
    format!("{}; enforced: {}", report.summary(), enforced.join(", "))
}

/// Stops the daemon, and makes sure that no process of this root survives.
async fn clean_up(server: DemoServer, board: &DemoBoard, root: &Root, report: &mut DemoReport) {
    let stopped = server.stop(board.client()).await;
    let seen = stopped.map_or_else(|| "it had to be killed".to_owned(), |status| status.to_string());
    let ok = stopped.is_some_and(|status| status.success());
    report.check(WHOLE, "the daemon stops when asked", "exit status: 0", seen, ok);
    let mark = root.dir().display().to_string();
    let census = processes::mentioning(&mark);
    report.survivors += census.found.len();
    report.processes_checked = report.processes_checked.max(census.checked);
    let seen = format!("{} left, {} checked", census.found.len(), Counted(census.checked, "process"));
    report.check(WHOLE, "no process is left", "none left", seen, census.found.is_empty());
    for left in &census.found {
        left.kill();
    }
    // On a host without cgroups, no cgroup can be left.
    if let Ok(group) = cgroup::of_root(root.dir()) {
        let seen =
            if group.exists() { format!("{} is left", group.display()) } else { "none left".to_owned() };
        report.equal(WHOLE, "no cgroup is left", "none left", seen);
    }
}

/// Removes the root or keeps it, and adds suggested commands to the report.
fn put_away(
    place: DemoDirectory,
    keep: bool,
    root: &Root,
    played: &FinishedStories,
    report: &mut DemoReport,
) {
    if keep {
        let dir = place.leave();
        report.further = commands_for_kept_root(&dir, played);
        report.root = Some(dir.join(ROOT));
        return;
    }
    let removed = place.remove().err().map_or_else(|| "removed".to_owned(), |failure| failure.message);
    let there = if root.dir().exists() { "still there" } else { &removed };
    report.equal(WHOLE, "the temporary root is removed", "removed", there);
    let further = |command: &str, why| NextCommand { command: command.to_owned(), why };
    report.further = vec![
        further("supervisor demo --keep", "the same, and the root stays for you to look around"),
        further("supervisor create hello --assignee shell --body 'echo hello'", "your own task"),
        further("supervisor dispatch", "run what is ready, and wait for it"),
        further("supervisor daemon", "run what comes, as it comes"),
        further("supervisor status --watch", "see it running"),
    ];
}

/// Returns commands with which a person can examine a kept root.
fn commands_for_kept_root(dir: &Path, played: &FinishedStories) -> Vec<NextCommand> {
    let (at, base) = (dir.join(ROOT), dir.display());
    let at = at.display();
    let mut further = Vec::new();
    let mut add = |command: String, why| further.push(NextCommand { command, why });
    add(format!("supervisor --root {at} list"), "every task");
    if let Some(fleet) = &played.fleet {
        add(format!("supervisor --root {at} show {}", fleet.asks), "the one with the question");
        add(format!("supervisor --root {at} runs {}", fleet.overruns), "the one that never ended");
        add(format!("supervisor --root {at} show {} --json", fleet.steals), "the thief, and its sandbox");
    }
    if let Some(pipeline) = &played.pipeline {
        let last = &pipeline.last;
        add(format!("supervisor --root {at} context {last}"), "the context of the last stage");
        add(format!("git -c safe.directory={base}/clone -C {base}/clone show task/{last}"), "the report");
    }
    add(format!("less {at}/daemon.log"), "the daemon's log");
    add(format!("supervisor --root {at} daemon"), "serve this board again");
    add(format!("rm -r {base}"), "remove all of it");
    further
}

/// Signals that end a demo early.
struct Interrupt {
    streams: [(&'static str, tokio::signal::unix::Signal); 3],
}

impl Interrupt {
    /// Installs the handlers. These signals then no longer end the process by themselves.
    fn listen() -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::failed(format!("failed to listen to signals: {e}"));
        Ok(Interrupt {
            streams: [
                ("Ctrl-C", signal(SignalKind::interrupt()).map_err(failed)?),
                ("SIGTERM", signal(SignalKind::terminate()).map_err(failed)?),
                ("SIGHUP", signal(SignalKind::hangup()).map_err(failed)?),
            ],
        })
    }

    async fn wait(&mut self) -> &'static str {
        let [(interrupt, first), (terminate, second), (hangup, third)] = &mut self.streams;
        // Cancel-safe: an unread signal stays pending in its stream.
        tokio::select! {
            _ = first.recv() => interrupt,
            _ = second.recv() => terminate,
            _ = third.recv() => hangup,
        }
    }
}
