//! The built binary as shim and worker: real processes, real confinement, hand-made run directories.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]

mod lab;
mod terminal;

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use serde_json::{Value, json};

use crate::lab::{Freezer, Host, LIMIT, Run, alive, boottime_us, eventually};

/// Leaves a process in a session of its own, whose parent has ended, that ignores TERM and has the output open.
const DAEMON: &str = r#"setsid sh -c 'setsid sh -c "trap \"\" TERM HUP; echo \$\$ > daemon; while :; do sleep 1000; done" & '; "#;

#[test]
fn a_worker_that_exits_is_recorded_with_its_code_its_output_and_what_confined_it() {
    for host in Host::all() {
        let run = Run::new(&host);
        let prompt = run.place.path().join("prompt");
        fs::write(&prompt, "hello").unwrap();
        let poked = UnixDatagram::bind(run.place.path().join("poke.sock")).unwrap();
        poked.set_read_timeout(Some(LIMIT)).unwrap();
        run.write(&json!({
            "argv": ["sh", "-c", "cat; echo oops >&2; echo $GREETING > said; echo via >/dev/stdout; exit 3"],
            "stdin": {"file": prompt},
        }));

        assert_eq!(run.start().ends().code(), Some(0));

        let exit = run.exit();
        assert_eq!(
            (&exit["cause"], &exit["code"], &exit["signal"]),
            (&json!("exited"), &json!(3), &Value::Null)
        );
        assert_eq!(exit["stdout_tail"], "hellovia\n", "{exit}");
        assert_eq!((&exit["stderr_tail"], &exit["lingered"]), (&json!("oops\n"), &json!(0)));
        assert_eq!(exit["stdout"], json!({"written": 9, "left_out": 0}), "{exit}");
        assert_eq!(fs::read_to_string(run.stdout()).unwrap(), "hellovia\n", "apart from the log");
        assert_eq!(fs::metadata(run.stdout()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(exit["usage"]["max_rss_kib"].is_u64());
        assert!(exit["started_at_us"].as_u64().unwrap() <= exit["ended_at_us"].as_u64().unwrap());
        let log = fs::read_to_string(run.log()).unwrap();
        assert!(log.contains("hello") && log.contains("oops\n"));
        assert_eq!(fs::metadata(run.log()).unwrap().permissions().mode() & 0o777, 0o600);
        let started = run.record("started").unwrap();
        assert_eq!(started["report"]["policy"], "default");
        assert_eq!(fs::read_to_string(run.workspace().join("said")).unwrap(), "hi\n");
        for what in ["started", "exit"] {
            let mut datagram = [0; 256];
            let length = poked.recv(&mut datagram).unwrap();
            let poke: Value = serde_json::from_slice(&datagram[..length]).unwrap();
            assert_eq!(poke, json!({"board": "b0a2d", "run": 7, "what": what}));
        }
        assert!(run.lock_is_free());
    }
}

#[test]
fn a_worker_that_dies_of_a_signal_is_recorded_with_the_signal() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "kill -SEGV $$"]}));
    assert_eq!(run.start().ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!(
        (&exit["cause"], &exit["signal"], &exit["code"]),
        (&json!("exited"), &json!(11), &Value::Null)
    );
    assert_eq!(exit["core_dumped"], false, "its policy permits no core file: {exit}");
}

/// Returns true if the kernel writes core files into the directory of the process.
fn cores_are_files() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let is_file = pattern.trim() == "core";
    if !is_file {
        skips::skip(&format!("core files go elsewhere ({})", pattern.trim()));
    }
    is_file
}

#[test]
fn a_core_file_is_recorded_where_the_policy_permits_one() {
    if !cores_are_files() {
        return;
    }
    for host in Host::all() {
        let run = Run::new(&host);
        let mut policy = serde_json::to_value(policies::Policy::builtin("default").unwrap()).unwrap();
        policy["limits"]["core"] = json!("64MiB");
        run.write(&json!({"argv": ["sh", "-c", "kill -SEGV $$"], "policy": policy}));
        assert_eq!(run.start().ends().code(), Some(0));
        let exit = run.exit();
        assert_eq!((&exit["signal"], &exit["core_dumped"]), (&json!(11), &json!(true)), "{exit}");
    }
}

