//! The verbs: one file each. A verb's request is its arguments and its body; its reply is its JSON and its table.

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
mod cancel;
mod chats;
mod claim;
mod claimed;
mod comment;
mod complete;
mod consult;
mod context;
mod create;
mod creator;
mod cursor;
mod dashboard;
mod deny;
mod diagnostics;
mod diff;
mod dispatch;
mod dispatch_fleet;
mod doctor;
mod edit;
mod ended;
mod events;
mod evidence;
mod export;
mod fleet_root;
mod fork;
#[cfg(test)]
mod fuzz_tests;
mod gc;
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
mod log;
mod markdown;
mod matching;
mod messages;
mod metrics;
mod mission_control;
mod missions;
mod names;
mod note_tool_call;
mod notify_list;
mod notify_outbox;
mod notify_subscribe;
mod notify_test;
mod notify_unsubscribe;
mod obstacles;
mod of_tenant;
mod one_or_many;
#[cfg(test)]
mod page_tests;
mod pages;
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
mod reopen;
mod request_changes;
mod request_review;
mod resolve;
mod retry;
mod runs;
mod schedule;
mod schedules;
mod show;
mod spend;
mod spent;
mod stats;
mod status;
mod steer;
mod stop;
mod swarm;
mod tenants;
mod texts;
mod time_limit;
mod tools;
mod type_keys;
mod unarchive;
mod unblock;

pub(crate) use answer::Answer;
pub(crate) use approve::Approve;
pub(crate) use archive::Archive;
pub(crate) use ask::Ask;
pub(crate) use assign::Assign;
pub(crate) use attach::Attach;
pub(crate) use attach_get::AttachGet;
pub(crate) use attach_rm::AttachRm;
pub(crate) use attached_file::too_large;
pub(crate) use attachments::Attachments;
pub(crate) use backup::Backup;
pub(crate) use block::Block;
pub(crate) use boards::{
    BoardLine, CreateBoard, EditBoard, ListBoards, line as board_line, require as require_board,
    tell as tell_board,
};
pub(crate) use bulk::{Bulk, One};
pub(crate) use bulk_patch::BulkPatch;
pub(crate) use cancel::Cancel;
pub(crate) use chats::{CheckChat, ListChats};
pub(crate) use claim::Claim;
pub(crate) use comment::Comment;
pub(crate) use complete::Complete;
pub(crate) use consult::Consult;
pub(crate) use context::Context;
pub(crate) use create::{Create, place_of};
pub(crate) use creator::of_address;
pub(crate) use dashboard::{
    DashboardSessions, Link as DashboardLink, OpenDashboard, RevokeDashboard, link_lasts,
};
pub(crate) use deny::Deny;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use diff::Diff;
pub(crate) use dispatch::{Dispatch, Dispatched, Spawned};
pub(crate) use dispatch_fleet::{DispatchFleet, FleetDispatched};
pub(crate) use doctor::Doctor;
pub(crate) use events::{EventPage, Events, line as event_line, starts_later};
pub(crate) use export::Export;
pub(crate) use fork::Fork;
pub(crate) use gc::Gc;
pub(crate) use heartbeat::Heartbeat;
pub(crate) use hold::{Hold, On};
pub(crate) use holds::Holds;
pub(crate) use import::Import;
pub(crate) use init::Init;
pub(crate) use kill::Kill;
pub(crate) use lanes::{CheckLane, ListLanes, show_one as show_lane};
pub(crate) use link::{Link, Unlink};
pub(crate) use list::{Column, Format, List, ink as status_ink};
pub(crate) use log::{Log, Logged};
pub(crate) use markdown::Markdown;
pub(crate) use matching::{Matching, OnTasks, Rows};
pub(crate) use metrics::Metrics;
pub(crate) use mission_control::{CancelMission, CreateMission, PauseMission, ResumeMission};
pub(crate) use missions::{ListMissions, ShowMission};
pub(crate) use names::{Name, Named, Names};
pub(crate) use note_tool_call::NoteToolCall;
pub(crate) use notify_list::NotifyList;
pub(crate) use notify_outbox::{NotifyDrop, NotifyOutbox, NotifyRetry, WhichLetters};
pub(crate) use notify_subscribe::NotifySubscribe;
pub(crate) use notify_test::NotifyTest;
pub(crate) use notify_unsubscribe::NotifyUnsubscribe;
pub(crate) use pages::{Listed, Pages, show_next};
pub(crate) use patch::Patch;
pub(crate) use profiles::{ListProfiles, show_one as show_profile};
pub(crate) use reclaim::Reclaim;
pub(crate) use release::{NewLogin, Release};
pub(crate) use reload::Reload;
pub(crate) use remove_board::RemoveBoard;
pub(crate) use reopen::Reopen;
pub(crate) use request_changes::RequestChanges;
pub(crate) use request_review::RequestReview;
pub(crate) use resolve::Resolve;
pub(crate) use retry::Retry;
pub(crate) use runs::Runs;
pub(crate) use show::{Show, Shown, show_sandbox};
pub(crate) use spend::Spend;
pub(crate) use spent::{amounts, passed};
pub(crate) use stats::Stats;
pub(crate) use status::{Status, StatusReport, WorkerHealth, WorkerLine};
pub(crate) use steer::Steer;
pub(crate) use stop::Stop;
pub(crate) use swarm::Swarm;
pub(crate) use tenants::{ListTenants, TenantLine, TenantUsage, is_open, show_tenant};
pub(crate) use texts::{is_nobody, localized_workspace, own_task_if_none, read_profile, read_text};
pub(crate) use tools::{OfPlugin, Offered, Tools};
pub(crate) use unarchive::Unarchive;
pub(crate) use unblock::Unblock;

pub(crate) use assignees::Assignees;
pub(crate) use edit::Edit;
pub(crate) use plugins::{CallPlugin, CallPluginTool, CheckPlugin, ListPlugins, ResumePlugin};
pub(crate) use promote::Promote;
pub(crate) use propose::{Decompose, PlanMission, ReviewMission, Specify};
pub(crate) use reassign::Reassign;
pub(crate) use schedule::Schedule;
pub(crate) use schedules::{
    ListSchedules, PauseSchedule, RemoveSchedule, RunSchedule, SaveSchedule, ScheduleLine,
    show_one as show_schedule,
};
pub(crate) use type_keys::{Size as TerminalSize, Type, Typed};

use crate::api::{Entry, Routes, mount_verb};
use crate::table::table;

macro_rules! of_the_api {
    (
        $($group:literal {
            commands { $($command:ident($arguments:ty) => $_run:path,)* }
            verbs { $($verb:ident $(=> $_special:path)?,)* }
        })*
        api { $($hidden:ident,)* }
    ) => {
        /// Adds the path of every verb.
        pub(crate) fn mount(router: Routes) -> Routes {
            $($(let router = mount_verb::<$verb>(router);)*)*
            $(let router = mount_verb::<$hidden>(router);)*
            router
        }

        /// The verbs of each group, in the order of the table, and last the verbs that are no commands.
        fn groups() -> Vec<(&'static str, Vec<Entry>)> {
            vec![
                $(($group, vec![$(Entry::of::<$verb>(),)*]),)*
                ("API only", vec![$(Entry::of::<$hidden>(),)*]),
            ]
        }
    };
}

table!(of_the_api);

/// Every verb, in the order of the table.
pub(crate) fn entries() -> Vec<Entry> {
    groups().into_iter().flat_map(|(_, entries)| entries).collect()
}
