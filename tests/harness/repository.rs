//! A git repository for tasks to work in, of a user whose workers may use it, made and read with the host's own `git`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Fleet, Output, User};

/// A user of no host: as root, the worker of a repository is its owner, who must not be root.
const OWNER: u32 = 64_321;

/// A repository with one commit on `main` that holds `file`.
pub(crate) struct Repository {
    path: PathBuf,
    owner: Option<u32>,
}

impl Repository {
    /// Makes one beside the root of a fleet.
    pub(crate) fn new(fleet: &Fleet, name: &str) -> Self {
        let owner = match fleet.user {
            User::Root => Some(OWNER),
            User::Ordinary(id) => id,
        };
        let path = fleet.home().join(name);
        fs::create_dir(&path).unwrap();
        if let Some(owner) = owner {
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
        let repository = Repository { path, owner };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.write("file", "1\n");
        repository.git(&["add", "file"]);
        repository.git(&["commit", "-q", "-m", "start"]);
        repository
    }

    /// Directory of the repository.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Directory of a task's worktree.
    pub(crate) fn tree(&self, task: &str) -> PathBuf {
        self.path.join(".worktrees").join(task)
    }

    /// Value of `--workspace` for it.
    pub(crate) fn workspace(&self) -> String {
        format!("worktree:{}", self.path.display())
    }

    /// Writes a file as its owner.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        fs::write(&path, text).unwrap();
        if let Some(owner) = self.owner {
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
    }

    /// Puts a FIFO in the place of a file, as a worker of the owner's could.
    pub(crate) fn plant_fifo(&self, path: &Path) {
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
        if let Some(owner) = self.owner {
            chown(path, Some(owner), Some(owner)).unwrap();
        }
    }

    /// Runs git in it as its owner, and returns what it prints.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.git_in(&self.path, args);
        assert_eq!(output.code, 0, "git {args:?}: {}{}", output.stdout, output.stderr);
        output.stdout.trim().to_owned()
    }

    /// Runs git anywhere as its owner, who has no configuration.
    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.args(args).current_dir(directory).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "owner");
            command.env(format!("GIT_{role}_EMAIL"), "owner@localhost");
        }
        if let Some(owner) = self.owner {
            command.uid(owner).gid(owner);
        }
        Output::of(&mut command)
    }
}
