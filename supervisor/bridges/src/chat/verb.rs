//! Runs a verb from a line of a chat: parsed by the command line's definition with some arguments open, and called as
//! the sender.
//!
//! An argument that is added to a verb is closed to chats until the registry names it. The line does not run as a
//! process, which would read files and the environment.

use std::any::Any;
use std::sync::Arc;

use clap::builder::{Resettable, StyledStr};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command as Parser};
use kernel::{Actor, Address, BoardName, RequestId};

use super::commands::for_chats;
use api::command::{Command, Replies, Reply};
use api::{AnyReply, AnyVerb, Call, OnBoard, Typed, Verb, VerbEntry, Working, blocking, not_for_members};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::short_ids;
use base::terminal::Screen;
use service::Service;
use setup::automation::chat::{ChatFile, IncomingMessage, May, Sender};
use verbs::Resolve;

/// Width of tables, in characters.
const WIDTH: usize = 120;

/// Context of a command: its chat, sender and board.
pub(super) struct ChatCommand<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) name: &'a str,
    pub(super) chat: &'a ChatFile,
    pub(super) sender: &'a Sender,
    pub(super) incoming: &'a IncomingMessage,
    pub(super) board: BoardName,
    /// Directory in which a new task works.
    pub(super) directory: Option<String>,
    /// Returns true for a verb that is open to chats.
    pub(super) is_open: fn(&str) -> bool,
}

impl ChatCommand<'_> {
    /// Returns the sender as a person. A sender with a tenant sees only that tenant, like its users.
    pub(super) fn actor(&self) -> Actor {
        let tenant = self.sender.tenant.clone();
        // A directory that the chat's file permits is permitted for the daemon's user.
        let uid = tenant.is_none().then(|| nix::unistd::geteuid().as_raw());
        Actor { tenant, uid, ..Actor::person(&*self.sender.name) }
    }

    pub(super) fn address(&self) -> Address {
        self.incoming.address(&self.chat.channel)
    }

    /// Refuses a board that the sender may not reach from this chat.
    pub(super) fn require_reach(&self, board: &BoardName) -> Result<(), Failure> {
        if self.chat.reaches(self.sender, board) {
            return Ok(());
        }
        let name = &self.sender.name;
        Err(Failure::new(
            Code::NotPermitted,
            format!("{name} does not reach the board {board} from this chat"),
        ))
    }

    /// Returns the request id, derived from the message's id, so that a repeated message is carried out once.
    fn request_id(&self) -> Result<RequestId, Failure> {
        let id = format!("chat/{}/{}", self.name, self.incoming.id);
        id.parse().map_err(|e: kernel::ParseError| Failure::usage(format!("the id of the message: {e}")))
    }

    pub(super) async fn call_for<V: Verb>(&self) -> Result<Call, Failure> {
        self.call_for_entry(&VerbEntry::for_verb::<V>()).await
    }

    async fn call_for_entry(&self, verb: &VerbEntry) -> Result<Call, Failure> {
        let actor = self.actor();
        if !verb.admits(&actor) {
            return Err(not_for_members(&format!("`{}`", verb.name)));
        }
        let (service, name) = (Arc::clone(self.service), self.board.clone());
        let board = match (verb.on, service.opened(&name)?) {
            (OnBoard::None, _) => None,
            (OnBoard::Made | OnBoard::Named | OnBoard::IfServed, Some(board)) => Some(board),
            (OnBoard::Made | OnBoard::Named | OnBoard::IfServed, None) => {
                let opening = Arc::clone(&service);
                let open = move || opening.board(&name);
                Some(blocking("the board was not opened", open).await??)
            }
        };
        let id = Some(self.request_id()?);
        Ok(Call::new(service, self.board.clone(), board, actor, id).from_chat(self.address()))
    }

    /// Calls a verb. Ids of tasks may be abbreviated.
    pub(super) fn call<V: Verb>(&self, verb: V) -> Typed<'_, V::Reply> {
        let work = self.call_any(Box::new(verb));
        Typed::of(Box::pin(async move { Ok(work.await? as Box<dyn Any + Send>) }))
    }

    async fn call_any(&self, mut verb: Box<dyn AnyVerb>) -> Result<Box<dyn AnyReply>, Failure> {
        let entry = verb.entry();
        let resolve = async |ids| {
            let resolved = self.call_for::<Resolve>().await?.make(Resolve { ids }).await?;
            Ok(resolved.ids)
        };
        if let Some(widened) = short_ids::widened(entry.request, &verb.to_json()?, resolve).await? {
            verb = (entry.parse)(&widened)
                .map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))?;
        }
        self.call_for_entry(&entry).await?.make_any(verb).await
    }

    /// Calls a verb. Returns the text that the command line would show.
    pub(super) fn shown<V: Command>(&self, verb: V) -> Working<'_, String> {
        Box::pin(self.shown_any(Replies::of::<V>(), Box::new(verb)))
    }

    async fn shown_any(&self, replies: Replies, verb: Box<dyn AnyVerb>) -> Result<String, Failure> {
        self.text_of_any(replies, &*self.call_any(verb).await?)
    }

    /// Returns the text that the command line would show for a reply.
    pub(super) fn text_of<V: Command>(&self, reply: &V::Reply) -> Result<String, Failure> {
        self.text_of_any(Replies::of::<V>(), reply)
    }

    fn text_of_any(&self, replies: Replies, reply: &Reply) -> Result<String, Failure> {
        let mut screen = Screen::plain(WIDTH);
        (replies.show)(reply, &mut screen)?;
        for warning in (replies.warnings)(reply)? {
            screen.line(format!("Note: {}", for_chats(warning, self.is_open)));
        }
        Ok(screen.into_text())
    }

    /// Makes a verb of the parsed words, and calls it. `prepare` fills in the chat's values.
    pub(super) fn run<V: Command + Args>(
        &self,
        matches: &ArgMatches,
        prepare: fn(&mut V, &ChatCommand<'_>),
    ) -> Working<'_, String> {
        match self.verb::<V>(matches) {
            Ok(mut verb) => {
                prepare(&mut verb, self);
                self.shown(verb)
            }
            Err(refused) => Box::pin(async { Err(refused) }),
        }
    }

    /// Makes a verb of its arguments.
    pub(super) fn verb<V: Command + Args>(&self, matches: &ArgMatches) -> Result<V, Failure> {
        let mut verb = V::from_arg_matches(matches).map_err(|e| refusal(&e))?;
        // There is no surrounding run, and no open argument names a file or a path.
        verb.localize(&Invocation::new(self.service.root().clone(), self.board.clone(), None))?;
        Ok(verb)
    }
}

