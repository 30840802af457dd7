//! `notify-subscribe`: a chat that is subscribed to a task.

use kernel::{Subscription, SubscriptionKey, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::command::Command;
use crate::failure::Failure;
use crate::terminal::{Screen, printable};

/// Nothing here speaks to a chat.
const NOT_SENT: &str = "nothing is sent yet, and nothing moves last_event_id: a notifier of your own reads the subscription with notify-list \
     and the events with `supervisor events --task`, and keeps its own position";

/// Subscribe a chat to a task
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Nothing is sent yet: your own notifier reads the subscriptions with notify-list and
the events with `supervisor events --task`, and keeps its own position. Nothing moves
last_event_id, which stays 0: before the task's first event. Subscribing the same chat
and thread again changes nothing. When the task is done or archived, the subscription
is no longer listed.

Examples:
  supervisor notify-subscribe t_0123abcd --platform telegram --chat-id 12345678
  supervisor notify-subscribe t_0123abcd --platform slack --chat-id C024BE91L \\
      --thread-id 1700000000.000100 --user-id U023BECGF")]
pub(crate) struct NotifySubscribe {
    /// The task
    pub(crate) task_id: TaskId,
    /// The platform, such as telegram
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: String,
    /// The chat
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) chat_id: String,
    /// The thread in the chat
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    #[serde(default)]
    pub(crate) thread_id: Option<String>,
    /// The user who subscribes
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    /// The profile that sends the notifications
    #[arg(long, value_name = "PROFILE")]
    #[serde(default)]
    pub(crate) notifier_profile: Option<String>,
}

/// The subscription, and what its maker should know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Subscribed {
    #[serde(flatten)]
    subscription: Subscription,
    warnings: Vec<String>,
}

impl Verb for NotifySubscribe {
    const NAME: &'static str = "notify-subscribe";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    type Reply = Subscribed;

    async fn run(self, call: Call) -> Result<Subscribed, Failure> {
        let key = SubscriptionKey {
            task_id: self.task_id,
            platform: self.platform,
            chat_id: self.chat_id,
            thread_id: self.thread_id.unwrap_or_default(),
        };
        call.write(move |board, actor| {
            let (user, notifier) = (self.user_id.as_deref(), self.notifier_profile.as_deref());
            let subscription = board.subscribe(&key, user, notifier, actor)?;
            Ok(Subscribed { subscription, warnings: vec![NOT_SENT.to_owned()] })
        })
        .await
    }
}

impl Command for NotifySubscribe {
    fn show(reply: &Subscribed, screen: &mut Screen) {
        let key = &reply.subscription.key;
        screen.line(format!("Subscribed {} to {}", printable(&chat(key)), key.task_id));
    }

    fn warnings(reply: &Subscribed) -> &[String] {
        &reply.warnings
    }
}

/// A chat as people read it: `telegram 12345678, thread 7`.
pub(super) fn chat(key: &SubscriptionKey) -> String {
    let thread = if key.thread_id.is_empty() { String::new() } else { format!(", thread {}", key.thread_id) };
    format!("{} {}{thread}", key.platform, key.chat_id)
}
