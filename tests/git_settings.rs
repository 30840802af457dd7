//! Settings of a repository (docs/policies.md, "Settings of the repository"): the effect of each in a run.

use crate::harness::{Fleet, Repository};

/// A setting or several, and a script of a worker that shows the effect.
struct Row {
    name: &'static str,
    /// Settings for `git config`, in pairs.
    settings: &'static [&'static str],
    /// Files of the repository before it is committed; those of `.git` are not.
    files: &'static [(&'static str, &'static str)],
    script: &'static str,
    /// The last line that the script prints.
    told: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        name: "files that all worktrees share",
        settings: &["rerere.enabled", "true", "branch.autoSetupMerge", "always", "rebase.updateRefs", "true"],
        files: &[],
        script: "git switch -qc task/side; echo side > file; git commit -qam side; git switch -q task/$SUPERVISOR_TASK; echo own > file; \
                 git commit -qam own; git merge task/side && exit 1; echo both > file; git commit -qam both; git switch -q task/side; \
                 git rebase -q task/$SUPERVISOR_TASK; git switch -q task/$SUPERVISOR_TASK; git rev-list --count HEAD",
        told: "4",
    },
    Row {
        name: "forms of the index, and monitors",
        settings: &[
            "core.splitIndex",
            "true",
            "feature.manyFiles",
            "true",
            "index.skipHash",
            "true",
            "index.version",
            "4",
            "core.fsmonitor",
            "/nonexistent",
        ],
        files: &[],
        script: "echo 2 > file; git add file; git status --short",
        told: "M  file",
    },
    Row {
        name: "collection of garbage",
        settings: &[
            "gc.auto",
            "1",
            "gc.autoPackLimit",
            "1",
            "gc.autoDetach",
            "false",
            "maintenance.auto",
            "true",
        ],
        files: &[],
        script: "for n in 2 3 4; do echo $n > file; git commit -qam $n; done > told 2>&1; cat told; git rev-list --count HEAD",
        told: "4",
    },
    Row {
        name: "author and committer",
        settings: &[
            "user.name",
            "Other",
            "user.email",
            "o@h",
            "author.name",
            "A",
            "user.useConfigOnly",
            "true",
        ],
        files: &[],
        script: "git commit -q --allow-empty -m x; git log -1 --format='%an %cn'",
        told: "shell shell",
    },
    Row {
        name: "ends of lines",
        settings: &["core.autocrlf", "true"],
        files: &[(".gitattributes", "*.sh text eol=lf\n*.id ident\n"), ("a.id", "$Id$\n"), ("b.sh", "a\n")],
        script: "cr=$(printf '\\r'); grep -q $cr file; grep -q $cr b.sh && exit 1; grep -q 'Id: ' a.id; git diff --quiet; echo 2 >> file; \
                 git commit -qam x; git show HEAD:file | grep -c $cr || :; git show HEAD:a.id",
        told: "$Id$",
    },
    Row {
        name: "files of settings in the repository",
        settings: &["core.excludesFile", "ignored", "include.path", "../.settings"],
        files: &[
            ("ignored", "*.a\n"),
            (".settings", "[alias]\n\tx = status --short\n"),
            (".git/info/exclude", "*.b\n/.worktrees/\n"),
            (".git/info/attributes", "*.c gen\n"),
        ],
        script: "touch 1.a 1.b 1.c; git check-attr gen 1.c; echo x >> $(git rev-parse --git-common-dir)/info/exclude && exit 1; git x",
        told: "?? 1.c",
    },
    Row {
        name: "files of settings elsewhere",
        settings: &[
            "blame.ignoreRevsFile",
            "/nonexistent/b",
            "core.excludesFile",
            "/nonexistent/i",
            "core.attributesFile",
            "/nonexistent/a",
            "diff.orderFile",
            "/nonexistent/o",
            "mailmap.file",
            "/nonexistent/m",
            "commit.template",
            "/nonexistent/t",
        ],
        files: &[],
        script: "echo 2 > file; git diff --stat > told; git commit -qam x; git blame --no-ignore-revs-file file > told; git log -1 --format=%s",
        told: "x",
    },
    Row {
        name: "hooks of an absolute path",
        settings: &["core.hooksPath", "/bin"],
        files: &[(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")],
        script: "git commit -q --allow-empty -m x; git config core.hooksPath",
        told: "/dev/null",
    },
    Row {
        name: "hooks of a relative path",
        settings: &["core.hooksPath", ".husky"],
        files: &[(".husky/pre-commit", "#!/bin/sh\necho hooked\n")],
        script: "chmod +x .husky/pre-commit; git commit -q --allow-empty -m x 2>&1",
        told: "hooked",
    },
    Row {
        name: "programs that are not in the sandbox",
        settings: &[
            "core.editor",
            "/nonexistent/editor",
            "core.pager",
            "/nonexistent/pager",
            "diff.external",
            "/nonexistent/diff",
            "alias.run",
            "!/nonexistent/run",
        ],
        files: &[],
        script: "echo 2 > file; git diff --quiet --no-ext-diff && exit 1; git commit -a 2> told && exit 1; grep -q nonexistent/editor told; \
                 git diff 2> told && exit 1; grep -q nonexistent/diff told; git run 2> told && exit 1; grep -o nonexistent/run told",
        told: "nonexistent/run",
    },
    Row {
        name: "networks and remotes",
        settings: &[
            "http.proxy",
            "http://127.0.0.1:9",
            "remote.origin.url",
            "https://x.invalid/x",
            "branch.main.remote",
            "origin",
        ],
        files: &[],
        script: "git config http.proxy; git remote add other x 2> told && exit 1; git config a.b c 2> told && exit 1; git remote get-url origin",
        told: "https://x.invalid/x",
    },
    Row {
        name: "a sparse checkout",
        settings: &["core.sparseCheckout", "true", "core.sparseCheckoutCone", "false", "core.worktree", ".."],
        files: &[("deep/file", "1\n"), (".git/info/sparse-checkout", "/file\n")],
        script: "cat deep/file > told; git status --short; git rev-parse --show-toplevel | grep -o '[.]worktrees'",
        told: ".worktrees",
    },
    Row {
        name: "settings without an effect on a run",
        settings: &[
            "core.logAllRefUpdates",
            "false",
            "transfer.fsckObjects",
            "true",
            "transfer.hideRefs",
            "refs/heads",
            "core.checkStat",
            "minimal",
            "core.compression",
            "9",
            "core.untrackedCache",
            "true",
            "core.fileMode",
            "false",
            "receive.denyCurrentBranch",
            "refuse",
            "uploadpack.packObjectsHook",
            "/nonexistent",
            "core.alternateRefsCommand",
            "/nonexistent",
            "submodule.recurse",
            "true",
            "commit.verbose",
            "true",
            "log.showSignature",
            "true",
            "merge.ff",
            "only",
            "i18n.commitEncoding",
            "ISO-8859-1",
        ],
        files: &[],
        script: "echo 2 > file; echo new > made; git add -A; git commit -qm work; git fetch -q .; git status --short; git log -1 --format=%s",
        told: "work",
    },
];

#[test]
fn each_setting_of_a_repository_has_the_effect_that_the_manual_says() {
    let fleet = Fleet::boot();
    let start = |row: &Row| {
        let repository = Repository::new(&fleet, &row.name.replace([' ', ','], "-"));
        for (name, text) in row.files {
            let directory = name.rsplit_once('/').map_or(".", |(directory, _)| directory);
            // As the owner, with whom a shell makes directories.
            repository.git(&["-c", &format!("alias.make=!mkdir -p {directory}"), "make"]);
            repository.write(name, text);
        }
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-q", "--allow-empty", "--amend", "-m", "start"]);
        for pair in row.settings.chunks(2) {
            repository.git(&["config", pair[0], pair[1]]);
        }
        let script = format!("set -e; {}", row.script);
        let id = fleet.create(row.name, &script, &["--workspace", &repository.workspace()]);
        (repository, id)
    };
    let begun: Vec<_> = ROWS.iter().map(|row| (row, start(row))).collect();
    for (row, (repository, id)) in begun {
        let shown = fleet.wait_for(&id, "done");
        let told = shown["latest_summary"].as_str().unwrap_or_default();
        assert_eq!(told.lines().last(), Some(row.told), "{}: {told}", row.name);
        repository.git(&["-c", "core.worktree=", "fsck", "--no-dangling"]);
    }
}

#[test]
fn a_repository_of_a_form_that_no_run_can_use_is_refused_by_its_extension() {
    let fleet = Fleet::offline();
    for (extension, value) in
        [("objectFormat", "sha256"), ("refStorage", "reftable"), ("partialClone", "origin"), ("unknown", "1")]
    {
        let repository = Repository::new(&fleet, extension);
        repository.git(&["config", "core.repositoryFormatVersion", "1"]);
        repository.git(&["config", &format!("extensions.{extension}"), value]);
        let named = if extension == "objectFormat" { "sha256".to_owned() } else { extension.to_lowercase() };
        fleet.cli(["create", "x", "--workspace", &repository.workspace()]).refused(4, &named);
    }
    let repository = Repository::new(&fleet, "borrows");
    repository.write(".git/objects/info/alternates", "/srv/objects\n");
    fleet
        .cli(["create", "x", "--workspace", &repository.workspace()])
        .refused(4, "borrows objects from /srv/objects");
}
