//! Decides which of the task, its environment and the host is at fault for a failed start. The decision rests on the
//! scope that the failure reports (`Concern`), the number of the error, and the environment of the task.
//!
//! See decision 0030.

use std::error::Error;

use shim::rundir::{Concern, FailedStart};
use shim::shortage::{is_shortage, is_shortage_number};

use super::environment::{Environment, Needs};
use super::stage::Stage;
use base::exit::Code;
use base::failure::Failure;
use host::job::{Cause, JobFailure};

/// Cause of a failed start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The task; the failure counts towards its breaker.
    Task,
    /// The definition of the task: another try cannot succeed before a person corrects it.
    Definition,
    /// An environment that the runs of many tasks need.
    Environment(Environment),
    /// The host, which lacks a resource for now.
    Host,
    /// Timing: another run, or a git of the repository's owner, still has the workspace.
    Moment,
    /// None: the run was given up during its preparation.
    Abandoned,
}

impl Fault {
    /// Returns the fault of a start that the shim or `confine` reported as failed.
    pub(crate) fn from_failed_start(failed: &FailedStart, needs: &Needs) -> Self {
        let is_lack = failed.errno.is_some_and(is_shortage_number);
        match failed.concern {
            // The shortage may concern the workspace alone, such as a spent quota of its user.
            Concern::Run | Concern::Moment if is_lack => Fault::lack_at(needs.place()),
            Concern::Run => Fault::Task,
            // The limit also counts other processes of the workspace's owner.
            Concern::Limit if needs.place().is_of_user() => Fault::Environment(needs.program()),
            Concern::Lane | Concern::Policy | Concern::Root | Concern::Unknown if is_lack => Fault::Host,
            Concern::Lane => Fault::Environment(needs.program()),
            Concern::Policy | Concern::Limit => Fault::Environment(needs.policy()),
            // `Unknown` is a scope that another release reports. No task is charged for it.
            Concern::Root | Concern::Unknown => Fault::Environment(Environment::Root),
            Concern::Moment => Fault::Moment,
            Concern::Host => Fault::Host,
        }
    }

    /// Returns the fault of a shortage that was met in `place`. A directory of a user may be on a file system of this
    /// user alone, or under a quota, so the shortage stops the starts in this directory and no others. Any other
    /// shortage is the host's.
    fn lack_at(place: Environment) -> Self {
        if place.is_of_user() { Fault::Environment(place) } else { Fault::Host }
    }
}

/// Failure of a start: its stage, reason and fault.
#[derive(Debug)]
pub(crate) struct LaunchError {
    pub stage: Stage,
    pub error: String,
    pub fault: Fault,
}

impl LaunchError {
    /// Makes an error that is the task's fault.
    pub(crate) fn task(stage: Stage, error: impl Into<String>) -> Self {
        LaunchError { stage, error: error.into(), fault: Fault::Task }
    }

    /// Makes an error in the definition of the task, whose start is not tried again.
    pub(crate) fn definition(stage: Stage, error: impl Into<String>) -> Self {
        LaunchError { stage, error: error.into(), fault: Fault::Definition }
    }

