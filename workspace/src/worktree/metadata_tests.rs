//! The metadata of a worktree during a run, and its way into the repository.

use super::*;
use crate::base::Base;
use crate::testing::Fixture;
use crate::worktree::Worktree;

/// A worktree `t_1` with the private part of a run.
struct Bench {
    fixture: Fixture,
    worktree: Worktree,
    tree: PathBuf,
    own: PathBuf,
    place: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let tree = worktree.prepare(&Base::Head, None).unwrap().path;
        let git = fixture.root.join(".git");
        let (own, place) = (git.join("supervisor/t_1"), git.join("worktrees/t_1"));
        Self { fixture, worktree, tree, own, place }
    }

    /// Runs git with the directories that a run sees in the place of the repository's.
    fn git(&self, args: &[&str]) -> String {
        let git = self.fixture.root.join(".git");
        // The copy is not where the run sees it.
        fs::write(self.own.join("worktree/commondir"), format!("{}\n", git.display())).unwrap();
        let mut command = self.fixture.command(&self.tree);
        command
            .env("GIT_OBJECT_DIRECTORY", self.own.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", git.join("objects"))
            .env("GIT_DIR", self.own.join("worktree"))
            .env("GIT_WORK_TREE", &self.tree);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits with a detached HEAD, as each step of a rebase does, and stages a file.
    fn work(&self) -> String {
        self.git(&["checkout", "-q", "--detach"]);
        fs::write(self.tree.join("new"), "new").unwrap();
        self.git(&["add", "new"]);
        self.git(&["commit", "-q", "-m", "work"]);
        fs::write(self.tree.join("staged"), "staged").unwrap();
        self.git(&["add", "staged"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn repository_is_whole(&self) {
        for args in [
            &["fsck", "--full", "--no-dangling"][..],
            &["log", "--all", "--oneline"],
            &["repack", "-adq"],
            &["gc", "-q", "--prune=now"],
        ] {
            self.fixture.git(args);
        }
    }
}

#[test]
fn the_repository_is_whole_while_a_run_commits_with_a_detached_head_and_has_all_of_it_afterwards() {
    let bench = Bench::new();
    let commit = bench.work();
    bench.repository_is_whole();
    assert_eq!(bench.fixture.git_in(&bench.tree, &["symbolic-ref", "HEAD"]), "refs/heads/task/t_1");

    bench.worktree.seal().unwrap();

    assert_eq!(bench.fixture.git_in(&bench.tree, &["rev-parse", "HEAD"]), commit);
    assert_eq!(bench.fixture.git_in(&bench.tree, &["status", "--porcelain"]), "A  staged");
    bench.repository_is_whole();
    assert!(!bench.own.exists());
    let again = bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(bench.git(&["rev-parse", "HEAD"]), commit, "the next run has it too");
    assert_eq!(again.made, crate::Preparation::Reused);
}

#[test]
fn metadata_that_no_run_has_written_stays_as_its_owner_left_it() {
    let bench = Bench::new();
    bench.fixture.commit(&bench.tree, "by hand");
    fs::write(bench.tree.join("more"), "").unwrap();
    bench.fixture.git_in(&bench.tree, &["add", "more"]);
    bench.worktree.seal().unwrap();
    assert_eq!(bench.fixture.git_in(&bench.tree, &["status", "--porcelain"]), "A  more");
}

#[test]
fn an_end_that_was_interrupted_at_any_step_is_finished_by_the_next() {
    type Interrupt = fn(&Private<'_>, &Source);
    let steps: [(&str, Interrupt); 3] = [
        ("before the exchange", |private, source| {
            private.finish_copy(&private.written_metadata(), &mut Vec::new()).unwrap();
            assert!(source.common.is_dir());
        }),
        ("behind the exchange", |private, source| {
            let mut objects = private.take_objects(source).unwrap();
            private.take_metadata(source, &mut objects).unwrap();
        }),
        ("between the two steps of a file system without an exchange", |private, _| {
            private.finish_copy(&private.written_metadata(), &mut Vec::new()).unwrap();
            fs::rename(&private.links.metadata, private.replaced()).unwrap();
        }),
    ];
    for (step, interrupt) in steps {
        let bench = Bench::new();
        let commit = bench.work();
        let source = Source::open(&bench.fixture.root).unwrap();
        let links = bench.worktree.links(&source, &bench.fixture.root.join(".worktrees"));
        let private = bench.worktree.private(&links);
        private.take_objects(&source).unwrap();
        interrupt(&private, &source);
        bench.worktree.prepare(&Base::Head, None).unwrap();
        assert_eq!(bench.fixture.git_in(&bench.tree, &["rev-parse", "HEAD"]), commit, "{step}");
        assert_eq!(bench.fixture.git_in(&bench.tree, &["status", "--porcelain"]), "A  staged", "{step}");
        bench.repository_is_whole();
    }
}

#[test]
fn ties_settings_and_locks_are_the_repositorys_whatever_the_run_wrote_there() {
    let bench = Bench::new();
    bench.fixture.git(&["config", "extensions.worktreeConfig", "true"]);
    bench.worktree.seal().unwrap();
    fs::write(bench.place.join("config.worktree"), b"[user]\n\tname = \xe4nn\n").unwrap();
    bench.worktree.prepare(&Base::Head, None).unwrap();
    bench.fixture.git(&["worktree", "lock", bench.tree.to_str().unwrap()]);
    bench.work();
    let own = bench.own.join("worktree");
    for (name, text) in
        [("commondir", "/etc\n"), ("gitdir", "/etc/.git\n"), ("config.worktree", "[core]\n\tfsmonitor = x\n")]
    {
        fs::write(own.join(name), text).unwrap();
        fs::create_dir_all(own.join(format!("{name}.supervisor/in/the/way"))).unwrap();
    }
    fs::create_dir_all(own.join("locked/in/the/way")).unwrap();
    bench.worktree.seal().unwrap();
    let read = |name: &str| fs::read(bench.place.join(name)).unwrap();
    assert_eq!(read("commondir"), b"../..\n");
    assert_eq!(read("gitdir"), format!("{}/.git\n", bench.tree.display()).into_bytes());
    assert_eq!(read("config.worktree"), b"[user]\n\tname = \xe4nn\n");
    assert_eq!(read("locked"), b"");
}

#[test]
fn whatever_names_an_object_that_is_not_there_does_not_reach_the_repository() {
    let bench = Bench::new();
    let commit = bench.work();
    let own = bench.own.join("worktree");
    let gone = "12".repeat(20);
    let log = format!("{commit} {gone} a <a@b> 1 +0000\tx\n");
    let planted = [
        "ORIG_HEAD",
        "MERGE_HEAD",
        "AUTO_MERGE",
        "refs/worktree/deep/name",
        "refs/bisect/bad",
        "logs/refs/worktree/x",
        "rebase-merge/orig-head",
        "rebase-apply/autostash",
    ];
    for name in planted {
        let path = own.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, if name.starts_with("logs") { &log } else { &gone }).unwrap();
    }
    fs::write(own.join("CHERRY_PICK_HEAD"), format!("{commit}\n")).unwrap();
    let sealed = bench.worktree.seal().unwrap();
    bench.repository_is_whole();
    for name in planted {
        assert!(sealed.set_aside.contains(&bench.place.join(name)), "{name}: {sealed:?}");
        assert!(!bench.place.join(name).exists(), "{name}");
    }
    assert!(bench.place.join("CHERRY_PICK_HEAD").exists());
}

#[test]
fn a_worktree_that_its_owner_removed_during_the_run_gives_its_commits_to_the_next_preparation() {
    let bench = Bench::new();
    bench.fixture.git(&["config", "extensions.worktreeConfig", "true"]);
    let commit = bench.work();
    fs::write(bench.own.join("refs/heads/task/t_1"), format!("{commit}\n")).unwrap();
    fs::write(bench.own.join("worktree/config.worktree"), "[core]\n\tfsmonitor = x\n").unwrap();
    fs::write(bench.own.join("worktree/index.lock"), "").unwrap();
    bench.fixture.git(&["worktree", "remove", "--force", bench.tree.to_str().unwrap()]);
    bench.worktree.seal().unwrap();
    bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(bench.fixture.git(&["rev-parse", "task/t_1"]), commit);
    assert_eq!(fs::read_to_string(bench.place.join("config.worktree")).unwrap(), "");
    assert!(!bench.place.join("index.lock").exists());
}

#[test]
fn a_run_claims_no_branch_but_its_own() {
    let bench = Bench::new();
    bench.fixture.git(&["branch", "other"]);
    let commit = bench.git(&["rev-parse", "HEAD"]);
    let other = "refs/heads/other";
    for (name, text, after) in [
        ("HEAD", format!("ref: {other}\n"), format!("{commit}\n")),
        ("HEAD", "ref: refs/../../x\n".to_owned(), "ref: refs/heads/task/t_1\n".to_owned()),
        ("rebase-merge/head-name", format!("{other}{}", "\n".repeat(9000)), "detached HEAD\n".to_owned()),
        ("rebase-merge/head-name", "refs/heads/task/t_1\n".to_owned(), "refs/heads/task/t_1\n".to_owned()),
        ("BISECT_START", "other\n".to_owned(), "task/t_1\n".to_owned()),
        ("BISECT_START", format!("{commit}\n"), format!("{commit}\n")),
        ("rebase-merge/update-refs", format!("{other}\n{commit}\n{commit}\n"), String::new()),
    ] {
        let path = bench.own.join("worktree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        fs::write(bench.own.join("worktree/BISECT_LOG"), "").unwrap();
        bench.worktree.seal().unwrap();
        assert_eq!(fs::read_to_string(bench.place.join(name)).unwrap_or_default(), after, "{name}: {text}");
        bench.fixture.git(&["switch", "-q", "other"]);
        bench.fixture.git(&["switch", "-q", "main"]);
        bench.repository_is_whole();
        for left in ["rebase-merge", "BISECT_START"] {
            drop(fs::remove_dir_all(bench.place.join(left)));
            drop(fs::remove_file(bench.place.join(left)));
        }
        bench.worktree.prepare(&Base::Head, None).unwrap();
    }
    // A branch that its owner has checked out in the worktree stays.
    fs::write(bench.place.join("HEAD"), format!("ref: {other}\n")).unwrap();
    bench.worktree.prepare(&Base::Head, None).unwrap();
    fs::write(bench.own.join("worktree/ORIG_HEAD"), &commit).unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(fs::read_to_string(bench.place.join("HEAD")).unwrap(), format!("ref: {other}\n"));
}
