//! Login of an assignee: runs the login command of a lane's program at a person's terminal, in a home of its own. The
//! resulting files are kept for the assignee, and each run gets a copy.
//!
//! The command is confined like a run of the assignee: under its policy, with the hosts of its lane, without secrets
//! and brokers. The command has no access to a board. A root has at most one login in progress.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kernel::{BoardId, Profile, Tenant};
use policies::{Additions, Arrangement, BoardAccess, ClosedPaths, Identity, Policy, RunContext};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use shim::lock_file::LockFile;
use shim::rundir::{RunDir, RunSpec};
use tokio::process::Command;

use base::exit::Code;
use base::failure::Failure;
use base::paths::{Root, make_dir};
use delivery::program::environment;
use host::examine::{detect_pid_namespace, detect_support};
use host::home::{program_home, toolchain_home};
use host::neighbours;
use host::remove::remove_forgotten;
use host::retained::{self, FileAfterRun, RetainedHome};
use host::uids::Uids;
use net::proxy::CommandProxy;
use setup::config::Config;
use setup::lanes::{Lane, LoginCommand, search_path};
use setup::roster::{CannotRun, Roster};

#[derive(Debug)]
pub(crate) struct Login<'a> {
    pub(crate) root: &'a Root,
    pub(crate) assignee: &'a Profile,
    pub(crate) tenant: Option<&'a Tenant>,
}

/// Result of a login.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    /// Files that are kept.
    pub(crate) kept: Vec<PathBuf>,
    /// Files that could not be kept, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// Account of the assignee, for rate limits.
    pub(crate) account: Option<String>,
}

/// Private places of a login.
struct LoginDirectories {
    dir: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
}

/// Means of the command of a login.
struct LoginContext<'a> {
    root: &'a Root,
    config: &'a Config,
    lane: &'a Lane,
    policy: Policy,
    places: &'a LoginDirectories,
    identity: Option<Identity>,
    support: policies::Support,
}

