//! `[notify]`: channels that notify people about their tasks, and the default channels.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use kernel::BoardName;
use policies::Secret;
use serde::{Deserialize, Serialize};

use base::time::duration::WrittenDuration;

/// Name in place of a channel that disables notification.
pub const NOBODY: &str = "none";

/// Channels and defaults. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// Channel of tasks that people create without naming a channel.
    pub default: Option<String>,
    /// Defaults of single boards; takes precedence over `default`.
    pub boards: BTreeMap<BoardName, String>,
    /// Channels by name.
    pub channels: BTreeMap<String, Channel>,
}

/// Service of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Webhook,
    Command,
    Desktop,
    Ntfy,
    Email,
    Slack,
    Discord,
    Telegram,
    Signal,
    Plugin,
}

/// Configuration of one channel. [`Channel::unusable`] checks which keys its kind allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    pub kind: Kind,
    /// Address of the service.
    pub url: Option<String>,
    /// Signature key, bot token or mail password.
    pub secret: Option<Secret>,
    /// Default recipient: a chat, a topic or an address.
    pub to: Option<String>,
    /// Sender: a mail address or a Signal account.
    pub from: Option<String>,
    /// User name at the mail server.
    pub user: Option<String>,
    /// Program and its arguments.
    pub run: Option<Vec<String>>,
    /// Plugin and its sink: `PLUGIN.SINK`.
    pub plugin: Option<String>,
    pub policy: Option<String>,
    /// Time limit of one delivery.
    #[serde(default = "Channel::timeout_default")]
    pub timeout: WrittenDuration,
    /// Limit on messages per minute.
    pub per_minute: Option<u32>,
    /// Number of waiting messages above which they are sent as one digest; 0 disables digests.
    pub digest_above: Option<u32>,
    /// Pause after the first failure; each further failure doubles it.
    #[serde(default = "Channel::retry_first_default")]
    pub retry_first: WrittenDuration,
    /// Longest pause between tries.
    #[serde(default = "Channel::retry_longest_default")]
    pub(crate) retry_longest: WrittenDuration,
    /// Time after which a message is given up.
    #[serde(default = "Channel::give_up_after_default")]
    pub give_up_after: WrittenDuration,
}

