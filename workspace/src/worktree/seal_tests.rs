//! Traps that a worker leaves for users of git in its worktree: none of them works once the run is sealed.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::testing::Fixture;
use crate::worktree::{Base, Worktree, WorktreeError};

/// A worktree `t_1` in a repository with settings per worktree, and a program that leaves a mark.
struct Bench {
    fixture: Fixture,
    worktree: Worktree,
    tree: PathBuf,
    metadata: PathBuf,
    payload: PathBuf,
    mark: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let fixture = Fixture::new();
        fixture.git(&["config", "extensions.worktreeConfig", "true"]);
        let worktree = fixture.worktree("t_1");
        let tree = worktree.prepare(&Base::Head, None).unwrap().path;
        let (payload, mark) = (tree.join("payload"), fixture.root.join("mark"));
        fs_err::write(&payload, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        fs_err::set_permissions(&payload, PermissionsExt::from_mode(0o755)).unwrap();
        let metadata = fixture.root.join(".git/worktrees/t_1");
        Self { fixture, worktree, tree, metadata, payload, mark }
    }

    fn settings(&self) -> String {
        format!("[core]\n\tfsmonitor = {}\n", self.payload.display())
    }

    /// Makes a repository whose settings run the payload. Returns its commit.
    fn repository(&self, at: &Path) -> String {
        fs_err::create_dir_all(at).unwrap();
        let git = |args: &[&str]| self.fixture.git_in(at, args);
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "embedded"]);
        git(&["config", "core.fsmonitor", &self.payload.display().to_string()]);
        git(&["rev-parse", "HEAD"])
    }

    /// Runs git as a person does, and ignores its result.
    fn look(&self, at: &Path, args: &[&str]) {
        self.fixture.command(at).args(args).output().unwrap();
    }

    /// Inspects the worktree, and one of its directories, with many commands.
    #[track_caller]
    fn nothing_runs(&self, inside: &str, plant: &str) {
        let at = self.tree.join(inside);
        for place in [&self.tree, &at] {
            for args in [
                &["status"][..],
                &["log", "--all", "-p"],
                &["diff", "HEAD"],
                &["diff", "--submodule=diff", "HEAD"],
                &["submodule", "status", "--recursive"],
                &["submodule", "foreach", "--recursive", "git status"],
                &["submodule", "update", "--init", "--recursive"],
                &["reset", "-q"],
                &["status"],
                &["add", "-A"],
                &["status"],
            ] {
                self.look(place, args);
                assert!(!self.mark.exists(), "{plant}: git {args:?} in {} runs it", place.display());
            }
        }
    }
}

/// A worktree names its repository in a file. White space in it is a part of the name for git.
#[test]
fn what_ties_a_worktree_to_its_repository_is_read_as_git_reads_it() {
    let bench = Bench::new();
    let fake = bench.tree.join(format!(" {}", bench.metadata.display()));
    fs_err::create_dir_all(fake.parent().unwrap()).unwrap();
    bench.repository(&bench.tree.join("made"));
    fs_err::rename(bench.tree.join("made/.git"), &fake).unwrap();
    fs_err::write(bench.tree.join(".git"), format!("gitdir:  {}\n", bench.metadata.display())).unwrap();
    bench.worktree.seal().unwrap();
    bench.nothing_runs("", "a repointed .git");

    let bench = Bench::new();
    fs_err::create_dir(bench.metadata.join(" ..")).unwrap();
    bench.repository(&bench.tree.join("made"));
    for name in ["config", "objects", "refs"] {
        fs_err::rename(bench.tree.join("made/.git").join(name), bench.metadata.join(name)).unwrap();
    }
    fs_err::write(bench.metadata.join("commondir"), " ../..\n").unwrap();
    bench.worktree.seal().unwrap();
    bench.nothing_runs("", "a commondir");
}

#[test]
fn settings_of_a_worktree_are_restored_to_the_last_byte() {
    for padding in [0, 9000] {
        let bench = Bench::new();
        let text = format!("{}{}", "\n".repeat(padding), bench.settings());
        fs_err::write(bench.metadata.join("config.worktree"), text).unwrap();
        bench.worktree.seal().unwrap();
        bench.nothing_runs("", "a config.worktree");
    }
    // Those of a person stay, however long they are.
    let bench = Bench::new();
    let own = bench.metadata.join("config.worktree");
    let text = format!("{}[user]\n\tname = Ann\n", "# a comment\n".repeat(1000));
    bench.worktree.seal().unwrap();
    fs_err::write(&own, &text).unwrap();
    bench.worktree.prepare(&Base::Head, None).unwrap();
    fs_err::write(&own, bench.settings()).unwrap();
    bench.worktree.seal().unwrap();
    assert!(fs_err::read_to_string(own).unwrap() == text, "they are others now");
}

