//! What a plan refuses and what it says of a host, for hosts that this one is not.

use super::*;
use crate::Controller;
use crate::paths::PathError;
use crate::report::State;

/// A host of an ordinary user, and a run with its directories on it.
struct Bench {
    dir: tempfile::TempDir,
    host: Support,
    context: RunContext,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["ws", "home", "tmp", "board"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let context = crate::run_context::bare(dir.path());
    let host = Support { uid: 1000, view: View::UserNamespace, seccomp: true, ..Support::detect() };
    Bench { dir, host, context }
}

fn policy(text: &str) -> Policy {
    let text = format!("version = 1\nextends = 'default'\n{text}");
    Policy::from_toml(&text, Path::new("test.toml")).unwrap()
}

fn layer(plan: &Plan, layer: Layer) -> &LayerReport {
    plan.layers.iter().find(|entry| entry.layer == layer).unwrap()
}

#[test]
fn a_worker_is_never_root() {
    let Bench { host, context, .. } = bench();
    let root = Support { uid: 0, ..host.clone() };
    assert!(matches!(policy("").plan(&context, &root), Err(PlanError::Root)));
    for identity in [Identity { uid: 0, gid: 5 }, Identity { uid: 5, gid: 0 }] {
        let context = RunContext { identity: Some(identity), ..context.clone() };
        assert!(matches!(policy("").plan(&context, &root), Err(PlanError::Root)));
    }
}

#[test]
fn an_ordinary_user_becomes_nobody_else() {
    let Bench { host, context, .. } = bench();
    let context = RunContext { identity: Some(Identity { uid: 1001, gid: 1001 }), ..context };
    assert!(matches!(
        policy("").plan(&context, &host),
        Err(PlanError::Foreign { caller: 1000, wanted: 1001 })
    ));
}

#[test]
fn an_old_landlock_fails_closed_unless_the_policy_says_otherwise() {
    let bench = bench();
    assert!(policy("").plan(&bench.context, &bench.host.clone().with_abi(6)).is_ok());
    for abi in 0..=5 {
        let host = bench.host.clone().with_abi(abi);
        let error = policy("").plan(&bench.context, &host).unwrap_err();
        assert!(matches!(error, PlanError::Abi { needed: 6, found, .. } if found == abi), "{error}");
        let lax = "compatibility = 'best_effort'\naccept = ['files']";
        let plan = policy(lax).plan(&bench.context, &host).unwrap();
        assert_eq!(layer(&plan, Layer::Scopes).state, State::Absent);
        assert_eq!(layer(&plan, Layer::Network).state, State::Enforced, "no socket can be made");
        let files =
            [State::Absent, State::Partial, State::Partial, State::Partial, State::Partial, State::Enforced];
        assert_eq!(layer(&plan, Layer::Files).state, files[abi as usize], "abi {abi}");
        assert_eq!(layer(&plan, Layer::UnixSockets).why.as_deref(), Some("none can be made"));
    }
}

#[test]
fn without_landlock_files_are_held_by_a_view_that_nothing_leads_out_of() {
    let bench = bench();
    let host = bench.host.clone().with_abi(0);
    let lax = |more: &str| policy(&format!("compatibility = 'best_effort'\n{more}"));
    let error = lax("").plan(&bench.context, &host).unwrap_err();
    assert!(matches!(error, PlanError::Files { .. }), "{error}");
    assert!(
        error.to_string().contains("/proc/<pid>/root") && error.to_string().contains("proc = \"none\""),
        "{error}"
    );
    let plan = lax("[filesystem]\nproc = 'none'").plan(&bench.context, &host).unwrap();
    assert_eq!(layer(&plan, Layer::Mounts).state, State::Enforced);
    assert_eq!(layer(&plan, Layer::Files).state, State::Partial);
    let error = lax("[filesystem]\nproc = 'none'")
        .plan(&bench.context, &host.clone().without_view("no"))
        .unwrap_err();
    assert!(matches!(error, PlanError::Files { .. }), "{error}");
    let plan = lax("accept = ['files']").plan(&bench.context, &host).unwrap();
    for which in [Layer::Mounts, Layer::Files] {
        let report = layer(&plan, which);
        assert_ne!(report.state, State::Enforced);
        assert!(report.why.as_deref().unwrap().contains("/proc/<pid>/root"), "{report:?}");
    }
}

#[test]
fn no_network_never_becomes_all_of_it() {
    let bench = bench();
    let host = bench.host.clone().with_abi(3).without_view("no");
    let context = RunContext { board: BoardAccess::Port(4711), ..bench.context.clone() };
    let lax = "compatibility = 'best_effort'";
    let error = policy(lax).plan(&context, &host).unwrap_err();
    assert!(matches!(error, PlanError::Network { .. }), "{error}");
    assert!(matches!(policy(lax).check_host(&host), Err(PlanError::Network { .. })));
    let accepts = policy(&format!("{lax}\naccept = ['network']"));
    accepts.check_host(&host).unwrap();
    let plan = accepts.plan(&context, &host).unwrap();
    assert!(layer(&plan, Layer::Network).why.as_deref().unwrap().contains("any port is open"));
    assert!(policy(lax).plan(&bench.context, &host).is_ok(), "no socket can be made");
}

#[test]
fn a_hard_policy_accepts_nothing() {
    let bench = bench();
    let text = "accept = ['files', 'network']";
    assert!(matches!(policy(text).plan(&bench.context, &bench.host.with_abi(0)), Err(PlanError::Abi { .. })));
}

#[test]
fn a_loopback_of_the_runs_own_hides_a_board_on_the_hosts() {
    let bench = bench();
    let test = policy("[network]\nmode = 'loopback'");
    assert!(test.plan(&bench.context, &bench.host).is_ok());
    let context = RunContext { board: BoardAccess::Port(4711), ..bench.context.clone() };
    assert!(matches!(test.plan(&context, &bench.host), Err(PlanError::Loopback { .. })));
    assert!(matches!(
        test.plan(&bench.context, &bench.host.without_view("no")),
        Err(PlanError::Loopback { .. })
    ));
}

#[test]
fn a_run_with_a_proxy_needs_a_network_of_its_own_and_somebody_who_keeps_its_socket() {
    let bench = bench();
    let proxied = policy("[network]\nmode = 'proxy'\nhosts = ['example.org', '*.example.net:8443']");
    assert!(matches!(proxied.plan(&bench.context, &bench.host), Err(PlanError::NoProxy { .. })));
    let path = bench.dir.path().join("keeper");
    let context = RunContext { proxy: Some(path.clone()), ..bench.context.clone() };
    assert!(matches!(proxied.plan(&context, &bench.host), Err(PlanError::Egress(_))));
    let _keeper = crate::Keeper::bind(&path).unwrap();
    let plan = proxied.plan(&context, &bench.host).unwrap();
    assert!(plan.loopback && plan.egress.is_some());
    assert!(layer(&plan, Layer::Network).why.as_deref().unwrap().contains("a proxy to 2 hosts"));

    let none = bench.host.clone().without_view("no");
    for compatibility in ["hard_requirement", "best_effort"] {
        let text = format!(
            "compatibility = '{compatibility}'\naccept = ['network', 'files']\n[network]\nmode = 'proxy'"
        );
        let refused = policy(&text);
        assert!(
            matches!(refused.plan(&context, &none), Err(PlanError::Loopback { .. })),
            "nothing else closes it"
        );
        assert!(matches!(refused.check_host(&none), Err(PlanError::Loopback { .. })));
    }
    assert!(proxied.check_host(&bench.host).is_ok());
}

#[test]
fn toolchains_need_a_home_and_grant_their_places_alone() {
    let bench = bench();
    let text = "[filesystem]\ntoolchains = ['cargo']";
    let error = policy(text).plan(&bench.context, &bench.host).unwrap_err();
    assert!(matches!(error, PlanError::Toolchain { .. }), "{error}");
    let home = bench.dir.path().join("ann");
    std::fs::create_dir_all(&home).unwrap();
    let context = RunContext { toolchain_home: Some(home.clone()), ..bench.context.clone() };
    let error = policy(text).plan(&context, &bench.host).unwrap_err();
    assert!(
        matches!(error, PlanError::Path(PathError::Open { .. })),
        "what is named has to be there: {error}"
    );
    std::fs::create_dir_all(home.join(".cargo/bin")).unwrap();
    std::os::unix::fs::symlink("/etc", bench.context.workspace.join(".rustup")).unwrap();
    let planted = RunContext { toolchain_home: Some(bench.context.workspace.clone()), ..bench.context };
    let error = policy("[filesystem]\ntoolchains = 'installed'").plan(&planted, &bench.host).unwrap_err();
    assert!(matches!(error, PlanError::Path(PathError::Planted { .. })), "{error}");
    assert!(policy(text).plan(&context, &bench.host).is_ok());
    let ask = |path: &str| policy(text).explain(&home.join(path), crate::Want::Execute, &context);
    assert!(matches!(ask(".cargo/bin/cargo"), crate::AccessDecision::Granted(_)));
    assert_eq!(ask(".cargo/credentials.toml"), crate::AccessDecision::Denied);
}

#[test]
fn no_grant_and_no_workspace_reaches_the_supervisors_places() {
    let bench = bench();
    let closed =
        |place: &Path| crate::ClosedPaths { places: vec![place.to_owned()], ..crate::ClosedPaths::default() };
    for place in [bench.context.workspace.clone(), bench.context.workspace.join("sv")] {
        std::fs::create_dir_all(&place).unwrap();
        let context = RunContext { closed: closed(&place), ..bench.context.clone() };
        let error = policy("").plan(&context, &bench.host).unwrap_err();
        assert!(matches!(error, PlanError::Closed { .. } | PlanError::Around { .. }), "{error}");
    }
}

/// Every path that a shipped policy grants for reading hides a root and a task's directory beneath it, or the run is
/// refused.
#[test]
fn no_shipped_policy_shows_a_root_or_a_tasks_directory_beneath_what_it_grants() {
    let bench = bench();
    let keeper = bench.dir.path().join("keeper");
    let _keeps = crate::Keeper::bind(&keeper).unwrap();
    let mut walked = 0;
    for name in Policy::builtin_names().iter().filter(|name| **name != "unconfined") {
        let policy = Policy::builtin(name).unwrap();
        let files = &policy.filesystem;
        for grant in files.ro.iter().chain(&files.rox).chain(&files.rw).chain(&files.rwx) {
            let crate::GrantPath::Absolute(path) = &grant.path else { continue };
            let (Ok(real), true) = (path.canonicalize(), path.is_dir()) else { continue };
            walked += 1;
            for (places, tasks) in [(vec![real.join("sv")], vec![]), (vec![], vec![real.join("task")])] {
                let closed = crate::ClosedPaths { places, own: vec![], tasks };
                let place = closed.places.iter().chain(&closed.tasks).next().unwrap().clone();
                let context = RunContext { closed, proxy: Some(keeper.clone()), ..bench.context.clone() };
                let plan = policy.plan(&context, &bench.host).unwrap();
                assert!(plan.view.unwrap().covers(&place), "{name}: {}", place.display());
                let without = bench.host.clone().without_view("no");
                let error = policy.plan(&context, &without).unwrap_err();
                assert!(
                    matches!(error, PlanError::Uncovered { .. } | PlanError::Loopback { .. }),
                    "{name}: {error}"
                );
            }
        }
    }
    assert!(walked > 4, "{walked}");
}

#[test]
fn a_policy_of_files_needs_the_right_to_truncate_however_low_its_floor() {
    let bench = bench();
    let error = policy("min_abi = 1").plan(&bench.context, &bench.host.clone().with_abi(2)).unwrap_err();
    assert!(matches!(error, PlanError::Abi { needed: 3, .. }), "{error}");
}

#[test]
fn a_policy_that_extends_none_and_names_no_floor_needs_the_scopes_of_abi_6() {
    let bench = bench();
    let alone = Policy::from_toml("version = 1\n", Path::new("test.toml")).unwrap();
    let error = alone.plan(&bench.context, &bench.host.clone().with_abi(5)).unwrap_err();
    assert!(matches!(error, PlanError::Abi { needed: 6, .. }), "{error}");
}

#[test]
fn open_ports_below_abi_4_are_refused_or_said_to_be_unruled() {
    let bench = bench();
    let text = |more: &str| {
        format!("compatibility = 'best_effort'\n{more}[network]\nmode = 'ports'\nconnect_tcp = [443]")
    };
    let host = bench.host.clone().with_abi(3);
    assert!(matches!(policy(&text("")).plan(&bench.context, &host), Err(PlanError::Network { .. })));
    let plan = policy(&text("accept = ['network']\n")).plan(&bench.context, &host).unwrap();
    assert!(layer(&plan, Layer::Network).why.as_deref().unwrap().contains("any port is open"));
}

#[test]
fn a_host_without_seccomp_is_refused_or_reported() {
    let Bench { dir: _dir, host, context } = bench();
    let host = Support { seccomp: false, ..host };
    assert!(matches!(policy("").plan(&context, &host), Err(PlanError::Seccomp)));
    assert!(matches!(
        policy("compatibility = 'best_effort'").plan(&context, &host),
        Err(PlanError::Network { .. })
    ));
    let lax = policy("compatibility = 'best_effort'\naccept = ['network']");
    let plan = lax.plan(&context, &host).unwrap();
    assert_eq!(layer(&plan, Layer::Syscalls).state, State::Absent);
    assert_eq!(layer(&plan, Layer::SetIds).state, State::Absent);
    let plan = lax.plan(&context, &host.without_view("no")).unwrap();
    assert_eq!(layer(&plan, Layer::UnixSockets).state, State::Absent);
}

#[test]
fn without_a_view_the_board_is_a_port() {
    let Bench { dir, host, context } = bench();
    let host = host.without_view("switched off");
    let socket = BoardAccess::Socket(dir.path().join("board/worker.sock"));
    let error = policy("").plan(&RunContext { board: socket, ..context.clone() }, &host).unwrap_err();
    assert!(error.to_string().contains("serve the board on a loopback port"), "{error}");
    policy("").check_host(&host).unwrap();
    let plan = policy("").plan(&RunContext { board: BoardAccess::Port(4711), ..context }, &host).unwrap();
    assert_eq!(layer(&plan, Layer::UnixSockets).why.as_deref(), Some("none can be made"));
    assert_eq!(layer(&plan, Layer::Mounts).state, State::Absent);
}

#[test]
fn a_required_view_that_cannot_be_had_is_an_error() {
    let bench = bench();
    let host = bench.host.without_view("not here");
    let error = policy("[process]\nmount_namespace = 'require'").plan(&bench.context, &host).unwrap_err();
    assert!(error.to_string().contains("not here"), "{error}");
    let why = |text: &str| {
        let plan = policy(text).plan(&bench.context, &host).unwrap();
        layer(&plan, Layer::Mounts).why.clone().unwrap()
    };
    assert!(why("").starts_with("not here: metadata"), "{}", why(""));
    assert_eq!(why("[process]\nmount_namespace = 'off'"), "the policy asks for none");
}

#[test]
fn a_missing_path_is_an_error_unless_it_is_optional() {
    let bench = bench();
    let error = policy("[filesystem]\nro = ['/no/such']").plan(&bench.context, &bench.host).unwrap_err();
    assert!(error.to_string().starts_with("open /no/such:"), "{error}");
    let optional =
        |path: &str| policy(&format!("[filesystem]\nro = [{{ path = '{path}', optional = true }}]"));
    assert!(optional("/no/such").plan(&bench.context, &bench.host).is_ok());
    std::os::unix::fs::symlink("/etc", bench.context.workspace.join("link")).unwrap();
    let error = optional("{workspace}/link").plan(&bench.context, &bench.host).unwrap_err();
    assert!(matches!(error, PlanError::Path(PathError::Linked { .. })), "{error}");
}

#[test]
fn a_link_that_a_worker_planted_is_never_followed() {
    let bench = bench();
    let cache = bench.context.workspace.join("cache");
    std::os::unix::fs::symlink("/etc", &cache).unwrap();
    let words = ["{workspace}/cache".to_owned(), cache.display().to_string()];
    for word in words {
        let error =
            policy(&format!("[filesystem]\nrw = ['{word}']")).plan(&bench.context, &bench.host).unwrap_err();
        assert!(
            matches!(error, PlanError::Path(PathError::Linked { .. } | PathError::Planted { .. })),
            "{error}"
        );
    }
    let context = RunContext { write: vec![cache], ..bench.context };
    assert!(matches!(policy("").plan(&context, &bench.host), Err(PlanError::Path(PathError::Linked { .. }))));
}

#[test]
fn a_cgroup_that_cannot_be_joined_is_an_error_and_a_missing_control_a_gap() {
    let bench = bench();
    let cgroup = bench.dir.path().join("cgroup");
    let context = RunContext { work_cgroup: Some(cgroup.clone()), ..bench.context };
    assert!(matches!(policy("").plan(&context, &bench.host), Err(PlanError::Cgroup { .. })));
    std::fs::create_dir(&cgroup).unwrap();
    std::fs::write(cgroup.join("cgroup.procs"), "").unwrap();
    let plan = policy("").plan(&context, &bench.host).unwrap();
    assert!(layer(&plan, Layer::Cgroup).why.as_deref().unwrap().starts_with("pids.max:"));
}

#[test]
fn what_stays_open_for_a_shared_user_is_said() {
    let bench = bench();
    let plan = policy("").plan(&bench.context, &bench.host).unwrap();
    assert!(layer(&plan, Layer::Uid).why.as_deref().unwrap().starts_with("shared"));
    let plan = policy("").plan(&bench.context, &bench.host.clone().without_view("no")).unwrap();
    assert!(layer(&plan, Layer::Uid).why.as_deref().unwrap().contains("chmod"));
    assert!(layer(&plan, Layer::Limits).why.as_deref().unwrap().contains("not set"));
    let context = RunContext { identity: Some(Identity { uid: 1000, gid: 1000 }), ..bench.context.clone() };
    let plan = policy("").plan(&context, &bench.host.clone().without_view("no")).unwrap();
    assert_eq!(plan.counting, Counting::Shared, "it stays who it is");
}

#[test]
fn a_limit_that_nothing_holds_is_refused_or_reported() {
    let bench = bench();
    let hard = policy("[limits]\nmemory = '64MiB'");
    let error = hard.check_host(&bench.host).unwrap_err();
    assert!(error.to_string().contains("limit memory"), "{error}");
    assert!(matches!(hard.plan(&bench.context, &bench.host), Err(PlanError::Limit { .. })));
    let host = bench.host.clone().with_controllers([Controller::Memory].into());
    assert!(hard.check_host(&host).is_ok());
    let cgroup = bench.dir.path().join("cgroup");
    std::fs::create_dir(&cgroup).unwrap();
    std::fs::write(cgroup.join("cgroup.procs"), "").unwrap();
    let context = RunContext { work_cgroup: Some(cgroup.clone()), ..bench.context.clone() };
    let error = hard.plan(&context, &host).unwrap_err();
    assert!(matches!(error, PlanError::Limit { limit: Controller::Memory, .. }), "{error}");
    let soft = policy("compatibility = 'best_effort'\n[limits]\nmemory = '64MiB'");
    assert!(soft.check_host(&bench.host).is_ok());
    let plan = soft.plan(&context, &host).unwrap();
    assert_eq!(layer(&plan, Layer::Cgroup).state, State::Partial);
    std::fs::write(cgroup.join("memory.max"), "max").unwrap();
    assert!(hard.plan(&context, &host).is_ok());
    hard.hold_limits(&cgroup).unwrap();
    assert_eq!(std::fs::read_to_string(cgroup.join("memory.max")).unwrap(), "67108864");
}

#[test]
fn a_view_is_for_confined_runs_whose_policy_wants_one_on_a_host_that_has_one() {
    let bench = bench();
    let without = bench.host.clone().without_view("no");
    let unconfined = Policy::builtin("unconfined").unwrap();
    for (policy, host, has) in [
        (policy(""), &bench.host, true),
        (policy(""), &without, false),
        (policy("[process]\nmount_namespace = 'off'"), &bench.host, false),
        (unconfined, &bench.host, false),
    ] {
        assert_eq!(policy.has_view(host), has, "{}", policy.name());
        assert_eq!(policy.plan(&bench.context, host).unwrap().view.is_some(), has, "{}", policy.name());
    }
}

#[test]
fn system_calls_are_filtered_for_confined_runs_whose_policy_wants_that() {
    let bench = bench();
    let unconfined = Policy::builtin("unconfined").unwrap();
    for (policy, is_filtered) in [
        (policy(""), true),
        (policy("accept = ['network']\ncompatibility = 'best_effort'\n[process]\nseccomp = 'off'"), false),
        (unconfined, false),
    ] {
        let plan = policy.plan(&bench.context, &bench.host).unwrap();
        assert_eq!(plan.filter.is_some(), is_filtered, "{}", policy.name());
        assert_eq!(layer(&plan, Layer::Syscalls).state == State::Enforced, is_filtered);
    }
}

#[test]
fn what_is_granted_instead_of_a_view_is_opened_for_confined_runs_alone() {
    let bench = bench();
    let arrangement =
        crate::Arrangement { read_without_view: vec!["/no/such".into()], ..crate::Arrangement::default() };
    let context = RunContext { arrangement, ..bench.context };
    let host = bench.host.without_view("no");
    assert!(matches!(policy("").plan(&context, &host), Err(PlanError::Path(_))));
    assert!(Policy::builtin("unconfined").unwrap().plan(&context, &host).is_ok());
}

#[test]
fn a_proc_of_the_runs_own_is_granted_once_it_is_there() {
    let bench = bench();
    let late = |text: &str, pid_namespace| {
        let context = RunContext { pid_namespace, ..bench.context.clone() };
        let plan = policy(text).plan(&context, &bench.host).unwrap();
        plan.late.contains(&("/proc".into(), Access::Read))
    };
    let (own, none) = (Some(crate::PidNamespace::UserNamespace), "[filesystem]\nproc = 'none'");
    assert!(late("[filesystem]\nproc = 'host'", own));
    assert!(!late("[filesystem]\nproc = 'host'", None) && !late(none, own) && !late(none, None));
}

#[test]
fn sockets_are_covered_where_landlock_does_not_rule_them() {
    let bench = bench();
    let shown = bench.dir.path().canonicalize().unwrap().join("shown");
    std::fs::create_dir(&shown).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(shown.join("x.sock")).unwrap();
    let context = RunContext { read: vec![shown.clone()], ..bench.context };
    for (abi, covered) in [(8, true), (9, false)] {
        let policy = policy("");
        let granted = policy.open_files(&context).unwrap();
        let (view, _) = policy.view(&context, &bench.host, abi, &granted).unwrap();
        assert_eq!(view.unwrap().covers(&shown.join("x.sock")), covered, "{abi}");
    }
}

#[test]
fn the_secrets_of_a_run_are_taken_out_of_its_plan_once() {
    let bench = bench();
    let key = bench.dir.path().join("key");
    std::fs::write(&key, "value").unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let text = format!("[env]\nsecret = {{ KEY = {{ file = '{}' }} }}", key.display());
    let mut plan = policy(&text).plan(&bench.context, &bench.host).unwrap();
    assert!(plan.take_secrets().into_iter().eq([("KEY".to_owned(), "value".into())]));
    assert_eq!(plan.take_secrets().into_iter().count(), 0);
}
