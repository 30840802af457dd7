//! Extracts the parts of a request for its handler: caller, parameters, id in the path, and body. Malformed requests
//! are refused here, in the same way for every route.
//!
//! Only the parsing of a verb, its work and its reply are generic over the verb. All else takes an [`AnyVerb`],
//! so it is compiled once and not for each of some 110 verbs.

use std::any::Any;
use std::convert::Infallible;
use std::ops::Deref;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Limited};
use kernel::{Actor, BoardName, Request as Repeatable, RequestId, TaskId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::call::any::record;
use super::call::{
    AnyReply, AnyVerb, Call, OnBoard, ParseRequest, Typed, Unfit, Verb, VerbEntry, WORKER_TIME, Working,
};
use super::confined::{confined, not_for_members, require_board};
use super::identity::{BOARD_HEADER, CallerIdentity, IdentifiedCaller, REQUEST_HEADER, Via, token_not_valid};
use super::listeners::{RequestPermit, Reserved, VerbPermits};
use super::router::{ApiState, Messages, Routes, Surface};
use super::streams::OpenStream;
use super::work::blocking;
use base::exit::Code;
use base::failure::{Failure, INVALID_BODY};
use base::json::Buffer;
use service::BoardHandle;

/// Limit on the body of a request, in bytes. The texts in it have smaller limits, whose errors name the field.
const BODY_LIMIT: usize = 4 << 20;
/// Size up to which a reply is serialised on the current thread, in bytes.
const SHORT: usize = 16 << 10;

/// Request without its body. A handler needs this value to run a verb, so the parameters of every route are checked.
#[derive(Debug)]
pub struct Ask<Q = Nothing> {
    envelope: Envelope,
    query: Q,
}

/// Identified caller, admission and headers of a request.
#[derive(Debug)]
pub struct Envelope {
    shared: ApiState,
    caller: IdentifiedCaller,
    permit: Option<Arc<RequestPermit>>,
    headers: HeaderMap,
}

impl<Q> Deref for Ask<Q> {
    type Target = Envelope;

    fn deref(&self) -> &Envelope {
        &self.envelope
    }
}

/// Parameters of a route that takes none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl<Q: DeserializeOwned> FromRequestParts<ApiState> for Ask<Q> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &ApiState) -> Result<Self, Failure> {
        let envelope = Envelope::of(parts, shared)?;
        let Query(query) = Query::try_from_uri(&parts.uri).map_err(|rejection| {
            Failure::usage(format!("invalid parameters: {}", rejection.body_text()))
                .hint("the parameters of each path are listed in `supervisor help docs/api.md`")
        })?;
        Ok(Ask { envelope, query })
    }
}

impl<Q> Ask<Q> {
    /// Separates the request from its parameters.
    pub fn split(self) -> (Ask<()>, Q) {
        let Ask { envelope, query } = self;
        (Ask { envelope, query: () }, query)
    }
}

impl Envelope {
    fn of(parts: &Parts, shared: &ApiState) -> Result<Self, Failure> {
        let caller = parts.extensions.get::<IdentifiedCaller>().cloned();
        let caller = caller.ok_or_else(|| Failure::failed("the caller of this request is not known"))?;
        let permit = parts.extensions.get::<Arc<RequestPermit>>().cloned();
        Ok(Envelope { shared: shared.clone(), caller, permit, headers: parts.headers.clone() })
    }

    /// Returns the declared length of the body.
    pub fn length(&self) -> Option<u64> {
        declared_length(&self.headers)
    }

    /// Returns the task of the caller's run; none for an operator.
    pub fn own_task(&self) -> Option<&TaskId> {
        match &self.caller.identity {
            CallerIdentity::Live(actor) => actor.run.as_ref().map(|run| &run.task),
            CallerIdentity::Ended { task, .. } => Some(task),
        }
    }

    /// Returns the admission of a worker's request; none for an operator's.
    pub fn request_permit(&self) -> Option<&RequestPermit> {
        self.permit.as_deref()
    }

    /// Admits a stream of the caller, unless the caller has too many.
    pub fn open_stream(&self) -> Result<OpenStream, Failure> {
        let CallerIdentity::Live(actor) = &self.caller.identity else { return Err(token_not_valid()) };
        self.shared.streams.enter(actor, self.shared.stop.clone())
    }

