//! Sections that plugins add to the context of a worker at the start of its run. A failed section is replaced by a note
//! to the worker.

use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Run, Task};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::calls::{CallQueue, Calls};
use super::protocol::plain;
use base::failure::Failure;
use service::Service;
use setup::automation::plugins::{Plugin, PluginSection, VERSION};

/// Size limit of one section, in bytes.
const SECTION: usize = 16 << 10;
/// Longest wait of a start for one section, whatever the plugin's own limit.
const LONGEST: Duration = Duration::from_secs(10);
/// Size limit of all sections together, in bytes.
const ALL: usize = 64 << 10;

/// Returns the input of a call for a section.
fn call(plugin: &Plugin, section: &PluginSection, board: &BoardName, task: &Task, run: &Run) -> Value {
    let what = json!({ "title": task.title, "body": task.body, "assignee": task.assignee });
    framed(plugin, section, board, &json!(task.id), &json!(run.id), &json!(task.tenant), &what)
}

/// Returns the input of a call for a made-up task, for a check.
pub(super) fn made_up(plugin: &Plugin, section: &PluginSection, board: &BoardName) -> Value {
    let what = json!({ "title": "a task", "body": null, "assignee": "backend" });
    framed(plugin, section, board, &json!("t_0123abcd"), &json!(1), &Value::Null, &what)
}

fn framed(
    plugin: &Plugin,
    section: &PluginSection,
    board: &BoardName,
    task: &Value,
    run: &Value,
    tenant: &Value,
    what: &Value,
) -> Value {
    json!({ "version": VERSION, "plugin": plugin.name, "call": "prompt", "section": section.name, "board": board,
        "task_id": task, "run_id": run, "tenant": tenant, "task": what })
}

/// Returns the text of a reply, if it fits into a section.
fn text(reply: Option<String>) -> Result<String, String> {
    let text = reply.unwrap_or_default();
    if text.len() > SECTION {
        return Err(format!("its section has more than {SECTION} bytes"));
    }
    Ok(text)
}

impl Calls {
    /// Returns the sections of all plugins for a run, to be appended to its context.
    pub async fn sections(
        &self,
        service: &Arc<Service>,
        board: &BoardName,
        task: &Task,
        run: &Run,
    ) -> String {
        let plugins = service.plugins();
        let mut under_way = JoinSet::new();
        let of_task = |section: &&PluginSection| section.is_for(task.assignee.as_ref());
        let wanted = plugins.plugins().flat_map(|plugin| {
            plugin
                .manifest
                .prompt
                .iter()
                .filter(of_task)
                .map(move |section| (plugin.clone(), section.clone()))
        });
        // All sections are made at the same time; `at` keeps them in the order of the plugins.
        let titles: Vec<String> = wanted
            .enumerate()
            .map(|(at, (plugin, section))| {
                let asked = call(&plugin, &section, board, task, run);
                let (calls, service, title) = (self.clone(), Arc::clone(service), section.title.clone());
                under_way
                    .spawn(async move { (at, calls.section(&service, &plugin, &section, &asked).await) });
                title
            })
            .collect();
        let mut texts: Vec<Option<String>> = vec![None; titles.len()];
        while let Some(ended) = under_way.join_next().await {
            if let Ok((at, text)) = ended {
                texts[at] = Some(text);
            }
        }
        let sections = titles.iter().zip(texts);
        let mut all = String::new();
        for (title, text) in sections {
            // None if the task of the section panicked.
            let text = text.unwrap_or_else(|| "(This section is missing: its plugin failed.)".to_owned());
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let is_room = all.len() + title.len() + text.len() <= ALL;
            let text = if is_room {
                text
            } else {
                "(This section is missing: the sections before it are too long.)"
            };
            all.extend(["\n# ", title, "\n\n", text, "\n"]);
        }
        all
    }

    async fn section(
        &self,
        service: &Arc<Service>,
        plugin: &Plugin,
        section: &PluginSection,
        asked: &Value,
    ) -> String {
        if let Some(text) = &section.text {
            return text.clone();
        }
        let late = |_| Err(Failure::failed(format!("it took longer than {} s", LONGEST.as_secs())));
        let reply = tokio::time::timeout(LONGEST, self.call(service, plugin, asked, CallQueue::Asked)).await;
        match reply.unwrap_or_else(late).and_then(|reply| text(reply.text).map_err(Failure::failed)) {
            Ok(text) => text,
            Err(failure) => {
                tracing::warn!(plugin = %plugin.name, section = %section.name, error = %failure, "plugin_section_missing");
                let why = plain(&failure.message);
                format!("(This section is missing: the plugin {} failed: {why})", plugin.name)
            }
        }
    }
}
