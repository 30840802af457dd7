//! The configuration that is handed to an agent program starts a server for the same root, and has no secret in it.

use serde_json::{Value, json};

use crate::harness::{Fleet, Output};
use crate::listeners::{idle_worker, socket_of};

fn printed(fleet: &Fleet, form: &str) -> String {
    fleet.cli(["mcp", "--config", form]).ok().stdout
}

#[test]
fn an_operator_gets_the_root_that_was_chosen() {
    let fleet = Fleet::offline();
    let root = fleet.root().display().to_string();

    let claude: Value = serde_json::from_str(&printed(&fleet, "claude")).unwrap();

    let server = &claude["mcpServers"]["board"];
    assert_eq!(server["command"], json!(fleet.binary().display().to_string()));
    assert_eq!(server["args"], json!(["--root", root, "mcp"]));
    let opencode: Value = serde_json::from_str(&printed(&fleet, "opencode")).unwrap();
    assert_eq!(
        opencode["board"]["command"].as_array().unwrap()[1..],
        [json!("--root"), json!(root), json!("mcp")]
    );
    fleet
        .cli(["mcp", "--config", "emacs"])
        .refused(2, "possible values: claude, codex, opencode, gemini, hermes");
}

#[test]
fn a_worker_gets_the_names_of_its_variables_and_none_of_their_values() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &[]);
    for form in ["claude", "codex", "opencode", "gemini", "hermes"] {
        let mut command = fleet.command(["mcp", "--config", form]);
        command.env("SUPERVISOR_TOKEN", &token).env("SUPERVISOR_TASK", &task);
        command.env("SUPERVISOR_SOCKET", socket_of(&fleet, &token));

        let text = Output::of(&mut command).ok().stdout;

        assert!(!text.contains(&token), "{text}");
        assert!(!text.contains("--root"), "the run is in the environment: {text}");
        assert_eq!(text.contains("SUPERVISOR_TOKEN"), !matches!(form, "claude" | "opencode"), "{text}");
    }
}
