//! Stages of a start in the daemon, between the claim of a run and its shim.

use std::fmt;

/// A stage. Later steps belong to the shim and the worker (`shim::rundir::Step`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Preparation, at an unknown stage.
    Prepare,
    /// Parse the workspace that the task names.
    ReadWorkspace,
    /// Read the secrets of its lane.
    ReadSecrets,
    ChooseUser,
    PrepareWorkspace,
    /// Read the script that the lane runs.
    ReadScript,
    /// Make the private places of the run.
    MakeHome,
    /// Copy the login of its assignee into its home.
    PlaceLogin,
    /// Copy the files that the run may read.
    PlaceFiles,
    MakeCgroup,
    /// Open the run's access to the board.
    MakeSocket,
    /// Find the places of other roots that stay closed to it.
    FindRoots,
    MakeRunDirectory,
    /// Make the authority that certifies the hosts of its brokers.
    MakeAuthority,
    StartShim,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare the run",
            Self::ReadWorkspace => "read the workspace",
            Self::ReadSecrets => "read the secrets of the lane",
            Self::ChooseUser => "choose the worker's user",
            Self::PrepareWorkspace => "prepare the workspace",
            Self::ReadScript => "read the script",
            Self::MakeHome => "make the run's home",
            Self::PlaceLogin => "place the login of the run",
            Self::PlaceFiles => "place the files of the run",
            Self::MakeCgroup => "make the run's cgroup",
            Self::MakeSocket => "make the run's socket",
            Self::FindRoots => "find the other roots of this host",
            Self::MakeRunDirectory => "make the run directory",
            Self::MakeAuthority => "make the run's authority",
            Self::StartShim => "start the shim",
        })
    }
}
