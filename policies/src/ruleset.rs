//! Landlock: rights by path, TCP ports and scopes, for the ABI of the host.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, open};

use crate::access::Access;
use crate::network::Ports;
use crate::paths::{Kind, Opened, PathError};
use crate::session;
use crate::support::Support;

/// Failed step of Landlock.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesetError {
    /// The process has other threads, which would stay free.
    #[error("begin with a single thread: {0}")]
    Threads(#[source] std::io::Error),
    /// The kernel has no Landlock.
    #[error("confine paths: this kernel has no Landlock")]
    Absent,
    /// A path could not be opened.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The ruleset could not be made.
    #[error("make the Landlock ruleset: {0}")]
    Create(#[source] landlock::RulesetError),
    /// A path could not be added to the ruleset.
    #[error("grant {} in the Landlock ruleset: {source}", .path.display())]
    Rule { path: PathBuf, source: landlock::RulesetError },
    /// The ruleset could not be applied.
    #[error("apply the Landlock ruleset: {0}")]
    Restrict(#[source] landlock::RulesetError),
    /// The kernel enforced less than was requested.
    #[error("apply the Landlock ruleset: the kernel enforces only a part of it")]
    Partly,
}

/// Returns the crate's value for an ABI. A later ABI counts as the latest known one.
fn abi(number: u32) -> ABI {
    match number {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}

/// Returns the rights of an access to a file of this kind. Device nodes are never made, and only a listed device may be
/// controlled.
fn rights(access: Access, kind: Kind, number: u32) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSock
        | AccessFs::MakeFifo
        | AccessFs::MakeSym
        | AccessFs::Refer
        | AccessFs::ResolveUnix;
    let wanted = match access {
        Access::Read => read,
        Access::Execute => read | AccessFs::Execute,
        Access::Write => write,
        Access::WriteExecute => write | AccessFs::Execute,
        Access::Device => read | AccessFs::WriteFile | AccessFs::IoctlDev,
        Access::Socket => AccessFs::ResolveUnix.into(),
    };
    let known = wanted & AccessFs::from_all(abi(number));
    match kind {
        Kind::Directory => known,
        // The crate counts ResolveUnix among the rights of files only where the kernel has it.
        Kind::Device | Kind::Other => known & AccessFs::from_file(abi(number)),
    }
}

/// Ruleset without the paths that exist only after the mounts.
#[derive(Debug)]
pub(crate) struct Rules {
    created: RulesetCreated,
    abi: u32,
}

impl Rules {
    /// Makes a ruleset that denies all files, all TCP unless `ports` is `None`, and everything out of scope.
    pub(crate) fn new(number: u32, ports: Option<&Ports>) -> Result<Self, RulesetError> {
        let version = abi(number);
        let create = RulesetError::Create;
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(version))
            .map_err(create)?;
        let ports = ports.filter(|_| number >= 4);
        if ports.is_some() {
            ruleset = ruleset.handle_access(AccessNet::from_all(version)).map_err(create)?;
        }
        if number >= 6 {
            ruleset = ruleset.scope(Scope::from_all(version)).map_err(create)?;
        }
        let mut created = ruleset.create().map_err(create)?;
        for (access, numbers) in ports
            .into_iter()
            .flat_map(|p| [(AccessNet::ConnectTcp, &p.connect), (AccessNet::BindTcp, &p.bind)])
        {
            for port in numbers {
                created = created.add_rule(NetPort::new(*port, access)).map_err(create)?;
            }
        }
        Ok(Self { created, abi: number })
    }

    pub(crate) fn grant(mut self, opened: &Opened, access: Access) -> Result<Self, RulesetError> {
        let rights = rights(access, opened.kind, self.abi);
        if !rights.is_empty() {
            self.created = self
                .created
                .add_rule(PathBeneath::new(opened, rights))
                .map_err(|source| RulesetError::Rule { path: opened.path.clone(), source })?;
        }
        Ok(self)
    }

    /// Restricts the calling thread, and every process that it starts, for good.
    pub(crate) fn restrict(self) -> Result<(), RulesetError> {
        let status = self.created.restrict_self().map_err(RulesetError::Restrict)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => Err(RulesetError::Partly),
        }
    }
}

