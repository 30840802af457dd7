//! Checks that a host can enforce a policy at all, for any run, and finds the scope of a refusal.

use std::path::Path;

use crate::cgroup::Cgroup;
use crate::controller::Controller;
use crate::files::Granted;
use crate::policy::{Accepted, Policy};
use crate::process::MountNamespace;
use crate::refusal::PlanError;
use crate::report::{Layer, LayerReport};
use crate::run_context::{BoardAccess, RunContext};
use crate::support::{BoardKind, Support};

impl PlanError {
    /// Returns true if every run under the policy fails like this on this host, and not only the run in this context.
    pub fn is_general(&self, context: &RunContext) -> bool {
        match self {
            Self::Root | Self::Foreign { .. } | Self::Egress(_) => false,
            Self::Path(error) => !context.has(error.path()),
            Self::Closed { path, .. } | Self::Around { path, .. } | Self::Uncovered { path, .. } => {
                !context.has(path)
            }
            Self::Abi { .. }
            | Self::Seccomp
            | Self::View { .. }
            | Self::BoardSocket { .. }
            | Self::Mounts(_)
            | Self::Files { .. }
            | Self::Network { .. }
            | Self::Loopback { .. }
            | Self::NoProxy { .. }
            | Self::Secret(_)
            | Self::Toolchain { .. }
            | Self::Limit { .. }
            | Self::Cgroup { .. }
            | Self::Ruleset(_)
            | Self::Filter(_) => true,
        }
    }
}

impl Policy {
    // Decision 0031.
    /// Checks that this host can enforce the policy at all, for any run.
    ///
    /// # Errors
    /// Names the feature that the host lacks.
    pub fn check_host(&self, host: &Support) -> Result<(), PlanError> {
        let abi = self.abi(host)?;
        let no_view = self.no_view(host, &Granted::default());
        if let Some(why) = &no_view
            && self.is_confined()
            && self.process.mount_namespace == MountNamespace::Require
        {
            return Err(PlanError::View { policy: self.name.clone(), why: why.clone() });
        }
        self.check_files(abi, no_view.is_none())?;
        let filtered = self.filtered(host)?;
        let board = match host.board_access_kind() {
            BoardKind::Socket => BoardAccess::None,
            // Whichever it is.
            BoardKind::Port => BoardAccess::Port(1),
        };
        if self.is_confined()
            && let Some(why) = self.network.unenforceable(&self.network.reach(&board), abi, filtered)
            && !self.accepts(Accepted::Network)
        {
            return Err(PlanError::Network { policy: self.name.clone(), why });
        }
        if self.is_confined() && self.network.is_own() {
            self.check_own_network(&board, host, no_view.is_none())?;
        }
        let gap = |controller: &Controller| !host.controllers.contains(controller);
        match self.limits.controllers().find(gap) {
            Some(limit) => self.refuse_limit(limit, "the cgroups of runs lack the controller".to_owned()),
            None => Ok(()),
        }
    }

    fn refuse_limit(&self, limit: Controller, why: String) -> Result<(), PlanError> {
        if self.is_hard() { Err(PlanError::Limit { policy: self.name.clone(), limit, why }) } else { Ok(()) }
    }

    /// Opens the run's cgroup, and refuses limits that it does not enforce.
    pub(crate) fn cgroup(&self, context: &RunContext) -> Result<(Option<Cgroup>, LayerReport), PlanError> {
        let Some(path) = &context.work_cgroup else {
            if let Some(limit) = self.limits.controllers().next() {
                self.refuse_limit(limit, "the run has no cgroup".to_owned())?;
            }
            let why = match context.pid_namespace {
                Some(_) => "this run has none; a pid namespace holds its processes together",
                None => "this run has none",
            };
            return Ok((None, LayerReport::absent(Layer::Cgroup, why)));
        };
        let (cgroup, gaps) = self.open_cgroup(path)?;
        Ok((Some(cgroup), LayerReport::unless(Layer::Cgroup, &gaps)))
    }

    /// Sets the limits of a run that goes on in its cgroup `work`, where nothing enforced them for a while.
    ///
    /// # Errors
    /// As for the plan of a new run: names the limit that the cgroup does not enforce.
    pub fn hold_limits(&self, work: &Path) -> Result<(), PlanError> {
        let (mut cgroup, _) = self.open_cgroup(work)?;
        cgroup.hold().map_err(|source| PlanError::Cgroup { path: work.to_owned(), source })
    }

    /// Opens a cgroup; returns the limits that it does not enforce, and refuses missing limits that must be enforced.
    fn open_cgroup(&self, path: &Path) -> Result<(Cgroup, Vec<String>), PlanError> {
        let (cgroup, gaps) = Cgroup::open(path, &self.limits)
            .map_err(|source| PlanError::Cgroup { path: path.to_owned(), source })?;
        for gap in gaps.iter().filter(|gap| gap.controller.is_alone()) {
            self.refuse_limit(gap.controller, gap.why.clone())?;
        }
        Ok((cgroup, gaps.into_iter().map(|gap| gap.why).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrange::{Arrange, Arrangement};
    use crate::paths::PathError;

    #[test]
    fn a_refusal_about_a_place_of_the_run_concerns_that_run_alone() {
        let shown = Arrange::Show { at: "/git/hooks".into(), source: "/srv/hooks".into() };
        let context = RunContext {
            read: vec!["/srv/read".into()],
            arrangement: Arrangement { steps: vec![shown], ..Arrangement::default() },
            ..crate::run_context::bare(Path::new("/run"))
        };
        let closed = |path: &str| PlanError::Closed { path: path.into(), place: "/sv".into() };
        let missing = |path: &str| {
            PlanError::Path(PathError::Open { path: path.into(), source: rustix::io::Errno::NOENT })
        };
        for (path, is_general) in [
            ("/run/ws/x", false),
            ("/run/home", false),
            ("/srv/read/x", false),
            ("/git/hooks", false),
            ("/srv/hooks/x", false),
            ("/srv/data", true),
            ("/run", true),
        ] {
            assert_eq!(closed(path).is_general(&context), is_general, "{path}");
            assert_eq!(missing(path).is_general(&context), is_general, "{path}");
        }
        assert!(!PlanError::Root.is_general(&context) && PlanError::Seccomp.is_general(&context));
    }
}
