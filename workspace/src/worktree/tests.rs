//! Worktrees in real repositories: made, reused, repaired, refused.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::thread;

use super::*;
use crate::code::Code;
use crate::git::GitError;
use crate::testing::Fixture;

fn prepare(worktree: &Worktree) -> Prepared {
    worktree.prepare(&Base::Head, None).unwrap()
}

fn assert_sound(fixture: &Fixture, prepared: &Prepared) {
    assert_eq!(fixture.git_in(&prepared.path, &["symbolic-ref", "HEAD"]), "refs/heads/task/t_1");
    assert_eq!(fixture.git_in(&prepared.path, &["status", "--porcelain"]), "");
    assert_eq!(fs_err::read_to_string(prepared.path.join("README")).unwrap(), "first");
    assert!(!fixture.root.join(".worktrees/.t_1.incomplete").exists());
}

#[test]
fn a_worktree_is_made_on_a_branch_of_its_own_from_head() {
    let fixture = Fixture::new();
    let prepared = prepare(&fixture.worktree("t_1"));
    let head = fixture.git(&["rev-parse", "HEAD"]);
    assert_eq!((prepared.made, prepared.kind), (Preparation::Created, Kind::Worktree));
    assert_eq!(prepared.path, fixture.root.join(".worktrees/t_1"));
    let expected = Branch { name: "task/t_1".to_owned(), base_commit: head.clone(), head_commit: head };
    assert_eq!(prepared.branch, Some(expected));
    assert_sound(&fixture, &prepared);
    assert!(fixture.git(&["worktree", "list"]).contains(".worktrees/t_1"));
}

#[test]
fn the_repository_around_a_directory_is_the_main_one_also_in_a_worktree() {
    let fixture = Fixture::new();
    let inside = fixture.root.join("src/deep");
    fs_err::create_dir_all(&inside).unwrap();
    let prepared = prepare(&fixture.worktree("t_1"));
    for path in [&fixture.root, &inside, &prepared.path] {
        assert_eq!(crate::git::discover(path), Some(fixture.root.clone()), "{}", path.display());
    }
    assert_eq!(crate::git::discover(Path::new("/proc")), None);
}

#[test]
fn the_repository_stays_clean_and_is_excluded_once() {
    let fixture = Fixture::new();
    fs_err::write(fixture.root.join(".git/info/exclude"), "*.swp").unwrap();
    prepare(&fixture.worktree("t_1"));
    prepare(&fixture.worktree("t_2"));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    let exclude = fs_err::read_to_string(fixture.root.join(".git/info/exclude")).unwrap();
    assert_eq!(exclude, "*.swp\n/.worktrees/\n");
}

#[test]
fn a_worktree_starts_from_a_parents_branch_when_told_so() {
    let fixture = Fixture::new();
    let parent = prepare(&fixture.worktree("t_parent"));
    fixture.commit(&parent.path, "by the parent");
    let tip = fixture.git(&["rev-parse", "task/t_parent"]);
    let child = fixture.worktree("t_1").prepare(&Base::Branch("task/t_parent".to_owned()), None).unwrap();
    assert_eq!(child.branch.unwrap().base_commit, tip);
}

#[test]
fn a_retry_finds_uncommitted_and_committed_work_untouched() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    let first = prepare(&worktree);
    fixture.commit(&first.path, "first try");
    fs_err::write(first.path.join("README"), "in the middle").unwrap();
    fs_err::write(first.path.join("draft"), "unsaved").unwrap();
    fixture.git_in(&first.path, &["add", "README"]);
    let second = prepare(&worktree);
    assert_eq!((second.made, second.place), (Preparation::Reused, first.place));
    assert_eq!(fixture.git_in(&second.path, &["status", "--porcelain"]), "M  README\n?? draft");
    let (before, after) = (first.branch.unwrap(), second.branch.unwrap());
    assert_eq!(after.base_commit, before.base_commit);
    assert_ne!(after.head_commit, before.head_commit);
}

