//! The resources of the API: each one is a verb under a path that a client would guess.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use kernel::{Clock as _, EventId, Status, Task, TaskId, Tenant};
use serde::{Deserialize, Serialize};

use super::ask::{Ask, Given, Id};
use super::router::Shared;
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

async fn board(ask: Ask<BoardQuery>) -> Reply<BoardPage> {
    let (ask, query) = ask.split();
    // The cursor is read first: what happens in between is then told again, never missed.
    let newest = verbs::Events { since: EventId(i64::MAX), limit: 1, ..verbs::Events::default() };
    let latest_event_id = ask.dispatch(newest).await?.last_event;
    let list =
        verbs::List { tenant: query.tenant, archived: query.include_archived, ..verbs::List::default() };
    let tasks = ask.dispatch(list).await?.into_tasks();
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

async fn tasks(ask: Ask<verbs::List>) -> Reply<<verbs::List as super::Verb>::Reply> {
    let (ask, list) = ask.split();
    ask.dispatch(list).await.map(Json)
}

async fn create(
    ask: Ask,
    Given(create): Given<verbs::Create>,
) -> Result<(StatusCode, Json<<verbs::Create as super::Verb>::Reply>), Failure> {
    let created = ask.dispatch(create).await?;
    let status = if created.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}

async fn task(ask: Ask, Id(id): Id<TaskId>) -> Reply<<verbs::Show as super::Verb>::Reply> {
    ask.dispatch(verbs::Show { task_id: Some(id), ..verbs::Show::default() }).await.map(Json)
}

async fn patch(ask: Ask, id: Id<TaskId>, Given(patch): Given<verbs::Patch>) -> Reply<Task> {
    let task_id = Some(id.unless_other(patch.task_id.as_ref())?);
    ask.dispatch(verbs::Patch { task_id, ..patch }).await.map(Json)
}

async fn delete(ask: Ask, Id(id): Id<TaskId>) -> Reply<<verbs::Archive as super::Verb>::Reply> {
    ask.dispatch(verbs::Archive { rm: vec![id], ..verbs::Archive::default() }).await.map(Json)
}

async fn comment(
    ask: Ask,
    id: Id<TaskId>,
    Given(comment): Given<verbs::Comment>,
) -> Result<(StatusCode, Json<kernel::Comment>), Failure> {
    let task_id = Some(id.unless_other(comment.task_id.as_ref())?);
    let comment = ask.dispatch(verbs::Comment { task_id, ..comment }).await?;
    Ok((StatusCode::CREATED, Json(comment)))
}

async fn link(ask: Ask, Given(link): Given<verbs::Link>) -> Reply<<verbs::Link as super::Verb>::Reply> {
    ask.dispatch(link).await.map(Json)
}

async fn unlink(ask: Ask<verbs::Unlink>) -> Reply<<verbs::Unlink as super::Verb>::Reply> {
    let (ask, unlink) = ask.split();
    ask.dispatch(unlink).await.map(Json)
}

async fn run_pass(ask: Ask<verbs::Dispatch>) -> Reply<verbs::Dispatched> {
    let (ask, pass) = ask.split();
    ask.dispatch(pass).await.map(Json)
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

async fn events(ask: Ask<EventQuery>) -> Reply<<verbs::Events as super::Verb>::Reply> {
    let (ask, query) = ask.split();
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
    ask.dispatch(events).await.map(Json)
}

async fn status(ask: Ask) -> Reply<<verbs::Status as super::Verb>::Reply> {
    ask.dispatch(verbs::Status::default()).await.map(Json)
}

async fn stats(ask: Ask<verbs::Stats>) -> Reply<<verbs::Stats as super::Verb>::Reply> {
    let (ask, stats) = ask.split();
    ask.dispatch(stats).await.map(Json)
}
