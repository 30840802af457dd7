//! Environments: things that the runs of many tasks need, and that fail for all of them.
//!
//! The owner loop counts a failure once for the environment, and not for each task.

use std::fmt;
use std::path::PathBuf;

use kernel::{BoardName, Profile};
use workspace::WorkspaceSpec;

use super::key::TaskKey;
use setup::config::Config;
use setup::roster::Roster;

/// A thing that the runs of many tasks need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Environment {
    /// Program of a lane, under a policy and a user.
    Program {
        lane: String,
        policy: String,
        /// Directory whose owner the worker runs as; none if each task has its own user, or all run as the daemon's.
        /// The directory stands for the user, because looking up the owner may block on a dead file system.
        as_owner_of: Option<PathBuf>,
    },
    /// Secrets that a lane names.
    Secrets {
        lane: String,
    },
    /// A policy, as this host can enforce it.
    Policy(String),
    /// A directory in which tasks work.
    Directory(PathBuf),
    Repository(PathBuf),
    /// Directory of a board's scratch workspaces.
    Workspaces(BoardName),
    /// Directories under the root that hold records, logs and homes of runs.
    Root,
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { lane, policy, as_owner_of } => {
                write!(f, "the program of the lane {lane} under the policy {policy}")?;
                match as_owner_of {
                    Some(path) => write!(f, " as the owner of {}", path.display()),
                    None => Ok(()),
                }
            }
            Self::Secrets { lane } => write!(f, "the secrets of the lane {lane}"),
            Self::Policy(name) => write!(f, "the policy {name}"),
            Self::Directory(path) => write!(f, "the directory {}", path.display()),
            Self::Repository(path) => write!(f, "the repository {}", path.display()),
            Self::Workspaces(board) => write!(f, "the workspaces of the board {board}"),
            Self::Root => f.write_str("the directories of the root"),
        }
    }
}

impl Environment {
    /// Returns a short description, as a card of the board shows it.
    pub fn brief(&self) -> String {
        match self {
            Self::Program { lane, .. } => format!("program of lane {lane}"),
            Self::Secrets { lane } => format!("secrets of lane {lane}"),
            Self::Policy(name) => format!("policy {name}"),
            Self::Directory(path) => format!("directory {}", path.display()),
            Self::Repository(path) => format!("repository {}", path.display()),
            Self::Workspaces(board) => format!("workspaces of board {board}"),
            Self::Root => "directories of the root".to_owned(),
        }
    }

    /// True for a directory or repository, which belongs to a user.
    pub(crate) fn is_of_user(&self) -> bool {
        matches!(self, Self::Directory(_) | Self::Repository(_))
    }

    /// Returns its name for people and the board: `program:agent/default`, `dir:/srv/app`.
    pub fn name(&self) -> String {
        match self {
            Self::Program { lane, policy, as_owner_of: None } => format!("program:{lane}/{policy}"),
            Self::Program { lane, policy, as_owner_of: Some(path) } => {
                format!("program:{lane}/{policy}@{}", path.display())
            }
            Self::Secrets { lane } => format!("secrets:{lane}"),
            Self::Policy(name) => format!("policy:{name}"),
            Self::Directory(path) => format!("dir:{}", path.display()),
            Self::Repository(path) => format!("repository:{}", path.display()),
            Self::Workspaces(board) => format!("workspaces:{board}"),
            Self::Root => "root".to_owned(),
        }
    }

    /// Parses a name; none if the text is not one.
    pub fn named(name: &str) -> Option<Self> {
        if name == "root" {
            return Some(Self::Root);
        }
        let (kind, rest) = name.split_once(':').filter(|(_, rest)| !rest.is_empty())?;
        Some(match kind {
            "program" => {
                let (lane, rest) = rest.split_once('/')?;
                // Names of policies contain no `@`.
                let (policy, path) = match rest.split_once('@') {
                    Some((policy, path)) => (policy, Some(PathBuf::from(path))),
                    None => (rest, None),
                };
                Self::Program { lane: lane.to_owned(), policy: policy.to_owned(), as_owner_of: path }
            }
            "secrets" => Self::Secrets { lane: rest.to_owned() },
            "policy" => Self::Policy(rest.to_owned()),
            "dir" => Self::Directory(rest.into()),
            "repository" => Self::Repository(rest.into()),
            "workspaces" => Self::Workspaces(rest.parse().ok()?),
            _ => return None,
        })
    }
}

