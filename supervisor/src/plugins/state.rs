//! What a plugin keeps: its state has a size, which is looked at before each call and while one is under way.

use std::sync::Arc;
use std::time::Duration;

use crate::api::blocking;
use crate::automation::plugins::Plugin;
use crate::exit::Code;
use crate::failure::Failure;
use crate::host::disk_use::DiskUse;

/// How many files and directories a state may have.
const ENTRIES: usize = 10_000;
/// How often a state is looked at that a call may write.
const LOOK: Duration = Duration::from_secs(1);

/// Why a state is too large, if it is. Blocking.
fn too_large(plugin: &Plugin) -> Option<String> {
    let limit = plugin.manifest.state_limit;
    let mut found = DiskUse::default();
    found.add(&plugin.state(), ENTRIES + 1);
    if found.bytes > limit.0 {
        return Some(format!("its state has more than {limit}"));
    }
    if found.entries > ENTRIES {
        return Some(format!("its state has more than {ENTRIES} files and directories"));
    }
    found.is_partial.then(|| "something in its state cannot be read, or lies too deep".to_owned())
}

/// Refuses a call of a plugin whose state is too large. Blocking.
pub(super) fn fits(plugin: &Plugin) -> Result<(), Failure> {
    let Some(why) = too_large(plugin) else { return Ok(()) };
    let hint = format!(
        "remove what it does not need from {}, or raise `state_limit` in its plugin.toml",
        plugin.state().display()
    );
    Err(Failure::new(Code::Exhausted, why).hint(hint))
}

/// Returns when the state of a plugin has become too large, with the reason.
pub(super) async fn outgrown(plugin: &Plugin) -> String {
    let plugin = Arc::new(plugin.clone());
    loop {
        tokio::time::sleep(LOOK).await;
        let looked = Arc::clone(&plugin);
        let look = blocking("the state of the plugin was not looked at", move || too_large(&looked));
        match look.await {
            Ok(Some(why)) => return why,
            Ok(None) => {}
            Err(failure) => return failure.message,
        }
    }
}
