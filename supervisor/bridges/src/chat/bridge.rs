//! Bridge: a chat in use, with its channel. Carries out received messages, and sends the replies.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::conversation::Conversation;
use super::rate_limit::SenderRates;
use delivery::notify::{ChatApi, Undelivered};
use service::Service;
use setup::automation::chat::{ChatFile, IncomingMessage};
use setup::config::notify::Channel;

/// Longest pause before a reply that a service may ask for.
const REPLY_PAUSE: Duration = Duration::from_secs(30);
/// Number of tries of a reply. The command behind it is already done.
const REPLIES: u32 = 3;

/// A chat in use, with its channel.
pub(super) struct Bridge {
    pub(super) service: Arc<Service>,
    pub(super) name: String,
    pub(super) chat: ChatFile,
    pub(super) channel: Channel,
}

impl Bridge {
    /// Returns the API of its service.
    pub(super) fn api(&self) -> ChatApi<'_> {
        ChatApi::new(&self.service, &self.chat.channel, &self.channel)
    }

    /// Makes a conversation without earlier messages.
    pub(super) fn conversation(&self) -> Conversation {
        Conversation {
            service: Arc::clone(&self.service),
            name: self.name.clone(),
            chat: self.chat.clone(),
            rate_limit: SenderRates::default(),
        }
    }

    /// Records that its service responds.
    pub(super) fn connected(&self, account: Option<&str>) {
        self.service.chats().connected(&self.name, account);
    }

    /// Returns the secret in the chat's own file.
    pub(super) fn secret(&self) -> Result<String, Undelivered> {
        let missing = || Undelivered::later(format!("chat.d/{}.toml names no `secret`", self.name));
        let secret = self.chat.secret.as_ref().ok_or_else(missing)?;
        self.api().fetch(&format!("chat {}", self.name), secret)
    }

    /// Carries out a message. Returns the reply; none if the message is not for this chat.
    pub(super) async fn reply(
        &self,
        conversation: &mut Conversation,
        incoming: &IncomingMessage,
    ) -> Option<String> {
        // Panics are caught, because the service would send the message again without end.
        let answer = AssertUnwindSafe(conversation.reply_to(incoming)).catch_unwind().await;
        answer.unwrap_or_else(|_| Some("It failed inside the supervisor; its log has the reason.".to_owned()))
    }

    /// Carries out a message, and sends the reply. A reply that cannot be sent is dropped.
    pub(super) async fn handle(&self, conversation: &mut Conversation, incoming: &IncomingMessage) {
        let Some(reply) = self.reply(conversation, incoming).await else { return };
        let thread = Some(incoming.thread.as_str()).filter(|thread| !thread.is_empty());
        for attempt in 1..=REPLIES {
            let id = format!("chat/{}/{}", self.name, incoming.id);
            let Err(error) = self.api().send(&incoming.chat, thread, &reply, &id).await else { return };
            let pause = match &error {
                Undelivered::Later { after, .. } => after.unwrap_or(Duration::from_secs(1)),
                Undelivered::Refused(_) => REPLY_PAUSE,
            };
            if attempt == REPLIES || pause >= REPLY_PAUSE {
                tracing::warn!(chat = %self.name, %error, "chat_reply_left_out");
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }
}