/// A key of a channel, and true if it is set.
type Key = (&'static str, bool);

impl Channel {
    fn timeout_default() -> WrittenDuration {
        WrittenDuration::from_secs(30)
    }

    fn retry_first_default() -> WrittenDuration {
        WrittenDuration::from_secs(5)
    }

    fn retry_longest_default() -> WrittenDuration {
        WrittenDuration::from_secs(3600)
    }

    fn give_up_after_default() -> WrittenDuration {
        WrittenDuration::from_secs(3 * 24 * 3600)
    }

    /// Makes a stand-in for a channel that the configuration lacks. Its messages wait, as they do while a channel is
    /// down.
    pub fn absent() -> Self {
        Channel {
            kind: Kind::Webhook,
            url: None,
            secret: None,
            to: None,
            from: None,
            user: None,
            run: None,
            plugin: None,
            policy: None,
            timeout: Self::timeout_default(),
            per_minute: None,
            digest_above: None,
            retry_first: Self::retry_first_default(),
            retry_longest: Self::retry_longest_default(),
            give_up_after: Self::give_up_after_default(),
        }
    }

    /// Returns true if programs, not people, read its messages.
    fn is_for_programs(&self) -> bool {
        matches!(self.kind, Kind::Webhook | Kind::Command | Kind::Plugin)
    }

    /// Returns the limit on messages per minute.
    pub fn per_minute(&self) -> u32 {
        self.per_minute.unwrap_or(if self.is_for_programs() { 600 } else { 20 })
    }

    /// Returns the number of waiting messages above which a digest is sent; none if digests are disabled.
    pub fn digest_above(&self) -> Option<u32> {
        let most = self.digest_above.unwrap_or(if self.is_for_programs() { 0 } else { 5 });
        (most > 0).then_some(most)
    }

    /// Returns the pause after a number of failures, without jitter.
    pub fn pause(&self, attempts: u32) -> Duration {
        let first = self.retry_first.duration().max(Duration::from_millis(100));
        let doubled = first.saturating_mul(1 << attempts.min(20));
        doubled.min(self.retry_longest.duration().max(first))
    }

    /// Returns the address of the service: the configured address, or the default of its kind.
    pub fn base(&self) -> Option<&str> {
        self.url.as_deref().or(match self.kind {
            Kind::Ntfy => Some("https://ntfy.sh"),
            Kind::Slack => Some("https://slack.com/api"),
            Kind::Discord => Some("https://discord.com/api/v10"),
            Kind::Telegram => Some("https://api.telegram.org"),
            Kind::Webhook | Kind::Command | Kind::Desktop | Kind::Email | Kind::Signal | Kind::Plugin => None,
        })
    }

    /// Returns the plugin and the sink that take its messages.
    pub fn sink(&self) -> Option<(&str, &str)> {
        self.plugin.as_deref()?.split_once('.')
    }

    fn keys(&self) -> [Key; 8] {
        [
            ("url", self.url.is_some()),
            ("secret", self.secret.is_some()),
            ("to", self.to.is_some()),
            ("from", self.from.is_some()),
            ("user", self.user.is_some()),
            ("run", self.run.is_some()),
            ("policy", self.policy.is_some()),
            ("plugin", self.plugin.is_some()),
        ]
    }

    /// Returns the keys that the kind requires, and the keys that it also allows.
    fn wanted(&self) -> (&'static [&'static str], &'static [&'static str]) {
        match self.kind {
            Kind::Webhook => (&["url"], &["secret"]),
            Kind::Command => (&["run", "policy"], &[]),
            Kind::Desktop => (&[], &["run"]),
            Kind::Ntfy => (&["to"], &["url", "secret"]),
            Kind::Email => (&["url", "from", "to"], &["user", "secret"]),
            Kind::Slack | Kind::Discord | Kind::Telegram => (&["secret"], &["url", "to"]),
            Kind::Signal => (&["url", "from"], &["to"]),
            Kind::Plugin => (&["plugin"], &[]),
        }
    }

    fn unusable(&self) -> Option<String> {
        let (needed, allowed) = self.wanted();
        let keys = self.keys();
        if let Some((key, _)) = keys.iter().find(|(key, there)| needed.contains(key) && !there) {
            return Some(format!("it needs the key `{key}`"));
        }
        let unknown = |(key, there): &&Key| *there && !needed.contains(key) && !allowed.contains(key);
        if let Some((key, _)) = keys.iter().find(unknown) {
            return Some(format!("a channel of its kind has no key `{key}`"));
        }
        if self.run.as_ref().is_some_and(|run| run.first().is_none_or(|program| !program.starts_with('/'))) {
            return Some("`run` begins with the absolute path of a program".to_owned());
        }
        if self.plugin.is_some() && self.sink().is_none() {
            return Some("`plugin` names a plugin and its sink: PLUGIN.SINK".to_owned());
        }
        if self.per_minute == Some(0) {
            return Some(
                "per_minute is 0, so nothing would be sent; leave it out for the default".to_owned(),
            );
        }
        let zero = [("timeout", self.timeout), ("give_up_after", self.give_up_after)];
        if let Some((key, _)) = zero.iter().find(|(_, value)| value.duration().is_zero()) {
            return Some(format!("{key} is 0"));
        }
        self.base().and_then(|url| self.unusable_url(url))
    }

    /// Checks the address. The error never repeats it: its path may be a secret of the service.
    fn unusable_url(&self, url: &str) -> Option<String> {
        let schemes: &[&str] = if self.kind == Kind::Email { &["smtp", "smtps"] } else { &["http", "https"] };
        let parsed: Option<Uri> = url.parse().ok();
        let fits = parsed.is_some_and(|uri| {
            uri.host().is_some_and(|host| !host.is_empty())
                && uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme))
                && uri.authority().is_some_and(|place| !place.as_str().contains('@'))
        });
        let expected = schemes.join(":// or ");
        (!fits).then(|| format!("`url` is not an address that begins with {expected}:// and names no user"))
    }
}

impl NotifyConfig {
    /// Returns the default channel of a board.
    pub fn default_of(&self, board: &BoardName) -> Option<&str> {
        self.boards.get(board).or(self.default.as_ref()).map(String::as_str)
    }

