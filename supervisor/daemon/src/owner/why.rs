//! Reasons why tasks do not run, as far as the daemon knows. The owner loop computes them on request, by the rules that
//! start tasks, so that no answer is outdated.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{BoardName, Profile, Status, Task, TaskId, Waiting, WaitingCode};

use super::admission::{ClaimInputs, Claimant, StartClaim};
use super::event::Event;
use super::link::OwnerLink;
use crate::run::environment::RosterAndConfig;
use crate::run::key::TaskKey;
use setup::config::Config;
use setup::lanes::check_performer;
use setup::roster::{CannotRun, Roster};

/// Assignee that would run a task; none if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performer(pub Option<Profile>);

/// Returns the performer to ask the daemon about, if the board lets the task run or would. None if the board's own
/// reason is complete.
pub fn left_open(task: &Task) -> Option<Performer> {
    let code = task.why.as_ref().map(|why| why.code);
    let held = task.why.as_ref().is_some_and(|why| why.until.is_some());
    let profile = match (task.status, code) {
        // A task that could not run when the board recorded the reason may have a lane by now.
        (Status::Ready, None | Some(WaitingCode::Nonspawnable)) | (Status::Running, _) => {
            task.assignee.clone()
        }
        (Status::Review, Some(WaitingCode::Check)) if !held => Some(check_performer()),
        (Status::Review, Some(WaitingCode::Review)) if !held && task.reviewer.is_some() => {
            task.reviewer.clone()
        }
        _ => return None,
    };
    let is_external = task.status == Status::Running && task.claim_expires.is_some();
    (!is_external).then_some(Performer(profile))
}

/// Returns the reason of a task that the board leaves to the daemon: from `cannot_run` if given, else from the daemon's
/// answer. None if the task waits for nothing beside the board's own reason.
pub fn merged(
    task: &Task,
    profile: Option<&Profile>,
    cannot_run: Option<&CannotRun>,
    answer: Option<Waiting>,
) -> Option<Waiting> {
    let answer = match cannot_run {
        Some(why) if task.status == Status::Review && why.is_claimed() => {
            Some(Waiting::new(WaitingCode::Review, why.to_string()))
        }
        Some(why) => Some(why.waiting()),
        None => answer,
    };
    // A run in progress waits for nothing.
    let about_runs = [
        WaitingCode::Preparing,
        WaitingCode::Ending,
        WaitingCode::Unkillable,
        WaitingCode::Survivors,
        WaitingCode::Stuck,
        WaitingCode::NoDaemon,
    ];
    let answer = answer?;
    if task.status == Status::Running && !about_runs.contains(&answer.code) {
        return None;
    }
    Some(match (task.status, profile) {
        (Status::Review, Some(_)) if task.unchecked_run.is_some() => {
            Waiting { text: format!("its check has not run yet: {}", answer.text), ..answer }
        }
        (Status::Review, Some(reviewer)) => {
            Waiting { text: format!("waits for a review by {reviewer}: {}", answer.text), ..answer }
        }
        _ => answer,
    })
}

