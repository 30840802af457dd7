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
    pub(super) body: Body,
    pub(super) reply: Reply,
    /// True if the resource also exists under the prefix of `hermes kanban`, for its clients.
    pub(super) is_shared: bool,
}

#[derive(Debug)]
pub(super) enum Body {
    None,
    Json(Make),
    Bytes,
}

/// Body of a response.
#[derive(Debug)]
pub(super) enum Reply {
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
    const fn of<V: Verb>(method: &'static str, path: &'static str, about: &'static str) -> Self {
        Resource {
            method,
            path,
            about,
            verb: Some(V::NAME),
            query: None,
            body: Body::None,
            reply: Reply::OfVerb,
            is_shared: false,
        }
    }

    /// Makes a resource for all callers.
    const fn of_anybody(method: &'static str, path: &'static str, about: &'static str) -> Self {
        Resource { verb: None, ..Self::of::<v::List>(method, path, about) }
    }

    const fn query<Q: JsonSchema>(self) -> Self {
        Resource { query: Some(schema::<Q>), ..self }
    }

    const fn body<B: JsonSchema>(self) -> Self {
        Resource { body: Body::Json(schema::<B>), ..self }
    }

    const fn bytes(self) -> Self {
        Resource { body: Body::Bytes, ..self }
    }

    const fn reply<R: JsonSchema>(self) -> Self {
        Resource { reply: Reply::Json(schema::<R>), ..self }
    }

    const fn other(self, media_type: &'static str) -> Self {
        Resource { reply: Reply::Other(media_type), ..self }
    }

    const fn shared(self) -> Self {
        Resource { is_shared: true, ..self }
    }
}

/// Every resource, in the order of the manual.
pub(super) static RESOURCES: [Resource; 31] = [
    Resource::of::<v::List>("get", "/board", "A page of tasks by status, as cards")
        .query::<board::BoardQuery>()
        .reply::<board::BoardPage>()
        .shared(),
    Resource::of::<v::List>("get", "/tasks", "Tasks, all of them or a page").query::<v::List>().shared(),
    Resource::of::<v::Create>("post", "/tasks", "Create a task").body::<v::Create>().shared(),
    Resource::of::<v::BulkPatch>("post", "/tasks/bulk", "The same change of many tasks")
        .body::<v::BulkPatch>()
        .shared(),
    Resource::of::<v::Show>("get", "/tasks/{id}", "A task with its runs, files and comments")
        .query::<paths::TaskQuery>()
        .shared(),
    Resource::of::<v::Patch>("patch", "/tasks/{id}", "Change a task").body::<v::Patch>().shared(),
    Resource::of::<v::Archive>("delete", "/tasks/{id}", "Archive a task and delete it for good").shared(),
    Resource::of::<v::Comment>("post", "/tasks/{id}/comments", "Add a comment").body::<v::Comment>().shared(),
    Resource::of::<v::Attachments>("get", "/tasks/{id}/attachments", "The files of a task"),
    Resource::of::<v::Attach>("post", "/tasks/{id}/attachments", "Attach a file")
        .query::<v::Attach>()
        .bytes(),
    Resource::of::<v::Attachments>("get", "/attachments/{id}", "The bytes of a file")
        .other("application/octet-stream"),
    Resource::of::<v::AttachRm>("delete", "/attachments/{id}", "Remove a file"),
    Resource::of::<v::Link>("post", "/links", "Make a task wait for another").body::<v::Link>().shared(),
    Resource::of::<v::Unlink>("delete", "/links", "Remove a link").query::<v::Unlink>().shared(),
    Resource::of::<v::Dispatch>("post", "/dispatch", "Start what can start").query::<v::Dispatch>().shared(),
    Resource::of::<v::List>("get", "/config", "How a page begins").reply::<config::PageConfig>().shared(),
    Resource::of::<v::Events>("get", "/events", "The event log; a WebSocket where the request asks for one")
        .query::<paths::EventQuery>()
        .shared(),
    Resource::of::<v::Events>("get", "/stream", "The events as they come, as server-sent events")
        .query::<stream::StreamQuery>()
        .other("text/event-stream"),
    Resource::of::<v::ListBoards>("get", "/boards", "The boards").query::<v::ListBoards>(),
    Resource::of::<v::CreateBoard>("post", "/boards", "Create a board").body::<v::CreateBoard>(),
    Resource::of::<v::EditBoard>("patch", "/boards/{slug}", "Change what is said of a board")
        .body::<Details>(),
    Resource::of::<v::RemoveBoard>("delete", "/boards/{slug}", "Remove a board").query::<boards::Removal>(),
    Resource::of::<v::Export>("get", "/export", "The board as JSON Lines")
        .query::<boards::ExportQuery>()
        .other("application/jsonl"),
    Resource::of::<v::Doctor>("get", "/doctor", "What is wrong with the root and the host")
        .query::<v::Doctor>(),
    Resource::of::<v::Status>("get", "/status", "Whether all is well").query::<v::Status>(),
    Resource::of::<v::Status>("get", "/runs/live", "What is shown of each live worker")
        .query::<live::LiveQuery>()
        .reply::<live::LiveRuns>(),
    Resource::of::<v::Stats>("get", "/stats", "Counts of tasks").query::<v::Stats>(),
    Resource::of::<v::Metrics>("get", "/metrics", "Counts for a monitoring system")
        .other("application/openmetrics-text"),
    Resource::of::<v::Markdown>("post", "/markdown", "Markdown as HTML that runs nothing")
        .body::<v::Markdown>(),
    Resource::of_anybody("get", "/verbs", "The verbs that the caller may call"),
    Resource::of_anybody("get", "/openapi.json", "This document"),
];
