//! `GET /api/v1/board`: a page of tasks as cards, grouped by status. Details of cards are read for all tasks at once,
//! and long texts are cut.
//!
//! A page of whole texts could have 16 MiB, of which the board shows a line each. `cut` names the cut texts, and `GET
//! /tasks/{id}` has them whole.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use kernel::{
    CardCounts, Clock as _, EventId, Profile, Question, Status, Task, TaskId, Tenant, Timestamp, Waiting,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PREFIXES;
use api::{Ask, Call, Routes, flag, written};
use base::failure::Failure;
use upkeep::diagnosis::why;

/// Limit on the tenants and the assignees offered as filters on the first page, each.
const NAMES: u32 = 1000;
/// Limit on a text of a card, in bytes. `GET /api/v1/tasks/{id}` has the whole text.
const EXCERPT: usize = 2 << 10;
/// Mark at the end of a cut text.
const MORE: char = '…';
/// Limit on the missions at a limit whose questions are read.
const MISSIONS: usize = 1000;
/// Limit on the tasks requested by id.
const NAMED: usize = 100;

pub(super) fn mount(router: Routes) -> Routes {
    PREFIXES.into_iter().fold(router, |router, prefix| router.route(&format!("{prefix}/board"), get(board)))
}

/// Page of a board, grouped by status.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BoardPage {
    columns: Vec<BoardColumn>,
    /// On the first page, the number of tasks by status, of the given tenant and assignee.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<BTreeMap<Status, i64>>,
    /// On the first page, the tenants of the whole board; on a later one, of its tasks.
    tenants: BTreeSet<String>,
    assignees: BTreeSet<String>,
    /// Cursor of the next page; none after the last one.
    next: Option<String>,
    latest_event_id: EventId,
    now: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BoardColumn {
    name: Status,
    tasks: Vec<Card>,
}

/// A task as a card shows it.
#[derive(Debug, Serialize, JsonSchema)]
struct Card {
    #[serde(flatten)]
    task: Task,
    #[serde(flatten)]
    counts: CardCounts,
    /// Reason why it waits; none if it runs or is over.
    waits: Option<Waiting>,
    /// True if the task or its mission waits for a person; `question` is then the question asked.
    needs_person: bool,
    /// Age since creation, in seconds.
    age: u64,
    /// Names of the texts that are cut on the card.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cut: Vec<&'static str>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardQuery {
    tenant: Option<Tenant>,
    assignee: Option<Profile>,
    search: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    include_archived: bool,
    limit: Option<u32>,
    cursor: Option<String>,
    /// Ids of the only tasks to return, whatever their status, separated by commas. Tasks that no longer exist are left
    /// out.
    ids: Option<String>,
}

async fn board(ask: Ask<BoardQuery>) -> Result<Response, Failure> {
    let (ask, mut query) = ask.split();
    let named = query.ids.take().map(|ids| chosen(&ids, &query)).transpose()?;
    // The cursor is read first, so that events of this request are sent again rather than missed.
    let newest = verbs::Events { since: EventId(i64::MAX), limit: 1, ..verbs::Events::default() };
    let latest_event_id = ask.dispatch(newest).await?.last_event;
    if let Some(ids) = named {
        return these(&ask, ids, latest_event_id).await;
    }
    let is_first = query.cursor.is_none();
    let shown = query.include_archived;
    let (tenant, assignee) = (query.tenant.clone(), query.assignee.clone());
    let list = verbs::List {
        tenant: query.tenant,
        assignee: query.assignee,
        search: query.search,
        archived: query.include_archived,
        page: true,
        limit: query.limit,
        cursor: query.cursor,
        ..verbs::List::default()
    };
    let (tasks, next) = ask.dispatch(list).await?.split();
    let call = ask.admit::<verbs::List>().await?;
    let (mut tenants, mut assignees) = names(&tasks);
    let counts = if is_first { Some(counted(&call, tenant, assignee).await?) } else { None };
    if is_first && call.confined().is_none() {
        let of_board = |view: &kernel::View<'_>| {
            Ok((view.tenants_from("", NAMES)?, view.assignees("", NAMES as usize)?))
        };
        let (all, known) = call.read(of_board).await?;
        tenants.extend(all);
        assignees.extend(known.into_iter().map(|assignee| assignee.name));
    }
    let now = kernel::SystemClock.now();
    let mut tasks = tasks;
    let cut = tasks.iter_mut().map(shortened).collect();
    let mut columns = columns(cards(&call, tasks, cut, now).await?);
    if is_first {
        fill_in(&mut columns, shown);
    }
    let page = BoardPage { columns, counts, tenants, assignees, next, latest_event_id, now };
    written(StatusCode::OK, page).await
}

/// Parses the ids of a request. Ids exclude all other filters.
fn chosen(ids: &str, query: &BoardQuery) -> Result<Vec<TaskId>, Failure> {
    let BoardQuery { tenant, assignee, search, include_archived, limit, cursor, ids: _ } = query;
    let chooses = tenant.is_some() || assignee.is_some() || search.is_some() || *include_archived;
    if chooses || limit.is_some() || cursor.is_some() {
        return Err(Failure::usage("`ids` names the tasks, and leaves nothing to choose")
            .hint("send `ids` alone, or leave it out"));
    }
    let ids: Result<BTreeSet<TaskId>, _> = ids.split(',').map(str::parse).collect();
    let ids = ids.map_err(|e: kernel::ParseError| Failure::usage(format!("`ids`: {e}")))?;
    if ids.len() > NAMED {
        return Err(Failure::usage(format!("`ids` names {} tasks", ids.len()))
            .hint(format!("name up to {NAMED} tasks in one request")));
    }
    Ok(ids.into_iter().collect())
}

