//! Makes a plan from a policy. Every step that can fail is taken here, before the first restriction.

use std::path::{Path, PathBuf};

use seccompiler::BpfProgram;

use crate::access::Access;
use crate::cgroup::Cgroup;
use crate::covers;
use crate::egress::Egress;
use crate::files::{Device, Granted, Proc, Shm};
use crate::layers::{set_ids_report, uid_report, unix_report};
use crate::limits::{Counting, Limits};
use crate::mounts::{self, Extras};
use crate::network::{Filtered, Reach};
use crate::paths::Opened;
use crate::policy::{Accepted, Policy};
use crate::process::{MountNamespace, Seccomp};
use crate::refusal::PlanError;
use crate::report::{Layer, LayerReport};
use crate::ruleset::Rules;
use crate::run_context::{BoardAccess, Identity, RunContext};
use crate::secrets::Secrets;
use crate::shares;
use crate::support::{Support, View};
use crate::syscalls::{self, UnixSockets};
use crate::user_names;

/// A policy that is ready to be applied to one run.
#[derive(Debug)]
#[must_use = "nothing is confined until the plan is applied"]
pub struct Plan {
    pub(crate) policy: String,
    pub(crate) abi: u32,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) view: Option<mounts::Plan>,
    pub(crate) own_processes: OwnProcesses,
    pub(crate) loopback: bool,
    pub(crate) egress: Option<Egress>,
    pub(crate) secrets: Secrets,
    pub(crate) workspace: Opened,
    pub(crate) limits: Limits,
    pub(crate) counting: Counting,
    pub(crate) identity: Option<Identity>,
    pub(crate) parent: i32,
    pub(crate) rules: Option<Rules>,
    pub(crate) late: Vec<(PathBuf, Access)>,
    pub(crate) filter: Option<BpfProgram>,
    pub(crate) layers: Vec<LayerReport>,
}

/// Treatment of `/proc` for a run in its own pid namespace without a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnProcesses {
    /// The host's `/proc` fits, or the view has its own.
    AsTheyAre,
    /// Another `/proc` is mounted over the host's.
    Mounted,
}

impl Plan {
    /// Takes the secrets of the run out of the plan, for the environment of its command.
    pub(crate) fn take_secrets(&mut self) -> Secrets {
        std::mem::take(&mut self.secrets)
    }
}

// Decision 0002: every path is open, and the ruleset complete, before the first mount.
impl Policy {
    /// Returns true if a run has a file system view of its own on this host, unless the policy grants the whole file
    /// system.
    pub fn has_view(&self, host: &Support) -> bool {
        self.is_confined() && self.process.mount_namespace != MountNamespace::Off && host.has_view()
    }

