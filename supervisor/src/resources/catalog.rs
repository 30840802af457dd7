//! Catalog of the resources of the API for the `OpenAPI` page. The verb of a resource decides who may use it.

use schemars::{JsonSchema, Schema, schema_for};

use super::{board, boards, config, live, paths, stream};
use api::Verb;
use service::details::Details;
use verbs as v;

type Make = fn() -> Schema;

/// Method of a path.
#[derive(Debug)]
pub(super) struct Resource {
    /// Method in lower case.
    pub(super) method: &'static str,
    /// Path without the common prefix.
    pub(super) path: &'static str,
    /// Description, on one line.
    pub(super) about: &'static str,
    /// Verb whose callers may use the resource; none for all callers.
    pub(super) verb: Option<&'static str>,
    pub(super) query: Option<Make>,
    pub(super) body: BodyKind,
    pub(super) reply: ReplyKind,
    /// True if the resource also exists under the prefix of `hermes kanban`, for its clients.
    pub(super) is_shared: bool,
}

#[derive(Debug)]
pub(super) enum BodyKind {
    None,
    Json(Make),
    Bytes,
}

/// Body of a response.
#[derive(Debug)]
pub(super) enum ReplyKind {
    OfVerb,
    Json(Make),
    /// Body of this media type.
    Other(&'static str),
}

fn schema<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

impl Resource {
    /// Makes a resource without input and with the reply of its verb.
    const fn with_reply<V: Verb>(method: &'static str, path: &'static str, about: &'static str) -> Self {
        Resource {
            method,
            path,
            about,
            verb: Some(V::NAME),
            query: None,
            body: BodyKind::None,
            reply: ReplyKind::OfVerb,
            is_shared: false,
        }
    }

    /// Makes a resource for all callers.
    const fn of_anybody(method: &'static str, path: &'static str, about: &'static str) -> Self {
        Resource { verb: None, ..Self::with_reply::<v::List>(method, path, about) }
    }

    const fn query<Q: JsonSchema>(self) -> Self {
        Resource { query: Some(schema::<Q>), ..self }
    }

    const fn body<B: JsonSchema>(self) -> Self {
        Resource { body: BodyKind::Json(schema::<B>), ..self }
    }

    const fn bytes(self) -> Self {
        Resource { body: BodyKind::Bytes, ..self }
    }

    const fn reply<R: JsonSchema>(self) -> Self {
        Resource { reply: ReplyKind::Json(schema::<R>), ..self }
    }

    const fn other(self, media_type: &'static str) -> Self {
        Resource { reply: ReplyKind::Other(media_type), ..self }
    }

    const fn shared(self) -> Self {
        Resource { is_shared: true, ..self }
    }
}

/// Every resource, in the order of the manual.
pub(super) static RESOURCES: [Resource; 31] = [
    Resource::with_reply::<v::List>("get", "/board", "A page of tasks by status, as cards")
        .query::<board::BoardQuery>()
        .reply::<board::BoardPage>()
        .shared(),
    Resource::with_reply::<v::List>("get", "/tasks", "Tasks, all of them or a page")
        .query::<v::List>()
        .shared(),
    Resource::with_reply::<v::Create>("post", "/tasks", "Create a task").body::<v::Create>().shared(),
    Resource::with_reply::<v::BulkPatch>("post", "/tasks/bulk", "The same change of many tasks")
        .body::<v::BulkPatch>()
        .shared(),
    Resource::with_reply::<v::Show>("get", "/tasks/{id}", "A task with its runs, files and comments")
        .query::<paths::TaskQuery>()
        .shared(),
    Resource::with_reply::<v::Patch>("patch", "/tasks/{id}", "Change a task").body::<v::Patch>().shared(),
    Resource::with_reply::<v::Archive>("delete", "/tasks/{id}", "Archive a task and delete it for good")
        .shared(),
    Resource::with_reply::<v::Comment>("post", "/tasks/{id}/comments", "Add a comment")
        .body::<v::Comment>()
        .shared(),
    Resource::with_reply::<v::Attachments>("get", "/tasks/{id}/attachments", "The files of a task"),
    Resource::with_reply::<v::Attach>("post", "/tasks/{id}/attachments", "Attach a file")
        .query::<v::Attach>()
        .bytes(),
    Resource::with_reply::<v::Attachments>("get", "/attachments/{id}", "The bytes of a file")
        .other("application/octet-stream"),
    Resource::with_reply::<v::AttachRm>("delete", "/attachments/{id}", "Remove a file"),
    Resource::with_reply::<v::Link>("post", "/links", "Make a task wait for another")
        .body::<v::Link>()
        .shared(),
    Resource::with_reply::<v::Unlink>("delete", "/links", "Remove a link").query::<v::Unlink>().shared(),
    Resource::with_reply::<v::Dispatch>("post", "/dispatch", "Start the tasks that can start")
        .query::<v::Dispatch>()
        .shared(),
    Resource::with_reply::<v::List>("get", "/config", "Settings with which a page begins")
        .reply::<config::PageConfig>()
        .shared(),
    Resource::with_reply::<v::Events>(
        "get",
        "/events",
        "The event log; a WebSocket if the request asks for one",
    )
    .query::<paths::EventQuery>()
    .shared(),
    Resource::with_reply::<v::Events>("get", "/stream", "The events as they come, as server-sent events")
        .query::<stream::StreamQuery>()
        .other("text/event-stream"),
    Resource::with_reply::<v::ListBoards>("get", "/boards", "The boards").query::<v::ListBoards>(),
    Resource::with_reply::<v::CreateBoard>("post", "/boards", "Create a board").body::<v::CreateBoard>(),
    Resource::with_reply::<v::EditBoard>("patch", "/boards/{slug}", "Change the details of a board")
        .body::<Details>(),
    Resource::with_reply::<v::RemoveBoard>("delete", "/boards/{slug}", "Remove a board")
        .query::<boards::RemovalQuery>(),
    Resource::with_reply::<v::Export>("get", "/export", "The board as JSON Lines")
        .query::<boards::ExportQuery>()
        .other("application/jsonl"),
    Resource::with_reply::<v::Doctor>("get", "/doctor", "Problems of the root and the host")
        .query::<v::Doctor>(),
    Resource::with_reply::<v::Status>("get", "/status", "State of the service").query::<v::Status>(),
    Resource::with_reply::<v::Status>("get", "/runs/live", "Live workers")
        .query::<live::LiveQuery>()
        .reply::<live::LiveRuns>(),
    Resource::with_reply::<v::Stats>("get", "/stats", "Counts of tasks").query::<v::Stats>(),
    Resource::with_reply::<v::Metrics>("get", "/metrics", "Counts for a monitoring system")
        .other("application/openmetrics-text"),
    Resource::with_reply::<v::Markdown>("post", "/markdown", "Markdown as HTML that runs nothing")
        .body::<v::Markdown>(),
    Resource::of_anybody("get", "/verbs", "The verbs that the caller may call"),
    Resource::of_anybody("get", "/openapi.json", "This document"),
];
