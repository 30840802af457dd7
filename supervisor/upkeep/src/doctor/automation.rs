//! Checks of `doctor` on the automation: chats, plugins, and the A2A bridge.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;

use super::{CheckResult, HostCheck};
use api::hash_token;
use base::failure::with_causes;
use base::paths::Root;
use service::BRIDGE;
use setup::automation::chat::Chats;
use setup::automation::plugins::{DirectoryUse, Plugin, Plugins, inspect};
use setup::config::Config;
use setup::config::a2a::A2aConfig;
use setup::roster::Roster;

/// Configured parts that should receive messages from a running daemon and do not, with the reason.
pub type Disconnected = BTreeMap<String, String>;

/// Checks all of them. Sends nothing, and calls no plugin.
pub(super) fn examine(root: &Root, unheard: Option<&Disconnected>) -> Vec<HostCheck> {
    // `configuration` reports a file that cannot be used.
    let Ok(config) = Config::load(root) else { return Vec::new() };
    let mut checks = chats(root, &config, unheard);
    checks.extend(plugins(root));
    checks.extend(a2a(root, &config.a2a, unheard));
    checks
}

/// Checks each chat: its channel, its secret, and its service's response.
fn chats(root: &Root, config: &Config, unheard: Option<&Disconnected>) -> Vec<HostCheck> {
    let chats = Chats::load(root);
    let mut checks = Vec::new();
    for (name, chat) in chats.usable() {
        let subject = format!("chat {name}");
        let secret = chat.secret.as_ref().map(|secret| secret.fetch(&subject, &root.secret_stores()));
        let why = if !config.notify.channels.contains_key(&chat.channel) {
            Some(format!("there is no channel `{}`", chat.channel))
        } else if let Some(Err(error)) = secret {
            Some(with_causes(&error))
        } else {
            unheard.and_then(|unheard| unheard.get(&format!("the chat {name}")).cloned())
        };
        checks.push(match why {
            None => HostCheck::new(
                subject,
                CheckResult::Ok,
                format!("test it with: supervisor chat check {name}"),
            ),
            Some(why) => HostCheck::new(subject, CheckResult::Error, why)
                .hint(format!("fix it, then: supervisor chat check {name}")),
        });
    }
    checks
}

/// Checks each plugin: its directory and its policy.
fn plugins(root: &Root) -> Vec<HostCheck> {
    let (plugins, roster) = (Plugins::load(root), Roster::load(root));
    let wrong = |plugin: &Plugin| match roster.policies().without_proxy(&plugin.manifest.policy, "a plugin") {
        Err(why) => Some(why),
        Ok(_) => inspect(&plugin.dir, DirectoryUse::Installed).err().map(|unfit| unfit.to_string()),
    };
    let check = |plugin: &Plugin| {
        let (subject, name) = (format!("plugin {}", plugin.name), &plugin.name);
        match wrong(plugin) {
            None => HostCheck::new(
                subject,
                CheckResult::Ok,
                format!("test it with: supervisor plugin check {name}"),
            ),
            Some(why) => HostCheck::new(subject, CheckResult::Error, why)
                .hint(format!("fix it, then: supervisor plugin check {name}")),
        }
    };
    plugins.plugins().map(check).collect()
}

/// Checks the bridge: its address, and the tokens of its senders.
fn a2a(root: &Root, config: &A2aConfig, unheard: Option<&Disconnected>) -> Vec<HostCheck> {
    let Some(at) = config.listen else { return Vec::new() };
    let wrong = |why: String, hint: &str| HostCheck::new("a2a", CheckResult::Error, why).hint(hint);
    let elsewhere = "set another address as `listen` in [a2a] of supervisor.toml, and start the daemon again";
    let reported = unheard.map(|unheard| unheard.get(BRIDGE));
    // The port is free again at once, because nothing has connected.
    let mut checks = vec![match (reported, TcpListener::bind(at).map(drop)) {
        (Some(Some(why)), _) => wrong(why.clone(), elsewhere),
        (Some(None), Err(e)) if e.kind() == ErrorKind::AddrInUse => {
            HostCheck::new("a2a", CheckResult::Ok, format!("served at {at}"))
        }
        (Some(None), Ok(())) => {
            HostCheck::new("a2a", CheckResult::Warning, format!("{at} is not served yet"))
                .hint("`listen` in [a2a] is read when the daemon starts: start it again")
        }
        (None, Ok(())) => {
            HostCheck::new("a2a", CheckResult::Ok, format!("{at} is free: the daemon will listen there"))
        }
        (None, Err(e)) if e.kind() == ErrorKind::AddrInUse => {
            wrong(format!("another program listens on {at}"), elsewhere)
        }
        (Some(None) | None, Err(e)) => wrong(format!("cannot listen on {at}: {e}"), elsewhere),
    }];
    let mut tokens: BTreeMap<[u8; 32], &str> = BTreeMap::new();
    for (name, sender) in &config.senders {
        let subject = format!("a2a sender {name}");
        match sender.secret.fetch(&subject, &root.secret_stores()) {
            Err(error) => checks.push(
                HostCheck::new(subject, CheckResult::Error, with_causes(&error))
                    .hint("write its token there, then: supervisor service reload"),
            ),
            Ok(value) => {
                let text = String::from_utf8_lossy(value.bytes()).trim().to_owned();
                if let Some(other) = tokens.insert(hash_token(&text), name) {
                    let why = format!("it has the token of the sender {other}, and is taken for that one");
                    checks.push(
                        HostCheck::new(subject, CheckResult::Error, why)
                            .hint("give each sender a token of its own"),
                    );
                }
            }
        }
    }
    checks
}
