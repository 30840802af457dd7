//! Tenants: made, shown, changed and removed in one go, and seen by their own users alone.

mod obstacles;
mod served;
mod triage;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Fleet, Output, User, skip};

/// A user of the tenant acme, one of globex, and one of nobody's.
const ANN: u32 = 4001;
const EVE: u32 = 4002;
const ZOE: u32 = 4003;

/// Runs a command as another user.
pub(crate) fn by(fleet: &Fleet, uid: u32, args: &[&str]) -> Output {
    let mut command = fleet.command(args);
    command.uid(uid).gid(uid);
    Output::of(&mut command)
}

/// Returns the JSON output of a command by another user.
#[track_caller]
pub(crate) fn json_by(fleet: &Fleet, uid: u32, args: &[&str]) -> Value {
    by(fleet, uid, &[args, &["--json"]].concat()).ok().json()
}

fn created(fleet: &Fleet, title: &str, tenant: &str) -> String {
    let made = fleet.json(["create", title, "--tenant", tenant, "--assignee", "nobody-does-it"]);
    made["id"].as_str().unwrap().to_owned()
}

/// A daemon of root's with two tenants that have a user each; none where the test is not root's.
fn two_tenants() -> Option<Fleet> {
    if User::current() != User::Root {
        skip("users of tenants: needs root");
        return None;
    }
    let fleet = Fleet::boot();
    for (name, uid) in [("acme", ANN), ("globex", EVE)] {
        fleet.cli(["tenant", "create", name, "--member", &uid.to_string()]).ok();
    }
    Some(fleet)
}

#[test]
fn a_tenant_is_created_with_all_that_is_said_shown_edited_and_removed() {
    let fleet = Fleet::offline();
    let own = User::ordinary().id().unwrap_or_else(|| nix::unistd::geteuid().as_raw()).to_string();
    let dir = fleet.home().join("acme");
    let place = dir.display().to_string();
    let said = [
        "--dir",
        &place,
        "--unix-user",
        &own,
        "--max-running",
        "2",
        "--pool",
        "gpu=1",
        "--max-runtime",
        "1h",
    ];
    let more =
        ["--policy", "strict", "--assignee", "shell", "--quota", "creates=3", "--budget", "cost_usd=5"];
    let who = ["--member", "4001", "--member", "ann", "--group", "staff", "--on-board", "default"];
    fleet
        .cli(["tenant", "create", "acme", "--max-running", "0"])
        .refused(2, "would keep all tasks of the tenant from starting");
    let created = fleet.cli([&["tenant", "create", "acme"], &said[..], &more, &who].concat()).ok();
    assert!(created.stderr.contains("this host has no user `ann`"), "{}", created.stderr);
    assert!(!created.stderr.contains("4001") && !created.stderr.contains("staff"), "{}", created.stderr);

    let shown = fleet.json(["tenant", "show", "acme"]);
    assert_eq!(
        (&shown["root"], &shown["policy"], &shown["assignee"]),
        (&place.as_str().into(), &"strict".into(), &"shell".into())
    );
    assert_eq!((&shown["max_running"], &shown["max_runtime_seconds"]), (&2.into(), &3600.into()));
    assert_eq!((&shown["pools"]["gpu"], &shown["quotas"]["creates"]), (&1.into(), &3.into()));
    assert_eq!(
        (&shown["users"], &shown["groups"]),
        (&serde_json::json!(["4001", "ann"]), &serde_json::json!(["staff"]))
    );
    assert_eq!(shown["budget"], serde_json::json!({ "cost_usd": "$5.00" }));
    let meta = dir.metadata().unwrap();
    assert_eq!((meta.uid().to_string(), meta.permissions().mode() & 0o777), (own, 0o750));
    fleet.cli(["tenant", "create", "acme"]).refused(4, "exists already");
    fleet.cli(["tenant", "create", "a/b"]).refused(2, "tenant");

    fleet.cli(["tenant", "edit", "acme", "--max-running", "7", "--unset", "quotas"]).ok();
    let shown = fleet.json(["tenant", "show", "acme"]);
    assert_eq!((&shown["max_running"], &shown["quotas"]), (&7.into(), &serde_json::json!({})));
    fleet.cli(["tenant", "edit", "acme", "--unset", "nothing"]).refused(2, "no key");

    let made = fleet.json(["create", "x", "--tenant", "acme"]);
    assert_eq!((&made["assignee"], &made["policy"]), (&"shell".into(), &"strict".into()));
    fleet.cli(["create", "x", "--tenant", "acme", "--workspace", "dir:/tmp"]).refused(77, "beneath");
    let listed = fleet.json(["tenant", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["tasks"]["ready"]), (&"acme".into(), &1.into()));
    let used = fleet.json(["tenant", "usage", "acme"]);
    assert_eq!((&used["total"]["runs"], &used["tasks"]["ready"]), (&0.into(), &1.into()));
    assert!(fleet.cli(["tenant", "usage", "acme"]).ok().stdout.contains("total"));

    fleet.cli(["tenant", "rm", "acme"]).refused(4, "1 open task");
    let removed = fleet.cli(["tenant", "rm", "acme", "--cancel"]).ok();
    assert!(
        removed.stdout.contains("Cancelled 1 task") && removed.stderr.contains("stay"),
        "{}",
        removed.stderr
    );
    assert!(dir.is_dir() && fleet.json(["tenant", "show", "acme"])["file"] == Value::Null);
    fleet.cli(["tenant", "show", "nobody"]).refused(3, "nobody");
}

