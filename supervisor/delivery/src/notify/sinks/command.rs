//! Sends a message by a program of the operator. The program gets the message as JSON on standard input, is confined by
//! a policy, and has a time limit. Only the first bytes of its output are kept.

use std::collections::BTreeMap;

use kernel::BoardId;
use policies::{Identity, Policy};

use super::Sending;
use crate::notify::form;
use crate::notify::trail::{Trail, Undelivered};
use crate::program::{Flood, Prepared, Program};
use base::failure::Failure;
use setup::config::notify::program;

/// Limit on the kept output of the program, in bytes.
const OUTPUT: usize = 4096;
/// Board id that reserves the range of uids for programs of channels. No board has it.
const CHANNELS: u128 = 1;

pub(super) async fn send(sending: &Sending<'_>, trail: &mut Trail) -> Result<(), Undelivered> {
    let policy = policy(sending);
    let policy = trail.note("policy", policy, sending.wire.channel.policy.clone().unwrap_or_default())?;
    let place = sending.wire.service.root().channel_home(sending.wire.name);
    let prepared = prepare(sending, &policy, &place).await;
    let prepared = prepared.map_err(|failure| Undelivered::later(failure.message));
    let prepared = trail.note("prepare", prepared, "a directory of its own")?;
    let outcome = execute(sending, prepared).await;
    trail.note("run", outcome, "exit code 0")
}

fn policy(sending: &Sending<'_>) -> Result<Policy, Undelivered> {
    let roster = sending.wire.service.roster();
    let name = sending.wire.channel.policy.as_deref().unwrap_or_default();
    roster.policies().without_proxy(name, "the program of a channel").cloned().map_err(Undelivered::later)
}

async fn prepare<'a>(
    sending: &'a Sending<'_>,
    policy: &'a Policy,
    place: &'a std::path::Path,
) -> Result<Prepared<'a>, Failure> {
    let (service, config) = (sending.wire.service, sending.wire.service.config());
    let identity = if nix::unistd::geteuid().is_root() {
        let range = service.worker_uids().range(BoardId(uuid::Uuid::from_u128(CHANNELS)), &config.worker)?;
        Some(Identity { uid: range.first, gid: range.first })
    } else {
        None
    };
    let program = Program {
        argv: sending.wire.channel.run.as_deref().unwrap_or_default(),
        policy,
        identity,
        place,
        execute: program(sending.wire.channel).into_iter().collect(),
        directory: None,
        workspace: None,
        variables: BTreeMap::new(),
        limit: sending.wire.channel.timeout.duration(),
        kept: OUTPUT,
        flood: Flood::Cut,
    };
    program.prepare(service).await
}

/// Runs the program. Exit code 0 accepts the message.
async fn execute(sending: &Sending<'_>, prepared: Prepared<'_>) -> Result<(), Undelivered> {
    let body = form::of(sending.parcel).to_string();
    let ended = prepared.run(body.as_bytes()).await.map_err(|e| Undelivered::later(e.to_string()))?;
    ended.failure().map_or(Ok(()), |why| Err(Undelivered::later(why)))
}
