//! Publishing the commits of a run whose private part no honest worker would leave.

use std::path::Path;

use super::*;
use crate::release::Loss;
use crate::testing::Fixture;
use crate::worktree::{Base, Worktree};

/// A worktree `t_1` with the private part of a run.
struct Bench {
    fixture: Fixture,
    worktree: Worktree,
    path: PathBuf,
    own: PathBuf,
    /// Directory that the worker sees as `.git/worktrees/t_1`.
    metadata: PathBuf,
}

impl Bench {
    fn new() -> Self {
        Self::from_fixture(Fixture::new())
    }

    fn from_fixture(fixture: Fixture) -> Self {
        let worktree = fixture.worktree("t_1");
        let path = worktree.prepare(&Base::Head, None).unwrap().path;
        let own = fixture.root.join(".git/supervisor/t_1");
        let metadata = own.join("worktree");
        Self { fixture, worktree, path, own, metadata }
    }

    /// Returns the variables for git inside a worker: it writes new objects beside the shared ones, and its own
    /// metadata.
    fn variables(&self) -> [(&'static str, PathBuf); 4] {
        // The copy is not where the run sees it.
        let commondir = format!("{}\n", self.fixture.root.join(".git").display());
        fs_err::write(self.metadata.join("commondir"), commondir).unwrap();
        [
            ("GIT_OBJECT_DIRECTORY", self.own.join("objects")),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.fixture.root.join(".git/objects")),
            ("GIT_DIR", self.metadata.clone()),
            ("GIT_WORK_TREE", self.path.clone()),
        ]
    }

    /// Runs git as a worker does.
    fn git(&self, args: &[&str]) -> String {
        let mut command = self.fixture.command(&self.path);
        command.envs(self.variables());
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Makes a commit that adds the file `new`, on the branch that the worker sees.
    fn commit(&self) -> String {
        fs_err::write(self.path.join("new"), "new").unwrap();
        self.git(&["add", "new"]);
        let tree = self.git(&["write-tree"]);
        let commit = self.git(&["commit-tree", "-p", "HEAD", "-m", "work", &tree]);
        self.point(&commit);
        commit
    }

    fn point(&self, commit: &str) {
        fs_err::write(self.own.join("refs/heads/task/t_1"), format!("{commit}\n")).unwrap();
    }

    fn tip(&self) -> String {
        self.fixture.git(&["rev-parse", "task/t_1"])
    }

    fn object(&self, name: &str) -> PathBuf {
        self.own.join("objects").join(&name[..2]).join(&name[2..])
    }
}

#[test]
fn objects_and_branch_are_taken_over_and_nothing_private_is_left() {
    let bench = Bench::new();
    let commit = bench.commit();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
    assert!(!bench.own.exists());
    bench.fixture.git(&["fsck", "--full"]);
    assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "");
    bench.worktree.seal().unwrap();
}

#[test]
fn what_comes_into_a_repository_that_a_group_shares_is_the_groups() {
    let fixture = Fixture::new();
    fixture.git(&["config", "core.sharedRepository", "group"]);
    let bench = Bench::from_fixture(fixture);
    let commit = bench.commit();
    // As the run's own umask has it.
    let closed = std::process::Command::new("chmod").args(["-R", "go="]).arg(&bench.metadata).status();
    assert!(closed.unwrap().success());
    bench.worktree.seal().unwrap();
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = fs_err::metadata(bench.fixture.root.join(".git").join(path)).unwrap();
        format!("{:o}", meta.permissions().mode() & 0o777)
    };
    let object = format!("objects/{}", &commit[..2]);
    for path in [object.as_str(), "refs/heads/task", "logs/refs/heads/task", "worktrees"] {
        assert_eq!(mode(path), "775", "{path}");
    }
    for (path, expected) in [("", "770"), ("/index", "660"), ("/HEAD", "660")] {
        assert_eq!(mode(&format!("worktrees/t_1{path}")), expected, "{path}");
    }
    assert_eq!(mode("refs/heads/task/t_1"), "664");
    assert_eq!(mode("../.worktrees/t_1/README"), "644");
}

