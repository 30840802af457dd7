//! Reads the board for `top`: after events, after a change of the query, and every few seconds, because changes of the
//! workers' resource use have no event.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kernel::{RunId, Sort, Status as TaskStatus, Task, TaskId};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::message::{Query, TopMessage};
use super::picture::{DaemonFacts, Picture, Section, TaskGroup, TaskRow, Total};
use crate::client::Client;
use base::failure::Failure;
use verbs::{Events, List, Status, StatusReport, WorkerLine};

/// Shortest pause after a read, so that many events cause few reads. A change of the query ends it.
const LEAST: Duration = Duration::from_millis(300);
/// Longest pause after [`LEAST`] until the next read, because changes of resource use have no event.
const MOST: Duration = Duration::from_secs(2);
/// Time for which a daemon that has answered before may be restarting. Meanwhile a board that is read without a daemon
/// is not shown.
const RETURNS_WITHIN: Duration = Duration::from_secs(10);
/// Longest time that the daemon holds one request for events, in seconds.
const WAIT_SECONDS: u64 = 30;
/// Pause after a failed request.
const PAUSE: Duration = Duration::from_secs(1);

/// Reader of the board. It keeps earlier values, from which it computes rates.
#[derive(Debug)]
pub(super) struct BoardReader {
    client: Arc<Client>,
    /// CPU time of each run in microseconds, with the time of the last read.
    before: HashMap<RunId, (u64, Instant)>,
    /// Time of the last read that a daemon answered.
    daemon_seen: Option<Instant>,
}

impl BoardReader {
    pub(super) fn new(client: Arc<Client>) -> Self {
        BoardReader { client, before: HashMap::new(), daemon_seen: None }
    }

    /// Reads the board repeatedly and sends each result as a message, until the receiver of the messages or the sender of
    /// the queries is dropped.
    pub(super) async fn run(mut self, mut query: watch::Receiver<Query>, messages: mpsc::Sender<TopMessage>) {
        let news = Arc::new(Notify::new());
        let listener = tokio::spawn(listen(Arc::clone(&self.client), Arc::clone(&news)));
        loop {
            let asked = query.borrow_and_update().clone();
            let message = match self.read(&asked).await {
                Ok(picture) if self.is_returning(&picture) => {
                    TopMessage::Lost("no daemon answers".to_owned())
                }
                Ok(picture) => TopMessage::Picture(Box::new(picture)),
                Err(failure) => TopMessage::Lost(failure.message),
            };
            if messages.send(message).await.is_err() {
                break listener.abort();
            }
            // Cancel-safe: a change of the query that is not taken here is seen by the next `borrow_and_update`.
            tokio::select! {
                changed = query.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => break listener.abort(),
                },
                () = tokio::time::sleep(LEAST) => {}
            }
            tokio::select! {
                changed = query.changed() => if changed.is_err() { break listener.abort() },
                () = news.notified() => {}
                () = tokio::time::sleep(MOST) => {}
            }
        }
    }

    /// Returns true if no daemon answered this read but one did a short time ago, so that it may be restarting.
    fn is_returning(&mut self, picture: &Picture) -> bool {
        if picture.daemon.is_some() {
            self.daemon_seen = Some(Instant::now());
        }
        picture.daemon.is_none() && self.daemon_seen.is_some_and(|seen| seen.elapsed() < RETURNS_WITHIN)
    }

    /// Reads the data to display: the status of the board, and the tasks of each section that has any.
    pub(super) async fn read(&mut self, query: &Query) -> Result<Picture, Failure> {
        let status = Status { tenant: query.tenant.clone(), ..Status::default() };
        let report = self.client.call(&status).await?;
        let cpu = self.cpu(&report);
        let mut sections: Vec<(Section, Vec<TaskRow>, Total)> =
            Section::ALL.map(|section| (section, Vec::new(), Total::Exactly(0))).into();
        for wanted in QUERIES {
            // The counts of the status show which sections are empty; these need no request.
            let count: i64 = wanted.statuses.iter().filter_map(|status| report.counts.get(status)).sum();
            if count == 0 {
                continue;
            }
            let (tasks, has_more) = self.list(&wanted, query).await?;
            let read = tasks.len();
            for task in tasks {
                let worker = worker_of(&report, &task.id);
                let cpu = worker.and_then(|worker| cpu.get(&worker.run.run).copied());
                let row = TaskRow::from_task(&task, worker, cpu, report.now);
                let (_, rows, total) = &mut sections[row.kind.section() as usize];
                rows.push(row);
                *total = total.and(1);
            }
            // The tasks of one query can belong to several sections. Unread tasks are counted in the section of the
            // query, where most of them belong. With a search text, the counts of the status say nothing about them.
            let (_, _, total) = &mut sections[wanted.section as usize];
            let all = u64::try_from(count).unwrap_or_default();
            *total = match (has_more, &query.search) {
                (false, _) => *total,
                (true, Some(_)) => total.or_more(),
                (true, None) => total.and(all.saturating_sub(read as u64)),
            };
        }
        for mission in report.asking.iter().filter(|mission| query.finds(mission)) {
            let (_, rows, total) = &mut sections[Section::Person as usize];
            // The first task of the mission may be listed already, because it waits for a person itself.
            if rows.iter().all(|row| row.id != mission.id) {
                rows.push(TaskRow::of_mission(mission, report.now));
                *total = total.and(1);
            }
        }
        let groups = sections.into_iter().filter(|(_, rows, _)| !rows.is_empty());
        let groups = groups.map(|(section, mut rows, total)| {
            if section == Section::Person {
                rows.sort_by_key(|row| row.kind);
            }
            TaskGroup { section, rows, total }
        });
        let groups = groups.collect();
        Ok(Picture {
            board: report.board.to_string(),
            daemon: report.daemon.as_ref().map(|daemon| DaemonFacts {
                version: daemon.version.clone(),
                uptime: Duration::from_secs(daemon.uptime_seconds),
                taken: daemon.taken,
                slots: daemon.slots,
                paused: daemon.paused.clone(),
            }),
            troubles: report.troubles,
            groups,
        })
    }

    async fn list(&self, wanted: &SectionQuery, query: &Query) -> Result<(Vec<Task>, bool), Failure> {
        let list = List {
            status: wanted.statuses.to_vec(),
            tenant: query.tenant.clone(),
            search: query.search.clone(),
            sort: Some(wanted.sort),
            limit: Some(query.limit(wanted.section)),
            why: true,
            page: true,
            ..List::default()
        };
        let (tasks, next) = self.client.call(&list).await?.split();
        Ok((tasks, next.is_some()))
    }

    /// Returns the CPU use of each live run since the last read, in percent of one processor.
    fn cpu(&mut self, report: &StatusReport) -> HashMap<RunId, u64> {
        let now = Instant::now();
        let mut percents = HashMap::new();
        let mut seen = HashMap::new();
        for worker in report.workers.iter().filter(|worker| worker.run.board == report.board) {
            let Some(usage) = worker.usage else { continue };
            let run = worker.run.run;
            if let Some((before, at)) = self.before.get(&run) {
                let past = u64::try_from(now.duration_since(*at).as_micros()).unwrap_or(u64::MAX);
                // The sum falls when a process of the run ends, because its CPU time is no longer counted.
                let used = usage.cpu_us.saturating_sub(*before);
                percents.extend(used.saturating_mul(100).checked_div(past).map(|percent| (run, percent)));
            }
            seen.insert(run, (usage.cpu_us, now));
        }
        self.before = seen;
        percents
    }
}

