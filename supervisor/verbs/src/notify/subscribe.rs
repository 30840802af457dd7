//! `notify-subscribe`: subscribes a chat to a task.

use kernel::{Subscription, SubscriptionKey, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Subscribe a chat to a task
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The platform is the name of a channel: a table [notify.channels.NAME] of supervisor.toml.
What the task waits for now is sent at once. Subscribing the same chat and thread again
changes nothing. When the task is done or archived, the subscription ends.

Examples:
  supervisor notify-subscribe t_0123abcd --platform telegram --chat-id 12345678
  supervisor notify-subscribe t_0123abcd --platform slack --chat-id C024BE91L \\
      --thread-id 1700000000.000100 --user-id U023BECGF")]
pub struct NotifySubscribe {
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
    /// The user who subscribes
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    #[serde(default)]
    pub user_id: Option<String>,
    /// The profile that sends the notifications
    #[arg(long, value_name = "PROFILE")]
    #[serde(default)]
    pub(crate) notifier_profile: Option<String>,
}

/// Subscription, with warnings for the caller.
#[derive(Debug, Serialize, Deserialize)]
pub struct Subscribed {
    #[serde(flatten)]
    subscription: Subscription,
    warnings: Vec<String>,
}

impl Verb for NotifySubscribe {
    verb! { "notify-subscribe": Operator, Write => Subscribed }

    async fn run(self, call: Call) -> Result<Subscribed, Failure> {
        let key = SubscriptionKey {
            task_id: self.task_id,
            platform: self.platform,
            chat_id: self.chat_id.unwrap_or_default(),
            thread_id: self.thread_id.unwrap_or_default(),
        };
        let notify = &call.service.config().notify;
        let missing = (!notify.channels.contains_key(&key.platform)).then(|| {
            format!(
                "there is no channel `{}`, so its messages wait until the configuration has one; the channels are: {}",
                key.platform,
                notify.names()
            )
        });
        call.write(move |board, actor| {
            let (user, notifier) = (self.user_id.as_deref(), self.notifier_profile.as_deref());
            let subscription = board.subscribe(&key, user, notifier, actor)?;
            Ok(Subscribed { subscription, warnings: missing.into_iter().collect() })
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

/// Returns the name of a chat for a person, such as `telegram 12345678, thread 7`.
pub(super) fn chat(key: &SubscriptionKey) -> String {
    let thread = if key.thread_id.is_empty() { String::new() } else { format!(", thread {}", key.thread_id) };
    format!("{} {}{thread}", key.platform, key.chat_id).trim_end().to_owned()
}