    /// Checks and opens everything that the run needs, without restricting the caller.
    ///
    /// # Errors
    /// Names the step that is not possible on this host, and its path if it has one.
    pub fn plan(&self, context: &RunContext, host: &Support) -> Result<Plan, PlanError> {
        check_user(context, host)?;
        let confined = self.is_confined();
        let abi = self.abi(host)?;
        let (cgroup, cgroup_report) = self.cgroup(context)?;
        let workspace = Opened::real(&context.workspace)?.directory()?;
        let mut granted = if confined { self.open_files(context)? } else { Granted::default() };
        if confined {
            granted.paths.extend(self.filesystem.open_devices()?);
        }
        // The view decides about later steps: without one, arranged paths need grants, and sockets must be refused.
        let (view, view_report) = self.view(context, host, abi, &granted)?;
        let view = match view {
            Some(view) => Some(view.arranged(context.arrangement.open()?)),
            None if confined => {
                granted.paths.extend(context.arrangement.without_view()?);
                None
            }
            None => None,
        };
        self.check_files(abi, view.is_some())?;
        let hides = host.clone().with_abi(abi).hides_sockets(view.is_some());
        let filtered = self.filtered(host)?;
        // A run that can make any Unix socket could connect to other processes, unless the view or Landlock hides
        // theirs.
        let unix = if !confined || hides { UnixSockets::Allowed } else { UnixSockets::PairsOnly };
        if let (UnixSockets::PairsOnly, BoardAccess::Socket(path)) = (unix, &context.board) {
            return Err(PlanError::BoardSocket { path: path.clone() });
        }
        let loopback = confined && self.network.is_own();
        if loopback {
            self.check_own_network(&context.board, host, view.is_some())?;
        }
        let egress = self.egress(context)?;
        let secrets = Secrets::read(&self.env.secret, &context.secret_stores())?;
        let reach = if confined { self.network.reach(&context.board) } else { Reach::everything() };
        if confined
            && let Some(why) = self.network.unenforceable(&reach, abi, filtered)
            && !self.accepts(Accepted::Network)
        {
            return Err(PlanError::Network { policy: self.name.clone(), why });
        }
        // These paths exist only in the view, so their rules are added after the mounts.
        let mut late = self.late(context, view.as_ref());
        if view.is_some() {
            late.extend(context.arrangement.fresh());
        }
        let rules = if confined && abi > 0 {
            let mut rules = Rules::new(abi, reach.tcp.as_ref())?;
            for (opened, access) in &granted.paths {
                rules = rules.grant(opened, *access)?;
            }
            for (opened, access) in view.iter().flat_map(|view| view.shown()) {
                rules = rules.grant(opened, access)?;
            }
            Some(rules)
        } else {
            None
        };
        let filter = if filtered == Filtered::Yes {
            syscalls::compile(&self.process, &reach, unix, std::process::id())?
        } else {
            None
        };
        let own_processes = match (context.pid_namespace, &view) {
            (Some(_), None) => OwnProcesses::Mounted,
            (Some(_), Some(_)) | (None, _) => OwnProcesses::AsTheyAre,
        };
        // `RLIMIT_NPROC` counts all processes of a user, so it bounds a run only if the user, or the user namespace, is
        // the run's own (setrlimit(2)).
        let counting = match (&view, context.identity) {
            (Some(view), _) if view.makes_user_namespace() => Counting::Alone,
            (_, Some(identity)) if identity.uid != host.uid => Counting::Alone,
            _ => Counting::Shared,
        };
        let mut layers = vec![cgroup_report, view_report];
        let file_max = shares::file_max();
        layers.push(self.limits_report(counting, file_max));
        layers.push(uid_report(context, host, view.is_some()));
        layers.extend(self.ruled_reports(abi, &reach, filtered, view.is_some()));
        layers.push(unix_report(confined, abi, view.is_some(), unix, filtered));
        layers.push(set_ids_report(filtered));
        layers.push(self.filter_report(filtered));
        if view.is_none() {
            let whole = std::mem::take(&mut layers).into_iter();
            layers = whole.map(|report| context.arrangement.reported_without_view(report)).collect();
        }
        Ok(Plan {
            policy: self.name.clone(),
            abi,
            cgroup,
            view,
            own_processes,
            loopback,
            egress,
            secrets,
            workspace,
            limits: Limits { files: self.limits.holders().files_of_each(file_max), ..self.limits.clone() },
            counting,
            identity: context.identity,
            parent: context.parent,
            rules,
            late,
            filter,
            layers,
        })
    }

    /// Returns the Landlock ABI to use, or refuses a host whose ABI is too old for the policy.
    pub(crate) fn abi(&self, host: &Support) -> Result<u32, PlanError> {
        let found = host.landlock_abi;
        if !self.is_confined() {
            return Ok(found);
        }
        // Older ABIs cannot restrict truncation, so a policy about files would have no effect.
        let needed = self.min_abi.max(3);
        if self.is_hard() && found < needed {
            return Err(PlanError::Abi { policy: self.name.clone(), needed, found });
        }
        Ok(found)
    }

    pub(crate) fn filtered(&self, host: &Support) -> Result<Filtered, PlanError> {
        if !self.is_confined() || self.process.seccomp == Seccomp::Off {
            return Ok(Filtered::No);
        }
        match (host.seccomp, self.is_hard()) {
            (true, _) => Ok(Filtered::Yes),
            (false, true) => Err(PlanError::Seccomp),
            (false, false) => Ok(Filtered::No),
        }
    }

    /// Opens the paths that the policy and the run grant.
    fn open_files(&self, context: &RunContext) -> Result<Granted, PlanError> {
        let files = &self.filesystem;
        if let (Some(toolchain), None) = (files.toolchains.required(), files.tools_home(context)) {
            let name = toolchain.name().to_owned();
            return Err(PlanError::Toolchain { policy: self.name.clone(), name });
        }
        Ok(files.open(context)?)
    }

    /// Returns the reason why the run has no view; none if it has one.
    pub(crate) fn no_view(&self, host: &Support, granted: &Granted) -> Option<String> {
        if !self.is_confined() || self.process.mount_namespace == MountNamespace::Off {
            return Some("the policy asks for none".to_owned());
        }
        if granted.paths.iter().any(|(opened, _)| opened.path == Path::new("/")) {
            return Some("the policy grants the whole file system".to_owned());
        }
        match &host.view {
            View::Unavailable { why } => Some(why.clone()),
            View::Privileged | View::UserNamespace => None,
        }
    }

