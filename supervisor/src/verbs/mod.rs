//! The verbs: one file each. A verb's request is its arguments and its body; its reply is its JSON and its table.

mod approve;
mod archive;
mod assign;
mod assignees;
mod backup;
mod block;
mod bulk;
mod claim;
mod comment;
mod complete;
mod context;
mod create;
mod dispatch;
mod edit;
mod events;
mod heartbeat;
mod init;
mod link;
mod list;
mod log;
mod patch;
mod promote;
mod reassign;
mod reclaim;
mod request_changes;
mod request_review;
mod runs;
mod schedule;
mod show;
mod stats;
mod status;
mod stop;
mod texts;
mod unblock;

pub(crate) use approve::Approve;
pub(crate) use archive::Archive;
pub(crate) use assign::Assign;
pub(crate) use backup::Backup;
pub(crate) use block::Block;
pub(crate) use claim::Claim;
pub(crate) use comment::Comment;
pub(crate) use complete::Complete;
pub(crate) use context::Context;
pub(crate) use create::Create;
pub(crate) use dispatch::{Dispatch, Dispatched, Spawned};
pub(crate) use events::{Events, line as event_line};
pub(crate) use heartbeat::Heartbeat;
pub(crate) use init::Init;
pub(crate) use link::{Link, Unlink};
pub(crate) use list::List;
pub(crate) use log::Log;
pub(crate) use patch::Patch;
pub(crate) use reclaim::Reclaim;
pub(crate) use request_changes::RequestChanges;
pub(crate) use request_review::RequestReview;
pub(crate) use runs::Runs;
pub(crate) use show::Show;
pub(crate) use stats::Stats;
pub(crate) use status::Status;
pub(crate) use stop::Stop;
pub(crate) use unblock::Unblock;

pub(crate) use assignees::Assignees;
pub(crate) use edit::Edit;
pub(crate) use promote::Promote;
pub(crate) use reassign::Reassign;
pub(crate) use schedule::Schedule;

use crate::api::{Routes, mount_verb};

/// Adds the path of every verb.
pub(crate) fn mount(router: Routes) -> Routes {
    let router = mount_verb::<Approve>(router);
    let router = mount_verb::<Archive>(router);
    let router = mount_verb::<RequestChanges>(router);
    let router = mount_verb::<RequestReview>(router);
    let router = mount_verb::<Assign>(router);
    let router = mount_verb::<Backup>(router);
    let router = mount_verb::<Block>(router);
    let router = mount_verb::<Claim>(router);
    let router = mount_verb::<Comment>(router);
    let router = mount_verb::<Complete>(router);
    let router = mount_verb::<Context>(router);
    let router = mount_verb::<Create>(router);
    let router = mount_verb::<Dispatch>(router);
    let router = mount_verb::<Events>(router);
    let router = mount_verb::<Heartbeat>(router);
    let router = mount_verb::<Init>(router);
    let router = mount_verb::<Link>(router);
    let router = mount_verb::<List>(router);
    let router = mount_verb::<Log>(router);
    let router = mount_verb::<Patch>(router);
    let router = mount_verb::<Reclaim>(router);
    let router = mount_verb::<Runs>(router);
    let router = mount_verb::<Show>(router);
    let router = mount_verb::<Stats>(router);
    let router = mount_verb::<Status>(router);
    let router = mount_verb::<Stop>(router);
    let router = mount_verb::<Unblock>(router);
    let router = mount_verb::<Assignees>(router);
    let router = mount_verb::<Edit>(router);
    let router = mount_verb::<Promote>(router);
    let router = mount_verb::<Reassign>(router);
    let router = mount_verb::<Schedule>(router);
    mount_verb::<Unlink>(router)
}
