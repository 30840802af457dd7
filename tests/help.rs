//! Help of the command line: texts, completions, manual pages, and the form of its refusals.

use insta::assert_snapshot;

use crate::harness::{Fleet, Output, tidy};

/// The headings of the help above its options, and the words below each.
fn groups(fleet: &Fleet) -> Vec<(String, Vec<String>)> {
    let help = fleet.cli(["--help"]).ok().stdout;
    let (_, list) = help.split_once("Usage: supervisor [OPTIONS] <COMMAND>\n\n").unwrap();
    let (list, _) = list.split_once("\n\nOptions:\n").unwrap();
    let group = |text: &str| {
        let (heading, words) = text.split_once(":\n").unwrap();
        let words = words.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
        (heading.to_owned(), words.collect())
    };
    list.split("\n\n").map(group).collect()
}

/// The verbs that the help lists.
fn verbs(fleet: &Fleet) -> Vec<String> {
    groups(fleet).into_iter().flat_map(|(_, words)| words).collect()
}

#[test]
fn the_help_lists_what_there_is_in_groups_that_begin_with_the_first_steps() {
    let groups = groups(&Fleet::offline());
    let headings: Vec<&str> = groups.iter().map(|(heading, _)| heading.as_str()).collect();
    let expected =
        ["Start here", "Tasks", "Runs", "Review and questions", "Boards", "Operations", "Reference"];
    assert_eq!(headings, expected);
    assert_eq!(groups[0].1, ["demo", "daemon", "run", "init", "create", "dispatch", "status"]);
}

