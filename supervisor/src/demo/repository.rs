//! Repository of the demo: its choice, a private clone, and the proof that the demo left it unchanged.
//!
//! The demo uses jobs of `workspace` and no `git`, which a host may lack and which reads the hooks and settings of
//! the owner of the repository.

use kernel::Counted;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policies::Identity;
use workspace::repository::{Committed, Head, RepositorySnapshot};
use workspace::{Author, Job, Outcome};

use super::directory::{self, Owners};
use super::report::{Clone, DemoReport, ExpectationResult, Story};
use base::exit::Code;
use base::failure::Failure;
use host::job::{self, Cause, JobFailure};

#[derive(Clone, Debug)]
pub(super) enum RepositorySource {
    /// A repository that the demo does not change.
    Repository {
        path: PathBuf,
        /// Its state before the demo.
        before: RepositorySnapshot,
    },
    /// A sample, because no repository could be used, for this reason.
    Sample(String),
}

/// Chooses the repository: the named one, or the one around the working directory if it can be used.
pub(super) fn choose(named: Option<&Path>) -> Result<RepositorySource, Failure> {
    if let Some(path) = named {
        let none = |why: String| {
            Failure::new(Code::NotFound, format!("there is no git repository at {}{why}", path.display()))
                .hint(
                    "name a repository, or leave --repo out: outside a repository the demo creates a sample",
                )
        };
        let real = path.canonicalize().map_err(|e| none(format!(": {e}")))?;
        let path = around(&real).ok_or_else(|| none(String::new()))?;
        let before = snapshot(&path)?;
        if !before.has_commit() {
            return Err(Failure::new(Code::Conflict, format!("{} has no commit yet", path.display()))
                .hint("commit something first"));
        }
        return Ok(RepositorySource::Repository { path, before });
    }
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize());
    let here = here.map_err(|e| Failure::failed(format!("the working directory is not known: {e}")))?;
    let Some(path) = around(&here) else {
        return Ok(RepositorySource::Sample(format!("{} is in no git repository", here.display())));
    };
    match snapshot(&path) {
        Ok(before) if before.has_commit() => Ok(RepositorySource::Repository { path, before }),
        Ok(_) => {
            Ok(RepositorySource::Sample(format!("the repository at {} has no commit yet", path.display())))
        }
        Err(failure) => Ok(RepositorySource::Sample(failure.message)),
    }
}

trait HasCommit {
    fn has_commit(&self) -> bool;
}

impl HasCommit for RepositorySnapshot {
    /// Returns true if HEAD is a commit, or names an existing reference.
    fn has_commit(&self) -> bool {
        !self.head.starts_with("refs/") || self.references.contains_key(&self.head)
    }
}

/// Returns the repository around a directory, by the names of its files; reads none of them.
fn around(dir: &Path) -> Option<PathBuf> {
    let is_one = |dir: &Path| {
        dir.join(".git").exists() || ["HEAD", "objects", "refs"].iter().all(|name| dir.join(name).exists())
    };
    dir.ancestors().find(|dir| is_one(dir)).map(Path::to_owned)
}

pub(super) fn snapshot(path: &Path) -> Result<RepositorySnapshot, Failure> {
    let job = Job::ExamineRepository { path: path.to_owned() };
    match work(directory::owner_for_root(path)?, vec!["/".into()], Vec::new(), job)? {
        Outcome::Snapshot(snapshot) => Ok(snapshot),
        _ => Err(unexpected()),
    }
}

/// Makes the clone or the sample, and gives it to its owner.
pub(super) fn provide(source: &RepositorySource, to: &Path, owners: Owners) -> Result<Clone, Failure> {
    let fail = |e: std::io::Error| Failure::file("make the directory", to, &e);
    std::fs::create_dir(to).map_err(fail)?;
    let (outcome, source) = match source {
        RepositorySource::Repository { path, .. } => {
            // The repository is read as its owner, so that root trusts nothing in it.
            let reader = directory::owner_for_root(path)?;
            if let Some(reader) = reader {
                std::os::unix::fs::lchown(to, Some(reader.uid), Some(reader.gid)).map_err(fail)?;
            }
            let job = Job::CloneRepository { from: path.clone(), to: to.to_owned() };
            (work(reader, vec!["/".into()], vec![to.to_owned()], job)?, Some(path.clone()))
        }
        RepositorySource::Sample(_) => {
            let author =
                Author { name: "supervisor demo".to_owned(), email: "demo@supervisor.invalid".to_owned() };
            let job = Job::MakeRepository { path: to.to_owned(), files: sample(), author };
            // The directory is new, and no other user has written to it.
            (job.run().map_err(|e| refused(JobFailure::from(&e)))?, None)
        }
    };
    directory::give(to, owners.of_clone())?;
    match outcome {
        Outcome::Provided(Head { commit, files }) => Ok(Clone { path: to.to_owned(), source, commit, files }),
        _ => Err(unexpected()),
    }
}

