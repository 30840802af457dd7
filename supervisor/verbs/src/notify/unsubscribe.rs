//! `notify-unsubscribe`: ends the subscription of a chat to a task.

use kernel::{Subscription, SubscriptionKey, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subscribe::chat;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Unsubscribe a chat from a task
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor notify-unsubscribe t_0123abcd --platform telegram \\
      --chat-id 12345678")]
pub struct NotifyUnsubscribe {
    /// The task
    pub task_id: TaskId,
    /// The channel, such as telegram
    #[arg(long, value_name = "NAME")]
    pub platform: String,
    /// The chat [default: the chat that the channel names]
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    #[serde(default)]
    pub chat_id: Option<String>,
    /// The thread in the chat
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    #[serde(default)]
    pub thread_id: Option<String>,
}

impl Verb for NotifyUnsubscribe {
    verb! { "notify-unsubscribe": Operator, Write => Subscription }

    async fn run(self, call: Call) -> Result<Subscription, Failure> {
        let key = SubscriptionKey {
            task_id: self.task_id,
            platform: self.platform,
            chat_id: self.chat_id.unwrap_or_default(),
            thread_id: self.thread_id.unwrap_or_default(),
        };
        call.write(move |board, actor| board.unsubscribe(&key, actor)).await
    }
}

impl Command for NotifyUnsubscribe {
    fn show(reply: &Subscription, screen: &mut Screen) {
        screen.line(format!("Unsubscribed {} from {}", printable(&chat(&reply.key)), reply.key.task_id));
    }
}
