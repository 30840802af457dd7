//! What the flags change by which several tasks are meant, and those of `tenant edit`.

use super::table::Proof::Lines;
use super::table::Row;

pub(super) const COMMON: &[Row] = &[
    (
        "archive",
        "assignee",
        Lines("archive --status done --dry-run", "archive --status done --assignee nobody --dry-run"),
    ),
    (
        "archive",
        "search",
        Lines("archive --status done --dry-run", "archive --status done --search nothing --dry-run"),
    ),
    (
        "archive",
        "since",
        Lines("archive --status done --dry-run", "archive --status done --since 2100-01-01 --dry-run"),
    ),
    (
        "archive",
        "tenant",
        Lines("archive --status done --dry-run", "archive --status done --tenant nobody --dry-run"),
    ),
    (
        "archive",
        "status",
        Lines("archive --search e --dry-run", "archive --search e --status running --dry-run"),
    ),
    ("archive", "dry-run", Lines("archive --status done --yes", "archive --status done --yes --dry-run")),
    ("archive", "yes", Lines("archive --status done", "archive --status done --yes")),
    (
        "cancel",
        "assignee",
        Lines("cancel --status ready --dry-run", "cancel --status ready --assignee nobody --dry-run"),
    ),
    (
        "cancel",
        "search",
        Lines("cancel --status ready --dry-run", "cancel --status ready --search nothing --dry-run"),
    ),
    (
        "cancel",
        "since",
        Lines("cancel --status ready --dry-run", "cancel --status ready --since 2100-01-01 --dry-run"),
    ),
    (
        "cancel",
        "tenant",
        Lines("cancel --status ready --dry-run", "cancel --status ready --tenant nobody --dry-run"),
    ),
    (
        "cancel",
        "status",
        Lines("cancel --search e --dry-run", "cancel --search e --status running --dry-run"),
    ),
    ("cancel", "dry-run", Lines("cancel --status ready --yes", "cancel --status ready --yes --dry-run")),
    ("cancel", "yes", Lines("cancel --status ready", "cancel --status ready --yes")),
    (
        "retry",
        "assignee",
        Lines("retry --status done --dry-run", "retry --status done --assignee nobody --dry-run"),
    ),
    (
        "retry",
        "search",
        Lines("retry --status done --dry-run", "retry --status done --search nothing --dry-run"),
    ),
    (
        "retry",
        "since",
        Lines("retry --status done --dry-run", "retry --status done --since 2100-01-01 --dry-run"),
    ),
    (
        "retry",
        "tenant",
        Lines("retry --status done --dry-run", "retry --status done --tenant nobody --dry-run"),
    ),
    ("retry", "status", Lines("retry --search e --dry-run", "retry --search e --status running --dry-run")),
    ("retry", "dry-run", Lines("retry --status done --yes", "retry --status done --yes --dry-run")),
    ("retry", "yes", Lines("retry --status done", "retry --status done --yes")),
    (
        "unblock",
        "assignee",
        Lines("unblock --status blocked --dry-run", "unblock --status blocked --assignee nobody --dry-run"),
    ),
    (
        "unblock",
        "search",
        Lines("unblock --status blocked --dry-run", "unblock --status blocked --search nothing --dry-run"),
    ),
    (
        "unblock",
        "since",
        Lines("unblock --status blocked --dry-run", "unblock --status blocked --since 2100-01-01 --dry-run"),
    ),
    (
        "unblock",
        "tenant",
        Lines("unblock --status blocked --dry-run", "unblock --status blocked --tenant nobody --dry-run"),
    ),
    (
        "unblock",
        "status",
        Lines("unblock --search e --dry-run", "unblock --search e --status scheduled --dry-run"),
    ),
    (
        "unblock",
        "dry-run",
        Lines("unblock --status blocked --yes", "unblock --status blocked --yes --dry-run"),
    ),
    ("unblock", "yes", Lines("unblock --status blocked", "unblock --status blocked --yes")),
    (
        "tenant edit",
        "assignee",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --assignee bob ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "budget",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --budget tokens=7 ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "dir",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --dir {dir}/d ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "group",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --group staff ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "max-runtime",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --max-runtime 7m ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "member",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --member 4001 ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "on-board",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --on-board other ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "policy",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --policy strict ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "pool",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --pool gpu=7 ; tenant show t --json",
        ),
    ),
    (
        "tenant edit",
        "quota",
        Lines(
            "tenant create t ; tenant edit t --max-running 3 ; tenant show t --json",
            "tenant create t ; tenant edit t --max-running 3 --quota creates=7 ; tenant show t --json",
        ),
    ),
];
