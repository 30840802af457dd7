//! Checks of a lane's program and of its interpreter for `lane check`, with the line of the lane's file that grants
//! both.

use std::path::{Path, PathBuf};

use kernel::{Finding, FindingCode, Profile, Severity};
use policies::GrantPath;

use host::home::home_of;
use setup::lanes::{Lane, program};

/// Checks that a run of a lane finds its program and the program's interpreter, and may execute both. `path` is the
/// caller's search path, in which missing programs are searched for the hint. `file` is the lane's own file, which
/// may be missing.
pub(super) fn check(
    asked: &Profile,
    path: Option<&str>,
    lane: &Lane,
    policy: &policies::Policy,
    file: &Path,
) -> Vec<Finding> {
    let home = home_of(None);
    let dirs = lane.search_path(policy, home.as_deref());
    let theirs: Vec<PathBuf> = path.iter().flat_map(|path| path.split(':')).map(PathBuf::from).collect();
    let name = lane.program();
    if name.contains('{') {
        return vec![Finding::ok(
            FindingCode::Program,
            format!("{name}, which is filled in when a run starts"),
        )];
    }
    let path = program::find(&name, &dirs);
    let theirs_of = |name: &str| program::find(name, &theirs);
    let interpreter = path.clone().or_else(|| theirs_of(&name)).and_then(|path| program::interpreter(&path));
    let run_by = interpreter.as_deref().and_then(|name| program::find(name, &dirs));
    let granted = granted(lane, policy, home.as_deref());
    // All checks give the same hint, whose line grants the program and its interpreter.
    let mut needed: Vec<PathBuf> = Vec::new();
    let both = [(&path, Some(&name)), (&run_by, interpreter.as_ref())];
    for path in both.into_iter().filter_map(|(found, name)| Some((found, name?))) {
        needed.extend(match path {
            (Some(found), _) => beyond(found, &granted),
            (None, name) => theirs_of(name).iter().flat_map(|path| program::install_of(path)).collect(),
        });
    }
    needed.dedup();
    let hint = match needed.as_slice() {
        [] => format!("install it, or name its directory as `install` in {}", file.display()),
        dirs => install_hint(asked, lane, dirs, file),
    };
    let missing = |code: FindingCode, name: &str| {
        let searched: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        // A toolchain of the policy may contain the program, in the home directory of each worker's user.
        let may_be_there = policy.filesystem.toolchains.required().is_some();
        let severity = if may_be_there { Severity::Warning } else { Severity::Error };
        let detail = if name.contains('/') {
            format!("`{name}`, {}", program::why_none(Path::new(name)))
        } else {
            format!("`{name}` is in none of {}", searched.join(", "))
        };
        let check = Finding::new(code, severity, detail);
        check.advice(hint.clone())
    };
    let there = |code: FindingCode, path: &Path| match leads_out(path, &granted) {
        None => Finding::ok(code, path.display().to_string()),
        Some(real) => {
            let detail =
                format!("{} leads to {}, which a run may not execute", path.display(), real.display());
            Finding::error(code, detail).advice(hint.clone())
        }
    };
    let mut checks = vec![match &path {
        Some(path) => there(FindingCode::Program, path),
        None => missing(FindingCode::Program, &name),
    }];
    if let Some(interpreter) = interpreter {
        match run_by {
            Some(path) => checks.push(there(FindingCode::Interpreter, &path)),
            // The hint for the missing program covers its interpreter.
            None if path.is_none() => {}
            None => checks.push(missing(FindingCode::Interpreter, &interpreter)),
        }
    }
    checks
}

/// Returns the directories from which a run of a lane may execute programs, both as written and with their links
/// resolved.
fn granted(lane: &Lane, policy: &policies::Policy, home: Option<&Path>) -> Vec<PathBuf> {
    let files = &policy.filesystem;
    let lists = [&files.rox, &files.rwx, &files.add.rox, &files.add.rwx];
    let of_policy = lists.into_iter().flatten().filter_map(|grant| match &grant.path {
        GrantPath::Absolute(path) => Some(path.clone()),
        GrantPath::Workspace(_) | GrantPath::Home(_) | GrantPath::Tmp(_) => None,
    });
    // A toolchain is granted through its `PATH` entries and the directories in its variables.
    let tools = home.map(|home| files.toolchains.environment(home)).unwrap_or_default();
    let of_tools = tools.path.into_iter().chain(tools.set.into_values().map(PathBuf::from));
    let named: Vec<PathBuf> = of_policy.chain(of_tools).chain(lane.install_under(policy, home)).collect();
    let real = named.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    named.into_iter().chain(real).collect()
}

