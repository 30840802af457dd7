//! Agent cards: the profiles offered to other agents, and the authentication. A card shows nothing else of the host.

use kernel::Profile;
use serde_json::{Value, json};

use base::a2a_wire::VERSION;
use setup::config::a2a::A2aConfig;
use setup::config::definitions::Lookup;
use setup::roster::Roster;

/// Path of a card, relative to its agent (A2A 1.0, section 8.2).
pub(super) const PATH: &str = "/.well-known/agent-card.json";

/// Returns the card of one profile, or of all offered ones.
pub(super) fn for_profile(config: &A2aConfig, roster: &Roster, profile: Option<&Profile>) -> Value {
    let base = config.base();
    let (name, url) = match profile {
        Some(profile) => (profile.to_string(), format!("{base}/{profile}")),
        None => ("supervisor".to_owned(), format!("{base}/")),
    };
    let offered: Vec<&Profile> = match profile {
        Some(profile) => vec![profile],
        None => config.profiles.iter().collect(),
    };
    let skills: Vec<Value> = offered.iter().map(|profile| skill(roster, profile)).collect();
    let description = match profile {
        Some(profile) => about(roster, profile),
        None => "Agents that work on tasks. Name one of the skills as `skill` in the metadata of a message."
            .to_owned(),
    };
    json!({
        "name": name,
        "description": description,
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": VERSION }],
        "capabilities": { "streaming": true, "pushNotifications": false, "extendedAgentCard": false },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": skills,
        "securitySchemes": { "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } },
        "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
    })
}

fn skill(roster: &Roster, profile: &Profile) -> Value {
    json!({ "id": profile, "name": profile, "description": about(roster, profile), "tags": ["task"] })
}

fn about(roster: &Roster, profile: &Profile) -> String {
    let found = roster.profiles().find(|(name, _)| *name == profile.as_str());
    let described = match found {
        Some((_, Lookup::Usable(profile))) => profile.settings.description.clone(),
        Some((_, Lookup::Disabled(_) | Lookup::Absent)) | None => None,
    };
    described.unwrap_or_else(|| format!("tasks of {profile}"))
}
