//! From what a program has done on its own board to verbs of its run.

use std::collections::BTreeMap;
use std::path::Path;

use kernel::{Projected, ProjectedCard, ProjectedEnd, ProjectedRemark, ProjectedWork, Projection};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::facts::now;
use crate::api::Verb;
use crate::client::Client;
use crate::failure::Failure;
use crate::terminal::complain;
use crate::verbs::{Block, Comment, Complete, Create, Heartbeat, Link};

/// How many refusals are kept to be said at the end.
const KEPT: usize = 20;

/// How far the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It reads what is written into its database.
    Working,
    /// It has ended.
    Over,
}

/// Tells the board of a run what its program does.
pub(super) struct Carrier<'a> {
    client: &'a Client,
    board: Projection,
    own: String,
    workspace: String,
    /// The tasks that were made, by their ids on the program's board.
    ids: BTreeMap<String, String>,
    refused: Vec<String>,
    more: usize,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(client: &'a Client, board: Projection, task: &Projected) -> Self {
        Carrier {
            client,
            board,
            own: task.own.id.clone(),
            workspace: task.workspace.display().to_string(),
            ids: BTreeMap::new(),
            refused: Vec::new(),
            more: 0,
        }
    }

    /// What was refused, a line each; empty where nothing was.
    pub(super) fn refused(&self) -> String {
        let lines = self.refused.iter().map(|line| format!("- {line}"));
        let more = (self.more > 0).then(|| format!("- and {} more", self.more));
        lines.chain(more).collect::<Vec<_>>().join("\n")
    }

    /// Tells what has been done since the last look.
    pub(super) async fn look(&mut self, stage: Stage) {
        loop {
            let done = match self.board.look() {
                Ok(done) => done,
                // It may be writing, or making its file anew.
                Err(_) if stage == Stage::Working => return,
                Err(error) => {
                    return self.refuse(stage, format!("its own board cannot be read: {error}"));
                }
            };
            let is_last = stage == Stage::Working || done == ProjectedWork::default();
            self.tell(done, stage).await;
            if is_last {
                return;
            }
        }
    }

    async fn tell(&mut self, done: ProjectedWork, stage: Stage) {
        let ProjectedWork { created, linked, said, alive, verdict, more } = done;
        let before = self.refused.len() + self.more;
        let made: Vec<(String, String)> = linked
            .iter()
            .filter(|(_, child)| created.iter().any(|card| card.id == *child))
            .cloned()
            .collect();
        for card in created {
            self.create(card, &made, stage).await;
        }
        for (parent, child) in linked.iter().filter(|link| !made.contains(link)) {
            let link = json!({ "parent_id": self.own_id(parent), "child_id": self.own_id(child) });
            let told = self.call::<Link>(link).await;
            self.note(told.map(drop), &format!("the link {parent} → {child}"), stage);
        }
        for ProjectedRemark { task, body } in said {
            let comment = json!({ "task_id": self.own_id(&task), "body": self.ours(&body) });
            let told = self.call::<Comment>(comment).await;
            self.note(told.map(drop), &format!("the comment on {task}"), stage);
        }
        if let Some(note) = alive {
            let told = self.call::<Heartbeat>(json!({ "task_id": self.own, "note": note })).await;
            self.note(told.map(drop), "the heartbeat", stage);
        }
        if more {
            self.refuse(
                stage,
                "its own board has more rows than are read; the rest is not reported".to_owned(),
            );
        }
        if self.refused.len() + self.more > before {
            // Before the verdict: after it the run says nothing any more.
            let text = format!("Of what its program did on its own board was refused:\n{}", self.refused());
            let said = self.call::<Comment>(json!({ "task_id": self.own, "body": text })).await;
            if let Err(failure) = said {
                complain(&format!("warning: the board does not know what was refused: {failure}"));
            }
        }
        if let Some(ending) = verdict {
            self.end(ending, stage).await;
        }
    }

    /// Makes a task. Its parents that are known by now come with it.
    async fn create(&mut self, card: ProjectedCard, made: &[(String, String)], stage: Stage) {
        let parents: Vec<String> = made
            .iter()
            .filter(|(_, child)| *child == card.id)
            .map(|(parent, _)| self.own_id(parent))
            .collect();
        let request = self.request(&card, &parents);
        let created = self.call::<Create>(request).await.map(|created| created.task.id.to_string());
        match created {
            Ok(id) => {
                self.ids.insert(card.id, id);
            }
            Err(failure) => {
                self.note(Err(failure), &format!("the task {} ({})", card.id, card.title), stage);
            }
        }
    }

    fn request(&self, card: &ProjectedCard, parents: &[String]) -> Value {
        let mut request = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                request.insert(key.to_owned(), value);
            }
        };
        put("title", json!(card.title));
        put("body", json!(card.body.as_deref().map(|body| self.ours(body))));
        put("assignee", json!(card.assignee));
        put("parents", json!(parents));
        put("tenant", json!(card.tenant));
        put("priority", json!(card.priority));
        put("triage", json!(card.status == "triage"));
        put("initial_status", json!((card.status == "blocked").then_some("blocked")));
        put("idempotency_key", json!(card.idempotency_key));
        put("max_runtime", json!(card.max_runtime));
        put("goal", json!(card.goal));
        put("goal_max_turns", json!(card.goal_turns));
        put(
            "skills",
            card.skills.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        );
        put("workspace", json!(self.place(card)));
        put("branch", json!(card.branch));
        Value::Object(request)
    }

    /// The workspace of a new task. The program gives it that of its own task where the model names none; here it gets one of its own.
    fn place(&self, card: &ProjectedCard) -> Option<String> {
        let (kind, path) = (card.workspace.0.as_deref()?, card.workspace.1.as_deref()?);
        let is_named = matches!(kind, "dir" | "worktree") && path != self.workspace;
        is_named.then(|| format!("{kind}:{path}"))
    }

    async fn end(&mut self, ending: ProjectedEnd, stage: Stage) {
        let (what, told) = match ending {
            ProjectedEnd::Completed { result, summary, metadata, event } => {
                let request = self.handoff((result, summary), metadata.as_deref(), event.as_deref());
                ("kanban_complete", self.call::<Complete>(request).await.map(drop))
            }
            ProjectedEnd::Blocked { reason, kind } => {
                let reason = reason.map(|reason| self.ours(&reason));
                let request = json!({ "task_id": self.own, "reason": reason, "kind": kind });
                ("kanban_block", self.call::<Block>(request).await.map(drop))
            }
        };
        let is_refused = told.is_err();
        self.note(told, what, stage);
        if is_refused
            && stage == Stage::Working
            && let Err(error) = self.board.reopen()
        {
            complain(&format!("warning: its own board says that its task has ended: {error}"));
        }
    }

    /// What a program hands over: the tasks that it says it has made, by the ids of this board, and the files of its workspace.
    fn handoff(
        &self,
        (result, summary): (Option<String>, Option<String>),
        metadata: Option<&str>,
        event: Option<&str>,
    ) -> Value {
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut facts = match metadata.and_then(read).map(|facts| self.ours_within(facts)) {
            Some(Value::Object(facts)) => facts,
            Some(other) => Map::from_iter([("text".to_owned(), other)]),
            None => Map::new(),
        };
        let listed = |value: Option<&Value>| -> Vec<String> {
            let all = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let cards = event.and_then(read).map(|event| listed(event.get("verified_cards"))).unwrap_or_default();
        if !cards.is_empty() {
            let ours: Vec<String> = cards.iter().map(|id| self.own_id(id)).collect();
            facts.insert("created_cards".to_owned(), json!(ours));
        }
        let artifacts: Vec<String> =
            listed(facts.get("artifacts")).iter().filter_map(|path| self.inside(path)).collect();
        json!({
            "task_ids": [self.own],
            "result": result.map(|text| self.ours(&text)),
            "summary": summary.map(|text| self.ours(&text)),
            "metadata": (!facts.is_empty()).then_some(facts),
            "artifacts": artifacts,
        })
    }

    /// A path from the workspace on; none where it leads elsewhere.
    fn inside(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if path.is_absolute() {
            return Some(path.strip_prefix(&self.workspace).ok()?.display().to_string());
        }
        Some(path.display().to_string())
    }

    /// The id of this board for one that the program has given; its own words where it has given none.
    fn own_id(&self, theirs: &str) -> String {
        self.ids.get(theirs).map_or(theirs, String::as_str).to_owned()
    }

    /// A text with the ids of this board in the place of those that the program has given.
    fn ours(&self, text: &str) -> String {
        with_ids(text, &self.ids)
    }

    /// The same for each text of a value.
    fn ours_within(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.ours(&text)),
            Value::Array(all) => all.into_iter().map(|value| self.ours_within(value)).collect(),
            Value::Object(all) => {
                all.into_iter().map(|(key, value)| (self.ours(&key), self.ours_within(value))).collect()
            }
            value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => value,
        }
    }

    /// Calls a verb, from what the program has written about it.
    async fn call<V: Verb + DeserializeOwned>(&self, request: Value) -> Result<V::Reply, Failure> {
        let verb: V = serde_json::from_value(request).map_err(|e| Failure::usage(e.to_string()))?;
        self.client.call(&verb).await
    }

    fn note(&mut self, told: Result<(), Failure>, what: &str, stage: Stage) {
        let Err(failure) = told else { return };
        let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.refuse(stage, format!("{what}: {}{hint}", failure.message));
    }

    fn refuse(&mut self, stage: Stage, text: String) {
        complain(&format!("refused: {text}"));
        if stage == Stage::Working {
            let said =
                format!("Refused, and nothing has changed: {text}. If your task has not ended, go on.");
            if let Err(error) = self.board.answer(&said, now()) {
                complain(&format!("warning: its own board does not say so: {error}"));
            }
        }
        if self.refused.len() < KEPT { self.refused.push(text) } else { self.more += 1 }
    }
}

