//! `notify outbox`, `retry` and `drop`: the waiting and the undeliverable messages.

use kernel::{Clock as _, Counted, Letter, LetterId, LetterState, Letters, SystemClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Screen};
use base::time::timestamp;

/// Limit on the listed messages.
const LISTED: u32 = 200;

/// List pending and undeliverable messages
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List messages that wait, and those that could not be delivered",
    after_help = "\
Examples:
  supervisor notify outbox
  supervisor notify outbox --channel ops --dead --json"
)]
pub struct NotifyOutbox {
    /// Only those to this channel
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
    /// Only messages that could not be delivered
    #[arg(long)]
    pub dead: bool,
}

impl Verb for NotifyOutbox {
    verb! { "notify-outbox": Operator, Read => Vec<Letter> }

    async fn run(self, call: Call) -> Result<Vec<Letter>, Failure> {
        let actor = call.actor.clone();
        let state = self.dead.then_some(LetterState::Dead);
        let which = Letters { channel: self.channel, state, limit: LISTED, ..Letters::default() };
        let mut letters = call.read(move |view| view.outbox(&which, &actor)).await?;
        for letter in letters.iter_mut().filter(|letter| letter.state == LetterState::Waiting) {
            let free_at = call.service.channel_paused_until(&letter.address.channel);
            letter.due_at = free_at.map_or(letter.due_at, |free_at| letter.due_at.max(free_at));
        }
        Ok(letters)
    }
}

/// `WhichLetters` messages are meant
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhichLetters {
    /// Only this message
    #[arg(value_name = "MESSAGE")]
    pub id: Option<LetterId>,
    /// Only those to this channel
    #[arg(long, value_name = "NAME")]
    pub channel: Option<String>,
}

impl WhichLetters {
    /// Returns the selection. Fails for a channel that is neither configured nor has waiting messages.
    async fn known(self, call: &Call) -> Result<Letters, Failure> {
        let which = Letters { id: self.id, channel: self.channel, limit: 1, ..Letters::default() };
        let Some(name) = which.channel.clone() else { return Ok(which) };
        let (of_channel, actor) = (Letters { id: None, ..which.clone() }, call.actor.clone());
        let waits = !call.read(move |view| view.outbox(&of_channel, &actor)).await?.is_empty();
        if !waits {
            let config = call.service.config();
            config.notify.find(&name).map_err(|why| {
                Failure::new(Code::NotFound, why)
                    .hint("`supervisor notify outbox` shows which messages wait for which channel")
            })?;
        }
        Ok(which)
    }
}

/// The number of messages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LetterCount {
    pub messages: usize,
}

/// Try messages again at once
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor notify retry
  supervisor notify retry 17
  supervisor notify retry --channel ops")]
pub struct NotifyRetry {
    #[command(flatten)]
    #[serde(flatten)]
    pub which: WhichLetters,
}

impl Verb for NotifyRetry {
    verb! { "notify-retry": Operator, Write => LetterCount }

    async fn run(self, call: Call) -> Result<LetterCount, Failure> {
        let which = self.which.known(&call).await?;
        let retried = call
            .write(move |board, actor| {
                board.retry_letters(&which, actor).map(|messages| LetterCount { messages })
            })
            .await?;
        call.service.mail().notify_one();
        Ok(retried)
    }
}

/// Drop messages that could not be delivered, or a message that waits
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor notify drop 17
  supervisor notify drop --channel ops")]
pub struct NotifyDrop {
    #[command(flatten)]
    #[serde(flatten)]
    pub which: WhichLetters,
}

impl Verb for NotifyDrop {
    verb! { "notify-drop": Operator, Write => LetterCount }

    async fn run(self, call: Call) -> Result<LetterCount, Failure> {
        let which = self.which.known(&call).await?;
        let dropped = call
            .write(move |board, actor| {
                board.drop_letters(&which, actor).map(|messages| LetterCount { messages })
            })
            .await?;
        // The messages after the dropped one can be sent now.
        call.service.mail().notify_one();
        Ok(dropped)
    }
}

impl Command for NotifyOutbox {
    fn show(reply: &Vec<Letter>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("Nothing waits to be delivered.");
            return;
        }
        let now = SystemClock.now();
        let rows = reply.iter().map(|letter| {
            let next = match letter.state {
                LetterState::Waiting if letter.due_at <= now => "due".to_owned(),
                LetterState::Waiting => timestamp::local(letter.due_at),
                LetterState::Dead => "dead".to_owned(),
            };
            [
                Cell::from(letter.id.to_string()),
                Cell::from(letter.task_id.to_string()),
                Cell::from(letter.kind.to_string()),
                Cell::from(letter.address.channel.clone()),
                Cell::from(next),
                Cell::from(letter.attempts.to_string()),
                Cell::or_dash(letter.last_error.as_deref()),
            ]
        });
        screen.table(["MESSAGE", "TASK", "KIND", "CHANNEL", "NEXT TRY", "TRIES", "ERROR"], rows);
    }
}

impl Command for NotifyRetry {
    fn show(reply: &LetterCount, screen: &mut Screen) {
        screen.line(format!("{} tried again", Counted(reply.messages, "message")));
    }
}

impl Command for NotifyDrop {
    fn show(reply: &LetterCount, screen: &mut Screen) {
        screen.line(format!("{} dropped", Counted(reply.messages, "message")));
    }
}