    fn view(
        &self,
        context: &RunContext,
        host: &Support,
        abi: u32,
        granted: &Granted,
    ) -> Result<(Option<mounts::Plan>, LayerReport), PlanError> {
        let layer = Layer::Mounts;
        let no_view = self.no_view(host, granted);
        // This comes first, because a grant that needs a cover is refused on a host without a view.
        let mut covered = covers::covers(&granted.paths, &context.closed, no_view.as_deref())?;
        if let Some(why) = no_view {
            if self.is_confined() && self.process.mount_namespace == MountNamespace::Require {
                return Err(PlanError::View { policy: self.name.clone(), why });
            }
            let why = match &host.view {
                View::Unavailable { why: host } if *host == why => {
                    format!(
                        "{why}: metadata of files of the same user stays visible, no /dev/shm, no terminals"
                    )
                }
                View::Unavailable { .. } | View::Privileged | View::UserNamespace => why,
            };
            return Ok((None, LayerReport::absent(layer, why)));
        }
        // From ABI 9 on, Landlock refuses foreign sockets by path.
        if abi < 9 {
            covered.extend(covers::sockets(&granted.paths, &context.closed)?);
        }
        let user = context.identity.unwrap_or_else(Identity::current);
        let extras = Extras {
            covers: covered,
            replaced: user_names::replaced(user, &context.home),
            shm: self.filesystem.shm == Shm::Private,
            terminals: self.filesystem.devices.contains(&Device::Ptmx),
            pid_namespace: context.pid_namespace,
        };
        let paths = granted.paths.iter().map(|(opened, access)| (opened, *access));
        let tmp = Opened::real(&context.tmp)?;
        let plan = mounts::Plan::new(&host.view, paths, &granted.links, extras, Some(&tmp))?;
        let report = match self.leads_out(abi) {
            Some(way) => LayerReport::partial(layer, format!("without Landlock {way}")),
            None => LayerReport::enforced(layer),
        };
        Ok((plan, report))
    }

    /// Refuses a network of the run's own if it cannot be made, or if the run could not reach the board from it.
    pub(crate) fn check_own_network(
        &self,
        board: &BoardAccess,
        host: &Support,
        view: bool,
    ) -> Result<(), PlanError> {
        let why = match board {
            BoardAccess::Port(_) => {
                "the board is served on a port of the host's loopback interface, which it would hide"
            }
            BoardAccess::Socket(_) | BoardAccess::None if !view && host.uid != 0 => {
                "that needs root or a user namespace, and this host permits neither"
            }
            BoardAccess::Socket(_) | BoardAccess::None => return Ok(()),
        };
        Err(PlanError::Loopback { policy: self.name.clone(), why })
    }

    /// Opens the channel through which the listening socket of the run's proxy leaves the run's network.
    fn egress(&self, context: &RunContext) -> Result<Option<Egress>, PlanError> {
        if !self.has_proxy() {
            return Ok(None);
        }
        let Some(keeper) = &context.proxy else {
            return Err(PlanError::NoProxy { policy: self.name.clone() });
        };
        Ok(Some(Egress::to(keeper)?))
    }

    /// Refuses a run whose access to files nothing would limit, unless the policy accepts that.
    pub(crate) fn check_files(&self, abi: u32, view: bool) -> Result<(), PlanError> {
        let (why, hint) = match self.leads_out(abi) {
            _ if !self.is_confined() || abi > 0 || self.accepts(Accepted::Files) => return Ok(()),
            _ if !view => ("no mount namespace can be had either", ""),
            Some(way) => (way, ", proc = \"none\" in [filesystem]"),
            None => return Ok(()),
        };
        Err(PlanError::Files { policy: self.name.clone(), why, hint })
    }

    /// Returns the paths that exist only once the view does.
    fn late(&self, context: &RunContext, view: Option<&mounts::Plan>) -> Vec<(PathBuf, Access)> {
        let mut late = Vec::new();
        if self.filesystem.proc == Proc::Host && context.pid_namespace.is_some() {
            late.push((PathBuf::from("/proc"), Access::Read));
        }
        let Some(view) = view else { return late };
        if self.filesystem.shm == Shm::Private {
            late.push((PathBuf::from("/dev/shm"), Access::Write));
        }
        if self.filesystem.devices.contains(&Device::Ptmx) {
            late.push((PathBuf::from("/dev/pts"), Access::Device));
        }
        late.extend(view.replaced().map(|path| (path.to_owned(), Access::Read)));
        late
    }
}

fn check_user(context: &RunContext, host: &Support) -> Result<(), PlanError> {
    match context.identity {
        None if host.uid == 0 => Err(PlanError::Root),
        Some(identity) if identity.uid == 0 || identity.gid == 0 => Err(PlanError::Root),
        Some(identity) if host.uid != 0 && identity.uid != host.uid => {
            Err(PlanError::Foreign { caller: host.uid, wanted: identity.uid })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
