//! Finds programs of lanes that a person has installed in their home, as npm and the installers of agents do without
//! root.
//!
//! The directories that installers use are listed here and searched at the start of each run. A directory is not granted
//! if it is outside of the home, or another user can write to it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::program::{find, install_of, interpreter};
use crate::config::settings;

/// Directories beneath a home in which installers put programs. npm's own prefix comes from its configuration, and
/// the directory of Node's versions from nvm.
const PLACES: [&str; 7] =
    [".local/bin", ".npm-global/bin", ".npm-packages/bin", ".bun/bin", ".volta/bin", ".deno/bin", "bin"];
/// Mode bits that permit writing to the group and to others.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Returns the directories that a program and its interpreter need in addition to `dirs`, the usual search path. Empty
/// if one of them is outside of the home, or if another user than its owner and root could write to it.
pub(crate) fn install_at_home(program: &str, dirs: &[PathBuf], home: &Path) -> Vec<PathBuf> {
    if program.contains(['/', '{']) {
        return Vec::new();
    }
    let usual = find(program, dirs);
    let Some(path) = usual.clone().or_else(|| find(program, &places(home))) else { return Vec::new() };
    let mut needed = if usual.is_none() { install_of(&path) } else { Vec::new() };
    if let Some(interpreter) = interpreter(&path).filter(|name| find(name, dirs).is_none()) {
        needed.extend(find(&interpreter, &places(home)).iter().flat_map(|path| install_of(path)));
    }
    needed.dedup();
    let owner = home.metadata().map(|meta| meta.uid());
    let is_closed = |dir: &PathBuf| {
        let Ok(meta) = dir.metadata() else { return false };
        let is_owners = meta.uid() == 0 || owner.as_ref().is_ok_and(|owner| *owner == meta.uid());
        is_owners && meta.mode() & WRITTEN_BY_OTHERS == 0
    };
    // A symbolic link may lead anywhere: to files of other users, or to the home itself.
    let is_inside = |dir: &PathBuf| dir.starts_with(home) && dir != home;
    if needed.iter().all(|dir| is_closed(dir) && is_inside(dir)) { needed } else { Vec::new() }
}

/// Returns the directories to search for programs that are installed in `install`.
pub fn search_path<'a>(install: impl IntoIterator<Item = &'a PathBuf>) -> impl Iterator<Item = PathBuf> {
    install.into_iter().flat_map(|dir| [dir.join("bin"), dir.clone()])
}

/// Returns the existing program directories beneath a home.
fn places(home: &Path) -> Vec<PathBuf> {
    let nvm = policies::Toolchain::Nvm.environment(home).path;
    let all =
        PLACES.iter().map(|place| home.join(place)).chain(npm_prefix(home).map(|prefix| prefix.join("bin")));
    all.chain(nvm).filter(|dir| dir.is_dir()).collect()
}

/// Returns the prefix of npm from `.npmrc`, as `npm config set prefix` writes it, if it is a directory in the home.
fn npm_prefix(home: &Path) -> Option<PathBuf> {
    let text = settings::read(&home.join(".npmrc")).ok()?;
    let value =
        text.lines().find_map(|line| line.trim().strip_prefix("prefix")?.trim_start().strip_prefix('='))?;
    let value = value.trim().trim_matches('"');
    let inside = ["~/", "${HOME}/"].iter().find_map(|root| value.strip_prefix(root));
    let prefix = inside.map_or_else(|| PathBuf::from(value), |inside| home.join(inside));
    Some(prefix).filter(|prefix| prefix.starts_with(home) && prefix != home)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn program(&self, path: &str, text: &str) {
            let at = self.at(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, text).unwrap();
            fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            symlink(self.at(target), self.at(path)).unwrap();
        }

        fn found(&self, program: &str) -> Vec<PathBuf> {
            install_at_home(program, &["/nothing/here".into()], &self.at(""))
        }
    }

    #[test]
    fn a_package_of_npm_is_found_with_the_node_of_nvm_that_runs_it() {
        let home = Home::new();
        home.program(".tools/lib/node_modules/@x/agent/cli.js", "#!/usr/bin/env node\n");
        home.link(".tools/bin/agent", ".tools/lib/node_modules/@x/agent/cli.js");
        home.program(".nvm/versions/node/v22.1.0/bin/node", "\x7fELF");
        assert_eq!(home.found("agent"), Vec::<PathBuf>::new(), "nothing says where npm installs");
        fs::write(home.at(".npmrc"), "fund=false\nprefix = ${HOME}/.tools\n").unwrap();
        let needed = [".tools/bin", ".tools/lib/node_modules", ".nvm/versions/node/v22.1.0/bin"];
        assert_eq!(home.found("agent"), needed.map(|dir| home.at(dir)));
        let usual = install_at_home("agent", &[home.at(".tools/bin"), home.at(needed[2])], &home.at(""));
        assert!(usual.is_empty(), "every run finds it: {usual:?}");
    }

    #[test]
    fn nobody_is_waited_for_who_has_made_fifos_of_the_files() {
        let home = Home::new();
        home.program(".local/bin/agent", "\x7fELF");
        fs::create_dir_all(home.at(".nvm/alias")).unwrap();
        fs::create_dir_all(home.at(".nvm/versions/node/v22.1.0/bin")).unwrap();
        for path in [".npmrc", ".nvm/alias/default"] {
            nix::unistd::mkfifo(&home.at(path), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        assert_eq!(home.found("agent"), [home.at(".local/bin")]);
        assert_eq!(interpreter(&home.at(".npmrc")), None);
    }

    #[test]
    fn nothing_is_found_that_others_could_change_or_that_holds_more_than_programs() {
        let home = Home::new();
        home.program(".local/bin/agent", "\x7fELF");
        assert_eq!(home.found("agent"), [home.at(".local/bin")]);
        for name in ["other", "/bin/agent", "{model}"] {
            assert!(home.found(name).is_empty(), "{name}");
        }
        fs::set_permissions(home.at(".local/bin"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(home.found("agent").is_empty(), "anybody may replace it");
        home.program("run.sh", "\x7fELF");
        home.link("bin/tool", "run.sh");
        assert!(home.found("tool").is_empty(), "it would grant the whole home");
        let elsewhere = Home::new();
        elsewhere.program("files/run", "\x7fELF");
        symlink(elsewhere.at("files/run"), home.at("bin/leads-out")).unwrap();
        assert!(
            home.found("leads-out").is_empty(),
            "it would grant what lies beside the program, wherever that is"
        );
    }
}
