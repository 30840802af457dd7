//! `@name` of a profile in a message: creates a task for it, with the message as its text, by the rule of comments.

use kernel::{Mention, NewTask, Profile, SubscriptionKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Audience, Call, Effect, Verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};
use verbs::place_of;

/// A message that mentions profiles. Not a verb of the API: only chats send it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Mentioning {
    pub(super) text: String,
    /// Workspace of its tasks; none for scratch directories.
    pub(super) workspace: Option<String>,
}

impl Verb for Mentioning {
    const NAME: &'static str = "mention";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Write;
    const MEMBERS: bool = true;
    type Reply = Vec<Mention>;

    async fn run(self, mut call: Call) -> Result<Vec<Mention>, Failure> {
        let roster = call.service.roster();
        let tenant = call.confined().cloned();
        let config = call.service.config();
        let tenant_config = config.tenants.require(tenant.as_ref())?;
        let policy = tenant_config.and_then(|own| own.policy.clone());
        // As for a new task: a sender with a tenant may only use the tenant's directories.
        let named = self.workspace.as_deref().unwrap_or("scratch");
        let workspace = Some(place_of(&mut call, tenant.as_ref(), named).await?);
        let task = NewTask { tenant, policy, workspace, ..NewTask::default() };
        let chat = call.chat().cloned();
        call.write(move |board, actor| {
            let known = |profile: &Profile| roster.profiles().any(|(name, _)| name == profile.as_str());
            let made = board.mention_in_message(&self.text, known, &task, actor)?;
            for (id, chat) in made.iter().filter_map(|one| one.task.as_ref().zip(chat.as_ref())) {
                let key = SubscriptionKey {
                    task_id: id.clone(),
                    platform: chat.channel.clone(),
                    chat_id: chat.chat_id.clone(),
                    thread_id: chat.thread_id.clone(),
                };
                board.subscribe(&key, None, None, actor)?;
            }
            Ok(made)
        })
        .await
    }
}

impl Command for Mentioning {
    fn show(reply: &Vec<Mention>, screen: &mut Screen) {
        for Mention { profile, task, refused } in reply {
            match (task, refused) {
                (Some(task), _) => screen.line(format!("Created {task} for {profile}")),
                (None, Some(why)) => screen.line(printable(&format!("No task for {profile}: {why}"))),
                (None, None) => {}
            }
        }
    }
}
