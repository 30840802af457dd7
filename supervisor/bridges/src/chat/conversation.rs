//! Interprets the messages of a chat as commands, replies about tasks, or mentions of profiles, and carries them out.

use std::sync::Arc;
use std::time::Duration;

use kernel::{APPROVAL_CHOICES, Address, Profile, Question, TaskId};
use tokio::time::Instant;

use super::here::place;
use super::mention::Mentioning;
use super::pace::{Pace, Turn};
use super::registry::{help, help_of, is_open, kanban, schedules};
use super::reply;
use super::verb::{Asker, permit};
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::automation::chat::{ChatFile, Heard, May, Sender};
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
    pub(super) pace: Pace,
}

/// Kind of a message.
enum Meaning {
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
    pub(super) async fn answer(&mut self, heard: &Heard) -> Option<String> {
        let now = Instant::now();
        let Some(sender) = self.chat.sender(&heard.sender).cloned() else {
            let is_meant = heard.is_direct || heard.text.starts_with('/');
            if !is_meant || self.pace.of_stranger(&heard.sender, now) != Turn::Refuse {
                return None;
            }
            tracing::info!(chat = %self.name, sender = ?heard.sender, "chat_stranger");
            let id: String = heard.sender.chars().filter(|c| !c.is_control()).take(64).collect();
            return Some(format!("You are not a known sender. An operator can add you by your id: {id}"));
        };
        let meaning = meaning(heard);
        if matches!(meaning, Meaning::Words) && !heard.is_direct && !heard.text.contains('@') {
            // Ordinary messages in a group are for its members.
            return None;
        }
        self.service.chats().heard(&self.name);
        match self.pace.of_sender(&sender.id, self.chat.per_minute, now) {
            Turn::Answer => {}
            Turn::Refuse => return Some("Too many messages. Wait a minute.".to_owned()),
            Turn::Ignore => return None,
        }
        if heard.text.len() > LONGEST {
            return Some(format!("Not done: a message has at most {LONGEST} bytes."));
        }
        let done = tokio::time::timeout(LIMIT, self.act(&sender, heard, meaning)).await;
        let late = || Failure::new(Code::TryAgain, "it takes too long; it may still be done");
        done.unwrap_or_else(|_| Some(Err(late()))).map(|outcome| reply::of(outcome, is_open))
    }

    async fn act(&self, sender: &Sender, heard: &Heard, meaning: Meaning) -> Option<Result<String, Failure>> {
        let (service, name, chat) = (&self.service, self.name.as_str(), &self.chat);
        let mut asker = Asker {
            service,
            name,
            chat,
            sender,
            heard,
            board: self.chat.board.clone(),
            place: None,
            is_open,
        };
        match meaning {
            Meaning::Command(word, line) => command(&mut asker, &word, &line).await,
            Meaning::About(message) => Some(about(&asker, &message).await),
            Meaning::Number => Some(number(&asker).await),
            Meaning::Words => match mention(&asker).await {
                Ok(None) if heard.is_direct => Some(Ok("/help lists what is understood.".to_owned())),
                Ok(made) => made.map(Ok),
                Err(failure) => Some(Err(failure)),
            },
        }
    }
}

fn meaning(heard: &Heard) -> Meaning {
    let text = heard.text.trim();
    if let Some(rest) = text.strip_prefix('/') {
        let (word, line) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        return Meaning::Command(word.to_lowercase(), line.to_owned());
    }
    match &heard.replied {
        Some(message) => Meaning::About(message.clone()),
        None if heard.is_direct && text.len() <= 4 && text.parse::<u16>().is_ok() => Meaning::Number,
        None => Meaning::Words,
    }
}

/// Carries out a command. In a group, an unknown word is meant for another program.
async fn command(asker: &mut Asker<'_>, word: &str, line: &str) -> Option<Result<String, Failure>> {
    if !matches!(word, "kanban" | "task" | "schedules" | "help" | "start") {
        let unknown = || Err(Failure::usage("there is no such command").hint("/help lists what there is"));
        return asker.heard.is_direct.then(unknown);
    }
    Some(known(asker, word, line).await)
}

async fn known(asker: &mut Asker<'_>, word: &str, line: &str) -> Result<String, Failure> {
    let mut words = words(line)?;
    choose_board(asker, &mut words)?;
    match word {
        "schedules" => schedules(asker, &words).await,
        "help" => help_of(asker.sender.may, &words),
        "start" => Ok(help(asker.sender.may)),
        _ => kanban(asker, &words).await,
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
fn choose_board(asker: &mut Asker<'_>, words: &mut Vec<String>) -> Result<(), Failure> {
    if words.first().is_some_and(|word| word == "--board") {
        let name = words.get(1).ok_or_else(|| Failure::usage("--board names a board"))?;
        asker.board = name.parse().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))?;
        words.drain(..2);
    }
    asker.require_reach(&asker.board)
}

