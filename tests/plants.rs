//! Traps of a worker in the git files of its worktree: none of them runs when a person of the same user inspects the
//! worktree, and none reaches the repository, its objects or the branches of others.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::{Fleet, Repository, User};

/// Commits something, says what git complained about, and tries each plant in turn. `$1` is a directory for marks.
const SCRIPT: &str = r#"
marks=@MARKS@
common=$(git rev-parse --git-common-dir)
own=$(git rev-parse --git-dir)
echo 2 > file
git commit -qam work 2> complaints
git commit -q --allow-empty -m more 2>> complaints
mv complaints "$TMPDIR"
cat "$TMPDIR/complaints"
cat > payload <<END
#!/bin/sh
touch $marks/\$1
cat
END
chmod +x payload
here=$PWD
exec 2> /dev/null
# A repository of its own, whose settings name a program.
git init -q fake
git -C fake config core.fsmonitor "$here/payload fake"
# Hooks and settings of the repository.
for hook in pre-commit post-checkout post-index-change reference-transaction; do cp payload "$common/hooks/$hook"; done
git config core.fsmonitor "$here/payload fsmonitor"
git config core.hooksPath "$here"
printf '[core]\n\tfsmonitor = %s/payload config\n' "$here" >> "$common/config"
git config filter.x.clean "$here/payload filter"
echo '* filter=x diff=x' > .gitattributes
git config diff.external "$here/payload diff"
git config diff.x.textconv "$here/payload textconv"
# What ties the worktree to the repository.
echo "$here/fake/.git" > "$own/commondir"
echo "gitdir: $here/fake/.git" > .git
mv .git away && cp -r fake/.git .git
rm -f .git && ln -s fake/.git .git
printf '[core]\n\tfsmonitor = %s/payload worktree\n' "$here" > "$own/config.worktree"
rm -f "$own/config.worktree" "$own/commondir" "$own/gitdir"
mv "$own" "$own.away"
# What all share.
rm -rf "$common"/objects/??
rm -rf "$common"/supervisor/shared/??
mkdir -p "$common/objects/info" && echo /somewhere/else > "$common/objects/info/alternates"
git update-ref refs/heads/main HEAD
git branch -f main HEAD
echo "$(git rev-parse HEAD)" > "$common/refs/heads/task/@SIBLING@"
git update-ref refs/heads/task/@SIBLING@ HEAD
echo 'ref: refs/heads/main' > "$common/worktrees/@SIBLING@/HEAD"
ln -sf /etc/shadow README
# A submodule, in which `git status` of the worktree looks.
git init -q sub
git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m sub
git -C sub config core.fsmonitor "$here/payload submodule"
printf '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n' > .gitmodules
git add sub .gitmodules
true
"#;

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().display().to_string()).collect()
}

#[test]
fn nothing_that_a_worker_plants_in_a_worktree_runs_or_reaches_what_others_have() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let marks = fleet.home().join("marks");
        fs::create_dir(&marks).unwrap();
        fs::set_permissions(&marks, fs::Permissions::from_mode(0o777)).unwrap();
        let workspace = repository.workspace();
        let more = ["--workspace", workspace.as_str()];
        let sibling = fleet.create("sibling", "echo s > s; git add s; git commit -qm sibling", &more);
        fleet.wait_for(&sibling, "done");
        let before = repository.git(&["rev-parse", "main", &format!("task/{sibling}")]);
        let script = SCRIPT.replace("@MARKS@", &marks.display().to_string()).replace("@SIBLING@", &sibling);

        let id = fleet.create("hostile", &script, &more);

        let shown = fleet.wait_for(&id, "done");
        let complaints = shown["latest_summary"].as_str().unwrap_or_default();
        assert_eq!(complaints, "", "each commit is silent");
        let tree = repository.tree(&id);
        let inside = ["fake", "sub"].map(|name| tree.join(name));
        for place in [&tree, &inside[0], &inside[1], repository.path(), &repository.tree(&sibling)] {
            for look in [&["status"][..], &["diff"], &["diff", "HEAD"], &["log", "--all", "-p"]] {
                let seen = repository.git_in(place, look);
                assert_eq!(seen.code, 0, "git {look:?} in {}: {}", place.display(), seen.stderr);
            }
        }
        assert_eq!(names(&marks), Vec::<String>::new(), "a plant ran");
        assert_eq!(repository.git(&["rev-parse", "main", &format!("task/{sibling}")]), before);
        // The only objects that it could destroy were its own.
        assert_eq!(repository.git(&["log", "--format=%s", &format!("task/{id}")]), "start");
        let told = fleet.cli(["events", "--task", &id, "--json"]).ok().stdout;
        assert!(
            told.contains("artifact_lost") && told.contains(&format!("task/{id} is not moved")),
            "{told}"
        );
        repository.git(&["fsck", "--full", "--no-dangling"]);
        assert!(!repository.path().join(".git/objects/info/alternates").exists());
        let settings = ["config", "--local", "--get-regexp", "fsmonitor|hookspath|filter|diff"];
        let settings = repository.git_in(repository.path(), &settings);
        assert_eq!((settings.code, settings.stdout.as_str()), (1, ""), "none is set");
    }
}

