//! Chats: finds the tasks that a reply is about, sets the directory of a thread's tasks, and makes tasks for mentions.
//!
//! A reply is about the task whose latest message it names, by the id that the service gave that message. The text of
//! a message is not read back: a worker writes parts of it and may name another task. A reply to an earlier message
//! is refused, because its question may be answered.

use super::Board;
use crate::board::mention::beyond;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::error::Error;
use crate::model::id::{Profile, TaskId};
use crate::model::letter::Address;
use crate::model::limits;
use crate::model::note::Mention;
use crate::model::task::NewTask;
use crate::rules::{authority, mention};

/// Largest number of tasks that a message can be about: the tasks of a digest.
const TASKS: u32 = 32;
/// Largest number of threads of a channel that have a directory.
const PLACES: u32 = 1000;
/// Longest title of a task that a message makes, in characters.
const SUBJECT: usize = 120;

impl View<'_> {
    /// Returns the tasks whose latest message in a chat has this id, as far as the caller may see them.
    pub fn tasks_of_message(
        &self,
        channel: &str,
        chat: &str,
        message: &str,
        actor: &Actor,
    ) -> Result<Vec<TaskId>, Error> {
        authority::person(actor, "look for the message of a chat")?;
        self.tx.tasks_of_message(channel, chat, message, actor.tenant.as_ref(), TASKS)
    }

    /// Returns the tasks with an open question that was sent to an address, as far as the caller may see them.
    pub fn questions_at(&self, address: &Address, actor: &Actor) -> Result<Vec<TaskId>, Error> {
        authority::person(actor, "look for the questions of a chat")?;
        self.tx.questions_at(address, actor.tenant.as_ref(), TASKS)
    }

    /// Returns the directory in which the tasks of a thread work.
    pub fn chat_place(&self, address: &Address) -> Result<Option<String>, Error> {
        self.tx.chat_place(address)
    }
}

