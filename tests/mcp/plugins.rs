//! The tools of plugins stand beside those of the board.

use serde_json::json;

use super::agent::{Agent, text};
use crate::harness::Fleet;
use crate::plugins::installed;

#[test]
fn the_tools_of_plugins_are_listed_and_called_like_all_others() {
    let fleet = Fleet::boot();
    let tools = "[[tools]]\nname = 'look'\nabout = 'Looks something up.'\n\
        input = { properties = { what = { type = 'string' } }, required = ['what'] }";
    installed(&fleet, "finder", tools, "grep -q '\"what\":\"x\"' && echo '{\"text\":\"found\"}'");
    let mut agent = Agent::of_the_operator(&fleet);
    agent.open("2025-06-18");

    let listed = agent.ask("tools/list", &json!({}));

    let tools = listed["result"]["tools"].as_array().unwrap();
    let look = tools.iter().find(|tool| tool["name"] == "plugin_finder_look").unwrap();
    assert_eq!(look["description"], "Looks something up.");
    assert_eq!(look["inputSchema"]["required"], json!(["what"]));
    assert_eq!(look["inputSchema"]["type"], "object");
    let said = agent.call("plugin_finder_look", &json!({"what": "x"}));
    assert_eq!(said["structuredContent"]["text"], "found", "{said}");
    let said = agent.call("plugin_finder_look", &json!({"what": "y"}));
    assert!(said["isError"] == true && text(&said).contains("ended with code 1"), "{said}");
    let said = agent.call("plugin_finder_none", &json!({}));
    assert!(said["isError"] == true && text(&said).contains("no plugin offers this tool"), "{said}");
}