#[test]
fn objects_of_git_lfs_are_taken_over_if_they_are_what_their_names_say() {
    let fixture = Fixture::new();
    fixture.git(&["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    let bench = Bench::from_fixture(fixture);
    let name = hex::encode(<sha2::Sha256 as sha2::Digest>::digest("large"));
    let place = |name: &str| format!("lfs/objects/{}/{}/{name}", &name[..2], &name[2..4]);
    let other = name.chars().rev().collect::<String>();
    for (path, text) in [(place(&name), "large"), (place(&other), "forged"), ("lfs/tmp/1".to_owned(), "half")]
    {
        let path = bench.own.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    bench.worktree.seal().unwrap();
    let shared = bench.fixture.root.join(".git");
    assert_eq!(fs_err::read_to_string(shared.join(place(&name))).unwrap(), "large");
    assert!(!shared.join(place(&other)).exists() && !shared.join("lfs/tmp/1").exists());
}

#[test]
fn a_commit_of_a_run_of_which_something_is_missing_is_in_no_later_run_either() {
    let bench = Bench::new();
    let commit = bench.commit();
    let tree = bench.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    let next = bench.git(&["commit-tree", "-p", &commit, "-m", "next", &tree]);
    // Left beside the branch, on which nothing is missing.
    bench.point(&bench.git(&["rev-parse", "main"]));
    fs_err::remove_file(bench.object(&tree)).unwrap();
    bench.worktree.seal().unwrap();
    for missing in [&commit, &next, &tree] {
        assert!(!bench.fixture.has_object(missing), "{missing}");
    }
    bench.worktree.prepare(&Base::Head, None).unwrap();
    bench.point(&next);
    assert!(matches!(bench.worktree.seal(), Err(WorktreeError::Incomplete { .. })));
    bench.fixture.git(&["fsck", "--full", "--strict"]);
    bench.fixture.git(&["gc", "-q", "--prune=now"]);
}

#[test]
fn the_commits_of_a_run_are_on_its_branch_also_if_its_worktree_was_removed_or_moved() {
    for words in [&["remove", "--force"][..], &["move"]] {
        let bench = Bench::new();
        let commit = bench.commit();
        let elsewhere = bench.fixture.root.join("elsewhere");
        let (tree, elsewhere) = (bench.path.to_str().unwrap(), elsewhere.to_str().unwrap());
        let to = (words.len() == 1).then_some(elsewhere);
        bench.fixture.git(&[&["worktree"], words, &[tree], to.as_slice()].concat());
        let sealed = bench.worktree.seal().unwrap();
        assert_eq!((bench.tip(), sealed.tip), (commit.clone(), Some(commit)));
        assert!(sealed.not_kept.unwrap().contains("was removed or moved"));
        assert!(!bench.own.exists());
        if words == ["move"] {
            let moved = Path::new(elsewhere);
            assert_eq!(bench.fixture.git_in(moved, &["status", "--porcelain"]), "");
        }
        bench.fixture.git(&["fsck", "--full"]);
        bench.fixture.git(&["gc", "-q", "--prune=now"]);
    }
}

#[test]
fn the_commits_of_a_detached_head_are_kept_if_the_worktree_was_removed_or_moved() {
    for words in [&["remove", "--force"][..], &["move"]] {
        for is_sealed in [true, false] {
            let bench = Bench::new();
            let commit = bench.commit();
            let adrift = bench.git(&["commit-tree", "-p", &commit, "-m", "adrift", "HEAD^{tree}"]);
            fs_err::write(bench.metadata.join("HEAD"), format!("{adrift}\n")).unwrap();
            let elsewhere = bench.fixture.root.join("elsewhere");
            let (tree, elsewhere) = (bench.path.to_str().unwrap(), elsewhere.to_str().unwrap());
            let to = (words.len() == 1).then_some(elsewhere);
            bench.fixture.git(&[&["worktree"], words, &[tree], to.as_slice()].concat());
            if is_sealed {
                let sealed = bench.worktree.seal().unwrap();
                assert!(sealed.not_kept.unwrap().contains("task/t_1 and refs/supervisor/t_1"));
            } else {
                // A preparation refuses a worktree that is elsewhere, after it has taken the commits over.
                drop(bench.worktree.prepare(&Base::Head, None));
            }
            assert_eq!(bench.tip(), commit);
            assert_eq!(bench.fixture.git(&["rev-parse", "refs/supervisor/t_1"]), adrift);
        }
    }
}

#[test]
fn a_worktree_that_its_owner_has_moved_is_not_removed_with_its_task() {
    for loss in [Loss::Refuse, Loss::KeepBranch, Loss::Accept] {
        for is_sealed in [true, false] {
            let bench = Bench::new();
            bench.fixture.git(&["worktree", "move", bench.path.to_str().unwrap(), "elsewhere"]);
            let moved = bench.fixture.root.join("elsewhere");
            if is_sealed {
                bench.worktree.seal().unwrap();
            }
            bench.fixture.git_in(&moved, &["checkout", "-q", "--detach"]);
            bench.fixture.commit(&moved, "of the owner");
            bench.worktree.remove(loss).unwrap();
            let summary = bench.fixture.git_in(&moved, &["log", "-1", "--format=%s"]);
            assert_eq!(summary, "of the owner", "{loss:?}");
        }
    }
}

#[test]
fn commits_that_another_process_made_on_the_head_of_the_worktree_are_kept() {
    let bench = Bench::new();
    bench.fixture.git_in(&bench.path, &["checkout", "-q", "--detach"]);
    bench.fixture.commit(&bench.path, "of the owner");
    let owners = bench.fixture.git_in(&bench.path, &["rev-parse", "HEAD"]);
    let commit = bench.commit();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
    assert_eq!(bench.fixture.git(&["rev-parse", "refs/supervisor/t_1"]), owners);
}

#[test]
fn commits_of_a_detached_head_that_a_later_run_leaves_are_kept() {
    let bench = Bench::new();
    let commit = bench.commit();
    let main = bench.fixture.git(&["rev-parse", "main"]);
    bench.point(&main);
    fs_err::write(bench.metadata.join("HEAD"), format!("{commit}\n")).unwrap();
    bench.worktree.seal().unwrap();
    bench.worktree.prepare(&Base::Head, None).unwrap();
    // A run that goes on from them leaves nothing.
    let next = bench.git(&["commit-tree", "-p", &commit, "-m", "next", "HEAD^{tree}"]);
    fs_err::write(bench.metadata.join("HEAD"), format!("{next}\n")).unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.fixture.git(&["for-each-ref", "refs/supervisor"]), "");
    bench.worktree.prepare(&Base::Head, None).unwrap();
    fs_err::write(bench.metadata.join("HEAD"), "ref: refs/heads/task/t_1\n").unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.fixture.git(&["rev-parse", "refs/supervisor/t_1"]), next);
}

#[test]
fn locks_that_a_run_leaves_stop_no_git_of_the_owner() {
    let bench = Bench::new();
    bench.commit();
    for directory in ["HEAD.lock", "index.lock", "refs/bisect/x.lock"] {
        fs_err::create_dir_all(bench.metadata.join(directory)).unwrap();
    }
    for file in ["logs/HEAD.lock", "refs/worktree/x.lock"] {
        let path = bench.metadata.join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "").unwrap();
    }
    bench.worktree.seal().unwrap();
    bench.fixture.git(&["gc", "-q", "--prune=now"]);
    bench.fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    bench.fixture.commit(&bench.path, "of the owner");
}

