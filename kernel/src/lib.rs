//! The board: a durable queue of tasks in one `SQLite` database.
//!
//! Promises:
//! * an acknowledged call is durable: replies follow the commit;
//! * a task has at most one open run, and `current_run_id` is none exactly when no run is open;
//! * only [`Board::end_run`] ends a run. The caller calls it with proof, and nothing that a worker wrote can make it
//!   fail; a verdict before that is recorded and waits;
//! * one pure function, [`next`], decides every transition, and the event log replayed through it leads to the same
//!   states ([`View::replay`]);
//! * nothing automatic leaves `blocked`;
//! * every refusal names its reason and the next step.
//!
//! The crate knows no process, has no clock of its own, and opens no path except its file and the [`Blobs`] beside it.
//! Writes go through the single [`Writer`] thread, which commits queued jobs as a group. [`Readers`] read at the same
//! time.
//!
//! ```
//! use kernel::{Actor, NewTask, Writer, WriterOptions, create_board, SystemClock, SystemEntropy};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("board.db");
//! create_board(&path, &"default".parse()?, &SystemClock, &SystemEntropy)?;
//! let writer = Writer::open(&path, WriterOptions::default())?;
//! let created = writer.call(|board| {
//!     board.create(NewTask { title: "say hello".to_owned(), ..NewTask::default() }, &Actor::person("alice"))
//! })?;
//! assert_eq!(created.task.status, kernel::Status::Ready);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::wildcard_enum_match_arm)]

mod blobs;
mod board;
mod model;
mod readers;
mod rules;
mod store;
mod transfer;
mod writer;

#[cfg(test)]
mod rivals_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod writer_tests;

