//! The kinds of events that the board writes. Another program's events keep their own words when they are imported.

use crate::model::words::words;

words! {
    /// What an event tells.
    "kind of event"
    EventKind {
        /// Somebody has answered the question of a task.
        Answered => "answered",
        /// Its approver has refused it.
        ApprovalDenied => "approval_denied",
        /// Its approver lets it go on.
        ApprovalGranted => "approval_granted",
        /// It waits for its approver.
        ApprovalRequested => "approval_requested",
        /// A review has found it good.
        Approved => "approved",
        /// It is out of sight.
        Archived => "archived",
        /// A declared file could not be kept.
        ArtifactLost => "artifact_lost",
        /// It is for another profile.
        Assigned => "assigned",
        /// A file belongs to it.
        Attached => "attached",
        /// A file no longer belongs to it.
        AttachmentRemoved => "attachment_removed",
        /// It was blocked for the same kind too often, and is in triage.
        BlockLoopDetected => "block_loop_detected",
        /// It waits for somebody.
        Blocked => "blocked",
        /// A person has ended its run.
        Cancelled => "cancelled",
        /// A review has sent it back.
        ChangesRequested => "changes_requested",
        /// The claim of an outside worker is over.
        ClaimExpired => "claim_expired",
        /// A run was opened.
        Claimed => "claimed",
        /// Somebody has written a note.
        Commented => "commented",
        /// It is done.
        Completed => "completed",
        /// Its worker ended with an error.
        Crashed => "crashed",
        /// It is new.
        Created => "created",
        /// It is no more.
        Deleted => "deleted",
        /// It waits for its parents, as its worker asked.
        DependencyWait => "dependency_wait",
        /// Its fields have changed.
        Edited => "edited",
        /// What its run sent and received through its proxy.
        Egress => "egress",
        /// The proxy of its run refused a host.
        EgressDenied => "egress_denied",
        /// It has failed too often in a row.
        GaveUp => "gave_up",
        /// Its worker shows that it goes on.
        Heartbeat => "heartbeat",
        /// A hold was placed.
        Held => "held",
        /// A run tries whether a limit is over.
        HoldProbed => "hold_probed",
        /// It came from another program.
        Imported => "imported",
        /// It has another parent.
        Linked => "linked",
        /// Its run ended, and nobody knows how.
        Lost => "lost",
        /// Its worker used more memory than its limit.
        OutOfMemory => "out_of_memory",
        /// Its run made room.
        Preempted => "preempted",
        /// It is ready.
        Promoted => "promoted",
        /// Somebody has moved it on.
        PromotedManual => "promoted_manual",
        /// Its worker ended without a verdict.
        ProtocolViolation => "protocol_violation",
        /// Its service refused it for a while.
        RateLimited => "rate_limited",
        /// Its run was taken back.
        Reclaimed => "reclaimed",
        /// A hold is over.
        Released => "released",
        /// It was done, and is to be done again.
        Reopened => "reopened",
        /// It goes earlier or later.
        Reprioritized => "reprioritized",
        /// Its worker wants it reviewed.
        ReviewRequested => "review_requested",
        /// It waits for its time.
        Scheduled => "scheduled",
        /// Nothing here can run it.
        SkippedNonspawnable => "skipped_nonspawnable",
        /// Its worker could not be started.
        SpawnFailed => "spawn_failed",
        /// Its worker runs.
        Spawned => "spawned",
        /// Its worker showed no progress.
        Stalled => "stalled",
        /// It was moved.
        Status => "status",
        /// Its run is to end.
        StopRequested => "stop_requested",
        /// A chat follows it.
        Subscribed => "subscribed",
        /// Its worker writes more than it may.
        Throttled => "throttled",
        /// Its run was longer than its limit.
        TimedOut => "timed_out",
        /// It is back from the archive.
        Unarchived => "unarchived",
        /// Somebody lets it go on.
        Unblocked => "unblocked",
        /// It has a parent less.
        Unlinked => "unlinked",
        /// A chat follows it no more.
        Unsubscribed => "unsubscribed",
        /// Somebody has decided about its run.
        Verdict => "verdict",
    }
}
