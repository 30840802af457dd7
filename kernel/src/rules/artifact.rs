//! Paths of the files that a run declares as parts of its result.

use std::path::{Component, Path};

use crate::model::error::Error;
use crate::model::limits;
use crate::model::verdict::{Handoff, ReviewRequest, Verdict};

/// Returns the verdict with the paths of its artifacts relative to the workspace.
pub(crate) fn placed(verdict: Verdict, workspace: Option<&str>) -> Result<Verdict, Error> {
    let handed = |mut handoff: Handoff| {
        for path in &mut handoff.artifacts {
            *path = within(path, workspace)?;
        }
        // Programs for Hermes Kanban declare artifacts in the metadata, which may hold anything. An entry that is no
        // path in the workspace is left as it is.
        let declared = handoff.metadata.as_ref().and_then(|metadata| metadata.get("artifacts")?.as_array());
        let declared: Vec<String> = declared
            .into_iter()
            .flatten()
            .filter_map(|path| within(path.as_str()?, workspace).ok())
            .filter(|path| path.len() <= limits::WORD)
            .collect();
        for path in declared {
            if handoff.artifacts.len() < limits::ARTIFACTS && !handoff.artifacts.contains(&path) {
                handoff.artifacts.push(path);
            }
        }
        Ok::<_, Error>(handoff)
    };
    Ok(match verdict {
        Verdict::Complete(handoff) => Verdict::Complete(handed(handoff)?),
        Verdict::RequestReview(request) => {
            Verdict::RequestReview(ReviewRequest { handoff: handed(request.handoff)?, ..request })
        }
        other @ (Verdict::Block(_)
        | Verdict::Approve
        | Verdict::RequestChanges { .. }
        | Verdict::Archive { .. }
        | Verdict::Move { .. }) => other,
    })
}

/// Returns a declared path relative to the workspace, and refuses a path that leads out of it by its text alone. Symbolic
/// links are resolved later, when the file is taken.
fn within(path: &str, workspace: Option<&str>) -> Result<String, Error> {
    let refuse = |why: &str| {
        let place = workspace.map(|workspace| format!(" {workspace}")).unwrap_or_default();
        Err(Error::invalid(
            "artifacts",
            format!("{path:?} {why}"),
            format!("name a file in the workspace{place}, or put it there first"),
        ))
    };
    if path.chars().any(char::is_control) {
        return refuse("has control characters");
    }
    let inside = match (Path::new(path).is_absolute(), workspace) {
        (false, _) => Path::new(path),
        (true, Some(workspace)) => match Path::new(path).strip_prefix(workspace) {
            Ok(inside) => inside,
            Err(_) => return refuse("is outside of the workspace"),
        },
        // Without a known workspace the path is checked when the file is taken.
        (true, None) => return Ok(path.to_owned()),
    };
    let mut pieces: Vec<&str> = Vec::new();
    let mut depth = 0_u32;
    for component in inside.components() {
        match component {
            Component::Normal(piece) => {
                depth += 1;
                pieces.extend(piece.to_str());
            }
            // `..` stays in the path: behind a symbolic link it does not cancel the component before it.
            Component::ParentDir if depth > 0 => {
                depth -= 1;
                pieces.push("..");
            }
            Component::ParentDir => return refuse("leads out of the workspace"),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    if pieces.last().is_none_or(|last| *last == "..") {
        return refuse("names no file");
    }
    Ok(pieces.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_a_path_from_the_workspace_on() {
        for (given, path) in
            [("out.md", "out.md"), ("./a//b", "a/b"), ("/w/s/a/b", "a/b"), ("a/../b", "a/../b")]
        {
            assert_eq!(within(given, Some("/w/s")).unwrap(), path);
        }
    }

    #[test]
    fn paths_of_the_workspace_in_the_metadata_are_artifacts_too() {
        let metadata = serde_json::json!({ "artifacts": ["a", "b", "/etc/passwd", 7], "tests": 3 });
        let handoff =
            Handoff { metadata: Some(metadata), artifacts: vec!["b".to_owned()], ..Handoff::default() };
        let Verdict::Complete(handoff) = placed(Verdict::Complete(handoff), Some("/w/s")).unwrap() else {
            panic!("another verdict")
        };
        assert_eq!(handoff.artifacts, ["b", "a"]);
    }

    #[test]
    fn the_metadata_adds_no_more_artifacts_than_a_run_may_have() {
        let named = |count: usize| -> Vec<String> { (0..count).map(|at| format!("f{at}")).collect() };
        let metadata = serde_json::json!({ "artifacts": named(limits::ARTIFACTS + 1) });
        let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
        let Verdict::Complete(handoff) = placed(Verdict::Complete(handoff), None).unwrap() else {
            panic!("another verdict")
        };
        assert_eq!(handoff.artifacts, named(limits::ARTIFACTS));
    }

    #[test]
    fn a_path_out_of_the_workspace_is_refused_by_its_words() {
        for given in
            ["", ".", "a/..", "../x", "a/../../x", "/etc/passwd", "/w/st/x", "/w/s", "/w/s/../t/x", "a\nb"]
        {
            let error = within(given, Some("/w/s")).unwrap_err();
            assert!(error.hint().unwrap().contains("/w/s"), "{given}: {error}");
        }
    }
}
