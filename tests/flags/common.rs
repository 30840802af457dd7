//! Effects of the flags that select several tasks, and of those of `tenant edit`.

use super::table::FlagProof::Lines;
use super::table::Row;

/// The rows of a verb that takes tasks by what they have in common. There are tasks in the status, and none of them has failed.
macro_rules! in_common {
    ($verb:literal, $status:literal, $more:literal) => {
        &[
            ($verb, "assignee", shown!($verb, $status, $more, " --assignee nobody")),
            ($verb, "search", shown!($verb, $status, $more, " --search nothing")),
            ($verb, "since", shown!($verb, $status, $more, " --since 2100-01-01")),
            ($verb, "tenant", shown!($verb, $status, $more, " --tenant nobody")),
            ($verb, "failed", shown!($verb, $status, $more, " --failed")),
            (
                $verb,
                "status",
                Lines(
                    concat!($verb, $more, " --search e --dry-run"),
                    concat!($verb, $more, " --search e --status scheduled --dry-run"),
                ),
            ),
            (
                $verb,
                "dry-run",
                Lines(
                    concat!($verb, $more, " --status ", $status, " --yes"),
                    concat!($verb, $more, " --status ", $status, " --yes --dry-run"),
                ),
            ),
            (
                $verb,
                "yes",
                Lines(
                    concat!($verb, $more, " --status ", $status),
                    concat!($verb, $more, " --status ", $status, " --yes"),
                ),
            ),
        ]
    };
}

/// Effect of a filter on the listed tasks.
macro_rules! shown {
    ($verb:literal, $status:literal, $more:literal, $filter:literal) => {
        Lines(
            concat!($verb, $more, " --status ", $status, " --dry-run"),
            concat!($verb, $more, " --status ", $status, $filter, " --dry-run"),
        )
    };
}

/// The rows of the verbs that take tasks by what they have in common.
pub(super) const IN_COMMON: [&[Row]; 9] = [
    in_common!("archive", "done", ""),
    in_common!("assign", "ready", " --to carol"),
    in_common!("cancel", "ready", ""),
    in_common!("kill", "running", ""),
    in_common!("promote", "triage", ""),
    in_common!("reopen", "done", ""),
    in_common!("retry", "done", ""),
    in_common!("unarchive", "archived", ""),
    in_common!("unblock", "blocked", ""),
];

pub(super) const COMMON: &[Row] = &[
    ("hold", "assignee", shown!("hold", "ready", " --reason r", " --assignee nobody")),
    ("hold", "dry-run", Lines("hold --reason r --status ready", "hold --reason r --status ready --dry-run")),
    ("hold", "failed", shown!("hold", "ready", " --reason r", " --failed")),
    ("hold", "search", shown!("hold", "ready", " --reason r", " --search nothing")),
    ("hold", "since", shown!("hold", "ready", " --reason r", " --since 2100-01-01")),
    (
        "hold",
        "status",
        Lines(
            "hold --reason r --search e --dry-run",
            "hold --reason r --search e --status scheduled --dry-run",
        ),
    ),
    ("hold", "yes", Lines("hold --reason r --status ready", "hold --reason r --status ready --yes")),
    (
        "release",
        "assignee",
        Lines("release --search e --dry-run", "release --search e --assignee nobody --dry-run"),
    ),
    ("release", "dry-run", Lines("release --search e", "release --search e --dry-run")),
    ("release", "failed", Lines("release --search e --dry-run", "release --search e --failed --dry-run")),
    (
        "release",
        "search",
        Lines("release --since 1d --dry-run", "release --since 1d --search nothing --dry-run"),
    ),
    (
        "release",
        "since",
        Lines("release --search e --dry-run", "release --search e --since 2100-01-01 --dry-run"),
    ),
    (
        "release",
        "status",
        Lines("release --search e --dry-run", "release --search e --status done --dry-run"),
    ),
    ("release", "yes", Lines("release --search e", "release --search e --yes")),
    ("assign", "to", Lines("assign {ready} bob", "assign {ready} --to carol")),
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