/// Returns the real path of a program in a granted directory if a link leads out of all granted directories. Returns
/// none for a program outside of them, which the policy grants in another way.
fn leads_out(path: &Path, granted: &[PathBuf]) -> Option<PathBuf> {
    let is_granted = |path: &Path| granted.iter().any(|dir| path.starts_with(dir));
    let real = path.canonicalize().ok()?;
    (is_granted(path) && !is_granted(&real)).then_some(real)
}

/// Returns the directories that a program needs in addition to the granted ones.
fn beyond(path: &Path, granted: &[PathBuf]) -> Vec<PathBuf> {
    if leads_out(path, granted).is_none() {
        return Vec::new();
    }
    let is_granted = |dir: &PathBuf| granted.iter().any(|granted| dir.starts_with(granted));
    program::install_of(path).into_iter().filter(|dir| !is_granted(dir)).collect()
}

/// Returns the hint with the `install` line that grants these directories to a lane.
fn install_hint(name: &Profile, lane: &Lane, dirs: &[PathBuf], file: &Path) -> String {
    let all = lane.install.iter().chain(dirs);
    let words: Vec<String> = all.map(|dir| format!("{:?}", dir.display().to_string())).collect();
    let install = format!("install = [{}]", words.join(", "));
    let is_own = lane.origin() == file;
    let (dir, file) = (file.parent().unwrap_or(file).display(), file.display());
    match (is_own, lane.install.is_empty()) {
        (false, _) => {
            format!("you have it:\nmkdir -p {dir} && printf 'extends = \"{name}\"\\n{install}\\n' > {file}")
        }
        // The line must precede the tables of the file: a key after a table header would belong to that table.
        (true, true) => format!("you have it:\nsed -i '1i {install}' {file}"),
        (true, false) => format!("you have it:\nwrite {install} into {file}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use policies::Policy;

    use super::*;
    use base::paths::RootChoice;
    use setup::lanes::Lanes;

    #[test]
    fn a_link_leads_out_only_where_the_policy_does_not_grant_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let (bin, node) = (home.join("tools"), home.join(".nvm/versions/node/v22.1.0/bin/node"));
        for path in [bin.join("own"), home.join("other/agent"), node.clone()] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        symlink(&node, bin.join("node")).unwrap();
        symlink(home.join("other/agent"), bin.join("agent")).unwrap();
        symlink("/usr/bin/env", bin.join("env")).unwrap();
        let text = format!("argv = [\"agent\"]\ninstall = [{bin:?}]\n");
        let root = RootChoice { root: Some(home.join("root")), ..RootChoice::default() }.resolve(|_| None);
        let root = root.unwrap();
        std::fs::create_dir_all(root.lanes_dir()).unwrap();
        std::fs::write(root.lanes_dir().join("agent.toml"), text).unwrap();
        let lanes = Lanes::load(&root);
        let lane = lanes.get("agent").unwrap();
        let out = |program: &str, policy: &str| {
            let granted = granted(lane, &Policy::builtin(policy).unwrap(), Some(&home));
            let needed = beyond(&bin.join(program), &granted);
            leads_out(&bin.join(program), &granted).map(|real| (real, needed))
        };
        assert_eq!(out("own", "default"), None);
        assert_eq!(out("env", "default"), None, "every policy has it");
        assert_eq!(out("node", "agent"), None, "it has the toolchains of the home");
        assert_eq!(out("node", "default"), Some((node.clone(), vec![node.parent().unwrap().to_owned()])));
        assert_eq!(out("agent", "agent"), Some((home.join("other/agent"), vec![home.join("other")])));
    }
}