/// Refuses a sender without the right.
pub(super) fn permit(command: &ChatCommand<'_>, needed: May, verb: &str) -> Result<(), Failure> {
    let rights = command.sender.may;
    if rights >= needed {
        return Ok(());
    }
    Err(Failure::new(
        Code::NotPermitted,
        format!(
            "`{verb}` needs `{}`, and {} may `{}`",
            needed.as_str(),
            command.sender.name,
            rights.as_str()
        ),
    ))
}

/// Makes the parser of a verb with some open arguments: others are hidden, and no variable of the daemon's environment
/// counts.
pub(super) fn parser<V: Verb + Args>(word: &'static str, open: &[&str]) -> Parser {
    // Some verbs' arguments conflict with this global option.
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    V::augment_args(Parser::new(V::NAME))
        .arg(json)
        .no_binary_name(true)
        .bin_name(format!("{word} {}", V::NAME))
        .disable_help_flag(true)
        .color(clap::ColorChoice::Never)
        .term_width(0)
        .after_help(StyledStr::new())
        .mut_args(|argument| {
            let is_closed = !open.contains(&argument.get_id().as_str());
            argument.env(Resettable::Reset).hide(is_closed)
        })
}

/// Parses words. Refuses an argument that is not open, by its name.
pub(super) fn parsed(mut parser: Parser, open: &[&str], words: &[String]) -> Result<ArgMatches, Failure> {
    // Arguments can only be formatted after the command is built.
    parser.build();
    let arguments: Vec<_> = parser
        .get_arguments()
        .filter(|argument| !open.contains(&argument.get_id().as_str()))
        .map(|argument| (argument.get_id().clone(), argument.to_string()))
        .collect();
    let matches = parser.try_get_matches_from(words).map_err(|e| refusal(&e))?;
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match arguments.iter().find(|(id, _)| is_given(id.as_str())) {
        Some((_, shown)) => Err(Failure::usage(format!("{shown} is not open to chats"))),
        None => Ok(matches),
    }
}

fn refusal(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let text = text.trim().trim_start_matches("error: ");
    let text = text.split("\n\nFor more information").next().unwrap_or(text);
    Failure::usage(text.to_owned())
}
