//! The verbs, one file each. The request of a verb is both its arguments on the command line and its body in the API; its
//! reply is both the JSON and the table that a person reads.
//!
//! See decision 0084.

mod answer;
mod approve;
mod archive;
mod ask;
mod assign;
mod assignees;
mod attach;
mod attach_get;
mod attach_rm;
mod attached_file;
mod attachments;
mod backup;
mod block;
mod boards;
mod bulk;
mod bulk_patch;
mod chats;
mod claim;
mod comment;
mod complete;
mod consult;
mod context;
mod create;
mod cursor;
mod dashboard;
mod deny;
mod diagnostics;
mod diff;
mod dispatch;
mod dispatch_fleet;
mod doctor;
mod edit;
mod end_text;
mod events;
mod evidence;
mod export;
mod fleet_root;
mod fork;
#[cfg(test)]
mod fuzz_tests;
mod gc;
mod handoff_check;
mod heartbeat;
mod hold;
mod holds;
mod import;
mod init;
mod kill;
mod lane_needs;
mod lane_program;
mod lanes;
mod line_comment;
mod link;
mod list;
mod list_or_one;
mod log;
mod markdown;
mod messages;
mod metrics;
mod mission_control;
mod missions;
mod names;
mod note_tool_call;
mod notify_default;
mod notify_list;
mod notify_outbox;
mod notify_subscribe;
mod notify_test;
mod notify_unsubscribe;
mod obstacles;
mod of_tasks;
#[cfg(test)]
mod page_tests;
mod pages;
mod parse;
mod patch;
mod plugins;
mod profiles;
mod promote;
mod propose;
mod reassign;
mod reclaim;
mod release;
mod reload;
mod remove_board;
mod request_changes;
mod request_review;
mod resolve;
mod runs;
mod schedule;
mod schedules;
mod selection;
#[cfg(test)]
mod short_id_tests;
mod show;
mod spend;
mod stats;
mod status;
mod steer;
mod stop;
mod swarm;
mod tenant_defaults;
mod tenants;
mod time_limit;
mod tools;
mod type_keys;
mod usage_text;

pub use answer::Answer;
pub use approve::Approve;
pub use archive::Archive;
pub use ask::Ask;
pub use assign::Assign;
pub use attach::Attach;
pub use attach_get::AttachGet;
pub use attach_rm::AttachRm;
pub use attached_file::too_large;
pub use attachments::Attachments;
pub use backup::Backup;
pub use block::Block;
pub use boards::{
    BoardLine, CreateBoard, EditBoard, ListBoards, line as board_line, require as require_board,
    tell as tell_board,
};
pub use bulk::{Bulk, TaskResult};
pub use bulk_patch::BulkPatch;
pub use chats::{CheckChat, ListChats};
pub use claim::Claim;
pub use comment::Comment;
pub use complete::Complete;
pub use consult::Consult;
pub use context::Context;
pub use create::{Create, place_of};
pub use dashboard::{DashboardLink, DashboardSessions, OpenDashboard, RevokeDashboard, link_lasts};
pub use deny::Deny;
pub use diagnostics::Diagnostics;
pub use diff::Diff;
pub use dispatch::{Dispatch, Dispatched, Spawned};
pub use dispatch_fleet::{DispatchFleet, FleetDispatched};
pub use doctor::Doctor;
pub use events::{EventPage, Events, line as event_line, starts_later};
pub use export::Export;
pub use fork::Fork;
pub use gc::Gc;
pub use heartbeat::Heartbeat;
pub use hold::{Hold, HoldTarget};
pub use holds::Holds;
pub use import::Import;
pub use init::Init;
pub use kill::Kill;
pub use lanes::{CheckLane, ListLanes, show_one as show_lane};
pub use link::{Link, Unlink};
pub use list::{Column, Format, List, ink as status_ink};
pub use log::{Log, LogReply};
pub use markdown::Markdown;
pub use metrics::Metrics;
pub use mission_control::{CancelMission, CreateMission, PauseMission, ResumeMission};
pub use missions::{ListMissions, ShowMission};
pub use names::{NameKind, NameLine, Names};
pub use note_tool_call::NoteToolCall;
pub use notify_default::of_address;
pub use notify_list::NotifyList;
pub use notify_outbox::{NotifyDrop, NotifyOutbox, NotifyRetry, WhichLetters};
pub use notify_subscribe::NotifySubscribe;
pub use notify_test::NotifyTest;
pub use notify_unsubscribe::NotifyUnsubscribe;
pub use of_tasks::{Cancel, Reopen, Retry, Unarchive, Unblock};
pub use pages::{Listed, Pages, show_next};
pub use parse::{is_nobody, local_workspace, own_task_if_none, read_profile, read_text};
pub use patch::Patch;
pub use profiles::{ListProfiles, show_one as show_profile};
pub use reclaim::Reclaim;
pub use release::{NewLogin, Release};
pub use reload::Reload;
pub use remove_board::RemoveBoard;
pub use request_changes::RequestChanges;
pub use request_review::RequestReview;
pub use resolve::{Resolve, ResolveReply};
pub use runs::Runs;
pub use selection::{Matching, OnTasks, Rows};
pub use show::{Show, ShownTask, show_sandbox};
pub use spend::Spend;
pub use stats::Stats;
pub use status::{Status, StatusReport, WorkerHealth, WorkerLine};
pub use steer::Steer;
pub use stop::Stop;
pub use swarm::Swarm;
pub use tenants::{ListTenants, TenantLine, TenantUsage, is_open, show_tenant};
pub use tools::{OfPlugin, Offered, Tools};
pub use usage_text::{amounts, passed};

pub use assignees::Assignees;
pub use edit::Edit;
pub use plugins::{CallPlugin, CallPluginTool, CheckPlugin, ListPlugins, ResumePlugin};
pub use promote::Promote;
pub use propose::{Decompose, PlanMission, ReviewMission, Specify};
pub use reassign::Reassign;
pub use schedule::Schedule;
pub use schedules::{
    ListSchedules, PauseSchedule, RemoveSchedule, RunSchedule, SaveSchedule, ScheduleLine,
    show_one as show_schedule,
};
pub use type_keys::{RequestedSize, Type, Typed};

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
