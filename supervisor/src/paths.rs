//! Where everything of one root lives, and who may reach it.

mod automation;
mod listing;
pub(crate) mod private_file;

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use kernel::{BoardId, BoardName, RunId, TaskId};

use crate::failure::Failure;

/// The longest path that fits a `sockaddr_un` with its terminating zero (`unix(7)`).
const SOCKET_PATH_LIMIT: usize = 107;

/// What the socket in the directory of a run's door is called.
pub(crate) const DOOR: &str = "sock";
/// Runs are numbered from 1 on each board: a path is refused that is too long for a number with as many digits.
const DIGITS: RunId = RunId(999_999_999);

/// One root: the directory tree of one daemon, its boards and its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    state: PathBuf,
    runtime: PathBuf,
    config: PathBuf,
}

/// How the root was chosen, before any directory is touched.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RootChoice {
    /// Keep everything (board, sockets, logs, workspaces) under this directory
    #[arg(long, global = true, value_name = "DIR", env = "SUPERVISOR_ROOT", help_heading = "Global options")]
    pub(crate) root: Option<PathBuf>,
    /// Use the host's service (/var/lib/supervisor); the default for root
    #[arg(long, global = true, conflicts_with = "user", help_heading = "Global options")]
    pub(crate) system: bool,
    /// Use this user's own service (XDG directories); the default for everyone else
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) user: bool,
}