#[test]
fn commits_beside_the_branch_do_not_displace_those_of_an_earlier_run() {
    let bench = Bench::new();
    let mut kept = Vec::new();
    for n in ["first", "second"] {
        kept.push(bench.commit());
        let others = bench.fixture.git(&["commit-tree", "-p", "main", "-m", n, "main^{tree}"]);
        bench.fixture.git(&["update-ref", "refs/heads/task/t_1", &others]);
        assert!(matches!(bench.worktree.seal(), Err(WorktreeError::Moved { .. })));
        assert_eq!(bench.tip(), others);
        bench.worktree.prepare(&Base::Head, None).unwrap();
    }
    let named = bench.fixture.git(&["for-each-ref", "--format=%(objectname)", "refs/supervisor"]);
    assert_eq!(named.lines().collect::<Vec<_>>(), kept);
}

#[test]
fn a_branch_that_is_locked_at_the_end_of_the_run_has_its_commits_at_the_next() {
    let bench = Bench::new();
    let commit = bench.commit();
    let stash = bench.git(&["commit-tree", "-p", &commit, "-m", "stash", "HEAD^{tree}"]);
    fs_err::write(bench.own.join("refs/stash"), format!("{stash}\n")).unwrap();
    fs_err::write(bench.fixture.root.join(".git/refs/heads/task/t_1.lock"), "").unwrap();
    assert!(matches!(bench.worktree.seal(), Err(WorktreeError::Store { .. })));
    bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(bench.tip(), commit);
    assert_eq!(bench.fixture.git(&["rev-parse", "refs/stashes/t_1/0"]), stash);
}

