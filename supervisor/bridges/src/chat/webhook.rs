//! Webhook bridge: a program posts messages to `/api/v1/chat/NAME` on the operator's socket, signed like the channel's
//! own messages, and gets the reply in the response.
//!
//! A listener on the network would need certificates, limits and identities of its own. The signature and its time
//! keep a proxy that lets others reach this path from forging a sender.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock as _, SystemClock};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::bridge::Bridge;
use api::{Ask, Messages, Verb as _, WholeRequest, WholeResponse, whole_response};
use base::exit::Code;
use base::failure::Failure;
use delivery::notify::{ChatApi, Undelivered};
use setup::automation::chat::{IncomingMessage, Posted};
use verbs::ListChats;

/// Path before the name of the chat.
const PATH: &str = "/api/v1/chat/";
/// Limit on the waiting messages of one chat, enough for people typing at the same time. A further message is refused,
/// and its sender repeats it.
const WAITING: usize = 16;
/// Greatest age of a signature, and greatest lead of the sender's clock, in seconds.
const AGE: i64 = 5 * 60;
/// Size limit of the names of a chat and of a thread, in bytes.
const NAME: usize = 256;
/// Longest wait for a reply.
const LIMIT: Duration = Duration::from_mins(1);

/// Description of the path for the `OpenAPI` page.
pub(super) const MESSAGES: Messages = Messages {
    path: "/api/v1/chat/{name}",
    about: "A message in the chat of a webhook, signed with the secret of its channel",
    verb: Some(ListChats::NAME),
    message: || schema_for!(PostedMessage),
    reply: || schema_for!(PostReply),
};

/// A message posted by a program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PostedMessage {
    /// Id of the message, the same if it is posted again.
    id: String,
    sender: String,
    chat_id: String,
    #[serde(default)]
    thread_id: String,
    text: String,
    /// Id of the channel's message that this one replies to.
    #[serde(default)]
    reply_to: Option<String>,
    /// True if the chat has no other members.
    #[serde(default)]
    direct: bool,
}

/// Response to a posted message.
#[derive(Debug, Serialize, JsonSchema)]
struct PostReply {
    /// Reply; none if the message was not for this chat.
    reply: Option<String>,
}

/// Carries out posted messages until `stop`.
pub(super) async fn run(bridge: &Bridge, stop: &CancellationToken) -> Result<(), Undelivered> {
    let mut conversation = bridge.conversation();
    let (sender, mut posted) = mpsc::channel(WAITING);
    bridge.service.chats().open_inbox(&bridge.name, sender);
    bridge.connected(None);
    loop {
        let one: Posted = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            one = posted.recv() => match one {
                Some(one) => one,
                None => return Ok(()),
            },
        };
        let reply = bridge.reply(&mut conversation, &one.message).await;
        // A sender that has gone posts it again, and gets the same reply.
        drop(one.reply.send(reply));
    }
}

/// Headers that sign a posted message.
struct Signed<'a> {
    id: Option<&'a str>,
    at: Option<&'a str>,
    signature: Option<&'a str>,
}

/// Responds to a post.
pub(super) async fn exchange(ask: Ask, whole: WholeRequest) -> WholeResponse {
    whole_response(answer(&ask, whole).await.map(|reply| PostReply { reply })).await
}