/// Reads the commit at the tip of a branch of the clone.
pub(super) fn tip(clone: &Clone, branch: &str, owners: Owners) -> Result<Committed, Failure> {
    let job = Job::ReadTip { path: clone.path.clone(), branch: branch.to_owned() };
    match work(owners.of_clone(), vec!["/".into()], Vec::new(), job)? {
        Outcome::Committed(commit) => Ok(commit),
        _ => Err(unexpected()),
    }
}

/// Compares the repository with its state before the demo. `marks` are names that only this demo uses.
///
/// Others may work in it during the demo. Cloning is the demo's only access to it. So a difference comes from others if
/// there was none right after the clone, and if nothing in it carries a mark.
pub(super) fn check(
    source: &RepositorySource,
    after_clone: Option<&RepositorySnapshot>,
    marks: &[String],
    report: &mut DemoReport,
) {
    let RepositorySource::Repository { path, before } = source else { return };
    let part = Story::Afterwards;
    let name = "the repository is as it was";
    let expected = "same HEAD, references and status";
    let now = match snapshot(path) {
        Ok(now) => now,
        Err(failure) => {
            report.check(part, name, expected, failure.message, ExpectationResult::Failed);
            return;
        }
    };
    if now == *before {
        let seen = format!(
            "same HEAD, {}, {}",
            Counted(now.references.len(), "reference"),
            Counted(now.changes.len(), "changed path")
        );
        report.check(part, name, expected, seen, ExpectationResult::Ok);
        return;
    }
    let parts = [
        (now.head != before.head, "HEAD"),
        (now.references != before.references, "references"),
        (now.changes != before.changes, "status"),
    ];
    let parts: Vec<&str> = parts.iter().filter(|(differs, _)| *differs).map(|(_, part)| *part).collect();
    let names: Vec<&String> = now.references.keys().chain(now.changes.keys()).collect();
    let marked = marks.iter().any(|mark| names.iter().any(|name| name.contains(mark)));
    let foreign = after_clone == Some(before) && !marked && !marks.is_empty();
    let parts = parts.join(", ");
    let seen = if foreign {
        format!("the same when it had been cloned; then somebody else changed {parts}")
    } else {
        format!("another {parts}")
    };
    report.check(part, name, expected, seen, foreign);
}

fn work(
    identity: Option<Identity>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    job: Job,
) -> Result<Outcome, Failure> {
    job::work(identity, read, write, job).map_err(refused)
}

fn refused(failure: JobFailure) -> Failure {
    let code = match failure.cause {
        Cause::Workspace(workspace::Code::RepositoryMissing) => Code::NotFound,
        Cause::Workspace(workspace::Code::RepositoryForeignOwner) => Code::NotPermitted,
        Cause::Workspace(workspace::Code::RepositoryNoCommit) => Code::Conflict,
        _ => Code::Failed,
    };
    Failure { hint: failure.hint, ..Failure::new(code, failure.message) }
}

fn unexpected() -> Failure {
    Failure::failed("the job process answered another question")
}

/// Returns the files of a small sample project.
fn sample() -> BTreeMap<String, String> {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut files = BTreeMap::from([
        file(
            "README.md",
            "# Sample\n\nA small project, made by `supervisor demo`.\n\nTODO: say what it is for.\n",
        ),
        file(
            "src/main.c",
            "#include <stdio.h>\n\nint main(void)\n{\n\tputs(\"hello\"); /* FIXME: to whom? */\n\treturn 0;\n}\n",
        ),
        file("Makefile", "hello: src/main.c\n\tcc -o hello src/main.c\n"),
    ]);
    for chapter in 1..=9 {
        let line = format!("This is line after line of chapter {chapter}.\n");
        files.insert(format!("docs/chapter-{chapter}.md"), line.repeat(chapter * 10));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_found_from_within_and_a_sample_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().canonicalize().unwrap().join("sample");
        let owners = Owners::of_this_process();
        let made = provide(&RepositorySource::Sample("none".to_owned()), &to, owners).unwrap();
        assert_eq!(made.files, sample().len());
        assert_eq!(around(&to.join("docs")), Some(to.clone()));
        assert_eq!(around(dir.path()), around(dir.path().parent().unwrap()));
    }
}
