//! Settings of git for a run. They replace settings of the repository that no run can follow.
//!
//! See decision 0260.

use std::collections::BTreeMap;

use crate::prepared::Kind;

/// Settings that need something that no run has, with their values in a run.
const IN_EVERY_REPOSITORY: [(&str, &str); 6] = [
    // No run has the key of a person. `git commit -S` still signs if the policy grants a key.
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("push.gpgSign", "false"),
    // No run has the keys that verify signatures either.
    ("merge.verifySignatures", "false"),
    // Git would set set-group-ID bits, which no run may do. The modes are set after the run.
    ("core.sharedRepository", "umask"),
];

/// Settings that need more rights in a repository than the worker of a worktree has, or a form that libgit2 cannot
/// read.
const IN_A_WORKTREE: [(&str, &str); 10] = [
    // The worker may not collect garbage in a shared repository, so git need not try.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    // Git would write into the directory that all worktrees share, or move branches of others, and fail if it cannot.
    ("rerere.enabled", "false"),
    ("branch.autoSetupMerge", "false"),
    ("rebase.updateRefs", "false"),
    // Links are removed at the end of the run.
    ("core.preferSymlinkRefs", "false"),
    // The end of the run could not read an index in these forms, and would remove it.
    ("core.splitIndex", "false"),
    ("index.sparse", "false"),
    ("index.skipHash", "false"),
    // The monitor is a daemon, or a program outside of the run.
    ("core.fsmonitor", "false"),
];

/// Returns the variables with the settings of a run. Git reads them after every file (git-config(1), `GIT_CONFIG_COUNT`).
/// `added` are further settings.
pub(crate) fn overrides(kind: Kind, added: &[(&'static str, &'static str)]) -> BTreeMap<String, String> {
    let more: &[_] = match kind {
        // Git finds only repositories there that the run makes.
        Kind::Scratch => return BTreeMap::new(),
        Kind::Directory => &[],
        Kind::Worktree => &IN_A_WORKTREE,
    };
    let all: Vec<_> = IN_EVERY_REPOSITORY.iter().chain(more).chain(added).collect();
    let count = ("GIT_CONFIG_COUNT".to_owned(), all.len().to_string());
    let settings = all.iter().enumerate().flat_map(|(n, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{n}"), (*key).to_owned()),
            (format!("GIT_CONFIG_VALUE_{n}"), (*value).to_owned()),
        ]
    });
    std::iter::once(count).chain(settings).collect()
}