    /// Returns the names of all channels, for an error.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.channels.keys().map(String::as_str).collect();
        if names.is_empty() { "none is configured".to_owned() } else { names.join(", ") }
    }

    /// Returns the channel of a name, or an error text.
    pub fn find(&self, name: &str) -> Result<&Channel, String> {
        let missing = || format!("there is no channel `{name}`; the channels are: {}", self.names());
        self.channels.get(name).ok_or_else(missing)
    }

    /// Returns the reason why the section is unusable, with the name of the key.
    pub(super) fn unusable(&self) -> Option<String> {
        for (name, channel) in &self.channels {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
                return Some(format!(
                    "notify.channels.{name}: a name has 1 to 64 letters, digits, `-`, `_` and `.`"
                ));
            }
            if let Some(why) = channel.unusable() {
                return Some(format!("notify.channels.{name}: {why}"));
            }
        }
        let of_boards = self.boards.iter().map(|(board, channel)| (format!("boards.{board}"), channel));
        let of_all = self.default.iter().map(|channel| ("default".to_owned(), channel));
        of_all
            .chain(of_boards)
            .find_map(|(key, channel)| Some(format!("notify.{key}: {}", self.find(channel).err()?)))
    }
}

/// Returns the program of a channel's `run`, which is the first word.
pub fn program(channel: &Channel) -> Option<PathBuf> {
    channel.run.as_ref().and_then(|run| run.first()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NotifyConfig, String> {
        let config: NotifyConfig = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        config.unusable().map_or(Ok(config), Err)
    }

    #[test]
    fn each_kind_has_its_keys_and_no_others() {
        for (text, expected) in [
            ("[channels.a]\nkind = 'webhook'\nurl = 'https://a.example/x'", None),
            ("[channels.a]\nkind = 'webhook'", Some("notify.channels.a: it needs the key `url`")),
            ("[channels.a]\nkind = 'webhook'\nurl = 'https://a'\nrun = ['/x']", Some("has no key `run`")),
            ("[channels.a]\nkind = 'webhook'\nurl = 'ftp://a'", Some("`url` is not an address")),
            ("[channels.a]\nkind = 'webhook'\nurl = 'https://me:pw@a'", Some("names no user")),
            ("[channels.a]\nkind = 'command'\nrun = ['x']\npolicy = 'default'", Some("absolute path")),
            ("[channels.a]\nkind = 'telegram'\nsecret = 'bot'", None),
            ("[channels.a]\nkind = 'email'\nurl = 'smtps://m'\nfrom = 'a@b'\nto = 'c@d'", None),
            ("[channels.a]\nkind = 'telegram'\nsecret = 'bot'\nper_minute = 0", Some("per_minute is 0")),
            ("[channels.a]\nkind = 'plugin'\nplugin = 'diary.page'", None),
            ("[channels.a]\nkind = 'plugin'\nplugin = 'diary'", Some("PLUGIN.SINK")),
            ("[channels.'a b']\nkind = 'desktop'", Some("a name has")),
            (
                "default = 'b'\n[channels.a]\nkind = 'desktop'",
                Some("there is no channel `b`; the channels are: a"),
            ),
            ("[boards]\ndefault = 'b'", Some("notify.boards.default: there is no channel `b`")),
        ] {
            let found = read(text).err();
            let fits = match (&found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected),
                (None, Some(_)) | (Some(_), None) => false,
            };
            assert!(fits, "{text}: {found:?}");
        }
    }

    #[test]
    fn an_error_about_a_secret_does_not_repeat_it() {
        let error = read("[channels.a]\nkind = 'telegram'\nsecret = '123:AAE token'").unwrap_err();
        assert!(!error.contains("AAE"), "{error}");
        let error = read("[channels.a]\nkind = 'webhook'\nurl = 'x://h/services/T0/SECRET'").unwrap_err();
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let config = read("[channels.a]\nkind = 'desktop'\nretry_first = 2\nretry_longest = 60").unwrap();
        let pauses = [0, 1, 4, 5, 40].map(|attempts| config.channels["a"].pause(attempts).as_secs());
        assert_eq!(pauses, [2, 4, 32, 60, 60]);
    }
}
