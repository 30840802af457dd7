//! Tests on real repositories, which are examined, cloned, made and read.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::code::Code;
use crate::testing::Fixture;

fn author() -> Author {
    Author { name: "ann".to_owned(), email: "ann@localhost".to_owned() }
}

#[test]
fn a_clone_shares_no_file_and_no_remote_with_its_source() {
    let fixture = Fixture::new();
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("clone");
    let before = snapshot(&fixture.root).unwrap();
    let head = clone(&fixture.root, &to).unwrap();
    assert_eq!(head.commit, fixture.git(&["rev-parse", "HEAD"]));
    assert_eq!(head.files, 1);
    assert_eq!(fixture.git_in(&to, &["remote"]), "");
    assert_eq!(fixture.git_in(&to, &["status", "--porcelain"]), "");
    let object = fixture.git(&["rev-parse", "HEAD:README"]);
    let (dir, rest) = object.split_at(2);
    let inside = format!(".git/objects/{dir}/{rest}");
    let inode = |root: &Path| std::fs::metadata(root.join(&inside)).unwrap().ino();
    assert_ne!(inode(&fixture.root), inode(&to));
    assert_eq!(snapshot(&fixture.root).unwrap(), before);
}

#[test]
fn linked_detached_shallow_and_borrowing_repositories_are_cloned_whole() {
    let fixture = Fixture::new();
    std::fs::write(fixture.root.join("second"), "2").unwrap();
    fixture.commit(&fixture.root, "second");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    fixture.git(&["worktree", "add", "-q", "--detach", &text(&at("linked"))]);
    let url = format!("file://{}", fixture.root.display());
    fixture.git(&["clone", "-q", "--depth", "1", &url, &text(&at("shallow"))]);
    fixture.git(&["clone", "-q", "--shared", &text(&fixture.root), &text(&at("borrowing"))]);
    for name in ["linked", "shallow", "borrowing"] {
        let to = at(&format!("{name}-clone"));
        let head = clone(&at(name), &to).unwrap();
        assert_eq!((head.files, head.commit), (2, fixture.git(&["rev-parse", "HEAD"])), "{name}");
        assert!(!to.join(".git/objects/info/alternates").exists(), "{name}");
        fixture.git_in(&to, &["fsck"]);
        fixture.git_in(&to, &["log", "--oneline"]);
    }
}

#[test]
fn any_change_shows_in_the_standing() {
    let fixture = Fixture::new();
    let first = snapshot(&fixture.root).unwrap();
    std::fs::write(fixture.root.join("new"), "").unwrap();
    let second = snapshot(&fixture.root).unwrap();
    assert_ne!(first, second);
    fixture.git(&["tag", "here"]);
    assert_ne!(snapshot(&fixture.root).unwrap(), second);
}

#[test]
fn a_repository_without_a_commit_is_refused_by_name() {
    let fixture = Fixture::without_commit();
    let dir = tempfile::tempdir().unwrap();
    let error = clone(&fixture.root, &dir.path().join("clone")).unwrap_err();
    assert_eq!(error.code(), Code::RepositoryNoCommit);
    assert!(error.hint().is_some());
}

#[test]
fn a_commit_is_read_back_as_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("sample");
    let files = BTreeMap::from([("src/a.txt".to_owned(), "one\n".to_owned())]);
    let head = make(&path, &files, &author()).unwrap();
    std::fs::write(path.join("REPORT.md"), "all is well\n").unwrap();
    let id = commit_file(&path, Path::new("REPORT.md"), "Report", &author()).unwrap();
    let read = tip(&path, "main").unwrap();
    assert_eq!((read.id, read.author, read.summary), (id, "ann".to_owned(), "Report".to_owned()));
    assert_eq!(read.parents, [head.commit]);
    assert_eq!(read.files, BTreeMap::from([("REPORT.md".to_owned(), Some("all is well\n".to_owned()))]));
    assert_eq!(tip(&path, "nowhere").unwrap_err().code(), Code::RepositoryNoBranch);
}
