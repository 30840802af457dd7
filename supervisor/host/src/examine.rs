//! Examines the host: its sandbox features and its name; installs the binary for workers.

use std::path::Path;

use super::cgroup::{Cgroups, controllers_of};
use super::controllers::Handed;
use super::job;
use base::failure::Failure;
use base::paths::Root;

/// Copies this binary to a directory that workers can reach: a build directory or a home may be closed to them.
/// The program is copied, and not linked: a linked file that an installer rewrites in place would change under
/// its workers, and a link has the owner and the mode of the original. On btrfs and xfs the copy shares its
/// blocks.
pub fn install_binary(root: &Root) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let source = Path::new("/proc/self/exe");
    let target = root.bin().join("supervisor");
    let fail = |e: std::io::Error| Failure::file("install the workers' binary", &target, &e);
    let meta = std::fs::metadata(source).map_err(fail)?;
    let modified = meta.modified().map_err(fail)?;
    let same = std::fs::metadata(&target)
        .is_ok_and(|there| there.len() == meta.len() && there.modified().is_ok_and(|at| at == modified));
    if same {
        return Ok(());
    }
    let mut copy = tempfile::NamedTempFile::new_in(root.bin()).map_err(fail)?;
    let mut original = std::fs::File::open(source).map_err(fail)?;
    std::io::copy(&mut original, copy.as_file_mut()).map_err(fail)?;
    copy.as_file().set_modified(modified).map_err(fail)?;
    copy.as_file().set_permissions(std::fs::Permissions::from_mode(0o755)).map_err(fail)?;
    copy.persist(&target).map_err(|e| fail(e.error))?;
    Ok(())
}

pub async fn detect_support() -> Result<policies::Support, Failure> {
    let probed = tokio::task::spawn_blocking(probed_support);
    probed.await.map_err(|e| Failure::failed(format!("failed to examine the host: {e}")))
}

fn probed_support() -> policies::Support {
    let support = policies::Support::detect();
    match job::probe_view() {
        Ok(()) => support,
        Err(why) => support.without_view(why),
    }
}

/// Checks how runs without a cgroup can be confined to a pid namespace on this host.
pub async fn detect_pid_namespace(support: &policies::Support) -> Result<policies::PidNamespace, String> {
    let namespace = policies::PidNamespace::for_view(&support.view)
        .ok_or_else(|| "this host permits no namespaces".to_owned())?;
    let probed = tokio::task::spawn_blocking(move || job::probe_pid_namespace(namespace));
    probed.await.map_err(|e| format!("failed to examine the host: {e}"))?.map(|()| namespace)
}

pub fn hostname() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// Features of the host for workers, as a daemon started now would find them.
#[derive(Debug)]
pub struct HostLook {
    /// Layers that can be enforced.
    pub support: policies::Support,
    /// Support for run cgroups, or the reason for its lack.
    pub cgroups: Result<(), String>,
    /// Reason why some limits of runs are not enforced, if so.
    pub gap: Option<String>,
}

/// Examines the host and leaves nothing behind. `daemon` is the pid of a running daemon whose groups are examined.
pub fn examine_host(daemon: Option<i32>) -> HostLook {
    let cgroups =
        Cgroups::find(Path::new(&format!("/look/{}", std::process::id()))).map(|found| found.remove());
    let handed = match &cgroups {
        Ok(()) => controllers_of(daemon).unwrap_or_else(|why| Handed { gap: Some(why), ..Handed::default() }),
        Err(why) => Handed { gap: Some(why.clone()), ..Handed::default() },
    };
    let support = probed_support().with_controllers(handed.controllers);
    HostLook { support, cgroups, gap: handed.gap }
}
