//! A git repository in a temporary directory, made and used with the real `git`.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::name::Name;
use crate::worktree::Worktree;

pub(crate) struct Fixture {
    _dir: TempDir,
    pub(crate) root: PathBuf,
}

impl Fixture {
    /// A repository with one commit that holds `README`, on the branch `main`.
    pub(crate) fn new() -> Self {
        let fixture = Self::without_commit();
        fs_err::write(fixture.root.join("README"), "first").unwrap();
        fixture.commit(&fixture.root, "start");
        fixture
    }

    pub(crate) fn without_commit() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let fixture = Self { _dir: dir, root };
        fixture.git(&["init", "-q", "-b", "main"]);
        fixture
    }

    pub(crate) fn worktree(&self, id: &str) -> Worktree {
        Worktree::new(&self.root, Name::new(id).unwrap())
    }

    pub(crate) fn commit(&self, directory: &Path, message: &str) {
        self.git_in(directory, &["add", "-A"]);
        self.git_in(directory, &["commit", "-q", "--allow-empty", "-m", message]);
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    /// Returns true if the repository has an object of this name.
    pub(crate) fn has_object(&self, name: &str) -> bool {
        self.command(&self.root).args(["cat-file", "-e", name]).output().unwrap().status.success()
    }

    /// Runs git without the configuration of the tests' user; returns its trimmed output.
    pub(crate) fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.command(directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(directory)
            .env("HOME", self.root.join("no-home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_NAME"), "test")))
            .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_EMAIL"), "test@localhost")));
        command
    }
}