#[test]
fn a_directory_that_is_a_link_or_somebody_elses_is_refused_and_no_user_is_made_unasked() {
    let fleet = Fleet::offline();
    let real = fleet.home().join("real");
    fs::create_dir(&real).unwrap();
    fleet.give(&real);
    symlink(&real, fleet.home().join("link")).unwrap();
    let create = |place: &std::path::Path, more: &[&str]| {
        let place = place.display().to_string();
        fleet.cli([&["tenant", "create", "acme", "--dir", &place], more].concat())
    };
    create(&fleet.home().join("link"), &[]).refused(2, "symbolic link");
    create(&fleet.home().join("link/deeper"), &[]).refused(2, "symbolic link");
    create(&fleet.root().join("boards"), &[]).refused(2, "own directories");
    if User::current() == User::Root {
        chown(&real, Some(4242), Some(4242)).unwrap();
        create(&real, &[]).refused(77, "belongs to uid 4242");
        create(&real, &["--unix-user", "nobody"]).refused(77, "belongs to uid 4242");
        create(&real, &["--unix-user", "root"]).refused(2, "root");
        create(&real, &["--unix-user", "nobody", "--create-user"]).refused(4, "exists already");
        create(&real, &["--unix-user", "x; id", "--create-user"]).refused(2, "not a name");
    } else {
        create(&real, &["--unix-user", "nobody", "--create-user"]).refused(77, "only root");
    }
    create(&fleet.home().join("new"), &["--unix-user", "no-such-user-here"]).refused(3, "no user");
    assert!(!fleet.root().join("tenants.d/acme.toml").exists(), "nothing was written");
}

/// A user that a test has had created; it is gone when this is.
struct MadeTenant(String);

impl Drop for MadeTenant {
    fn drop(&mut self) {
        drop(std::process::Command::new("userdel").arg(&self.0).output());
    }
}