#[test]
fn the_help_shows_the_first_steps_and_the_exit_codes() {
    let fleet = Fleet::offline();
    let help = Output::of(fleet.command(["--help"]).env_remove("SUPERVISOR_ROOT")).ok().stdout;
    // The verbs themselves are walked below.
    let (head, _) = help.split_once("Start here:\n").unwrap();
    let (_, rest) = help.split_once("\n\nOptions:\n").unwrap();
    assert_snapshot!(format!("{head}Options:\n{rest}"), @r"
    Runs fleets of confined workers from a durable task board

    Usage: supervisor [OPTIONS] <COMMAND>

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --root <DIR>    Keep everything (board, sockets, logs, workspaces) under this directory [env:
                          SUPERVISOR_ROOT=]
          --system        Use the host's service (/var/lib/supervisor); the default for root
          --user          Use this user's own service (XDG directories); the default for everyone else
          --board <NAME>  The board to work on [env: SUPERVISOR_BOARD=]
          --json          Print JSON, errors included
          --color <WHEN>  Use of colours [default: auto] [possible values: auto, always, never]

    A first tour:
      supervisor demo                    see it work, with real processes
      supervisor daemon                  run tasks as they become ready
      supervisor run -- echo hello       run a command as a task
      supervisor create 'say hello' --assignee shell --body 'echo hello'
      supervisor dispatch                without a daemon: run ready tasks
      supervisor status --watch          watch the workers

    Exit codes:
      0 ok          3 not found       69 daemon unreachable
      1 failed      4 conflict        75 try again
      2 usage       5 needs a person  77 not permitted
    run, wait, dispatch, attach TASK, tail and logs --follow exit as the work did.

    Topics:
      supervisor help states        the states of a task, and how each one is left
      supervisor help exit-codes    what the exit codes of commands mean
      supervisor help times         how times and durations are written
      supervisor help ids           how tasks and runs are named
      supervisor help environment   the variables that commands read
      supervisor help docs          the pages of the documentation
    ");
    assert_eq!(fleet.cli(["-h"]).ok().stdout, fleet.cli(["help"]).ok().stdout);
}

#[test]
fn a_command_without_a_verb_prints_its_help() {
    let fleet = Fleet::offline();
    let bare = fleet.cli::<&str>([]).ok();
    assert_eq!(bare.stdout, fleet.cli(["-h"]).ok().stdout);
    assert_eq!(fleet.cli(["--board", "other"]).ok().stdout, bare.stdout);
    let mut by_environment = fleet.command::<&str>([]);
    by_environment.env("SUPERVISOR_BOARD", "default");
    assert!(Output::of(&mut by_environment).ok().stdout.contains("A first tour:"));
    assert_eq!(fleet.cli(["boards"]).ok().stdout, fleet.cli(["boards", "-h"]).ok().stdout);
    fleet.cli(["--json"]).refused(2, "requires a subcommand");
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

/// The words below a heading of a help: those of the program, or those of one of its words.
fn words_below(help: &str) -> Vec<String> {
    let commands = help.split_once("\nCommands:\n").map(|(_, list)| list.split("\n\n").next().unwrap());
    let is_word = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let words = commands.into_iter().flat_map(str::lines).filter(is_word);
    let words = words.filter_map(|line| line.split_whitespace().next());
    words.filter(|word| *word != "help").map(str::to_owned).collect()
}

#[test]
fn no_help_is_wider_than_eighty_columns() {
    let fleet = Fleet::offline();
    let mut left: Vec<Vec<String>> = verbs(&fleet).into_iter().map(|verb| vec![verb]).collect();
    left.push(Vec::new());
    let (mut wide, mut seen) = (Vec::new(), 0);
    while let Some(words) = left.pop() {
        let mut asked = fleet.command(words.iter().map(String::as_str).chain(["--help"]));
        let help = Output::of(asked.env("COLUMNS", "80")).ok().stdout;
        let lines = help.lines().filter(|line| line.chars().count() > 80);
        wide.extend(lines.map(|line| format!("{}: {line}", words.join(" "))));
        left.extend(words_below(&help).into_iter().map(|word| [words.clone(), vec![word]].concat()));
        seen += 1;
    }
    assert_eq!(wide, Vec::<String>::new());
    assert!(seen > 120, "{seen}");
}

#[test]
fn an_example_in_a_help_is_a_line() {
    let fleet = Fleet::offline();
    for verb in verbs(&fleet) {
        let lines = |columns: &str| {
            let mut asked = fleet.command([verb.as_str(), "--help"]);
            let help = Output::of(asked.env("COLUMNS", columns)).ok().stdout;
            let (_, examples) = help.split_once("Examples:\n").unwrap();
            examples.lines().take_while(|line| !line.is_empty()).count()
        };
        assert_eq!(lines("80"), lines("500"), "{verb}: an example is wrapped at 80 columns");
    }
}

#[test]
fn completions_and_manual_pages_cover_every_verb() {
    let fleet = Fleet::offline();
    let verbs = verbs(&fleet);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = fleet.cli(["completions", shell, "--static"]).ok().stdout;
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
    let unit = std::fs::read_to_string(dir.join("supervisor.service.8")).unwrap();
    assert!(unit.starts_with(".TH SUPERVISOR.SERVICE 8\n"), "{unit}");
    let section = dir.join("man1");
    fleet.cli(["man", section.to_str().unwrap()]).ok();
    assert!(section.join("supervisor.1").exists() && dir.join("man8/supervisor.service.8").exists());
    assert!(!section.join("supervisor.service.8").exists());
}

#[test]
fn a_refusal_is_one_error_and_one_hint() {
    let fleet = Fleet::offline();
    let _tidy = tidy();
    fleet.cli(["init"]).ok();
    assert_snapshot!(fleet.cli(["show", "t_00000000"]).stderr, @r"
    error: no such task: t_[id]
    hint: see `supervisor list`
    ");
    assert_snapshot!(fleet.cli(["create", "x", "--workspace", "dir:here"]).stderr, @r#"
    error: the path "here" of dir is relative: its meaning would depend on the working directory of the daemon
    hint: write the absolute path, such as dir:/path/to/here
    "#);
    assert_snapshot!(fleet.cli(["list", "--limit", "ten"]).stderr, @r"
    error: invalid value 'ten' for '--limit <N>': write a whole number, such as 10
    hint: supervisor list --help
    ");
    assert_snapshot!(fleet.cli(["create", "x", "--body-file", "/"]).stderr, @r"
    error: / is a directory, not a file
    hint: name a file, or `-` for standard input
    ");
    assert_snapshot!(fleet.cli(["list", "--status", "lost"]).stderr, @r"
    error: invalid value 'lost' for '--status <STATUS>'
      [possible values: triage, todo, scheduled, ready, running, review, blocked, done, archived]
    hint: supervisor list --help
    ");
    assert_snapshot!(fleet.cli(["assing", "t_00000000", "shell"]).stderr, @r"
    error: there is no command `assing` of `supervisor`
    hint: supervisor assign, or supervisor --help
    ");
    assert_snapshot!(fleet.cli(["stop"]).stderr, @r"
    error: no daemon serves [dir]/r
    hint: start one with: supervisor daemon; if yours has another root, name it with --root DIR
    ");
    assert_snapshot!(fleet.cli(["--json", "show", "t_00000000"]).stdout, @r#"{"error":{"code":"not_found","detail":"no such task: t_[id]","hint":"see `supervisor list`","status":404,"title":"not found","type":"about:blank"}}"#);
}

/// The command in a hint, as somebody pastes it.
fn way_out(refused: &Output) -> Vec<String> {
    let (_, hint) = refused.stderr.split_once("\nhint: ").unwrap();
    let command = hint.split('`').nth(1).unwrap_or_else(|| panic!("no command in: {hint}"));
    command.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_way_out_that_a_refusal_names_leads_out() {
    let fleet = Fleet::offline();
    let task = fleet.create("x", "true", &[]);
    for (before, refused, way, status) in [
        (["complete", &task], &["promote", &task][..], "reopen", "ready"),
        (["complete", &task], &["claim", &task], "reopen", "ready"),
        (["archive", &task], &["promote", &task], "unarchive", "ready"),
        (["archive", &task], &["block", &task, "why"], "unarchive", "ready"),
        (["block", &task], &["claim", &task], "unblock", "ready"),
    ] {
        fleet.cli(before).ok();
        let named = way_out(&fleet.cli(refused));
        assert_eq!(named[0], way, "{refused:?}");
        fleet.cli(&named).ok();
        assert_eq!(fleet.status_of(&task), status, "{named:?}");
    }
}

#[test]
fn a_refusal_names_a_way_out_of_the_status_in_which_the_task_is() {
    let fleet = Fleet::offline();
    let done = &["complete"][..];
    for (before, refused, way) in [
        (done, &["edit", "ID", "--policy", "strict"][..], "reopen"),
        (&["archive"], &["edit", "ID", "--policy", "strict"], "unarchive"),
        (&["archive"], &["edit", "ID", "--result", "r"], "unarchive"),
        (&["archive"], &["heartbeat", "ID"], "unarchive"),
        (&["archive"], &["approve", "ID"], "unarchive"),
        (done, &["approve", "ID"], "reopen"),
        (done, &["heartbeat", "ID"], "reopen"),
        (&["request-review"], &["deny", "ID", "--reason", "r"], "request-changes"),
        (&["request-review"], &["request-review", "ID"], "request-changes"),
        (done, &["specify", "ID"], "create"),
    ] {
        let task = fleet.create("x", "true", &[]);
        for verb in before {
            fleet.cli([*verb, task.as_str()]).ok();
        }
        let refused = fleet.cli(refused.iter().map(|word| if *word == "ID" { task.as_str() } else { *word }));
        let named = way_out(&refused);
        assert!(refused.code == 4 && named[0] == way, "{refused:?}");
        // Nobody reviews what is their own.
        if way != "request-changes" {
            fleet.cli(&named).ok();
        }
    }
}

#[test]
fn the_version_is_told() {
    let fleet = Fleet::offline();
    assert_eq!(fleet.cli(["--version"]).ok().stdout, format!("supervisor {}\n", env!("CARGO_PKG_VERSION")));
}
