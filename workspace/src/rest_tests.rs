//! Tests of the changes that a run leaves uncommitted.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use fs_err as fs;

use super::*;
use crate::testing::Fixture;
use crate::{Base, Evidence};

const MESSAGE: &str = "fix the parser\n\nThe supervisor committed this.\n";

struct Ended {
    fixture: Fixture,
    worktree: Worktree,
    tree: PathBuf,
    span: Span,
}

impl Ended {
    /// A worktree in which a run works.
    fn new() -> Self {
        let fixture = Fixture::new();
        fs::write(fixture.root.join(".gitignore"), "*.o\n/target/\n").unwrap();
        fs::create_dir(fixture.root.join("src")).unwrap();
        fs::write(fixture.root.join("src/a"), "1\n").unwrap();
        fs::write(fixture.root.join("src/b"), "1\n").unwrap();
        fixture.commit(&fixture.root, "sources");
        let worktree = fixture.worktree("t_1");
        let prepared = worktree.prepare(&Base::Head, None).unwrap();
        let span = Span { start: prepared.branch.map(|branch| branch.head_commit), tip: None };
        Self { tree: prepared.path, fixture, worktree, span }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn seal(&mut self) {
        self.span.tip = self.worktree.seal().unwrap().tip;
    }

    fn commit(&self) -> Uncommitted {
        let author = Author { name: "bob".to_owned(), email: "bob@supervisor.invalid".to_owned() };
        let terms = CommitTerms { author, message: MESSAGE.to_owned(), at: 1_800_000_000 };
        self.worktree.rest(&self.span, Some(&terms)).unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.fixture.git_in(&self.tree, arguments)
    }

    fn committed(&self) -> Vec<String> {
        let names = self.fixture.git(&["show", "--name-status", "--format=", "task/t_1"]);
        names.lines().map(|line| line.replace('\t', " ")).collect()
    }
}

fn left(rest: &Uncommitted) -> Vec<(&str, LeftBecause)> {
    rest.left.iter().map(|left| (left.path.as_str(), left.why)).collect()
}

#[test]
fn what_a_run_left_uncommitted_is_a_commit_of_its_own_on_the_branch() {
    let mut ended = Ended::new();
    ended.write("src/a", "2\n");
    fs::remove_file(ended.tree.join("src/b")).unwrap();
    ended.write("new/c", "c\n");
    ended.write("x.o", "object");
    ended.write("target/out", "built");
    symlink("/etc/passwd", ended.tree.join("link")).unwrap();
    fs::set_permissions(ended.tree.join("new/c"), PermissionsExt::from_mode(0o755)).unwrap();
    ended.seal();

    let rest = ended.commit();
    assert_eq!((rest.committed, rest.count(), rest.ahead), (4, 0, 1));
    assert_eq!(ended.committed(), ["A link", "A new/c", "M src/a", "D src/b"]);
    assert_eq!(ended.git(&["status", "--porcelain"]), "");
    let head = ended.fixture.git(&["log", "-1", "--format=%H %an <%ae> %cn %ct %s", "task/t_1"]);
    let commit = rest.commit.clone().unwrap();
    let wanted = format!("{commit} bob <bob@supervisor.invalid> bob 1800000000 fix the parser");
    assert_eq!(head, wanted);
    assert_eq!(ended.fixture.git(&["show", "task/t_1:link"]), "/etc/passwd", "the link, not its target");
    let modes = ended.fixture.git(&["ls-tree", "-r", "task/t_1"]);
    assert!(modes.contains("100755") && modes.contains("120000"), "{modes}");
    // Once more, as after a death of the daemon.
    ended.span.tip = None;
    assert_eq!(ended.commit(), rest);
    assert_eq!(ended.fixture.git(&["rev-parse", "task/t_1"]), commit);
}

#[test]
fn a_run_that_committed_all_of_its_work_gets_no_commit() {
    let mut ended = Ended::new();
    ended.write("src/a", "2\n");
    ended.fixture.commit(&ended.tree, "mine");
    ended.write("x.o", "object");
    ended.seal();
    assert!(ended.commit().is_empty());
    assert_eq!(ended.fixture.git(&["log", "-1", "--format=%s", "task/t_1"]), "mine");
}

#[test]
fn large_files_secrets_repositories_and_converted_files_are_named_and_stay() {
    let mut ended = Ended::new();
    ended.write(".env", "TOKEN=1\n");
    ended.write("notes", &format!("key: {}{}\n", "AKIA", "ABCDEFGHIJKLMNOP"));
    ended.write(".gitattributes", "*.bin filter=lfs\n*.c -filter\n");
    ended.write("a.bin", "big\n");
    ended.write("a.c", "int a;\n");
    fs::File::create(ended.tree.join("core")).unwrap().set_len(11 << 20).unwrap();
    fs::create_dir(ended.tree.join("vendor")).unwrap();
    ended.fixture.git_in(&ended.tree.join("vendor"), &["init", "-q"]);
    ended.write("vendor/lib", "lib\n");
    ended.git(&["add", ".env"]);
    ended.seal();

    let rest = ended.commit();
    assert_eq!(
        left(&rest),
        [
            (".env", LeftBecause::Secret),
            ("a.bin", LeftBecause::Filter),
            ("core", LeftBecause::TooLarge),
            ("notes", LeftBecause::Secret),
            ("vendor", LeftBecause::Repository),
        ]
    );
    assert_eq!(ended.committed(), ["A .gitattributes", "A a.c"]);
}

#[test]
fn an_index_that_hides_changes_hides_none_and_one_that_leads_out_of_the_tree_leads_nowhere() {
    let mut ended = Ended::new();
    ended.write("src/a", "2\n");
    ended.git(&["update-index", "--assume-unchanged", "src/a"]);
    ended.write("forced.o", "object");
    ended.git(&["add", "-f", "forced.o"]);
    let outside = ended.fixture.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("deep"), "secret").unwrap();
    let blob = ended.git(&["hash-object", "-w", "src/b"]);
    ended.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},out/deep")]);
    symlink(&outside, ended.tree.join("out")).unwrap();
    ended.seal();
    ended.commit();
    assert_eq!(ended.committed(), ["A forced.o", "A out", "M src/a"]);
}