    /// Runs a verb for the caller. Returns its reply as JSON.
    pub fn answer<V: Verb>(&self, verb: V) -> Working<'_, Response> {
        self.answer_any(Box::new(verb))
    }

    /// Runs a verb for the caller. A worker's request has a time limit.
    pub fn dispatch<V: Verb>(&self, verb: V) -> Typed<'_, V::Reply> {
        let work = self.dispatch_any(Box::new(verb));
        Typed::of(Box::pin(async move { Ok(work.await? as Box<dyn Any + Send>) }))
    }

    fn answer_any(&self, verb: Box<dyn AnyVerb>) -> Working<'_, Response> {
        Box::pin(async move { written_any(StatusCode::OK, self.dispatch_any(verb).await?).await })
    }

    /// Runs any verb for the caller, with permits and time limits.
    pub async fn dispatch_any(&self, verb: Box<dyn AnyVerb>) -> Result<Box<dyn AnyReply>, Failure> {
        let entry = verb.entry();
        if let IdentifiedCaller { identity: CallerIdentity::Ended { run, .. }, board: Some(board), via: _ } =
            &self.caller
        {
            let request = kernel::Caller::run(*run);
            let stored = self.stored(Arc::clone(board), request, entry.name, &verb.substance()?).await?;
            return (entry.reply)(stored.as_bytes()).map_err(|e| {
                Failure::failed(format!("the stored reply to `{}` cannot be read: {e}", entry.name))
            });
        }
        let Some(permit) = &self.permit else { return self.admitted(&entry).await?.make_any(verb).await };
        let longest = verb.longest();
        let late = |limit: Duration| {
            Failure::new(Code::TryAgain, format!("`{}` was not done within {limit:?}", entry.name))
                .hint("it may still be done: send it again with the same request id")
        };
        // A slow verb takes the run's only slow permit and does not block other requests of the run.
        let long = if longest > WORKER_TIME { permit.slow_permit()? } else { None };
        let begun = Instant::now();
        let turn = tokio::time::timeout(WORKER_TIME, permit.processing_permit())
            .await
            .map_err(|_| late(WORKER_TIME))?;
        let turn = VerbPermits::new(Arc::clone(permit), [long, turn]);
        let made = async { self.admitted(&entry).await?.counted(turn).make_any(verb).await };
        let left = longest.saturating_sub(begun.elapsed());
        tokio::time::timeout(left, made).await.unwrap_or_else(|_| Err(late(longest)))
    }

    /// Returns the stored reply to a request of an ended run, because a client that did not receive the reply repeats
    /// the request.
    async fn stored(
        &self,
        board: Arc<BoardHandle>,
        caller: kernel::Caller,
        verb: &'static str,
        substance: &[u8],
    ) -> Result<String, Failure> {
        let id = self.request_id()?.ok_or_else(token_not_valid)?;
        let request = Repeatable::new(caller, verb, id, substance);
        let read = move || board.readers().with(|view| view.stored_reply(&request));
        blocking("the reply was not read", read).await?.map_err(Failure::from)?.ok_or_else(token_not_valid)
    }

    /// Checks the caller's permission for a verb, and finds the board.
    pub async fn admit<V: Verb>(&self) -> Result<Call, Failure> {
        self.admitted(&VerbEntry::for_verb::<V>()).await
    }

    async fn admitted(&self, verb: &VerbEntry) -> Result<Call, Failure> {
        let CallerIdentity::Live(actor) = &self.caller.identity else { return Err(token_not_valid()) };
        self.permit(verb, actor)?;
        let (name, board) = if let Some(board) = &self.caller.board {
            (board.name().clone(), Some(Arc::clone(board)))
        } else {
            let name = self.operators_choice()?;
            if let Some(tenant) = confined(actor) {
                require_board(&self.shared.service, tenant, &name)?;
            }
            let needs_none = match verb.on {
                OnBoard::None => true,
                OnBoard::IfServed => self.shared.service.opened(&name).is_err(),
                OnBoard::Named | OnBoard::Made => false,
            };
            let board =
                if needs_none { None } else { Some(self.operators_board(verb.on, name.clone()).await?) };
            (name, board)
        };
        let service = Arc::clone(&self.shared.service);
        let call = Call::new(service, name, board, actor.clone(), self.request_id()?);
        Ok(match &self.caller.via {
            Via::Plugin(plugin) => call.by_plugin(plugin.clone()),
            Via::Listener | Via::Session => call,
        })
    }

    fn request_id(&self) -> Result<Option<RequestId>, Failure> {
        let id = self.text(REQUEST_HEADER).map(str::parse).transpose();
        id.map_err(|e: kernel::ParseError| Failure::usage(format!("the request's id: {e}")))
    }

    /// Returns the name of the board that an operator's request names.
    fn operators_choice(&self) -> Result<BoardName, Failure> {
        match self.text(BOARD_HEADER) {
            Some(name) => name.parse().map_err(|e| Failure::usage(format!("the board's name: {e}"))),
            None => Ok(BoardName::default()),
        }
    }

    /// Returns the board with this name, and opens or creates it if the verb needs it.
    async fn operators_board(&self, on: OnBoard, name: BoardName) -> Result<Arc<BoardHandle>, Failure> {
        let service = Arc::clone(&self.shared.service);
        if let Some(board) = service.opened(&name)? {
            return Ok(board);
        }
        // Opening a board may take long, so it happens on a blocking thread.
        blocking("the board was not opened", move || {
            if on == OnBoard::Made { service.create_board(&name) } else { service.board(&name) }
        })
        .await?
    }

    /// Refuses a verb that the caller may not call.
    fn permit(&self, verb: &VerbEntry, actor: &Actor) -> Result<(), Failure> {
        if self.caller.via == Via::Session && !verb.sessions {
            let why = format!("`{}` is not for sessions of the dashboard", verb.name);
            return Err(Failure::new(Code::NotPermitted, why).hint("use the command line"));
        }
        let is_member = confined(actor).is_some();
        if is_member && !verb.members {
            return Err(not_for_members(&format!("`{}`", verb.name)));
        }
        if verb.audience.admits(actor) {
            return Ok(());
        }
        let names: Vec<&str> = self.open_to(actor).map(|entry| entry.name).collect();
        Err(Failure::new(Code::NotPermitted, format!("`{}` is not for workers", verb.name))
            .hint(format!("a worker may: {}", names.join(", "))))
    }

    fn open_to<'a>(&'a self, actor: &'a Actor) -> impl Iterator<Item = &'a VerbEntry> {
        let is_session = self.caller.via == Via::Session;
        self.shared.verbs.iter().filter(move |entry| entry.admits(actor) && (entry.sessions || !is_session))
    }

    /// Returns the verbs that the caller may call.
    pub fn verbs(&self) -> Result<Vec<VerbEntry>, Failure> {
        let CallerIdentity::Live(actor) = &self.caller.identity else { return Err(token_not_valid()) };
        Ok(self.open_to(actor).copied().collect())
    }

    /// Returns the paths whose messages have their own format.
    pub fn exchanges(&self) -> &[Messages] {
        &self.shared.exchanges
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Adds the path of a verb. The handler has one type for all verbs, so that the server's part is compiled once.
pub fn mount_verb(router: Routes, verb: &VerbEntry) -> Routes {
    let parse = verb.parse;
    let answer = move |ask: Ask, whole: WholeRequest| async move {
        let verb = whole.verb(parse)?;
        ask.answer_any(verb).await
    };
    router.route(&format!("/api/v1/verbs/{}", verb.name), post(answer))
}

/// Handler of a path whose messages have their own format.
pub(crate) type MessageHandler = fn(Ask, WholeRequest) -> Pin<Box<dyn Future<Output = WholeResponse> + Send>>;

/// A complete response in memory.
pub type WholeResponse = hyper::Response<BoxBody<Bytes, Infallible>>;

/// Returns the response for an outcome: the reply as JSON, or the refusal.
pub async fn whole_response<T: Serialize + Send + 'static>(outcome: Result<T, Failure>) -> WholeResponse {
    let answer = match outcome {
        Ok(reply) => written(StatusCode::OK, reply).await,
        Err(failure) => Err(failure),
    };
    let (head, body) = answer.unwrap_or_else(IntoResponse::into_response).into_parts();
    // The body is in memory already.
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    hyper::Response::from_parts(head, http_body_util::Full::new(body).boxed())
}

