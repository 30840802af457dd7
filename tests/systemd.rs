//! The shipped unit under a real systemd, in namespaces and a root directory of its own (`tests/systemd/run`).

use std::path::Path;
use std::process::Command;

use crate::harness::{binary, skip};

/// What the script says where the host does not permit it.
const LACKS: i32 = 77;

#[test]
fn the_shipped_unit_keeps_its_promises_under_systemd() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/systemd");
    let output =
        Command::new(scripts.join("run")).arg(binary()).arg(scripts.join("checks")).output().unwrap();
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
    ] {
        // Everything of an instance is beneath its root, so that it has no directory elsewhere.
        let elsewhere = |line: &String| {
            line.starts_with("RuntimeDirectory") || line.starts_with("ConfigurationDirectory")
        };
        let instance = |line: String| {
            line.replace("--system", "--root /var/lib/supervisor-%i")
                .replace("StateDirectory=supervisor", "StateDirectory=supervisor-%i")
                .replace("supervisor-stop.service", "supervisor-stop@%i.service")
                .replace("supervisor.service", "supervisor@%i.service")
                .replace("man:supervisor@%i.service", "man:supervisor.service")
        };
        let expected: Vec<String> =
            settings(unit).into_iter().filter(|line| !elsewhere(line)).map(instance).collect();
        assert_eq!(settings(template), expected, "{template}");
    }
}
