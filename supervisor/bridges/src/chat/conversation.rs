//! Interprets the messages of a chat as commands, replies about tasks, or mentions of profiles, and carries them out.

use std::sync::Arc;
use std::time::Duration;

use kernel::{APPROVAL_CHOICES, Address, Profile, Question, TaskId};
use tokio::time::Instant;

use super::directory::directory_of_thread;
use super::mention::Mentioning;
use super::rate_limit::{MessageFate, SenderRates};
use super::registry::{help, help_of, is_open, kanban, schedules};
use super::reply;
use super::verb::{ChatCommand, permit};
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::automation::chat::{ChatFile, IncomingMessage, May, Sender};
use setup::config::notify::Kind;
use verbs::{Answer, Approve, Comment, Deny};

/// Limit on a message, in bytes.
const LONGEST: usize = 16 << 10;
/// Time limit for carrying out a message.
const LIMIT: Duration = Duration::from_secs(30);

/// Chat, with the recent rate of its messages.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) service: Arc<Service>,
    pub(super) name: String,
    pub(super) chat: ChatFile,
    pub(super) rate_limit: SenderRates,
}

/// Meaning of a message by its form.
enum MessageKind {
    /// A command: its word without the slash, and the rest.
    Command(String, String),
    /// A reply to a message of this bridge.
    About(String),
    /// A number in a direct chat.
    Number,
    /// Other text.
    Words,
}

impl Conversation {
    /// Carries out a message. Returns the reply; none if the message is not meant for this program.
    pub(super) async fn reply_to(&mut self, incoming: &IncomingMessage) -> Option<String> {
        let now = Instant::now();
        let Some(sender) = self.chat.sender(&incoming.sender).cloned() else {
            let is_meant = incoming.is_direct || incoming.text.starts_with('/');
            if !is_meant || self.rate_limit.count_unknown(&incoming.sender, now) != MessageFate::Refuse {
                return None;
            }
            tracing::info!(chat = %self.name, sender = ?incoming.sender, "chat_stranger");
            let id: String = incoming.sender.chars().filter(|c| !c.is_control()).take(64).collect();
            return Some(format!("You are not a known sender. An operator can add you by your id: {id}"));
        };
        let meaning = meaning(incoming);
        if matches!(meaning, MessageKind::Words) && !incoming.is_direct && !incoming.text.contains('@') {
            // Ordinary messages in a group are for its members.
            return None;
        }
        self.service.chats().received(&self.name);
        match self.rate_limit.count_known(&sender.id, self.chat.per_minute, now) {
            MessageFate::Answer => {}
            MessageFate::Refuse => return Some("Too many messages. Wait a minute.".to_owned()),
            MessageFate::Ignore => return None,
        }
        if incoming.text.len() > LONGEST {
            return Some(format!("Not done: a message has at most {LONGEST} bytes."));
        }
        let done = tokio::time::timeout(LIMIT, self.act(&sender, incoming, meaning)).await;
        let late = || Failure::new(Code::TryAgain, "it takes too long; it may still be done");
        done.unwrap_or_else(|_| Some(Err(late()))).map(|outcome| reply::from_outcome(outcome, is_open))
    }

    async fn act(
        &self,
        sender: &Sender,
        incoming: &IncomingMessage,
        meaning: MessageKind,
    ) -> Option<Result<String, Failure>> {
        let (service, name, chat) = (&self.service, self.name.as_str(), &self.chat);
        let mut chat_command = ChatCommand {
            service,
            name,
            chat,
            sender,
            incoming,
            board: self.chat.board.clone(),
            directory: None,
            is_open,
        };
        match meaning {
            MessageKind::Command(word, line) => command(&mut chat_command, &word, &line).await,
            MessageKind::About(message) => Some(about(&chat_command, &message).await),
            MessageKind::Number => Some(number(&chat_command).await),
            MessageKind::Words => match mention(&chat_command).await {
                Ok(None) if incoming.is_direct => Some(Ok("/help lists what is understood.".to_owned())),
                Ok(made) => made.map(Ok),
                Err(failure) => Some(Err(failure)),
            },
        }
    }
}