#[test]
fn a_branch_that_is_locked_for_a_moment_is_moved() {
    let bench = Bench::new();
    let commit = bench.commit();
    let lock = bench.fixture.root.join(".git/refs/heads/task/t_1.lock");
    fs_err::write(&lock, "").unwrap();
    std::thread::scope(|scope| {
        let sealing = scope.spawn(|| bench.worktree.seal().unwrap());
        // The objects come before the branch.
        while !bench.fixture.has_object(&commit) {
            std::thread::yield_now();
        }
        fs_err::remove_file(&lock).unwrap();
        sealing.join().unwrap();
    });
    assert_eq!(bench.tip(), commit);
}

#[test]
fn a_worktree_that_its_owner_has_removed_is_told_from_a_result_also_if_files_are_left() {
    for words in [&["remove", "--force"][..], &["prune"]] {
        let bench = Bench::new();
        let commit = bench.commit();
        let aside = bench.fixture.root.join("aside");
        if words == ["prune"] {
            fs_err::rename(&bench.path, &aside).unwrap();
            bench.fixture.git(&["worktree", "prune"]);
            fs_err::rename(&aside, &bench.path).unwrap();
        } else {
            bench.fixture.git(&[&["worktree"], words, &[bench.path.to_str().unwrap()]].concat());
            fs_err::create_dir(&bench.path).unwrap();
            fs_err::write(bench.path.join("left"), "").unwrap();
        }
        let sealed = bench.worktree.seal().unwrap();
        assert!(sealed.is_removed, "{words:?}");
        assert_eq!(bench.tip(), commit);
    }
    let bench = Bench::new();
    bench.commit();
    assert!(!bench.worktree.seal().unwrap().is_removed);
}

#[test]
fn a_head_on_any_other_branch_of_the_run_is_detached_at_its_commit() {
    for name in ["task/other", "task/other/deep", "task/packed"] {
        let bench = Bench::new();
        let commit = bench.commit();
        bench.point(&bench.git(&["rev-parse", "main"]));
        fs_err::write(bench.metadata.join("HEAD"), format!("ref: refs/heads/{name}\n")).unwrap();
        if name == "task/packed" {
            let packed = bench.own.join("packed/packed-refs");
            fs_err::write(packed, format!("{commit} refs/heads/{name}\n")).unwrap();
        } else {
            let path = bench.own.join("refs/heads").join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, format!("{commit}\n")).unwrap();
        }
        bench.worktree.seal().unwrap();
        assert_eq!(bench.fixture.git_in(&bench.path, &["rev-parse", "HEAD"]), commit, "{name}");
    }
}

#[test]
fn a_branch_that_names_another_one_is_where_that_one_is() {
    let bench = Bench::new();
    let commit = bench.commit();
    let heads = bench.own.join("refs/heads/task");
    fs_err::rename(heads.join("t_1"), heads.join("other")).unwrap();
    fs_err::write(heads.join("t_1"), "ref: refs/heads/task/other\n").unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
    bench.worktree.prepare(&Base::Head, None).unwrap();
    fs_err::write(heads.join("t_1"), "ref: refs/heads/task/t_1\n").unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
}