/// Asks for the reasons why these tasks do not run, each with its performer. None if the daemon has gone.
pub async fn ask(
    link: &OwnerLink,
    board: &BoardName,
    tasks: Vec<(Task, Option<Profile>)>,
    roster: Arc<Roster>,
    config: Arc<Config>,
) -> Option<BTreeMap<TaskId, Waiting>> {
    let board = board.clone();
    // Off the async threads, as the claims are computed for all tasks at once.
    let claims = tokio::task::spawn_blocking(move || -> Vec<StartClaim> {
        let claim = |(task, profile): (Task, Option<Profile>)| {
            let key = TaskKey { board: board.clone(), task: task.id.clone() };
            let claimant = Claimant { tenant: task.tenant.clone(), profile };
            StartClaim::new(
                key,
                claimant,
                ClaimInputs::by(&task),
                RosterAndConfig { roster: &roster, config: &config },
            )
        };
        tasks.into_iter().map(claim).collect()
    });
    let claims = claims.await.ok()?;
    link.ask(|reply| Event::Why(claims, reply)).await.ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kernel::Timestamp;

    use super::super::action::{Action, BoardWork};
    use super::super::dispatcher::Dispatcher;
    use super::super::mode::DaemonMode;
    use super::super::stopping::StopMode;
    use super::*;
    use crate::run::environment::Needs;
    use crate::run::report::Report;
    use base::exit::Code;
    use base::failure::Failure;
    use setup::roster::PoolClaim;

    fn config(text: &str) -> Arc<Config> {
        Arc::new(toml::from_str(text).unwrap())
    }

    fn key(n: u32) -> TaskKey {
        TaskKey { board: BoardName::default(), task: format!("t_{n:08x}").parse().unwrap() }
    }

    fn claim(n: u32, workspace: &str) -> StartClaim {
        StartClaim::taking(
            key(n),
            Claimant { tenant: None, profile: Some("shell".parse().unwrap()) },
            workspace,
            Some(Needs::scratch("shell")),
            PoolClaim::default(),
        )
    }

    fn candidate(n: u32, workspace: &str) -> (kernel::Candidate, StartClaim) {
        let candidate = kernel::Candidate {
            task: key(n).task,
            assignee: "shell".parse().unwrap(),
            tenant: None,
            priority: 0,
            created_at: now(),
            workspace: workspace.to_owned(),
            line: String::new(),
            pools: BTreeSet::new(),
            policy: None,
            mission: None,
            consult: None,
        };
        (candidate, claim(n, workspace))
    }

    fn now() -> Timestamp {
        Timestamp::from_micros(1_000_000)
    }

    /// Returns the result of a scan that admitted these tasks.
    fn scanned(admitted: &[(u32, &str)]) -> BoardWork {
        BoardWork {
            admitted: admitted.iter().map(|(n, workspace)| candidate(*n, workspace)).collect(),
            left: false,
            lacks_headroom: false,
            ready: 0,
            has_tenants: false,
            unknown: Vec::new(),
            noted: now(),
            to_stop: Vec::new(),
            breakers: Vec::new(),
            next_wake: None,
        }
    }

    /// Returns a daemon that has started these tasks.
    fn running(config: Arc<Config>, mode: DaemonMode, ready: &[(u32, &str)]) -> Dispatcher {
        let mut dispatcher = Dispatcher::new(vec![BoardName::default()], mode, config);
        dispatcher.decide(Event::BoardRead(BoardName::default(), Ok(Box::new(scanned(ready)))), now());
        dispatcher
    }

    fn told(dispatcher: &Dispatcher, n: u32, workspace: &str) -> (WaitingCode, String) {
        let why = dispatcher.why(vec![claim(n, workspace)]).remove(&key(n).task).unwrap();
        (why.code, why.text)
    }

    #[test]
    fn a_task_that_could_start_is_told_to_wait_for_its_turn_and_one_that_does_to_be_starting() {
        let dispatcher = running(config(""), DaemonMode::Forever, &[(1, "scratch")]);
        assert_eq!(told(&dispatcher, 1, "scratch").0, WaitingCode::Starting);
        assert_eq!(told(&dispatcher, 2, "scratch").0, WaitingCode::Turn);
    }

    #[test]
    fn a_full_host_and_a_full_profile_are_told_with_their_numbers() {
        let full = running(config("[limits]\nmax_running = 1"), DaemonMode::Forever, &[(1, "scratch")]);
        let (code, text) = told(&full, 2, "scratch");
        assert_eq!((code, text.contains("1 of 1")), (WaitingCode::Slot, true), "{text}");
        let full = running(config("[limits]\nprofiles.shell = 1"), DaemonMode::Forever, &[(1, "scratch")]);
        let (code, text) = told(&full, 2, "scratch");
        assert_eq!((code, text.contains("profile shell: 1 of 1")), (WaitingCode::Slot, true), "{text}");
    }

    #[test]
    fn a_directory_that_is_taken_is_told_with_its_holder() {
        let dispatcher = running(config(""), DaemonMode::Forever, &[(1, "dir:/tmp")]);
        let (code, text) = told(&dispatcher, 2, "dir:/tmp");
        assert_eq!(code, WaitingCode::Workspace);
        assert_eq!(text, "waits for /tmp: t_00000001 works there");
        let other = StartClaim { tenant: Some("acme".parse().unwrap()), ..claim(3, "dir:/tmp") };
        let why = dispatcher.why(vec![other]).remove(&key(3).task).unwrap();
        assert_eq!(why.text, "waits for /tmp: a task of another tenant works there");
    }

    #[test]
    fn a_broken_environment_is_told_with_its_error() {
        let mut dispatcher = running(config(""), DaemonMode::Forever, &[(1, "scratch")]);
        dispatcher.decide(
            Event::Run(
                key(1),
                Report::EnvironmentFailed(Needs::scratch("shell").program(), "no /bin/sh".to_owned()),
            ),
            now(),
        );
        dispatcher.decide(Event::Run(key(1), Report::Ended(None)), now());
        let (code, text) = told(&dispatcher, 1, "scratch");
        assert_eq!((code, text.contains("no /bin/sh")), (WaitingCode::Environment, true), "{text}");
    }

    #[test]
    fn a_host_that_lacks_something_is_told_with_the_next_try() {
        let mut dispatcher = running(config(""), DaemonMode::Forever, &[]);
        dispatcher.decide(Event::Run(key(1), Report::Shortage("no space left".to_owned())), now());
        let why = dispatcher.why(vec![claim(2, "scratch")]).remove(&key(2).task).unwrap();
        assert_eq!((why.code, why.text.contains("no space left")), (WaitingCode::Host, true));
        let second = now().after(std::time::Duration::from_secs(1));
        assert!(why.until.is_some_and(|until| now() < until && until <= second), "{:?}", why.until);
    }

    #[test]
    fn a_task_that_is_tried_again_is_told_what_went_wrong() {
        let mut dispatcher = running(config(""), DaemonMode::Forever, &[(1, "scratch")]);
        let failure = Failure::new(Code::Usage, "there is no policy `x`");
        dispatcher.decide(Event::Run(key(1), Report::ClaimFailed(failure)), now());
        let (code, text) = told(&dispatcher, 1, "scratch");
        assert_eq!((code, text.contains("no policy `x`")), (WaitingCode::Retry, true), "{text}");
    }

    #[test]
    fn the_end_of_a_pass_and_of_a_daemon_is_told() {
        let pass = running(config(""), DaemonMode::UntilIdle(Some(1)), &[(1, "scratch")]);
        assert_eq!(told(&pass, 2, "scratch").0, WaitingCode::Pass);
        let mut daemon = running(config(""), DaemonMode::Forever, &[(1, "scratch")]);
        let (reply, _plan) = tokio::sync::oneshot::channel();
        daemon.decide(Event::Stop(StopMode::Drain, reply), now());
        let (code, text) = told(&daemon, 2, "scratch");
        assert_eq!((code, text.contains("draining")), (WaitingCode::Stopping, true), "{text}");
    }

    #[test]
    fn a_clock_that_was_set_has_every_board_read_again() {
        let mut daemon = running(config(""), DaemonMode::Forever, &[]);
        let asked = daemon.decide(Event::ClockSet, now());
        assert!(asked.iter().any(|action| matches!(action, Action::Read(..))), "{asked:?}");
    }

    #[test]
    fn the_host_is_looked_at_again_while_something_waits_for_it_and_only_then() {
        let read = |work: BoardWork| Event::BoardRead(BoardName::default(), Ok(Box::new(work)));
        let reads = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::Read(..)));
        let at = |seconds| now().after(std::time::Duration::from_secs(seconds));
        let mut daemon = running(config(""), DaemonMode::Forever, &[]);
        let idle = daemon.decide(read(scanned(&[])), now());
        assert!(!idle.iter().any(|action| matches!(action, Action::Arm(_))), "{idle:?}");
        let short = daemon.decide(read(BoardWork { lacks_headroom: true, ..scanned(&[]) }), now());
        assert!(
            short.iter().any(|action| matches!(action, Action::Arm(Some(when)) if *when == at(2))),
            "{short:?}"
        );
        assert!(!reads(&daemon.decide(Event::Tick, at(1))));
        assert!(reads(&daemon.decide(Event::Tick, at(2))));
        let over = daemon.decide(read(scanned(&[])), at(2));
        assert!(!over.iter().any(|action| matches!(action, Action::Arm(Some(_)))), "{over:?}");
        assert!(!reads(&daemon.decide(Event::Tick, at(9))));
    }
}
