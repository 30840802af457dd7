//! Runs a program of the operator once: confined by a policy, with bytes on its standard input, a time limit and a
//! cap on its output. At the end, every process that it started is gone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use policies::{Arrangement, BoardAccess, ClosedPaths, Identity, PidNamespace, Policy, RunContext, Support};
use shim::rundir::{RunDir, RunSpec};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use api::blocking;
use base::failure::{Failure, with_causes};
use base::paths::make_dir;
use host::examine::{detect_pid_namespace, detect_support};
use host::home::toolchain_home;
use host::neighbours;
use host::remove::remove_forgotten;
use service::Service;

/// Number of bytes of standard error that are kept.
const ERROR: usize = 4096;
/// Time for a program to end, with all its processes, after it is asked to.
const END: Duration = Duration::from_secs(10);

/// Program to run, and its resources beside the grants of its policy.
#[derive(Debug)]
pub struct Program<'a> {
    /// Program and arguments.
    pub argv: &'a [String],
    /// Policy that confines it.
    pub policy: &'a Policy,
    /// User and group of the program if the daemon runs as root.
    pub identity: Option<Identity>,
    /// Directory of this start alone: created for it and removed after it.
    pub directory_of_start: &'a Path,
    /// Paths that it may read and execute.
    pub execute: Vec<PathBuf>,
    /// Current directory, readable; its home if none.
    pub directory: Option<PathBuf>,
    /// Directory that the policy treats as the workspace; its home if none.
    pub workspace: Option<PathBuf>,
    /// Environment variables in addition to the policy's.
    pub variables: BTreeMap<String, String>,
    pub limit: Duration,
    /// Number of bytes of standard output that are kept.
    pub kept: usize,
    /// Reaction to more output than that.
    pub(crate) flood: ExcessOutput,
}

/// Reaction to more output than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExcessOutput {
    /// The excess is discarded.
    Cut,
    End,
}

/// Result of a program that ended by itself.
#[derive(Debug)]
pub struct ProgramResult {
    /// Exit code, or 128 plus the number of the signal that ended it.
    pub code: u8,
    /// Beginning of its standard output.
    pub output: Vec<u8>,
    /// Beginning of its standard error.
    error: Vec<u8>,
}

/// Reasons why a program did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEnded {
    #[error("the program took longer than {} s and was ended", .0.as_secs())]
    TooLong(Duration),
    #[error("the program wrote more than {0} bytes and was ended")]
    TooMuch(usize),
    #[error("the program was ended: {0}")]
    Ended(String),
    #[error("failed to {0} the program: {1}")]
    Step(&'static str, String),
}

impl ProgramResult {
    /// Returns the last line of its standard error or, failing that, of its standard output.
    pub(crate) fn last_words(&self) -> Option<String> {
        [&self.error, &self.output].into_iter().find_map(|text| {
            let text = String::from_utf8_lossy(text);
            let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some(last.chars().filter(|c| !c.is_control()).take(200).collect())
        })
    }

    /// Returns a description of the failure; none if the exit code is 0.
    pub fn failure(&self) -> Option<String> {
        if self.code == 0 {
            return None;
        }
        let last_words = self.last_words().map(|words| format!(": {words}")).unwrap_or_default();
        Some(match self.code.checked_sub(128) {
            Some(signal @ 1..) => format!("the program was ended by signal {signal}{last_words}"),
            Some(0) | None => format!("the program ended with code {}{last_words}", self.code),
        })
    }
}

/// Directories of one start.
struct ProgramDirectories {
    home: PathBuf,
    tmp: PathBuf,
    run: PathBuf,
}

/// A start that is prepared. Dropping it removes its directories.
pub struct PreparedProgram<'a> {
    program: Program<'a>,
    run: PathBuf,
    is_cleared: bool,
}

impl std::fmt::Debug for PreparedProgram<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("place", &self.program.directory_of_start).finish_non_exhaustive()
    }
}

impl Drop for PreparedProgram<'_> {
    fn drop(&mut self) {
        // Dropped without a run. Its files may be many, so a thread removes them and no caller waits.
        if !self.is_cleared {
            let place = self.program.directory_of_start.to_owned();
            drop(
                std::thread::Builder::new()
                    .name("clear".to_owned())
                    .spawn(move || note(&place, clear(&place))),
            );
        }
    }
}