/// Adds a route whose messages have their own format. They are sent by POST, and pass the same checks as verbs.
pub fn mount_exchange(mut surface: Surface, messages: Messages, exchange: MessageHandler) -> Surface {
    let answer =
        move |ask: Ask, whole: WholeRequest| async move { exchange(ask, whole).await.map(Body::new) };
    surface.routes = surface.routes.route(messages.path, post(answer));
    surface.exchanges.push(messages);
    surface
}

/// Serialises a reply as JSON. A long reply is serialised on a blocking thread, because megabytes would hold up the
/// connections of this thread. A short reply takes less time than the switch to another thread.
pub fn written<T: Serialize + Send + 'static>(status: StatusCode, reply: T) -> Working<'static, Response> {
    Box::pin(written_any(status, Box::new(reply)))
}

async fn written_any(status: StatusCode, reply: Box<dyn AnyReply>) -> Result<Response, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::failed(format!("the reply was not written: {error}"));
    let mut short = Buffer::of(SHORT);
    let bytes = match reply.write(&mut short) {
        Ok(()) => short.into_bytes(),
        Err(error) if error.is_io() => {
            let whole = move || {
                let mut whole = Buffer::of(usize::MAX);
                reply.write(&mut whole).map(|()| whole.into_bytes())
            };
            blocking("the reply was not written", whole).await?.map_err(|error| failed(&error))?
        }
        Err(error) => return Err(failed(&error)),
    };
    Ok((status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response())
}

