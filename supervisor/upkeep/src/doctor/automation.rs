//! Checks of `doctor` on the automation: chats, plugins, and the A2A bridge.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;

use kernel::{Finding, FindingCode};

use api::hash_token;
use base::failure::with_causes;
use base::paths::Root;
use setup::automation::chat::Chats;
use setup::automation::plugins::{DirectoryUse, Plugin, Plugins, inspect};
use setup::config::Config;
use setup::config::a2a::A2aConfig;
use setup::roster::Roster;

/// Checks all of them. Sends nothing, and calls no plugin.
pub(super) fn examine(root: &Root, daemon: Option<&[Finding]>) -> Vec<Finding> {
    // `configuration` reports a file that cannot be used.
    let Ok(config) = Config::load(root) else { return Vec::new() };
    let mut checks = chats(root, &config, daemon);
    checks.extend(plugins(root));
    checks.extend(a2a(root, &config.a2a, daemon));
    checks
}

/// Checks each chat: its channel, its secret, and its service's response.
fn chats(root: &Root, config: &Config, daemon: Option<&[Finding]>) -> Vec<Finding> {
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
            let is_it = |problem: &&Finding| {
                problem.code == FindingCode::ChatNotConnected && problem.subject == subject
            };
            daemon.and_then(|problems| problems.iter().find(is_it)).map(|problem| problem.detail.clone())
        };
        checks.push(
            match why {
                None => Finding::ok(FindingCode::Chat, format!("test it with: supervisor chat check {name}")),
                Some(why) => Finding::error(FindingCode::Chat, why)
                    .advice(format!("fix it, then: supervisor chat check {name}")),
            }
            .about(subject),
        );
    }
    checks
}

/// Checks each plugin: its directory and its policy.
fn plugins(root: &Root) -> Vec<Finding> {
    let (plugins, roster) = (Plugins::load(root), Roster::load(root));
    let wrong = |plugin: &Plugin| match roster.policies().without_proxy(&plugin.manifest.policy, "a plugin") {
        Err(why) => Some(why),
        Ok(_) => inspect(&plugin.dir, DirectoryUse::Installed).err().map(|unfit| unfit.to_string()),
    };
    let check = |plugin: &Plugin| {
        let name = &plugin.name;
        let check = match wrong(plugin) {
            None => Finding::ok(FindingCode::Plugin, format!("test it with: supervisor plugin check {name}")),
            Some(why) => Finding::error(FindingCode::Plugin, why)
                .advice(format!("fix it, then: supervisor plugin check {name}")),
        };
        check.named(name)
    };
    plugins.plugins().map(check).collect()
}

/// Checks the bridge: its address, and the tokens of its senders.
fn a2a(root: &Root, config: &A2aConfig, daemon: Option<&[Finding]>) -> Vec<Finding> {
    let Some(at) = config.listen else { return Vec::new() };
    let wrong = |why: String, hint: &str| Finding::error(FindingCode::A2a, why).advice(hint);
    let elsewhere = "set another address as `listen` in [a2a] of supervisor.toml, and start the daemon again";
    let is_it = |problem: &&Finding| problem.code == FindingCode::A2aNotServed;
    let reported = daemon.map(|problems| problems.iter().find(is_it).map(|problem| &problem.detail));
    // The port is free again at once, because nothing has connected.
    let mut checks = vec![match (reported, TcpListener::bind(at).map(drop)) {
        (Some(Some(why)), _) => wrong(why.clone(), elsewhere),
        (Some(None), Err(e)) if e.kind() == ErrorKind::AddrInUse => {
            Finding::ok(FindingCode::A2a, format!("served at {at}"))
        }
        (Some(None), Ok(())) => Finding::warning(FindingCode::A2a, format!("{at} is not served yet"))
            .advice("`listen` in [a2a] is read when the daemon starts: start it again"),
        (None, Ok(())) => {
            Finding::ok(FindingCode::A2a, format!("{at} is free: the daemon will listen there"))
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
                Finding::error(FindingCode::A2aSender, with_causes(&error))
                    .named(name)
                    .advice("write its token there, then: supervisor service reload"),
            ),
            Ok(value) => {
                let text = String::from_utf8_lossy(value.bytes()).trim().to_owned();
                if let Some(other) = tokens.insert(hash_token(&text), name) {
                    let why = format!("it has the token of the sender {other}, and is taken for that one");
                    checks.push(
                        Finding::error(FindingCode::A2aSender, why)
                            .named(name)
                            .advice("give each sender a token of its own"),
                    );
                }
            }
        }
    }
    checks
}
