//! Where everything of one root lives.

mod automation;
mod choice;
pub(crate) mod definition_file;
mod listing;
mod making;
pub(crate) mod private_file;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardId, BoardName, RunId, TaskId};

pub(crate) use self::choice::RootChoice;
pub(crate) use self::making::make_dir;

/// What the socket in the directory of a run's door is called.
pub(crate) const DOOR: &str = "sock";

/// One root: the directory tree of one daemon, its boards and its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    state: PathBuf,
    runtime: PathBuf,
    config: PathBuf,
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
}
