//! The stages of the daemon between the claim of a run and its shim.

use std::fmt;

/// A stage. The steps after it are the shim's and the worker's (`shim::rundir::Step`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Stage {
    /// Preparing it, where nobody knows how far that came.
    Prepare,
    /// Reading what workspace the task names.
    ReadWorkspace,
    /// Reading the secrets of its lane.
    ReadSecrets,
    /// Choosing the worker's user.
    ChooseUser,
    /// Making the workspace ready.
    PrepareWorkspace,
    /// Reading the body that the lane runs.
    ReadScript,
    /// Making the private places of the run.
    MakeHome,
    /// Copying the login of its assignee into its home.
    PlaceLogin,
    /// Copying the files that the run may read.
    PlaceFiles,
    /// Making the run's cgroup.
    MakeCgroup,
    /// Making the run's way to the board.
    MakeSocket,
    /// Finding what of other roots stays closed to it.
    FindRoots,
    MakeRunDirectory,
    /// Making the authority that certifies the hosts of its brokers.
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
