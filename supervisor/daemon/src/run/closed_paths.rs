//! Places that a run must not reach.

use std::path::{Path, PathBuf};

use kernel::WorkspaceSpec;
use policies::{Boundary, ClosedPaths, PathRelation};

use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use host::neighbours;
use setup::config::WorkerConfig;

/// Returns the places that stay closed to a run: the supervisor's and other users' on this host, without the run's own,
/// and the directories of other tasks, `tasks`.
pub(crate) fn of_run(
    root: &Root,
    config: &WorkerConfig,
    spec: &WorkspaceSpec,
    own: Vec<PathBuf>,
    tasks: &[WorkspaceSpec],
) -> Result<ClosedPaths, Failure> {
    let others = tasks.iter().filter(|other| *other != spec).filter_map(WorkspaceSpec::path);
    let tasks = others.map(Path::to_owned).collect();
    Ok(ClosedPaths { places: neighbours::closed(root, config)?, own, tasks })
}

/// Refuses a workspace that is a place of a supervisor, lies in one or holds one.
pub(crate) fn check(root: &Root, config: &WorkerConfig, spec: &WorkspaceSpec) -> Result<(), Failure> {
    let Some(path) = spec.path() else { return Ok(()) };
    let boundary = Boundary::around(&neighbours::closed(root, config)?)
        .map_err(|e| Failure::failed(format!("failed to read the table of mounts: {e}")))?;
    let what = match spec {
        WorkspaceSpec::Worktree { .. } => "repository",
        WorkspaceSpec::Directory(_) | WorkspaceSpec::Scratch => "directory",
    };
    let (relation, place, hint) = match (boundary.relation(path), spec) {
        // The worktrees of a repository lie in a directory of their own, and their grants are checked when they are
        // made.
        (PathRelation::Apart, _) | (PathRelation::Holds(_), WorkspaceSpec::Worktree { .. }) => return Ok(()),
        (PathRelation::Inside(place), _) => ("lies in", place, "name another directory"),
        (PathRelation::Holds(held), _) => {
            let first = held.into_iter().next().map(|held| held.place).unwrap_or_default();
            (
                "holds",
                first,
                "name a directory that does not hold it, or keep the root elsewhere with --root DIR",
            )
        }
    };
    let owner = if root.closed().iter().any(|own| place.starts_with(own)) {
        "the supervisor's"
    } else {
        "another supervisor's"
    };
    Err(Failure::new(
        Code::NotPermitted,
        format!(
            "the {what} {} {relation} {}, which is {owner} own and closed to every worker",
            path.display(),
            place.display()
        ),
    )
    .hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::RootChoice;

    #[test]
    fn no_workspace_is_around_or_inside_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["home/ann/state", "home/ann/app"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(dir.join("home/ann/state"), dir.join("link")).unwrap();
        let choice = RootChoice { root: Some(dir.join("home/ann/state")), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        root.create().unwrap();
        let config = WorkerConfig { uid_ledger: dir.join("uids"), ..WorkerConfig::default() };
        let ask = |name: &str| check(&root, &config, &WorkspaceSpec::Directory(dir.join(name)));
        for (name, word) in [
            ("home/ann", "holds"),
            ("home/ann/state", "lies in"),
            ("home/ann/state/boards", "lies in"),
            ("home/ann/state/workspaces/default", "lies in"),
            ("link", "lies in"),
        ] {
            let failure = ask(name).unwrap_err();
            assert_eq!(failure.code, Code::NotPermitted);
            assert!(failure.message.contains(word) && failure.hint.is_some(), "{name}: {failure}");
        }
        assert!(ask("home/ann/app").is_ok());
        let repository = |name: &str| WorkspaceSpec::Worktree { repository: Some(dir.join(name)) };
        assert!(check(&root, &config, &repository("home/ann/state")).is_err());
        assert!(check(&root, &config, &repository("home/ann")).is_ok());
    }

    #[test]
    fn configuration_and_runtime_directory_are_closed_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let choice = RootChoice { user: true, ..RootChoice::default() };
        let root = choice.resolve(|name| match name {
            "HOME" => Some(dir.join("ann")),
            "XDG_RUNTIME_DIR" => Some(dir.join("run")),
            _ => None,
        });
        let root = root.unwrap();
        let config = WorkerConfig { uid_ledger: dir.join("uids"), ..WorkerConfig::default() };
        for (name, word) in [
            ("ann/.config/supervisor/policies.d", "lies in"),
            ("ann/.config", "holds"),
            ("ann/.local/state/supervisor", "lies in"),
            ("run/supervisor/doors", "lies in"),
            ("run", "holds"),
        ] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            let failure = check(&root, &config, &WorkspaceSpec::Directory(dir.join(name))).unwrap_err();
            assert!(failure.message.contains(word), "{name}: {failure}");
        }
        std::fs::create_dir_all(dir.join("ann/app")).unwrap();
        check(&root, &config, &WorkspaceSpec::Directory(dir.join("ann/app"))).unwrap();
    }

    #[test]
    fn the_directories_of_other_tasks_are_closed_and_the_own_is_not() {
        let choice = RootChoice { root: Some("/srv/sv".into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let own = WorkspaceSpec::Directory("/opt/a".into());
        let tasks = [
            own.clone(),
            WorkspaceSpec::Directory("/opt/b".into()),
            WorkspaceSpec::Worktree { repository: None },
        ];
        let config = WorkerConfig { uid_ledger: "/no/such/ledger".into(), ..WorkerConfig::default() };
        let closed = of_run(&root, &config, &own, vec![], &tasks).unwrap();
        assert_eq!(closed.tasks, [Path::new("/opt/b")]);
        assert!(closed.places.contains(&PathBuf::from("/srv/sv")));
    }
}
