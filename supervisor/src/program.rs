//! A program of the operator's that is run once: confined by a policy, with bytes on its standard input, for a time, with little of its
//! output kept. Nothing that it has started is left when it is over.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use policies::{Arrangement, BoardAccess, Closed, Identity, PidNamespace, Policy, Support, Surroundings};
use shim::rundir::{RunDir, RunSpec};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use crate::api::blocking;
use crate::failure::{Failure, with_causes};
use crate::host::examine::{detect_pid_namespace, detect_support};
use crate::host::home::toolchain_home;
use crate::host::neighbours;
use crate::host::remove::remove_forgotten;
use crate::paths::make_dir;
use crate::service::Service;

/// How much of the standard error is kept.
const ERROR: usize = 4096;
/// How long a program that is asked to end has for it, with all that it has started.
const END: Duration = Duration::from_secs(10);

/// What is run, and what it may reach beside what its policy grants.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// The program and its arguments.
    pub(crate) argv: &'a [String],
    /// What it may touch.
    pub(crate) policy: &'a Policy,
    /// The user that it has where the daemon is root's.
    pub(crate) identity: Option<Identity>,
    /// A directory of its own, which is made anew for this one start and removed after it.
    pub(crate) place: &'a Path,
    /// What it may read and execute.
    pub(crate) execute: Vec<PathBuf>,
    /// Where it works: its current directory, which it may read.
    pub(crate) directory: Option<PathBuf>,
    /// What its policy calls the workspace; its home where there is none.
    pub(crate) workspace: Option<PathBuf>,
    /// Variables beside those of its policy.
    pub(crate) variables: BTreeMap<String, String>,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// How many bytes of its standard output are kept.
    pub(crate) kept: usize,
    /// What becomes of one that writes more.
    pub(crate) flood: Flood,
}

/// What becomes of a program that writes more than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// The rest is thrown away.
    Cut,
    End,
}

/// How a program has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code; 128 and the number of the signal that ended it.
    pub(crate) code: u8,
    /// The beginning of its standard output.
    pub(crate) output: Vec<u8>,
    /// The beginning of its standard error.
    error: Vec<u8>,
}

/// Why a program came to no end of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the program took longer than {} s and was ended", .0.as_secs())]
    TooLong(Duration),
    #[error("the program wrote more than {0} bytes and was ended")]
    TooMuch(usize),
    #[error("the program was ended: {0}")]
    Ended(String),
    #[error("failed to {0} the program: {1}")]
    Step(&'static str, String),
}

impl Ended {
    /// The last line that it wrote, its standard error before its standard output.
    pub(crate) fn last_words(&self) -> Option<String> {
        [&self.error, &self.output].into_iter().find_map(|text| {
            let text = String::from_utf8_lossy(text);
            let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some(last.chars().filter(|c| !c.is_control()).take(200).collect())
        })
    }

    /// How it ended, where that says that it failed.
    pub(crate) fn failure(&self) -> Option<String> {
        if self.code == 0 {
            return None;
        }
        let said = self.last_words().map(|words| format!(": {words}")).unwrap_or_default();
        Some(match self.code.checked_sub(128) {
            Some(signal @ 1..) => format!("the program was ended by signal {signal}{said}"),
            Some(0) | None => format!("the program ended with code {}{said}", self.code),
        })
    }
}

/// The directories of one start.
struct Places {
    home: PathBuf,
    tmp: PathBuf,
    run: PathBuf,
}

/// A start that is prepared. What it has on the host goes when it is dropped.
pub(crate) struct Prepared<'a> {
    program: Program<'a>,
    run: PathBuf,
    is_cleared: bool,
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("place", &self.program.place).finish_non_exhaustive()
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // One that was given up: what it leaves may be large, and nobody waits for it.
        if !self.is_cleared {
            let place = self.program.place.to_owned();
            drop(
                std::thread::Builder::new()
                    .name("clear".to_owned())
                    .spawn(move || note(&place, clear(&place))),
            );
        }
    }
}

/// What this host can enforce, and how runs without a cgroup are tied together on it. It stays the same as long as the process lives.
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
    /// Makes its directories, and writes down how it is confined.
    pub(crate) async fn prepare(self, service: &Service) -> Result<Prepared<'a>, Failure> {
        let place = self.place.to_owned();
        blocking("the place of the program was not cleared", move || clear(&place)).await??;
        let (support, namespace) = host().await?;
        let places = self.places()?;
        // From here on, what was made is removed whatever happens.
        let prepared = Prepared { program: self, run: places.run.clone(), is_cleared: false };
        let program = &prepared.program;
        let (place, root, config) = (program.place, service.root(), service.config());
        let namespace =
            namespace.filter(|own| *own == PidNamespace::Privileged || program.policy.has_view(support));
        let workspace = program.workspace.clone().unwrap_or_else(|| places.home.clone());
        let own = [Some(place.to_owned()), program.directory.clone(), program.workspace.clone()];
        let surroundings = Surroundings {
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
            closed: Closed {
                places: neighbours::closed(root, &config.worker)?,
                own: own.into_iter().flatten().collect(),
                tasks: Vec::new(),
            },
            toolchain_home: toolchain_home(program.policy, program.identity, false),
            proxy: None,
            credentials: root.secret_stores().credentials,
            secrets: root.secret_stores().directory,
            // Known to the process that attends the command alone, which fills it in.
            parent: 0,
        };
        let spec = program.spec(surroundings, support.clone());
        RunDir::create(&places.run, &spec)
            .map_err(|e| Failure::failed(format!("failed to {}", with_causes(&e))))?;
        Ok(prepared)
    }

    fn places(&self) -> Result<Places, Failure> {
        let dir = self.place;
        let places = Places { home: dir.join("home"), tmp: dir.join("tmp"), run: dir.join("run") };
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

    fn spec(&self, surroundings: Surroundings, support: Support) -> RunSpec {
        let programs: Vec<PathBuf> = self.argv.first().map(PathBuf::from).into_iter().collect();
        let env = environment(self.policy, &surroundings, &programs, self.variables.clone());
        let cwd = self.directory.clone().unwrap_or_else(|| surroundings.home.clone());
        RunSpec::of_program(self.argv.to_vec(), env, cwd, self.policy.clone(), surroundings, support)
    }
}