impl Board<'_> {
    /// Sets the directory in which the tasks of a thread work; none means scratch directories. Returns true if this is a
    /// change.
    pub fn place_chat(
        &mut self,
        address: &Address,
        path: Option<&str>,
        actor: &Actor,
    ) -> Result<bool, Error> {
        authority::person(actor, "choose the directory of a thread")?;
        let Some(path) = path else { return self.tx.delete_chat_place(address) };
        limits::filled("path", path, "name a directory")?;
        for (field, text) in
            [("channel", &address.channel), ("chat_id", &address.chat_id), ("thread_id", &address.thread_id)]
        {
            limits::maybe(field, Some(text.as_str()), limits::WORD)?;
        }
        let before = self.tx.chat_place(address)?;
        if before.is_none() && self.tx.count_chat_places(&address.channel)? >= PLACES {
            return Err(Error::invalid(
                "path",
                format!("{PLACES} threads of this channel have a directory already"),
                "take one from a thread that needs none: /kanban here off",
            ));
        }
        self.tx.put_chat_place(address, path, &actor.label(), self.now())?;
        Ok(before.as_deref() != Some(path))
    }

    /// Makes a task for each known profile that a message mentions, from the fields of `task`. For a task that may not be
    /// made, the result has the reason.
    pub fn mention_in_message(
        &mut self,
        text: &str,
        known: impl Fn(&Profile) -> bool,
        task: &NewTask,
        actor: &Actor,
    ) -> Result<Vec<Mention>, Error> {
        authority::person(actor, "mention a profile in a chat")?;
        let subject = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let subject = subject.chars().filter(|c| !c.is_control()).take(SUBJECT).collect::<String>();
        let mut made = Vec::new();
        let (asked, passed) = mention::mentioned_and_passed(text, known);
        for profile in asked {
            let new = NewTask {
                title: subject.clone(),
                body: Some(text.to_owned()),
                assignee: Some(profile.clone()),
                ..task.clone()
            };
            made.push(match self.attempt(|board| board.create(new, actor)) {
                Ok(created) => Mention { profile, task: Some(created.task.id), refused: None },
                Err(error @ Error::Storage { .. }) => return Err(error),
                Err(error) => Mention { profile, task: None, refused: Some(error.to_string()) },
            });
        }
        made.extend(passed.into_iter().map(beyond));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::subscription::SubscriptionKey;
    use crate::testing::{Bench, alice, titled};
    use crate::{BlockKind, Blocking};

    fn at(chat: &str) -> Address {
        Address { channel: "tg".to_owned(), chat_id: chat.to_owned(), thread_id: String::new() }
    }

    /// Subscribes a chat to a task and delivers the waiting messages under a message id.
    fn asked(bench: &Bench, task: &TaskId, chat: &str, message: &str) {
        let key = SubscriptionKey {
            task_id: task.clone(),
            platform: "tg".to_owned(),
            chat_id: chat.to_owned(),
            thread_id: String::new(),
        };
        bench.call(move |board| board.subscribe(&key, None, None, &alice())).unwrap();
        let letters = bench.readers.with(|view| {
            let queues = view.delivery_queues()?;
            let mut letters = Vec::new();
            for queue in queues {
                letters.extend(view.letters_of_queue(&queue, 10)?);
            }
            Ok::<_, Error>(letters)
        });
        let (ids, message): (Vec<_>, _) =
            (letters.unwrap().iter().map(|one| one.id).collect(), message.to_owned());
        bench.call(move |board| board.letters_delivered(&ids, Some(&message))).unwrap();
    }

    fn blocked(bench: &Bench, tenant: Option<&str>) -> TaskId {
        let new = NewTask { tenant: tenant.map(|name| name.parse().unwrap()), ..titled("x") };
        let id = bench.call(move |board| board.create(new, &alice())).unwrap().task.id;
        let waiting = Blocking {
            reason: Some("which?".to_owned()),
            kind: BlockKind::NeedsInput,
            ..Blocking::default()
        };
        let of = id.clone();
        bench.call(move |board| board.block(&of, waiting, None, &alice())).unwrap();
        id
    }

    #[test]
    fn a_reply_is_about_the_task_whose_latest_message_it_names_for_who_may_see_that() {
        let bench = Bench::new();
        let (one, of_acme) = (blocked(&bench, None), blocked(&bench, Some("acme")));
        asked(&bench, &one, "7", "100");
        asked(&bench, &of_acme, "7", "101");
        let beta = Actor { tenant: Some("beta".parse().unwrap()), ..alice() };
        let found = |chat: &str, message: &str, actor: &Actor| {
            bench.readers.with(|view| view.tasks_of_message("tg", chat, message, actor)).unwrap()
        };
        assert_eq!(found("7", "100", &alice()), std::slice::from_ref(&one));
        assert_eq!(found("7", "101", &alice()), std::slice::from_ref(&of_acme));
        assert_eq!(found("8", "100", &alice()), [], "ids are those of a chat");
        assert_eq!(found("7", "101", &beta), []);
        let open = |actor: &Actor| bench.readers.with(|view| view.questions_at(&at("7"), actor)).unwrap();
        assert_eq!((open(&alice()).len(), open(&beta).len()), (2, 0));
        let of = one.clone();
        bench.call(move |board| board.unblock(&of, None, &alice())).unwrap();
        assert_eq!(open(&alice()), [of_acme]);
    }

    #[test]
    fn a_thread_has_one_directory_until_it_is_taken_away() {
        let bench = Bench::new();
        let place = |path: Option<&'static str>| {
            bench.call(move |board| board.place_chat(&at("7"), path, &alice())).unwrap()
        };
        let now = |chat: &str| bench.readers.with(|view| view.chat_place(&at(chat))).unwrap();
        assert!(place(Some("/srv/a")) && !place(Some("/srv/a")) && place(Some("/srv/b")));
        assert_eq!((now("7").as_deref(), now("8")), (Some("/srv/b"), None));
        assert!(place(None) && !place(None));
        assert_eq!(now("7"), None);
    }

    #[test]
    fn a_message_makes_a_task_for_each_known_profile_and_none_from_code() {
        let bench = Bench::new();
        let known = |profile: &Profile| ["bob", "carol"].contains(&profile.as_str());
        let say = |text: &'static str| {
            bench
                .call(move |board| board.mention_in_message(text, known, &NewTask::default(), &alice()))
                .unwrap()
        };
        let made = say("@bob and @carol: paint it\n> @carol said\n`@dave`");
        let names: Vec<&str> = made.iter().map(|one| one.profile.as_str()).collect();
        assert_eq!(names, ["bob", "carol"]);
        let task = bench.task(made[0].task.as_ref().unwrap());
        assert_eq!(
            (task.title.as_str(), task.assignee.unwrap().as_str()),
            ("@bob and @carol: paint it", "bob")
        );
        assert!(say("`@bob` and @nobody").is_empty());
        bench.check();
    }
}