#[test]
fn what_all_processes_of_a_run_read_and_write_is_counted() {
    for host in Host::all() {
        let run = Run::new(&host);
        // A child and its child write; each page is written once, in a file of its own.
        let script = "dd if=/dev/zero of=a bs=4096 count=256 conv=fsync 2>/dev/null; \
             sh -c 'dd if=/dev/zero of=b bs=4096 count=256 conv=fsync 2>/dev/null; true'";
        run.write(&json!({"argv": ["sh", "-c", script]}));
        assert_eq!(run.start().ends().code(), Some(0));
        let usage = &run.exit()["usage"];
        if !std::path::Path::new("/proc/self/io").exists() {
            skips::skip("this kernel does not count what processes read and write");
            assert!(usage.get("written_bytes").is_none(), "{usage}");
            continue;
        }
        if statfs(run.place.path()).unwrap().filesystem_type() == TMPFS_MAGIC {
            skips::skip("what is written to a file system in memory is not counted");
            continue;
        }
        assert!(usage["read_bytes"].is_u64(), "{usage}");
        assert!(usage["written_bytes"].as_u64().unwrap() >= 2 * 256 * 4096, "{usage}");
    }
}

#[test]
fn what_outlives_its_worker_is_ended_though_it_left_the_session_and_holds_the_output_open() {
    for host in Host::all() {
        let run = Run::new(&host);
        run.write(
            &json!({"argv": ["sh", "-c", format!("{DAEMON} until [ -s daemon ]; do :; done; exit 0")]}),
        );
        assert_eq!(run.start().ends().code(), Some(0));
        let exit = run.exit();
        assert_eq!((&exit["cause"], &exit["code"]), (&json!("exited"), &json!(0)));
        assert!(exit["lingered"].as_u64().unwrap() >= 1, "{exit}");
        assert!(!alive(run.told("daemon")));
        assert!(host.is_empty());
    }
}

#[test]
fn a_worker_that_ignores_term_is_killed_after_the_grace_with_all_it_started() {
    for host in Host::all() {
        let run = Run::new(&host);
        run.write(&json!({"argv": ["sh", "-c", format!("trap '' TERM; {DAEMON} echo $$ > leader; while :; do sleep 1000; done")]}));
        let shim = run.start();
        let (leader, daemon) = (run.told("leader"), run.told("daemon"));
        run.stop("cancelled", 0, 100);
        shim.signal(Signal::SIGTERM);
        assert_eq!(shim.ends().code(), Some(0));
        let exit = run.exit();
        assert_eq!((&exit["cause"]["stopped"]["reason"], &exit["signal"]), (&json!("cancelled"), &json!(9)));
        assert!(!alive(leader) && !alive(daemon));
        assert!(host.is_empty());
    }
}

#[test]
fn a_chain_that_forks_and_exits_for_ever_is_caught() {
    for host in Host::all() {
        let run = Run::new(&host);
        run.write(&json!({"argv": ["sh", "-c", "f() { f & }; f; echo $$ > leader; exec sleep 1000"]}));
        let shim = run.start();
        run.told("leader");
        run.stop("kill", 0, 0);
        shim.signal(Signal::SIGTERM);
        assert_eq!(shim.ends().code(), Some(0));
        assert_eq!(run.exit()["cause"]["stopped"]["reason"], "kill");
        assert!(host.is_empty());
    }
}

