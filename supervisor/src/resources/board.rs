//! `GET /api/v1/board`: a page of tasks as cards, grouped by status. What a card shows is read for all of them at once, and its texts are as
//! long as something that is looked at among a thousand others.

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
use crate::api::{Ask, Call, Routes, flag, written};
use crate::diagnosis::why;
use crate::failure::Failure;
use crate::verbs;

/// The names that the first page offers as filters, of tenants and of assignees each.
const NAMES: u32 = 1000;
/// How much of a text a card carries, in bytes. `GET /api/v1/tasks/{id}` has all of it.
const EXCERPT: usize = 2 << 10;
/// What stands at the end of a text that goes on.
const MORE: char = '…';
/// How many missions at a limit are looked at for what they ask.
const MISSIONS: usize = 1000;
/// The most tasks that are asked for by their ids.
const NAMED: usize = 100;

pub(super) fn mount(router: Routes) -> Routes {
    PREFIXES.into_iter().fold(router, |router, prefix| router.route(&format!("{prefix}/board"), get(board)))
}

/// A board, grouped by status.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BoardPage {
    columns: Vec<Column>,
    /// On the first page, how many tasks there are by status, of the tenant and the assignee that were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<BTreeMap<Status, i64>>,
    /// On the first page those of the whole board, on a later one those of its tasks.
    tenants: BTreeSet<String>,
    assignees: BTreeSet<String>,
    /// Where the rest of the tasks starts; none where these are all.
    next: Option<String>,
    latest_event_id: EventId,
    now: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Column {
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
    /// What it waits for; none where it runs or is over.
    waits: Option<Waiting>,
    /// Whether it goes on only if a person does something, or its mission does; `question` is then what that asks.
    needs_person: bool,
    /// Since it was made, in seconds.
    age: u64,
    /// The texts of which the card has the beginning alone.
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
    /// These tasks alone, separated by commas, whatever their status; those that are not there any more are left out.
    ids: Option<String>,
}

async fn board(ask: Ask<BoardQuery>) -> Result<Response, Failure> {
    let (ask, mut query) = ask.split();
    let named = query.ids.take().map(|ids| chosen(&ids, &query)).transpose()?;
    // The cursor is read first: what happens in between is then told again, never missed.
    let newest = verbs::Events { since: EventId(i64::MAX), limit: 1, ..verbs::Events::default() };
    let latest_event_id = ask.dispatch(newest).await?.last_event;
    if let Some(ids) = named {
        return these(&ask, ids, latest_event_id).await;
    }
    let is_first = query.cursor.is_none();
    let shown = query.include_archived;
    let of = (query.tenant.clone(), query.assignee.clone());
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
    let counts = if is_first { Some(counted(&call, of).await?) } else { None };
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
    let mut columns = columns(cards(&call, (tasks, cut), now).await?);
    if is_first {
        fill_in(&mut columns, shown);
    }
    let page = BoardPage { columns, counts, tenants, assignees, next, latest_event_id, now };
    written(StatusCode::OK, page).await
}

/// The tasks that a request names. Those who name tasks want these and no others.
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

/// Answers with these tasks, as far as there are any for the caller.
async fn these(ask: &Ask<()>, ids: Vec<TaskId>, latest_event_id: EventId) -> Result<Response, Failure> {
    let call = ask.admit::<verbs::List>().await?;
    let actor = call.actor.clone();
    let read = move |view: &kernel::View<'_>| {
        let (mut tasks, mut cut) = (Vec::new(), Vec::new());
        for id in &ids {
            match view.task_for(id, &actor) {
                // One after the other, so that there is one whole body at a time.
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
    let found = call.read(read).await?;
    let now = kernel::SystemClock.now();
    let (tenants, assignees) = names(&found.0);
    let columns = columns(cards(&call, found, now).await?);
    let page = BoardPage { columns, counts: None, tenants, assignees, next: None, latest_event_id, now };
    written(StatusCode::OK, page).await
}

/// The tenants and the assignees of these tasks.
fn names(tasks: &[Task]) -> (BTreeSet<String>, BTreeSet<String>) {
    let tenants = tasks.iter().filter_map(|task| task.tenant.as_ref().map(ToString::to_string));
    let assignees = tasks.iter().filter_map(|task| task.assignee.as_ref().map(ToString::to_string));
    (tenants.collect(), assignees.collect())
}

/// Leaves the beginnings of long texts and lists. Returns which were longer.
fn shortened(task: &mut Task) -> Vec<&'static str> {
    let question = task.question.as_mut();
    let (asked, results) =
        question.map_or((None, None), |asks| (Some(&mut asks.text), Some(&mut asks.results)));
    // What the tasks before have come to is for who decides, with the task open.
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

fn columns(cards: Vec<Card>) -> Vec<Column> {
    let mut columns: BTreeMap<Status, Vec<Card>> = BTreeMap::new();
    for card in cards {
        columns.entry(card.task.status).or_default().push(card);
    }
    columns.into_iter().map(|(name, tasks)| Column { name, tasks }).collect()
}

/// Adds the columns that have no task on the first page, so that it has them all; that of the archive only where that is shown.
fn fill_in(columns: &mut Vec<Column>, is_archive_shown: bool) {
    for name in Status::ALL.iter().copied().filter(|name| is_archive_shown || *name != Status::Archived) {
        if !columns.iter().any(|column| column.name == name) {
            columns.push(Column { name, tasks: Vec::new() });
        }
    }
    columns.sort_by_key(|column| column.name);
}

/// How many tasks there are by status, for a caller who sees those of its tenant alone.
async fn counted(
    call: &Call,
    (tenant, assignee): (Option<Tenant>, Option<Profile>),
) -> Result<BTreeMap<Status, i64>, Failure> {
    let tenant = call.confined().cloned().or(tenant);
    call.read(move |view| view.tasks_by_status(tenant.as_ref(), assignee.as_ref())).await
}

/// The cards of these tasks, in their order, with what was cut of each.
async fn cards(
    call: &Call,
    (tasks, cut): (Vec<Task>, Vec<Vec<&'static str>>),
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
