//! Places that a worker cannot reach although a policy or a workspace seems to lead there, and remains that it cannot
//! leave.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Fleet, Repository, User, skip};

/// A user that no account has: the owner of directories in which workers of root work.
const OWNER: u32 = 61_733;

/// The directory that holds a fleet's root.
fn around(fleet: &Fleet) -> PathBuf {
    fleet.root().parent().unwrap().to_owned()
}

/// A directory for workers, beneath another one, of the fleet's user or of an owner that root may act for.
fn workplace(fleet: &Fleet, user: User, dir: &Path) -> String {
    fs::create_dir_all(dir).unwrap();
    match user {
        User::Root => chown(dir, Some(OWNER), Some(OWNER)).unwrap(),
        User::Ordinary(_) => fleet.give(dir),
    }
    dir.display().to_string()
}

fn give(fleet: &Fleet, user: User, path: &Path) {
    match user {
        User::Root => chown(path, Some(OWNER), Some(OWNER)).unwrap(),
        User::Ordinary(_) => fleet.give(path),
    }
}

fn summary(shown: &Value) -> &str {
    shown["latest_summary"].as_str().unwrap_or_default()
}

fn error(shown: &Value) -> &str {
    shown["runs"][0]["error"].as_str().unwrap_or_default()
}

#[test]
fn no_workspace_holds_the_root_or_lies_in_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        for (place, word) in [
            (around(&fleet), "holds"),
            (fleet.root(), "lies in"),
            (fleet.root().join("boards"), "lies in"),
            (fleet.root().join("workspaces"), "lies in"),
        ] {
            let place = format!("dir:{}", place.display());
            let refused =
                fleet.cli(["create", "x", "--assignee", "shell", "--body", "true", "--workspace", &place]);
            assert_eq!(refused.code, 77, "{place}: {}{}", refused.stdout, refused.stderr);
            assert!(
                refused.stderr.contains(word) && refused.stderr.contains("closed to every worker"),
                "{}",
                refused.stderr
            );
        }
    }
}

#[test]
fn a_grant_around_the_root_shows_everything_but_the_root() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let (dir, root) = (around(&fleet), fleet.root());
        fleet.policy(
            "wide",
            &format!("version = 1\nextends = 'default'\n[filesystem]\nro = ['/etc', '{}']\n", dir.display()),
        );
        fs::write(dir.join("visible"), "seen").unwrap();
        fleet.start();
        fleet.json(["create", "keeps a board there"]);
        let script = format!(
            "cat {0}/visible; for f in operator.key boards supervisor.toml run/supervisor.sock policies.d; do \
             test -e {1}/$f && echo \" shows $f\"; done; ls {1}; supervisor show >/dev/null && echo reached",
            dir.display(),
            root.display()
        );
        let task = fleet.create("looks around", &script, &["--policy", "wide"]);
        let shown = fleet.wait_for(&task, "done");
        let said = summary(&shown);
        assert!(said.contains("seen") && said.contains("reached"), "{said}");
        assert!(!said.contains("shows") && !said.contains("operator.key"), "{said}");
    }
}

#[test]
fn a_policy_that_grants_in_the_root_or_writing_around_it_is_refused_with_its_line() {
    let fleet = Fleet::offline();
    fleet.json(["create", "makes the root"]);
    for (key, place, word) in [
        ("ro", fleet.root().join("boards"), "lies in"),
        ("rw", around(&fleet), "holds"),
        ("rwx", fleet.root(), "lies in"),
    ] {
        fleet.policy(
            "wide",
            &format!("version = 1\nextends = 'default'\n[filesystem]\n{key} = ['{}']\n", place.display()),
        );
        let refused = fleet.cli(["create", "x", "--assignee", "shell", "--body", "true", "--policy", "wide"]);
        assert_eq!(refused.code, 2, "{key}: {}{}", refused.stdout, refused.stderr);
        let said = format!("wide.toml:4 ({key})");
        assert!(refused.stderr.contains(&said) && refused.stderr.contains(word), "{}", refused.stderr);
        assert!(refused.stderr.contains("the supervisor's own"), "{}", refused.stderr);
    }
}