#[derive(Debug)]
pub struct Id<T>(pub T);

impl<T: FromStr<Err = kernel::ParseError> + Send> FromRequestParts<ApiState> for Id<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &ApiState) -> Result<Self, Failure> {
        let malformed = |why: String| Failure::new(Code::Malformed, why);
        let Path(text) = Path::<String>::from_request_parts(parts, shared)
            .await
            .map_err(|rejection| malformed(format!("the id in the path: {}", rejection.body_text())))?;
        text.parse().map(Id).map_err(|e: kernel::ParseError| malformed(e.to_string()))
    }
}

impl<T: PartialEq> Id<T> {
    /// Returns the id, unless the rest of the request names another id.
    pub fn unless_other(self, named: Option<&T>) -> Result<T, Failure> {
        if named.is_some_and(|named| *named != self.0) {
            return Err(Failure::usage("the path and the request name different ids")
                .hint("leave the id out of the body and the parameters"));
        }
        Ok(self.0)
    }
}

/// Request with its whole body, of at most 4 MiB.
#[derive(Debug)]
pub struct WholeRequest {
    pub head: Parts,
    pub body: Bytes,
    /// Reservation of the body's bytes, released once the body is read.
    pub reserved: Option<Reserved>,
}

impl FromRequest<ApiState> for WholeRequest {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &ApiState) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let length = declared_length(&head.headers).unwrap_or(BODY_LIMIT as u64);
        if length > BODY_LIMIT as u64 {
            return Err(body_too_large());
        }
        // The bytes are reserved before the body is read, so that a worker cannot make the daemon hold more than its
        // limit.
        let permit = head.extensions.get::<Arc<RequestPermit>>();
        let reserved =
            permit.map(|permit| permit.reserve(usize::try_from(length).unwrap_or(BODY_LIMIT))).transpose()?;
        let body = whole(body).await?;
        Ok(WholeRequest { head, body, reserved })
    }
}

/// Extractor for a body that is one JSON value.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ApiState> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &ApiState) -> Result<Self, Failure> {
        WholeRequest::from_request(request, shared).await?.record().map(JsonBody)
    }
}

impl WholeRequest {
    /// Parses the body as a record. An empty body has no fields.
    fn record<T: DeserializeOwned>(self) -> Result<T, Failure> {
        record(self.json()?).map_err(|unfit| refusal(&unfit))
    }

    /// Parses the body as a request of a verb.
    fn verb(self, parse: ParseRequest) -> Result<Box<dyn AnyVerb>, Failure> {
        parse(self.json()?).map_err(|unfit| refusal(&unfit))
    }

    /// Returns the body if it is declared as JSON and is an object.
    fn json(&self) -> Result<&[u8], Failure> {
        let bytes: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        // An empty body needs no content type.
        if !is_json(&self.head.headers) && *bytes != *b"{}" {
            return Err(Failure::new(Code::MediaType, "the body is not declared as JSON")
                .hint("send the header `Content-Type: application/json`"));
        }
        // An array is refused, because serde would fill the fields of a record from it in their order.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != b'{') {
            return Err(Failure::usage("the body is not a JSON object")
                .hint("send the arguments by name, such as {\"title\": \"…\"}"));
        }
        Ok(bytes)
    }
}

fn refusal(unfit: &Unfit) -> Failure {
    Failure::usage(format!("{INVALID_BODY}{unfit}"))
}

/// Reads a body, up to the limit.
async fn whole(body: Body) -> Result<Bytes, Failure> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(body_too_large()),
        Err(error) => Err(Failure::usage(format!("the request's body was not taken: {error}"))),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn body_too_large() -> Failure {
    Failure::new(
        Code::TooLarge,
        format!("the body has more than {BODY_LIMIT} bytes ({} MiB)", BODY_LIMIT >> 20),
    )
    .hint("attach it as a file")
}

fn is_json(headers: &HeaderMap) -> bool {
    let told = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence =
        told.and_then(|told| told.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reply_is_the_same_whether_it_is_short_or_long() {
        for length in [0, SHORT - 2, SHORT - 1, SHORT, 10 * SHORT] {
            let reply = "x".repeat(length);
            let body = written(StatusCode::OK, reply.clone()).await.unwrap().into_body();
            let bytes = body.collect().await.unwrap().to_bytes();
            assert_eq!(serde_json::from_slice::<String>(&bytes).unwrap(), reply);
        }
    }
}