#[test]
fn the_unix_user_of_a_tenant_is_created_where_that_is_asked_for_and_works_in_its_directory() {
    let has = |program: &str| std::path::Path::new("/usr/sbin").join(program).exists();
    if User::current() != User::Root || !has("useradd") || !has("userdel") {
        skip("the user of a tenant: needs root, useradd and userdel");
        return;
    }
    let fleet = Fleet::boot();
    let name = MadeTenant(format!("svt{}", std::process::id()));
    let dir = fleet.home().join("acme");
    let place = dir.display().to_string();
    let words = ["tenant", "create", "acme", "--dir", &place, "--unix-user", &name.0, "--create-user"];
    let created = Output::of(fleet.command(words).env("PATH", "/usr/sbin:/usr/bin:/bin"));
    created.ok();

    let user = nix::unistd::User::from_name(&name.0).unwrap().expect("the user is there");

    assert_eq!((user.dir.as_path(), user.shell.to_str()), (dir.as_path(), Some("/usr/sbin/nologin")));
    let meta = dir.metadata().unwrap();
    assert_eq!((meta.uid(), meta.gid()), (user.uid.as_raw(), user.gid.as_raw()));
    let more = ["--tenant", "acme", "--workspace", &format!("dir:{place}")];
    let id = fleet.create("works", "id -un > who", &more);
    fleet.wait_for(&id, "done");
    assert_eq!(fs::read_to_string(dir.join("who")).unwrap().trim(), name.0);
    fleet.cli(["tenant", "rm", "acme"]).ok();
    assert!(nix::unistd::User::from_name(&name.0).unwrap().is_some(), "the user stays");
}

#[test]
fn the_users_of_a_tenant_see_and_direct_its_tasks() {
    let Some(fleet) = two_tenants() else { return };
    let other = created(&fleet, "secret of globex", "globex");
    let own = created(&fleet, "work of acme", "acme");

    let made = json_by(&fleet, ANN, &["create", "mine", "--assignee", "shell", "--body", "echo done"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["tenant"], &made["created_by"]), (&"acme".into(), &"uid-4001".into()));
    fleet.wait_for(id, "done");
    let seen = json_by(&fleet, ANN, &["list"]);
    let seen: Vec<&str> = seen.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert!(seen.contains(&own.as_str()) && !seen.contains(&other.as_str()), "{seen:?}");
    by(&fleet, ANN, &["comment", &own, "looks good"]).ok();
    by(&fleet, ANN, &["cancel", &own]).ok();
    assert!(by(&fleet, ANN, &["logs", id]).ok().stdout.contains("done"));
    let short = &own[..7];
    assert!(by(&fleet, ANN, &["show", short]).ok().stdout.contains("work of acme"));
    assert_eq!(json_by(&fleet, ANN, &["tenant", "list"]).as_array().map(Vec::len), Some(1));
    let used = json_by(&fleet, ANN, &["tenant", "usage", "acme"]);
    // The cancelled task has a row in `runs` too, of no worker.
    assert_eq!(used["total"]["runs"], 2);
    assert!(used["total"]["cpu_us"].as_u64() > Some(0), "{used}");
}

/// Lines about a task.
const OF_A_TASK: &[&[&str]] = &[
    &["show", "ID"],
    &["runs", "ID"],
    &["diff", "ID"],
    &["logs", "ID"],
    &["context", "ID"],
    &["attachments", "ID"],
    &["comment", "ID", "hello"],
    &["block", "ID", "why"],
    &["unblock", "ID"],
    &["answer", "ID", "yes"],
    &["approve", "ID"],
    &["deny", "ID"],
    &["request-changes", "ID", "why"],
    &["promote", "ID"],
    &["schedule", "ID", "--at", "2h"],
    &["cancel", "ID"],
    &["kill", "ID"],
    &["retry", "ID"],
    &["archive", "ID"],
    &["archive", "--rm", "ID"],
    &["unarchive", "ID"],
    &["reopen", "ID"],
    &["assign", "ID", "shell"],
    &["reassign", "ID", "shell"],
    &["edit", "ID", "--title", "x"],
    &["steer", "ID", "hello"],
    &["type", "ID", "hello"],
    &["fork", "ID", "hello"],
    &["attach", "ID", "FILE"],
    &["events", "--task", "ID"],
    &["link", "ID", "OWN"],
    &["link", "OWN", "ID"],
    &["create", "x", "--parent", "ID"],
    &["comment", "OWN", "--task-id", "ID"],
    &["unlink", "ID", "OWN"],
    &["request-review", "ID"],
];