/// Responds with these tasks, without missing or invisible ones.
async fn these(ask: &Ask<()>, ids: Vec<TaskId>, latest_event_id: EventId) -> Result<Response, Failure> {
    let call = ask.admit::<verbs::List>().await?;
    let actor = call.actor.clone();
    let read = move |view: &kernel::View<'_>| {
        let (mut tasks, mut cut) = (Vec::new(), Vec::new());
        for id in &ids {
            match view.task_for(id, &actor) {
                // Read one after the other, so that only one whole body is in memory at a time.
                Ok(mut task) => {
                    cut.push(shortened(&mut task));
                    tasks.push(task);
                }
                Err(kernel::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((tasks, cut))
    };
    let (tasks, cut) = call.read(read).await?;
    let now = kernel::SystemClock.now();
    let (tenants, assignees) = names(&tasks);
    let columns = columns(cards(&call, tasks, cut, now).await?);
    let page = BoardPage { columns, counts: None, tenants, assignees, next: None, latest_event_id, now };
    written(StatusCode::OK, page).await
}

/// Returns the tenants and the assignees of tasks.
fn names(tasks: &[Task]) -> (BTreeSet<String>, BTreeSet<String>) {
    let tenants = tasks.iter().filter_map(|task| task.tenant.as_ref().map(ToString::to_string));
    let assignees = tasks.iter().filter_map(|task| task.assignee.as_ref().map(ToString::to_string));
    (tenants.collect(), assignees.collect())
}

/// Cuts long texts and lists. Returns the names of the cut fields.
fn shortened(task: &mut Task) -> Vec<&'static str> {
    let question = task.question.as_mut();
    let (asked, results) =
        question.map_or((None, None), |asks| (Some(&mut asks.text), Some(&mut asks.results)));
    // The results of earlier tasks are shown with the open task, not on its card.
    let has_results = results.is_some_and(|results| !std::mem::take(results).is_empty());
    let texts = [
        ("body", task.body.as_mut()),
        ("result", task.result.as_mut()),
        ("notes", task.notes.as_mut()),
        ("block_reason", task.block_reason.as_mut()),
        ("last_failure_error", task.last_failure_error.as_mut()),
        ("question.text", asked),
    ];
    let long = texts
        .into_iter()
        .filter_map(|(name, text)| text.filter(|text| text.len() > EXCERPT).map(|text| (name, text)));
    let cut = long.map(|(name, text)| {
        text.truncate(text.floor_char_boundary(EXCERPT));
        text.push(MORE);
        name
    });
    let mut cut: Vec<&'static str> = cut.chain(has_results.then_some("question.results")).collect();
    for (name, list) in [("artifacts", &mut task.artifacts), ("skills", &mut task.skills)] {
        let (mut room, whole) = (EXCERPT, list.len());
        list.retain(|word| room.checked_sub(word.len()).map(|left| room = left).is_some());
        cut.extend((list.len() < whole).then_some(name));
    }
    cut
}

fn columns(cards: Vec<Card>) -> Vec<BoardColumn> {
    let mut columns: BTreeMap<Status, Vec<Card>> = BTreeMap::new();
    for card in cards {
        columns.entry(card.task.status).or_default().push(card);
    }
    columns.into_iter().map(|(name, tasks)| BoardColumn { name, tasks }).collect()
}

/// Adds empty columns to the first page, so that it has all of them. The archive is added only if it is shown.
fn fill_in(columns: &mut Vec<BoardColumn>, is_archive_shown: bool) {
    for name in Status::ALL.iter().copied().filter(|name| is_archive_shown || *name != Status::Archived) {
        if !columns.iter().any(|column| column.name == name) {
            columns.push(BoardColumn { name, tasks: Vec::new() });
        }
    }
    columns.sort_by_key(|column| column.name);
}

/// Counts tasks by status. A confined caller counts its own tenant only.
async fn counted(
    call: &Call,
    tenant: Option<Tenant>,
    assignee: Option<Profile>,
) -> Result<BTreeMap<Status, i64>, Failure> {
    let tenant = call.confined().cloned().or(tenant);
    call.read(move |view| view.tasks_by_status(tenant.as_ref(), assignee.as_ref())).await
}

/// Makes the cards of tasks, in order, with the names of the cut fields.
async fn cards(
    call: &Call,
    tasks: Vec<Task>,
    cut: Vec<Vec<&'static str>>,
    now: Timestamp,
) -> Result<Vec<Card>, Failure> {
    let tasks = why::explain(call, tasks).await?;
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    let actor = call.actor.clone();
    let read = move |view: &kernel::View<'_>| {
        let asking = view.asking_missions(None, None, MISSIONS, &actor)?;
        Ok((view.card_counts(&ids.iter().collect::<Vec<_>>())?, asking))
    };
    let (counts, asking) = call.read(read).await?;
    let mut asked: BTreeMap<TaskId, Question> =
        asking.into_iter().map(|mission| (mission.id, mission.question)).collect();
    let card = |((mut task, counts), cut): ((Task, CardCounts), Vec<&'static str>)| {
        let waits = task.why.take();
        let of_mission = if task.waits_for_a_person() { None } else { asked.remove(&task.id) };
        let needs_person = task.waits_for_a_person() || of_mission.is_some();
        task.question = of_mission.or(task.question.take());
        let age = now.since(task.created_at).as_secs();
        Card { task, counts, waits, needs_person, age, cut }
    };
    Ok(tasks.into_iter().zip(counts).zip(cut).map(card).collect())
}