/// Roster and configuration in which the lane and the policy of a task are looked up.
#[derive(Clone, Copy, Debug)]
pub struct RosterAndConfig<'a> {
    pub roster: &'a Roster,
    pub config: &'a Config,
}

/// Environments of one run, to find the cause of its failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    program: Environment,
    secrets: Environment,
    policy: Environment,
    place: Environment,
}

impl Needs {
    /// Returns the environments that the run of a task needs. Does no input or output.
    pub fn for_task(
        key: &TaskKey,
        profile: &Profile,
        policy: Option<&str>,
        workspace: &str,
        RosterAndConfig { roster, config }: RosterAndConfig<'_>,
    ) -> Self {
        let policy = roster.policy_name(profile, policy, config);
        let lane = roster.lane_name(profile, config);
        let place = match workspace.parse() {
            Ok(WorkspaceSpec::Directory(path)) => Environment::Directory(path),
            Ok(WorkspaceSpec::Worktree { repository: Some(path) }) => Environment::Repository(path),
            Ok(WorkspaceSpec::Scratch | WorkspaceSpec::Worktree { repository: None }) | Err(_) => {
                Environment::Workspaces(key.board.clone())
            }
        };
        let is_root = nix::unistd::geteuid().is_root();
        let as_owner_of = match &place {
            Environment::Directory(path) | Environment::Repository(path) if is_root => Some(path.clone()),
            _ => None,
        };
        Needs {
            program: Environment::Program { lane: lane.to_string(), policy: policy.clone(), as_owner_of },
            secrets: Environment::Secrets { lane: lane.to_string() },
            policy: Environment::Policy(policy),
            place,
        }
    }

    /// Returns the program of its lane.
    pub fn program(&self) -> Environment {
        self.program.clone()
    }

    pub fn policy(&self) -> Environment {
        self.policy.clone()
    }

    /// Returns the place in which it works.
    pub(crate) fn place(&self) -> Environment {
        self.place.clone()
    }

    pub fn all(&self) -> [&Environment; 5] {
        [&self.program, &self.secrets, &self.policy, &self.place, &Environment::Root]
    }
}

#[cfg(test)]
impl Needs {
    /// Returns the environments of a scratch task in a lane.
    pub fn scratch(lane: &str) -> Self {
        let program =
            Environment::Program { lane: lane.to_owned(), policy: "default".to_owned(), as_owner_of: None };
        let policy = Environment::Policy("default".to_owned());
        let secrets = Environment::Secrets { lane: lane.to_owned() };
        Needs { program, secrets, policy, place: Environment::Workspaces(BoardName::default()) }
    }

    /// Returns the environments of a task in a directory.
    pub(crate) fn at(directory: &str) -> Self {
        Needs { place: Environment::Directory(directory.into()), ..Needs::scratch("shell") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_found_again_by_its_name() {
        let program = |path: Option<&str>| Environment::Program {
            lane: "agent".to_owned(),
            policy: "default".to_owned(),
            as_owner_of: path.map(PathBuf::from),
        };
        for environment in [
            program(None),
            program(Some("/srv/a b")),
            Environment::Secrets { lane: "agent".to_owned() },
            Environment::Policy("default".to_owned()),
            Environment::Directory("/srv/x:y".into()),
            Environment::Repository("/srv/x".into()),
            Environment::Workspaces(BoardName::default()),
            Environment::Root,
        ] {
            assert_eq!(Environment::named(&environment.name()), Some(environment));
        }
        for wrong in ["", "host", "dir:", "program:agent", "other:x"] {
            assert_eq!(Environment::named(wrong), None, "{wrong}");
        }
    }
}