fn meaning(incoming: &IncomingMessage) -> MessageKind {
    let text = incoming.text.trim();
    if let Some(rest) = text.strip_prefix('/') {
        let (word, line) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        return MessageKind::Command(word.to_lowercase(), line.to_owned());
    }
    match &incoming.replied {
        Some(message) => MessageKind::About(message.clone()),
        None if incoming.is_direct && text.len() <= 4 && text.parse::<u16>().is_ok() => MessageKind::Number,
        None => MessageKind::Words,
    }
}

/// Carries out a command. In a group, an unknown word is meant for another program.
async fn command(command: &mut ChatCommand<'_>, word: &str, line: &str) -> Option<Result<String, Failure>> {
    if !matches!(word, "kanban" | "task" | "schedules" | "help" | "start") {
        let unknown = || Err(Failure::usage("there is no such command").hint("/help lists what there is"));
        return command.incoming.is_direct.then(unknown);
    }
    Some(known(command, word, line).await)
}

async fn known(command: &mut ChatCommand<'_>, word: &str, line: &str) -> Result<String, Failure> {
    let mut words = words(line)?;
    choose_board(command, &mut words)?;
    match word {
        "schedules" => schedules(command, &words).await,
        "help" => help_of(command.sender.may, &words),
        "start" => Ok(help(command.sender.may)),
        _ => kanban(command, &words).await,
    }
}

/// Splits the first line into words as a shell does. The verb reads the later lines itself.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let first = line.lines().next().unwrap_or_default();
    // Keyboards of phones replace typed quotes and dashes with these characters.
    let first = first.replace(['“', '”', '„'], "\"").replace(" —", " --");
    shlex::split(&first).ok_or_else(|| Failure::usage("a quote is not closed"))
}

/// Takes `--board NAME` from the front of a line.
fn choose_board(command: &mut ChatCommand<'_>, words: &mut Vec<String>) -> Result<(), Failure> {
    if words.first().is_some_and(|word| word == "--board") {
        let name = words.get(1).ok_or_else(|| Failure::usage("--board names a board"))?;
        command.board = name.parse().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))?;
        words.drain(..2);
    }
    command.require_reach(&command.board)
}

/// Handles a reply to a message about tasks: as the answer to the only open question or request among them, else as a
/// comment on the only task.
async fn about(command: &ChatCommand<'_>, message: &str) -> Result<String, Failure> {
    command.require_reach(&command.board)?;
    permit(command, May::Mutate, "answer")?;
    let call = command.call_for::<Answer>().await?;
    let (actor, address, message) = (command.actor(), command.address(), message.to_owned());
    let is_main = is_main(command);
    let tasks = call.read(move |view| {
        let mut tasks = view.tasks_of_message(&address.channel, &address.chat_id, &message, &actor)?;
        if is_main {
            tasks.extend(view.tasks_of_message(&address.channel, "", &message, &actor)?);
        }
        tasks.sort();
        tasks.dedup();
        let mut open = Vec::new();
        for id in &tasks {
            let task = view.expect_task(id)?;
            if view.is_requesting(&task) || view.is_asking(&task)? {
                open.push((id.clone(), view.is_requesting(&task)));
            }
        }
        Ok((tasks, open))
    });
    let (tasks, open) = tasks.await?;
    match (tasks.as_slice(), open.as_slice()) {
        (_, [(one, false)]) => answer_question(command, one).await,
        (_, [(one, true)]) => decide(command, one).await,
        ([one], []) => comment(command, one).await,
        ([], _) => Err(Failure::new(Code::Conflict, "that is not the latest message about a task")
            .hint("name the task: /task answer TASK ANSWER")),
        (_, open) => Err(which(open.iter().map(|(id, _)| id))),
    }
}