#[test]
fn tags_and_stashes_that_a_run_has_packed_come_home() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "of-the-owner"]);
    let bench = Bench::from_fixture(fixture);
    let commit = bench.commit();
    let packed = bench.own.join("packed/packed-refs");
    let text = fs_err::read_to_string(&packed).unwrap();
    let more = format!("{commit} refs/stash\n{commit} refs/tags/v1\n");
    fs_err::write(&packed, text + &more).unwrap();
    bench.worktree.seal().unwrap();
    let names = bench.fixture.git(&["for-each-ref", "--format=%(refname)", "refs/tags", "refs/stashes"]);
    assert_eq!(names, "refs/stashes/t_1/0\nrefs/tags/of-the-owner\nrefs/tags/task/t_1/v1");
}

#[test]
fn a_run_that_was_not_sealed_is_by_the_next_preparation() {
    let bench = Bench::new();
    let commit = bench.commit();
    let prepared = bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(prepared.branch.unwrap().head_commit, commit);
    assert_eq!(bench.tip(), commit);
}

#[test]
fn a_branch_that_was_packed_is_found() {
    let bench = Bench::new();
    let commit = bench.commit();
    fs_err::remove_file(bench.own.join("refs/heads/task/t_1")).unwrap();
    let line = format!("# pack-refs with: sorted \n{commit} refs/heads/task/t_1\n");
    fs_err::write(bench.own.join("packed/packed-refs"), line).unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
}

#[test]
fn a_commit_of_which_something_is_missing_does_not_become_the_branchs() {
    let bench = Bench::new();
    let before = bench.tip();
    bench.commit();
    let blob = bench.git(&["rev-parse", ":new"]);
    fs_err::remove_file(bench.object(&blob)).unwrap();
    let error = bench.worktree.seal().unwrap_err();
    assert!(matches!(&error, WorktreeError::Incomplete { object, .. } if *object == blob), "{error}");
    assert_eq!(bench.tip(), before);
    bench.worktree.prepare(&Base::Head, None).unwrap();
}

#[test]
fn what_names_objects_that_are_not_there_does_not_stop_the_repositorys_own_git() {
    let bench = Bench::new();
    let commit = bench.commit();
    let own = &bench.metadata;
    fs_err::write(own.join("HEAD"), format!("{commit}\n")).unwrap();
    fs_err::create_dir_all(own.join("logs")).unwrap();
    fs_err::write(own.join("logs/HEAD"), format!("{} {commit} a <a@b> 1 +0000\tx\n", "0".repeat(40)))
        .unwrap();
    fs_err::remove_dir_all(bench.own.join("objects")).unwrap();
    fs_err::create_dir(bench.own.join("objects")).unwrap();
    assert!(bench.worktree.seal().is_err());
    bench.fixture.git(&["fsck", "--full"]);
    bench.fixture.git(&["gc", "-q", "--prune=now"]);
    bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "?? new");
}

#[test]
fn a_tip_that_is_no_commit_or_holds_a_git_directory_is_refused() {
    let bench = Bench::new();
    let before = bench.tip();
    let tree = bench.git(&["rev-parse", "HEAD^{tree}"]);
    bench.point(&tree);
    assert!(matches!(bench.worktree.seal(), Err(WorktreeError::Incomplete { .. })));
    bench.worktree.prepare(&Base::Head, None).unwrap();
    let script = "printf '040000 tree %s\\t.git\\n' $(git rev-parse HEAD^{tree}) | git mktree | xargs git commit-tree -m x";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).current_dir(&bench.path);
    shell.envs(bench.variables());
    let commit = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    bench.point(commit.trim());
    let error = bench.worktree.seal().unwrap_err();
    assert!(error.to_string().contains("refuses to check out"), "{error}");
    assert_eq!(bench.tip(), before);
}