/// Query for the tasks of a section.
struct SectionQuery {
    section: Section,
    statuses: &'static [TaskStatus],
    sort: Sort,
}

const fn query(section: Section, statuses: &'static [TaskStatus], sort: Sort) -> SectionQuery {
    SectionQuery { section, statuses, sort }
}

/// Queries of a read, in the order of their requests.
const QUERIES: [SectionQuery; 7] = [
    // Latest first: recent questions come before those that were left for later.
    query(Section::Person, &[TaskStatus::Blocked, TaskStatus::Triage], Sort::Updated),
    query(Section::Running, &[TaskStatus::Running], Sort::Priority),
    query(Section::Review, &[TaskStatus::Review], Sort::Updated),
    query(Section::Ready, &[TaskStatus::Ready], Sort::Priority),
    query(Section::Scheduled, &[TaskStatus::Scheduled], Sort::Priority),
    query(Section::Todo, &[TaskStatus::Todo], Sort::Priority),
    query(Section::Done, &[TaskStatus::Done], Sort::Updated),
];

fn worker_of<'a>(report: &'a StatusReport, task: &TaskId) -> Option<&'a WorkerLine> {
    report.workers.iter().find(|worker| worker.run.board == report.board && worker.run.task == *task)
}

/// Waits for events of the board at the daemon, and notifies the reader. Never returns; its task is aborted.
async fn listen(client: Arc<Client>, news: Arc<Notify>) {
    // The first request does not wait and matches no event: its reply has the id of the last event.
    let mut events = Events { since: kernel::EventId(i64::MAX), limit: 1, ..Events::default() };
    loop {
        match client.call(&events).await {
            Ok(page) => {
                if events.wait > 0 && !page.events.is_empty() {
                    news.notify_one();
                }
                // The events themselves are not needed, so the next request skips to the last one.
                events = Events { since: page.last_event, wait: WAIT_SECONDS, limit: 1, ..Events::default() };
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