/// Two options of one command line name two roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the argument '--root <DIR>' cannot be used with '{0}'")]
pub(crate) struct TwoRoots(&'static str);

impl RootChoice {
    /// The same choice without the root of the environment, where an option names another one.
    pub(crate) fn of_options_first(self, source: Option<ValueSource>) -> Result<Self, TwoRoots> {
        let option = if self.system { "--system" } else { "--user" };
        match (self.system || self.user, source) {
            (true, Some(ValueSource::CommandLine)) => Err(TwoRoots(option)),
            (true, _) => Ok(RootChoice { root: None, ..self }),
            (false, _) => Ok(self),
        }
    }

    /// The root that was asked for: `--root`, `--system` or `--user`, then `SUPERVISOR_ROOT`, then by uid.
    pub(crate) fn resolve(&self, env: impl Fn(&str) -> Option<PathBuf>) -> Result<Root, Failure> {
        if let Some(dir) = &self.root {
            let dir = std::path::absolute(dir).map_err(|e| Failure::file("resolve the root", dir, &e))?;
            if dir.exists() && !dir.is_dir() {
                return Err(Failure::usage(format!("the root {} is not a directory", dir.display()))
                    .hint("name a directory with --root DIR or SUPERVISOR_ROOT"));
            }
            return Ok(Root { runtime: dir.join("run"), config: dir.clone(), state: dir });
        }
        let system = self.system || (!self.user && nix::unistd::geteuid().is_root());
        // Names of systemd.exec(5): a unit gets its directories from them.
        let given = |name: &str| env(name).filter(|path| path.is_absolute());
        if system {
            return Ok(Root {
                state: given("STATE_DIRECTORY").unwrap_or_else(|| "/var/lib/supervisor".into()),
                runtime: given("RUNTIME_DIRECTORY").unwrap_or_else(|| "/run/supervisor".into()),
                config: given("CONFIGURATION_DIRECTORY").unwrap_or_else(|| "/etc/supervisor".into()),
            });
        }
        let home = given("HOME").ok_or_else(|| {
            Failure::usage("no home directory to keep the board in: HOME is not set")
                .hint("name a directory with --root DIR")
        })?;
        let state = given("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state")).join("supervisor");
        Ok(Root {
            runtime: given("XDG_RUNTIME_DIR").map_or_else(|| state.join("run"), |dir| dir.join("supervisor")),
            config: given("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("supervisor"),
            state,
        })
    }

    /// The options that choose the same root from any directory.
    pub(crate) fn options(&self) -> Vec<String> {
        let root = self.root.as_ref().map(|dir| std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
        let root = root.map(|dir| ["--root".to_owned(), dir.display().to_string()]);
        let chosen = [(self.system, "--system"), (self.user, "--user")].into_iter().filter(|(is, _)| *is);
        let chosen = chosen.map(|(_, option)| option.to_owned());
        root.into_iter().flatten().chain(chosen).collect()
    }
}

impl Root {
    /// The places that are closed to every worker, but for what is a run's own in them: together they hold all that the
    /// other methods name.
    pub(crate) fn closed(&self) -> Vec<PathBuf> {
        vec![self.state.clone(), self.runtime.clone(), self.config.clone()]
    }

    /// The state directory, which is how messages name the root.
    pub(crate) fn dir(&self) -> &Path {
        &self.state
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("supervisor.toml")
    }

    /// The directory of lane definitions.
    pub(crate) fn lanes_dir(&self) -> PathBuf {
        self.config.join("lanes.d")
    }

    /// The directory of policies.
    pub(crate) fn policies_dir(&self) -> PathBuf {
        self.config.join("policies.d")
    }

    /// Where secrets are that a policy or a lane names by a name alone.
    pub(crate) fn secret_stores(&self) -> policies::SecretStores {
        policies::SecretStores {
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            directory: Some(self.config.join("secrets")),
        }
    }

    /// The directory of tenants.
    pub(crate) fn tenants_dir(&self) -> PathBuf {
        self.config.join("tenants.d")
    }

    /// The options by which a process with the environment of this one chooses this root.
    pub(crate) fn own_options(&self) -> Vec<std::ffi::OsString> {
        if self.config == self.state { vec!["--root".into(), self.state.clone().into()] } else { Vec::new() }
    }

    /// The directory of profiles.
    pub(crate) fn profiles_dir(&self) -> PathBuf {
        self.config.join("profiles.d")
    }

    /// The directory of skills.
    pub(crate) fn skills_dir(&self) -> PathBuf {
        self.config.join("skills.d")
    }

    pub(crate) fn boards(&self) -> PathBuf {
        self.state.join("boards")
    }

    /// The database of one board.
    pub(crate) fn board(&self, board: &BoardName) -> PathBuf {
        self.boards().join(board.as_str()).join("board.db")
    }

    /// The file with the name of the board that commands mean.
    pub(crate) fn board_choice(&self) -> PathBuf {
        self.state.join("current-board")
    }

    /// Boards that were removed and are kept.
    pub(crate) fn removed_boards(&self) -> PathBuf {
        self.state.join("removed-boards")
    }

    /// The lock that says who owns every board of this root.
    pub(crate) fn owner_lock(&self) -> PathBuf {
        self.state.join("board.lock")
    }

    /// The run directory of one run.
    pub(crate) fn run_dir(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.runs(board).join(run.to_string())
    }

    /// Where the shim of a run keeps the listening socket of its proxy.
    pub(crate) fn keeper(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.run_dir(board, run).join("keeper")
    }

    /// All run directories of a board.
    pub(crate) fn runs(&self, board: &BoardName) -> PathBuf {
        self.state.join("runs").join(board.as_str())
    }

    pub(crate) fn log(&self, board: &BoardName, task: &TaskId, run: RunId) -> PathBuf {
        self.logs(board).join(task.as_str()).join(format!("{run}.log"))
    }

    pub(crate) fn logs(&self, board: &BoardName) -> PathBuf {
        self.state.join("logs").join(board.as_str())
    }

    /// Where scratch workspaces of a board are made.
    pub(crate) fn workspaces(&self, board: &BoardName) -> PathBuf {
        self.state.join("workspaces").join(board.as_str())
    }

    /// The private directory of one run: its home, its temporary files, and the files that it may read.
    pub(crate) fn run_home(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.state.join("homes").join(board.as_str()).join(run.to_string())
    }

    /// What the agents of a board keep between runs: a directory for each task, and in it one for each profile.
    pub(crate) fn sessions(&self, board: &BoardName) -> PathBuf {
        self.state.join("sessions").join(board.as_str())
    }

    /// What is kept of the homes of workers: logins, and what they remember.
    pub(crate) fn kept(&self) -> PathBuf {
        self.state.join("kept")
    }

    /// The lock of a login that is under way.
    pub(crate) fn login_lock(&self) -> PathBuf {
        self.kept().join(".lock")
    }

    /// The run directory of that login.
    pub(crate) fn login_run(&self) -> PathBuf {
        self.kept().join(".run")
    }

    /// The private directory of a login that is under way. One is at a time.
    pub(crate) fn login_home(&self) -> PathBuf {
        self.state.join("homes").join(".login")
    }

    /// Where one run finds its files.
    pub(crate) fn run_files(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.run_home(board, run).join("files")
    }

    /// The locks on workspaces, by device and inode.
    pub(crate) fn leases(&self) -> PathBuf {
        self.state.join("leases")
    }

    /// Which directory it is on this host, however it is called: a copy of it has another identity.
    pub(crate) fn identity(&self) -> std::io::Result<String> {
        let meta = std::fs::metadata(&self.state)?;
        Ok(format!("{:x}:{:x}", meta.dev(), meta.ino()))
    }

    /// The directory of the copy of the binary that workers run.
    pub(crate) fn bin(&self) -> PathBuf {
        self.state.join("bin")
    }

    /// The key that proves an operator where worker and operator share a uid.
    pub(crate) fn operator_key(&self) -> PathBuf {
        self.state.join("operator.key")
    }

    /// The sessions of browsers: digests of their secrets.
    pub(crate) fn browser_sessions(&self) -> PathBuf {
        self.state.join("browser-sessions.json")
    }

    /// The configuration that a daemon could use last.
    pub(crate) fn last_good_config(&self) -> PathBuf {
        self.state.join("last-good.toml")
    }

    pub(crate) fn operator_socket(&self) -> PathBuf {
        self.runtime.join("supervisor.sock")
    }

    /// The socket of the users of tenants.
    pub(crate) fn members_socket(&self) -> PathBuf {
        self.runtime.join("tenants.sock")
    }

    pub(crate) fn run_doors(&self) -> PathBuf {
        self.runtime.join("doors")
    }

    /// The socket of one run. Its directory is the run's alone, and what policies grant: a new daemon's socket is a new file
    /// in it.
    pub(crate) fn run_door(&self, board: BoardId, run: RunId) -> PathBuf {
        // The runs of two boards whose ids begin alike would find each other's door, where their tokens are refused.
        let board = board.to_string();
        self.run_doors().join(format!("{run}-{}", board.get(..8).unwrap_or(&board))).join(DOOR)
    }

    /// The socket that the runs of an earlier release know.
    pub(crate) fn worker_socket(&self) -> PathBuf {
        self.runtime.join("worker/worker.sock")
    }

    /// The datagram socket on which shims report.
    pub(crate) fn poke_socket(&self) -> PathBuf {
        self.runtime.join("poke.sock")
    }

    /// Makes the directories with their modes. Directories that exist keep their owner.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        for dir in [&self.state, &self.runtime] {
            // One that exists is somebody's choice and keeps its mode; `check_reachable` says when it cannot work.
            if !dir.is_dir() {
                make_dir(dir, 0o711)?;
            }
        }
        make_dir(&self.run_doors(), 0o711)?;
        // What is not there cannot be hidden from workers. Where it may not be made, nobody's settings are in it either.
        if !self.config.is_dir() {
            drop(make_dir(&self.config, 0o755));
        }
        for (name, mode) in [
            ("boards", 0o700),
            ("runs", 0o700),
            ("logs", 0o700),
            ("leases", 0o700),
            ("kept", 0o700),
            ("workspaces", 0o711),
            ("homes", 0o711),
            ("sessions", 0o711),
            ("bin", 0o711),
        ] {
            make_dir(&self.state.join(name), mode)?;
        }
        Ok(())
    }

    /// The same root by its real path: policies grant places, and a place behind a link could be moved.
    pub(crate) fn canonical(&self) -> Result<Self, Failure> {
        let real =
            |dir: &Path| dir.canonicalize().map_err(|e| Failure::file("resolve the directory", dir, &e));
        let config = if self.config.exists() { real(&self.config)? } else { self.config.clone() };
        Ok(Root { state: real(&self.state)?, runtime: real(&self.runtime)?, config })
    }

    /// Refuses a root that the system cannot serve: socket paths too long, or closed to workers of other uids.
    pub(crate) fn check_reachable(&self) -> Result<(), Failure> {
        let socket = self.run_door(BoardId(uuid::Uuid::nil()), DIGITS);
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_LIMIT {
            return Err(Failure::usage(format!(
                "the root is too deep: the socket path {} has {length} bytes, and Linux allows {SOCKET_PATH_LIMIT}",
                socket.display()
            ))
            .hint("choose a shorter directory with --root DIR"));
        }
        if !nix::unistd::geteuid().is_root() {
            return Ok(());
        }
        for dir in self.state.ancestors().chain(self.runtime.ancestors()) {
            let Ok(meta) = std::fs::metadata(dir) else { continue };
            if meta.permissions().mode() & 0o001 == 0 {
                return Err(Failure::usage(format!(
                    "workers run as other users and cannot reach the root {}: {} is closed to them (mode {:04o}, uid {})",
                    self.state.display(),
                    dir.display(),
                    meta.permissions().mode() & 0o7777,
                    meta.uid()
                ))
                .hint(format!("chmod o+x {}, or choose another root with --root DIR", dir.display())));
            }
        }
        Ok(())
    }
}