#[test]
fn objects_that_git_stops_at_do_not_reach_the_repository_whatever_names_them() {
    let raw = |kind: &str, data: &[u8]| {
        let bench = Bench::new();
        let file = bench.path.join("raw");
        fs_err::write(&file, data).unwrap();
        let object = bench.git(&["hash-object", "-t", kind, "--literally", "-w", "raw"]);
        fs_err::remove_file(file).unwrap();
        (bench, object)
    };
    let known = Fixture::new();
    let [tree, blob] = ["HEAD^{tree}", "HEAD:README"].map(|name| known.git(&["rev-parse", name]));
    let entry = |mode: &str, id: &str| [format!("{mode} x\0").as_bytes(), &hex::decode(id).unwrap()].concat();
    let people = "author a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n";
    for (kind, data, why) in [
        ("tree", entry("100644", &tree), "names an object of another kind"),
        ("tree", entry("40000", &blob), "names an object of another kind"),
        ("commit", format!("tree {blob}\n{people}").into_bytes(), "names an object of another kind"),
        ("commit", format!("tree {tree}\nparent {tree}\n{people}").into_bytes(), "of another kind"),
        ("commit", format!("tree {tree}\n\n").into_bytes(), "has not the form"),
        ("tag", format!("object {blob}\ntype commit\ntag v1\n\n").into_bytes(), "of another kind"),
        ("commit", format!("tree {}\n{people}", "12".repeat(20)).into_bytes(), "is missing"),
    ] {
        let (bench, object) = raw(kind, &data);
        // Named by the branch, by a tag, and by the metadata.
        let tip = if kind == "tree" {
            bench.git(&["commit-tree", "-m", "x", &object, "-p", "HEAD"])
        } else {
            object.clone()
        };
        bench.point(&tip);
        fs_err::write(bench.own.join("refs/tags/v1"), &tip).unwrap();
        if kind == "commit" {
            fs_err::write(bench.metadata.join("HEAD"), &tip).unwrap();
        }
        let log = format!("{tip} {tip} a <a@b> 1 +0000\tx\n");
        fs_err::create_dir_all(bench.metadata.join("logs")).unwrap();
        fs_err::write(bench.metadata.join("logs/HEAD"), log).unwrap();
        let error = bench.worktree.seal().unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(bench.fixture.git(&["tag"]), "");
        bench.fixture.git(&["log", "--all", "--oneline"]);
        bench.fixture.git(&["fsck", "--full", "--no-dangling"]);
        bench.fixture.git(&["gc", "-q"]);
        bench.fixture.git(&["gc", "-q", "--prune=now"]);
        bench.worktree.prepare(&Base::Head, None).unwrap();
    }
}

#[test]
fn an_unreadable_object_costs_only_what_names_it() {
    let bench = Bench::new();
    fs_err::write(bench.path.join("lost"), "lost").unwrap();
    let lost = bench.git(&["hash-object", "-w", "lost"]);
    let commit = bench.commit();
    let object = bench.object(&lost);
    fs_err::remove_file(&object).unwrap();
    // As a host leaves it that lost its power.
    fs_err::write(&object, "").unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), commit);
}

#[test]
fn a_fifo_among_the_objects_is_named_and_no_later_run_waits_for_it() {
    let bench = Bench::new();
    let commit = bench.commit();
    let object = bench.object(&commit);
    fs_err::remove_file(&object).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, &object, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = bench.worktree.seal().unwrap_err();
    assert!(error.to_string().contains(&object.display().to_string()), "{error}");
    bench.worktree.prepare(&Base::Head, None).unwrap();
}

