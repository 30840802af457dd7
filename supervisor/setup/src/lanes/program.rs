//! Finds the program of a lane on this host, and the interpreter of a script.
//!
//! The `PATH` of the daemon is not searched. Otherwise the programs of workers would depend on the shell that started the
//! daemon.

use std::path::{Path, PathBuf};

use crate::config::settings;
use base::executable::{self, is_program};

/// Finds a program as execvp(3) does: a word with a slash is a path, any other is searched in `dirs`.
pub fn find(program: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    dirs.iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).find(|path| is_program(path))
}

/// Returns the interpreter that the first line of a script names; for `env`, the program that `env` runs.
pub fn interpreter(path: &Path) -> Option<String> {
    let words = executable::interpreter(path)?;
    let (first, rest) = words.split_first()?;
    if !first.ends_with("/env") {
        return Some(first.clone());
    }
    rest.iter().find(|word| !word.starts_with('-') && !word.contains('=')).cloned()
}

/// Returns the reason why a path is not a program. It names the target of symbolic links.
pub fn why_none(path: &Path) -> String {
    let mut end = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = std::fs::read_link(&end) else { break };
        end = end.parent().map_or_else(|| target.clone(), |dir| dir.join(&target));
    }
    let nothing = "which is not there, or cannot be executed by this user";
    if end == path { nothing.to_owned() } else { format!("which leads to {}, {nothing}", end.display()) }
}

/// Limit on the symbolic links that are followed (`path_resolution(7)`).
const LINKS: usize = 40;

/// Returns the directories that a lane must list as `install` so that a run can execute a program with its dependencies,
/// and as little else as possible: the directory in which the program is found, then the installation that its links
/// lead to. Directories of the system are left out.
pub fn install_of(program: &Path) -> Vec<PathBuf> {
    let Some(dir) = program.parent() else { return Vec::new() };
    let target = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let mut needed = vec![dir.to_owned()];
    // Packages of npm find each other in the outermost directory `node_modules`.
    let packages = target.ancestors().filter(|dir| dir.ends_with("node_modules")).last();
    if let Some(packages) = packages {
        needed.push(packages.to_owned());
    } else if let Some((environment, python)) = python_environment(&target) {
        needed.push(environment);
        needed.extend(python);
    } else if let Some(dir) = target.parent() {
        needed.push(dir.to_owned());
    }
    let all = needed.clone();
    let is_granted = |dir: &PathBuf| all.iter().any(|other| other != dir && dir.starts_with(other));
    needed.retain(|dir| !is_granted(dir));
    // The directory of the program and the directory of its target may be the same.
    needed.dedup();
    // Every policy grants the programs of the system.
    needed.retain(|dir| !dir.starts_with("/usr"));
    needed
}

/// Returns the Python environment of a program (PEP 405), and the installation of Python that the environment is based
/// on.
fn python_environment(program: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let environment = program.parent()?.parent()?;
    let text = settings::read(&environment.join("pyvenv.cfg")).ok()?;
    let home = text.lines().find_map(|line| line.strip_prefix("home")?.trim_start().strip_prefix('='));
    let python = home.and_then(|home| Path::new(home.trim()).parent()).map(Path::to_owned);
    Some((environment.to_owned(), python))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_found_as_the_system_finds_it_with_what_runs_it() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir_all(bin.join("agent")).unwrap();
        let script = bin.join("script");
        std::fs::write(&script, "#!/usr/bin/env -S node --no-warnings\nx").unwrap();
        let dirs = [PathBuf::from("relative"), bin.clone()];
        assert_eq!(find("script", &dirs), None, "it is not executable");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("script", &dirs), Some(script.clone()));
        assert_eq!(find(script.to_str().unwrap(), &[]), Some(script.clone()));
        assert_eq!(find("agent", &dirs), None, "it is a directory");
        assert_eq!(interpreter(&script).as_deref(), Some("node"));
        std::fs::write(&script, "#!/bin/sh -e\n").unwrap();
        assert_eq!(interpreter(&script).as_deref(), Some("/bin/sh"));
        std::fs::write(&script, "\x7fELF").unwrap();
        assert_eq!(interpreter(&script), None);
    }

    #[test]
    fn a_link_that_leads_to_no_program_says_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("python3"), dir.path().join("python3.12"));
        std::os::unix::fs::symlink("python3.12", &first).unwrap();
        std::os::unix::fs::symlink("/no/such/python", &second).unwrap();
        let reason = why_none(&first);
        assert!(reason.starts_with("which leads to /no/such/python, which is not there"), "{reason}");
        assert!(why_none(&dir.path().join("none")).starts_with("which is not there"));
    }

    #[test]
    fn a_program_needs_where_it_is_found_and_where_a_link_leads_and_not_all_that_lies_beside() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().canonicalize().unwrap().join(path);
        let make = |path: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), "").unwrap();
        };
        let link = |path: &str, target: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(at(target), at(path)).unwrap();
        };
        make(".npm/lib/node_modules/@x/agent/node_modules/y/cli.js");
        link(".npm/bin/agent", ".npm/lib/node_modules/@x/agent/node_modules/y/cli.js");
        make(".local/share/agent/versions/1.2");
        link(".local/bin/agent", ".local/share/agent/versions/1.2");
        make(".local/share/tools/agent/bin/py");
        std::fs::write(
            at(".local/share/tools/agent/pyvenv.cfg"),
            format!("home = {}\n", at("py/3.12/bin").display()),
        )
        .unwrap();
        link(".local/bin/py", ".local/share/tools/agent/bin/py");
        make("opt/agent");
        let table: [(&str, &[&str]); 5] = [
            (".npm/bin/agent", &[".npm/bin", ".npm/lib/node_modules"]),
            (".local/bin/agent", &[".local/bin", ".local/share/agent/versions"]),
            (".local/bin/py", &[".local/bin", ".local/share/tools/agent", "py/3.12"]),
            (".local/share/tools/agent/bin/py", &[".local/share/tools/agent", "py/3.12"]),
            ("opt/agent", &["opt"]),
        ];
        for (program, needed) in table {
            let needed: Vec<PathBuf> = needed.iter().map(|path| at(path)).collect();
            assert_eq!(install_of(&at(program)), needed, "{program}");
        }
        assert_eq!(install_of(Path::new("/usr/bin/env")), Vec::<PathBuf>::new());
    }
}