#[test]
fn term_reaches_the_whole_tree() {
    let run = Run::new(&Host::Bare);
    let child = "trap 'echo got > child; exit' TERM; echo $$ > ready; while :; do sleep 0.01; done";
    let leader =
        format!("trap : TERM; setsid sh -c \"{child}\" & until [ -s child ]; do sleep 0.01; done; exit 5");
    run.write(&json!({"argv": ["sh", "-c", leader]}));
    let shim = run.start();
    run.told("ready");
    run.stop("preempted", 0, 20_000);
    shim.signal(Signal::SIGTERM);
    assert_eq!(shim.ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!((&exit["cause"]["stopped"]["reason"], &exit["code"]), (&json!("preempted"), &json!(5)));
}

/// Runs a script to its deadline, and returns its exit record. The script makes the file `ready` when its traps are set: a
/// host that is too slow for the first deadline gets a later one.
fn to_its_deadline(host: &Host, script: &str, grace_ms: u64) -> serde_json::Value {
    for allowed in [300_000, 3_000_000, 30_000_000] {
        let run = Run::new(host);
        run.write(&json!({"argv": ["sh", "-c", script],
            "deadline_us": boottime_us() + allowed, "grace_ms": grace_ms}));
        assert_eq!(run.start().ends().code(), Some(0));
        if run.workspace().join("ready").exists() {
            return run.exit();
        }
    }
    panic!("the script was never ready");
}

#[test]
fn a_deadline_ends_a_worker_that_stopped_itself() {
    for host in Host::all() {
        let script = "trap 'exit 7' TERM; touch ready; kill -STOP $$; while :; do sleep 0.01; done";
        let exit = to_its_deadline(&host, script, 60_000);
        assert_eq!((&exit["cause"], &exit["code"]), (&json!("deadline"), &json!(7)), "{exit}");
    }
}

#[test]
fn a_deadline_kills_a_worker_that_ignores_it() {
    let exit = to_its_deadline(&Host::Bare, "trap '' TERM; touch ready; while :; do sleep 1000; done", 100);
    assert_eq!((&exit["cause"], &exit["signal"]), (&json!("deadline"), &json!(9)));
}

#[test]
fn a_worker_that_ends_in_the_quiet_time_after_its_verdict_has_ended_by_itself() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo $$ > leader; until [ -e go ]; do :; done; exit 4"]}));
    let shim = run.start();
    run.told("leader");
    run.stop("verdict", 60_000, 5_000);
    shim.signal(Signal::SIGTERM);
    fs::write(run.workspace().join("go"), "").unwrap();
    assert_eq!(shim.ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!((&exit["cause"], &exit["code"]), (&json!("exited"), &json!(4)));
}

#[test]
fn a_worker_that_stays_after_its_verdict_is_ended() {
    let run = Run::new(&Host::Bare);
    run.write(
        &json!({"argv": ["sh", "-c", "trap 'exit 6' TERM; echo $$ > leader; while :; do sleep 0.01; done"]}),
    );
    let shim = run.start();
    run.told("leader");
    run.stop("verdict", 100, 20_000);
    shim.signal(Signal::SIGTERM);
    assert_eq!(shim.ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!((&exit["cause"]["stopped"]["reason"], &exit["code"]), (&json!("verdict"), &json!(6)));
}

#[test]
fn a_term_without_a_request_preempts() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo $$ > leader; exec sleep 1000"]}));
    let shim = run.start();
    run.told("leader");
    shim.signal(Signal::SIGTERM);
    assert_eq!(shim.ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!((&exit["cause"]["stopped"]["reason"], &exit["signal"]), (&json!("preempted"), &json!(15)));
}

#[test]
fn a_start_that_fails_names_its_step() {
    let cases = [
        ("exec", json!({"argv": ["no-such-program"]})),
        ("cwd", json!({"cwd": "/no/such/place"})),
        ("spec", json!({"argv": []})),
        ("spec", json!({"policy": 42})),
        ("spec", json!({"version": 99})),
        ("spec", json!({"log": 1})),
        ("spawn", json!({"stdin": {"file": "/no/such/prompt"}})),
        ("cgroup", json!({"cgroup": "/no/such/cgroup"})),
    ];
    for (step, change) in cases {
        let run = Run::new(&Host::Bare);
        run.write(&change);
        assert_eq!(run.start().ends().code(), Some(0), "{change}");
        let exit = run.exit();
        let failed = &exit["cause"]["spawn_failed"];
        assert_eq!((&failed["step"], &exit["code"]), (&json!(step), &Value::Null), "{change}: {exit}");
        assert!(run.record("started").is_none());
    }
}

#[test]
fn a_late_shim_of_a_revoked_run_runs_nothing() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo > ran"]}));
    fs::write(run.path().join("revoked"), "1").unwrap();
    assert_eq!(run.start().ends().code(), Some(76));
    assert!(!run.workspace().join("ran").exists() && run.record("pid").is_none());
}

#[test]
fn a_run_has_one_shim_and_is_run_once() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo $$ > leader; until [ -e go ]; do :; done"]}));
    let first = run.start();
    run.told("leader");
    assert_eq!(run.start().ends().code(), Some(75));
    fs::write(run.workspace().join("go"), "").unwrap();
    assert_eq!(first.ends().code(), Some(0));
    assert_eq!(run.start().ends().code(), Some(76));
    assert_eq!(run.exit()["code"], 0);
}

