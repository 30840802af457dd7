//! Environment variables that describe a run to its worker, equal in every lane, as `docs/lanes.md` promises.

use std::collections::BTreeMap;

use kernel::Purpose;
use policies::BoardAccess;

use super::facts::{Facts, RunPaths};

/// Returns the variables of a run.
pub(super) fn variables(facts: &Facts<'_>) -> BTreeMap<String, String> {
    let Facts { board, task, run, token, places, access, deadline, prompt: _, session: _ } = *facts;
    let RunPaths { workspace, home, tmp, files, workspaces, prompt: _, bin: _ } = places;
    let mut set = BTreeMap::new();
    let workspace = workspace.display().to_string();
    let profile = run.profile.as_ref().map(ToString::to_string).unwrap_or_default();
    let number = run.id.to_string();
    let mut put = |name: &str, value: &str| {
        set.insert(name.to_owned(), value.to_owned());
    };
    put("HOME", &home.display().to_string());
    put("TMPDIR", &tmp.display().to_string());
    put("SUPERVISOR_TASK", task.id.as_str());
    put("SUPERVISOR_RUN_ID", &number);
    put("SUPERVISOR_BOARD", board.as_str());
    put("SUPERVISOR_PROFILE", &profile);
    put("SUPERVISOR_PURPOSE", run.purpose.as_str());
    put("SUPERVISOR_WORKSPACE", &workspace);
    put("SUPERVISOR_FILES", &files.display().to_string());
    // A check makes no requests to the board.
    if run.purpose != Purpose::Check {
        put("SUPERVISOR_TOKEN", token);
    }
    match access {
        BoardAccess::Port(port) => put("SUPERVISOR_SOCKET", &format!("tcp://127.0.0.1:{port}")),
        BoardAccess::Socket(socket) => put("SUPERVISOR_SOCKET", &socket.display().to_string()),
        BoardAccess::None => {}
    }
    // Hermes' names for the same values (decision 0014). HERMES_KANBAN_DB stays unset: no worker sees the board's file. A program
    // with a board of its own gets that variable from `supervisor __kanban`.
    put("HERMES_KANBAN_TASK", task.id.as_str());
    put("HERMES_KANBAN_RUN_ID", &number);
    put("HERMES_KANBAN_BOARD", board.as_str());
    put("HERMES_KANBAN_WORKSPACE", &workspace);
    put("HERMES_KANBAN_WORKSPACES_ROOT", &workspaces.display().to_string());
    put("HERMES_KANBAN_CLAIM_LOCK", run.claim_lock.as_deref().unwrap_or_default());
    put("HERMES_PROFILE", &profile);
    if let Some(tenant) = &task.tenant {
        put("SUPERVISOR_TENANT", tenant.as_str());
        put("HERMES_TENANT", tenant.as_str());
    }
    if let Some(deadline) = deadline {
        put("SUPERVISOR_DEADLINE", &deadline.to_string());
    }
    set
}