#[test]
fn every_half_made_state_is_repaired() {
    type Break = fn(&Fixture, &Path, &Path);
    let states: [(&str, Break); 7] = [
        ("only the branch", |_, tree, metadata| {
            fs_err::remove_dir_all(tree).unwrap();
            fs_err::remove_dir_all(metadata).unwrap();
        }),
        ("metadata without a tree", |_, tree, _| fs_err::remove_dir_all(tree).unwrap()),
        ("an empty tree without metadata", |_, tree, metadata| {
            fs_err::remove_dir_all(tree).unwrap();
            fs_err::create_dir(tree).unwrap();
            fs_err::remove_dir_all(metadata).unwrap();
        }),
        ("empty metadata and an empty tree", |_, tree, metadata| {
            for path in [tree, metadata] {
                fs_err::remove_dir_all(path).unwrap();
                fs_err::create_dir(path).unwrap();
            }
        }),
        ("a tree half checked out", |fixture, tree, metadata| {
            fs_err::remove_file(tree.join("README")).unwrap();
            fs_err::write(tree.join("partial"), "").unwrap();
            fs_err::remove_file(metadata.join("index")).unwrap();
            fs_err::write(fixture.root.join(".worktrees/.t_1.incomplete"), "incomplete\n").unwrap();
        }),
        ("a tree without its git file, while being made", |fixture, tree, _| {
            fs_err::remove_file(tree.join(".git")).unwrap();
            fs_err::write(fixture.root.join(".worktrees/.t_1.incomplete"), "incomplete\n").unwrap();
        }),
        ("no branch and no HEAD", |fixture, tree, metadata| {
            fs_err::remove_dir_all(tree).unwrap();
            fs_err::remove_file(metadata.join("HEAD")).unwrap();
            fs_err::remove_file(fixture.root.join(".git/refs/heads/task/t_1")).unwrap();
        }),
    ];
    for (state, spoil) in states {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = prepare(&worktree).path;
        spoil(&fixture, &path, &fixture.root.join(".git/worktrees/t_1"));
        let again = worktree.prepare(&Base::Head, None).unwrap_or_else(|error| panic!("{state}: {error:?}"));
        let expected = if state == "only the branch" { Preparation::Created } else { Preparation::Repaired };
        assert_eq!(again.made, expected, "{state}");
        assert_sound(&fixture, &again);
    }
}

#[test]
fn broken_ties_are_mended_and_the_work_in_the_tree_stays() {
    type Break = fn(&Path, &Path);
    let states: [(&str, Break); 6] = [
        ("no metadata", |_, metadata| fs_err::remove_dir_all(metadata).unwrap()),
        ("no git file", |tree, _| fs_err::remove_file(tree.join(".git")).unwrap()),
        ("a git file that leads elsewhere", |tree, _| {
            fs_err::write(tree.join(".git"), "gitdir: /etc\n").unwrap();
        }),
        ("a link for a git file", |tree, _| {
            fs_err::remove_file(tree.join(".git")).unwrap();
            symlink("/etc/passwd", tree.join(".git")).unwrap();
        }),
        ("no index", |_, metadata| fs_err::remove_file(metadata.join("index")).unwrap()),
        ("locks of a killed git", |_, metadata| {
            fs_err::write(metadata.join("index.lock"), "").unwrap();
            fs_err::write(metadata.join("../../refs/heads/task/t_1.lock"), "").unwrap();
        }),
    ];
    for (state, spoil) in states {
        let fixture = Fixture::new();
        let worktree = fixture.worktree("t_1");
        let path = prepare(&worktree).path;
        fs_err::write(path.join("README"), "changed").unwrap();
        spoil(&path, &fixture.root.join(".git/worktrees/t_1"));
        let again = worktree.prepare(&Base::Head, None).unwrap_or_else(|error| panic!("{state}: {error:?}"));
        assert_eq!(again.made, Preparation::Repaired, "{state}");
        assert_eq!(fixture.git_in(&path, &["status", "--porcelain"]), "M README", "{state}");
        fixture.commit(&path, "goes on");
        assert_eq!(worktree.prepare(&Base::Head, None).unwrap().made, Preparation::Reused, "{state}");
    }
}

/// Editor of a git that waits until a file is there.
const WAITING_EDITOR: &str =
    r#"sh -c 'echo by the owner >"$1"; until [ -e "$GO_ON" ]; do sleep 0.01; done' editor"#;

