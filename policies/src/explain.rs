//! Explains the use of a path under a policy, with the word of the policy that decides.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::files::{Grant, GrantPath, Proc, Shm};
use crate::paths::leads_to;
use crate::policy::Policy;
use crate::run_context::RunContext;

/// Use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// Read a file or list a directory.
    Read,
    /// Write, make or remove.
    Write,
    Execute,
}

/// Answer to the question if a path is granted, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessDecision {
    /// Granted, by this part of the policy or of the run. The owner and mode of the file still count.
    Granted(String),
    /// The policy does not grant the use.
    Denied,
    /// The policy does not confine files.
    Unconfined,
}

impl Policy {
    /// Explains whether a run may use a path, as the path is now: symbolic links count by their targets.
    pub fn explain(&self, path: &Path, want: Want, context: &RunContext) -> AccessDecision {
        if !self.is_confined() {
            return AccessDecision::Unconfined;
        }
        let real = leads_to(path);
        let words = self.words(context);
        let deepest = |places: &[PathBuf]| {
            let over = places.iter().filter(|place| real.starts_with(place));
            over.map(|place| place.components().count()).max()
        };
        // A closed place is covered beneath a grant, except for the run's own parts of it. The directory of another
        // task is covered only beneath a grant for reading, because a grant for writing is intended (`covers`).
        let is_covered = |task: &&PathBuf| {
            words.iter().any(|(access, base, _)| {
                let base = leads_to(base);
                !access.writes() && **task != base && task.starts_with(&base)
            })
        };
        let tasks: Vec<PathBuf> = context.closed.tasks.iter().filter(is_covered).cloned().collect();
        let closed = deepest(&context.closed.places).max(deepest(&tasks));
        if deepest(&context.closed.own).max(deepest(&context.own())) < closed {
            return AccessDecision::Denied;
        }
        let found = words
            .into_iter()
            .find(|(access, base, _)| permits(*access, want) && real.starts_with(leads_to(base)));
        found.map_or(AccessDecision::Denied, |(_, _, by)| AccessDecision::Granted(by))
    }

    /// Returns each grant with its access, its path and its name in the policy.
    fn words(&self, context: &RunContext) -> Vec<(Access, PathBuf, String)> {
        let files = &self.filesystem;
        let mut words = Vec::new();
        for (key, grants, access) in files.lists() {
            for Grant { path, .. } in grants {
                let name = format!("filesystem.{key}: {}", String::from(path.clone()));
                words.push((access, absolute_path(path, context), name));
            }
        }
        for (place, _) in files.toolchain_places(context) {
            words.push((
                Access::Execute,
                place.clone(),
                format!("filesystem.toolchains: {}", place.display()),
            ));
        }
        for device in &files.devices {
            words.push((Access::Device, device.path().to_owned(), format!("filesystem.devices: {device:?}")));
        }
        if files.proc == Proc::Host {
            words.push((Access::Read, PathBuf::from("/proc"), "filesystem.proc: host".to_owned()));
        }
        if files.shm == Shm::Private {
            words.push((Access::Write, PathBuf::from("/dev/shm"), "filesystem.shm: private".to_owned()));
        }
        let lists = [
            ("read", &context.read, Access::Read),
            ("execute", &context.execute, Access::Execute),
            ("write", &context.write, Access::Write),
        ];
        for (key, paths, access) in lists {
            words.extend(
                paths
                    .iter()
                    .map(|path| (access, path.clone(), format!("the run\'s {key}: {}", path.display()))),
            );
        }
        words
    }
}

fn absolute_path(path: &GrantPath, context: &RunContext) -> PathBuf {
    match path {
        GrantPath::Absolute(path) => path.clone(),
        GrantPath::Workspace(inside) => context.workspace.join(inside),
        GrantPath::Home(inside) => context.home.join(inside),
        GrantPath::Tmp(inside) => context.tmp.join(inside),
    }
}

fn permits(access: Access, want: Want) -> bool {
    match want {
        Want::Read => access != Access::Socket,
        Want::Write => access.writes(),
        Want::Execute => matches!(access, Access::Execute | Access::WriteExecute),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_word_that_grants() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("ws")).unwrap();
        std::os::unix::fs::symlink("/root", dir.join("ws/out")).unwrap();
        let context = RunContext { read: vec![dir.join("attachment")], ..crate::run_context::bare(&dir) };
        let policy = Policy::builtin("default").unwrap();
        let ask = |path: &Path, want| policy.explain(path, want, &context);
        let granted = |by: &str| AccessDecision::Granted(by.to_owned());
        assert_eq!(ask(&dir.join("ws/new/file"), Want::Write), granted("filesystem.rwx: {workspace}"));
        assert_eq!(ask(Path::new("/usr/bin/env"), Want::Execute), granted("filesystem.rox: /usr"));
        assert_eq!(ask(Path::new("/usr/bin/env"), Want::Write), AccessDecision::Denied);
        assert_eq!(ask(&dir.join("ws/out/x"), Want::Read), AccessDecision::Denied);
        assert!(matches!(ask(&dir.join("attachment"), Want::Read), AccessDecision::Granted(_)));
        assert_eq!(ask(&dir.join("home/x"), Want::Execute), AccessDecision::Denied);
        let inside = RunContext {
            closed: crate::ClosedPaths { places: vec![dir.clone()], ..crate::ClosedPaths::default() },
            ..context.clone()
        };
        let answer = policy.explain(&dir.join("ws/new/file"), Want::Write, &inside);
        assert_eq!(answer, granted("filesystem.rwx: {workspace}"), "its own in what is closed");
        assert_eq!(policy.explain(&dir.join("attachment"), Want::Read, &inside), AccessDecision::Denied);
        let open = Policy::builtin("unconfined").unwrap();
        assert_eq!(open.explain(Path::new("/x"), Want::Read, &context), AccessDecision::Unconfined);
    }

    #[test]
    fn the_directory_of_another_task_is_denied_beneath_a_grant_for_reading_alone() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("opt/app")).unwrap();
        let mut context = crate::run_context::bare(&dir);
        context.closed.tasks = vec![dir.join("opt/app")];
        let file = dir.join("opt/app/file");
        for (key, at, granted) in
            [("ro", "opt", false), ("rw", "opt", true), ("ro", "opt/app", true), ("rw", "opt/app", true)]
        {
            let text =
                format!("version = 1\nextends = 'default'\n[filesystem.add]\n{key} = [{:?}]\n", dir.join(at));
            let policy = Policy::from_toml(&text, Path::new("test.toml")).unwrap();
            let answer = policy.explain(&file, Want::Read, &context);
            assert_eq!(matches!(answer, AccessDecision::Granted(_)), granted, "{key} {at}: {answer:?}");
        }
    }
}
