//! `resolve`: returns the full task ids for abbreviated ids.

use kernel::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::{Call, Verb, verb};
use base::failure::Failure;

/// Limit on the tasks that an ambiguity error names.
const NAMED: u32 = 4;

/// Resolve prefixes of task ids to whole ids
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resolve {
    /// Ids, or beginnings of ids
    pub ids: Vec<String>,
}

/// Full ids, in the order of the request. An id without a match is returned as it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResolveReply {
    pub ids: Vec<TaskId>,
}

impl Verb for Resolve {
    verb! { "resolve": Operator, Read, members => ResolveReply }

    async fn run(self, call: Call) -> Result<ResolveReply, Failure> {
        let wanted = self.ids.iter().map(|id| id.parse::<TaskId>());
        let wanted: Vec<TaskId> =
            wanted.collect::<Result<_, _>>().map_err(|error| Failure::usage(error.to_string()))?;
        let asked = wanted.clone();
        let tenant = call.confined().cloned();
        let meant = call
            .read(move |view| {
                asked
                    .iter()
                    .map(|id| view.tasks_beginning(id, tenant.as_ref(), NAMED))
                    .collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let pairs = wanted.into_iter().zip(meant);
        let ids = pairs.map(|(id, mut meant)| match meant.len() {
            0 => Ok(id),
            1 => Ok(meant.remove(0)),
            _ if meant.contains(&id) => Ok(id),
            _ => Err(ambiguous(&id, &meant)),
        });
        Ok(ResolveReply { ids: ids.collect::<Result<_, _>>()? })
    }
}

fn ambiguous(id: &TaskId, meant: &[TaskId]) -> Failure {
    let most = usize::try_from(NAMED).unwrap_or(usize::MAX);
    let more = if meant.len() == most { " and perhaps more" } else { "" };
    let named: Vec<&str> = meant.iter().map(TaskId::as_str).collect();
    Failure::usage(format!("`{id}` is ambiguous: {}{more}", named.join(", "))).hint("write more of the id")
}
