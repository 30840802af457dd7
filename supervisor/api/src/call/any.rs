//! Requests and replies of any verb.
//!
//! The paths around a verb take these objects: the listener, the client, the chats and the tools. So they are compiled
//! once and not for each of some 110 verbs. The verb itself keeps its types.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use kernel::{TaskId, Tenant};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Call, Verb, VerbEntry, VerbRequest};
use base::failure::Failure;
use base::json;

/// Work in progress.
pub type Working<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// A request without its type: the verb is known by its entry.
pub trait AnyVerb: Send + Sync + 'static {
    /// Returns the verb in a table of verbs.
    fn entry(&self) -> VerbEntry;
    /// Returns the request as JSON.
    fn to_json(&self) -> Result<Vec<u8>, Failure>;
    /// [`Verb::substance`].
    fn substance(&self) -> Result<Vec<u8>, Failure>;
    /// [`Verb::http_request`].
    fn http_request(&self) -> Result<VerbRequest, Failure>;
    /// [`Verb::default_to_own`].
    fn default_to_own(&mut self, own: &TaskId);
    /// [`Verb::policy`].
    fn policy(&self) -> Option<&str>;
    /// [`Verb::confine`].
    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure>;
    /// [`Verb::answered_within`].
    fn answered_within(&self) -> Duration;
    /// [`Verb::longest`].
    fn longest(&self) -> Duration;
    /// [`Verb::run`].
    fn work(self: Box<Self>, call: Call) -> Working<'static, Box<dyn AnyReply>>;
}

impl<V: Verb> AnyVerb for V {
    fn entry(&self) -> VerbEntry {
        VerbEntry::for_verb::<V>()
    }

    fn to_json(&self) -> Result<Vec<u8>, Failure> {
        to_json(self)
    }

    fn substance(&self) -> Result<Vec<u8>, Failure> {
        Verb::substance(self)
    }

    fn http_request(&self) -> Result<VerbRequest, Failure> {
        Verb::http_request(self)
    }

    fn default_to_own(&mut self, own: &TaskId) {
        Verb::default_to_own(self, own);
    }

    fn policy(&self) -> Option<&str> {
        Verb::policy(self)
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        Verb::confine(self, tenant)
    }

    fn answered_within(&self) -> Duration {
        Verb::answered_within(self)
    }

    fn longest(&self) -> Duration {
        Verb::longest(self)
    }

    fn work(self: Box<Self>, call: Call) -> Working<'static, Box<dyn AnyReply>> {
        Box::pin(async move {
            let reply: Box<dyn AnyReply> = Box::new((*self).run(call).await?);
            Ok(reply)
        })
    }
}

impl fmt::Debug for dyn AnyVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyVerb").field(&self.entry().name).finish()
    }
}

/// Returns a request as JSON.
pub(super) fn to_json<V: Serialize>(verb: &V) -> Result<Vec<u8>, Failure> {
    json::bytes(verb).map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))
}

/// A reply without its type.
pub trait AnyReply: Any + Send {
    /// Writes the reply as JSON.
    fn write(&self, buffer: &mut json::Buffer) -> serde_json::Result<()>;
}

impl<T: Serialize + Send + 'static> AnyReply for T {
    fn write(&self, buffer: &mut json::Buffer) -> serde_json::Result<()> {
        buffer.write(self)
    }
}

impl fmt::Debug for dyn AnyReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyReply")
    }
}

/// Returns a value as its type.
pub(super) fn typed<T: 'static>(value: Box<dyn Any + Send>) -> Result<T, Failure> {
    value.downcast().map(|value| *value).map_err(|_| of_another_type())
}

fn of_another_type() -> Failure {
    Failure::failed("the outcome has another type than the verb's reply")
}

impl dyn AnyReply {
    /// Returns the reply as its type.
    ///
    /// # Errors
    /// Fails if the reply is of another verb.
    pub fn typed<T: 'static>(self: Box<Self>) -> Result<T, Failure> {
        typed(self)
    }

    /// Returns a reference to the reply as its type.
    ///
    /// # Errors
    /// Fails if the reply is of another verb.
    pub fn as_typed<T: 'static>(&self) -> Result<&T, Failure> {
        (self as &dyn Any).downcast_ref().ok_or_else(of_another_type)
    }
}

/// Failure of a request that is no request of its verb. It names the field.
pub type Unfit = serde_path_to_error::Error<serde_json::Error>;

/// Parses a request of a verb.
pub(super) fn request<V: Verb>(json: &[u8]) -> Result<Box<dyn AnyVerb>, Unfit> {
    record::<V>(json).map(|verb| Box::new(verb) as Box<dyn AnyVerb>)
}

/// Parses a JSON object as a record.
pub(crate) fn record<T: DeserializeOwned>(json: &[u8]) -> Result<T, Unfit> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let record = serde_path_to_error::deserialize(&mut json)?;
    json.end().map_err(|error| Unfit::new(serde_path_to_error::Track::new().path(), error))?;
    Ok(record)
}

/// Parses the reply of a verb.
pub(super) fn reply<T: Serialize + DeserializeOwned + Send + 'static>(
    json: &[u8],
) -> serde_json::Result<Box<dyn AnyReply>> {
    serde_json::from_slice::<T>(json).map(|reply| Box::new(reply) as Box<dyn AnyReply>)
}

/// Work whose outcome is of a known type. Only the last step of it is compiled for each type.
#[must_use = "work does nothing unless it is awaited"]
pub struct Typed<'a, T> {
    work: Working<'a, Box<dyn Any + Send>>,
    outcome: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Typed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

impl<'a, T: 'static> Typed<'a, T> {
    /// Makes such work of work that comes to a `T`.
    pub fn of(work: Working<'a, Box<dyn Any + Send>>) -> Self {
        Typed { work, outcome: PhantomData }
    }
}

impl<T: 'static> Future for Typed<'_, T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.as_mut().poll(cx).map(|outcome| outcome.and_then(typed))
    }
}
