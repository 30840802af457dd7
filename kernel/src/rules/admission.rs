//! Order of starts: fair between tenants, then by priority and age. Only tasks that can start are offered.
//!
//! See decision 0022.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::candidate::{Accounts, Candidate, CandidateChoice, Group, Reach, Source};
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::hold::{Hold, HoldScope, Stance, Within};
use crate::model::id::{TaskId, Tenant};

/// Number of candidates that are read from a source at once. Most passes need one or two.
const PAGE: usize = 16;

type Order = (Reverse<i64>, Timestamp, TaskId);

/// State of the board for one pass, beside the candidates themselves.
pub(crate) struct Offer<'a> {
    /// Holds that have not ended.
    pub(crate) holds: Vec<Hold>,
    /// Pairs of tenant and assignee with ready tasks.
    pub(crate) ready: Vec<Group>,
    /// Pairs of tenant and reviewer with tasks in review.
    pub(crate) reviews: Vec<Group>,
    /// Tenants with work that waits for its check, each with the profile that runs the check.
    pub(crate) checks: Vec<Group>,
    /// Number of open runs of each tenant.
    pub(crate) running: Vec<(Option<Tenant>, u32)>,
    /// Account of each profile that has one.
    pub(crate) accounts: &'a Accounts,
    pub(crate) now: Timestamp,
}

/// Reads the candidates of a group's source that follow the given candidate, at most the given number.
pub(crate) type ReadPage<'a> =
    dyn FnMut(&Group, &Source, Option<&Candidate>, usize) -> Result<Vec<Candidate>, Error> + 'a;

/// Offers candidates in the order in which they should start, until no more can start.
///
/// The tenant with the fewest open runs is next; among tenants with equal load, the candidate with the greatest priority
/// and age. Every started candidate adds to the load of its tenant, so that one tenant's queue does not keep out the
/// others.
pub(crate) fn offer(
    on: Offer<'_>,
    read: &mut ReadPage<'_>,
    mut answer: impl FnMut(&Candidate) -> CandidateChoice,
) -> Result<(), Error> {
    let holds = Closed::from_holds(on.holds, on.now);
    let mut tenants: BTreeMap<Option<Tenant>, TenantQueue> = BTreeMap::new();
    let mut add = |group: &Group, sources: &[Source]| {
        if !holds.group(group, on.accounts) {
            let queue = tenants.entry(group.tenant.clone()).or_default();
            queue.sources.extend(sources.iter().map(|source| Stream::new(group, source.clone())));
        }
    };
    for group in &on.ready {
        add(group, &[Source::Line(String::new()), Source::Heads]);
    }
    for group in &on.reviews {
        add(group, &[Source::Reviews]);
    }
    for group in &on.checks {
        add(group, &[Source::Checks]);
    }
    for (tenant, load) in on.running {
        if let Some(queue) = tenants.get_mut(&tenant) {
            queue.load = load;
        }
    }
    for queue in tenants.values_mut() {
        queue.find_next(read)?;
    }
    loop {
        let turns =
            tenants.iter().filter_map(|(name, queue)| Some(((queue.load, &queue.next.as_ref()?.0), name)));
        let Some(tenant) = turns.min().map(|(_, tenant)| tenant.clone()) else { return Ok(()) };
        let Some(queue) = tenants.get_mut(&tenant) else { return Ok(()) };
        let Some((source, candidate)) = queue.take() else { return Ok(()) };
        // The daemon is not asked about a candidate that a hold keeps from starting.
        let held = holds.task(&candidate);
        match if held { CandidateChoice::Left(Reach::Task) } else { answer(&candidate) } {
            CandidateChoice::Taken => {
                queue.load += 1;
                queue.pass(source, &candidate);
            }
            CandidateChoice::Left(Reach::Task) => queue.pass(source, &candidate),
            CandidateChoice::Left(Reach::Line) => queue.close(source, &candidate),
            // A profile can have tasks of several tenants, so each queue drops it and finds its next candidate.
            CandidateChoice::Left(Reach::Profile) => {
                for queue in tenants.values_mut() {
                    queue.sources.retain(|source| source.group.profile != candidate.assignee);
                    queue.find_next(read)?;
                }
                continue;
            }
            CandidateChoice::Left(Reach::Tenant) => {
                tenants.remove(&tenant);
                continue;
            }
            CandidateChoice::Left(Reach::Everything) => return Ok(()),
        }
        queue.find_next(read)?;
    }
}

/// Removes the candidates that a hold keeps from starting.
pub(crate) fn not_held(
    candidates: Vec<Candidate>,
    holds: Vec<Hold>,
    accounts: &Accounts,
    now: Timestamp,
) -> Vec<Candidate> {
    let closed = Closed::from_holds(holds, now);
    let is_held = |candidate: &Candidate| {
        let group = Group { tenant: candidate.tenant.clone(), profile: candidate.assignee.clone() };
        closed.task(candidate) || closed.group(&group, accounts)
    };
    candidates.into_iter().filter(|candidate| !is_held(candidate)).collect()
}

