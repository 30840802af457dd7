//! Chooses the root of a command by its options, the environment and the user.

use std::path::PathBuf;

use clap::parser::ValueSource;

use super::Root;
use crate::failure::Failure;

/// Choice of a root, before any directory is touched.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RootChoice {
    /// Keep everything (board, sockets, logs, workspaces) under this directory
    #[arg(long, global = true, value_name = "DIR", env = "SUPERVISOR_ROOT", help_heading = "Global options")]
    pub root: Option<PathBuf>,
    /// Use the host's service (/var/lib/supervisor); the default for root
    #[arg(long, global = true, conflicts_with = "user", help_heading = "Global options")]
    pub system: bool,
    /// Use this user's own service (XDG directories); the default for everyone else
    #[arg(long, global = true, help_heading = "Global options")]
    pub user: bool,
}

/// Error: two options of one command line name two roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the argument '--root <DIR>' cannot be used with '{0}'")]
pub struct TwoRoots(&'static str);

impl RootChoice {
    /// Drops the root of the environment if an option names another root.
    pub fn of_options_first(self, source: Option<ValueSource>) -> Result<Self, TwoRoots> {
        let option = if self.system { "--system" } else { "--user" };
        match (self.system || self.user, source) {
            (true, Some(ValueSource::CommandLine)) => Err(TwoRoots(option)),
            (true, _) => Ok(RootChoice { root: None, ..self }),
            (false, _) => Ok(self),
        }
    }

    /// Returns the chosen root: the directory `root`, else the root of `--system` or `--user`, else the default of the
    /// uid. `root` may come from `SUPERVISOR_ROOT`; [`Self::of_options_first`] has dropped it if an option overrides it.
    ///
    /// # Errors
    /// The root is a file, or the variable `HOME` is needed and not set.
    pub fn resolve(&self, env: impl Fn(&str) -> Option<PathBuf>) -> Result<Root, Failure> {
        if let Some(dir) = &self.root {
            let dir = std::path::absolute(dir).map_err(|e| Failure::file("resolve the root", dir, &e))?;
            if dir.exists() && !dir.is_dir() {
                return Err(Failure::usage(format!("the root {} is not a directory", dir.display()))
                    .hint("name a directory with --root DIR or SUPERVISOR_ROOT"));
            }
            return Ok(Root { runtime: dir.join("run"), config: dir.clone(), state: dir });
        }
        let system = self.system || (!self.user && nix::unistd::geteuid().is_root());
        // A unit of systemd gets its directories in `STATE_DIRECTORY` and the like (systemd.exec(5)). The XDG Base
        // Directory Specification demands that relative paths are ignored.
        let given = |name: &str| env(name).filter(|path| path.is_absolute());
        if system {
            return Ok(Root {
                state: given("STATE_DIRECTORY").unwrap_or_else(|| "/var/lib/supervisor".into()),
                runtime: given("RUNTIME_DIRECTORY").unwrap_or_else(|| "/run/supervisor".into()),
                config: given("CONFIGURATION_DIRECTORY").unwrap_or_else(|| "/etc/supervisor".into()),
            });
        }
        let home = given("HOME").ok_or_else(|| {
            Failure::usage("no home directory to keep the board in: HOME is not set")
                .hint("name a directory with --root DIR")
        })?;
        let state = given("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state")).join("supervisor");
        Ok(Root {
            runtime: given("XDG_RUNTIME_DIR").map_or_else(|| state.join("run"), |dir| dir.join("supervisor")),
            config: given("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("supervisor"),
            state,
        })
    }

    /// Returns the options with which a command chooses the same root from any current directory.
    pub fn options(&self) -> Vec<String> {
        let root = self.root.as_ref().map(|dir| std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
        let root = root.map(|dir| ["--root".to_owned(), dir.display().to_string()]);
        let chosen = [(self.system, "--system"), (self.user, "--user")].into_iter().filter(|(is, _)| *is);
        let chosen = chosen.map(|(_, option)| option.to_owned());
        root.into_iter().flatten().chain(chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kernel::RunId;

    use super::*;

    #[test]
    fn an_explicit_root_holds_everything() {
        let choice = RootChoice { root: Some("/srv/x".into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        assert_eq!(root.operator_socket(), Path::new("/srv/x/run/supervisor.sock"));
        assert_eq!(root.config_file(), Path::new("/srv/x/supervisor.toml"));
        assert_eq!(root.dir(), Path::new("/srv/x"));
    }

    #[test]
    fn an_option_beats_the_root_of_the_environment_and_two_options_are_refused() {
        let choice = |source| {
            let choice = RootChoice { root: Some("/srv/x".into()), system: true, user: false };
            choice.of_options_first(Some(source))
        };
        let root = choice(ValueSource::EnvVariable).unwrap().resolve(|_| None).unwrap();
        assert_eq!(root.dir(), Path::new("/var/lib/supervisor"));
        assert_eq!(choice(ValueSource::CommandLine).unwrap_err(), TwoRoots("--system"));
        let alone = RootChoice { root: Some("/srv/x".into()), ..RootChoice::default() };
        assert!(alone.of_options_first(Some(ValueSource::EnvVariable)).unwrap().root.is_some());
    }

    #[test]
    fn a_user_service_follows_the_xdg_directories() {
        let choice = RootChoice { user: true, ..RootChoice::default() };
        let root = choice
            .resolve(|name| match name {
                "HOME" => Some("/home/ann".into()),
                "XDG_RUNTIME_DIR" => Some("/run/user/7".into()),
                _ => None,
            })
            .unwrap();
        assert_eq!(root.dir(), Path::new("/home/ann/.local/state/supervisor"));
        let board = "6f1c0c4e-7a55-4f0e-9d51-0a8d3a6b1c02".parse().unwrap();
        let socket = root.run_socket(board, RunId(12));
        assert_eq!(socket, Path::new("/run/user/7/supervisor/doors/12-6f1c0c4e/sock"));
        assert_eq!(root.lanes_dir(), Path::new("/home/ann/.config/supervisor/lanes.d"));
    }
}
