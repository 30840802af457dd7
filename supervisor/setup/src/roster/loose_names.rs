//! Finds dangling names in the configuration: pools without places, and assignees and lanes that do not exist. A
//! dangling name is a warning and no error, because its target may be added later.

use kernel::{Finding, FindingCode, Pool, Profile, ProposalKind};

use super::{Lookup, Roster};
use crate::config::Config;
use crate::config::triage::TriageConfig;

/// Makes the finding about a name in the configuration.
fn loose(text: String, advice: String) -> Finding {
    Finding::warning(FindingCode::UnknownName, text).about("the configuration").advice(advice)
}

/// Returns a warning if `[pools]` lacks a pool that `subject` uses.
pub fn missing_pool(pool: &Pool, subject: &str, config: &Config) -> Option<Finding> {
    (!config.pools.contains_key(pool)).then(|| {
        loose(
            format!("{subject} takes places of the pool {pool}, which the configuration does not have: nothing starts"),
            format!("write {pool} = 1 into [pools] of supervisor.toml, and reload"),
        )
    })
}

impl Roster {
    /// Returns the dangling names in the configuration and in the files of profiles and lanes.
    pub fn loose_names(&self, config: &Config) -> Vec<Finding> {
        let of_profiles = self.profiles().flat_map(|(name, found)| {
            let Lookup::Usable(definition) = found else { return Vec::new() };
            let subject = format!("the profile {name}");
            definition.settings.pools.iter().filter_map(|pool| missing_pool(pool, &subject, config)).collect()
        });
        let of_lanes = self.lanes.names().flat_map(|name| {
            let Some(lane) = self.lanes.get(name) else { return Vec::new() };
            let subject = format!("the lane {name}");
            lane.pools.iter().filter_map(|pool| missing_pool(pool, &subject, config)).collect()
        });
        let limits = &config.limits;
        let of_caps = limits.profiles.keys().filter(|name| !self.knows(name)).map(|name| {
            loose(
                format!("limits.profiles caps {name}, and no profile or lane has that name"),
                meant(name.as_str(), self.nearest(name.as_str()), "supervisor assignees"),
            )
        });
        let is_no_lane = |name: &&Profile| !self.lanes.has(*name);
        let of_lane_caps = limits.lanes.keys().filter(is_no_lane).map(|name| {
            loose(
                format!("limits.lanes caps {name}, and no lane has that name"),
                meant(name.as_str(), None, "supervisor lane list"),
            )
        });
        let asked = ProposalKind::ALL.iter().filter_map(|kind| {
            let name = config.triage.assignee(*kind).filter(|name| !self.knows(name))?;
            Some((format!("triage.{} asks {name}", TriageConfig::key(*kind)), name))
        });
        let offered = config.a2a.profiles.iter().filter(|name| !self.knows(name));
        let offered = offered.map(|name| (format!("a2a.profiles offers {name}"), name.clone()));
        let of_others = asked.chain(offered).map(|(what, name)| {
            loose(
                format!("{what}, and no profile or lane has that name"),
                meant(name.as_str(), self.nearest(name.as_str()), "supervisor assignees"),
            )
        });
        of_profiles.chain(of_lanes).chain(of_caps).chain(of_lane_caps).chain(of_others).collect()
    }
}

/// Returns the remedy for an unknown name.
fn meant(name: &str, nearest: Option<String>, list: &str) -> String {
    let nearest = nearest.filter(|nearest| nearest != name);
    let nearest = nearest.map(|nearest| format!("{nearest} is like it; ")).unwrap_or_default();
    format!("{nearest}correct the name in supervisor.toml, or remove it (`{list}` lists the names)")
}