/// Two tenants with one owner, beneath a directory where people keep what is theirs.
#[test]
fn tenants_beneath_opt_do_not_read_each_others_files() {
    let Ok(opt) = tempfile::Builder::new().prefix("svwalls").tempdir_in("/opt") else {
        return skip("directories beneath /opt: needs the right to make them");
    };
    fs::set_permissions(opt.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let [a, b] = ["a", "b"].map(|name| {
            workplace(&fleet, user, &opt.path().join(format!("{name}{user:?}").replace(['(', ')'], "")))
        });
        fs::write(format!("{b}/secret"), "hers").unwrap();
        give(&fleet, user, Path::new(&format!("{b}/secret")));
        let hers = fleet.create("hers", "cat secret", &["--tenant", "b", "--workspace", &format!("dir:{b}")]);
        assert_eq!(summary(&fleet.wait_for(&hers, "done")), "hers");
        // A directory of which no board knows is not shown either.
        let unknown = workplace(&fleet, user, &opt.path().join("unknown"));
        fs::write(format!("{unknown}/secret"), "theirs").unwrap();
        give(&fleet, user, Path::new(&format!("{unknown}/secret")));
        let script = format!("echo his > own; cat own; cat {b}/secret {unknown}/secret || echo hidden");
        let his = fleet.create("his", &script, &["--tenant", "a", "--workspace", &format!("dir:{a}")]);
        assert_eq!(summary(&fleet.wait_for(&his, "done")), "his\nhidden");
    }
}

#[test]
fn a_socket_beneath_opt_that_anybody_may_use_is_not_reached() {
    let Ok(opt) = tempfile::Builder::new().prefix("svwalls").tempdir_in("/opt") else {
        return skip("directories beneath /opt: needs the right to make them");
    };
    fs::set_permissions(opt.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let socket = opt.path().join("open.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    if !Path::new("/usr/bin/perl").exists() {
        return skip("a client of a Unix socket: needs perl");
    }
    fs::write(opt.path().join("beside"), "readable").unwrap();
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.policy("opt", "version = 1\nextends = 'default'\n[filesystem.add]\nro = ['/opt']\n");
        fleet.start();
        let script = format!(
            "cat {}/beside; perl -MIO::Socket::UNIX -e \
             'print IO::Socket::UNIX->new(Peer => \"{}\") ? \" reached\" : \" closed\"'",
            opt.path().display(),
            socket.display()
        );
        let task = fleet.create("connects", &script, &["--policy", "opt"]);
        assert_eq!(summary(&fleet.wait_for(&task, "done")), "readable closed");
    }
}

#[test]
fn a_directory_that_others_use_gets_no_set_user_id_file() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let dir = workplace(&fleet, user, &fleet.home().join("shared"));
        let script = "cp /bin/sh mine; chmod 4755 mine && echo set; chmod 2755 mine && echo set; chmod 755 mine && echo plain";
        let task = fleet.create("sets bits", script, &["--workspace", &format!("dir:{dir}")]);
        assert_eq!(summary(&fleet.wait_for(&task, "done")), "plain");
        assert_eq!(fs::metadata(format!("{dir}/mine")).unwrap().mode() & 0o7777, 0o755);
    }
}

#[test]
fn the_path_of_a_policy_is_the_workers_and_its_user_has_a_name() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.policy(
            "mine",
            "version = 1\nextends = 'default'\n[env]\nset = { PATH = '/usr/bin:/bin:/mine' }\n",
        );
        fleet.start();
        let task = fleet.create("says", "echo $PATH; id -un", &["--policy", "mine"]);
        let shown = fleet.wait_for(&task, "done");
        let said = summary(&shown);
        assert!(said.contains("/bin:/usr/bin:/bin:/mine"), "{said}");
        assert!(!said.contains("cannot find name") && said.lines().count() == 2, "{said}");
    }
}

#[test]
fn a_worker_has_the_group_of_its_owners_account_and_never_that_of_the_directory() {
    if User::current() != User::Root {
        return skip("groups of directories: needs root");
    }
    let group =
        |name: &str| nix::unistd::Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
    let (Some(shadow), Some(sys)) = (group("shadow"), nix::unistd::User::from_name("sys").ok().flatten())
    else {
        return skip("groups of directories: needs the group shadow and the user sys");
    };
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let fleet = Fleet::boot();
    let make = |name: &str, owner: u32| {
        let dir = fleet.home().join(name);
        fs::create_dir(&dir).unwrap();
        // A directory made in a set-group-ID directory of another group looks like this.
        chown(&dir, Some(owner), Some(shadow)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o2770)).unwrap();
        format!("dir:{}", dir.display())
    };
    let script = "id -g; id -G; touch written; cat /etc/shadow >/dev/null 2>&1 && echo reads; true";
    let groups = |workspace: &str| {
        let task = fleet.create("looks at its groups", script, &["--workspace", workspace]);
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
        let said: Vec<_> = summary(&shown).split_whitespace().map(str::to_owned).collect();
        assert!(said.len() == 2 && said[0] == said[1], "{said:?}");
        said[0].parse::<u32>().unwrap()
    };
    assert_eq!(groups(&make("listed", nobody.uid.as_raw())), nobody.gid.as_raw());
    // An owner without an account has no group: each task has its own, from the range of the board.
    let unlisted = make("unlisted", OWNER);
    let (first, second) = (groups(&unlisted), groups(&unlisted));
    assert!(first >= 2_000_000_000 && second > first, "{first} {second}");
    let powerful = make("powerful", sys.uid.as_raw());
    let refused =
        fleet.cli(["create", "x", "--workspace", &powerful]).refused(77, "primary group sys has power");
    assert!(refused.stderr.contains("usermod -g <group> sys"), "{}", refused.stderr);
    let repository = Repository::new(&fleet, "repository");
    chown(repository.path(), None, Some(shadow)).unwrap();
    assert!(groups(&repository.workspace()) >= 2_000_000_000);
}