/// Lines about all tenants, or about another one.
const OF_OTHERS: &[&str] = &[
    "list --tenant globex",
    "stats --tenant globex",
    "status --tenant globex",
    "events --tenant globex",
    "create x --tenant globex",
    "tenant usage globex",
    "tenant show globex",
    "create x --policy unconfined",
    "create x --workspace dir:/tmp",
    "edit OWN --tenant globex",
    "edit OWN --workspace dir:/tmp",
    "edit OWN --policy unconfined",
    "metrics",
    "doctor --all",
    "diagnostics",
    "hold --tenant globex --reason r",
    "hold --profile shell --reason r",
    "release --host",
    "gc --dry-run",
    "dispatch",
    "stop",
    "backup /tmp/x.db",
    "boards create more",
    "--board other list",
    "--board nothing list",
    "init",
    "reclaim OWN",
    "dispatch-fleet shell /root",
    "swarm g --worker a --verifier b --synthesizer c",
    "claim OWN",
    "notify-subscribe OWN --platform p --chat-id 1",
];

/// The verbs that users of tenants may call and that no line above begins with: by which line, or where, they are tried.
const OTHERWISE: &[(&str, &str)] = &[
    ("specify", "tests/tenants/triage.rs"),
    ("decompose", "tests/tenants/triage.rs"),
    ("attach-rm", "behind the lines about a task"),
    ("holds", "among what is shown"),
    ("log", "logs"),
    ("resolve", "show, with the beginning of an id"),
    ("names", "not tried yet: the verb narrows what it finds to the tenant itself"),
    ("markdown", "it reads no board"),
    ("patch", "edit, assign and the verbs of each status, of which it is made"),
    ("bulk-patch", "the same, for each task"),
    ("tenants", "tenant list"),
    ("tenant-usage", "tenant usage"),
    ("open-dashboard", "tests/dashboard/members.rs"),
    ("dashboard-sessions", "tests/dashboard/members.rs"),
    ("revoke-dashboard", "tests/dashboard/members.rs"),
];

#[test]
fn every_verb_that_users_of_tenants_may_call_is_tried_by_them() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.contains(", users of tenants |"));
    let verbs: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    assert!(verbs.len() > 40, "{verbs:?}");
    let is_tried = |verb: &&&str| {
        OF_A_TASK.iter().any(|line| line[0] == **verb)
            || OF_OTHERS.iter().any(|line| line.split(' ').next() == Some(**verb))
            || OTHERWISE.iter().any(|(name, _)| name == *verb)
    };
    let untried: Vec<_> = verbs.iter().filter(|verb| !is_tried(verb)).collect();
    assert!(untried.is_empty(), "add a line for {untried:?}");
}