#[test]
fn a_repository_inside_a_worktree_is_out_of_gits_sight_and_is_kept() {
    let bench = Bench::new();
    let deep = bench.tree.join("target/deep/dependency");
    bench.repository(&deep);
    fs_err::write(bench.tree.join(".gitignore"), "target\n").unwrap();
    // A name and a link instead of the directory.
    let linked = bench.tree.join("linked");
    for name in ["file", "link"] {
        fs_err::create_dir_all(linked.join(name)).unwrap();
    }
    bench.repository(&bench.tree.join("elsewhere"));
    fs_err::rename(bench.tree.join("elsewhere/.git"), bench.tree.join("elsewhere/plain")).unwrap();
    fs_err::write(linked.join("file/.git"), "gitdir: ../../elsewhere/plain\n").unwrap();
    symlink("../../elsewhere/plain", linked.join("link/.git")).unwrap();

    let sealed = bench.worktree.seal().unwrap();

    let mut found = sealed.set_aside.clone();
    found.sort();
    let expected = ["linked/file/.git", "linked/link/.git", "target/deep/dependency/.git"];
    assert_eq!(found, expected.map(|name| bench.tree.join(name)));
    for inside in ["linked/file", "linked/link", "target/deep/dependency"] {
        bench.nothing_runs(inside, "an embedded repository");
        assert!(bench.tree.join(inside).join(".git.untrusted").symlink_metadata().is_ok());
    }

    // Nothing is lost: who has looked at it names it back.
    fs_err::rename(deep.join(".git.untrusted"), deep.join(".git")).unwrap();
    assert_eq!(bench.fixture.git_in(&deep, &["log", "--format=%s"]), "embedded");
}

/// A file that is absent from the index can be in it after the next `git reset`.
#[test]
fn a_repository_inside_a_worktree_that_its_owner_has_moved_is_out_of_sight_too() {
    let bench = Bench::new();
    bench.repository(&bench.tree.join("sub"));
    let moved = bench.fixture.root.join("elsewhere");
    bench.fixture.git(&["worktree", "move", bench.tree.to_str().unwrap(), moved.to_str().unwrap()]);
    let sealed = bench.worktree.seal().unwrap();
    assert_eq!(sealed.set_aside, [moved.join("sub/.git")]);
    assert!(moved.join("sub/.git.untrusted").is_dir());
    // The payload is at its new path, too.
    fs_err::create_dir_all(bench.payload.parent().unwrap()).unwrap();
    fs_err::copy(moved.join("payload"), &bench.payload).unwrap();
    for args in [&["add", "-A"][..], &["status"]] {
        bench.look(&moved, args);
        assert!(!bench.mark.exists(), "git {args:?} runs it");
    }
}

#[test]
fn a_submodule_that_only_a_commit_or_nothing_names_is_out_of_sight_too() {
    let bench = Bench::new();
    let commit = bench.repository(&bench.tree.join("sub"));
    let git = |args: &[&str]| bench.fixture.git_in(&bench.tree, args);
    git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    git(&["commit", "-q", "-m", "a submodule"]);
    git(&["update-index", "--force-remove", "sub"]);
    fs_err::write(bench.tree.join(".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n")
        .unwrap();
    bench.worktree.seal().unwrap();
    bench.nothing_runs("sub", "a submodule");
}

/// Git keeps the repositories of a worktree's submodules in `modules` of its metadata.
#[test]
fn what_an_update_of_submodules_would_take_for_its_own_is_set_aside() {
    let bench = Bench::new();
    let commit = bench.repository(&bench.tree.join("sub"));
    let modules = bench.metadata.join("modules");
    fs_err::create_dir(&modules).unwrap();
    fs_err::rename(bench.tree.join("sub/.git"), modules.join("sub")).unwrap();
    bench
        .fixture
        .git_in(&bench.tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    fs_err::write(bench.tree.join(".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n")
        .unwrap();
    let sealed = bench.worktree.seal().unwrap();
    assert!(sealed.set_aside.contains(&modules), "{sealed:?}");
    bench.nothing_runs("sub", "a submodule's repository");
    assert!(bench.metadata.join("modules.untrusted/sub").is_dir());
}

#[test]
fn no_mode_of_a_directory_hides_a_repository() {
    let bench = Bench::new();
    for (name, mode) in [("closed", 0o000), ("listed", 0o444), ("known", 0o111), ("kept", 0o555)] {
        bench.repository(&bench.tree.join(name).join("inner"));
        for at in [bench.tree.join(name).join("inner"), bench.tree.join(name)] {
            fs_err::set_permissions(at, PermissionsExt::from_mode(mode)).unwrap();
        }
    }
    fs_err::set_permissions(&bench.tree, PermissionsExt::from_mode(0o555)).unwrap();
    let sealed = bench.worktree.seal().unwrap();
    assert_eq!(sealed.set_aside.len(), 4, "{sealed:?}");
    for name in ["closed", "listed", "known", "kept"] {
        bench.nothing_runs(&format!("{name}/inner"), name);
    }
}

#[test]
fn what_cannot_be_made_safe_is_withheld_and_the_hint_releases_it() {
    let bench = Bench::new();
    // The settings cannot be put back.
    fs_err::create_dir_all(bench.metadata.join("config.worktree.supervisor/in/the/way")).unwrap();
    fs_err::write(bench.metadata.join("config.worktree"), bench.settings()).unwrap();

    let error = bench.worktree.seal().unwrap_err();

    assert!(matches!(&error, WorktreeError::Withheld { .. }), "{error:?}");
    assert!(error.to_string().contains(&bench.tree.display().to_string()), "{error}");
    bench.nothing_runs("", "what is withheld");
    assert!(!bench.tree.join(".git").exists());

    fs_err::remove_dir_all(bench.metadata.join("config.worktree.supervisor")).unwrap();
    fs_err::write(bench.metadata.join("config.worktree"), "").unwrap();
    let hint = error.hint().unwrap();
    let command = hint.split('`').nth(1).unwrap();
    assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
    assert_eq!(bench.fixture.git_in(&bench.tree, &["rev-parse", "--abbrev-ref", "HEAD"]), "task/t_1");
}