pub use blobs::{BlobError, Blobs, Draft, Flaw, Lack, Published, Sealed, Sweep, SweepScope, Swept, Unswept};
pub use board::replay::{Difference, Replay};
pub use board::view::{Assignee, Stats, View};
pub use board::visibility::waiting_count;
pub use board::{
    Answered, Board, ClaimTerms, Claimed, Created, Detach, Edit, Effect, FLEET_BATCH, Force, Fork,
    ForkedFrom, Handed, LostArtifact, MissionEnds, OpenClaim, Pause, Placement, PoolChange, Reopened,
    Settled, Start,
};
pub use model::actor::{Actor, ActorKind, Label, RunRef, WorkerRole};
pub use model::approval::{ApprovalGate, ApprovalRule, ApprovalRules};
pub use model::budget::{
    Amount, Balance, Budget, Budgets, Consumed, DayUse, Payer, PayerKind, Spend, SpendBy,
};
pub use model::candidate::{Accounts, Candidate, CandidateChoice, Reach};
pub use model::card::{CardCounts, ChildCounts};
pub use model::clock::{Clock, Day, ManualClock, SystemClock, Timestamp, day_of};
pub use model::clock_set::ClockSet;
pub use model::commits::{CommitMode, Commits};
pub use model::counted::Counted;
pub use model::entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use model::error::{Error, ErrorCode, StorageKind};
pub use model::event::EventKind;
pub use model::figures::{Dollars, brief};
pub use model::filter::{Archived, EventFilter, Excerpt, Filter, Page, Sort};
pub use model::finding::{Finding, FindingCode, Seen, Severity};
pub use model::fleet::{FleetId, NewFleetTask};
pub use model::hold::{BREAKER_PAUSE, Hold, HoldKind, HoldOn, HoldScope, NewHold, SHORTEST_LIMIT, Within};
pub use model::id::{
    ApprovalClass, AttachmentId, BoardId, BoardName, CommentId, Digest, EventId, LetterId, PluginName, Pool,
    Profile, RequestId, RunId, ScheduleName, TaskId, Tenant, Tick,
};
pub use model::letter::{Address, DeliveryQueue, Letter, LetterState, Letters, Mail, Notice, NoticeKind};
pub use model::limits;
pub use model::log::{Folded, Horizon};
pub use model::measured::Measured;
pub use model::message::{Message, MessageNews, MessageState};
pub use model::missing::Missing;
pub use model::mission::{
    AskingMission, LimitUse, Mission, MissionCaps, MissionDetails, MissionFile, MissionLimit, MissionLimits,
    MissionState, MissionTask, MissionUse,
};
pub use model::note::{Attachment, Comment, Event, Mention, NewAttachment};
pub use model::outcome::{
    ApprovalState, BlockKind, Denied, Egress, EndCause, Ending, Fault, Finished, HostEgress, OnCleanExit,
    Outcome, OwnLimit, Siblings, StopReason,
};
pub use model::outcome::{DEFAULT_FAILURE_LIMIT, EX_TEMPFAIL};
pub use model::parse_error::ParseError;
pub use model::plugin::PluginCursor;
pub use model::price::{Price, Prices};
pub use model::projected_use::ProjectedUse;
pub use model::projection::{
    Projected, ProjectedCard, ProjectedComment, ProjectedEnd, ProjectedRemark, ProjectedTask, ProjectedWork,
    Projection,
};
pub use model::proposal::{NewProposal, Proposal, ProposalKind, ProposedProfile, ReviewAnswer, ReviewTerms};
pub use model::quota::{Bound, Quotas, SharedQuotas};
pub use model::remedy::Remedy;
pub use model::request::{Caller, Request};
pub use model::run::{Holder, Purpose, Run, RunStatus, is_nonce};
pub use model::schedule::{
    DueCommand, Missed, Overlap, Schedule, ScheduleSpec, ScheduleTick, StuckSchedule, TemplateTask,
    TickOutcome, Timing,
};
pub use model::spent::{Counters, Spent};
pub use model::state::{Change, Gate, InitialState, State, Then};
pub use model::status::{Status, WasDone};
pub use model::straggler::Straggler;
pub use model::subscription::{Subscription, SubscriptionKey};
pub use model::swarm::{NewSwarm, Swarm, SwarmWorker};
pub use model::task::{Approval, Check, Client, Goal, Limits, Lineage, NewTask, Origin, Task};
pub use model::task_fields::{FieldKind, TASK_FIELDS, TaskField};
pub use model::tenant_use::{RunsUse, TenantUse};
pub use model::time_limit::{LimitSource, TimeLimit};
pub use model::tool_call::{ToolCall, ToolResult};
pub use model::verdict::{
    Blocking, Destination, Handoff, ParentResult, Question, ReviewRequest, Verdict, VerdictKind,
};
pub use model::waiting::{Breakage, OpenParent, Waiting, WaitingCode};
pub use model::workspace::{SpecError, Workspace, WorkspaceSpec};
pub use readers::Readers;
pub use rules::budget::SpentBudget;
pub use rules::context::{Context, ContextLimits, PlaceOf};
pub use rules::diagnose::Diagnosed;
pub use rules::links::AtWork;
pub use rules::mention::mentioned;
pub use rules::notice::APPROVAL_CHOICES;
pub use rules::retry::counts;
pub use rules::template::{check_schedule, ticks_ahead, unknown_placeholders};
pub use rules::ticks::spread;
pub use rules::transition::{IllegalChange, next};
pub use store::check::{Depth, check_board, require_whole};
pub use store::create::{create_board, ensure_board, is_marked};
pub use store::imported::{ImportedPlace, ImportedPolicy};
pub use store::open::{Schema, schema_of};
pub use store::open_error::OpenError;
pub use store::repair::{Loss, Repair, repair_board};
pub use store::snapshot::{ShutdownState, leave, take_over};
pub use store::values::{WorkspaceRule, unfit_rows};
pub use transfer::backup::{
    BackedUp, Existing, Restored, Terms as RestoreTerms, UnfitRows, backup_board, restore_board,
};
pub use transfer::export::{Exported, Imported, Rows};
pub use transfer::peer::{Adopted, PeerBoard, PeerFile};
pub use writer::{
    Committed, FailPoints, LogAtEnd, RequestDone, RequestJob, RequestReply, Writer, WriterOptions,
};
