//! Paths of tasks, links and events.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use kernel::{CommentId, EventId, TaskId, Tenant};
use serde::{Deserialize, Serialize};

use schemars::{JsonSchema, Schema};

use super::{PREFIXES, socket};
use api::{Ask, Audience, Effect, Id, JsonBody, Routes, Switch, written};
use base::failure::Failure;

pub(super) fn mount(router: Routes) -> Routes {
    PREFIXES
        .into_iter()
        .fold(router, mount_at)
        .route("/api/v1/verbs", get(table_of_verbs))
        .route("/api/v1/markdown", post(markdown))
        .route("/api/v1/status", get(status))
        .route("/api/v1/stats", get(stats))
        .route("/api/v1/metrics", get(metrics))
}

/// Adds the paths that Hermes Kanban has, too.
fn mount_at(router: Routes, prefix: &str) -> Routes {
    let at = |path: &str| format!("{prefix}{path}");
    router
        .route(&at("/tasks"), get(tasks).post(create))
        .route(&at("/tasks/bulk"), post(bulk))
        .route(&at("/tasks/{id}"), get(task).patch(patch).delete(delete))
        .route(&at("/tasks/{id}/comments"), post(comment))
        .route(&at("/links"), post(link).delete(unlink))
        .route(&at("/dispatch"), post(run_pass))
        .route(&at("/events"), get(events))
}

type Reply = Result<Response, Failure>;

async fn tasks(ask: Ask<verbs::List>) -> Reply {
    let (ask, list) = ask.split();
    ask.answer(list).await
}

async fn create(ask: Ask, JsonBody(create): JsonBody<verbs::Create>) -> Reply {
    let created = ask.dispatch(create).await?;
    let status = if created.existing { StatusCode::OK } else { StatusCode::CREATED };
    written(status, created).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskQuery {
    before_comment: Option<CommentId>,
}

async fn task(ask: Ask<TaskQuery>, Id(id): Id<TaskId>) -> Reply {
    let (ask, TaskQuery { before_comment }) = ask.split();
    ask.answer(verbs::Show { task_id: Some(id), before_comment, ..verbs::Show::default() }).await
}

async fn patch(ask: Ask, id: Id<TaskId>, JsonBody(patch): JsonBody<verbs::Patch>) -> Reply {
    let task_id = Some(id.unless_other(patch.task_id.as_ref())?);
    ask.answer(verbs::Patch { task_id, ..patch }).await
}

async fn bulk(ask: Ask, JsonBody(bulk): JsonBody<verbs::BulkPatch>) -> Reply {
    ask.answer(bulk).await
}

async fn markdown(ask: Ask, JsonBody(markdown): JsonBody<verbs::Markdown>) -> Reply {
    ask.answer(markdown).await
}

async fn delete(ask: Ask, Id(id): Id<TaskId>) -> Reply {
    ask.answer(verbs::Archive { rm: Some(vec![id]), ..verbs::Archive::default() }).await
}

async fn comment(ask: Ask, id: Id<TaskId>, JsonBody(comment): JsonBody<verbs::Comment>) -> Reply {
    let task_id = Some(id.unless_other(comment.task_id.as_ref())?);
    let comment = ask.dispatch(verbs::Comment { task_id, ..comment }).await?;
    written(StatusCode::CREATED, comment).await
}

async fn link(ask: Ask, JsonBody(link): JsonBody<verbs::Link>) -> Reply {
    ask.answer(link).await
}

async fn unlink(ask: Ask<verbs::Unlink>) -> Reply {
    let (ask, unlink) = ask.split();
    ask.answer(unlink).await
}

async fn run_pass(ask: Ask<verbs::Dispatch>) -> Reply {
    let (ask, pass) = ask.split();
    ask.answer(pass).await
}

/// A verb that the caller may call.
#[derive(Serialize)]
struct CallableVerb {
    name: &'static str,
    audience: Audience,
    needs: Effect,
    request: &'static Schema,
}

/// Schemas of all requests. Making them takes milliseconds, so it is done once.
static REQUESTS: LazyLock<BTreeMap<&'static str, Schema>> =
    LazyLock::new(|| verbs::entries().into_iter().map(|entry| (entry.name, (entry.request)())).collect());

async fn table_of_verbs(ask: Ask) -> Reply {
    let rows = ask.verbs()?.into_iter().filter_map(|entry| {
        let request = REQUESTS.get(entry.name)?;
        Some(CallableVerb { name: entry.name, audience: entry.audience, needs: entry.effect, request })
    });
    written(StatusCode::OK, rows.collect::<Vec<_>>()).await
}

/// Query of the event log. Kinds are separated by commas.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    since: Option<EventId>,
    limit: Option<u32>,
    task: Option<TaskId>,
    tenant: Option<Tenant>,
    kinds: Option<String>,
    wait: Option<u64>,
}

impl EventQuery {
    async fn over_a_socket(self, ask: &Ask<()>, switch: Switch) -> Reply {
        let EventQuery { since, limit, task, tenant, kinds, wait } = self;
        if limit.is_some() || task.is_some() || kinds.is_some() || wait.is_some() {
            return Err(Failure::usage("a WebSocket has all events of the board or of a tenant")
                .hint("leave limit, task, kinds and wait out"));
        }
        socket::begin(ask, switch, since, tenant).await
    }
}

async fn events(ask: Ask<EventQuery>, switch: Switch) -> Reply {
    let (ask, query) = ask.split();
    if switch.is_asked() {
        return query.over_a_socket(&ask, switch).await;
    }
    let kinds = query.kinds.iter().flat_map(|kinds| kinds.split(',')).map(str::to_owned).collect();
    let events = verbs::Events {
        since: query.since.unwrap_or_default(),
        limit: query.limit.unwrap_or(1000),
        task: query.task,
        tenant: query.tenant,
        kinds,
        wait: query.wait.unwrap_or_default(),
        ..verbs::Events::default()
    };
    ask.answer(events).await
}

async fn status(ask: Ask<verbs::Status>) -> Reply {
    let (ask, status) = ask.split();
    ask.answer(status).await
}

async fn stats(ask: Ask<verbs::Stats>) -> Reply {
    let (ask, stats) = ask.split();
    ask.answer(stats).await
}

/// Media type of the text format (`OpenMetrics` 1.0, "Protocol Negotiation").
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn metrics(ask: Ask<verbs::Metrics>) -> Reply {
    let (ask, metrics) = ask.split();
    let measured = ask.dispatch(metrics).await?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], measured.to_string()).into_response())
}
