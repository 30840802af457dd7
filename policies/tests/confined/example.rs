//! The example `confine`: the exit status and the messages, for each caller.

use std::process::{Command, Output};

use crate::lab::{Caller, Lab, example, labs, with_user};

/// Runs the example in the lab's workspace, as the lab's caller.
fn confine(lab: &Lab, options: &[&str], words: &[&str]) -> Output {
    let mut command = Command::new(example(lab, "confine"));
    with_user(lab, &mut command);
    if lab.caller == Caller::Root {
        command.arg("--user").arg(lab.uid.to_string());
    }
    command.args(options).arg("--").args(words).current_dir(lab.path("ws")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_runs_confined_and_its_status_is_passed_on() {
    for lab in labs() {
        let script =
            "cat mine && ! cat ../sibling/secret 2>/dev/null && touch \"$HOME/x\" \"$TMPDIR/y\" && exit 7";
        let ran = confine(&lab, &["--report", "strict"], &["sh", "-c", script]);
        let report = text(&ran.stderr);
        assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(7), "m"), "{report}");
        assert!(report.starts_with("policy strict, Landlock ABI "), "{report}");
        assert!(report.contains("no_new_privs  enforced"), "{report}");
        let killed = confine(&lab, &["strict"], &["sh", "-c", "kill -9 $$"]);
        assert_eq!(killed.status.code(), Some(128 + 9));
    }
}

#[test]
fn a_command_that_cannot_be_confined_or_executed_is_refused_with_the_reason() {
    for lab in labs() {
        for (options, words, status, reason) in [
            (["nope"].as_slice(), "true", 125, "find the policy nope"),
            (&["./absent.toml"], "true", 125, "read policy ./absent.toml"),
            (&["agent"], "true", 125, "the policy agent leaves open"),
            (&["--workspace", "/absent", "strict"], "true", 125, "find /absent"),
            (&["--bogus", "strict"], "true", 2, "there is no option --bogus"),
            (&["strict", "more"], "true", 2, "stands before it"),
            (&[], "true", 2, "the policy is missing"),
            (&["strict"], "absent-command", 127, "execute absent-command"),
            (&["strict"], "/etc/passwd", 126, "execute /etc/passwd"),
        ] {
            let ran = confine(&lab, options, &[words]);
            let said = text(&ran.stderr);
            assert_eq!(ran.status.code(), Some(status), "{options:?} {words}: {said}");
            assert!(said.starts_with("confine: ") && said.contains(reason), "{options:?} {words}: {said}");
        }
    }
}

#[test]
fn root_has_to_name_another_user() {
    for lab in labs().filter(|lab| lab.caller == Caller::Root) {
        for options in [["strict"].as_slice(), &["--user", "0", "strict"]] {
            let mut command = Command::new(example(&lab, "confine"));
            let ran = command.args(options).args(["--", "true"]).output().unwrap();
            assert_eq!(ran.status.code(), Some(125));
            assert!(text(&ran.stderr).contains("--user UID"), "{}", text(&ran.stderr));
        }
    }
}