#[test]
fn a_fifo_in_the_place_of_head_or_index_is_removed() {
    let bench = Bench::new();
    for name in ["HEAD", "index"] {
        let path = bench.fixture.root.join(".git/worktrees/t_1").join(name);
        fs_err::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    bench.worktree.prepare(&Base::Head, None).unwrap();
    assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_somebody_else_moved_is_not_overwritten_and_the_runs_commits_are_kept() {
    let bench = Bench::new();
    let commit = bench.commit();
    bench.fixture.git(&["commit", "-q", "--allow-empty", "-m", "theirs"]);
    bench.fixture.git(&["update-ref", "refs/heads/task/t_1", "main"]);
    let theirs = bench.tip();
    let error = bench.worktree.seal().unwrap_err();
    assert!(matches!(error, WorktreeError::Moved { .. }), "{error}");
    assert_eq!(bench.tip(), theirs);
    assert_eq!(bench.fixture.git(&["rev-parse", "refs/supervisor/t_1"]), commit);
}

#[test]
fn commits_on_another_branch_of_the_workers_stay_the_worktrees() {
    let bench = Bench::new();
    let commit = bench.commit();
    let before = bench.tip();
    let heads = bench.own.join("refs/heads/task");
    fs_err::rename(heads.join("t_1"), heads.join("other")).unwrap();
    fs_err::write(bench.metadata.join("HEAD"), "ref: refs/heads/task/other\n").unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(bench.tip(), before);
    assert_eq!(bench.fixture.git_in(&bench.path, &["rev-parse", "HEAD"]), commit);
    assert_eq!(bench.worktree.status().unwrap().detached, 1);
}

#[test]
fn what_a_worker_made_of_the_git_file_and_of_submodules_is_put_right() {
    let bench = Bench::new();
    let tree = &bench.path;
    fs_err::remove_file(tree.join(".git")).unwrap();
    for repository in ["", "sub"] {
        let at = tree.join(repository);
        fs_err::create_dir_all(&at).unwrap();
        bench.fixture.git_in(&at, &["init", "-q"]);
    }
    bench.fixture.git_in(&tree.join("sub"), &["commit", "-q", "--allow-empty", "-m", "sub"]);
    let commit = bench.fixture.git_in(&tree.join("sub"), &["rev-parse", "HEAD"]);
    let entry = format!("160000,{commit},sub");
    let own = bench.fixture.root.join(".git/worktrees/t_1");
    let mut add = bench.fixture.command(tree);
    add.env("GIT_DIR", &own).env("GIT_WORK_TREE", tree).args([
        "update-index",
        "--add",
        "--cacheinfo",
        &entry,
    ]);
    assert!(add.status().unwrap().success());
    let sealed = bench.worktree.seal().unwrap();
    assert_eq!(sealed.set_aside, [tree.join("sub/.git")]);
    for repository in ["", "sub"] {
        assert!(tree.join(repository).join(".git.untrusted").is_dir());
    }
    assert!(tree.join(".git").is_file() && !tree.join("sub/.git").exists());
    assert_eq!(bench.fixture.git_in(tree, &["rev-parse", "--git-dir"]), own.display().to_string());
}

#[test]
fn an_index_that_cannot_be_read_is_removed_and_made_again() {
    let bench = Bench::new();
    let index = bench.fixture.root.join(".git/worktrees/t_1/index");
    bench.git(&["update-index", "--split-index"]);
    let commit = bench.commit();
    assert_eq!(bench.worktree.seal().unwrap().set_aside, std::slice::from_ref(&index));
    assert_eq!(bench.tip(), commit);
    assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "");
    bench.worktree.prepare(&Base::Head, None).unwrap();
    fs_err::remove_file(bench.metadata.join("index")).unwrap();
    fs_err::write(bench.path.join("README"), "second").unwrap();
    assert_eq!(bench.worktree.seal().unwrap().set_aside, Vec::<PathBuf>::new());
    assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "M README");
}

#[test]
fn git_writes_through_no_link_that_a_worker_planted() {
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    for name in ["index", "HEAD", "logs/HEAD", "ORIG_HEAD"] {
        let bench = Bench::new();
        fs_err::write(&precious, "precious").unwrap();
        let own = bench.fixture.root.join(".git/worktrees/t_1").join(name);
        fs_err::create_dir_all(own.parent().unwrap()).unwrap();
        drop(fs_err::remove_file(&own));
        std::os::unix::fs::symlink(&precious, &own).unwrap();
        // First as after a crash, then as after an end.
        bench.worktree.prepare(&Base::Head, None).unwrap();
        drop(fs_err::remove_file(&own));
        std::os::unix::fs::symlink(&precious, &own).unwrap();
        bench.worktree.seal().unwrap();
        bench.worktree.prepare(&Base::Head, None).unwrap();
        assert_eq!(fs_err::read_to_string(&precious).unwrap(), "precious", "{name}");
        assert_eq!(bench.fixture.git_in(&bench.path, &["status", "--porcelain"]), "");
    }
}