impl Login<'_> {
    /// Performs the login.
    pub(crate) async fn run(self) -> Result<LoggedIn, Failure> {
        let root = self.root;
        root.create()?;
        let root = &root.canonical()?;
        let config = Config::load(root)?;
        let support = detect_support().await?;
        let roster = Roster::load(root).on(&support);
        let resolved = roster.resolve(self.assignee, None, &config).map_err(CannotRun::of_what_was_named)?;
        let lane = resolved.lane;
        if !lane.has_login() {
            return Err(no_login(lane, &resolved.lane_name, root));
        }
        let account = resolved.account.map(str::to_owned);
        let policy = policy_of(resolved.policy, lane);
        let lock = LockFile::try_lock(&root.login_lock());
        let Some(_lock) = lock.map_err(|e| Failure::file("lock", &root.login_lock(), &e))? else {
            return Err(Failure::new(Code::TryAgain, "another login is under way on this root")
                .hint("wait for its end, or end it with Ctrl-C at its terminal"));
        };
        let identity = identity(root, &config)?;
        let places = LoginDirectories::make(root, identity)?;
        let means = LoginContext { root, config: &config, lane, policy, places: &places, identity, support };
        let ended = self.execute(means).await;
        let outcome = ended.and_then(|()| self.keep(lane, &places, identity));
        let removed = places.remove();
        let (kept, left_out) = outcome?;
        removed?;
        Ok(LoggedIn { kept, left_out, account })
    }

    /// Runs the command at the terminal. An exit code other than 0 is an error.
    async fn execute(&self, means: LoginContext<'_>) -> Result<(), Failure> {
        let LoginContext { root, config, lane, policy, places, identity, support } = means;
        let Some(command) = lane.login(&places.home, &places.tmp, &places.home) else { return Ok(()) };
        let shown = command.argv.join(" ");
        let run = root.login_run();
        // A login that was killed may have left its run directory.
        remove_run(&run)?;
        let proxy = policy.has_proxy().then(|| run.join("keeper"));
        let namespace = detect_pid_namespace(&support).await.ok();
        let namespace = namespace.filter(|namespace| {
            *namespace == policies::PidNamespace::Privileged || policy.has_view(&support)
        });
        let run_context = RunContext {
            workspace: places.home.clone(),
            home: places.home.clone(),
            tmp: places.tmp.clone(),
            read: Vec::new(),
            execute: lane.install_under(&policy, program_home(identity, self.tenant.is_some()).as_deref()),
            write: Vec::new(),
            arrangement: Arrangement::default(),
            identity,
            work_cgroup: None,
            pid_namespace: namespace,
            board: BoardAccess::None,
            closed: ClosedPaths {
                places: neighbours::closed(root, &config.worker)?,
                own: vec![places.dir.clone()],
                tasks: Vec::new(),
            },
            toolchain_home: toolchain_home(&policy, identity, self.tenant.is_some()),
            proxy: proxy.clone(),
            credentials: None,
            secrets: None,
            // Only the process that attends the command knows its pid, and fills it in.
            parent: 0,
        };
        let spec = spec(command, &policy, run_context, support);
        RunDir::create(&run, &spec)
            .map_err(|e| Failure::failed(format!("failed to {}", base::failure::with_causes(&e))))?;
        let note = |denied: &kernel::Denied| base::terminal::complain(&denied.text);
        let _proxy = proxy.map(|keeper| CommandProxy::serve(&policy, keeper, note)).transpose()?;
        let code = attended(&run).await;
        let removed = remove_run(&run);
        let code = code?;
        removed?;
        match code {
            Some(0) => Ok(()),
            Some(code) if code == i32::from(shim::NOT_EXECUTED) => {
                Err(Failure::failed(format!("`{shown}` was not executed; nothing is kept"))
                    .hint("`supervisor lane check` looks for what its lane needs"))
            }
            code => {
                let how = code.map_or("was ended".to_owned(), |code| format!("ended with code {code}"));
                Err(Failure::failed(format!("`{shown}` {how}; nothing is kept"))
                    .hint(format!("try again: supervisor login {}", self.assignee)))
            }
        }
    }

    /// Keeps the files of the login.
    fn keep(
        &self,
        lane: &Lane,
        places: &LoginDirectories,
        identity: Option<Identity>,
    ) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
        let mut taken = BTreeMap::new();
        let mut left_out = Vec::new();
        for path in lane.kept_files() {
            match retained::copy_out(&places.home, path, identity)? {
                FileAfterRun::File(bytes) => drop(taken.insert(path.clone(), bytes)),
                // Most programs have only some of them.
                FileAfterRun::Nothing => {}
                FileAfterRun::Unfit(why) => left_out.push(format!("{} is not kept: {why}", path.display())),
            }
        }
        if taken.is_empty() {
            let looked: Vec<String> =
                lane.kept_files().iter().map(|path| path.display().to_string()).collect();
            return Err(Failure::failed(format!(
                "the program ended well and has left no login: {} could not be read in its home",
                looked.join(", ")
            ))
            .hint("`keep` in the file of the lane names the files of a login"));
        }
        let home = RetainedHome::for_assignee(self.root, self.assignee, self.tenant);
        for (path, bytes) in &taken {
            home.write(path, bytes)?;
        }
        Ok((taken.into_keys().collect(), left_out))
    }
}

/// Returns the policy of a login: the assignee's, without secrets. The login reaches hosts with a broker directly.
fn policy_of(policy: &Policy, lane: &Lane) -> Policy {
    let hosts = Additions { hosts: lane.additions.hosts.clone(), ..Additions::default() };
    let mut policy = policy.with(&hosts, &policies::SecretStores::default());
    policy.broker.clear();
    policy.env.secret.clear();
    policy
}