/// Makes one directory (and its parents) with `mode`; one that exists and is more open is closed to it.
pub(crate) fn make_dir(dir: &Path, mode: u32) -> Result<(), Failure> {
    let fail = |e: std::io::Error| {
        let failure = Failure::file("make the directory", dir, &e);
        if failure.hint.is_some() { failure } else { failure.hint("choose another root with --root DIR") }
    };
    let closed = |meta: &std::fs::Metadata| meta.permissions().mode() & 0o777 & !mode == 0;
    if std::fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && closed(&meta)) {
        return Ok(());
    }
    // With its mode from the start: what somebody opens or makes in it before a later chmod would stay.
    let create = || DirBuilder::new().mode(mode).create(dir);
    let outcome = match (create(), dir.parent()) {
        (Err(e), Some(parent)) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(parent).map_err(fail)?;
            create()
        }
        (outcome, _) => outcome,
    };
    let is_new = outcome.is_ok();
    match outcome {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists || !dir.is_dir() => return Err(fail(e)),
        Ok(()) | Err(_) => {}
    }
    let now = std::fs::metadata(dir).map_err(fail)?;
    // The umask may have taken some of it away.
    if !closed(&now) || (is_new && now.permissions().mode() & 0o777 != mode) {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).map_err(fail)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_root_holds_everything() {
        let choice = RootChoice { root: Some("/srv/x".into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        assert_eq!(root.operator_socket(), Path::new("/srv/x/run/supervisor.sock"));
        assert_eq!(root.config_file(), Path::new("/srv/x/supervisor.toml"));
        assert_eq!(root.dir(), Path::new("/srv/x"));
    }

    #[test]
    fn an_option_beats_the_root_of_the_environment_and_two_options_are_refused() {
        let choice = |source| {
            let choice = RootChoice { root: Some("/srv/x".into()), system: true, user: false };
            choice.of_options_first(Some(source))
        };
        let root = choice(ValueSource::EnvVariable).unwrap().resolve(|_| None).unwrap();
        assert_eq!(root.dir(), Path::new("/var/lib/supervisor"));
        assert_eq!(choice(ValueSource::CommandLine).unwrap_err(), TwoRoots("--system"));
        let alone = RootChoice { root: Some("/srv/x".into()), ..RootChoice::default() };
        assert!(alone.of_options_first(Some(ValueSource::EnvVariable)).unwrap().root.is_some());
    }

    #[test]
    fn a_user_service_follows_the_xdg_directories() {
        let choice = RootChoice { user: true, ..RootChoice::default() };
        let root = choice
            .resolve(|name| match name {
                "HOME" => Some("/home/ann".into()),
                "XDG_RUNTIME_DIR" => Some("/run/user/7".into()),
                _ => None,
            })
            .unwrap();
        assert_eq!(root.dir(), Path::new("/home/ann/.local/state/supervisor"));
        let board = "6f1c0c4e-7a55-4f0e-9d51-0a8d3a6b1c02".parse().unwrap();
        let door = root.run_door(board, RunId(12));
        assert_eq!(door, Path::new("/run/user/7/supervisor/doors/12-6f1c0c4e/sock"));
        assert_eq!(root.lanes_dir(), Path::new("/home/ann/.config/supervisor/lanes.d"));
    }

    #[test]
    fn a_root_too_deep_for_a_socket_is_refused_with_its_length() {
        let choice =
            RootChoice { root: Some(format!("/{}", "d".repeat(120)).into()), ..RootChoice::default() };
        let failure = choice.resolve(|_| None).unwrap().check_reachable().unwrap_err();
        assert!(failure.message.contains("107"), "{failure}");
        assert!(failure.hint.is_some());
    }

    #[test]
    fn a_root_that_workers_cannot_go_through_is_refused_with_the_way_out() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().join("r");
        let choice = RootChoice { root: Some(root.clone()), ..RootChoice::default() };
        let resolved = choice.resolve(|_| None).unwrap();
        resolved.create().unwrap();
        resolved.check_reachable().unwrap();
        for closed in [root.clone(), root.join("run")] {
            let open = std::fs::metadata(&closed).unwrap().permissions();
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
            // An ordinary user's workers have its own uid.
            let is_root = nix::unistd::geteuid().is_root();
            match resolved.check_reachable() {
                Ok(()) => assert!(!is_root, "{} is closed", closed.display()),
                Err(failure) => {
                    assert!(failure.message.contains(&closed.display().to_string()), "{failure}");
                    assert!(failure.hint.is_some_and(|hint| hint.contains("chmod o+x")));
                }
            }
            std::fs::set_permissions(&closed, open).unwrap();
        }
    }
}
