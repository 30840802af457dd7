//! The shipped unit under a real systemd, in namespaces and a root directory of its own (`tests/systemd/run`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::harness::{binary, skip};

/// Exit code of the script if the host does not permit it.
const LACKS: i32 = 77;

#[test]
fn the_shipped_unit_keeps_its_promises_under_systemd() {
    boot("checks");
}

#[test]
fn the_unit_of_a_user_keeps_its_promises_under_that_users_systemd() {
    boot("person");
}

/// Runs a script of checks beside a systemd of its own.
#[track_caller]
fn boot(checks: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/systemd");
    let output = Command::new(scripts.join("run")).arg(binary()).arg(scripts.join(checks)).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(LACKS) {
        let why = said.lines().find_map(|line| line.strip_prefix("skipped: "));
        return skip(why.unwrap_or("systemd in namespaces"));
    }
    let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("not ok ")).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{said}");
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed > 0 && said.contains(&format!("END {passed}")), "it did not come to its end:\n{said}");
}

#[test]
fn the_template_is_the_unit_with_another_root() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("systemd");
    let settings = |unit: &str| {
        let text = std::fs::read_to_string(units.join(unit)).unwrap();
        let kept = |line: &&str| !line.starts_with('#') && !line.starts_with("Description=");
        text.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>()
    };
    for (unit, template) in [
        ("supervisor.service", "supervisor@.service"),
        ("supervisor-stop.service", "supervisor-stop@.service"),
        ("supervisor.socket", "supervisor@.socket"),
    ] {
        // Everything of an instance is beneath its root, so that it has no directory elsewhere.
        let elsewhere = |line: &String| {
            line.starts_with("RuntimeDirectory") || line.starts_with("ConfigurationDirectory")
        };
        let instance = |line: String| {
            line.replace("--system", "--root /var/lib/supervisor-%i")
                .replace("StateDirectory=supervisor", "StateDirectory=supervisor-%i")
                .replace("/run/supervisor/", "/var/lib/supervisor-%i/run/")
                .replace("supervisor-stop.service", "supervisor-stop@%i.service")
                .replace("supervisor.service", "supervisor@%i.service")
                .replace("man:supervisor@%i.service", "man:supervisor.service")
        };
        let expected: Vec<String> =
            settings(unit).into_iter().filter(|line| !elsewhere(line)).map(instance).collect();
        assert_eq!(settings(template), expected, "{template}");
    }
}

#[test]
fn the_package_restarts_nothing_when_it_is_upgraded() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("systemd/debian");
    let dir = tempfile::tempdir().unwrap();
    let calls = dir.path().join("calls");
    for program in ["systemctl", "systemd-tmpfiles"] {
        let path = dir.path().join(program);
        std::fs::write(&path, format!("#!/bin/sh\necho {program} \"$@\" >>{}\n", calls.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |name: &str, args: &[&str]| {
        // As where systemd runs.
        let script = std::fs::read_to_string(scripts.join(name)).unwrap();
        let script = script.replace("[ -d /run/systemd/system ] || exit 0\n", "");
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let output =
            Command::new("sh").args(["-c", &script, name]).args(args).env("PATH", path).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let called = std::fs::read_to_string(&calls).unwrap_or_default();
        drop(std::fs::remove_file(&calls));
        (called, String::from_utf8(output.stdout).unwrap())
    };
    let (called, said) = run("postinst", &["configure", "0.1.0"]);
    let expected = "systemd-tmpfiles --create supervisor.conf\nsystemctl daemon-reload\nsystemctl is-active --quiet supervisor.service\n";
    assert_eq!(called, expected);
    assert!(said.contains("systemctl restart supervisor"), "{said}");
    assert_eq!(run("prerm", &["upgrade", "0.2.0"]).0, "");
    let stopped = "systemctl stop supervisor.socket supervisor@*.socket\nsystemctl stop supervisor.service supervisor@*.service\n";
    assert_eq!(run("prerm", &["remove"]).0, stopped);
}
