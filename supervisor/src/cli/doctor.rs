//! `doctor` at the command line: makes its checks in this process, so that it works even if the daemon does not
//! respond.

use super::restore::{lock, refuse_worker};
use crate::client::Client;
use crate::output::Output;
use base::failure::Failure;
use base::owner::OwnerLock;
use kernel::{BoardName, Finding};
use upkeep::doctor::{self, Examination};
use verbs::{Doctor, Status};

pub(super) async fn run(client: &Client, verb: Doctor, output: Output) -> Result<u8, Failure> {
    refuse_worker(client)?;
    let root = client.root();
    let _lock = if verb.repair { Some(lock(root)?) } else { None };
    let problems = daemon_problems(client).await?;
    let asked = Examination { replay: verb.replay, repair: verb.repair };
    output.reply::<Doctor>(&doctor::examine(root, asked, problems.as_deref())?)
}

/// Returns the problems that a daemon reports; none if no daemon responds.
async fn daemon_problems(client: &Client) -> Result<Option<Vec<Finding>>, Failure> {
    let root = client.root();
    if OwnerLock::owner(root).is_none() {
        return Ok(None);
    }
    // Any open board leads to the daemon's whole report, but some of the root's boards may be unusable.
    for name in root.board_names()?.into_iter().chain([BoardName::default()]) {
        let client = Client::new(root.clone(), name, None);
        if let Ok(status) = client.call(&Status::default()).await
            && status.daemon.is_some()
        {
            return Ok(Some(status.problems));
        }
    }
    Ok(None)
}