/// Candidates of one tenant, merged from their streams.
#[derive(Default)]
struct TenantQueue {
    /// Number of open runs, runs started in this pass included.
    load: u32,
    sources: Vec<Stream>,
    /// Order of the next candidate, and the index of its source.
    next: Option<(Order, usize)>,
}

impl TenantQueue {
    fn find_next(&mut self, read: &mut ReadPage<'_>) -> Result<(), Error> {
        for source in &mut self.sources {
            source.fill(read)?;
        }
        self.sources.retain(|source| !source.waiting.is_empty());
        let firsts = self.sources.iter().enumerate();
        self.next = firsts.filter_map(|(at, source)| Some((order(source.waiting.front()?), at))).min();
        Ok(())
    }

    fn take(&mut self) -> Option<(usize, Candidate)> {
        let (_, at) = self.next.take()?;
        let candidate = self.sources.get_mut(at)?.waiting.pop_front()?;
        Some((at, candidate))
    }

    /// Moves past a candidate. After the first task of a line, the rest of that line is on offer.
    fn pass(&mut self, at: usize, candidate: &Candidate) {
        let Some(source) = self.sources.get(at) else { return };
        if source.source == Source::Heads {
            let group = source.group.clone();
            let behind = Source::Line(candidate.line.clone());
            self.sources.push(Stream { after: Some(candidate.clone()), ..Stream::new(&group, behind) });
        }
    }

    /// Takes the candidate's line off the offer.
    fn close(&mut self, at: usize, candidate: &Candidate) {
        let Some(source) = self.sources.get_mut(at) else { return };
        match source.source {
            Source::Heads => {}
            Source::Line(_) => source.end(),
            Source::Reviews | Source::Checks => {
                source.closed.insert(candidate.line.clone());
                source.waiting.retain(|one| one.line != candidate.line);
            }
        }
    }
}

/// Candidates of one source, read page by page.
struct Stream {
    group: Group,
    source: Source,
    waiting: VecDeque<Candidate>,
    /// Last candidate that was read.
    after: Option<Candidate>,
    ended: bool,
    /// Lines of reviews and checks that are off the offer. No index has these lines, so candidates are read and left out
    /// here.
    closed: BTreeSet<String>,
}

impl Stream {
    fn new(group: &Group, source: Source) -> Self {
        Self {
            group: group.clone(),
            source,
            waiting: VecDeque::new(),
            after: None,
            ended: false,
            closed: BTreeSet::new(),
        }
    }

    fn end(&mut self) {
        self.waiting.clear();
        self.ended = true;
    }

    /// Reads the next page when no candidate of the last page is left.
    fn fill(&mut self, read: &mut ReadPage<'_>) -> Result<(), Error> {
        while self.waiting.is_empty() && !self.ended {
            let page = read(&self.group, &self.source, self.after.as_ref(), PAGE)?;
            self.ended = page.len() < PAGE;
            if let Some(last) = page.last() {
                self.after = Some(last.clone());
            }
            self.waiting.extend(page.into_iter().filter(|one| !self.closed.contains(&one.line)));
        }
        Ok(())
    }
}

/// Names that the holds of this moment keep from starting.
#[derive(Default)]
struct Closed {
    tasks: BTreeSet<String>,
    profiles: BTreeSet<String>,
    tenants: BTreeSet<String>,
    accounts: Vec<(String, Within)>,
    missions: BTreeSet<String>,
}

impl Closed {
    fn from_holds(holds: Vec<Hold>, now: Timestamp) -> Self {
        let mut closed = Closed::default();
        for hold in holds {
            if hold.stance(now) == Stance::Closed {
                match hold.scope {
                    HoldScope::Task => drop(closed.tasks.insert(hold.name)),
                    HoldScope::Profile => drop(closed.profiles.insert(hold.name)),
                    HoldScope::Tenant => drop(closed.tenants.insert(hold.name)),
                    HoldScope::Account => closed.accounts.push((hold.name, hold.within)),
                    HoldScope::Mission => drop(closed.missions.insert(hold.name)),
                    // The daemon refuses the tasks that these holds concern.
                    HoldScope::Environment | HoldScope::Host => {}
                }
            }
        }
        closed
    }

    fn task(&self, candidate: &Candidate) -> bool {
        let id = candidate.task.as_str();
        self.tasks.contains(id) || self.missions.contains(candidate.mission.as_deref().unwrap_or(id))
    }

    fn group(&self, group: &Group, accounts: &Accounts) -> bool {
        let tenant = group.tenant.as_ref();
        let account = accounts.get(&group.profile);
        self.profiles.contains(group.profile.as_str())
            || tenant.is_some_and(|tenant| self.tenants.contains(tenant.as_str()))
            || self.accounts.iter().any(|(name, within)| Some(name) == account && within.reaches(tenant))
    }
}

fn order(candidate: &Candidate) -> Order {
    (Reverse(candidate.priority), candidate.created_at, candidate.task.clone())
}
