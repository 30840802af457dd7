//! Checks of `doctor` on the configured channels. No message is sent.

use kernel::{Finding, FindingCode};

use base::failure::with_causes;
use base::paths::Root;
use setup::automation::plugins::{Plugin, Plugins};
use setup::config::Config;
use setup::config::notify::{Channel, program};
use setup::roster::Roster;

/// Checks the secret, the program, the plugin and the policy of each channel.
pub(super) fn examine(root: &Root) -> Vec<Finding> {
    // The check `configuration` reports a file that cannot be used.
    let Ok(config) = Config::load(root) else { return Vec::new() };
    let roster = Roster::load(root);
    let check = |(name, channel): (&String, &Channel)| {
        let check = match wrong(root, &roster, name, channel) {
            None => Finding::ok(FindingCode::Channel, format!("test it with: supervisor notify test {name}")),
            Some(why) => Finding::error(FindingCode::Channel, why)
                .advice(format!("fix it, then: supervisor notify test {name}")),
        };
        check.named(name)
    };
    config.notify.channels.iter().map(check).collect()
}

fn wrong(root: &Root, roster: &Roster, name: &str, channel: &Channel) -> Option<String> {
    if let Some(secret) = &channel.secret
        && let Err(error) = secret.fetch(&format!("channel {name}"), &root.secret_stores())
    {
        return Some(with_causes(&error));
    }
    if let Some(program) = program(channel)
        && !program.is_file()
    {
        return Some(format!("{} is not a file", program.display()));
    }
    if let Some((plugin, sink)) = channel.sink() {
        let has = |found: &Plugin| {
            found.name.as_str() == plugin && found.manifest.sinks.iter().any(|one| one.name == sink)
        };
        let is_there = Plugins::load(root).plugins().any(has);
        return (!is_there).then(|| format!("no plugin {plugin} with the sink {sink} can be used"));
    }
    let policy = channel.policy.as_deref()?;
    roster.policies().find(policy).err().map(|why| why.to_string())
}