/// The environment of a program under a policy: what that passes on, with `set`, and with the home and the directory for temporary files
/// that the program has.
pub(crate) fn environment(
    policy: &Policy,
    surroundings: &Surroundings,
    programs: &[PathBuf],
    mut set: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    set.insert("HOME".to_owned(), surroundings.home.display().to_string());
    set.insert("TMPDIR".to_owned(), surroundings.tmp.display().to_string());
    let env =
        policy.environment(|name| std::env::var_os(name), surroundings, programs, &BTreeMap::new(), set);
    env.into_iter().filter_map(|(name, value)| Some((name, value.into_string().ok()?))).collect()
}

fn note(place: &Path, cleared: Result<(), Failure>) {
    if let Err(error) = cleared {
        tracing::warn!(dir = %place.display(), %error, "program_home_not_removed");
    }
}

/// Removes what a start has made. What the program has left there may be large: blocking.
fn clear(place: &Path) -> Result<(), Failure> {
    let run = place.join("run");
    match std::fs::remove_dir_all(&run) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Failure::file("remove", &run, &e)),
        Ok(()) | Err(_) => {}
    }
    remove_forgotten(place)
        .map_err(|stays| Failure::failed(format!("failed to remove {}: {stays}", place.display())))
}

/// Gives a directory to the user of a program.
pub(crate) fn give(path: &Path, identity: Option<Identity>) -> Result<(), Failure> {
    let Some(identity) = identity else { return Ok(()) };
    std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid))
        .map_err(|e| Failure::file("give away", path, &e))
}

/// The process that attends a program. One that is given up is asked to end, and ends what it attends.
struct Attended(Child);

impl Attended {
    fn ask_to_end(&self) {
        if let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) {
            let pid = nix::unistd::Pid::from_raw(pid);
            // It has ended by itself otherwise.
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).ok();
        }
    }

    /// Ends the program with all that it has started: who attends it does that when it is asked to end.
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

impl Prepared<'_> {
    /// Runs it until it ends.
    pub(crate) async fn run(self, input: &[u8]) -> Result<Ended, Failed> {
        self.run_unless(input, std::future::pending()).await
    }

    /// The same, unless something comes that ends it before, with the reason.
    pub(crate) async fn run_unless(
        mut self,
        input: &[u8],
        ends: impl Future<Output = String>,
    ) -> Result<Ended, Failed> {
        let ended = self.attend(input, ends).await;
        let place = self.program.place.to_owned();
        let cleared = blocking("the place of the program was not cleared", move || clear(&place)).await;
        note(self.program.place, cleared.and_then(|cleared| cleared));
        self.is_cleared = true;
        ended
    }

    async fn attend(&self, input: &[u8], ends: impl Future<Output = String>) -> Result<Ended, Failed> {
        let failed = |step| move |e: io::Error| Failed::Step(step, e.to_string());
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
            // What it says goes with it, whichever ends it.
            ended = tokio::time::timeout(limit, self.converse(&mut attended.0, input)) => {
                ended.unwrap_or(Err(Failed::TooLong(limit)))
            }
            why = ends => Err(Failed::Ended(why)),
        };
        if ended.is_err() {
            attended.end().await;
        }
        ended
    }

    /// Writes its input, and reads what it writes until it has ended.
    async fn converse(&self, child: &mut Child, input: &[u8]) -> Result<Ended, Failed> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let give = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input may do its work all the same: its exit code says it.
                stdin.write_all(input).await.ok();
                stdin.shutdown().await.ok();
            }
            Ok(())
        };
        let Program { kept, flood, .. } = self.program;
        let read = |e: io::Error| Failed::Step("read the output of", e.to_string());
        let output = async {
            let text = beginning(stdout, kept, flood).await.map_err(read)?;
            text.ok_or(Failed::TooMuch(kept))
        };
        let error = async { beginning(stderr, ERROR, Flood::Cut).await.map_err(read) };
        let ((), output, error) = tokio::try_join!(give, output, error)?;
        let status = child.wait().await.map_err(|e| Failed::Step("wait for", e.to_string()))?;
        // Without a code the process that attends it was ended itself.
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Ok(Ended { code, output, error: error.unwrap_or_default() })
    }
}

/// Reads the beginning of what a program writes, to its end. None where it wrote more, and that is no good.
async fn beginning(
    from: Option<impl AsyncRead + Unpin>,
    most: usize,
    flood: Flood,
) -> io::Result<Option<Vec<u8>>> {
    let Some(mut from) = from else { return Ok(Some(Vec::new())) };
    let mut text = Vec::new();
    (&mut from).take(most as u64).read_to_end(&mut text).await?;
    if text.len() < most {
        return Ok(Some(text));
    }
    match flood {
        Flood::Cut => {
            tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
            Ok(Some(text))
        }
        Flood::End => {
            let more = from.read(&mut [0]).await? > 0;
            Ok((!more).then_some(text))
        }
    }
}