#[test]
fn another_tenants_user_is_refused_and_learns_nothing() {
    let Some(fleet) = two_tenants() else { return };
    let other = created(&fleet, "secret of globex", "globex");
    let own = created(&fleet, "work of acme", "acme");
    fs::write(fleet.home().join("file"), "secret").unwrap();
    let file = fleet.home().join("file").display().to_string();
    let attached = fleet.json(["attach", &other, &file])["id"].to_string();
    let none = "t_ffffffff";

    // A task of another tenant is refused in the words of one that is not there.
    for line in OF_A_TASK {
        let said = |id: &str| {
            let words: Vec<&str> = line
                .iter()
                .map(|word| match *word {
                    "ID" => id,
                    "OWN" => own.as_str(),
                    "FILE" => file.as_str(),
                    word => word,
                })
                .collect();
            let output = by(&fleet, ANN, &words);
            (output.code, format!("{}{}", output.stdout, output.stderr).replace(id, "ID"))
        };
        let (theirs, nobodys) = (said(&other), said(none));
        assert_ne!(theirs.0, 0, "{line:?}: {}", theirs.1);
        assert_eq!(theirs, nobodys, "{line:?} tells a task of another tenant from none");
    }
    assert_eq!(fleet.status_of(&other), "ready");
    let words = |number: &str| {
        let output = by(&fleet, ANN, &["attach-rm", number]);
        (output.code, output.stderr.replace(number, "N"))
    };
    assert_eq!(words(&attached), words("99999"));

    // What is about all tenants, or about another one.
    for line in OF_OTHERS {
        let words: Vec<&str> =
            line.split(' ').map(|word| if word == "OWN" { own.as_str() } else { word }).collect();
        let output = by(&fleet, ANN, &words);
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(output.code != 0, "`{line}` is let through: {text}");
        assert!(!text.contains("secret") && !text.contains(&other), "{line}: {text}");
    }
    // What is shown has nothing of others.
    for line in [
        "list",
        "list --search secret",
        "list --archived",
        "status",
        "stats",
        "events",
        "holds",
        "tenant list",
        "list --why",
        "assignees",
        "list --assignee nobody-does-it",
    ] {
        let output = by(&fleet, ANN, &line.split(' ').collect::<Vec<_>>());
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(
            !text.contains("secret") && !text.contains(&other) && !text.contains("globex"),
            "{line}: {text}"
        );
    }
    by(&fleet, ANN, &["show", &other[..6]]).refused(3, "no such task");
    let words = ["list", "--tenant", "glo"];
    assert!(!by(&fleet, ANN, &words).stdout.contains("globex"));
    // Nobody's user is nobody here, and a member that leaves is none at once.
    by(&fleet, ZOE, &["list"]).refused(77, "no tenant has the user");
    by(&fleet, EVE, &["show", &other]).ok();
    fleet.cli(["tenant", "edit", "globex", "--unset", "users", "--group", "4001"]).ok();
    by(&fleet, EVE, &["show", &other]).refused(77, "no tenant has the user");
}