async fn answer(ask: &Ask, whole: WholeRequest) -> Result<Option<String>, Failure> {
    // Only operators may post: workers direct no boards.
    let call = ask.admit::<ListChats>().await?;
    if call.confined().is_some() {
        return Err(api::not_for_members("a chat"));
    }
    let service = Arc::clone(&call.service);
    let name = whole.head.uri.path().strip_prefix(PATH).unwrap_or_default().to_owned();
    let inbox = service.chats().inbox(&name).ok_or_else(|| {
        Failure::new(
            Code::NotFound,
            format!("there is no chat `{}` of a webhook", base::terminal::printable(&name)),
        )
        .hint("supervisor chat list lists them")
    })?;
    let header = |name: &str| whole.head.headers.get(name).and_then(|value| value.to_str().ok());
    let signed = Signed {
        id: header("webhook-id"),
        at: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    verify(&service, &name, signed, &whole.body)?;
    let message: PostedMessage = serde_json::from_slice(&whole.body).map_err(|e| {
        Failure::usage(format!("the message cannot be read: {e}"))
            .hint("`supervisor help docs/chat.md` shows one")
    })?;
    let (reply, answer) = oneshot::channel();
    inbox.try_send(Posted { message: message.incoming()?, reply }).map_err(|_| {
        Failure::new(Code::Throttled, format!("{WAITING} messages of this chat wait"))
            .hint("post it again later")
    })?;
    let late =
        || Failure::new(Code::TryAgain, "the chat has not answered").hint("post it again with the same id");
    tokio::time::timeout(LIMIT, answer).await.map_err(|_| late())?.map_err(|_| late())
}

/// Refuses a message without a valid signature, if the channel has a secret.
fn verify(
    service: &service::Service,
    name: &str,
    Signed { id, at, signature }: Signed<'_>,
    body: &[u8],
) -> Result<(), Failure> {
    let refused = |why: &str| {
        Failure::new(Code::NotPermitted, why.to_owned())
            .hint("sign it as https://www.standardwebhooks.com says, with the secret of the channel")
    };
    let chats = service.chats().chats(service.root());
    let config = service.config();
    let file = chats.usable().find(|(chat, _)| *chat == name).map(|(_, file)| file);
    let Some((file, channel)) =
        file.and_then(|file| config.notify.channels.get(&file.channel).map(|channel| (file, channel)))
    else {
        return Err(refused("the chat has no channel"));
    };
    let talk = ChatApi::new(service, &file.channel, channel);
    let expected = talk
        .signature(id.unwrap_or_default(), at.unwrap_or_default(), body)
        .map_err(|_| Failure::failed("the secret of the channel cannot be read"))?;
    let Some(expected) = expected else { return Ok(()) };
    let seconds: i64 =
        at.and_then(|at| at.parse().ok()).ok_or_else(|| refused("it has no webhook-timestamp"))?;
    if (SystemClock.now().as_micros() / 1_000_000).abs_diff(seconds) > AGE.unsigned_abs() {
        return Err(refused("its webhook-timestamp is not of the last five minutes"));
    }
    // Digests are compared, so that the time reveals nothing about the signature.
    let hash = |text: &str| api::hash_token(text);
    let shown = signature.unwrap_or_default().split(' ').any(|one| hash(one) == hash(&expected));
    if shown { Ok(()) } else { Err(refused("its webhook-signature is not right")) }
}

impl PostedMessage {
    fn incoming(self) -> Result<IncomingMessage, Failure> {
        let is_id =
            |text: &str| (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_id(&self.id) {
            return Err(Failure::usage(
                "the id of a message has 1 to 64 printable ASCII characters without spaces",
            ));
        }
        // Colons separate a channel, a chat and a thread.
        let is_name = |text: &str| text.len() <= NAME && !text.contains(char::is_control);
        if self.chat_id.is_empty() || self.chat_id.contains(':') || !is_name(&self.chat_id) {
            return Err(Failure::usage(format!(
                "the chat_id of a message has 1 to {NAME} bytes without `:` and control characters"
            )));
        }
        if !is_name(&self.thread_id) {
            return Err(Failure::usage(format!(
                "the thread_id of a message has at most {NAME} bytes without control characters"
            )));
        }
        Ok(IncomingMessage {
            id: self.id,
            sender: self.sender,
            chat: self.chat_id,
            thread: self.thread_id,
            text: self.text,
            replied: self.reply_to,
            is_direct: self.direct,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(chat: &str, thread: &str) -> Result<IncomingMessage, Failure> {
        let message = serde_json::json!({ "id": "m1", "sender": "1", "chat_id": chat, "thread_id": thread, "text": "/help" });
        serde_json::from_value::<PostedMessage>(message).unwrap().incoming()
    }

    #[test]
    fn a_chat_and_a_thread_have_names_that_can_be_written_and_shown() {
        assert!(posted("!room", "").is_ok() && posted("!room", "a:b").is_ok());
        let long = "x".repeat(NAME + 1);
        for (chat, thread, why) in [
            ("", "", "chat_id"),
            ("a:b", "", "chat_id"),
            ("a\nb", "", "chat_id"),
            (long.as_str(), "", "chat_id"),
            ("a", "b\u{1b}[2J", "thread_id"),
            ("a", long.as_str(), "thread_id"),
        ] {
            let refused = posted(chat, thread).unwrap_err();
            assert!(refused.message.contains(why), "{chat:?} {thread:?}: {refused}");
        }
    }
}