/// Handles a number as the answer to the only open question or request in this chat.
async fn number(command: &ChatCommand<'_>) -> Result<String, Failure> {
    command.require_reach(&command.board)?;
    permit(command, May::Mutate, "answer")?;
    let call = command.call_for::<Answer>().await?;
    let (actor, address) = (command.actor(), command.address());
    let usual = Address { chat_id: String::new(), ..address.clone() };
    let is_main = is_main(command);
    let tasks = call.read(move |view| {
        let mut tasks = view.questions_at(&address, &actor)?;
        if is_main {
            tasks.extend(view.questions_at(&usual, &actor)?);
        }
        tasks.sort();
        tasks.dedup();
        let mut open = Vec::new();
        for id in tasks {
            let is_request = view.is_requesting(&view.expect_task(&id)?);
            open.push((id, is_request));
        }
        Ok(open)
    });
    match tasks.await?.as_slice() {
        [(one, false)] => answer_question(command, one).await,
        [(one, true)] => decide(command, one).await,
        [] => Err(Failure::new(Code::NotFound, "no question is open here")),
        many => Err(which(many.iter().map(|(id, _)| id))),
    }
}

/// Handles a reply to a request for approval: approves or denies by number or word; other text becomes a comment.
async fn decide(command: &ChatCommand<'_>, task: &TaskId) -> Result<String, Failure> {
    let reply = text(command);
    let choices = Question { choices: APPROVAL_CHOICES.map(str::to_owned).to_vec(), ..Question::default() };
    let (word, rest) = reply.split_once(char::is_whitespace).unwrap_or((&reply, ""));
    // A number is a choice only if it is the whole text: "1 night?" is a question.
    let word = word.trim_end_matches([':', ',', '.']);
    let by_word = || choices.resolve(word).filter(|_| word.parse::<usize>().is_err());
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match choices.resolve(&reply).or_else(by_word).as_deref() {
        Some("approve") => {
            permit(command, May::Approve, "approve")?;
            command.shown(Approve { task_id: Some(task.clone()), comment: rest, ..Approve::default() }).await
        }
        Some("deny") => {
            permit(command, May::Approve, "deny")?;
            let reason = rest.or_else(|| Some("denied in the chat".to_owned()));
            command.shown(Deny { task_ids: vec![task.clone()], reason }).await
        }
        Some(_) | None => {
            let commented = comment(command, task).await?;
            Ok(format!("{commented}\nThe task still waits: reply 1 to approve it, 2 to deny it."))
        }
    }
}

async fn comment(command: &ChatCommand<'_>, task: &TaskId) -> Result<String, Failure> {
    command.shown(Comment { task_id: Some(task.clone()), body: text(command), ..Comment::default() }).await
}

async fn answer_question(command: &ChatCommand<'_>, task: &TaskId) -> Result<String, Failure> {
    command
        .shown(Answer { task_id: Some(task.clone()), reply: Some(text(command)), ..Answer::default() })
        .await
}

fn text(command: &ChatCommand<'_>) -> String {
    command.incoming.text.trim().to_owned()
}

/// Returns true if messages that name no chat are sent to this chat.
fn is_main(command: &ChatCommand<'_>) -> bool {
    let config = command.service.config();
    let channel = config.notify.channels.get(&command.chat.channel);
    // The program behind a webhook chooses the chat of such a message, so it may be this one.
    channel.is_some_and(|channel| {
        channel.kind == Kind::Webhook || channel.to.as_deref() == Some(command.incoming.chat.as_str())
    })
}

fn which<'a>(tasks: impl Iterator<Item = &'a TaskId>) -> Failure {
    let named: Vec<&str> = tasks.map(TaskId::as_str).collect();
    Failure::new(Code::Conflict, format!("several tasks ask: {}", named.join(", ")))
        .hint("reply to the question, or name the task: /task answer TASK ANSWER")
}

/// Creates the tasks of a message that mentions profiles; none if it mentions no known one.
async fn mention(command: &ChatCommand<'_>) -> Result<Option<String>, Failure> {
    let roster = command.service.roster();
    let known = |profile: &Profile| roster.profiles().any(|(name, _)| name == profile.as_str());
    if kernel::mentioned(&command.incoming.text, known).is_empty() {
        return Ok(None);
    }
    command.require_reach(&command.board)?;
    permit(command, May::Mutate, "@mention")?;
    let workspace = directory_of_thread(command).await?.map(|path| format!("dir:{path}"));
    command.shown(Mentioning { text: text(command), workspace }).await.map(Some)
}
