//! What the command line says of itself: help, completions, manual pages, and the shape of its refusals.

use insta::assert_snapshot;

use crate::harness::Fleet;

/// The verbs that the help lists, but for `help` itself.
fn verbs(fleet: &Fleet) -> Vec<String> {
    let help = fleet.cli(["--help"]).ok().stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let list = list.split("\n\n").next().unwrap();
    list.lines()
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn the_help_shows_every_verb_the_first_steps_and_the_exit_codes() {
    let fleet = Fleet::offline();
    assert_snapshot!(fleet.cli(["--help"]).ok().stdout, @r"
    Runs fleets of confined workers from a durable task board

    Usage: supervisor [OPTIONS] <COMMAND>

    Commands:
      demo             Show what the supervisor does, on a real repository and with real processes
      daemon           Run the daemon in the foreground
      status           Show live workers, and what waits for what
      create           Put a task on the board
      list             Show the tasks of a board [alias: ls]
      show             Show a task: its text, its runs, its comments and why it waits
      dispatch         Run what is ready, and wait for it
      watch            Follow the events of the whole board
      tail             Follow the events of one task
      log              Show what a run wrote to its output
      runs             Show every attempt at a task
      context          Show what a worker sees of a task
      stats            Count tasks by status and assignee
      events           Show the event log
      assign           Hand a task to a profile, or to nobody with `none`
      reassign         Hand a task to another profile, taking it back from its worker with --reclaim
      edit             Change what a task says; what is left out stays
      promote          Let tasks leave triage, or go on at once
      schedule         Let tasks wait until a time, and start by themselves then
      assignees        Show who tasks can be assigned to, and what they have
      link             Make a task wait for another
      unlink           No longer make a task wait for another
      comment          Add a note to a task
      claim            Take a ready task by hand
      heartbeat        Say that the work on a task is getting on
      complete         Finish a task with its result
      request-review   Hand the work on a task to a reviewer
      approve          Approve tasks: work in review, or what waits for an approval
      deny             Refuse to let tasks go on that wait for an approval
      request-changes  Send the work of a task in review back
      block            Say that a task cannot go on, and why
      unblock          Let blocked tasks go on
      answer           Answer what a blocked task asks, and let it go on
      reclaim          Take a running task back from its worker
      archive          Take tasks off the board
      init             Make a board (any verb makes the default one)
      backup           Copy the board into a file, while it is in use
      restore          Put a backup in the place of the board
      doctor           Check the root, its boards and what this host can enforce
      export           Write the whole board as JSON Lines
      import           Read a board from elsewhere into an empty one
      stop             Stop the daemon
      completions      Print completions for a shell
      man              Write the manual pages, one per verb
      help             Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --root <DIR>    Keep everything (board, sockets, logs, workspaces) under this directory [env:
                          SUPERVISOR_ROOT=]
          --system        Use the host's service (/var/lib/supervisor); the default for root
          --user          Use this user's own service (XDG directories); the default for everyone else
          --board <NAME>  The board to work on [env: SUPERVISOR_BOARD=] [default: default]
          --json          Print JSON, errors included
          --color <WHEN>  When to colour [default: auto] [possible values: auto, always, never]

    A first tour:
      supervisor demo                    see it all happen, on real processes
      supervisor create 'say hello' --assignee shell --body 'echo hello'
      supervisor dispatch                run what is ready, and wait for it
      supervisor daemon                  run what comes, as it comes
      supervisor status --watch          see it running

    Exit codes:
      0 ok          2 usage       4 conflict             75 try again
      1 failed      3 not found   69 daemon unreachable  77 not permitted
    ");
    assert_eq!(fleet.cli(["-h"]).ok().stdout, fleet.cli(["help"]).ok().stdout);
    let bare = fleet.cli::<&str>([]);
    assert_eq!(bare.code, 2, "no verb is no help that was asked for");
    assert!(bare.stderr.contains("Usage: supervisor"));
}

#[test]
fn every_verb_has_a_line_about_it_and_an_example() {
    let fleet = Fleet::offline();
    let verbs = verbs(&fleet);
    assert!(verbs.len() > 25, "{verbs:?}");
    for verb in verbs {
        let help = fleet.cli([verb.as_str(), "--help"]).ok().stdout;
        assert!(help.contains(&format!("Usage: supervisor {verb}")), "{help}");
        assert!(help.contains("Examples:\n  supervisor "), "{verb} has no example:\n{help}");
        let first = help.lines().next().unwrap();
        assert!(!first.is_empty() && !first.ends_with('.'), "{verb}: {first}");
    }
}

#[test]
fn completions_and_manual_pages_cover_every_verb() {
    let fleet = Fleet::offline();
    let verbs = verbs(&fleet);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fleet.cli(["completions", shell]).ok().stdout;
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell} does not complete {verb}");
        }
    }
    let dir = fleet.home().join("man");
    std::fs::create_dir(&dir).unwrap();
    fleet.give(&dir);
    fleet.cli(["man", dir.to_str().unwrap()]).ok();
    for verb in &verbs {
        let page = std::fs::read_to_string(dir.join(format!("supervisor-{verb}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn a_refusal_is_one_error_and_one_hint() {
    let fleet = Fleet::offline();
    fleet.cli(["init"]).ok();
    assert_snapshot!(fleet.cli(["show", "t_00000000"]).stderr, @r"
    error: no such task: t_00000000
    hint: see `supervisor list`
    ");
    assert_snapshot!(fleet.cli(["create", "x", "--workspace", "dir:here"]).stderr, @r#"
    error: the path "here" of dir is relative: what it means would depend on the working directory of the daemon
    hint: write the absolute path, such as dir:/path/to/here
    "#);
    assert_snapshot!(fleet.cli(["list", "--status", "lost"]).stderr, @r"
    error: invalid value 'lost' for '--status <STATUS>'
      [possible values: triage, todo, scheduled, ready, running, review, blocked, done, archived]
    hint: supervisor list --help
    ");
    assert_snapshot!(fleet.cli(["assing", "t_00000000", "shell"]).stderr, @r"
    error: unrecognized subcommand 'assing'

      tip: some similar subcommands exist: 'assignees', 'reassign', 'assign'

    Usage: supervisor [OPTIONS] <COMMAND>
    hint: supervisor --help
    ");
    assert_snapshot!(fleet.cli(["stop"]).stderr, @r"
    error: no daemon is running for this root
    hint: start one with: supervisor daemon
    ");
    assert_snapshot!(fleet.cli(["--json", "show", "t_00000000"]).stdout, @r#"{"error":{"code":"not_found","detail":"no such task: t_00000000","hint":"see `supervisor list`","status":404,"title":"not found","type":"about:blank"}}"#);
}

#[test]
fn the_version_is_told() {
    let fleet = Fleet::offline();
    assert_eq!(fleet.cli(["--version"]).ok().stdout, format!("supervisor {}\n", env!("CARGO_PKG_VERSION")));
}
