//! Reads from a board the tasks that may start beside the live runs, and no further than necessary.
//!
//! A scan needs no file system except the root's. A `stat` on a mount whose server is gone does not return, and would
//! stop every board. A job process asks whether a directory answers, at the creation of a task and at its start.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::{
    BoardName, Candidate, CandidateChoice, HoldKind, ProposalKind, Reach, TaskId, Timestamp, View,
    WaitingCode,
};

use super::action::BoardWork;
use super::admission::StartClaim;
use super::capacity::Capacity;
use super::commands;
use super::event::Event;
use super::link::OwnerLink;
use super::routing;
use crate::run::context::Context;
use crate::run::environment::RosterAndConfig;
use crate::run::problems;
use setup::config::Config;
use setup::lanes::check_performer;
use setup::roster::Roster;

/// Limit on the unrunnable tasks recorded at once. Their commit triggers the next read.
const NOTED: usize = 64;
/// Longest delay between the timestamp of a change and its commit.
const COMMIT: Duration = Duration::from_secs(2);

/// Result of a scan of a board.
#[derive(Debug, Default)]
pub struct Scan {
    /// Tasks that may start, in order of start.
    pub admitted: Vec<(Candidate, StartClaim)>,
    /// True if more tasks could start without the live runs and the failures.
    pub left: bool,
    /// True if a task waits only for memory, load or pressure of the host.
    pub(crate) lacks_headroom: bool,
    /// True if there are tasks whose assignee is no lane here.
    pub foreign: bool,
}

/// Finds the tasks that may start, and admits them. Blocks.
pub fn scan(
    view: &View<'_>,
    board: &BoardName,
    capacity: &mut Capacity,
    roster: &Roster,
) -> Result<Scan, kernel::Error> {
    let mut result = Scan::default();
    let config = capacity.config();
    capacity.share_with_tenants_of(view)?;
    // Questions first: a run waits for each of them, and they have slots of their own.
    view.consults(&roster.accounts(&config), |candidate| {
        if roster.resolve(&candidate.assignee, candidate.policy.as_deref(), &config).is_err() {
            return;
        }
        let claim = StartClaim::for_candidate(board, &candidate, RosterAndConfig { roster, config: &config })
            .for_question(candidate.consult);
        match capacity.admit(&claim) {
            Ok(()) => result.admitted.push((candidate, claim)),
            Err(refusal) => result.lacks_headroom |= refusal.why.code == WaitingCode::Headroom,
        }
    })?;
    if capacity.is_closed() {
        result.left = true;
        return Ok(result);
    }
    let mut refused = BTreeSet::new();
    view.offer(&roster.accounts(&config), &check_performer(), |candidate| {
        match roster.resolve(&candidate.assignee, candidate.policy.as_deref(), &config) {
            Ok(_) => {}
            Err(why) if why.is_unknown() => {
                result.foreign = true;
                return CandidateChoice::Left(Reach::Profile);
            }
            Err(why) if why.is_claimed() => return CandidateChoice::Left(Reach::Profile),
            Err(_) => return CandidateChoice::Left(Reach::Task),
        }
        let claim = StartClaim::for_candidate(board, candidate, RosterAndConfig { roster, config: &config });
        match capacity.admit(&claim) {
            Ok(()) => {
                result.admitted.push((candidate.clone(), claim));
                CandidateChoice::Taken
            }
            Err(refusal) => {
                refused.insert(refusal.why.code);
                CandidateChoice::Left(refusal.reach)
            }
        }
    })?;
    // A task that is being started waits for nothing.
    refused.remove(&WaitingCode::Starting);
    result.lacks_headroom |= refused.contains(&WaitingCode::Headroom);
    result.left = !refused.is_empty();
    Ok(result)
}

/// Reads the pending work of a board beside its live runs. Blocks. The search for tasks whose assignee is no lane
/// starts at `noted`.
pub(crate) fn work(
    view: &View<'_>,
    board: &BoardName,
    capacity: &mut Capacity,
    roster: &Roster,
    noted: Timestamp,
) -> Result<BoardWork, kernel::Error> {
    let result = scan(view, board, capacity, roster)?;
    let missions = capacity.config().mission_limits();
    // Without an overseer, a stalled mission wakes nothing.
    let config = capacity.config();
    let has_overseer = config.triage.assignee(ProposalKind::Progress).is_some_and(|name| roster.knows(&name));
    let reviews = if has_overseer { view.next_review(&config.triage.review_terms())? } else { None };
    let (unknown, noted) =
        if result.foreign { unknown(view, roster, &capacity.config(), noted)? } else { (Vec::new(), noted) };
    Ok(BoardWork {
        admitted: result.admitted,
        left: result.left,
        lacks_headroom: result.lacks_headroom,
        ready: view.ready_count()?,
        has_tenants: view.has_tenants()?,
        unknown,
        noted,
        to_stop: view.runs_to_stop()?,
        breakers: view.holds()?.into_iter().filter(|hold| hold.kind == HoldKind::Breaker).collect(),
        next_wake: view
            .next_wake()?
            .into_iter()
            .chain(view.next_mission_limit(&missions)?)
            .chain(reviews)
            .min(),
    })
}

/// Looks at a board on another thread, and sends its pending work as an event.
pub(crate) fn read_board(
    context: &Arc<Context>,
    link: &OwnerLink,
    roster: &Arc<Roster>,
    name: BoardName,
    mut capacity: Capacity,
    noted: Timestamp,
) {
    let (shared, link) = (Arc::clone(context), link.clone());
    let roster = Arc::clone(roster);
    context.tasks.spawn_blocking(move || {
        routing::ask_router(&shared.service, &name);
        routing::ask_overseer(&shared.service, &name);
        let read = shared.service.board(&name).map(|board| {
            // All reads share a transaction: to begin one costs as much as several reads.
            board.readers().with(|view| {
                // External leases come first, because the directories that they lock must count as taken.
                board.external_leases().follow(shared.service.root(), &name, view)?;
                shared.service.set_delivery_problems(&name, problems::of_deliveries(view)?);
                Ok((commands::due(view)?, work(view, &name, &mut capacity, &roster, noted)?))
            })
        });
        link.send_blocking(match read {
            Ok(Ok((due, work))) => {
                commands::carry_out(&shared, &name, due);
                Event::BoardRead(name, Ok(Box::new(work)))
            }
            // The other boards go on: a try could not succeed later either.
            Ok(Err(error)) if error.is_damage() => Event::BoardDamaged(name, error.into()),
            Ok(Err(error)) => Event::BoardRead(name, Err(error.into())),
            Err(failure) => Event::BoardRead(name, Err(failure)),
        });
    });
}

/// Lists the tasks whose assignee is no lane here and that have no note of it, and the start of the next search.
fn unknown(
    view: &View<'_>,
    roster: &Roster,
    config: &Config,
    since: Timestamp,
) -> Result<(Vec<(TaskId, String)>, Timestamp), kernel::Error> {
    let known = roster.names();
    let now = view.now();
    let unknown = view.unknown_assignees(&known, since, NOTED)?;
    if unknown.is_empty() {
        return Ok((Vec::new(), now.before(COMMIT)));
    }
    // These get their note first; then the search starts at the same time again.
    let notes = unknown.into_iter().filter_map(|(task, profile, _)| {
        Some((task, roster.resolve(&profile, None, config).err()?.to_string()))
    });
    Ok((notes.collect(), since))
}
