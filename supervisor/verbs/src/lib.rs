//! The verbs, one file each, in a directory for each group. The request of a verb is both its arguments on the command line
//! and its body in the API; its reply is both the JSON and the table that a person reads.
//!
//! See decision 0084.

mod attachments;
mod boards;
mod clients;
mod definitions;
#[cfg(test)]
mod fuzz_tests;
mod holds;
mod missions;
mod notify;
mod operations;
#[cfg(test)]
mod page_tests;
mod review;
mod runs;
#[cfg(test)]
mod short_id_tests;
mod tasks;
mod views;
mod workers;

pub use attachments::attach::Attach;
pub use attachments::file::too_large;
pub use attachments::get::AttachGet;
pub use attachments::list::Attachments;
pub use attachments::rm::AttachRm;
pub use boards::backup::Backup;
pub use boards::details::{
    BoardLine, CreateBoard, EditBoard, ListBoards, line as board_line, require as require_board,
    tell as tell_board,
};
pub use boards::events::{EventPage, Events, line as event_line, starts_later};
pub use boards::export::Export;
pub use boards::import::Import;
pub use boards::init::Init;
pub use boards::remove::RemoveBoard;
pub use clients::markdown::Markdown;
pub use clients::names::{NameKind, NameLine, Names};
pub use clients::note_tool_call::NoteToolCall;
pub use clients::resolve::{Resolve, ResolveReply};
pub use clients::tools::{OfPlugin, Offered, Tools};
pub use definitions::lanes::{CheckLane, ListLanes, show_one as show_lane};
pub use definitions::profiles::{ListProfiles, show_one as show_profile};
pub use definitions::tenants::{ListTenants, TenantLine, TenantUsage, is_open, show_tenant};
pub use holds::hold::{Hold, HoldTarget};
pub use holds::list::Holds;
pub use holds::release::{NewLogin, Release};
pub use missions::control::{CancelMission, CreateMission, PauseMission, ResumeMission};
pub use missions::list::{ListMissions, ShowMission};
pub use missions::swarm::Swarm;
pub use notify::chats::{CheckChat, ListChats};
pub use notify::default_subscriber::of_address;
pub use notify::list::NotifyList;
pub use notify::outbox::{NotifyDrop, NotifyOutbox, NotifyRetry, WhichLetters};
pub use notify::subscribe::NotifySubscribe;
pub use notify::test_message::NotifyTest;
pub use notify::unsubscribe::NotifyUnsubscribe;
pub use operations::dashboard::{
    DashboardLink, DashboardSessions, OpenDashboard, RevokeDashboard, link_lasts,
};
pub use operations::diagnostics::Diagnostics;
pub use operations::doctor::Doctor;
pub use operations::gc::Gc;
pub use operations::metrics::Metrics;
pub use operations::reload::Reload;
pub use operations::spend::Spend;
pub use operations::stats::Stats;
pub use operations::status::{Status, StatusReport, WorkerHealth, WorkerLine};
pub use operations::stop::Stop;
pub use review::answer::Answer;
pub use review::approve::Approve;
pub use review::deny::Deny;
pub use review::request_changes::RequestChanges;
pub use review::request_review::RequestReview;
pub use runs::diff::Diff;
pub use runs::dispatch::{Dispatch, Dispatched, Spawned};
pub use runs::list::Runs;
pub use runs::log::{Log, LogReply};
pub use runs::steer::Steer;
pub use tasks::archive::Archive;
pub use tasks::assign::Assign;
pub use tasks::bulk::{Bulk, TaskResult};
pub use tasks::bulk_patch::BulkPatch;
pub use tasks::comment::Comment;
pub use tasks::create::{Create, place_of};
pub use tasks::dispatch_fleet::{DispatchFleet, FleetDispatched};
pub use tasks::fork::Fork;
pub use tasks::kill::Kill;
pub use tasks::link::{Link, Unlink};
pub use tasks::list::{Column, Format, List, ink as status_ink};
pub use tasks::of_tasks::{Cancel, Reopen, Retry, Unarchive, Unblock};
pub use tasks::patch::Patch;
pub use tasks::reclaim::Reclaim;
pub use tasks::selection::{Matching, OnTasks, Rows};
pub use tasks::show::{Show, ShownTask, show_sandbox};
pub use views::pages::{Listed, Pages, show_next};
pub use views::parse::{is_nobody, local_workspace, own_task_if_none, read_profile, read_text};
pub use views::usage_text::{amounts, passed};
pub use workers::ask::Ask;
pub use workers::block::Block;
pub use workers::claim::Claim;
pub use workers::complete::Complete;
pub use workers::consult::Consult;
pub use workers::context::Context;
pub use workers::heartbeat::Heartbeat;

pub use definitions::plugins::{CallPlugin, CallPluginTool, CheckPlugin, ListPlugins, ResumePlugin};
pub use definitions::schedules::{
    ListSchedules, PauseSchedule, RemoveSchedule, RunSchedule, SaveSchedule, ScheduleLine,
    show_one as show_schedule,
};
pub use missions::propose::{Decompose, PlanMission, ReviewMission, Specify};
pub use runs::type_keys::{RequestedSize, Type, Typed};
pub use tasks::assignees::Assignees;
pub use tasks::edit::Edit;
pub use tasks::promote::Promote;
pub use tasks::reassign::Reassign;
pub use tasks::schedule::Schedule;

use api::{Routes, VerbEntry, mount_verb};
use base::table;

macro_rules! of_the_api {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $_run:path,)* }
            verbs { $($verb:ident $(=> $_special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
        nouns { $($nouns:tt)* }
    ) => {
        /// The verbs of each group, in the order of the table, and last the verbs that are no commands.
        fn groups() -> Vec<(&'static str, Vec<VerbEntry>)> {
            vec![
                $(($group, vec![$(VerbEntry::for_verb::<$verb>(),)*]),)*
                ("API only", vec![$(VerbEntry::for_verb::<$hidden>(),)*]),
            ]
        }
    };
}

table!(of_the_api);

/// Adds the path of every verb.
pub fn mount(router: Routes) -> Routes {
    entries().iter().fold(router, mount_verb)
}

/// Every verb, in the order of the table.
pub fn entries() -> Vec<VerbEntry> {
    groups().into_iter().flat_map(|(_, entries)| entries).collect()
}