#[test]
fn a_shim_that_waited_for_its_run_leaves_the_cgroup_to_the_worker() {
    for host in Host::all() {
        let run = Run::new(&host);
        run.write(&json!({"argv": ["sh", "-c", "echo $$ > pid; exec sleep 600"]}));
        let mut shim = run.wait();
        shim.child.stdin.take().unwrap().write_all(run.path().as_os_str().as_bytes()).unwrap();
        let worker = run.told("pid");
        if let Some(group) = host.path() {
            let members = |leaf: &str| fs::read_to_string(group.join(leaf).join("cgroup.procs")).unwrap();
            eventually("the shim moves", || members("shim") == format!("{}\n", shim.child.id()));
            assert_eq!(members("work"), format!("{worker}\n"));
        }

        run.stop("kill", 0, 0);
        shim.signal(Signal::SIGTERM);
        assert_eq!(shim.ends().code(), Some(0));

        assert_eq!(run.exit()["cause"], json!({"stopped": {"reason": "kill"}}));
        assert!(!alive(worker) && host.is_empty());
    }
}

#[test]
fn a_shim_that_waits_ends_when_there_will_be_no_run() {
    for host in Host::all() {
        let run = Run::new(&host);
        let mut shim = run.wait();
        drop(shim.child.stdin.take());
        assert_eq!(shim.ends().code(), Some(0));
        assert!(host.is_empty());
    }
}

#[test]
fn a_line_of_a_hundred_megabytes_without_an_end_fills_the_log_up_to_its_cap_and_takes_no_memory() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x; echo $$ > leader; until [ -e go ]; do :; done"],
        "log_cap": 100_000, "stdout_cap": 50_000}));
    let shim = run.start();
    run.told("leader");
    let private = shim.private_kib();
    assert!(private < 4096, "{private} KiB");
    fs::write(run.workspace().join("go"), "").unwrap();
    assert_eq!(shim.ends().code(), Some(0));
    let log = fs::read_to_string(run.log()).unwrap();
    assert!(log.len() <= 100_000 && log.starts_with("xxx") && log.contains("bytes left out]"));
    assert_eq!(run.exit()["stdout"]["written"], 100_000_000);
}

#[test]
fn a_flood_fills_the_log_up_to_its_cap_and_takes_no_memory() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo first; yes | head -c 30000000; echo last; echo $$ > leader; until [ -e go ]; do :; done"],
        "log_cap": 100_000, "stdout_cap": 50_000}));
    let shim = run.start();
    run.told("leader");
    let private = shim.private_kib();
    assert!(private < 4096, "{private} KiB");
    fs::write(run.workspace().join("go"), "").unwrap();
    assert_eq!(shim.ends().code(), Some(0));
    let log = fs::read_to_string(run.log()).unwrap();
    assert!(log.len() <= 100_000 && log.starts_with("first\n") && log.ends_with("y\nlast\n"));
    assert!(log.contains("bytes left out]"));
    let stdout = fs::read_to_string(run.stdout()).unwrap();
    assert!(stdout.len() <= 50_000 && stdout.starts_with("first\n") && stdout.ends_with("y\nlast\n"));
    let told = run.exit()["stdout"].clone();
    assert_eq!(told["written"], 30_000_011, "{told}");
    let marker = stdout.lines().find(|line| line.starts_with("[supervisor: ")).unwrap().len() as u64 + 2;
    let kept = told["written"].as_u64().unwrap() - told["left_out"].as_u64().unwrap();
    assert_eq!(kept + marker, stdout.len() as u64, "{told}");
}

#[test]
fn standard_error_does_not_get_into_the_standard_output_and_each_keeps_its_order() {
    let run = Run::new(&Host::Bare);
    let script = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    run.write(&json!({"argv": ["sh", "-c", script]}));
    assert_eq!(run.start().ends().code(), Some(0));
    let of = |word: &str| (0..500).map(|i| format!("{word} {i}")).collect::<Vec<_>>();
    let stdout = fs::read_to_string(run.stdout()).unwrap();
    assert_eq!(stdout.lines().collect::<Vec<_>>(), of("out"));
    let log = fs::read_to_string(run.log()).unwrap();
    for word in ["out", "err"] {
        let own: Vec<_> = log.lines().filter(|line| line.starts_with(word)).collect();
        assert_eq!(own, of(word), "the log has all of it, in its own order");
    }
}