#[test]
fn a_server_and_its_client_talk_in_the_policy_for_tests() {
    if !Path::new("/usr/bin/perl").exists() {
        return skip("a server and its client: needs perl");
    }
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") \
                      or die \"listen: $!\"; print IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) \
                      ? \"talks\" : \"mute\"' && supervisor show > /dev/null";
        let task = fleet.create("serves", script, &["--policy", "test"]);
        assert_eq!(summary(&fleet.wait_for(&task, "done")), "talks");
    }
}

#[test]
fn a_program_that_the_policy_does_not_grant_is_named_with_the_line_that_grants_it() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let tools = fleet.home().join("tools");
        fs::create_dir(&tools).unwrap();
        let tool = tools.join("sometool");
        fs::write(&tool, "#!/bin/sh\necho works\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("[env]\nset = {{ PATH = '/usr/bin:/bin:{}' }}\n", tools.display());
        fleet.policy("narrow", &format!("version = 1\nextends = 'default'\n{path}"));
        fleet.lane("tool", "argv = ['sometool']\non_clean_exit = 'complete'\npolicy = 'narrow'\n");
        fleet.start();
        let line = format!("filesystem.add.rox = [\"{}\"]", tools.display());
        let script = fleet.create("by its script", "sometool", &["--policy", "narrow", "--max-retries", "1"]);
        let shown = fleet.wait_for(&script, "blocked");
        assert!(
            error(&shown).contains(&format!("the sandbox denied executing {}", tool.display())),
            "{}",
            error(&shown)
        );
        assert!(
            error(&shown).contains("the policy narrow") && error(&shown).contains(&line),
            "{}",
            error(&shown)
        );
        let told = fleet.cli(["diagnostics"]).ok();
        assert!(told.stdout.contains("its sandbox denied executing"), "{}", told.stdout);
        let created = fleet.json(["create", "by its lane", "--assignee", "tool"]);
        let by_lane = created["id"].as_str().unwrap();
        let said = fleet.eventually("the lane's program is denied", || {
            Some(fleet.show(by_lane).to_string()).filter(|text| text.contains("the sandbox denied executing"))
        });
        assert!(said.contains("rox"), "{said}");
        // What the line says is what works.
        let added = format!(
            "version = 1\nextends = 'default'\n{path}[filesystem.add]\nrox = ['{}']\n",
            tools.display()
        );
        fleet.policy("wide", &added);
        fleet.signal(nix::sys::signal::Signal::SIGHUP);
        let again = fleet.eventually("the new policy is there", || {
            let made = fleet.cli([
                "create",
                "again",
                "--assignee",
                "shell",
                "--body",
                "sometool",
                "--policy",
                "wide",
                "--json",
            ]);
            (made.code == 0).then(|| made.json()["id"].as_str().unwrap().to_owned())
        });
        assert_eq!(summary(&fleet.wait_for(&again, "done")), "works");
    }
}

