//! The diff of real repositories, beside what git itself says of them.

use fs_err as fs;

use super::diff::{Detail, Diff, DiffOf, FileStatus, LineKind, diff};
use crate::testing::Fixture;

fn diff_of(fixture: &Fixture, base: &str, end: Option<&str>, detail: Detail) -> Diff {
    let path = fixture.root.clone();
    let of = DiffOf { path, base: Some(base.to_owned()), end: end.map(str::to_owned), detail };
    diff(&of, None, None).unwrap()
}

fn head(fixture: &Fixture) -> String {
    fixture.git(&["rev-parse", "HEAD"])
}

#[test]
fn files_hunks_and_lines_are_those_of_git_whether_they_are_committed_or_not() {
    let fixture = Fixture::new();
    let write = |name: &str, text: &str| fs::write(fixture.root.join(name), text).unwrap();
    write("kept", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    write("gone", "x\n");
    write("old name", "a\nb\nc\nd\ne\nf\n");
    write("binary", "\0\u{1}\u{2}");
    fixture.commit(&fixture.root, "before");
    let base = head(&fixture);
    write("kept", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    fs::remove_file(fixture.root.join("gone")).unwrap();
    fs::rename(fixture.root.join("old name"), fixture.root.join("new name")).unwrap();
    fixture.commit(&fixture.root, "mine");
    write("binary", "\0other");
    fs::create_dir(fixture.root.join("new")).unwrap();
    write("new/file", "first\nsecond");

    let found = diff_of(&fixture, &base, None, Detail::Lines);
    assert_eq!((found.base.as_deref(), found.head), (Some(base.as_str()), Some(head(&fixture))));
    let changes: Vec<_> =
        found.files.iter().map(|f| (f.path.as_str(), f.status, f.binary, f.additions, f.deletions)).collect();
    assert_eq!(
        changes,
        [
            ("binary", FileStatus::Modified, true, 0, 0),
            ("gone", FileStatus::Deleted, false, 0, 1),
            ("kept", FileStatus::Modified, false, 1, 1),
            ("new name", FileStatus::Renamed, false, 0, 0),
            ("new/file", FileStatus::Added, false, 2, 0),
        ]
    );
    assert_eq!(found.files[3].old_path.as_deref(), Some("old name"));
    let hunk = &found.files[2].hunks[0];
    assert_eq!(hunk.header, "@@ -2,7 +2,7 @@");
    let lines: Vec<_> =
        hunk.lines.iter().map(|line| (line.kind.as_str(), line.old, line.new, line.text.as_str())).collect();
    assert_eq!(
        lines[2..6],
        [
            (" ", Some(4), Some(4), "4"),
            ("-", Some(5), None, "5"),
            ("+", None, Some(5), "five"),
            (" ", Some(6), Some(6), "6"),
        ]
    );
    assert!(!found.truncated);

    let committed = diff_of(&fixture, &base, Some(&head(&fixture)), Detail::Counts);
    let changes: Vec<_> =
        committed.files.iter().map(|f| (f.path.as_str(), f.additions, f.hunks.len())).collect();
    assert_eq!(changes, [("gone", 0, 0), ("kept", 1, 0), ("new name", 0, 0)]);
}

#[test]
fn what_is_more_than_somebody_reads_is_left_out_and_said() {
    let fixture = Fixture::new();
    let base = head(&fixture);
    let write = |name: &str, text: &str| fs::write(fixture.root.join(name), text).unwrap();
    write("huge", &"x\n".repeat(1 << 20));
    write("long", &"word\n".repeat(9000));
    write("wide", &"y".repeat(10_000));
    let found = diff_of(&fixture, &base, None, Detail::Lines);
    let changes: Vec<_> = found
        .files
        .iter()
        .map(|f| {
            (f.path.as_str(), f.truncated, f.binary, f.hunks.iter().map(|h| h.lines.len()).sum::<usize>())
        })
        .collect();
    assert_eq!(changes, [("huge", true, false, 0), ("long", true, false, 5000), ("wide", false, false, 1)]);
    assert_eq!(found.files[2].hunks[0].lines[0].text.chars().count(), 2001);
    assert!(found.truncated);

    for n in 0..400 {
        write(&format!("file {n:03}"), &"z".repeat(1000));
    }
    let many = diff_of(&fixture, &base, None, Detail::Counts);
    assert_eq!((many.files.len(), many.truncated), (300, true));
}

#[test]
fn a_diff_of_many_large_files_stays_below_its_bytes() {
    let fixture = Fixture::new();
    let base = head(&fixture);
    for n in 0..30 {
        fs::write(fixture.root.join(format!("f{n}")), format!("{}\n", "q".repeat(1500)).repeat(300)).unwrap();
    }
    let found = diff_of(&fixture, &base, None, Detail::Lines);
    let bytes: usize =
        found.files.iter().flat_map(|f| &f.hunks).flat_map(|h| &h.lines).map(|line| line.text.len()).sum();
    assert!(bytes <= 2 << 20 && found.truncated && found.files.len() == 30, "{bytes}");
}

#[test]
fn the_work_of_a_run_that_goes_on_is_read_from_its_own_objects() {
    let fixture = Fixture::new();
    let worktree = fixture.worktree("t_1");
    let prepared = worktree.prepare(&crate::Base::Head, None).unwrap();
    let base = prepared.branch.unwrap().head_commit;
    fs::write(prepared.path.join("new"), "mine\n").unwrap();
    let own = worktree.own_objects().unwrap();
    // As the run sees it: its new objects go into a directory of its own.
    let git = |args: &[&str]| {
        let mut command = fixture.command(&prepared.path);
        command.env("GIT_OBJECT_DIRECTORY", &own);
        let shared = fixture.root.join(".git/objects");
        let output = command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", shared).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "new"]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", "-m", "new", "-p", &base, &tree]);
    fs::write(worktree.own_branch().unwrap(), format!("{commit}\n")).unwrap();
    let of = DiffOf { path: prepared.path, base: Some(base.clone()), end: None, detail: Detail::Lines };
    let found = crate::live_diff::live_diff(&worktree, &of).unwrap();
    assert_eq!((found.base, found.head), (Some(base), Some(commit)));
    assert_eq!((found.files.len(), found.files[0].hunks[0].lines[0].kind), (1, LineKind::Added));
}

/// A repository with two files, and its commit.
fn two_files() -> (Fixture, String) {
    let fixture = Fixture::new();
    fs::write(fixture.root.join("seen"), "1\n").unwrap();
    fs::write(fixture.root.join("hidden"), "1\n").unwrap();
    fixture.commit(&fixture.root, "before");
    let base = head(&fixture);
    (fixture, base)
}

fn paths(diff: &Diff) -> Vec<&str> {
    diff.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn what_the_index_hides_is_shown_all_the_same() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let (fixture, base) = two_files();
        fixture.git(&["update-index", flag, "hidden"]);
        fs::write(fixture.root.join("hidden"), "2\n").unwrap();
        assert_eq!(paths(&diff_of(&fixture, &base, None, Detail::Lines)), ["hidden"], "{flag}");
    }
}

