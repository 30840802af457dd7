//! Turns changes of a program on its own board into verbs of its run.

use std::collections::BTreeMap;
use std::path::Path;

use kernel::{Projected, ProjectedCard, ProjectedEnd, ProjectedRemark, ProjectedWork, Projection};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::facts::now;
use crate::client::Client;
use api::Verb;
use base::failure::Failure;
use base::terminal::complain;
use verbs::{Block, Comment, Complete, Create, Heartbeat, Link};

/// Limit on the refusals listed at the end.
const KEPT: usize = 20;

/// Phase of the projected program, on which the direction of replies depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramStage {
    /// Running: it reads replies written into its database.
    Working,
    /// Ended.
    Over,
}

/// Reports the program's changes to the board of the run.
pub(super) struct Carrier<'a> {
    client: &'a Client,
    board: Projection,
    task: String,
    workspace: String,
    /// Ids of created tasks, by their ids on the program's board.
    ids: BTreeMap<String, String>,
    refused: Vec<String>,
    more: usize,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(client: &'a Client, board: Projection, task: &Projected) -> Self {
        Carrier {
            client,
            board,
            task: task.own.id.clone(),
            workspace: task.workspace.display().to_string(),
            ids: BTreeMap::new(),
            refused: Vec::new(),
            more: 0,
        }
    }

    /// Returns the refusals, one per line; empty without any.
    pub(super) fn refused(&self) -> String {
        let lines = self.refused.iter().map(|line| format!("- {line}"));
        let more = (self.more > 0).then(|| format!("- and {} more", self.more));
        lines.chain(more).collect::<Vec<_>>().join("\n")
    }

    /// Reports the changes since the last look.
    pub(super) async fn report_changes(&mut self, stage: ProgramStage) {
        loop {
            let done = match self.board.look() {
                Ok(done) => done,
                // The program may be writing, or replacing its file.
                Err(_) if stage == ProgramStage::Working => return,
                Err(error) => {
                    return self.refuse(stage, format!("its own board cannot be read: {error}"));
                }
            };
            let is_last = stage == ProgramStage::Working || done == ProjectedWork::default();
            self.tell(done, stage).await;
            if is_last {
                return;
            }
        }
    }

    async fn tell(&mut self, done: ProjectedWork, stage: ProgramStage) {
        let ProjectedWork { created, linked, said: comments, alive, verdict, more } = done;
        let before = self.refused.len() + self.more;
        let made: Vec<(String, String)> = linked
            .iter()
            .filter(|(_, child)| created.iter().any(|card| card.id == *child))
            .cloned()
            .collect();
        for card in created {
            self.create(card, &made, stage).await;
        }
        // Links to new tasks were made together with them.
        for (parent, child) in linked.iter().filter(|link| !made.contains(link)) {
            let link = json!({ "parent_id": self.own_id(parent), "child_id": self.own_id(child) });
            let outcome = self.call::<Link>(link).await;
            self.note(outcome.map(drop), &format!("the link {parent} → {child}"), stage);
        }
        for ProjectedRemark { task, body } in comments {
            let comment = json!({ "task_id": self.own_id(&task), "body": self.ours(&body) });
            let outcome = self.call::<Comment>(comment).await;
            self.note(outcome.map(drop), &format!("the comment on {task}"), stage);
        }
        if let Some(note) = alive {
            let outcome = self.call::<Heartbeat>(json!({ "task_id": self.task, "note": note })).await;
            self.note(outcome.map(drop), "the heartbeat", stage);
        }
        if more {
            self.refuse(
                stage,
                "its own board has more rows than are read; the rest is not reported".to_owned(),
            );
        }
        if self.refused.len() + self.more > before {
            // Before the verdict, because the run can say nothing after it.
            let text = format!("Of what its program did on its own board was refused:\n{}", self.refused());
            let outcome = self.call::<Comment>(json!({ "task_id": self.task, "body": text })).await;
            if let Err(failure) = outcome {
                complain(&format!("warning: the board does not know what was refused: {failure}"));
            }
        }
        if let Some(ending) = verdict {
            self.end(ending, stage).await;
        }
    }

    /// Creates a task, together with the links to parents known by now.
    async fn create(&mut self, card: ProjectedCard, made: &[(String, String)], stage: ProgramStage) {
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
        put("workspace", json!(self.workspace_of(card)));
        put("branch", json!(card.branch));
        Value::Object(request)
    }

    /// Returns the workspace of a new task. If the model names none, the program stores its own task's workspace; here
    /// the task gets its own.
    fn workspace_of(&self, card: &ProjectedCard) -> Option<String> {
        let (kind, path) = (card.workspace.0.as_deref()?, card.workspace.1.as_deref()?);
        let is_named = matches!(kind, "dir" | "worktree") && path != self.workspace;
        is_named.then(|| format!("{kind}:{path}"))
    }

    async fn end(&mut self, ending: ProjectedEnd, stage: ProgramStage) {
        let (what, outcome) = match ending {
            ProjectedEnd::Completed { result, summary, metadata, event } => {
                let request = self.handoff(result, summary, metadata.as_deref(), event.as_deref());
                ("kanban_complete", self.call::<Complete>(request).await.map(drop))
            }
            ProjectedEnd::Blocked { reason, kind } => {
                let reason = reason.map(|reason| self.ours(&reason));
                let request = json!({ "task_id": self.task, "reason": reason, "kind": kind });
                ("kanban_block", self.call::<Block>(request).await.map(drop))
            }
        };
        let is_refused = outcome.is_err();
        self.note(outcome, what, stage);
        if is_refused
            && stage == ProgramStage::Working
            && let Err(error) = self.board.reopen()
        {
            complain(&format!("warning: its own board says that its task has ended: {error}"));
        }
    }

    /// Builds the handoff: created tasks by this board's ids, and files of the workspace.
    fn handoff(
        &self,
        result: Option<String>,
        summary: Option<String>,
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
            "task_ids": [self.task],
            "result": result.map(|text| self.ours(&text)),
            "summary": summary.map(|text| self.ours(&text)),
            "metadata": (!facts.is_empty()).then_some(facts),
            "artifacts": artifacts,
        })
    }

    /// Returns a path relative to the workspace; none if it leads outside.
    fn inside(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if path.is_absolute() {
            return Some(path.strip_prefix(&self.workspace).ok()?.display().to_string());
        }
        Some(path.display().to_string())
    }

    /// Returns this board's id for a program's id; the program's own if unknown.
    fn own_id(&self, theirs: &str) -> String {
        self.ids.get(theirs).map_or(theirs, String::as_str).to_owned()
    }

    /// Replaces the program's ids in a text by this board's.
    fn ours(&self, text: &str) -> String {
        with_ids(text, &self.ids)
    }

    /// Replaces the ids in each text of a value.
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

    /// Calls a verb with a request made from the program's data.
    async fn call<V: Verb + DeserializeOwned>(&self, request: Value) -> Result<V::Reply, Failure> {
        let verb: V = serde_json::from_value(request).map_err(|e| Failure::usage(e.to_string()))?;
        self.client.call(&verb).await
    }

    fn note(&mut self, outcome: Result<(), Failure>, what: &str, stage: ProgramStage) {
        let Err(failure) = outcome else { return };
        let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.refuse(stage, format!("{what}: {}{hint}", failure.message));
    }

    fn refuse(&mut self, stage: ProgramStage, text: String) {
        complain(&format!("refused: {text}"));
        if stage == ProgramStage::Working {
            let reply =
                format!("Refused, and nothing has changed: {text}. If your task has not ended, go on.");
            if let Err(error) = self.board.answer(&reply, now()) {
                complain(&format!("warning: its own board does not say so: {error}"));
            }
        }
        if self.refused.len() < KEPT { self.refused.push(text) } else { self.more += 1 }
    }
}

/// Replaces ids in a text: whole words in the form of a task's id. Otherwise the program could choose common words as
/// ids.
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

/// Returns true if a word has the form of a task's id: `t_` and lowercase hexadecimal digits.
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