/// A text with other ids in the place of those that it names: whole words that have the form of an id. A program's board may give its tasks
/// any id, also an empty one or a common word.
fn with_ids(text: &str, ids: &BTreeMap<String, String>) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_of_word) {
        let (before, word) = rest.split_at(at);
        let (word, behind) = word.split_at(word.find(|c| !is_of_word(c)).unwrap_or(word.len()));
        out.push_str(before);
        out.push_str(
            Some(word).filter(|word| is_id(word)).and_then(|word| ids.get(word)).map_or(word, String::as_str),
        );
        rest = behind;
    }
    out + rest
}

/// Whether a word has the form of a task's id: `t_` and small hexadecimal digits.
fn is_id(word: &str) -> bool {
    let digits = word.strip_prefix("t_").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_with_the_form_of_an_id_are_replaced() {
        let ids = [
            ("", "t_ffffff01"),
            ("e", "t_ffffff02"),
            ("task", "t_ffffff03"),
            ("t_", "t_ffffff04"),
            ("t_XYZ", "t_ffffff05"),
            ("t_1a", "t_aaaaaa06"),
            ("t_1ab", "t_aaaaaa07"),
            ("t_aaaaaa06", "t_aaaaaa08"),
        ];
        let ids = BTreeMap::from(ids.map(|(theirs, ours)| (theirs.to_owned(), ours.to_owned())));
        for (text, expected) in [
            ("the task is done", "the task is done"),
            ("e", "e"),
            ("", ""),
            ("t_ t_XYZ", "t_ t_XYZ"),
            ("t_1a, (t_1ab); t_1a.", "t_aaaaaa06, (t_aaaaaa07); t_aaaaaa06."),
            ("t_1abc at_1a t_1a_ t_1aé", "t_1abc at_1a t_1a_ t_1aé"),
            ("dir/t_1a/x t_1a-x \"t_1ab\"", "dir/t_aaaaaa06/x t_aaaaaa06-x \"t_aaaaaa07\""),
            ("t_aaaaaa06", "t_aaaaaa08"),
            ("é t_1a é", "é t_aaaaaa06 é"),
        ] {
            assert_eq!(with_ids(text, &ids), expected);
        }
    }
}