#[test]
fn what_is_committed_and_taken_back_in_the_tree_is_shown_with_a_warning() {
    let (fixture, base) = two_files();
    fs::write(fixture.root.join("hidden"), "1\nevil\n").unwrap();
    fs::write(fixture.root.join("evil"), "x\n").unwrap();
    fs::write(fixture.root.join("seen"), "2\n").unwrap();
    fixture.commit(&fixture.root, "evil");
    fs::write(fixture.root.join("hidden"), "1\n").unwrap();
    fs::remove_file(fixture.root.join("evil")).unwrap();

    let found = diff_of(&fixture, &base, None, Detail::Lines);
    assert_eq!(paths(&found), ["seen", "evil", "hidden"]);
    assert_eq!(found.files[2].hunks[0].lines[1].text, "evil");
    assert!(found.warnings[0].contains("2 committed files were taken back"), "{:?}", found.warnings);

    fs::write(fixture.root.join("seen"), "3\n").unwrap();
    let found = diff_of(&fixture, &base, None, Detail::Lines);
    assert!(found.warnings[1].contains("1 files were committed otherwise"), "{:?}", found.warnings);
}

#[test]
fn a_repository_that_has_its_files_elsewhere_is_refused() {
    let (fixture, base) = two_files();
    let elsewhere = fixture.root.parent().unwrap().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("secret"), "x\n").unwrap();
    fixture.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);

    let of =
        DiffOf { path: fixture.root.clone(), base: Some(base.clone()), end: None, detail: Detail::Lines };
    let refused = diff(&of, None, None).unwrap_err();
    assert!(refused.to_string().contains("read the working tree"), "{refused}");
    let refused = super::evidence::evidence(&fixture.root, Some(&base)).unwrap_err();
    assert!(refused.to_string().contains("read the working tree"), "{refused}");
}

