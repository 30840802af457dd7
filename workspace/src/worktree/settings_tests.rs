//! Settings of a repository that no run can follow: git works in a worktree in spite of them.

use std::os::unix::fs::PermissionsExt as _;

use crate::testing::Fixture;
use crate::worktree::{Base, Prepared, Worktree};

/// A worktree `t_1` in a repository with these settings, used with the variables that its worker has.
struct Bench {
    fixture: Fixture,
    worktree: Worktree,
    prepared: Prepared,
}

impl Bench {
    fn new(settings: &[(&str, &str)]) -> Self {
        Self::with(settings, "")
    }

    /// With these attributes of the file `data`.
    fn with(settings: &[(&str, &str)], attributes: &str) -> Self {
        let fixture = Fixture::new();
        if !attributes.is_empty() {
            fs_err::write(fixture.root.join(".gitattributes"), format!("data {attributes}\n")).unwrap();
            // In UTF-16 too, for the attribute of an encoding.
            let data: Vec<u8> = "\u{feff}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
            fs_err::write(fixture.root.join("data"), data).unwrap();
            fixture.commit(&fixture.root, "start");
        }
        for (key, value) in settings {
            fixture.git(&["config", key, value]);
        }
        let worktree = fixture.worktree("t_1");
        let prepared = worktree.prepare(&Base::Head, None).unwrap();
        Self { fixture, worktree, prepared }
    }

    fn git(&self, args: &[&str]) -> String {
        let mut command = self.fixture.command(&self.prepared.path);
        let output = command.envs(&self.prepared.environment).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn change(&self, text: &str) {
        fs_err::write(self.prepared.path.join("README"), text).unwrap();
    }
}

#[test]
fn nothing_is_signed_where_the_repository_asks_for_signatures() {
    let bench = Bench::new(&[
        ("commit.gpgSign", "true"),
        ("tag.gpgSign", "true"),
        ("tag.forceSignAnnotated", "true"),
        ("merge.verifySignatures", "true"),
        ("gpg.format", "ssh"),
        ("user.signingKey", "/nonexistent/id.pub"),
    ]);
    bench.change("second");
    bench.git(&["commit", "-qam", "work"]);
    bench.git(&["tag", "-a", "-m", "told", "v1"]);
    bench.git(&["commit", "-q", "--amend", "-m", "better"]);
    bench.git(&["rebase", "-q", "--force-rebase", "HEAD~"]);
    assert_eq!(bench.git(&["log", "--format=%s %G?"]), "better N\nstart N");
    bench.git(&["switch", "-qc", "task/side", "HEAD~"]);
    bench.git(&["commit", "-q", "--allow-empty", "-m", "beside"]);
    bench.git(&["merge", "-q", "-m", "both", "task/t_1"]);
}

#[test]
fn hooks_of_the_repository_stop_no_commit_and_those_of_the_working_tree_run() {
    let bench = Bench::new(&[]);
    let refusing = |hooks: std::path::PathBuf| {
        fs_err::create_dir_all(&hooks).unwrap();
        fs_err::write(hooks.join("pre-commit"), "#!/bin/sh\nexit 1\n").unwrap();
        fs_err::set_permissions(hooks.join("pre-commit"), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    refusing(bench.fixture.root.join(".git/hooks"));
    bench.git(&["commit", "-q", "--allow-empty", "-m", "work"]);

    let bench = Bench::new(&[("core.hooksPath", "hooks")]);
    refusing(bench.prepared.path.join("hooks"));
    let mut commit = bench.fixture.command(&bench.prepared.path);
    commit.envs(&bench.prepared.environment).args(["commit", "-q", "--allow-empty", "-m", "work"]);
    assert!(!commit.output().unwrap().status.success());
}

#[test]
fn the_index_keeps_a_form_that_is_read_at_the_end() {
    let bench = Bench::new(&[
        ("core.splitIndex", "true"),
        ("feature.manyFiles", "true"),
        ("index.sparse", "true"),
        ("core.fsmonitor", "/nonexistent/hook"),
        ("core.preferSymlinkRefs", "true"),
    ]);
    bench.change("second");
    bench.git(&["add", "README"]);
    bench.git(&["symbolic-ref", "HEAD", "refs/heads/task/t_1"]);
    let head = bench.fixture.root.join(".git/worktrees/t_1/HEAD");
    assert!(!head.is_symlink());
    assert_eq!(bench.worktree.seal().unwrap().set_aside, Vec::<std::path::PathBuf>::new());
    assert_eq!(bench.git(&["status", "--porcelain"]), "M  README");
}

#[test]
fn a_new_worktree_has_the_settings_that_the_main_one_has_alone_but_those_about_its_files() {
    let own = [("extensions.worktreeConfig", "true"), ("alias.st", "no")];
    let fixture = Fixture::new();
    for (key, value) in own {
        fixture.git(&["config", key, value]);
    }
    for (key, value) in [("alias.st", "status"), ("core.bare", "false"), ("core.sparseCheckout", "true")] {
        fixture.git(&["config", "--worktree", key, value]);
    }
    let worktree = fixture.worktree("t_1");
    let path = worktree.prepare(&Base::Head, None).unwrap().path;
    assert_eq!(fixture.git_in(&path, &["config", "--worktree", "--list"]), "alias.st=status");
    worktree.seal().unwrap();
    fixture.git_in(&path, &["config", "--worktree", "alias.st", "log"]);
    worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(fixture.git_in(&path, &["config", "alias.st"]), "log", "it is the owner's from then on");
}

#[test]
fn files_of_a_filter_that_cannot_run_are_named_and_hold_up_no_commit_of_others() {
    let filter = [("filter.secret.clean", "/nonexistent/clean"), ("filter.secret.required", "true")];
    let bench = Bench::with(&filter, "filter=secret");
    bench.change("second");
    bench.git(&["add", "-A"]);
    bench.git(&["commit", "-qm", "work"]);
    assert_eq!(bench.git(&["show", "--format=", "--name-only"]), "README");
    let [note] = &bench.prepared.notes[..] else { panic!("{:?}", bench.prepared.notes) };
    assert!(note.contains("`data`") && note.contains("`filter=secret`"), "{note}");
    // What the filter keeps out of the repository stays out.
    fs_err::write(bench.prepared.path.join("data"), "in clear text").unwrap();
    let mut add = bench.fixture.command(&bench.prepared.path);
    assert!(!add.args(["add", "data"]).output().unwrap().status.success());
}

#[test]
fn pointers_of_git_lfs_are_named_and_those_of_a_repository_without_any_filter_are_none() {
    let bench = Bench::with(&[], "filter=lfs diff=lfs merge=lfs -text");
    let [note] = &bench.prepared.notes[..] else { panic!("{:?}", bench.prepared.notes) };
    assert!(note.contains("`data`") && note.contains("git lfs checkout"), "{note}");
    assert_eq!(bench.prepared.environment["GIT_LFS_SKIP_SMUDGE"], "1");
    let encoded = Bench::with(&[], "text working-tree-encoding=UTF-16");
    assert!(encoded.prepared.notes.concat().contains("`working-tree-encoding=UTF-16`"));
    let plain = Bench::with(&[], "text");
    assert!(
        plain.prepared.notes.is_empty() && !plain.prepared.environment.contains_key("GIT_LFS_SKIP_SMUDGE")
    );
}