#[test]
fn no_program_of_the_repository_runs() {
    let mut ended = Ended::new();
    let mark = ended.fixture.root.join("mark");
    let program = ended.fixture.root.join("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let hooks = ended.fixture.root.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "reference-transaction"] {
        fs::copy(&program, hooks.join(hook)).unwrap();
    }
    let program = program.display().to_string();
    for (key, value) in [
        ("core.fsmonitor", program.as_str()),
        ("commit.gpgsign", "true"),
        ("gpg.program", &program),
        ("filter.x.clean", &program),
        ("filter.x.required", "true"),
    ] {
        ended.fixture.git(&["config", key, value]);
    }
    ended.write(".gitattributes", "*.x filter=x\n");
    ended.write("a.x", "x\n");
    ended.write("src/a", "2\n");
    ended.seal();
    let rest = ended.commit();
    assert_eq!((ended.committed().len(), left(&rest)), (2, vec![("a.x", LeftBecause::Filter)]));
    assert!(!mark.exists(), "a program of the repository ran");
}

#[test]
fn nothing_is_committed_on_a_branch_that_the_tree_does_not_stand_on() {
    type Make = fn(&Ended);
    let detach: Make = |ended| drop(ended.git(&["checkout", "-q", "--detach"]));
    let merge: Make = |ended| {
        ended.git(&["checkout", "-q", "-b", "task/t_1x"]);
        ended.write("src/a", "3\n");
        ended.fixture.commit(&ended.tree, "theirs");
        ended.git(&["checkout", "-q", "task/t_1"]);
        ended.write("src/a", "4\n");
        ended.fixture.commit(&ended.tree, "ours");
        drop(ended.fixture.command(&ended.tree).args(["merge", "task/t_1x"]).output().unwrap());
    };
    for (make, why) in
        [(detach, "HEAD of the worktree is not on task/t_1"), (merge, "a merge is not finished")]
    {
        let mut ended = Ended::new();
        make(&ended);
        ended.write("src/b", "2\n");
        ended.seal();
        let before = ended.fixture.git(&["rev-parse", "task/t_1"]);
        let rest = ended.commit();
        assert_eq!(rest.hindrance.as_deref(), Some(why));
        assert!(left(&rest).contains(&("src/b", LeftBecause::Unasked)), "{rest:?}");
        assert_eq!(ended.fixture.git(&["rev-parse", "task/t_1"]), before);
    }
    let mut ended = Ended::new();
    ended.write("src/b", "2\n");
    ended.seal();
    let other = ended.fixture.git(&["commit-tree", "-p", "task/t_1", "-m", "other", "task/t_1^{tree}"]);
    ended.fixture.git(&["update-ref", "refs/heads/task/t_1", &other]);
    let rest = ended.commit();
    assert_eq!(rest.hindrance.as_deref(), Some("task/t_1 was moved by somebody else during the run"));
}

#[test]
fn a_commit_of_the_worker_with_the_message_of_the_supervisor_is_the_workers() {
    for sealed_before in [false, true] {
        let mut ended = Ended::new();
        ended.write(".env", "TOKEN=1\n");
        ended.fixture.commit(&ended.tree, MESSAGE);
        // The branch as the worker sees it.
        let own = ended.fixture.root.join(".git/supervisor/t_1/refs/heads/task/t_1");
        fs::write(own, ended.git(&["rev-parse", "HEAD"])).unwrap();
        ended.write("src/a", "2\n");
        ended.seal();
        if sealed_before {
            ended.span = Span { start: Some(ended.git(&["rev-parse", "HEAD"])), tip: None };
        }
        let rest = ended.commit();
        assert_eq!((rest.committed, rest.ahead), (1, 2), "{rest:?}");
        assert_eq!(ended.committed(), ["M src/a"]);
    }
    let mut ended = Ended::new();
    ended.git(&["checkout", "-q", "--detach"]);
    ended.git(&["commit", "-q", "--allow-empty", "--allow-empty-message", "-m", ""]);
    ended.seal();
    let rest = ended.worktree.rest(&ended.span, None).unwrap();
    assert_eq!(rest.hindrance.as_deref(), Some("HEAD of the worktree is not on task/t_1"));
}

#[test]
fn without_terms_changes_are_named_and_nothing_is_committed() {
    let mut ended = Ended::new();
    ended.write("src/a", "2\n");
    for n in 0..60 {
        ended.write(&format!("many/{n:02}"), "");
    }
    ended.seal();
    let rest = ended.worktree.rest(&ended.span, None).unwrap();
    assert_eq!((rest.left.len(), rest.more, rest.commit.as_deref()), (NAMED, 11, None));
    assert_eq!(rest.left[0], LeftPath { path: "many/00".to_owned(), why: LeftBecause::Unasked });
    let evidence = Evidence { uncommitted: Some(rest), ..Evidence::default() };
    let written = serde_json::to_string(&evidence).unwrap();
    assert_eq!(serde_json::from_str::<Evidence>(&written).unwrap(), evidence);
}