#[test]
fn the_socket_of_tenants_is_open_as_long_as_one_has_users() {
    let fleet = Fleet::boot();
    let socket = fleet.root().join("run/tenants.sock");
    let mode = || socket.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fleet.cli(["tenant", "create", "acme", "--member", "4001"]).ok();
    assert_eq!(mode(), 0o666);
    assert_eq!(
        fleet.root().join("run/supervisor.sock").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    fleet.restart();
    assert_eq!(mode(), 0o666);
    fleet.cli(["tenant", "edit", "acme", "--unset", "users"]).ok();
    assert_eq!(mode(), 0o600);
}

#[test]
fn a_tenants_user_reaches_no_policy_that_does_not_confine_by_any_name() {
    let Some(fleet) = two_tenants() else { return };
    fleet.lane("open", "argv = [\"/bin/sh\", \"-c\", \"true\"]\npolicy = \"unconfined\"\n");
    fleet.write_config("profiles.d/opener.md", "---\nlane: shell\npolicy: unconfined\n---\nOpens.\n");
    fleet.lane("broken", "argv = [\"/bin/sh\"]\npolicy = \"unconfined\"\nnope = 1\n");
    fleet.restart();
    let own = created(&fleet, "ours", "acme");
    let made = fleet.json([
        "create",
        "open",
        "--tenant",
        "acme",
        "--assignee",
        "open",
        "--initial-status",
        "blocked",
    ]);
    let operators = made["id"].as_str().unwrap();
    let lines: &[&[&str]] = &[
        &["create", "x", "--assignee", "open"],
        &["create", "x", "--assignee", "opener"],
        &["create", "x", "--assignee", "broken"],
        &["create", "x", "--policy", "unconfined"],
        &["assign", &own, "open"],
        &["assign", &own, "opener"],
        &["reassign", &own, "open"],
        &["edit", &own, "--policy", "unconfined"],
        &["edit", operators, "--body", "id"],
        &["assign", "--assignee", "nobody-does-it", "--to", "open", "--yes"],
    ];
    for line in lines {
        let output = by(&fleet, ANN, line);
        assert_ne!(output.code, 0, "{line:?}: {}", output.stdout);
    }
    by(&fleet, ANN, lines[0]).refused(77, "works under the policy unconfined");
    let shown = fleet.show(&own);
    assert_eq!(shown["task"]["assignee"], "nobody-does-it");
    assert_eq!(fleet.show(operators)["task"]["body"], Value::Null);
    assert_eq!(fleet.json(["list", "--tenant", "acme"]).as_array().unwrap().len(), 2);
    by(&fleet, ANN, &["comment", operators, "words are open to them"]).ok();
    by(&fleet, ANN, &["assign", &own, "shell"]).ok();

    // The policy of the tenant is the choice of an operator.
    fleet.cli(["tenant", "edit", "acme", "--policy", "unconfined"]).ok();
    by(&fleet, ANN, &["create", "x", "--assignee", "open"]).ok();
}

#[test]
fn a_tenants_user_tells_a_run_that_is_not_confined_nothing_by_keys_and_by_proposals() {
    let Some(fleet) = two_tenants() else { return };
    let argv = "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\nterminal = \"80x24\"\n";
    fleet.lane("open", &format!("{argv}policy = \"unconfined\"\n"));
    fleet.lane("held", argv);
    fleet.write_config("profiles.d/specifier.md", "---\nlane: shell\n---\nSpecifies.\n");
    fleet.restart();
    let created = |lane: &str, more: &[&str]| {
        let words = ["create", "x", "--tenant", "acme", "--body", "exec cat", "--assignee", lane];
        let made = fleet.json([&words, more].concat());
        made["id"].as_str().unwrap().to_owned()
    };
    let (open, held, idea) = (created("open", &[]), created("held", &[]), created("open", &["--triage"]));
    // The terminal is there when an operator has typed.
    for task in [&open, &held] {
        fleet.eventually("a terminal", || (fleet.cli(["type", task, "a"]).code == 0).then_some(()));
    }

    by(&fleet, ANN, &["type", &open, "id"]).refused(77, "works under the policy unconfined");
    by(&fleet, ANN, &["type", &held, "id"]).ok();
    by(&fleet, ANN, &["specify", &idea]).refused(77, "works under the policy unconfined");

    let typed = |task: &str| {
        let page = fleet.json(["events", "--task", task, "--kind", "terminal_typed"]);
        page["events"].as_array().unwrap().len()
    };
    assert_eq!((typed(&open), typed(&held)), (1, 2));
}

#[test]
fn a_tenants_user_learns_nothing_of_paths_beyond_its_directory() {
    let Some(fleet) = two_tenants() else { return };
    if !std::path::Path::new("/usr/bin/curl").exists() {
        skip("requests of a tenant's user: no curl here");
        return;
    }
    let (dir, closed) = (fleet.home().join("acme"), fleet.home().join("closed"));
    let place = dir.display().to_string();
    fleet.cli(["tenant", "edit", "acme", "--dir", &place, "--unix-user", "nobody"]).ok();
    fs::create_dir_all(closed.join("zz-yes")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&closed, dir.join("link")).unwrap();
    let nobody = dir.metadata().unwrap().uid();
    for name in ["zz-yes", "zz-no"] {
        let repository = dir.join(format!("repository-{name}"));
        fs::create_dir(&repository).unwrap();
        symlink(closed.join(name), repository.join(".git")).unwrap();
        chown(&repository, Some(nobody), None).unwrap();
    }
    let socket = fleet.root().join("run/tenants.sock");
    let dispatched = |root: &str, name: &str| {
        let body = serde_json::json!({ "profile": "shell", "root": root, "directories": [name] }).to_string();
        let mut curl = Command::new("curl");
        curl.args(["-s", "-m", "60", "-H", "content-type: application/json", "-d", &body, "--unix-socket"]);
        curl.arg(&socket).arg("http://localhost/api/v1/verbs/dispatch-fleet").uid(ANN).gid(ANN);
        let said = Output::of(&mut curl).ok().stdout;
        assert!(said.contains(r#""code""#), "{root} {name}: {said}");
        said
    };
    let created = |kind: &str, path: &str| {
        let output = by(&fleet, ANN, &["create", "x", "--workspace", &format!("{kind}:{place}/{path}")]);
        assert_ne!(output.code, 0, "{kind}:{path}: {}", output.stdout);
        output.stderr
    };

    let elsewhere = closed.display().to_string();
    let up = "../".repeat(20);
    let asked: &[&dyn Fn(&str) -> String] = &[
        &|name| dispatched(&place, &format!("{elsewhere}/{name}")),
        &|name| dispatched(&place, &format!("{up}{elsewhere}/{name}")),
        &|name| dispatched(&place, &format!("link/{name}")),
        &|name| dispatched(&format!("{place}/link"), name),
        &|name| dispatched(&format!("{place}/link/{name}"), "x"),
        &|name| created("dir", &format!("link/{name}")),
        &|name| created("worktree", &format!("link/{name}")),
        &|name| created("worktree", &format!("repository-{name}")),
    ];
    for (at, ask) in asked.iter().enumerate() {
        assert_eq!(ask("zz-yes").replace("zz-yes", "NAME"), ask("zz-no").replace("zz-no", "NAME"), "{at}");
    }
}

#[test]
fn a_tenants_users_keep_to_its_quotas_and_to_its_directory() {
    let Some(fleet) = two_tenants() else { return };
    let dir = fleet.home().join("acme");
    let place = dir.display().to_string();
    fleet
        .cli([
            "tenant",
            "edit",
            "acme",
            "--dir",
            &place,
            "--unix-user",
            &ANN.to_string(),
            "--quota",
            "tenant_entries=2",
        ])
        .refused(3, "no user");
    fleet
        .cli([
            "tenant",
            "edit",
            "acme",
            "--dir",
            &place,
            "--unix-user",
            "nobody",
            "--quota",
            "tenant_entries=2",
        ])
        .ok();
    let inside = format!("dir:{place}");
    let made = json_by(
        &fleet,
        ANN,
        &["create", "a", "--workspace", &inside, "--assignee", "shell", "--body", "id -un > who"],
    );
    fleet.wait_for(made["id"].as_str().unwrap(), "done");
    assert_eq!(fs::read_to_string(dir.join("who")).unwrap(), "nobody\n", "its workers are the tenant's user");
    by(&fleet, ANN, &["create", "a", "--workspace", "dir:/srv"]).refused(77, "beneath");
    by(&fleet, ANN, &["create", "b"]).ok();
    by(&fleet, ANN, &["create", "c"]).refused(77, "tenant_entries");
    by(&fleet, EVE, &["create", "c"]).ok();
}

#[test]
fn a_tenant_is_exported_whole_and_alone_and_read_into_another_board() {
    let fleet = Fleet::offline();
    let own = created(&fleet, "work of acme", "acme");
    let other = created(&fleet, "secret of globex", "globex");
    fleet.cli(["comment", &own, &format!("as in {other}")]).ok();
    fs::write(fleet.home().join("file"), "attached").unwrap();
    fleet.cli(["attach", &own, &fleet.home().join("file").display().to_string()]).ok();
    let file = fleet.home().join("acme.jsonl").display().to_string();

    fleet.cli(["export", "--tenant", "acme", "--file", &file]).ok();
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("secret") && !text.contains("globex"), "{text}");
    let streamed = fleet.cli(["export", "--tenant", "acme"]).ok().stdout;
    assert_eq!(streamed.lines().count(), text.lines().count());
    fleet.cli(["--board", "copy", "import", &file]).ok();
    let shown = fleet.json(["--board", "copy", "show", &own]);
    assert_eq!(
        (&shown["task"]["title"], shown["attachments"].as_array().map(Vec::len)),
        (&"work of acme".into(), Some(1))
    );
    assert_eq!(fleet.json(["--board", "copy", "list"]).as_array().map(Vec::len), Some(1));
    fleet.cli(["export", "--tenant", "nobody"]).refused(3, "nobody");
}
