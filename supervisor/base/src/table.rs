//! Table of verbs and commands, in the order and groups of `supervisor --help`. The API paths and the command line
//! are generated from it.

/// Passes the table to a macro. A verb is an API request and a command; the function after its arrow, if any,
/// replaces the default of sending the request and printing the reply. An entry under `commands` is a command only;
/// an entry under `api` is an API request only. Names are types of the crate `verbs`; function paths are resolved
/// where the table is used.
#[macro_export]
macro_rules! table {
    ($use:ident) => {
        $use! {
            "Start here" {
                commands {
                    Demo(demo::Demo) => run_demo,
                    Daemon(serve::Daemon) => serve::run,
                    Run(run::Run) => run::run,
                }
                verbs {
                    Init,
                    Create => create::run,
                    Dispatch => dispatch::run,
                    Status => follow::status,
                }
            }
            "Tasks" {
                commands {
                    Mission(mission::MissionCommand) => mission::run,
                }
                verbs {
                    List => list::run,
                    Show => show::run,
                    Edit => edit::run,
                    Assign => assign::run,
                    Reassign,
                    Assignees => pages::run,
                    Promote => matching::run,
                    Specify,
                    Decompose,
                    Schedule,
                    Link,
                    Unlink,
                    Comment,
                    Attach => attach::run,
                    Attachments,
                    AttachGet => attach_get::run,
                    AttachRm,
                    Swarm,
                    DispatchFleet => dispatch_fleet::run,
                    Retry => matching::run,
                    Cancel => matching::run,
                    Kill => matching::run,
                    Archive => matching::run,
                    Unarchive => matching::run,
                    Reopen => matching::run,
                }
            }
            "Runs" {
                commands {
                    Dashboard(dashboard::Dashboard) => dashboard::run,
                    Logs(logs::Logs) => logs::run,
                    Wait(wait::Wait) => wait::run,
                    Top(top::Top) => run_top,
                    Tail(follow::Tail) => follow::tail,
                    Watch(follow::Watch) => follow::watch,
                    Mcp(mcp::Mcp) => mcp::run,
                }
                verbs {
                    Runs => pages::run,
                    Steer,
                    Type,
                    Fork,
                    Context,
                    Claim,
                    Heartbeat,
                    Complete,
                    Block,
                    Reclaim,
                }
            }
            "Review and questions" {
                commands {}
                verbs {
                    Diff,
                    RequestReview,
                    Approve,
                    Deny,
                    RequestChanges,
                    Answer => answer::run,
                    Ask,
                    Consult,
                    Unblock => matching::run,
                }
            }
            "Boards" {
                commands {
                    Boards(boards::Boards) => boards::run,
                    Restore(restore::Restore) => restore::run,
                    Notify(notify::Notify) => notify::run,
                    Chat(chat::Chat) => chat::run,
                }
                verbs {
                    Backup,
                    Export => transfer::export,
                    Import => transfer::import,
                    Gc => gc::run,
                    NotifySubscribe,
                    NotifyList,
                    NotifyUnsubscribe,
                }
            }
            "Operations" {
                commands {
                    Lane(lane::Lane) => lane::run,
                    Profile(profile::ProfileCommand) => profile::run,
                    Tenant(tenant::TenantCommand) => tenant::run,
                    Schedules(schedules::Schedules) => schedules::run,
                    Plugin(plugin::PluginCommand) => plugin::run,
                    Login(login::Login) => login::run,
                    Service(service::Service) => service::run,
                    Upgrade(upgrade::Upgrade) => upgrade::run,
                }
                verbs {
                    Doctor => doctor::run,
                    Diagnostics,
                    Stats,
                    Spend,
                    Metrics,
                    Events,
                    Hold => matching::run,
                    Release => matching::run,
                    Holds,
                    Stop => stop::run,
                }
            }
            "Reference" {
                commands {
                    Completions(manual::Completions) => manual::completions,
                    Man(manual::Man) => manual::man,
                }
                verbs {}
            }
            api {
                Log,
                Resolve,
                Names,
                Markdown,
                Patch,
                BulkPatch,
                ListMissions,
                CreateMission,
                ShowMission,
                PlanMission,
                ReviewMission,
                PauseMission,
                ResumeMission,
                CancelMission,
                ListBoards,
                CreateBoard,
                EditBoard,
                RemoveBoard,
                Tools,
                NoteToolCall,
                ListLanes,
                CheckLane,
                ListProfiles,
                ListTenants,
                TenantUsage,
                ListSchedules,
                SaveSchedule,
                PauseSchedule,
                RunSchedule,
                RemoveSchedule,
                ListPlugins,
                CheckPlugin,
                ResumePlugin,
                CallPlugin,
                CallPluginTool,
                Reload,
                NotifyTest,
                NotifyOutbox,
                NotifyRetry,
                NotifyDrop,
                OpenDashboard,
                DashboardSessions,
                RevokeDashboard,
                ListChats,
                CheckChat,
            }
        }
    };
}