#[test]
fn a_second_run_goes_on_with_the_commits_and_the_changes_of_the_first() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let script = "case $(git log -1 --format=%s) in \
            start) echo a > a; git add a; git commit -qm one; echo b > b; git add b; exit 1;; \
            one) test \"$(git status --porcelain)\" = 'A  b' && git commit -qm two;; esac";

        let id = fleet.create("twice", script, &["--workspace", &repository.workspace()]);

        fleet.wait_for(&id, "done");
        assert_eq!(repository.git(&["log", "--format=%s", &format!("task/{id}")]), "two\none\nstart");
        repository.git(&["fsck", "--full", "--no-dangling"]);
        assert!(names(&repository.path().join(".git/supervisor")).is_empty());
    }
}

/// The documentation describes this gap, and the setting that closes it.
#[test]
fn a_bare_repository_in_a_worktree_runs_only_for_who_runs_git_inside_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        let marks = fleet.home().join("marks");
        fs::create_dir(&marks).unwrap();
        fs::set_permissions(&marks, fs::Permissions::from_mode(0o777)).unwrap();
        let script = format!(
            "printf '#!/bin/sh\\ntouch {}/ran\\n' > payload; chmod +x payload; git init -q --bare bare; \
             git -C bare config core.bare false; git -C bare config core.worktree \"$PWD\"; \
             git -C bare config core.fsmonitor \"$PWD/payload\"; git add -f payload; git commit -qm plants",
            marks.display()
        );
        let id = fleet.create("plants", &script, &["--workspace", &repository.workspace()]);
        fleet.wait_for(&id, "done");
        let tree = repository.tree(&id);
        let inside = tree.join("bare");
        for look in [&["status"][..], &["diff", "HEAD"], &["add", "-n", "."]] {
            repository.git_in(&tree, look);
        }
        repository.git_in(&inside, &["-c", "safe.bareRepository=explicit", "status"]);
        assert_eq!(names(&marks), Vec::<String>::new(), "a plant ran");
        repository.git_in(&inside, &["status"]);
        assert_eq!(names(&marks), ["ran"], "docs/policies.md says that this one stays open");
    }
}

#[test]
fn a_worker_tags_and_stashes_and_finds_both_again() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let repository = Repository::new(&fleet, "repository");
        repository.git(&["tag", "v0"]);
        let script = "set -e; if git rev-parse -q --verify refs/tags/v1 > /dev/null; then git stash pop -q; git commit -qam popped; \
            git tag -d v0 > /dev/null; else echo 2 > file; git commit -qam work; git tag v1; git tag -a -m annotated v2; \
            echo 3 > file; git stash -q; test \"$(cat file)\" = 2; exit 1; fi";

        let id = fleet.create("twice", script, &["--workspace", &repository.workspace()]);

        let shown = fleet.wait_for(&id, "done");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 2, "{shown:#}");
        let branch = format!("task/{id}");
        assert_eq!(repository.git(&["show", &format!("{branch}:file")]), "3");
        assert_eq!(repository.git(&["tag"]), format!("{branch}/v1\n{branch}/v2\nv0"));
        assert_eq!(
            repository.git(&["rev-parse", &format!("{branch}/v1")]),
            repository.git(&["rev-parse", &format!("{branch}~")])
        );
        assert_eq!(repository.git(&["for-each-ref", "refs/stash", "refs/stashes"]), "");
        repository.git(&["fsck", "--full", "--no-dangling"]);
    }
}