#[test]
fn a_lock_of_the_owners_live_git_stays_and_the_preparation_is_refused() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    let path = prepare(&worktree).path;
    let index_lock = fixture.root.join(".git/worktrees/t_1/index.lock");
    let go_on = fixture.root.join("go-on");
    fs_err::write(path.join("README"), "changed").unwrap();
    let mut commit = fixture
        .command(&path)
        .args(["commit", "-q", "-a"])
        .env("GIT_EDITOR", WAITING_EDITOR)
        .env("GO_ON", &go_on)
        .spawn()
        .unwrap();
    while !index_lock.exists() {
        assert!(commit.try_wait().unwrap().is_none(), "git has ended without a lock");
        std::thread::yield_now();
    }
    let refused = worktree.prepare(&Base::Head, None).unwrap_err();
    assert_eq!(refused.code(), Code::WorktreeLocked);
    assert_eq!(
        refused.to_string(),
        format!("{} is held by git (process {})", index_lock.display(), commit.id())
    );
    assert!(refused.hint().unwrap().contains("the next start of the task goes on"));
    assert!(index_lock.exists());

    fs_err::write(&go_on, "").unwrap();
    assert!(commit.wait().unwrap().success());
    assert_eq!(fixture.git(&["log", "-1", "--format=%s", "task/t_1"]), "by the owner");
    assert_eq!(prepare(&worktree).made, Preparation::Reused);
}

#[test]
fn a_lock_stays_while_a_process_has_its_file_open() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    prepare(&worktree);
    let lock = fixture.root.join(".git/refs/heads/task/t_1.lock");
    let mut holder = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(fs_err::File::create(&lock).unwrap().into_file())
        .spawn()
        .unwrap();
    let refused = worktree.prepare(&Base::Head, None).unwrap_err();
    assert_eq!(refused.to_string(), format!("{} is held by cat (process {})", lock.display(), holder.id()));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(prepare(&worktree).made, Preparation::Repaired);
    assert!(!lock.exists());
}

#[test]
fn a_git_of_another_worktree_keeps_no_lock_of_this_one() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    prepare(&worktree);
    let other = prepare(&fixture.worktree("t_2")).path;
    let lock = fixture.root.join(".git/refs/heads/task/t_1.lock");
    fs_err::write(&lock, "").unwrap();
    let mut working = fixture
        .command(&other)
        .args(["cat-file", "--batch"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(prepare(&worktree).made, Preparation::Repaired);
    drop(working.stdin.take());
    working.wait().unwrap();

    fs_err::write(&lock, "").unwrap();
    let mut owners = fixture
        .command(&fixture.root)
        .args(["cat-file", "--batch"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(worktree.prepare(&Base::Head, None).unwrap_err().code(), Code::WorktreeLocked);
    drop(owners.stdin.take());
    owners.wait().unwrap();
}

#[test]
fn a_repository_that_moved_takes_its_worktrees_with_it() {
    let fixture = Fixture::new();
    let old = fixture.root.join("old");
    fixture.git(&["clone", "-q", ".", "old"]);
    prepare(&Worktree::new(&old, Name::new("t_1").unwrap()));
    let new = fixture.root.join("new");
    fs_err::rename(&old, &new).unwrap();
    let again = prepare(&Worktree::new(&new, Name::new("t_1").unwrap()));
    assert_eq!(again.made, Preparation::Repaired);
    assert_eq!(fixture.git_in(&again.path, &["status", "--porcelain"]), "");
}

#[test]
fn worktrees_of_one_repository_are_prepared_at_the_same_time() {
    let fixture = Fixture::new();
    thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|number| {
                let worktree = fixture.worktree(&format!("t_{}", number / 2));
                scope.spawn(move || worktree.prepare(&Base::Head, None))
            })
            .collect();
        for one in all {
            one.join().unwrap().unwrap();
        }
    });
    assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 5);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_is_no_usable_repository_is_refused_with_a_remedy() {
    let fixture = Fixture::without_commit();
    let refusal = |worktree: Worktree| {
        let error = worktree.prepare(&Base::Head, None).unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.code()
    };
    assert_eq!(refusal(fixture.worktree("t_1")), Code::RepositoryEmpty);
    fixture.git(&["init", "-q", "--bare", "bare"]);
    fs_err::create_dir(fixture.root.join("plain")).unwrap();
    symlink(&fixture.root, fixture.root.join("link")).unwrap();
    let at = |path: &str| Worktree::new(fixture.root.join(path), Name::new("t_1").unwrap());
    assert_eq!(refusal(at("bare")), Code::RepositoryBare);
    assert_eq!(refusal(at("plain")), Code::RepositoryMissing);
    assert_eq!(refusal(at("gone")), Code::RepositoryMissing);
    assert_eq!(refusal(at("link")), Code::WorkspaceSymlink);
    assert_eq!(refusal(Worktree::new("repo", Name::new("t_1").unwrap())), Code::WorkspacePathRelative);
}

