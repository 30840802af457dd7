//! `[triage]`: profiles that specify ideas, divide them, plan missions and find assignees.

use std::num::NonZeroU64;

use kernel::{Profile, ProposalKind, ReviewTerms};
use serde::Deserialize;

use base::time::duration::WrittenDuration;

/// Profiles that make proposals. Reloaded on SIGHUP, for requests from then on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TriageConfig {
    specifier: Option<Profile>,
    decomposer: Option<Profile>,
    planner: Option<Profile>,
    /// Profile that assigns tasks; without it people do.
    router: Option<Profile>,
    overseer: Option<Profile>,
    /// Number of moves after which a mission is reviewed.
    review_moves: Option<NonZeroU64>,
    /// Time without a move after which a mission is reviewed.
    review_idle: Option<WrittenDuration>,
}

impl TriageConfig {
    /// Returns the profile that makes proposals of a kind. Only routing has no default profile.
    pub fn assignee(&self, kind: ProposalKind) -> Option<Profile> {
        let (configured, default) = match kind {
            ProposalKind::Specify => (&self.specifier, Some("specifier")),
            ProposalKind::Decompose => (&self.decomposer, Some("decomposer")),
            ProposalKind::Plan => (&self.planner, Some("planner")),
            ProposalKind::Route => (&self.router, None),
            ProposalKind::Progress => (&self.overseer, Some("overseer")),
        };
        configured.clone().or_else(|| default.and_then(|name| name.parse().ok()))
    }

    /// Returns the configuration key of a kind.
    pub fn key(kind: ProposalKind) -> &'static str {
        match kind {
            ProposalKind::Specify => "specifier",
            ProposalKind::Decompose => "decomposer",
            ProposalKind::Plan => "planner",
            ProposalKind::Route => "router",
            ProposalKind::Progress => "overseer",
        }
    }

    /// Returns the conditions under which missions are reviewed automatically.
    pub fn review_terms(&self) -> ReviewTerms {
        ReviewTerms {
            moves: self.review_moves.map(NonZeroU64::get),
            idle: self.review_idle.map(WrittenDuration::duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_its_shipped_profile_unless_another_is_named_and_nobody_routes_by_default() {
        let config: TriageConfig = toml::from_str("specifier = \"ann\"\n").unwrap();
        let name = |kind| config.assignee(kind).map(|name| name.to_string());
        assert_eq!(name(ProposalKind::Specify).as_deref(), Some("ann"));
        assert_eq!(name(ProposalKind::Decompose).as_deref(), Some("decomposer"));
        assert_eq!(name(ProposalKind::Plan).as_deref(), Some("planner"));
        assert_eq!(name(ProposalKind::Route), None);
        assert!(toml::from_str::<TriageConfig>("reviewer = \"ann\"").is_err());
    }
}