/// Returns the layers that this host can enforce and its PID namespace support. Both are constant during the life of
/// the process.
async fn host() -> Result<&'static (Support, Option<PidNamespace>), Failure> {
    static HOST: OnceCell<(Support, Option<PidNamespace>)> = OnceCell::const_new();
    HOST.get_or_try_init(|| async {
        let support = detect_support().await?;
        let namespace = detect_pid_namespace(&support).await.ok();
        Ok((support, namespace))
    })
    .await
}

impl<'a> Program<'a> {
    /// Makes the directories of the start, and writes its spec.
    pub async fn prepare(self, service: &Service) -> Result<PreparedProgram<'a>, Failure> {
        let place = self.directory_of_start.to_owned();
        blocking("the place of the program was not cleared", move || clear(&place)).await??;
        let (support, namespace) = host().await?;
        let places = self.places()?;
        // From here on `Drop` removes the directories on every path.
        let prepared = PreparedProgram { program: self, run: places.run.clone(), is_cleared: false };
        let program = &prepared.program;
        let (place, root, config) = (program.directory_of_start, service.root(), service.config());
        let namespace =
            namespace.filter(|own| *own == PidNamespace::Privileged || program.policy.has_view(support));
        let workspace = program.workspace.clone().unwrap_or_else(|| places.home.clone());
        let directories = [Some(place.to_owned()), program.directory.clone(), program.workspace.clone()];
        let run_context = RunContext {
            workspace,
            home: places.home.clone(),
            tmp: places.tmp.clone(),
            read: Vec::new(),
            execute: program.execute.clone(),
            write: Vec::new(),
            arrangement: Arrangement::default(),
            identity: program.identity,
            work_cgroup: None,
            pid_namespace: namespace,
            board: BoardAccess::None,
            closed: ClosedPaths {
                places: neighbours::closed(root, &config.worker)?,
                own: directories.into_iter().flatten().collect(),
                tasks: Vec::new(),
            },
            toolchain_home: toolchain_home(program.policy, program.identity, false),
            proxy: None,
            credentials: root.secret_stores().credentials,
            secrets: root.secret_stores().directory,
            // Filled in by the process that attends the command, which alone knows its pid.
            parent: 0,
        };
        let spec = program.spec(run_context, support.clone());
        RunDir::create(&places.run, &spec)
            .map_err(|e| Failure::failed(format!("failed to {}", with_causes(&e))))?;
        Ok(prepared)
    }

    fn places(&self) -> Result<ProgramDirectories, Failure> {
        let dir = self.directory_of_start;
        let places =
            ProgramDirectories { home: dir.join("home"), tmp: dir.join("tmp"), run: dir.join("run") };
        std::fs::create_dir_all(dir).map_err(|e| Failure::file("make", dir, &e))?;
        for parent in [dir.parent(), Some(dir)].into_iter().flatten() {
            make_dir(parent, 0o711)?;
        }
        for path in [&places.home, &places.tmp] {
            make_dir(path, 0o700)?;
            give(path, self.identity)?;
        }
        Ok(places)
    }

    fn spec(&self, run_context: RunContext, support: Support) -> RunSpec {
        let programs: Vec<PathBuf> = self.argv.first().map(PathBuf::from).into_iter().collect();
        let env = environment(self.policy, &run_context, &programs, self.variables.clone());
        let cwd = self.directory.clone().unwrap_or_else(|| run_context.home.clone());
        RunSpec::of_program(self.argv.to_vec(), env, cwd, self.policy.clone(), run_context, support)
    }
}

/// Returns the environment of a program: the variables that its policy passes on, `set`, and its HOME and TMPDIR.
pub fn environment(
    policy: &Policy,
    run_context: &RunContext,
    programs: &[PathBuf],
    mut set: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    set.insert("HOME".to_owned(), run_context.home.display().to_string());
    set.insert("TMPDIR".to_owned(), run_context.tmp.display().to_string());
    let env = policy.environment(|name| std::env::var_os(name), run_context, programs, &BTreeMap::new(), set);
    env.into_iter().filter_map(|(name, value)| Some((name, value.into_string().ok()?))).collect()
}

fn note(place: &Path, cleared: Result<(), Failure>) {
    if let Err(error) = cleared {
        tracing::warn!(dir = %place.display(), %error, "program_home_not_removed");
    }
}

/// Removes the directories of a start. Blocking: the program may have left many files.
fn clear(place: &Path) -> Result<(), Failure> {
    let run = place.join("run");
    match std::fs::remove_dir_all(&run) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Failure::file("remove", &run, &e)),
        Ok(()) | Err(_) => {}
    }
    remove_forgotten(place)
        .map_err(|stays| Failure::failed(format!("failed to remove {}: {stays}", place.display())))
}