#[test]
fn the_objects_of_another_repository_are_not_taken_over_by_a_link_to_them() {
    let foreign = Fixture::new();
    foreign.commit(&foreign.root, "hers");
    foreign.git(&["gc", "-q"]);
    let hers = foreign.git(&["rev-parse", "HEAD"]);
    let bench = Bench::new();
    let pack = bench.own.join("objects/pack");
    fs_err::remove_dir(&pack).unwrap();
    std::os::unix::fs::symlink(foreign.root.join(".git/objects/pack"), &pack).unwrap();
    let error = bench.worktree.seal().unwrap_err();
    assert!(matches!(&error, WorktreeError::Planted { .. }), "{error}");
    let mut look = bench.fixture.command(&bench.fixture.root);
    assert!(!look.args(["cat-file", "-e", &hers]).output().unwrap().status.success());
}

#[test]
fn tags_and_stashes_come_home_and_the_next_run_has_them_as_they_were() {
    let bench = Bench::new();
    let commit = bench.commit();
    let stashes = ["one", "two"].map(|text| {
        fs_err::write(bench.path.join("README"), text).unwrap();
        bench.git(&["stash", "create", text])
    });
    let own = |name: &str| bench.own.join(name);
    fs_err::create_dir_all(own("refs/tags/release")).unwrap();
    for name in ["v1", "release/v2"] {
        fs_err::write(own("refs/tags").join(name), format!("{commit}\n")).unwrap();
    }
    let line = |from: &str, to: &str| format!("{from} {to} a <a@b> 1 +0000\tkept\n");
    let log = line(&"0".repeat(40), &stashes[0]) + &line(&stashes[0], &stashes[1]);
    fs_err::write(own("logs/refs/stash"), log).unwrap();
    fs_err::write(own("refs/stash"), format!("{}\n", stashes[1])).unwrap();

    bench.worktree.seal().unwrap();

    let names =
        |pattern: &str| bench.fixture.git(&["for-each-ref", "--format=%(refname) %(objectname)", pattern]);
    let tags = format!("refs/tags/task/t_1/release/v2 {commit}\nrefs/tags/task/t_1/v1 {commit}");
    assert_eq!(names("refs/tags"), tags);
    let kept = format!("refs/stashes/t_1/0 {}\nrefs/stashes/t_1/1 {}", stashes[1], stashes[0]);
    assert_eq!(names("refs/stashes"), kept);
    bench.fixture.git(&["fsck", "--full"]);

    bench.worktree.prepare(&Base::Head, None).unwrap();

    assert_eq!(fs_err::read_to_string(own("refs/tags/release/v2")).unwrap().trim(), commit);
    assert_eq!(fs_err::read_to_string(own("refs/stash")).unwrap().trim(), stashes[1]);
    let log = fs_err::read_to_string(own("logs/refs/stash")).unwrap();
    let newer: Vec<&str> = log.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(newer, [stashes[0].as_str(), stashes[1].as_str()]);

    // What it removes then is removed.
    fs_err::remove_file(own("refs/tags/v1")).unwrap();
    fs_err::remove_file(own("refs/stash")).unwrap();
    bench.worktree.seal().unwrap();
    assert_eq!(names("refs/tags"), format!("refs/tags/task/t_1/release/v2 {commit}"));
    assert_eq!(names("refs/stashes"), "");
}

#[test]
fn a_tag_of_what_is_not_there_is_not_kept_and_the_branch_moves_all_the_same() {
    let bench = Bench::new();
    let commit = bench.commit();
    fs_err::write(bench.own.join("refs/tags/bad"), format!("{}\n", "12".repeat(20))).unwrap();
    let sealed = bench.worktree.seal().unwrap();
    assert!(sealed.not_kept.is_some_and(|why| why.contains("is missing")));
    assert_eq!(bench.tip(), commit);
    assert_eq!(bench.fixture.git(&["tag"]), "");
    bench.worktree.prepare(&Base::Head, None).unwrap();
    for n in 0..300 {
        fs_err::write(bench.own.join(format!("refs/tags/v{n}")), format!("{commit}\n")).unwrap();
    }
    let sealed = bench.worktree.seal().unwrap();
    assert!(sealed.not_kept.is_some_and(|why| why.contains("44 are left out")));
    assert_eq!(bench.fixture.git(&["tag"]).lines().count(), 256);
}
