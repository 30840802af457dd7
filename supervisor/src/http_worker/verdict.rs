//! Verdict of a service on a task: one verb of its worker, with the verb's arguments.

use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use api::command::Command;
use base::failure::Failure;
use verbs::{Approve, Block, Complete, RequestChanges, RequestReview};

/// A verdict, as `{"complete": {"summary": "…"}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServiceVerdict {
    Complete(Complete),
    Block(Block),
    RequestReview(RequestReview),
    Approve(Approve),
    RequestChanges(RequestChanges),
}

impl ServiceVerdict {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Failure> {
        if let Ok(Value::Object(verdicts)) = serde_json::from_slice(text)
            && verdicts.len() != 1
        {
            let given: Vec<&str> = verdicts.keys().map(String::as_str).collect();
            let given = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            return Err(refused(&format!("one verdict is to be given, and there is {given}")));
        }
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = serde_path_to_error::deserialize(&mut json).map_err(|e| e.to_string());
        let read = read.and_then(|verdict| json.end().map(|()| verdict).map_err(|e| e.to_string()));
        read.map_err(|e| refused(&e))
    }

    /// Reports the verdict to the board. Any refusal becomes a plain failure of this run.
    pub(super) async fn tell(self, client: &Client) -> Result<(), Failure> {
        let reported = match self {
            ServiceVerdict::Complete(verb) => tell(client, verb).await,
            ServiceVerdict::Block(verb) => tell(client, verb).await,
            ServiceVerdict::RequestReview(verb) => tell(client, verb).await,
            ServiceVerdict::Approve(verb) => tell(client, verb).await,
            ServiceVerdict::RequestChanges(verb) => tell(client, verb).await,
        };
        reported.map_err(|refusal| Failure {
            hint: refusal.hint,
            ..Failure::failed(format!("the board refuses the verdict of the service: {}", refusal.message))
        })
    }
}

fn refused(why: &str) -> Failure {
    Failure::failed(format!("the answer of the service is not a verdict: {why}")).hint(
        "`supervisor help docs/lanes/http.md` describes it, such as {\"complete\": {\"summary\": \"…\"}}",
    )
}

async fn tell<V: Command>(client: &Client, mut verb: V) -> Result<(), Failure> {
    if let Some(worker) = client.worker() {
        verb.default_to_own(&worker.task);
    }
    let reply = client.call(&verb).await?;
    if V::verdict(&reply) == 0 {
        Ok(())
    } else {
        Err(Failure::failed("it names tasks that are not the run's own"))
    }
}
