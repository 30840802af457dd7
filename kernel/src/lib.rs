//! The board: a durable queue of tasks in one `SQLite` database.
//!
//! It promises that
//! * what a call acknowledged is durable: replies follow the commit;
//! * a task has at most one open run, and `current_run_id` is none exactly when no run is open;
//! * a run ends only by [`Board::end_run`], which the caller makes when it has proof and which nothing that a worker wrote
//!   can fail; a verdict before that is recorded and waits for it;
//! * one pure function, [`next`], decides every transition, and the event log replayed through it leads to the same
//!   states ([`View::replay`]);
//! * nothing automatic leaves `blocked`;
//! * every refusal says why and what to do next.
//!
//! It knows no process, no clock of its own and no path but its file and the attached [`Blobs`] beside it. Writes go through the one [`Writer`] thread, which
//! commits what is queued as a group; [`Readers`] read beside it.
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

mod actor;
mod artifact;
mod authority;
mod blobs;
mod board;
mod clock;
mod context;
mod diagnose;
mod entropy;
mod error;
mod filter;
mod fold;
mod hold;
mod id;
pub mod limits;
mod note;
mod outcome;
mod quota;
mod readers;
mod ready;
mod replay;
mod request;
mod retry;
mod run;
mod sight;
mod status;
mod store;
mod subscription;
mod swarm;
mod task;
mod transition;
mod verdict;
mod view;
mod waiting;
mod words;
mod writer;

#[cfg(test)]
mod context_tests;
#[cfg(test)]
mod diagnose_tests;
#[cfg(test)]
mod event_keys_tests;
#[cfg(test)]
mod event_snapshots;
#[cfg(test)]
mod fold_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod part_tests;
#[cfg(test)]
mod ready_tests;
#[cfg(test)]
mod rivals_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod writer_tests;

pub use actor::{Actor, ActorKind, RunRef};
pub use authority::DEPTH;
pub use blobs::{BlobError, Blobs, Draft, Extent, Flaw, Lack, Published, Sealed, Sweep, Swept, Unswept};
pub use board::{
    Answered, AtWork, Board, Claimed, Created, Detach, Edit, Effect, Force, Handed, LostArtifact,
    NewAttachment, Placement, Reopened, Settled, Start,
};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use context::{Context, ContextLimits, PlaceOf};
pub use diagnose::{Diagnosed, Diagnostic, Remedy, Severity};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use error::{Error, ErrorCode, StorageKind};
pub use filter::{Archived, EventFilter, Filter, Page, Part, Sort};
pub use fold::{Folded, Horizon};
pub use hold::{Hold, HoldKind, HoldOn, HoldScope, NewHold, Within};
pub use id::{
    AttachmentId, BoardId, BoardName, CommentId, Digest, EventId, ParseError, Profile, RequestId, RunId,
    TaskId, Tenant,
};
pub use note::{Attachment, Comment, Event};
pub use outcome::{
    Approval, ApprovalClass, BlockKind, Denied, EndCause, Ending, Fault, Finished, OnCleanExit, Outcome,
    Siblings, StopReason,
};
pub use quota::{Bound, Quotas, SharedQuotas};
pub use readers::Readers;
pub use ready::{Accounts, Answer, Reach};
pub use replay::Difference;
pub use request::{Caller, Request};
pub use retry::{DEFAULT_FAILURE_LIMIT, counts, pause};
pub use run::{Holder, Purpose, Run, RunStatus};
pub use sight::waiting_count;
pub use status::{Change, Gate, Intake, State, Status, Then, WasDone};
pub use store::backup::{BackedUp, Existing, Restored, backup_board, restore_board};
pub use store::check::{Depth, check_board, require_whole};
pub use store::create::{create_board, ensure_board};
pub use store::export::{Exported, Imported, Rows};
pub use store::left::{Left, leave, take_over};
pub use store::open::OpenError;
pub use store::peer::{Adopted, PeerBoard, PeerFile};
pub use store::repair::{Loss, Repair, repair_board};
pub use subscription::{News, Subscription, SubscriptionKey};
pub use swarm::{BLACKBOARD, NewSwarm, Swarm, SwarmWorker};
pub use task::{NewTask, Task};
pub use transition::{IllegalChange, next};
pub use verdict::{Blocking, Destination, Finding, Handoff, Question, ReviewRequest, Verdict, VerdictKind};
pub use view::{Assignee, Candidate, Stats, View};
pub use waiting::{Waiting, WaitingCode};
pub use writer::{Committed, FailPoints, Writer, WriterOptions};