fn no_login(lane: &Lane, name: &Profile, root: &Root) -> Failure {
    let failure = Failure::usage(format!("the lane `{name}` has no login"));
    let keys = lane.additions.brokers.iter().map(|broker| broker.secret.source_name(&root.secret_stores()));
    match keys.into_iter().next() {
        Some(place) => failure.hint(format!("its program asks with a key: write that into {place}")),
        None => failure.hint(format!(
            "name the command and the files of a login in {}: login = [\"PROGRAM\", \"login\"], keep = [\".x/auth.json\"]",
            root.lanes_dir().join(format!("{name}.toml")).display()
        )),
    }
}

/// Returns the user of the command. Under root it is a user that no worker has, from a range of its own.
fn identity(root: &Root, config: &Config) -> Result<Option<Identity>, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(None);
    }
    let range = Uids::new(root).range(BoardId(uuid::Uuid::nil()), &config.worker)?;
    Ok(Some(Identity { uid: range.first, gid: range.first }))
}

fn spec(
    command: LoginCommand,
    policy: &Policy,
    run_context: RunContext,
    support: policies::Support,
) -> RunSpec {
    let mut set = command.env;
    for name in ["TERM", "COLORTERM"] {
        if let Some(value) = base::environment::text(name) {
            set.insert(name.to_owned(), value);
        }
    }
    let programs: Vec<PathBuf> = search_path(&run_context.execute).collect();
    let env = environment(policy, &run_context, &programs, set);
    let home = run_context.home.clone();
    RunSpec::of_program(command.argv, env, home, policy.clone(), run_context, support)
}

/// Runs the command of a run directory at this terminal. Returns its exit code, if it has one.
async fn attended(run: &Path) -> Result<Option<i32>, Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("failed to start the login: {e}"));
    // Ctrl-C ends the command; this process survives to remove its files.
    let mut interrupt =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map_err(failed)?;
    let _modes = TerminalModes::saved();
    let mut child = Command::new("/proc/self/exe")
        .arg0("supervisor-attend")
        .arg("__attend")
        .arg(run)
        .env_clear()
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(failed)?;
    loop {
        tokio::select! {
            // Cancel-safe: the child goes on, and is awaited again.
            ended = child.wait() => return Ok(ended.map_err(failed)?.code()),
            // The terminal has sent it to the child as well.
            _ = interrupt.recv() => {}
        }
    }
}

/// Saved modes of the terminal. A command that was ended may have changed them. Unread input is discarded, because the
/// shell would run it as commands.
struct TerminalModes(Option<Termios>);

impl TerminalModes {
    fn saved() -> Self {
        TerminalModes(tcgetattr(rustix::stdio::stdin()).ok())
    }
}

impl Drop for TerminalModes {
    fn drop(&mut self) {
        let terminal = rustix::stdio::stdin();
        match &self.0 {
            Some(modes) => tcsetattr(terminal, OptionalActions::Flush, modes).ok(),
            None => tcflush(terminal, QueueSelector::IFlush).ok(),
        };
    }
}

impl LoginDirectories {
    /// Makes the places, which belong to the command alone. Removes the remains of an earlier login that was killed.
    fn make(root: &Root, identity: Option<Identity>) -> Result<Self, Failure> {
        let dir = root.login_home();
        let places = LoginDirectories { home: dir.join("home"), tmp: dir.join("tmp"), dir };
        if places.dir.symlink_metadata().is_ok() {
            places.remove()?;
        }
        make_dir(&places.dir, 0o711)?;
        for path in [&places.home, &places.tmp] {
            make_dir(path, 0o700)?;
            if let Some(identity) = identity {
                std::os::unix::fs::lchown(path, Some(identity.uid), Some(identity.gid))
                    .map_err(|e| Failure::file("give away", path, &e))?;
            }
        }
        Ok(places)
    }

    fn remove(&self) -> Result<(), Failure> {
        remove_forgotten(&self.dir).map_err(|stays| {
            Failure::failed(format!("failed to remove {}: {stays}", self.dir.display()))
                .hint("it may have a login: remove it by hand")
        })
    }
}

fn remove_run(run: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(run) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::file("remove", run, &e)),
        _ => Ok(()),
    }
}
