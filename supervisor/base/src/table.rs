//! Table of verbs and commands, in the order and groups of `supervisor --help`. The API paths and the command line
//! are generated from it.

/// Passes the table to a macro. A verb is an API request and a command; the function after its arrow, if any, replaces
/// the default of sending the request and printing the reply. An entry under `commands` is a command only; an entry
/// under `api` is an API request only. An entry under `nouns` is a noun of the command line with its words, each a verb
/// or a command; the function after `->` waits for nothing. Names are types of the crate `verbs`; function paths are
/// resolved where the table is used.
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
                    Mission(noun_commands::MissionCommand) => noun_commands::mission,
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
                    Boards(noun_commands::BoardsCommand) => noun_commands::boards,
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
                    Lane(noun_commands::LaneCommand) => noun_commands::lane,
                    Profile(noun_commands::ProfileCommand) => noun_commands::profile,
                    Tenant(noun_commands::TenantCommand) => noun_commands::tenant,
                    Schedules(noun_commands::SchedulesCommand) => noun_commands::schedules,
                    Plugin(noun_commands::PluginCommand) => noun_commands::plugin,
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
            nouns {
                Mission {
                    Create(verbs::CreateMission) => mission::create,
                    #[command(visible_alias = "ls")]
                    List(verbs::ListMissions),
                    Show(verbs::ShowMission),
                    Plan(verbs::PlanMission),
                    Review(verbs::ReviewMission),
                    Pause(verbs::PauseMission),
                    Resume(verbs::ResumeMission),
                    Cancel(verbs::CancelMission),
                }
                Dashboard {
                    Sessions(verbs::DashboardSessions),
                    Revoke(verbs::RevokeDashboard),
                }
                Boards {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListBoards),
                    #[command(visible_alias = "new")]
                    Create(boards::Create) => boards::create,
                    #[command(visible_alias = "remove")]
                    Rm(verbs::RemoveBoard) => boards::rm,
                    Delete(boards::Delete) => boards::delete,
                    #[command(visible_alias = "use")]
                    Switch(boards::Switch) -> boards::switch,
                    #[command(visible_alias = "current")]
                    Show(boards::Show) -> boards::show,
                    Rename(boards::Rename) => boards::rename,
                    SetDefaultWorkdir(boards::SetDefaultWorkdir) => boards::set_default_workdir,
                }
                Notify {
                    Test(verbs::NotifyTest),
                    #[command(
                        about = "List who is notified about which task",
                        after_help = "\
Examples:
  supervisor notify list
  supervisor notify list t_0123abcd --json"
                    )]
                    List(verbs::NotifyList),
                    Outbox(verbs::NotifyOutbox),
                    Retry(verbs::NotifyRetry),
                    Drop(verbs::NotifyDrop),
                }
                Chat {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListChats),
                    Check(verbs::CheckChat),
                }
                Lane {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListLanes),
                    Show(lane::Show) => lane::show,
                    Check(verbs::CheckLane) => lane::check,
                    Test(lane::Test) => lane::test,
                }
                Profile {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListProfiles),
                    Show(profile::Show) => profile::show,
                    Create(profile::Create) => profile::create,
                    Edit(profile::Edit) => profile::edit,
                    Export(profile::Export) -> profile::export,
                    Install(profile::Install) => profile::install,
                    Rm(profile::Rm) => profile::rm,
                }
                Tenant {
                    Create(tenant::Create) => tenant::create,
                    #[command(visible_alias = "ls")]
                    List(verbs::ListTenants),
                    Show(tenant::Show) => tenant::show,
                    Usage(verbs::TenantUsage),
                    Edit(tenant::Edit) => tenant::edit,
                    Rm(tenant::Rm) => tenant::rm,
                }
                Schedules {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListSchedules),
                    Show(schedules::Show) => schedules::show,
                    Add(schedule_add::Add) => schedule_add::run,
                    Edit(schedules::Edit) => schedules::edit,
                    Pause(schedules::Pause) => schedules::pause,
                    Resume(schedules::Resume) => schedules::resume,
                    Run(verbs::RunSchedule) => schedules::tick,
                    #[command(visible_alias = "remove")]
                    Rm(schedules::Rm) => schedules::rm,
                    Check(schedules::Check) -> schedules::check,
                    Import(schedules::Import) => schedules::import,
                }
                Plugin {
                    #[command(visible_alias = "ls")]
                    List(verbs::ListPlugins),
                    Create(plugin::Create) -> plugin::create_new,
                    Check(plugin::Check) => plugin::check,
                    Install(plugin::Install) => plugin::install,
                    Resume(verbs::ResumePlugin) => plugin::resume,
                    #[command(visible_alias = "rm")]
                    Uninstall(plugin::Uninstall) => plugin::remove,
                }
            }
        }
    };
}
