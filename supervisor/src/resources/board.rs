//! `GET /api/v1/board`: a page of tasks as cards, grouped by status. What a card shows is read for all of them at once.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use kernel::{CardCounts, Clock as _, EventId, Profile, Status, Task, TaskId, Tenant, Timestamp, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PREFIXES;
use crate::api::{Ask, Call, Routes, written};
use crate::diagnosis::why;
use crate::failure::Failure;
use crate::verbs;

/// The names that the first page offers as filters, of tenants and of assignees each.
const NAMES: u32 = 1000;

pub(super) fn mount(router: Routes) -> Routes {
    PREFIXES.into_iter().fold(router, |router, prefix| router.route(&format!("{prefix}/board"), get(board)))
}

/// A board, grouped by status.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BoardPage {
    columns: Vec<Column>,
    /// On the first page, how many tasks there are by status, of the tenant and the assignee that were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<BTreeMap<String, i64>>,
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
    /// Whether it goes on only if a person does something.
    needs_person: bool,
    /// Since it was made, in seconds.
    age: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardQuery {
    tenant: Option<Tenant>,
    assignee: Option<Profile>,
    search: Option<String>,
    #[serde(default)]
    include_archived: bool,
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn board(ask: Ask<BoardQuery>) -> Result<Response, Failure> {
    let (ask, query) = ask.split();
    // The cursor is read first: what happens in between is then told again, never missed.
    let newest = verbs::Events { since: EventId(i64::MAX), limit: 1, ..verbs::Events::default() };
    let latest_event_id = ask.dispatch(newest).await?.last_event;
    let is_first = query.cursor.is_none();
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
    let mut tenants: BTreeSet<String> =
        tasks.iter().filter_map(|task| task.tenant.as_ref().map(ToString::to_string)).collect();
    let mut assignees: BTreeSet<String> =
        tasks.iter().filter_map(|task| task.assignee.as_ref().map(ToString::to_string)).collect();
    let counts = if is_first { Some(counted(&call, of).await?) } else { None };
    if is_first && call.confined().is_none() {
        let names = |view: &kernel::View<'_>| {
            Ok((view.tenants_from("", NAMES)?, view.assignees("", NAMES as usize)?))
        };
        let (all, known) = call.read(names).await?;
        tenants.extend(all);
        assignees.extend(known.into_iter().map(|assignee| assignee.name));
    }
    let now = kernel::SystemClock.now();
    let mut columns: BTreeMap<Status, Vec<Card>> = BTreeMap::new();
    for card in cards(&call, tasks, now).await? {
        columns.entry(card.task.status).or_default().push(card);
    }
    let columns = columns.into_iter().map(|(name, tasks)| Column { name, tasks }).collect();
    let page = BoardPage { columns, counts, tenants, assignees, next, latest_event_id, now };
    written(StatusCode::OK, page).await
}

/// How many tasks there are by status, for a caller who sees those of its tenant alone.
async fn counted(
    call: &Call,
    (tenant, assignee): (Option<Tenant>, Option<Profile>),
) -> Result<BTreeMap<String, i64>, Failure> {
    let tenant = call.confined().cloned().or(tenant);
    call.read(move |view| view.tasks_by_status(tenant.as_ref(), assignee.as_ref())).await
}

/// The cards of these tasks, in their order.
async fn cards(call: &Call, tasks: Vec<Task>, now: Timestamp) -> Result<Vec<Card>, Failure> {
    let tasks = why::explain(call, tasks).await?;
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
    let counts = call.read(move |view| view.card_counts(&ids.iter().collect::<Vec<_>>())).await?;
    let card = |(mut task, counts): (Task, CardCounts)| {
        let waits = task.why.take();
        let (needs_person, age) = (task.waits_for_a_person(), now.since(task.created_at).as_secs());
        Card { task, counts, waits, needs_person, age }
    };
    Ok(tasks.into_iter().zip(counts).map(card).collect())
}
