//! Applies a plan to the calling process, in the only order that works.
//!
//! Cgroup and view need the caller's privileges; limits come before the change of user; the bounding set before the ids;
//! the death signal after them, because a change of user clears it; Landlock after all mounts; the filter last, so that
//! it need not allow any of this.

use std::path::PathBuf;

use rustix::process::fchdir;

use crate::egress::EgressError;
use crate::limits::Holding;
use crate::loopback::{self, LoopbackError};
use crate::mounting::ProbeError;
use crate::mounts::show_own_processes;
use crate::plan::{OwnProcesses, Plan};
use crate::privileges::{self, Closed, PrivilegeError};
use crate::report::{Layer, LayerReport, Report};
use crate::ruleset::{RulesetError, grant_path};
use crate::run_context::RunContext;
use crate::session;

/// A step of applying a plan that failed. The process is partly restricted and must end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The process has other threads, which would stay free.
    #[error("begin with a single thread: {0}")]
    Threads(#[source] std::io::Error),
    /// The cgroup could not be joined.
    #[error("join the cgroup {}: {source}", .path.display())]
    Cgroup { path: PathBuf, source: std::io::Error },
    /// The process could not lead a session.
    #[error("begin a session: {0}")]
    Session(#[source] nix::Error),
    /// The signals could not be reset.
    #[error("reset the signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The process could not be made to give way.
    #[error("lower the priority: {0}")]
    Priority(#[source] rustix::io::Errno),
    /// The file system view could not be made.
    #[error(transparent)]
    View(#[from] ProbeError),
    /// The loopback interface could not be made.
    #[error(transparent)]
    Loopback(#[from] LoopbackError),
    /// The listening socket of the proxy could not be made or handed over.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// The workspace could not be entered.
    #[error("enter the workspace {}: {source}", .path.display())]
    Workspace { path: PathBuf, source: std::io::Error },
    /// A limit could not be set.
    #[error("limit {name}: {source}")]
    Limit { name: &'static str, source: rustix::io::Errno },
    /// A privilege could not be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// Landlock could not be applied.
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    /// The filter could not be applied.
    #[error("filter system calls: {0}")]
    Filter(#[source] seccompiler::Error),
}

impl ApplyError {
    /// Returns the limits of the policy that held when this step failed.
    pub fn holding(&self) -> Holding {
        let is_before = matches!(
            self,
            Self::Threads(_)
                | Self::Cgroup { .. }
                | Self::Session(_)
                | Self::Signals(_)
                | Self::View(_)
                | Self::Loopback(_)
                | Self::Egress(_)
                | Self::Limit { .. }
        );
        if is_before { Holding::Group } else { Holding::All }
    }

    /// Returns true if every run under the policy fails like this on this host, and not only the run in this context. Another
    /// process may remove or replace a path of the run between the plan and its mount.
    pub fn is_general(&self, context: &RunContext) -> bool {
        match self {
            Self::Workspace { .. } => false,
            Self::View(error) => !error.changed().is_some_and(|path| context.has(path)),
            _ => true,
        }
    }
}

impl Plan {
    /// Restricts the calling single-threaded process for good, and leaves it in the workspace. Open descriptors are
    /// marked close-on-exec, so that a report can still be written before the exec.
    ///
    /// # Errors
    /// Names the step. The process may be partly restricted and must then end.
    pub fn apply(self) -> Result<Report, ApplyError> {
        session::require_one_thread().map_err(ApplyError::Threads)?;
        let mut layers = self.layers;
        if let Some(cgroup) = self.cgroup {
            cgroup.join().map_err(|(path, source)| ApplyError::Cgroup { path, source })?;
        }
        session::detach().map_err(ApplyError::Session)?;
        session::reset_signals().map_err(ApplyError::Signals)?;
        session::give_way().map_err(ApplyError::Priority)?;
        let oom = session::prefer_for_oom();
        layers.push(match oom {
            Ok(()) => LayerReport::enforced(Layer::Session),
            Err(error) => LayerReport::partial(Layer::Session, format!("oom_score_adj: {error}")),
        });

        let workspace = self.workspace.path.clone();
        let in_view = self.view.is_some();
        if let Some(view) = self.view {
            view.enter()?;
        }
        // The caller still has the privileges that made the view.
        if self.loopback {
            loopback::enter()?;
        }
        if let Some(egress) = self.egress {
            egress.hand_over()?;
        }
        if self.own_processes == OwnProcesses::Mounted {
            // This separates nothing. Where it is not permitted, `/proc` shows the host's numbers.
            show_own_processes().ok();
        }
        // After the view, whose directories the worker must be able to traverse.
        session::set_umask();
        self.limits.apply(self.counting).map_err(|(name, source)| ApplyError::Limit { name, source })?;

        let closed = privileges::close_sources()?;
        if let Some(identity) = self.identity {
            privileges::change_user(identity)?;
        }
        privileges::drop_capabilities()?;
        layers.push(match closed {
            Closed::All => LayerReport::enforced(Layer::Capabilities),
            Closed::WithoutBounding => {
                LayerReport::partial(Layer::Capabilities, "bounding set and secure bits need CAP_SETPCAP")
            }
        });
        privileges::die_with(self.parent)?;
        layers.push(LayerReport::enforced(Layer::ParentDeath));
        privileges::forbid_new()?;
        layers.push(LayerReport::enforced(Layer::NoNewPrivs));

        // The process is the worker's user by now, so a workspace that this user cannot enter is found here.
        let entered = if in_view {
            nix::unistd::chdir(&workspace).map_err(std::io::Error::from)
        } else {
            fchdir(&self.workspace).map_err(std::io::Error::from)
        };
        entered.map_err(|source| ApplyError::Workspace { path: workspace, source })?;

        close_fds::set_fds_cloexec(3, &[]);
        layers.push(LayerReport::enforced(Layer::Descriptors));
        if let Some(mut rules) = self.rules {
            for (path, access) in &self.late {
                rules = grant_path(rules, path, *access)?;
            }
            rules.restrict()?;
        }
        if let Some(filter) = self.filter {
            seccompiler::apply_filter(&filter).map_err(ApplyError::Filter)?;
        }
        layers.sort_by_key(|entry| entry.layer);
        Ok(Report { policy: self.policy, landlock_abi: self.abi, layers })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustix::io::Errno;

    use super::*;
    use crate::arrange::Arrange;
    use crate::paths::PathError;

    #[test]
    fn a_path_of_the_run_that_is_gone_or_another_concerns_its_run_alone() {
        let mut context = crate::run_context::bare(Path::new("/run"));
        let (at, source) = (PathBuf::from("/repository/.git/hooks"), PathBuf::from("/repository/.git/hooks"));
        context.arrangement.steps = vec![Arrange::Show { at, source }];
        let failed = |path: &str, errno| {
            ApplyError::View(PathError::Open { path: path.into(), source: errno }.into()).is_general(&context)
        };
        assert!(!failed("/repository/.git/hooks", Errno::NOENT));
        assert!(!failed("/run/ws/made", Errno::NOTDIR));
        assert!(!failed("/repository/.git/hooks", Errno::STALE));
        let linked = PathError::Linked { path: "/repository/.git/hooks".into() };
        assert!(!ApplyError::View(linked.into()).is_general(&context));
        // Another reason, and a path of the policy, concern every run.
        assert!(failed("/repository/.git/hooks", Errno::PERM));
        assert!(failed("/usr", Errno::NOENT));
        let lost = || std::io::Error::other("lost");
        assert!(!ApplyError::Workspace { path: "/ws".into(), source: lost() }.is_general(&context));
        assert!(ApplyError::Threads(lost()).is_general(&context));
    }
}