/// Makes the user of a program the owner of a directory.
pub fn give(path: &Path, identity: Option<Identity>) -> Result<(), Failure> {
    let Some(identity) = identity else { return Ok(()) };
    std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid))
        .map_err(|e| Failure::file("give away", path, &e))
}

/// Process that attends a program. Dropping it sends SIGTERM, on which it ends its program.
struct Attended(Child);

impl Attended {
    fn ask_to_end(&self) {
        if let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) {
            let pid = nix::unistd::Pid::from_raw(pid);
            // An error means that the process has ended already.
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).ok();
        }
    }

    /// Ends the program with all its processes: the attending process does so on SIGTERM.
    async fn end(&mut self) {
        self.ask_to_end();
        if tokio::time::timeout(END, self.0.wait()).await.is_err() {
            self.0.kill().await.ok();
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.ask_to_end();
    }
}

impl PreparedProgram<'_> {
    /// Runs the program until it ends.
    pub async fn run(self, input: &[u8]) -> Result<ProgramResult, NotEnded> {
        self.run_unless(input, std::future::pending()).await
    }

    /// Runs the program until it ends, or until `ends` yields a reason to end it.
    pub(crate) async fn run_unless(
        mut self,
        input: &[u8],
        ends: impl Future<Output = String>,
    ) -> Result<ProgramResult, NotEnded> {
        let ended = self.attend(input, ends).await;
        let place = self.program.directory_of_start.to_owned();
        let cleared = blocking("the place of the program was not cleared", move || clear(&place)).await;
        note(self.program.directory_of_start, cleared.and_then(|cleared| cleared));
        self.is_cleared = true;
        ended
    }

    async fn attend(
        &self,
        input: &[u8],
        ends: impl Future<Output = String>,
    ) -> Result<ProgramResult, NotEnded> {
        let failed = |step| move |e: io::Error| NotEnded::Step(step, e.to_string());
        let child = Command::new("/proc/self/exe")
            .arg0("supervisor-attend")
            .arg("__attend")
            .arg(&self.run)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed("start"))?;
        let mut attended = Attended(child);
        let limit = self.program.limit;
        let ended = tokio::select! {
            // The branch that loses is dropped; the output read so far goes with it.
            ended = tokio::time::timeout(limit, self.converse(&mut attended.0, input)) => {
                ended.unwrap_or(Err(NotEnded::TooLong(limit)))
            }
            why = ends => Err(NotEnded::Ended(why)),
        };
        if ended.is_err() {
            attended.end().await;
        }
        ended
    }

    /// Writes the input, and reads the output until the program has ended.
    async fn converse(&self, child: &mut Child, input: &[u8]) -> Result<ProgramResult, NotEnded> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let give = async {
            if let Some(mut stdin) = stdin {
                // Write errors are ignored: a program may succeed without reading its input, and its exit code
                // decides.
                stdin.write_all(input).await.ok();
                stdin.shutdown().await.ok();
            }
            Ok(())
        };
        let Program { kept, flood, .. } = self.program;
        let read = |e: io::Error| NotEnded::Step("read the output of", e.to_string());
        let output = async {
            let text = beginning(stdout, kept, flood).await.map_err(read)?;
            text.ok_or(NotEnded::TooMuch(kept))
        };
        let error = async { beginning(stderr, ERROR, ExcessOutput::Cut).await.map_err(read) };
        let ((), output, error) = tokio::try_join!(give, output, error)?;
        let status = child.wait().await.map_err(|e| NotEnded::Step("wait for", e.to_string()))?;
        // Without a code, a signal ended the attending process itself.
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Ok(ProgramResult { code, output, error: error.unwrap_or_default() })
    }
}

/// Reads the output to its end and returns the first `most` bytes. None if it is longer and `flood` forbids that.
async fn beginning(
    from: Option<impl AsyncRead + Unpin>,
    most: usize,
    flood: ExcessOutput,
) -> io::Result<Option<Vec<u8>>> {
    let Some(mut from) = from else { return Ok(Some(Vec::new())) };
    let mut text = Vec::new();
    (&mut from).take(most as u64).read_to_end(&mut text).await?;
    if text.len() < most {
        return Ok(Some(text));
    }
    match flood {
        ExcessOutput::Cut => {
            tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
            Ok(Some(text))
        }
        ExcessOutput::End => {
            let more = from.read(&mut [0]).await? > 0;
            Ok((!more).then_some(text))
        }
    }
}