    /// Makes an error of a system call in the root's own directories. The root is at fault unless the host lacks a
    /// resource.
    pub(crate) fn system(stage: Stage, error: &(dyn Error + 'static)) -> Self {
        LaunchError::at(stage, Environment::Root, error)
    }

    /// Makes an error of a system call on an environment, which is at fault unless the host lacks a resource.
    pub(crate) fn at(stage: Stage, environment: Environment, error: &(dyn Error + 'static)) -> Self {
        let fault = if is_shortage(error) { Fault::Host } else { Fault::Environment(environment) };
        LaunchError { stage, error: base::failure::with_causes(error), fault }
    }

    /// Makes an error from a refusal of an environment by another part of this program. A refusal with the code "try
    /// again" is the host's fault.
    pub(crate) fn refusal(stage: Stage, environment: Environment, failure: Failure) -> Self {
        // `Failure::file` set the code from the error number.
        let is_host = failure.code == Code::TryAgain;
        let fault = if is_host { Fault::Host } else { Fault::Environment(environment) };
        LaunchError { stage, error: with_hint(&failure.message, failure.hint), fault }
    }

    /// Makes an error from a failed preparation of a workspace.
    pub(crate) fn workspace(stage: Stage, place: Environment, failure: JobFailure) -> Self {
        let at = place.clone();
        let is_general = match &place {
            // The daemon alone makes the directory of workspaces, and a directory that a task names exists before.
            Environment::Workspaces(_) | Environment::Directory(_) => true,
            // A branch in use, or a worktree that a worker has damaged, is the task's fault.
            Environment::Repository(_) => failure.cause.is_of_repository(),
            Environment::Program { .. }
            | Environment::Secrets { .. }
            | Environment::Policy(_)
            | Environment::Root => false,
        };
        let fault = if failure.cause.is_in_use() {
            Fault::Moment
        } else if is_general {
            Fault::Environment(place)
        } else if failure.cause.is_of_definition() {
            // Another try does not help: a person has to correct the task.
            Fault::Definition
        } else {
            Fault::Task
        };
        LaunchError::of_job(stage, failure, at, fault)
    }

    /// Makes an error for an environment whose owner could not be determined; the environment is at fault.
    pub(crate) fn directory(stage: Stage, place: Environment, failure: JobFailure) -> Self {
        LaunchError::of_job(stage, failure, place.clone(), Fault::Environment(place))
    }

    fn of_job(stage: Stage, failure: JobFailure, place: Environment, fault: Fault) -> Self {
        let fault = match failure.cause {
            Cause::Shortage => Fault::lack_at(place),
            Cause::NoProcess => Fault::Host,
            Cause::GivenUp => Fault::Abandoned,
            Cause::Workspace(_) | Cause::NotTaken | Cause::NoAnswer | Cause::Stalled | Cause::Process => {
                fault
            }
        };
        LaunchError { stage, error: with_hint(&failure.message, failure.hint), fault }
    }
}

/// Appends a hint to a message.
pub(crate) fn with_hint(message: &str, hint: Option<String>) -> String {
    hint.map_or_else(|| message.to_owned(), |hint| format!("{message} ({hint})"))
}

#[cfg(test)]
mod tests {
    use kernel::BoardName;
    use nix::errno::Errno;
    use shim::rundir::Step;

    use super::*;

    fn failed(step: Step, errno: Errno) -> FailedStart {
        FailedStart::new(step, &std::io::Error::from_raw_os_error(errno as i32))
    }

    const STEPS: [Step; 14] = [
        Step::Shim,
        Step::Spec,
        Step::Cgroup,
        Step::Namespace,
        Step::Pid,
        Step::Lease,
        Step::Log,
        Step::Timer,
        Step::Spawn,
        Step::Confine,
        Step::Plan,
        Step::Apply,
        Step::Report,
        Step::Exec,
    ];

    #[test]
    fn a_lack_at_any_step_is_the_hosts() {
        let needs = Needs::scratch("shell");
        for step in STEPS {
            for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EAGAIN, Errno::ENOSPC] {
                assert_eq!(
                    Fault::from_failed_start(&failed(step, errno), &needs),
                    Fault::Host,
                    "{step:?} {errno}"
                );
            }
        }
    }

    #[test]
    fn no_step_before_the_command_is_the_tasks_unless_it_says_so() {
        let needs = Needs::scratch("shell");
        for step in STEPS {
            let fault = Fault::from_failed_start(&failed(step, Errno::ENOENT), &needs);
            assert_ne!(fault, Fault::Task, "{step:?}");
        }
        let own = failed(Step::Exec, Errno::ENOENT).concerning(Concern::Run);
        assert_eq!(Fault::from_failed_start(&own, &needs), Fault::Task);
    }

    #[test]
    fn what_a_users_directory_lacks_holds_up_no_task_elsewhere() {
        let (place, needs) = (Environment::Directory("/srv/a".into()), Needs::at("/srv/a"));
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EIO] {
            let failed = failed(Step::Cwd, errno);
            assert_eq!(
                Fault::from_failed_start(&failed, &needs),
                Fault::Environment(place.clone()),
                "{errno}"
            );
        }
        let full = |cause| JobFailure { cause, ..JobFailure::process("full") };
        let of = |place: Environment, cause| {
            LaunchError::workspace(Stage::PrepareWorkspace, place, full(cause)).fault
        };
        let repository = Environment::Repository("/srv/a".into());
        for place in [place.clone(), repository.clone()] {
            assert_eq!(of(place.clone(), Cause::Shortage), Fault::Environment(place));
        }
        assert_eq!(
            LaunchError::directory(Stage::ChooseUser, place.clone(), full(Cause::Shortage)).fault,
            Fault::Environment(place)
        );
        assert_eq!(of(repository, Cause::NoProcess), Fault::Host);
        assert_eq!(of(Environment::Workspaces(BoardName::default()), Cause::Shortage), Fault::Host);
        // The owner's own processes count for it.
        let met = self::failed(Step::Exec, Errno::EAGAIN).concerning(Concern::Limit);
        assert_eq!(Fault::from_failed_start(&met, &needs), Fault::Environment(needs.program()));
    }

    #[test]
    fn a_limit_of_the_policy_is_not_taken_for_a_lack_of_the_hosts() {
        let needs = Needs::scratch("shell");
        let met = failed(Step::Exec, Errno::EAGAIN).concerning(Concern::Limit);
        assert_eq!(Fault::from_failed_start(&met, &needs), Fault::Environment(needs.policy()));
    }

    #[test]
    fn a_confinement_that_the_host_could_not_load_is_the_hosts() {
        let silent =
            FailedStart::new(Step::Confine, &std::io::Error::other("ended")).concerning(Concern::Host);
        assert_eq!(Fault::from_failed_start(&silent, &Needs::scratch("shell")), Fault::Host);
    }

    #[test]
    fn a_missing_program_is_the_lanes_under_its_policy() {
        let needs = Needs::scratch("shell");
        assert_eq!(
            Fault::from_failed_start(&failed(Step::Exec, Errno::ENOENT), &needs),
            Fault::Environment(needs.program())
        );
    }
}