#[test]
fn no_rule_or_setting_below_git_hides_anything_and_those_of_the_tree_count() {
    use std::os::unix::fs::PermissionsExt as _;

    let (fixture, base) = two_files();
    let write = |name: &str, text: &str| fs::write(fixture.root.join(name), text).unwrap();
    fs::set_permissions(fixture.root.join("seen"), std::fs::Permissions::from_mode(0o755)).unwrap();
    write("hidden", "otherwise\n");
    write("evil.sh", "x\n");
    fs::create_dir_all(fixture.root.join(".worktrees/t_1")).unwrap();
    write(".worktrees/t_1/other", "x\n");
    write(".gitignore", "*.log\n");
    write("noise.log", "x\n");
    fs::create_dir_all(fixture.root.join(".git/info")).unwrap();
    write(".git/info/exclude", "# mine\n/.worktrees/\n*.sh\n");
    write(".git/info/attributes", "* -diff\n");
    fixture.git(&["config", "core.fileMode", "false"]);
    fixture.git(&["update-index", "--assume-unchanged", "hidden"]);

    let found = diff_of(&fixture, &base, None, Detail::Lines);
    assert_eq!(paths(&found), [".gitignore", "evil.sh", "hidden", "seen"]);
    let changes: Vec<_> =
        found.files.iter().map(|file| (file.binary, file.hunks.len(), file.mode.as_deref())).collect();
    assert_eq!(
        changes,
        [(false, 1, None), (false, 1, None), (false, 1, None), (false, 0, Some("100644 => 100755"))]
    );
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    assert!(found.warnings[0].contains(".git/info/exclude"), "{:?}", found.warnings);
    // Nor of what is committed.
    fixture.git(&["add", "-f", "evil.sh"]);
    fixture.git(&["commit", "-qm", "mine"]);
    let found = diff_of(&fixture, &base, Some(&head(&fixture)), Detail::Lines);
    assert_eq!(
        (found.files[0].path.as_str(), found.files[0].binary, found.files[0].additions),
        ("evil.sh", false, 1)
    );
    let changes = super::evidence::evidence(&fixture.root, Some(&base)).unwrap();
    let changes: Vec<_> = changes.changed.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(changes, [".gitignore", "evil.sh", "hidden", "seen"]);
}

#[test]
fn a_file_that_cannot_be_read_hides_no_other_and_empty_lines_count() {
    use std::os::unix::fs::PermissionsExt as _;

    let (fixture, base) = two_files();
    fs::remove_file(fixture.root.join("hidden")).unwrap();
    fs::write(fixture.root.join("new"), "\n".repeat(4000)).unwrap();
    fs::write(fixture.root.join("secret"), "y\n").unwrap();
    fs::set_permissions(fixture.root.join("secret"), std::fs::Permissions::from_mode(0o000)).unwrap();
    for at in 0..20 {
        fs::write(fixture.root.join(format!("empty lines {at:02}")), "\n".repeat(4000)).unwrap();
    }

    let found = diff_of(&fixture, &base, None, Detail::Lines);
    assert!(paths(&found).contains(&"hidden") && paths(&found).contains(&"secret"), "{:?}", paths(&found));
    let lines: usize = found.files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.lines.len()).sum();
    assert!(found.truncated && lines <= (2 << 20) / 64, "{lines}");
}

#[test]
fn a_file_that_git_would_wait_for_is_named_at_once() {
    let (fixture, base) = two_files();
    fs::create_dir(fixture.root.join("deep")).unwrap();
    let fifo = fixture.root.join("deep/.gitignore");
    fifo_at(&fifo);
    let of =
        DiffOf { path: fixture.root.clone(), base: Some(base.clone()), end: None, detail: Detail::Lines };
    for refused in [
        diff(&of, None, None).map(drop).unwrap_err(),
        super::evidence::evidence(&fixture.root, Some(&base)).map(drop).unwrap_err(),
    ] {
        let message = refused.to_string();
        assert!(message.contains(&fifo.display().to_string()) && message.contains("FIFO"), "{message}");
        assert!(refused.hint().unwrap().contains("rm "), "{refused:?}");
    }
    // A socket makes nobody wait, and git makes some.
    fs::remove_file(&fifo).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(fixture.root.join(".git/fsmonitor--daemon.ipc"));
    diff(&of, None, None).unwrap();
    drop(socket);
}

fn fifo_at(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
