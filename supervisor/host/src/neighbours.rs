//! Finds the other roots of this host, which are closed to this root's workers as the own root is.
//!
//! Daemons of the root user find each other in the host's ledger of worker uids. The host's service and the service
//! of this process's user have well-known directories. Roots of other users in other directories are unknown.
//!
//! See decision 0024.

use std::path::PathBuf;

use super::uids;
use base::failure::Failure;
use base::paths::{Root, RootChoice};
use setup::config::WorkerConfig;

/// Returns the directories that are closed to every worker of this root: its own, and other roots' directories.
pub fn closed(root: &Root, config: &WorkerConfig) -> Result<Vec<PathBuf>, Failure> {
    let mut closed = root.closed();
    closed.extend(places(root, config)?);
    Ok(closed)
}

/// Returns the existing directories of other roots.
fn places(root: &Root, config: &WorkerConfig) -> Result<Vec<PathBuf>, Failure> {
    let closed_here = root.closed();
    let system = RootChoice { system: true, ..RootChoice::default() }.resolve(|_| None).ok();
    let user = RootChoice { user: true, ..RootChoice::default() };
    let user = user.resolve(|name| std::env::var_os(name).map(PathBuf::from)).ok();
    let mut places: Vec<PathBuf> = system.iter().chain(&user).flat_map(Root::closed).collect();
    if nix::unistd::geteuid().is_root() {
        places.extend(uids::roots(config)?);
        places.push(config.uid_ledger.clone());
    }
    places.sort();
    places.dedup();
    places.retain(|place| !closed_here.contains(place) && place.is_dir());
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_of_the_ledger_is_known_until_it_is_gone() {
        if !nix::unistd::geteuid().is_root() {
            skips::skip("needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let config = WorkerConfig { uid_ledger: dir.path().join("ledger"), ..WorkerConfig::default() };
        let roots = ["a", "b"].map(|name| {
            let choice = RootChoice { root: Some(dir.path().join(name)), ..RootChoice::default() };
            let root = choice.resolve(|_| None).unwrap();
            root.create().unwrap();
            let board = "00000000-0000-0000-0000-000000000001".parse().unwrap();
            uids::Uids::new(&root).range(board, &config).unwrap();
            root
        });
        let known = places(&roots[0], &config).unwrap();
        assert!(
            known.contains(&roots[1].dir().to_owned()) && known.contains(&config.uid_ledger),
            "{known:?}"
        );
        assert!(!known.contains(&roots[0].dir().to_owned()), "its own has places that are a run's");
        std::fs::remove_dir_all(roots[1].dir()).unwrap();
        assert!(!places(&roots[0], &config).unwrap().contains(&roots[1].dir().to_owned()));
    }
}
