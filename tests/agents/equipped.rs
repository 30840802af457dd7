//! What an agent is given by its profile: skills, and tools, or none of its own.

use std::collections::BTreeSet;

use super::Stage;
use super::programs::Program;
use super::provider::Act;

/// A skill is among those that its program finds by itself, and tells its model of: the text is there when the model loads it.
pub(super) fn has_its_skill(program: &Program) {
    let Some(stage) = Stage::open_as(program, "tidier", &[Act::Say("I have looked.")]) else { return };
    let shown = stage.ended("unreported");
    let asked = stage.provider.asked();
    let is_told = asked.iter().any(|asked| asked.body.contains("How the zebra house is tidied"));
    assert!(is_told, "{}\n{}", asked[0].body, stage.state(&shown));
    assert!(!asked.iter().any(|asked| asked.body.contains("Begin at the top.")), "{}", stage.state(&shown));
}

/// An orchestrator is offered the board's tools, and none by which it could do the work itself.
pub(super) fn directs(program: &Program) {
    // What is left of its program's own: notes for itself, and what the board's server has.
    const HARMLESS: [&str; 9] = [
        "update_plan",
        "request_user_input",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
        "tool_search",
        "update_topic",
        "complete_task",
        "get_goal",
    ];
    let Some(stage) = Stage::open_as(program, "lead", &[Act::Say("I have looked.")]) else { return };
    let shown = stage.ended("unreported");
    let asked = stage.provider.asked();
    let offered: BTreeSet<_> = asked.iter().flat_map(|asked| &asked.tools).collect();
    let is_boards = |tool: &str| tool.contains("kanban_") || tool.contains("board");
    assert!(offered.iter().any(|tool| is_boards(tool)), "{offered:?}\n{}", stage.state(&shown));
    let own: Vec<_> =
        offered.iter().filter(|tool| !is_boards(tool) && !HARMLESS.contains(&tool.as_str())).collect();
    assert!(own.is_empty(), "{own:?}\n{}", stage.state(&shown));
}
