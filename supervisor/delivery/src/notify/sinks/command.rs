//! Sends a message by a program of the operator. The program gets the message as JSON on standard input, is confined by
//! a policy, and has a time limit. Only the first bytes of its output are kept.

use std::collections::BTreeMap;

use kernel::BoardId;
use policies::{Identity, Policy};

use super::Delivery;
use crate::notify::form;
use crate::notify::step_log::{StepLog, Undelivered};
use crate::program::{ExcessOutput, PreparedProgram, Program};
use base::failure::Failure;
use setup::config::notify::program;

/// Limit on the kept output of the program, in bytes.
const OUTPUT: usize = 4096;
/// Board id that reserves the range of uids for programs of channels. No board has it.
const CHANNELS: u128 = 1;

pub(super) async fn send(delivery: &Delivery<'_>, step_log: &mut StepLog) -> Result<(), Undelivered> {
    let policy = policy(delivery);
    let policy =
        step_log.record("policy", policy, delivery.channel.settings.policy.clone().unwrap_or_default())?;
    let place = delivery.channel.service.root().channel_home(delivery.channel.name);
    let prepared = prepare(delivery, &policy, &place).await;
    let prepared = prepared.map_err(|failure| Undelivered::later(failure.message));
    let prepared = step_log.record("prepare", prepared, "a directory of its own")?;
    let outcome = execute(delivery, prepared).await;
    step_log.record("run", outcome, "exit code 0")
}

fn policy(delivery: &Delivery<'_>) -> Result<Policy, Undelivered> {
    let roster = delivery.channel.service.roster();
    let name = delivery.channel.settings.policy.as_deref().unwrap_or_default();
    roster.policies().without_proxy(name, "the program of a channel").cloned().map_err(Undelivered::later)
}

async fn prepare<'a>(
    delivery: &'a Delivery<'_>,
    policy: &'a Policy,
    place: &'a std::path::Path,
) -> Result<PreparedProgram<'a>, Failure> {
    let (service, config) = (delivery.channel.service, delivery.channel.service.config());
    let identity = if nix::unistd::geteuid().is_root() {
        let range = service.worker_uids().range(BoardId(uuid::Uuid::from_u128(CHANNELS)), &config.worker)?;
        Some(Identity { uid: range.first, gid: range.first })
    } else {
        None
    };
    let program = Program {
        argv: delivery.channel.settings.run.as_deref().unwrap_or_default(),
        policy,
        identity,
        directory_of_start: place,
        execute: program(delivery.channel.settings).into_iter().collect(),
        directory: None,
        workspace: None,
        variables: BTreeMap::new(),
        limit: delivery.channel.settings.timeout.duration(),
        kept: OUTPUT,
        flood: ExcessOutput::Cut,
    };
    program.prepare(service).await
}

/// Runs the program. Exit code 0 accepts the message.
async fn execute(delivery: &Delivery<'_>, prepared: PreparedProgram<'_>) -> Result<(), Undelivered> {
    let body = form::from_batch(delivery.batch).to_string();
    let ended = prepared.run(body.as_bytes()).await.map_err(|e| Undelivered::later(e.to_string()))?;
    ended.failure().map_or(Ok(()), |why| Err(Undelivered::later(why)))
}