/// Two supervisors on one host that know of each other by the host's ledger of uids.
#[test]
fn a_worker_sees_nothing_of_another_root_of_the_host() {
    if User::current() != User::Root {
        return skip("roots that know of each other: needs root");
    }
    let (fleet, other) = (Fleet::offline(), Fleet::offline());
    let ledger = around(&other).join("uids").display().to_string();
    fleet.configure(&format!("[worker]\nuid_ledger = '{ledger}'\n"));
    let there = around(&other);
    fleet.policy(
        "wide",
        &format!("version = 1\nextends = 'default'\n[filesystem]\nro = ['/etc', '{}']\n", there.display()),
    );
    fs::write(there.join("visible"), "seen").unwrap();
    let script = format!(
        "cat {0}/visible; for f in supervisor.toml boards run run/supervisor.sock; do test -e {0}/r/$f && echo \" shows $f\"; done; true",
        there.display()
    );
    fleet.start();
    let before = fleet.create("looks while it is none", &script, &["--policy", "wide"]);
    assert!(summary(&fleet.wait_for(&before, "done")).contains("shows supervisor.toml"), "the grant works");

    other.start();
    other.wait_for(&other.create("has a uid", "true", &[]), "done");

    let after = fleet.create("looks again", &script, &["--policy", "wide"]);
    assert_eq!(summary(&fleet.wait_for(&after, "done")), "seen");
    for place in [other.root(), other.root().join("boards"), there.clone()] {
        let place = format!("dir:{}", place.display());
        let refused =
            fleet.cli(["create", "x", "--assignee", "shell", "--body", "true", "--workspace", &place]);
        assert_eq!(refused.code, 77, "{place}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("another supervisor's own"), "{}", refused.stderr);
    }
}

#[test]
fn a_log_tells_its_worker_nothing_of_what_its_user_cannot_see() {
    if User::current() != User::Root {
        return skip("a worker with less sight than its supervisor: needs root");
    }
    let fleet = Fleet::boot();
    for (mode, told) in [(0o711, true), (0o700, false)] {
        let dir = fleet.home().join(format!("dir{mode:o}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "x").unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        let script = format!("echo 'cat: {}/file: No such file or directory' >&2; exit 1", dir.display());
        let task = fleet.create("asks", &script, &["--max-retries", "1"]);
        let shown = fleet.wait_for(&task, "blocked");
        assert_eq!(error(&shown).contains("the sandbox denied"), told, "{}", error(&shown));
    }
}

#[test]
fn what_is_no_file_in_the_place_of_a_program_holds_up_nobody() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "mkfifo tool; chmod 755 tool; echo \"x: 1: $PWD/tool: Permission denied\" >&2; exit 1";
        let task = fleet.create("plants", script, &["--max-retries", "1"]);
        fleet.wait_for(&task, "blocked");
        fleet.wait_for(&fleet.create("next", "true", &[]), "done");
    }
}

#[test]
fn a_job_process_has_bounded_memory() {
    let mut job = std::process::Command::new(crate::harness::binary());
    job.args(["__job", &std::process::id().to_string()]);
    job.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut job = job.spawn().unwrap();
    let limits = format!("/proc/{}/limits", job.id());
    let fleet = Fleet::offline();
    fleet.eventually("the limit is set", || {
        let text = fs::read_to_string(&limits).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("Max data size"))?.to_owned();
        line.contains("1073741824").then_some(())
    });
    drop(job.stdin.take());
    job.wait().unwrap();
}

#[test]
fn a_java_runs_or_its_failure_names_the_line_with_which_it_does() {
    if !Path::new("/usr/bin/java").exists() {
        return skip("java under strict: needs a java");
    }
    let fleet = Fleet::offline();
    let line = "filesystem.proc = \"host\"";
    fleet.policy("java", &format!("version = 1\nextends = 'strict'\n{line}\n"));
    fleet.start();
    let denied = fleet.create("denied", "java -version", &["--policy", "strict", "--max-retries", "1"]);
    let shown = fleet.wait_for(&denied, "blocked");
    assert!(error(&shown).contains(line), "{}", error(&shown));
    let task = fleet.create("granted", "java -version", &["--policy", "java", "--max-retries", "1"]);
    fleet.wait_for(&task, "done");
}

/// The Rust of the user who runs this test, where workers can reach it: bound beneath a home in the daemon's own mount namespace.
#[test]
fn the_cargo_of_a_home_builds_something_where_a_policy_grants_it_by_name() {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap_or_default();
    let has = [".cargo/bin/cargo", ".rustup/toolchains"].iter().all(|path| home.join(path).exists());
    if User::current() != User::Root || !has || !Path::new("/usr/bin/cc").exists() {
        return skip("a cargo of a home: needs root, and a cargo of rustup's with a linker");
    }
    let fleet = Fleet::offline();
    let bound = fleet.home();
    for name in [".cargo", ".rustup"] {
        fs::create_dir(bound.join(name)).unwrap();
    }
    let policy = format!("toolchains = ['cargo']\ntoolchain_home = '{}'\n", bound.display());
    fleet.policy("rust", &format!("version = 1\nextends = 'default'\n[filesystem]\n{policy}"));
    let script = "cargo init -q --vcs none --name made . && cargo build -q --offline && ./target/debug/made";
    let task = fleet.create("builds", script, &["--policy", "rust", "--max-retries", "1"]);
    let binds = format!(
        "mount --bind {0}/.cargo {1}/.cargo && mount --bind {0}/.rustup {1}/.rustup && exec {2} --root {3} dispatch",
        home.display(),
        bound.display(),
        crate::harness::binary(),
        fleet.root().display()
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--", "sh", "-c", &binds]);
    fleet.dress(&mut command);
    let dispatched = crate::harness::Output::of(&mut command);
    if dispatched.stderr.contains("mount:") || dispatched.stderr.contains("unshare:") {
        return skip("a cargo of a home: this host lets nobody mount");
    }
    let shown = fleet.show(&task);
    assert_eq!(summary(&shown), "Hello, world!", "{}{} {shown:#}", dispatched.stdout, dispatched.stderr);
}
