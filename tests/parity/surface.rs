//! The whole surface in one table, and a walk that leaves none of it out.

use super::{TypedRoot, boards, files, moves, tasks, watching};

/// Each verb with its flags, as `hermes kanban <verb> --help` lists them. Values and positional words are what the walk
/// gives them.
const SURFACE: &[(&str, &str)] = &[
    ("init", ""),
    ("boards list", "--json --all"),
    ("boards ls", ""),
    ("boards create", "--name --description --icon --color --switch --default-workdir"),
    ("boards new", ""),
    ("boards rm", "--delete"),
    ("boards remove", ""),
    ("boards delete", ""),
    ("boards switch", ""),
    ("boards use", ""),
    ("boards show", ""),
    ("boards current", ""),
    ("boards rename", ""),
    ("boards set-default-workdir", ""),
    (
        "create",
        "--body --assignee --parent --workspace --branch --project --tenant --priority --triage --idempotency-key \
         --max-runtime --created-by --skill --max-retries --goal --goal-max-turns --initial-status --json",
    ),
    ("swarm", "--worker --verifier --synthesizer --tenant --priority --created-by --idempotency-key --json"),
    (
        "list",
        "--mine --assignee --status --tenant --session --archived --json --sort --workflow-template-id --step-key",
    ),
    ("ls", ""),
    ("show", "--json --state-type --state-name"),
    ("assign", ""),
    ("reclaim", "--reason"),
    ("reassign", "--reclaim --reason"),
    ("link", ""),
    ("unlink", ""),
    ("claim", "--ttl"),
    ("comment", "--author --max-len"),
    ("complete", "--result --summary --metadata"),
    ("edit", "--result --summary --metadata"),
    ("block", "--ids --kind"),
    ("schedule", "--ids"),
    ("unblock", "--reason"),
    ("promote", "--ids --force --dry-run --json"),
    ("archive", "--rm"),
    ("gc", "--event-retention-days --log-retention-days"),
    ("tail", "--interval"),
    ("dispatch", "--dry-run --max --failure-limit --json"),
    ("daemon", "--interval --max --failure-limit --pidfile --verbose --force"),
    ("watch", "--assignee --tenant --kinds --interval"),
    ("stats", "--json"),
    ("notify-subscribe", "--platform --chat-id --thread-id --user-id --notifier-profile"),
    ("notify-list", "--json"),
    ("notify-unsubscribe", "--platform --chat-id --thread-id"),
    ("log", "--tail"),
    ("runs", "--json --state-type --state-name"),
    ("heartbeat", "--note"),
    ("assignees", "--json"),
    ("context", ""),
    ("attach", "--content-type --name --author"),
    ("attachments", "--json"),
    ("attach-rm", ""),
    ("diagnostics", "--severity --task --json"),
    ("diag", ""),
];

#[test]
fn every_verb_and_flag_is_understood_and_does_what_it_says() {
    let desk = TypedRoot::new();
    tasks::walk(&desk);
    moves::walk(&desk);
    files::walk(&desk);
    watching::walk(&desk);
    // Last, because boards are switched.
    boards::walk(&desk);

    let typed = desk.typed.borrow();
    for (verb, flags) in SURFACE {
        let Some(seen) = typed.get(*verb) else { panic!("the walk never typed `{verb}`") };
        for flag in flags.split_whitespace() {
            assert!(seen.contains(flag), "the walk never typed `{verb} {flag}`");
        }
    }
}

#[test]
fn the_other_programs_name_may_stay_in_front() {
    let desk = TypedRoot::new();
    desk.ok("kanban create 'as ever'");
    assert_eq!(desk.json("kanban --board default list")[0]["title"], "as ever");
}