#[test]
fn a_repository_that_borrows_objects_is_refused_until_it_has_them_itself() {
    let fixture = Fixture::new();
    fixture.git(&["clone", "-q", "--shared", ".", "borrower"]);
    let at = fixture.root.join("borrower");
    let worktree = Worktree::new(&at, Name::new("t_1").unwrap());
    assert!(matches!(crate::git::usable(&at), Err(GitError::Borrows { .. })));
    let error = worktree.prepare(&Base::Head, None).unwrap_err();
    assert!(error.to_string().contains("borrows objects from"), "{error}");
    let hint = error.hint().unwrap();
    let command = hint.split('`').nth(1).unwrap();
    assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success(), "{hint}");
    prepare(&worktree);
}

#[test]
fn branches_in_the_way_are_named() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    let base = Base::Branch("nowhere".to_owned());
    assert_eq!(worktree.prepare(&base, None).unwrap_err().code(), Code::BaseBranchMissing);
    fixture.git(&["switch", "-q", "-c", "task/t_1"]);
    let error = worktree.prepare(&Base::Head, None).unwrap_err();
    assert!(matches!(error, WorktreeError::Git(GitError::CheckedOutElsewhere { .. })), "{error}");
    let other = Fixture::new();
    other.git(&["branch", "task"]);
    let error = other.worktree("t_1").prepare(&Base::Head, None).unwrap_err();
    assert!(matches!(error, WorktreeError::Git(GitError::PrefixTaken { .. })), "{error}");
}

#[test]
fn a_worktree_of_that_name_elsewhere_is_not_taken_over() {
    let fixture = Fixture::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().canonicalize().unwrap().join("t_1");
    fixture.git(&["worktree", "add", "-q", path.to_str().unwrap()]);
    let error = fixture.worktree("t_1").prepare(&Base::Head, None).unwrap_err();
    assert!(matches!(error, WorktreeError::NameTaken { path: found, .. } if found == path));
    assert_eq!(fixture.git_in(&path, &["status", "--porcelain"]), "");
}

#[test]
fn links_planted_in_the_place_of_a_worktree_are_refused() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs_err::create_dir(fixture.root.join(".worktrees")).unwrap();
    symlink(outside.path(), fixture.root.join(".worktrees/t_1")).unwrap();
    assert_eq!(
        fixture.worktree("t_1").prepare(&Base::Head, None).unwrap_err().code(),
        Code::WorkspaceSymlink
    );
    let other = Fixture::new();
    symlink(outside.path(), other.root.join(".worktrees")).unwrap();
    assert_eq!(other.worktree("t_1").prepare(&Base::Head, None).unwrap_err().code(), Code::WorkspaceSymlink);
    assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0);
}

/// Returns every path beneath `.git` with what changes when it is written.
fn snapshot(directory: &Path, into: &mut BTreeMap<PathBuf, (u64, i64, i64)>) {
    for entry in fs_err::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = fs_err::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            snapshot(&path, into);
        }
        into.insert(path, (found.ino(), found.mtime(), found.mtime_nsec()));
    }
}