/// Handles a reply to a message about tasks: as the answer to the only open question or request among them, else as a
/// comment on the only task.
async fn about(asker: &Asker<'_>, message: &str) -> Result<String, Failure> {
    asker.require_reach(&asker.board)?;
    permit(asker, May::Mutate, "answer")?;
    let call = asker.call_of::<Answer>().await?;
    let (actor, address, message) = (asker.actor(), asker.address(), message.to_owned());
    let is_main = is_main(asker);
    let found = call.read(move |view| {
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
    let (tasks, open) = found.await?;
    match (tasks.as_slice(), open.as_slice()) {
        (_, [(one, false)]) => say(asker, one).await,
        (_, [(one, true)]) => decide(asker, one).await,
        ([one], []) => comment(asker, one).await,
        ([], _) => Err(Failure::new(Code::Conflict, "that is not the latest message about a task")
            .hint("name the task: /task answer TASK ANSWER")),
        (_, open) => Err(which(open.iter().map(|(id, _)| id))),
    }
}

/// Handles a number as the answer to the only open question or request in this chat.
async fn number(asker: &Asker<'_>) -> Result<String, Failure> {
    asker.require_reach(&asker.board)?;
    permit(asker, May::Mutate, "answer")?;
    let call = asker.call_of::<Answer>().await?;
    let (actor, address) = (asker.actor(), asker.address());
    let usual = Address { chat_id: String::new(), ..address.clone() };
    let is_main = is_main(asker);
    let found = call.read(move |view| {
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
    match found.await?.as_slice() {
        [(one, false)] => say(asker, one).await,
        [(one, true)] => decide(asker, one).await,
        [] => Err(Failure::new(Code::NotFound, "no question is open here")),
        many => Err(which(many.iter().map(|(id, _)| id))),
    }
}

/// Handles a reply to a request for approval: approves or denies by number or word; other text becomes a comment.
async fn decide(asker: &Asker<'_>, task: &TaskId) -> Result<String, Failure> {
    let said = text(asker);
    let choices = Question { choices: APPROVAL_CHOICES.map(str::to_owned).to_vec(), ..Question::default() };
    let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((&said, ""));
    // A number is a choice only if it is the whole text: "1 night?" is a question.
    let word = word.trim_end_matches([':', ',', '.']);
    let by_word = || choices.resolve(word).filter(|_| word.parse::<usize>().is_err());
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match choices.resolve(&said).or_else(by_word).as_deref() {
        Some("approve") => {
            permit(asker, May::Approve, "approve")?;
            asker.shown(Approve { task_id: Some(task.clone()), comment: rest, ..Approve::default() }).await
        }
        Some("deny") => {
            permit(asker, May::Approve, "deny")?;
            let reason = rest.or_else(|| Some("denied in the chat".to_owned()));
            asker.shown(Deny { task_ids: vec![task.clone()], reason }).await
        }
        Some(_) | None => {
            let said = comment(asker, task).await?;
            Ok(format!("{said}\nThe task still waits: reply 1 to approve it, 2 to deny it."))
        }
    }
}

async fn comment(asker: &Asker<'_>, task: &TaskId) -> Result<String, Failure> {
    asker.shown(Comment { task_id: Some(task.clone()), body: text(asker), ..Comment::default() }).await
}

async fn say(asker: &Asker<'_>, task: &TaskId) -> Result<String, Failure> {
    asker.shown(Answer { task_id: Some(task.clone()), reply: Some(text(asker)), ..Answer::default() }).await
}

fn text(asker: &Asker<'_>) -> String {
    asker.heard.text.trim().to_owned()
}

/// Returns true if messages that name no chat are sent to this chat.
fn is_main(asker: &Asker<'_>) -> bool {
    let config = asker.service.config();
    let channel = config.notify.channels.get(&asker.chat.channel);
    // The program behind a webhook chooses the chat of such a message, so it may be this one.
    channel.is_some_and(|channel| {
        channel.kind == Kind::Webhook || channel.to.as_deref() == Some(asker.heard.chat.as_str())
    })
}

fn which<'a>(tasks: impl Iterator<Item = &'a TaskId>) -> Failure {
    let named: Vec<&str> = tasks.map(TaskId::as_str).collect();
    Failure::new(Code::Conflict, format!("several tasks ask: {}", named.join(", ")))
        .hint("reply to the question, or name the task: /task answer TASK ANSWER")
}

/// Creates the tasks of a message that mentions profiles; none if it mentions no known one.
async fn mention(asker: &Asker<'_>) -> Result<Option<String>, Failure> {
    let roster = asker.service.roster();
    let known = |profile: &Profile| roster.profiles().any(|(name, _)| name == profile.as_str());
    if kernel::mentioned(&asker.heard.text, known).is_empty() {
        return Ok(None);
    }
    asker.require_reach(&asker.board)?;
    permit(asker, May::Mutate, "@mention")?;
    let workspace = place(asker).await?.map(|path| format!("dir:{path}"));
    asker.shown(Mentioning { text: text(asker), workspace }).await.map(Some)
}
