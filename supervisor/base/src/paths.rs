//! Paths of one root: its state, runtime and configuration directories, and every file and socket in them.

mod automation;
mod choice;
pub mod definition_file;
mod listing;
mod making;
pub mod private_file;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use kernel::{BoardId, BoardName, RunId, TaskId};

pub use self::choice::RootChoice;
pub use self::making::make_dir;

/// Name of the socket in the directory of a run's listener.
pub const RUN_SOCKET: &str = "sock";

/// A root: the directory tree of one daemon, its boards and its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    state: PathBuf,
    runtime: PathBuf,
    config: PathBuf,
}

impl Root {
    /// Returns the directories that are closed to every worker, except for the run's own parts of them. They contain
    /// every path that the other methods return.
    pub fn closed(&self) -> Vec<PathBuf> {
        vec![self.state.clone(), self.runtime.clone(), self.config.clone()]
    }

    /// Returns the state directory, by which messages name the root.
    pub fn dir(&self) -> &Path {
        &self.state
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("supervisor.toml")
    }

    pub fn lanes_dir(&self) -> PathBuf {
        self.config.join("lanes.d")
    }

    pub fn policies_dir(&self) -> PathBuf {
        self.config.join("policies.d")
    }

    /// Returns the stores of the secrets that a policy or a lane names without a path.
    pub fn secret_stores(&self) -> policies::SecretStores {
        policies::SecretStores {
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            directory: Some(self.config.join("secrets")),
        }
    }

    pub fn tenants_dir(&self) -> PathBuf {
        self.config.join("tenants.d")
    }

    /// Returns the options by which a process with this process's environment chooses this root.
    pub fn own_options(&self) -> Vec<std::ffi::OsString> {
        if self.config == self.state { vec!["--root".into(), self.state.clone().into()] } else { Vec::new() }
    }

    pub fn profiles_dir(&self) -> PathBuf {
        self.config.join("profiles.d")
    }

    pub fn skills_dir(&self) -> PathBuf {
        self.config.join("skills.d")
    }

    pub fn boards(&self) -> PathBuf {
        self.state.join("boards")
    }

    /// Returns the database of a board.
    pub fn board(&self, board: &BoardName) -> PathBuf {
        self.boards().join(board.as_str()).join("board.db")
    }

    /// Returns the file that holds the name of the current board.
    pub fn board_choice(&self) -> PathBuf {
        self.state.join("current-board")
    }

    /// Returns the directory of boards that were removed but kept.
    pub fn removed_boards(&self) -> PathBuf {
        self.state.join("removed-boards")
    }

    /// Returns the lock whose holder owns every board of this root.
    pub(crate) fn owner_lock(&self) -> PathBuf {
        self.state.join("board.lock")
    }

    pub fn run_dir(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.runs(board).join(run.to_string())
    }

    /// Returns the directory in which the shim of a run keeps the listening socket of its proxy.
    pub fn keeper(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.run_dir(board, run).join("keeper")
    }

    /// Returns the directory that holds all run directories of a board.
    pub fn runs(&self, board: &BoardName) -> PathBuf {
        self.state.join("runs").join(board.as_str())
    }

    pub fn log(&self, board: &BoardName, task: &TaskId, run: RunId) -> PathBuf {
        self.logs(board).join(task.as_str()).join(format!("{run}.log"))
    }

    pub fn logs(&self, board: &BoardName) -> PathBuf {
        self.state.join("logs").join(board.as_str())
    }

    /// Returns the directory in which scratch workspaces of a board are made.
    /// A task id is unique within a board, not across the boards of a root, so each board has a directory.
    pub fn workspaces(&self, board: &BoardName) -> PathBuf {
        self.state.join("workspaces").join(board.as_str())
    }

    /// Returns the private directory of a run: its home, its temporary files, and the files that it may read.
    pub fn run_home(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.state.join("homes").join(board.as_str()).join(run.to_string())
    }

    /// Returns the directory of the data that agents of a board keep between runs: a directory for each task, and in
    /// it one for each profile.
    pub fn sessions(&self, board: &BoardName) -> PathBuf {
        self.state.join("sessions").join(board.as_str())
    }

    /// Returns the directory of the parts of workers' homes that outlive a run: logins and agents' memories.
    pub fn retained_homes(&self) -> PathBuf {
        self.state.join("kept")
    }

    /// Returns the lock of the login in progress.
    pub fn login_lock(&self) -> PathBuf {
        self.retained_homes().join(".lock")
    }

    /// Returns the run directory of the login in progress.
    pub fn login_run(&self) -> PathBuf {
        self.retained_homes().join(".run")
    }

    /// Returns the private directory of the login in progress. At most one login is in progress.
    pub fn login_home(&self) -> PathBuf {
        self.state.join("homes").join(".login")
    }

    /// Returns the directory in which a run finds its files.
    pub fn run_files(&self, board: &BoardName, run: RunId) -> PathBuf {
        self.run_home(board, run).join("files")
    }

    /// Returns the directory of the locks on workspaces, named by device and inode.
    pub fn leases(&self) -> PathBuf {
        self.state.join("leases")
    }

    /// Returns the identity of the state directory on this host: device and inode. A copy has another identity, and a
    /// rename keeps it.
    pub fn identity(&self) -> std::io::Result<String> {
        let meta = std::fs::metadata(&self.state)?;
        Ok(format!("{:x}:{:x}", meta.dev(), meta.ino()))
    }

    /// Returns the directory of the copy of the binary that workers run.
    pub fn bin(&self) -> PathBuf {
        self.state.join("bin")
    }

    /// Returns the key that proves an operator if workers share the operator's uid.
    pub fn operator_key(&self) -> PathBuf {
        self.state.join("operator.key")
    }

    /// Returns the file of browser sessions: digests of their secrets.
    pub fn browser_sessions(&self) -> PathBuf {
        self.state.join("browser-sessions.json")
    }

    /// Returns the copy of the last configuration that a daemon could use.
    pub fn last_good_config(&self) -> PathBuf {
        self.state.join("last-good.toml")
    }

    /// Returns the directory for pages that lead a browser to a link.
    pub fn links(&self) -> PathBuf {
        self.runtime.clone()
    }

    pub fn operator_socket(&self) -> PathBuf {
        self.runtime.join("supervisor.sock")
    }

    /// Returns the socket for the Unix users of tenants.
    pub fn members_socket(&self) -> PathBuf {
        self.runtime.join("tenants.sock")
    }

    pub fn run_socket_directories(&self) -> PathBuf {
        self.runtime.join("doors")
    }

    /// Returns the socket of a run. Its directory belongs to this run alone and is granted by its policy, so the
    /// socket of a restarted daemon, a new file in it, is reachable too.
    pub fn run_socket(&self, board: BoardId, run: RunId) -> PathBuf {
        // Runs with the same number on two boards whose ids share these 8 digits would share a path; the token check
        // refuses the wrong run.
        let board = board.to_string();
        self.run_socket_directories()
            .join(format!("{run}-{}", board.get(..8).unwrap_or(&board)))
            .join(RUN_SOCKET)
    }

    /// Returns the datagram socket on which shims report.
    pub fn shim_event_socket(&self) -> PathBuf {
        self.runtime.join("poke.sock")
    }
}
