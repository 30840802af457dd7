//! Workers at a terminal: what they find, what is typed, and what they do to it.

use std::fs;

use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::unistd::ttyname;
use serde_json::{Value, json};
use shim::rundir::{Keyed, NotKeyed, RunDir, TerminalSize};

use crate::lab::{Host, Run, Shim, alive, eventually};

/// A worker at a terminal of 40 lines with 120 characters.
fn at_terminal(run: &Run, script: &str, more: &Value) -> Shim {
    let mut spec = json!({"argv": ["sh", "-c", script], "terminal": {"rows": 40, "columns": 120}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    run.write(&spec);
    run.start()
}

fn shown(run: &Run) -> String {
    fs::read(run.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn shows(run: &Run, text: &str) {
    eventually(text, || shown(run).contains(text));
}

fn key(run: &Run, text: &str) {
    RunDir::open(&run.path()).unwrap().key(&Keyed::Text(text.as_bytes().to_vec())).unwrap();
}

#[test]
fn a_worker_at_a_terminal_has_it_alone_and_reads_what_is_typed() {
    for host in Host::all() {
        let run = Run::new(&host);
        let script = "test -t 0 && test -t 1 && test -t 2 && echo all three; stty size </dev/tty; echo via >/dev/tty; \
                      read line; echo \"got $line\"; trap 'stty size; exit 3' WINCH; echo waits; while :; do sleep 0.05; done";
        let shim = at_terminal(&run, script, &json!({}));
        shows(&run, "all three\r\n40 120\r\nvia\r\n");
        key(&run, "hello\r");
        shows(&run, "got hello\r\nwaits");
        let size = TerminalSize { rows: 50, columns: 132 };
        RunDir::open(&run.path()).unwrap().key(&Keyed::Size(size)).unwrap();
        assert_eq!(shim.ends().code(), Some(0));
        let exit = run.exit();
        assert_eq!((&exit["cause"], &exit["code"]), (&json!("exited"), &json!(3)), "{exit}");
        assert!(shown(&run).ends_with("50 132\r\n"), "{:?}", shown(&run));
        assert_eq!(fs::read_to_string(run.stdout()).unwrap(), shown(&run), "all of it is one stream");
        assert!(host.is_empty());
    }
}

#[test]
fn ctrl_c_reaches_the_program_in_front_and_not_the_shim() {
    let run = Run::new(&Host::Bare);
    let shim = at_terminal(
        &run,
        "trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.05; done",
        &json!({}),
    );
    shows(&run, "ready");
    key(&run, "\x03");
    assert_eq!(shim.ends().code(), Some(0));
    assert_eq!(run.exit()["code"], 4);
    assert!(shown(&run).contains("interrupted"));
}

#[test]
fn a_worker_at_a_terminal_types_into_no_terminal_and_opens_none_of_others() {
    let others = openpty(None, None).unwrap();
    let name = ttyname(&others.slave).unwrap().display().to_string();
    // Open to everybody, so that only the policy is in the way.
    fs::set_permissions(&name, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let run = Run::new(&Host::Bare);
    let script = format!(
        "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")' 2>&1 | tail -n 1; \
         python3 -c 'import fcntl; fcntl.ioctl(0, 0x541c, b\"\\x02\")' 2>&1 | tail -n 1; \
         (echo x > {name}) 2>/dev/null && echo OPEN || echo closed"
    );
    let shim = at_terminal(&run, &script, &json!({}));
    assert_eq!(shim.ends().code(), Some(0));
    let shown = shown(&run);
    assert_eq!(shown.matches("Operation not permitted").count(), 2, "{shown}");
    assert!(shown.ends_with("closed\r\n"), "{shown}");
}

#[test]
fn a_flood_at_a_terminal_is_cut_as_any_other_and_a_key_still_ends_it() {
    let run = Run::new(&Host::Bare);
    let caps = json!({"log_cap": 100_000, "stdout_cap": 50_000});
    let shim = at_terminal(&run, "echo first; yes; echo last", &caps);
    eventually("it is cut", || shown(&run).contains("bytes left out]"));
    let private = shim.private_kib();
    assert!(private < 4096, "{private} KiB");
    key(&run, "\x03");
    assert_eq!(shim.ends().code(), Some(0));
    let shown = shown(&run);
    assert!(shown.len() <= 100_000 && shown.starts_with("first\r\n"), "{}", shown.len());
}

#[test]
fn what_a_worker_does_not_read_is_refused_to_who_types_and_keeps_nobody() {
    let run = Run::new(&Host::Bare);
    let shim = at_terminal(&run, "stty raw -echo; echo deaf; while :; do sleep 1000; done", &json!({}));
    shows(&run, "deaf");
    let dir = RunDir::open(&run.path()).unwrap();
    let text = Keyed::Text(vec![b'x'; Keyed::BYTES]);
    let mut passed = 0;
    eventually("it is full", || match dir.key(&text) {
        Ok(()) => {
            passed += 1;
            false
        }
        Err(NotKeyed::Full) => true,
        Err(error) => panic!("{error}"),
    });
    assert!(passed < 100, "{passed} of them");
    // It sleeps until there is room, and does what it is there for.
    let stat = || fs::read_to_string(format!("/proc/{}/stat", shim.child.id())).unwrap();
    eventually("the shim sleeps", || stat().contains(") S "));
    shim.signal(Signal::SIGTERM);
    assert_eq!(shim.ends().code(), Some(0));
    assert_eq!(run.exit()["cause"], json!({"stopped": {"reason": "preempted"}}));
}

#[test]
fn a_terminal_that_its_worker_has_closed_can_be_opened_again() {
    let run = Run::new(&Host::Bare);
    let script = "exec </dev/null >/dev/null 2>&1; echo $$ > closed; until [ -e go ]; do sleep 0.02; done; \
                  exec </dev/tty >/dev/tty; echo again; read line; echo \"got $line\"";
    let shim = at_terminal(&run, script, &json!({}));
    run.told("closed");
    let stat = || fs::read_to_string(format!("/proc/{}/stat", shim.child.id())).unwrap();
    eventually("the shim sleeps", || stat().contains(") S "));
    fs::write(run.workspace().join("go"), "").unwrap();
    shows(&run, "again");
    key(&run, "x\r");
    assert_eq!(shim.ends().code(), Some(0));
    assert!(shown(&run).contains("got x"), "{}", shown(&run));
}

#[test]
fn what_holds_the_terminal_after_its_worker_is_ended_with_the_run() {
    for host in Host::all() {
        let run = Run::new(&host);
        let hold =
            "setsid sh -c 'trap \"\" TERM HUP; echo $$ > holder; while :; do echo x; sleep 0.01; done' & ";
        let shim = at_terminal(
            &run,
            &format!("{hold} until [ -s holder ]; do sleep 0.02; done; test -t 1 && echo over; exit 5"),
            &json!({}),
        );
        let holder = run.told("holder");
        assert_eq!(shim.ends().code(), Some(0));
        assert!(!alive(holder), "{holder}");
        let exit = run.exit();
        assert_eq!((&exit["code"], &exit["survivors"]), (&json!(5), &json!(0)), "{exit}");
        assert!(shown(&run).contains("over"));
        assert!(host.is_empty());
    }
}