#[test]
fn a_killed_shim_takes_its_worker_along_and_leaves_a_free_lock_and_no_record() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo $$ > leader; exec sleep 1000"]}));
    let shim = run.start();
    let leader = run.told("leader");
    shim.signal(Signal::SIGKILL);
    assert_eq!(shim.ends().signal(), Some(9));
    eventually("the worker is gone", || !alive(leader));
    assert!(run.lock_is_free() && run.exit_record().is_none() && run.record("pid").is_some());
}

#[test]
fn a_request_to_stop_that_came_before_the_shim_is_heard() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sleep", "1000"]}));
    run.stop("reclaimed", 0, 100);
    assert_eq!(run.start().ends().code(), Some(0));
    assert_eq!(run.exit()["cause"]["stopped"]["reason"], "reclaimed");
}

#[test]
fn a_full_disk_takes_the_log_and_not_the_worker() {
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "yes | head -c 1000000; echo end; exit 2"], "log": "/dev/full"}));
    assert_eq!(run.start().ends().code(), Some(0));
    let exit = run.exit();
    assert_eq!((&exit["cause"], &exit["code"]), (&json!("exited"), &json!(2)));
    assert!(exit["stdout_tail"].as_str().unwrap().ends_with("y\nend\n"));
}

#[test]
fn what_outlives_sigkill_is_named_and_keeps_the_lock() {
    let Some(freezer) = Freezer::make() else {
        skips::skip("no freezer to make an unkillable process with");
        return;
    };
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "sleep 1000 & echo $! > frozen; wait"]}));
    let shim = run.start();
    let frozen = run.told("frozen");
    freezer.freeze(frozen);
    run.stop("kill", 0, 0);
    let killed_at = boottime_us();
    shim.signal(Signal::SIGTERM);
    eventually("the shim says what it waits for", || run.record("unkillable").is_some());
    let unkillable = run.record("unkillable").unwrap();
    assert_eq!(unkillable["processes"][0]["pid"], frozen);
    let after = unkillable["at_us"].as_u64().unwrap() - killed_at;
    assert!(after >= 10_000_000, "a host that is only busy ends processes within {after} µs");
    assert!(!run.lock_is_free() && run.exit_record().is_none());
    freezer.thaw();
    assert_eq!(shim.ends().code(), Some(0));
    assert_eq!(run.exit()["survivors"], 0);
    assert!(run.record("unkillable").is_none());
}

#[test]
fn a_worker_that_hangs_is_ended_as_stalled_and_one_that_works_in_silence_is_not() {
    for host in Host::all() {
        let hangs = Run::new(&host);
        hangs.write(&json!({"argv": ["sh", "-c", "echo begun; exec sleep 1000"], "idle_ms": 1000}));
        assert_eq!(hangs.start().ends().code(), Some(0));
        assert_eq!(hangs.exit()["cause"]["stopped"]["reason"], "stalled", "{}", hangs.exit());

        // For more than five times the limit: a processor that is used, and processes that start.
        let busy = "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done";
        let starts = "i=0; while [ $i -lt 30 ]; do sleep 0.2; i=$((i+1)); done";
        for script in [busy, starts] {
            let works = Run::new(&host);
            works.write(&json!({"argv": ["sh", "-c", script], "idle_ms": 1000}));
            assert_eq!(works.start().ends().code(), Some(0));
            let exit = works.exit();
            assert_eq!((&exit["cause"], &exit["code"]), (&json!("exited"), &json!(0)), "{script}: {exit}");
        }
    }
}

#[test]
fn a_worker_that_gives_heartbeats_goes_on_and_ends_when_it_gives_none() {
    const LIMIT_MS: u64 = 4_000;
    let run = Run::new(&Host::Bare);
    run.write(&json!({"argv": ["sh", "-c", "echo $$ > begun; exec sleep 1000"], "idle_ms": LIMIT_MS}));
    let mut shim = run.start();
    run.told("begun");
    let beats_until = boottime_us() + 3 * LIMIT_MS * 1000;
    eventually("it was given heartbeats for three times its limit", || {
        assert!(shim.child.try_wait().unwrap().is_none(), "it was ended: {:?}", run.exit_record());
        let file = fs::File::create(run.path().join("heartbeat")).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
        boottime_us() >= beats_until
    });
    assert_eq!(shim.ends().code(), Some(0));
    assert_eq!(run.exit()["cause"]["stopped"]["reason"], "stalled", "{}", run.exit());
}