#[test]
fn a_workers_git_writes_only_where_the_grants_allow_and_as_its_profile() {
    let fixture = Fixture::new();
    let author = Author { name: "reviewer".to_owned(), email: "reviewer@supervisor".to_owned() };
    let prepared = fixture.worktree("t_1").prepare(&Base::Head, Some(&author)).unwrap();
    for granted in prepared.grants.write.iter().chain(&prepared.grants.read) {
        assert!(granted.is_dir(), "{} is granted and must exist", granted.display());
    }
    let mut before = BTreeMap::new();
    snapshot(&fixture.root.join(".git"), &mut before);

    fs_err::write(prepared.path.join("result"), "done").unwrap();
    for arguments in [
        &["add", "-A"][..],
        &["commit", "-q", "-m", "work"],
        &["commit", "-q", "--amend", "-m", "better"],
        &["reset", "-q", "--soft", "HEAD~1"],
        &["commit", "-q", "-m", "again"],
    ] {
        let status =
            fixture.command(&prepared.path).envs(&prepared.environment).args(arguments).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    let mut after = BTreeMap::new();
    snapshot(&fixture.root.join(".git"), &mut after);
    let written: Vec<_> =
        after.iter().filter(|(path, found)| before.get(*path) != Some(found)).map(|(path, _)| path).collect();
    assert!(written.iter().any(|path| path.ends_with("refs/heads/task/t_1")));
    for path in written {
        let granted = prepared.grants.write.iter().any(|granted| path.starts_with(granted));
        assert!(granted, "{} is written and not granted", path.display());
    }
    let log = fixture.git(&["log", "-1", "--format=%an %ae %cn %ce", "task/t_1"]);
    assert_eq!(log, "reviewer reviewer@supervisor reviewer reviewer@supervisor");
    assert!(!fs_err::read_to_string(fixture.root.join(".git/config")).unwrap().contains("reviewer"));
}

#[test]
fn collecting_garbage_leaves_the_granted_directories_in_place() {
    let fixture = Fixture::new();
    let prepared = prepare(&fixture.worktree("t_1"));
    let identity = |path: &PathBuf| fs_err::metadata(path).map(|found| found.ino()).ok();
    let before: Vec<_> = prepared.grants.write.iter().map(identity).collect();
    fixture.git(&["gc", "-q"]);
    assert_eq!(prepared.grants.write.iter().map(identity).collect::<Vec<_>>(), before);
    assert!(fixture.git(&["fsck", "--strict"]).is_empty());
    assert_eq!(
        fixture.git(&["for-each-ref", "--format=%(refname)", "refs/heads/task"]),
        "refs/heads/task/t_1"
    );
    fixture.commit(&prepared.path, "after the collection");
}

#[test]
fn submodules_without_files_are_named() {
    let fixture = Fixture::new();
    let url = fixture.root.display().to_string();
    for name in ["sub", "deep/other"] {
        fixture.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, name]);
    }
    fixture.commit(&fixture.root, "submodules");
    let worktree = fixture.worktree("t_1");
    let notes = prepare(&worktree).notes;
    assert!(
        notes[0].starts_with("Empty here, because they are submodules: `deep/other`, `sub`."),
        "{notes:?}"
    );
    fs_err::write(fixture.root.join(".worktrees/t_1/sub/file"), "").unwrap();
    let notes = prepare(&worktree).notes;
    assert!(notes[0].starts_with("Empty here, because they are submodules: `deep/other`."), "{notes:?}");
}

#[test]
fn files_that_a_partial_clone_does_not_have_are_named_with_the_command_that_fetches_them() {
    let fixture = Fixture::new();
    fixture.git(&["switch", "-q", "-c", "other"]);
    fs_err::write(fixture.root.join("file"), "of the other").unwrap();
    fixture.commit(&fixture.root, "other");
    fixture.git(&["switch", "-q", "main"]);
    fixture.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", fixture.root.display());
    fixture.git(&["clone", "-q", "--filter=blob:none", &url, "part"]);
    let part = fixture.root.join("part");
    fixture.git_in(&part, &["branch", "-q", "other", "origin/other"]);
    let worktree = Worktree::new(&part, Name::new("t_1").unwrap());
    let base = Base::Branch("other".to_owned());
    let error = worktree.prepare(&base, None).unwrap_err();
    assert!(error.to_string().contains("is a partial clone"), "{error:?}");
    let hint = error.hint().unwrap();
    let command = hint.split('`').nth(1).unwrap();
    assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
    let tree = worktree.prepare(&base, None).unwrap().path;
    assert_eq!(fs_err::read_to_string(tree.join("file")).unwrap(), "of the other");
}

