//! People direct a fleet from chats: each service is played by a server, and who may do what is shown by what comes back.

mod played_socket;
mod played_telegram;
mod questions;
mod services;
mod telegram;
mod unknown_senders;

use crate::harness::Fleet;
use crate::notify::secret;
use played_telegram::Telegram;

/// Ann approves, Bob changes, Carol sees, and Dan is a user of the tenant acme.
const SENDERS: &str = "[[senders]]\nid = '1'\nname = 'ann'\nmay = 'approve'\n\
    [[senders]]\nid = '2'\nname = 'bob'\nmay = 'mutate'\n\
    [[senders]]\nid = '3'\nname = 'carol'\n\
    [[senders]]\nid = '4'\nname = 'dan'\nmay = 'mutate'\ntenant = 'acme'\n";

/// Has a fleet listen to a Telegram that is played.
fn configure(fleet: &Fleet, telegram: &Telegram, more: &str) {
    let token = secret(fleet, "bot", "9:TOKEN\n");
    fleet.configure(&format!(
        "[notify.channels.tg]\nkind = 'telegram'\nurl = '{}'\nsecret = {token}\nretry_first = 0\n",
        telegram.url()
    ));
    fleet.write_config("chat.d/team.toml", &format!("channel = 'tg'\n{more}{SENDERS}"));
}

/// A daemon that listens to a Telegram that is played.
fn listening() -> (Fleet, Telegram) {
    let (fleet, telegram) = (Fleet::offline(), Telegram::start(0));
    configure(&fleet, &telegram, "");
    fleet.start();
    (fleet, telegram)
}

/// The first id of a task in a text.
fn task_in(text: &str) -> String {
    let at = text.find("t_").unwrap_or_else(|| panic!("no task in: {text}"));
    text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}
