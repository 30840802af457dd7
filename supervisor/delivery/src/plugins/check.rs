//! `plugin check`: calls a copy of a plugin with made-up input, step by step.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Actor, BoardName, Clock as _, Event, EventId, SystemClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calls::{Calls, policy};
use super::install::copy;
use super::requested_call::{self, CallRequest};
use super::{prompt, protocol, requests, sink};
use base::failure::Failure;
use base::paths::{Root, make_dir};
use base::steps::Step;
use host::remove::remove_retained;
use service::Service;
use setup::automation::plugins::{DirectoryUse, Plugin, inspect};
use setup::config::settings;

/// Prefix of the directory of a copy.
const COPY: &str = "check-";
/// Age from which a copy counts as abandoned.
const FORGOTTEN: Duration = Duration::from_hours(2);

/// Result of a check.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPlugin {
    pub plugin: String,
    /// True if each step worked.
    pub ok: bool,
    /// Steps, up to the first failure.
    pub steps: Vec<Step>,
}

/// Steps so far.
#[derive(Default)]
struct CheckSteps(Vec<Step>);

impl CheckSteps {
    fn record<T>(&mut self, name: &str, outcome: Result<T, String>, detail: impl Into<String>) -> Option<T> {
        let (ok, value, detail) = match outcome {
            Ok(value) => (true, Some(value), detail.into()),
            Err(why) => (false, None, why),
        };
        self.0.push(Step { name: name.to_owned(), ok, detail });
        value
    }
}

/// Checks the plugin in a directory. The owner of an installed one must be right, too.
pub async fn check(service: &Arc<Service>, dir: &Path, directory_use: DirectoryUse) -> CheckedPlugin {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut steps = CheckSteps::default();
    // The steps record any failure.
    let _: Option<()> = run_steps(service, dir, &name, directory_use, &mut steps).await;
    let ok = steps.0.iter().all(|step| step.ok);
    CheckedPlugin { plugin: name, ok, steps: steps.0 }
}

async fn run_steps(
    service: &Arc<Service>,
    dir: &Path,
    name: &str,
    directory_use: DirectoryUse,
    steps: &mut CheckSteps,
) -> Option<()> {
    let fit = inspect(dir, directory_use).map_err(|unfit| unfit.to_string());
    steps.record("directory", fit, dir.display().to_string())?;
    let text =
        settings::read(&dir.join("plugin.toml")).map_err(|e| format!("plugin.toml cannot be read: {e}"));
    let read = text.and_then(|text| Plugin::parse(name, &text, dir).map_err(|defect| defect.to_string()));
    let plugin = steps.record("plugin.toml", read, "it can be used")?;
    let held = policy(service, &plugin).map_err(|failure| failure.message);
    steps.record("policy", held, plugin.manifest.policy.clone())?;
    let base = service.root().plugin_home(&format!("{COPY}{}", uuid::Uuid::new_v4()));
    let tried = call_copy(service, &plugin, &base, steps).await;
    if let Err(failure) = remove(&base, &plugin) {
        tracing::warn!(dir = %base.display(), error = %failure, "plugin_copy_not_removed");
    }
    tried
}

/// Removes copies of checks that died early. Copies in use are younger.
pub(super) fn sweep(root: &Root) {
    let homes = root.plugin_home("");
    for entry in std::fs::read_dir(&homes).into_iter().flatten().flatten() {
        let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > FORGOTTEN);
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(COPY)) else { continue };
        if is_old() == Some(true) {
            let copies = std::fs::read_dir(homes.join(name)).into_iter().flatten().flatten();
            let states =
                copies.map(|copy| remove_retained(&copy.path(), "state")).all(|removed| removed.is_ok());
            if !states || std::fs::remove_dir_all(homes.join(name)).is_err() {
                tracing::warn!(name, "plugin_copy_not_removed");
            }
        }
    }
}

fn remove(base: &Path, plugin: &Plugin) -> Result<(), Failure> {
    let copied = base.join(plugin.name.as_str());
    remove_retained(&copied, "state")
        .map_err(|stays| Failure::failed(format!("failed to remove {}: {stays}", copied.display())))?;
    std::fs::remove_dir_all(base).map_err(|e| Failure::file("remove", base, &e))
}

/// Calls a copy of the plugin, so that its own state stays as it is.
async fn call_copy(
    service: &Arc<Service>,
    plugin: &Plugin,
    base: &Path,
    steps: &mut CheckSteps,
) -> Option<()> {
    let copied = base.join(plugin.name.as_str());
    let made =
        make_parents(base).and_then(|()| copy(&plugin.dir, &copied)).map_err(|failure| failure.message);
    steps.record("copy", made, "a copy with a state of its own")?;
    let plugin = Plugin { dir: copied, ..plugin.clone() };
    let calls = Calls::default();
    for kind in plugin.manifest.kinds() {
        let asked = protocol::event(&plugin.name, &BoardName::default(), &made_up(&kind));
        call(service, &calls, &plugin, &format!("event {kind}"), asked, base, steps).await?;
    }
    let (board, caller) = (BoardName::default(), Actor::person("check"));
    for verb in &plugin.manifest.verbs {
        let asked = requested_call::call(&plugin, &board, &caller, CallRequest::Verb(&verb.name, &[]));
        call(service, &calls, &plugin, &format!("verb {}", verb.name), asked, base, steps).await?;
    }
    for tool in &plugin.manifest.tools {
        let asked =
            requested_call::call(&plugin, &board, &caller, CallRequest::Tool(&tool.name, &Map::new()));
        call(service, &calls, &plugin, &format!("tool {}", tool.name), asked, base, steps).await?;
    }
    for section in plugin.manifest.prompt.iter().filter(|section| section.text.is_none()) {
        let asked = prompt::made_up(&plugin, section, &board);
        call(service, &calls, &plugin, &format!("prompt {}", section.name), asked, base, steps).await?;
    }
    for sink in &plugin.manifest.sinks {
        let asked = sink::call(&plugin.name, &sink.name, &sink::made_up());
        call(service, &calls, &plugin, &format!("sink {}", sink.name), asked, base, steps).await?;
    }
    Some(())
}

fn make_parents(base: &Path) -> Result<(), Failure> {
    for dir in [base.parent(), Some(base)].into_iter().flatten() {
        make_dir(dir, 0o711)?;
    }
    Ok(())
}

/// Makes one call, and checks the requests of its reply without carrying them out.
async fn call(
    service: &Arc<Service>,
    calls: &Calls,
    plugin: &Plugin,
    step: &str,
    mut asked: Value,
    base: &Path,
    steps: &mut CheckSteps,
) -> Option<()> {
    asked["check"] = true.into();
    let reply = calls.call_in(service, plugin, &asked, &base.join("call")).await;
    let reply = reply.and_then(|reply| requests::check(plugin, &reply.requests).map(|()| reply));
    let asks: Vec<&str> = match &reply {
        Ok(reply) => reply.requests.iter().map(|request| request.verb.as_str()).collect(),
        Err(_) => Vec::new(),
    };
    let detail = if asks.is_empty() {
        "answered".to_owned()
    } else {
        format!("answered; it asks for {}", asks.join(", "))
    };
    steps.record(step, reply.map(drop).map_err(|failure| failure.message), detail)
}

/// Makes a sample event.
fn made_up(kind: &str) -> Event {
    Event {
        id: EventId::default(),
        task_id: "t_0123abcd".parse().ok(),
        run_id: None,
        tenant: None,
        kind: kind.to_owned(),
        payload: None,
        created_at: SystemClock.now(),
        actor: Some("person:check".to_owned()),
    }
}
