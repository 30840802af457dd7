//! Checks that the files and commits that a live worker hands over exist. A false verdict is refused while the worker
//! can still correct it. The board itself checks the tasks that the worker names as created.
//!
//! A job process under the worker's uid searches, within limits. If it cannot decide, the verdict is recorded, and the
//! end of the run lists the missing items.

use std::path::{Path, PathBuf};

use kernel::limits::ATTACHMENT;
use kernel::{BoardName, Handoff, RunId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use workspace::{Claims, Job, Outcome, Unfounded};

use super::records::Records;
use base::failure::Failure;
use base::paths::Root;
use host::job;

/// Keys of a handoff's metadata that name commits: a list, or one.
const KEYS: [&str; 2] = ["commits", "commit"];
/// Least number of digits of an abbreviated commit id.
const SHORTEST: usize = 7;
/// Limit on the commits that are searched.
const COMMITS: usize = 100;

/// Result of the search for the files and commits of a handoff.
#[derive(Debug)]
pub enum Search {
    /// All of it exists, or it cannot be searched from here.
    Founded,
    /// A file or commit does not exist.
    Unfounded(Failure),
    /// The search did not finish.
    CutShort(String),
}

/// Searches for the files and commits that a live run's handoff names, until cancelled. Blocks.
pub fn search(
    root: &Root,
    board: &BoardName,
    run: RunId,
    handoff: &Handoff,
    cancel: &CancellationToken,
) -> Search {
    let commits = commits(handoff.metadata.as_ref());
    if handoff.artifacts.is_empty() && named(handoff.metadata.as_ref()).is_empty() {
        return Search::Founded;
    }
    // An externally claimed run has no records: its worker's files are not known here.
    let dir = root.run_dir(board, run);
    let records = match Records::read(&dir) {
        Ok(records) => records,
        Err(why) => return Search::CutShort(why),
    };
    let Records { spec: Some(spec), run_state: Some(run_state), .. } = records else {
        return Search::Founded;
    };
    // As root, the search needs the worker's user; without one the verdict is recorded unsearched.
    if run_state.identity.is_none() && nix::unistd::geteuid().is_root() {
        return Search::Founded;
    }
    let in_git = run_state.git_start.is_some();
    if let Some(name) = moving_name(handoff.metadata.as_ref()).filter(|_| in_git) {
        return Search::Unfounded(
            Failure::usage(format!("the commit `{name}` is a name that moves, and no id")).hint(
                "nothing was recorded and the run goes on: name the id that `git rev-parse` prints, or leave it out, and report again",
            ),
        );
    }
    let claims = Claims {
        files: handoff.artifacts.iter().map(PathBuf::from).collect(),
        limit: ATTACHMENT,
        commits: if in_git { commits } else { Vec::new() },
        worktree: run_state.worktree.clone(),
        workspace: spec.cwd,
    };
    let (read, write) = run_state.git_start.as_ref().map_or_else(
        || (job::system_reads(), vec![claims.workspace.clone()]),
        super::evidence::GitStart::reach,
    );
    match job::work_unless(cancel, run_state.identity(), read, write, Job::FindClaims { claims }) {
        Ok(Outcome::Unfounded(Some(unfounded))) => Search::Unfounded(refused(&unfounded)),
        Ok(_) => Search::Founded,
        Err(failure) => Search::CutShort(failure.message),
    }
}

fn refused(unfounded: &Unfounded) -> Failure {
    let (what, put_right) = match unfounded {
        Unfounded::File { path, why } => {
            (format!("the artifact {}: {why}", shown(path)), "name files of the workspace that exist")
        }
        Unfounded::Commit(id) => {
            (format!("there is no commit {id} in the repository of the run"), "name commits that exist")
        }
    };
    Failure::usage(what).hint(format!(
        "nothing was recorded and the run goes on: {put_right}, or leave them out, and report again"
    ))
}

/// Returns a path as a message shows it.
fn shown(path: &Path) -> String {
    let text: String = path.to_string_lossy().chars().take(200).collect();
    format!("{text:?}")
}

/// Returns the first commit in the metadata that is a name such as `HEAD`. Such a name moves, and does not identify the
/// run's work.
fn moving_name(metadata: Option<&Value>) -> Option<String> {
    let is_moving = |text: &&str| {
        let behind = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
        behind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^', '@', '{']))
            || text.starts_with("refs/")
    };
    named(metadata).into_iter().find(is_moving).map(|text| text.chars().take(100).collect())
}

/// Returns the texts that name commits in the metadata.
fn named(metadata: Option<&Value>) -> Vec<&str> {
    let of_key = |key: &&str| match metadata.and_then(|metadata| metadata.get(*key)) {
        Some(Value::Array(all)) => all.iter().filter_map(text).collect::<Vec<_>>(),
        Some(one) => text(one).into_iter().collect(),
        None => Vec::new(),
    };
    KEYS.iter().flat_map(of_key).collect()
}

/// Returns the text, or an object's `id` or `sha`.
fn text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("id").or_else(|| value.get("sha"))?.as_str())
}

/// Returns the commit ids in the metadata: hexadecimal texts, or objects with one as `id` or `sha`. Other values are
/// ignored.
fn commits(metadata: Option<&Value>) -> Vec<String> {
    let is_id = |text: &&str| {
        (SHORTEST..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    named(metadata).into_iter().filter(is_id).take(COMMITS).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commits_are_what_looks_like_one_where_metadata_name_them() {
        let found = |metadata: Value| commits(Some(&metadata));
        assert_eq!(
            found(json!({ "commits": ["ABCDEF0", {"sha": "0123456789"}, {"id": "fedcba9"}] })).len(),
            3
        );
        assert_eq!(found(json!({ "commit": "abcdef0" })), ["abcdef0"]);
        for none in [
            json!({ "commits": 3 }),
            json!({ "commits": ["fix the parser", "abc", 7, null, {"subject": "x"}] }),
            json!({ "commit": "0".repeat(41) }),
            json!({ "sha": "abcdef0" }),
            json!([]),
        ] {
            assert_eq!(found(none.clone()), Vec::<String>::new(), "{none}");
        }
        assert_eq!(found(json!({ "commits": vec!["abcdef0"; 1000] })).len(), COMMITS);
    }

    #[test]
    fn a_name_of_gits_own_is_no_commit() {
        for name in ["HEAD", "HEAD~2", "HEAD^", "@", "@{1}", "refs/heads/main"] {
            let found = [json!({ "commits": ["abcdef0", name] }), json!({ "commit": { "id": name } })];
            assert!(
                found
                    .iter()
                    .all(|handoff_metadata| moving_name(Some(handoff_metadata)).as_deref() == Some(name)),
                "{name}"
            );
        }
        let other = json!({ "commits": ["HEADER: fix the parser", "@ann fixed it", "main"] });
        assert_eq!(moving_name(Some(&other)), None, "it may be a subject");
    }
}