/// Restricts the calling single-threaded process to reading `read` and writing `write`, without TCP and without access
/// to other processes. For short-lived job processes that run no foreign program.
///
/// # Errors
/// Fails if the kernel has no Landlock, or a path is missing or goes through a symbolic link.
pub fn confine_paths(read: &[PathBuf], write: &[PathBuf]) -> Result<(), RulesetError> {
    session::require_one_thread().map_err(RulesetError::Threads)?;
    let number = Support::detect().landlock_abi;
    if number == 0 {
        return Err(RulesetError::Absent);
    }
    let mut rules = Rules::new(number, Some(&Ports::default()))?;
    for path in read {
        let (opened, _links) = Opened::followed(path, write)?;
        rules = rules.grant(&opened, Access::Read)?;
    }
    for path in write {
        rules = rules.grant(&Opened::real(path)?, Access::Write)?;
    }
    rules.restrict()
}

/// Puts the calling single-threaded process, and all processes that it starts, into a new Landlock domain beneath its
/// present one. The process keeps its files and its network. It can no longer trace a process outside of the domain, or
/// read the memory or the environment of one; from ABI 6 on, it cannot signal one either.
///
/// # Errors
/// Fails if the kernel has no Landlock.
pub fn enter_own_domain() -> Result<(), RulesetError> {
    session::require_one_thread().map_err(RulesetError::Threads)?;
    let number = Support::detect().landlock_abi;
    if number == 0 {
        return Err(RulesetError::Absent);
    }
    let mut rules = Rules::new(number, None)?;
    // The filter of a run refuses openat2(2), which opens the other paths. This path cannot be a link.
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|source| PathError::Open { path: "/".into(), source })?;
    let all = AccessFs::from_all(abi(number));
    rules.created = rules
        .created
        .add_rule(PathBeneath::new(root, all))
        .map_err(|source| RulesetError::Rule { path: "/".into(), source })?;
    rules.restrict()
}

/// Opens a path that exists only after the mounts and grants it.
pub(crate) fn grant_path(rules: Rules, path: &Path, access: Access) -> Result<Rules, RulesetError> {
    rules.grant(&Opened::real(path)?, access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_access_makes_device_nodes_and_only_devices_are_controlled() {
        for access in [Access::Read, Access::Execute, Access::Write, Access::WriteExecute, Access::Socket] {
            let rights = rights(access, Kind::Directory, 9);
            assert!(
                !rights.intersects(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev),
                "{access:?}"
            );
        }
        assert!(rights(Access::Device, Kind::Device, 7).contains(AccessFs::IoctlDev));
        assert!(!rights(Access::Device, Kind::Device, 4).contains(AccessFs::IoctlDev));
    }

    #[test]
    fn a_file_gets_rights_of_files_only() {
        for number in 1..=9 {
            let rights = rights(Access::WriteExecute, Kind::Other, number);
            assert_eq!(rights & AccessFs::from_file(abi(number)), rights);
        }
    }

    #[test]
    fn unix_sockets_are_reached_in_writable_places_and_in_the_boards_directory() {
        for access in [Access::Write, Access::WriteExecute, Access::Socket] {
            assert!(rights(access, Kind::Directory, 9).contains(AccessFs::ResolveUnix), "{access:?}");
        }
        assert!(rights(Access::Socket, Kind::Directory, 8).is_empty());
        assert!(!rights(Access::Read, Kind::Directory, 9).contains(AccessFs::ResolveUnix));
    }

    #[test]
    fn reading_does_not_execute() {
        assert!(!rights(Access::Read, Kind::Directory, 9).contains(AccessFs::Execute));
        assert!(!rights(Access::Write, Kind::Directory, 9).contains(AccessFs::Execute));
    }

    #[test]
    fn an_old_kernel_is_asked_for_no_right_that_it_does_not_have() {
        assert!(rights(Access::WriteExecute, Kind::Directory, 0).is_empty());
        for number in 1..9 {
            assert!(!AccessFs::from_all(abi(number)).contains(AccessFs::ResolveUnix), "{number}");
        }
    }
}
