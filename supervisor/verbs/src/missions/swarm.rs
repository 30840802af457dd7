//! `swarm`: creates parallel workers, a verifier and a synthesizer around a shared blackboard.

use std::str::FromStr;

use kernel::{NewSwarm, Profile, SwarmWorker, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notify::default_subscriber;
use crate::tasks::obstacles;
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Ink, Screen};

/// Create a swarm: several workers on one goal, then a verifier and a synthesizer
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(override_usage = "supervisor swarm [OPTIONS] --worker <NAME> --verifier <NAME>
                        --synthesizer <NAME> <GOAL>")]
#[command(after_help = "\
Either the whole swarm is created or nothing. The root task is done from the start; its
comments that begin with `[swarm:blackboard] ` are the swarm's shared blackboard.

Examples:
  supervisor swarm 'which database fits us?' --worker researcher \\
      --worker analyst --verifier reviewer --synthesizer writer
  supervisor swarm 'the quarterly report' --worker 'ann:sales figures' \\
      --worker 'bob:costs:spreadsheets,charts' --verifier vera \\
      --synthesizer sid --json")]
pub struct Swarm {
    /// The common goal
    pub goal: String,
    /// A worker: NAME, NAME:TITLE or NAME:TITLE:SKILL,SKILL (repeatable)
    #[arg(long = "worker", value_name = "NAME", required = true)]
    pub workers: Vec<WorkerSpec>,
    /// The profile that checks their work
    #[arg(long, value_name = "NAME")]
    pub verifier: Profile,
    /// The profile that combines the results
    #[arg(long, value_name = "NAME")]
    pub(crate) synthesizer: Profile,
    /// Its tenant
    #[arg(long, value_name = "NAME", env = "SUPERVISOR_TENANT")]
    #[serde(default)]
    pub tenant: Option<Tenant>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0", value_parser = parse::priority)]
    #[serde(default)]
    pub priority: i64,
    /// The requester [default: the caller]
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub created_by: Option<String>,
    /// A second call with this key returns the same swarm
    #[arg(long, value_name = "KEY")]
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Recipient of notifications: a channel, as with `create --notify`; `none` for no notifications
    #[arg(long, value_name = "CHANNEL", env = "SUPERVISOR_CHANNEL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
}

/// A worker as it is written: `PROFILE[:TITLE[:SKILL,SKILL]]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WorkerSpec {
    profile: Profile,
    title: Option<String>,
    skills: Vec<String>,
}

impl FromStr for WorkerSpec {
    type Err = kernel::ParseError;

    fn from_str(text: &str) -> Result<Self, kernel::ParseError> {
        let (profile, rest) = text.split_once(':').unwrap_or((text, ""));
        let (title, skills) = rest.rsplit_once(':').unwrap_or((rest, ""));
        let skills: Vec<String> =
            skills.split(',').map(str::trim).filter(|skill| !skill.is_empty()).map(str::to_owned).collect();
        // Names of skills have no spaces, so this colon is part of the title, as in `Plan: compare two options`.
        let (title, skills) = if skills.is_empty() || skills.iter().any(|skill| skill.contains(' ')) {
            (rest, Vec::new())
        } else {
            (title, skills)
        };
        let title = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
        Ok(WorkerSpec { profile: profile.trim().parse()?, title, skills })
    }
}

impl TryFrom<String> for WorkerSpec {
    type Error = kernel::ParseError;

    fn try_from(text: String) -> Result<Self, kernel::ParseError> {
        text.parse()
    }
}

impl From<WorkerSpec> for String {
    fn from(spec: WorkerSpec) -> String {
        let mut text = spec.profile.to_string();
        if let Some(title) = spec.title {
            text = format!("{text}:{title}");
        }
        if !spec.skills.is_empty() {
            text = format!("{text}:{}", spec.skills.join(","));
        }
        text
    }
}

/// The created swarm, and warnings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Swarming {
    #[serde(flatten)]
    swarm: kernel::Swarm,
    /// Obstacles that currently keep tasks of it from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Verb for Swarm {
    verb! { "swarm": Operator, Write => Swarming }

    async fn run(self, call: Call) -> Result<Swarming, Failure> {
        let mut profiles: Vec<&Profile> = self.workers.iter().map(|worker| &worker.profile).collect();
        profiles.extend([&self.verifier, &self.synthesizer]);
        profiles.sort();
        profiles.dedup();
        let mut warnings = Vec::new();
        for profile in profiles {
            warnings.extend(obstacles::obstacle(profile, None, None, &call).await?);
        }
        warnings.dedup();
        for worker in &self.workers {
            warnings.extend(obstacles::missing_skills(&worker.skills, &call));
        }
        let workers = self.workers.into_iter();
        let new = NewSwarm {
            goal: self.goal,
            workers: workers
                .map(|worker| SwarmWorker {
                    profile: worker.profile,
                    title: worker.title,
                    skills: worker.skills,
                })
                .collect(),
            verifier: self.verifier,
            synthesizer: self.synthesizer,
            tenant: self.tenant,
            priority: self.priority,
            created_by: self.created_by,
            idempotency_key: self.idempotency_key,
            channel: default_subscriber::channel(&call, self.notify.as_deref())?,
        };
        call.write(move |board, actor| Ok(Swarming { swarm: board.swarm(&new, actor)?, warnings })).await
    }
}

impl Command for Swarm {
    fn show(reply: &Swarming, screen: &mut Screen) {
        let swarm = &reply.swarm;
        let root = screen.paint(Ink::Bold, swarm.root_id.as_str());
        screen.line(format!("Swarm {root}"));
        let workers: Vec<&str> = swarm.worker_ids.iter().map(kernel::TaskId::as_str).collect();
        screen.hanging("  workers      ", &workers.join(" "));
        screen.line(format!("  verifier     {}", swarm.verifier_id));
        screen.line(format!("  synthesizer  {}", swarm.synthesizer_id));
    }

    fn warnings(reply: &Swarming) -> &[String] {
        &reply.warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_a_profile_and_perhaps_a_title_and_skills() {
        let parsed = |text: &str| {
            let spec: WorkerSpec = text.parse().unwrap();
            (spec.profile.to_string(), spec.title.clone(), spec.skills.join(" "), String::from(spec))
        };
        let title = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("ann"), ("ann".into(), None, String::new(), "ann".into()));
        assert_eq!(parsed("ann:costs"), ("ann".into(), title("costs"), String::new(), "ann:costs".into()));
        let skilled = "ann:the costs:charts,tables";
        assert_eq!(
            parsed(skilled),
            ("ann".into(), title("the costs"), "charts tables".into(), skilled.into())
        );
        let colon = "ann:Plan: compare two options";
        assert_eq!(
            parsed(colon),
            ("ann".into(), title("Plan: compare two options"), String::new(), colon.into())
        );
        assert!(":x".parse::<WorkerSpec>().is_err());
    }
}
