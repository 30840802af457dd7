//! The first task of a newcomer: a key in a file, a repository with a test that fails, and a check.

use std::path::PathBuf;

use serde_json::json;

use super::programs::{KEY_OF_BROKER, Program, leave_the_network};
use super::provider::{Act, Provider};
use super::{LIMIT, Stage, run};
use crate::brokers::{files_with, processes_with};
use crate::harness::Repository;

/// First task of a new user: with a key in a file, the agent mends the test of a repository, and a check proves it.
/// Neither the agent nor its children could read the key anywhere.
pub(super) fn mends_a_test_with_a_key_that_it_never_has(program: &Program) {
    if !leave_the_network() {
        return;
    }
    let script = [
        run("touch look && until [ -e go ]; do sleep 0.1; done"),
        run("rm look go && sed -i s/false/true/ test.sh && \
             git -c user.name=a -c user.email=a@b commit -qam 'mend the test' && \
             supervisor complete --summary 'mended the test'"),
        Act::Say("Done."),
    ];
    let (provider, ca) = Provider::play_in_tls(&script);
    let Some(fleet) = program.fleet_by_broker(provider.port(), &ca) else { return };
    let repository = Repository::new(&fleet, "repository");
    repository.write("test.sh", "false\n");
    repository.git(&["add", "test.sh"]);
    repository.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a test that fails"]);
    fleet.start();
    let workspace = repository.workspace();
    let words = [
        "create",
        "fix the failing test",
        "--assignee",
        program.lane,
        "--workspace",
        &workspace,
        "--check",
        "sh test.sh",
    ];
    let task = fleet.json(words)["id"].as_str().unwrap().to_owned();
    let stage = Stage { fleet, provider, lane: program.lane, task };
    let tree = repository.tree(&stage.task);
    stage.until("its agent works", |_| tree.join("look").exists());

    assert_eq!(processes_with(&stage.fleet, KEY_OF_BROKER), Vec::<String>::new());
    assert_eq!(files_with(&stage.fleet.root(), KEY_OF_BROKER), Vec::<PathBuf>::new());
    std::fs::write(tree.join("go"), "").unwrap();
    let shown = stage.fleet.eventually_within(LIMIT, "its check has passed", || {
        let shown = stage.fleet.show(&stage.task);
        ["done", "blocked"].iter().any(|status| shown["task"]["status"] == *status).then_some(shown)
    });

    assert_eq!(shown["task"]["status"], "done", "{}", stage.state(&shown));
    let (work, check) = (&shown["runs"][0], &shown["runs"][1]);
    assert_eq!(
        (&check["purpose"], &check["outcome"]),
        (&json!("check"), &json!("check_passed")),
        "{shown:#}"
    );
    assert_eq!(work["evidence"]["commits"][0]["subject"], "mend the test", "{shown:#}");
    assert!(work["spent"]["session"].is_string(), "{}", stage.state(&shown));
    assert!(stage.provider.asked().iter().all(|asked| asked.head.contains(KEY_OF_BROKER)));
    let diff = stage.fleet.cli(["diff", &stage.task]).ok().stdout;
    assert!(diff.contains("-false") && diff.contains("+true"), "{diff}");
    assert_eq!(files_with(&stage.fleet.root(), KEY_OF_BROKER), Vec::<PathBuf>::new());
}
