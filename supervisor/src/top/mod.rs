//! `top`: shows the board full-screen, keeps it up to date, and has keys for daily actions.
//!
//! `top` is a client of the API without rules of its own. Keys and data from the board are messages. [`model::TopModel`]
//! handles a message and returns orders, [`view`] draws the model into a buffer, and neither does input or output.
//! [`feed`] reads the board, and [`acts`] carries out orders by verbs.
//!
//! Events are not evaluated. After an event, [`feed`] reads the first pages of each group again, at most a few times a
//! second. A dialog keeps the task that it names when the list below it changes. An answer to a question is sent as text:
//! the number of a choice could apply to another question that came meanwhile.

mod acts;
mod feed;
#[cfg(test)]
mod fit_tests;
mod keys;
mod message;
mod model;
mod peek;
mod picture;
#[cfg(test)]
mod tests;
mod update;
mod view;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use kernel::Tenant;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::feed::BoardReader;
use self::message::{Query, TopAction, TopMessage};
use self::model::TopModel;
use self::view::ColourUse;
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::terminal::full_screen::{self, FullScreen, Input};
use base::terminal::signals::{Signalled, Signals};

/// Capacity of the message queue. A person types more slowly than messages are handled; other senders wait when it is full.
const MESSAGES: usize = 64;

/// Show the board full-screen, and act on it with keys
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Tasks that need a person come first, then the live workers with their processor
time, memory and tokens, then what waits and why, then what is done. `?` shows
the keys. Without a daemon it shows the board as it is.

Examples:
  supervisor top
  supervisor top --tenant acme
  supervisor --board infra top")]
pub(crate) struct Top {
    /// Only the tasks of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Only tasks with this text in the title or the body
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

pub(crate) async fn run(client: Client, top: Top, output: Output) -> Result<u8, Failure> {
    if output.json() {
        return Err(Failure::usage("`top` is for a person at a terminal and writes no JSON")
            .hint("supervisor status --json, or supervisor list --json"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "`top` draws on a terminal, and standard output or standard input is none",
        )
        .hint("supervisor status, or supervisor list"));
    }
    let client = Arc::new(client);
    let query = Query::default().of_tenant(top.tenant).searching(top.search);
    let mut feed = BoardReader::new(Arc::clone(&client));
    // A board that cannot be read is reported before the screen is taken over.
    let picture = feed.read(&query).await?;
    let look = if output.screen().is_coloured() { ColourUse::Coloured } else { ColourUse::Plain };
    let (messages, inbox) = mpsc::channel(MESSAGES);
    let (asked, asks) = watch::channel(query.clone());
    let mut model = TopModel::for_query(query);
    model.update(TopMessage::Picture(Box::new(picture)));
    let signals = Signals::listen()?;
    let screen = FullScreen::enter()?;
    let keys = messages.clone();
    full_screen::read_input(move |input| keys.blocking_send(received(input)).is_ok());
    tokio::spawn(feed.run(asks, messages.clone()));
    TopScreen { client, model, look, screen, messages, asked, following: None }
        .until_quit(inbox, signals)
        .await
}

/// Waits until a time after `began`; forever if there is none.
async fn sleep_until(began: Instant, at: Option<Duration>) {
    match at {
        Some(at) => tokio::time::sleep_until(began + at).await,
        None => std::future::pending().await,
    }
}

fn received(input: Input) -> TopMessage {
    match input {
        Input::Key(key) => TopMessage::Key(key),
        Input::Pasted(text) => TopMessage::Pasted(text),
        Input::Resized => TopMessage::Resized,
        Input::Gone => TopMessage::Gone,
    }
}

/// Screen and model, with the connections that orders need.
struct TopScreen {
    client: Arc<Client>,
    model: TopModel,
    look: ColourUse,
    screen: FullScreen,
    messages: mpsc::Sender<TopMessage>,
    asked: watch::Sender<Query>,
    /// Task that follows the displayed log.
    following: Option<AbortHandle>,
}

impl TopScreen {
    /// Draws the model and handles messages until a person or a signal ends `top`. Returns the exit code.
    async fn until_quit(
        mut self,
        mut inbox: mpsc::Receiver<TopMessage>,
        mut signals: Signals,
    ) -> Result<u8, Failure> {
        let began = Instant::now();
        loop {
            self.take(TopMessage::Time(began.elapsed()))?;
            let (model, look) = (&self.model, self.look);
            self.screen.draw(|area, buffer| view::draw(model, look, area, buffer))?;
            // Cancel-safe: an unread message stays in the channel, a signal is kept until it is read, and the wait for
            // the end of a notice starts again.
            tokio::select! {
                () = sleep_until(began, self.model.notice_ends()) => {}
                message = inbox.recv() => {
                    let Some(message) = message else { return Ok(0) };
                    self.take(TopMessage::Time(began.elapsed()))?;
                    if self.take(message)? {
                        return Ok(0);
                    }
                    // Messages that have arrived meanwhile are drawn together.
                    while let Ok(message) = inbox.try_recv() {
                        if self.take(message)? {
                            return Ok(0);
                        }
                    }
                }
                signal = signals.next() => match signal {
                    Signalled::End(code) => return Ok(code),
                    Signalled::Stop => self.screen.suspend()?,
                    Signalled::Continue => self.screen.resume()?,
                },
            }
        }
    }

    /// Handles a message and carries out the orders of the model. Returns true if one of them ends `top`.
    fn take(&mut self, message: TopMessage) -> Result<bool, Failure> {
        for order in self.model.update(message) {
            let (client, messages) = (Arc::clone(&self.client), self.messages.clone());
            match order {
                TopAction::Quit => return Ok(true),
                TopAction::Suspend => self.screen.suspend()?,
                TopAction::Redraw => self.screen.resume()?,
                // The send fails only without a receiver: the feed has then ended, and nothing reads the board any more.
                TopAction::Read(query) => drop(self.asked.send(query)),
                TopAction::Follow(task) => {
                    let follows = tokio::spawn(async move { acts::follow(&client, task, messages).await });
                    self.follow(Some(follows.abort_handle()));
                }
                TopAction::Unfollow => self.follow(None),
                TopAction::Find(task) => {
                    tokio::spawn(async move { messages.send(acts::find(&client, task).await).await });
                }
                TopAction::Act(act) => {
                    tokio::spawn(async move { messages.send(acts::act(&client, act).await).await });
                }
            }
        }
        Ok(false)
    }

    fn follow(&mut self, following: Option<AbortHandle>) {
        if let Some(before) = std::mem::replace(&mut self.following, following) {
            before.abort();
        }
    }
}