#[test]
fn a_linked_worktree_can_itself_be_the_repository() {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "-q", "-b", "feature", "feature"]);
    let feature = fixture.root.join("feature");
    fixture.commit(&feature, "on the feature");
    let worktree = Worktree::new(&feature, Name::new("t_1").unwrap());
    let prepared = prepare(&worktree);
    assert_eq!(prepared.path, feature.join(".worktrees/t_1"));
    assert_eq!(prepared.branch.unwrap().base_commit, fixture.git(&["rev-parse", "feature"]));
    assert_eq!(fixture.git_in(&feature, &["status", "--porcelain"]), "");
    assert_eq!(prepare(&worktree).made, Preparation::Reused);
}

/// Returns true in a process that may act as other users. libgit2 reads the user's configuration: the caller's home would
/// be in the way, as it would be for a job process, so the test runs again in a process without one.
fn is_without_home(test: &str) -> bool {
    if Owner::current().uid != 0 {
        skips::skip("needs root");
        return false;
    }
    if std::env::var_os("HOME").is_some_and(|home| home == "/nonexistent") {
        return true;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("worktree::tests::{test}")])
        .env("HOME", "/nonexistent")
        .env_remove("XDG_CONFIG_HOME")
        .status();
    assert!(status.unwrap().success());
    false
}

/// Acts as a user without groups.
fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        // The kernel keeps user ids by thread; this one ends as that user.
        let user = scope.spawn(|| {
            let (uid, gid) = (rustix::process::Uid::from_raw(uid), rustix::process::Gid::from_raw(uid));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            act()
        });
        user.join().unwrap()
    })
}

fn give(path: &Path, owner: &str) {
    let status = std::process::Command::new("chown").args(["-R", owner]).arg(path).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_repository_of_another_user_is_opened_only_as_that_user() {
    if !is_without_home("a_repository_of_another_user_is_opened_only_as_that_user") {
        return;
    }
    let fixture = Fixture::new();
    give(&fixture.root, "60001:60001");
    let worktree = fixture.worktree("t_1");
    let error = worktree.prepare(&Base::Head, None).unwrap_err();
    assert_eq!(error.code(), Code::RepositoryForeignOwner);
    let prepared = as_user(60_001, || worktree.prepare(&Base::Head, None).unwrap());
    assert_eq!((prepared.made, prepared.owner.uid), (Preparation::Created, 60_001));
}

#[test]
fn a_repository_that_a_group_shares_is_refused_with_the_part_that_is_closed() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    if !is_without_home("a_repository_that_a_group_shares_is_refused_with_the_part_that_is_closed") {
        return;
    }
    let fixture = Fixture::new();
    fixture.git(&["config", "core.sharedRepository", "group"]);
    let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    give(&fixture.root, "60001:60003");
    let git = fixture.root.join(".git");
    let worktree = fixture.worktree("t_1");
    let refused = |part: &str, mode: u32| {
        let path = git.join(part);
        let before = fs_err::metadata(&path).unwrap().permissions();
        give(&path, "60002:60003");
        fs_err::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let (failure, usable) = as_user(60_001, || {
            let failure = worktree.prepare(&Base::Head, None).unwrap_err();
            let usable = crate::git::usable(&fixture.root);
            let hint = failure.hint().unwrap_or_default();
            (format!("{failure}; {hint}"), usable.map_err(|error| error.to_string()))
        });
        assert!(failure.contains(&format!("no right to {}", path.display())), "{failure}");
        assert!(failure.contains("60002:60003 (uid:gid)"), "{failure}");
        assert!(failure.contains("git clone"), "{failure}");
        give(&path, "60001:60003");
        fs_err::set_permissions(&path, before).unwrap();
        usable
    };
    let fan = format!("objects/{}", &tree[..2]);
    // Another member has made the directory of some objects. They can be read, and no other object can be added.
    assert!(refused(&fan, 0o775).is_err());
    assert!(refused("objects", 0o775).is_err());
    assert!(refused("config", 0o660).is_err());
    refused("refs/heads/main", 0o660).unwrap_or_default();
    as_user(60_001, || worktree.prepare(&Base::Head, None).unwrap());
}
