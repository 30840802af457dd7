//! `notify-list`: lists the subscriptions of chats to tasks.

use kernel::{Subscription, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Cell, Screen};

/// List chat subscriptions
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor notify-list
  supervisor notify-list t_0123abcd --json")]
pub struct NotifyList {
    /// Only subscriptions of this task
    pub task_id: Option<TaskId>,
}

impl Verb for NotifyList {
    verb! { "notify-list": Operator, Read => Vec<Subscription> }

    async fn run(self, call: Call) -> Result<Vec<Subscription>, Failure> {
        let actor = call.actor.clone();
        call.read(move |view| view.subscriptions(self.task_id.as_ref(), &actor)).await
    }
}

impl Command for NotifyList {
    fn show(reply: &Vec<Subscription>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No subscriptions.");
            return;
        }
        let rows = reply.iter().map(|subscription| {
            let key = &subscription.key;
            let dash = |text: &str| Cell::or_dash(Some(text).filter(|text| !text.is_empty()));
            [
                Cell::from(key.task_id.to_string()),
                Cell::from(key.platform.clone()),
                Cell::from(key.chat_id.clone()),
                dash(&key.thread_id),
                Cell::from(subscription.last_event_id.to_string()),
            ]
        });
        screen.table(["TASK", "PLATFORM", "CHAT", "THREAD", "LAST EVENT"], rows);
    }
}
