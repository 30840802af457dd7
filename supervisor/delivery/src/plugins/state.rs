//! Limits the state directory of a plugin, before each call and during it.

use std::sync::Arc;
use std::time::Duration;

use api::blocking;
use base::exit::Code;
use base::failure::Failure;
use setup::automation::plugins::Plugin;
use workspace::DiskUse;

/// Limit on the files and directories of a state.
const ENTRIES: u64 = 10_000;
/// Interval between measurements during a call.
const INTERVAL: Duration = Duration::from_secs(1);

/// Returns the reason why a state is too large, if it is. Blocks.
fn too_large(plugin: &Plugin) -> Option<String> {
    let limit = plugin.manifest.state_limit;
    let mut disk_use = DiskUse::default();
    disk_use.add(&plugin.state(), ENTRIES + 1);
    if disk_use.size.bytes > limit.0 {
        return Some(format!("its state has more than {limit}"));
    }
    if disk_use.size.entries > ENTRIES {
        return Some(format!("its state has more than {ENTRIES} files and directories"));
    }
    disk_use.is_partial.then(|| "something in its state cannot be read, or lies too deep".to_owned())
}

/// Refuses a call of a plugin whose state is too large. Blocks.
pub(super) fn fits(plugin: &Plugin) -> Result<(), Failure> {
    let Some(why) = too_large(plugin) else { return Ok(()) };
    let hint = format!(
        "remove what it does not need from {}, or raise `state_limit` in its plugin.toml",
        plugin.state().display()
    );
    Err(Failure::new(Code::Exhausted, why).hint(hint))
}

/// Completes when the state of a plugin has become too large, with the reason.
pub(super) async fn wait_until_too_large(plugin: &Plugin) -> String {
    let plugin = Arc::new(plugin.clone());
    loop {
        tokio::time::sleep(INTERVAL).await;
        let looked = Arc::clone(&plugin);
        let look = blocking("the state of the plugin was not looked at", move || too_large(&looked));
        match look.await {
            Ok(Some(why)) => return why,
            Ok(None) => {}
            Err(failure) => return failure.message,
        }
    }
}
