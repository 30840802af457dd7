//! The resources of the API: each one is a verb under a path that a client would guess.

use std::collections::BTreeMap;

use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use kernel::{Clock as _, EventId, Status, Task, TaskId, Tenant};
use serde::{Deserialize, Serialize};

use super::identity::Peer;
use super::router::{Shared, dispatch};
use crate::failure::Failure;
use crate::verbs;

/// Adds the resources.
pub(super) fn mount(router: Router<Shared>) -> Router<Shared> {
    router
        .route("/api/v1/board", get(board))
        .route("/api/v1/tasks", get(tasks).post(create))
        .route("/api/v1/tasks/{id}", get(task).patch(patch).delete(delete))
        .route("/api/v1/tasks/{id}/comments", post(comment))
        .route("/api/v1/links", post(link).delete(unlink))
        .route("/api/v1/dispatch", post(run_pass))
        .route("/api/v1/events", get(events))
        .route("/api/v1/status", get(status))
        .route("/api/v1/stats", get(stats))
}

type Reply<T> = Result<Json<T>, Failure>;

/// A board, grouped by status.
#[derive(Serialize)]
struct BoardPage {
    columns: Vec<Column>,
    tenants: Vec<Tenant>,
    assignees: Vec<String>,
    latest_event_id: EventId,
    now: kernel::Timestamp,
}

#[derive(Serialize)]
struct Column {
    name: Status,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardQuery {
    tenant: Option<Tenant>,
    #[serde(default)]
    include_archived: bool,
}

async fn board(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Query<BoardQuery>, axum::extract::rejection::QueryRejection>,
) -> Reply<BoardPage> {
    let query = parsed(query)?;
    // The cursor is read first: what happens in between is then told again, never missed.
    let newest = verbs::Events { since: EventId(i64::MAX), limit: 1, ..verbs::Events::default() };
    let latest_event_id = dispatch(&shared, &peer, &headers, newest).await?.last_event;
    let list =
        verbs::List { tenant: query.tenant, archived: query.include_archived, ..verbs::List::default() };
    let tasks = dispatch(&shared, &peer, &headers, list).await?.into_tasks();
    let mut tenants: Vec<Tenant> = tasks.iter().filter_map(|task| task.tenant.clone()).collect();
    tenants.sort();
    tenants.dedup();
    let mut assignees: Vec<String> =
        tasks.iter().filter_map(|task| task.assignee.as_ref().map(ToString::to_string)).collect();
    assignees.sort();
    assignees.dedup();
    let mut columns: BTreeMap<Status, Vec<Task>> = BTreeMap::new();
    for task in tasks {
        columns.entry(task.status).or_default().push(task);
    }
    let columns = columns.into_iter().map(|(name, tasks)| Column { name, tasks }).collect();
    Ok(Json(BoardPage { columns, tenants, assignees, latest_event_id, now: kernel::SystemClock.now() }))
}

async fn tasks(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Query<verbs::List>, axum::extract::rejection::QueryRejection>,
) -> Reply<<verbs::List as super::Verb>::Reply> {
    dispatch(&shared, &peer, &headers, parsed(query)?).await.map(Json)
}

async fn create(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body<verbs::Create>,
) -> Result<(StatusCode, Json<<verbs::Create as super::Verb>::Reply>), Failure> {
    let created = dispatch(&shared, &peer, &headers, taken(body)?).await?;
    let status = if created.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}

async fn task(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Reply<<verbs::Show as super::Verb>::Reply> {
    let show = verbs::Show { task_id: Some(task_id(&id)?), ..verbs::Show::default() };
    dispatch(&shared, &peer, &headers, show).await.map(Json)
}

async fn patch(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Body<verbs::Patch>,
) -> Reply<Task> {
    let patch = verbs::Patch { task_id: Some(task_id(&id)?), ..taken(body)? };
    dispatch(&shared, &peer, &headers, patch).await.map(Json)
}

async fn delete(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Reply<<verbs::Archive as super::Verb>::Reply> {
    let delete = verbs::Archive { rm: vec![task_id(&id)?], ..verbs::Archive::default() };
    dispatch(&shared, &peer, &headers, delete).await.map(Json)
}

async fn comment(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Body<verbs::Comment>,
) -> Result<(StatusCode, Json<kernel::Comment>), Failure> {
    let comment = verbs::Comment { task_id: Some(task_id(&id)?), ..taken(body)? };
    let comment = dispatch(&shared, &peer, &headers, comment).await?;
    Ok((StatusCode::CREATED, Json(comment)))
}

async fn link(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body<verbs::Link>,
) -> Reply<<verbs::Link as super::Verb>::Reply> {
    dispatch(&shared, &peer, &headers, taken(body)?).await.map(Json)
}

async fn unlink(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Query<verbs::Unlink>, axum::extract::rejection::QueryRejection>,
) -> Reply<<verbs::Unlink as super::Verb>::Reply> {
    dispatch(&shared, &peer, &headers, parsed(query)?).await.map(Json)
}

async fn run_pass(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Query<verbs::Dispatch>, axum::extract::rejection::QueryRejection>,
) -> Reply<verbs::Dispatched> {
    dispatch(&shared, &peer, &headers, parsed(query)?).await.map(Json)
}

/// The parameters of the event log. Kinds are separated by commas.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventQuery {
    #[serde(default)]
    since: EventId,
    limit: Option<u32>,
    task: Option<TaskId>,
    tenant: Option<Tenant>,
    kinds: Option<String>,
    #[serde(default)]
    wait: u64,
}

async fn events(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    query: Result<Query<EventQuery>, axum::extract::rejection::QueryRejection>,
) -> Reply<<verbs::Events as super::Verb>::Reply> {
    let query = parsed(query)?;
    let kinds = query.kinds.iter().flat_map(|kinds| kinds.split(',')).map(str::to_owned).collect();
    let events = verbs::Events {
        since: query.since,
        limit: query.limit.unwrap_or(1000),
        task: query.task,
        tenant: query.tenant,
        kinds,
        wait: query.wait,
        ..verbs::Events::default()
    };
    dispatch(&shared, &peer, &headers, events).await.map(Json)
}

async fn status(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Reply<<verbs::Status as super::Verb>::Reply> {
    dispatch(&shared, &peer, &headers, verbs::Status::default()).await.map(Json)
}

async fn stats(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Reply<<verbs::Stats as super::Verb>::Reply> {
    dispatch(&shared, &peer, &headers, verbs::Stats::default()).await.map(Json)
}

type Body<T> = Result<Json<T>, axum::extract::rejection::JsonRejection>;

fn taken<T>(body: Body<T>) -> Result<T, Failure> {
    match body {
        Ok(Json(value)) => Ok(value),
        Err(rejection) => Err(Failure::usage(format!("the body does not fit: {}", rejection.body_text()))),
    }
}

pub(super) fn parsed<T>(
    query: Result<Query<T>, axum::extract::rejection::QueryRejection>,
) -> Result<T, Failure> {
    match query {
        Ok(Query(value)) => Ok(value),
        Err(rejection) => {
            Err(Failure::usage(format!("the parameters do not fit: {}", rejection.body_text())))
        }
    }
}

pub(super) fn task_id(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))
}
