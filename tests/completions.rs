//! Completions that ask the board, in the shells that people use.

use std::process::Command;

use crate::harness::{Fleet, Screen, User, skip};

/// Starts a shell in which `supervisor` is the tested binary, with the completions of this program.
fn shell(fleet: &Fleet, program: &str, args: &[&str]) -> Option<Screen> {
    if Command::new(program).arg("--version").output().is_err() {
        skip(&format!("completions of {program}: needs {program}"));
        return None;
    }
    let bin = fleet.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(fleet.binary(), bin.join("supervisor")).unwrap();
    let script = fleet.cli(["completions", program]).ok().stdout;
    std::fs::write(fleet.home().join("completions"), script).unwrap();
    // An interactive shell wants the terminal to be its own.
    let mut command = Command::new("setsid");
    command.args(["--ctty", program]);
    fleet.dress(&mut command);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.args(args).env("PATH", path).env("SUPERVISOR_ROOT", fleet.root()).env("PS1", "ready> ");
    Some(Screen::run(&mut command, 120, 40))
}

/// A board with something to complete of every kind. Returns the id of its task.
fn peopled(fleet: &Fleet) -> String {
    fleet.cli(["boards", "create", "releases"]).ok();
    fleet.cli(["tenant", "create", "newcomer"]).ok();
    std::fs::write(fleet.home().join("figures.csv"), "").unwrap();
    crate::plugins::installed(
        fleet,
        "diary",
        "description = 'Keeps a list'\n[[verbs]]\nname = 'yesterday'\nabout = 'Shows it'\n",
        "cat > /dev/null",
    );
    fleet.cli(["schedules", "add", "nightly", "--every", "1d", "--title", "x"]).ok();
    fleet.create("to be completed", "true", &["--tenant", "acme"])
}

/// Completes a word of every kind at the prompt of a shell, ids with their `t_` and without, and leaves the shell.
fn completes(mut shell: Screen, setup: &str, task: &str) {
    shell.shows("ready>");
    // What is typed has the quotes, what is written has not.
    shell.press(&format!("{setup}; cd ~; clear; echo all''set\n"));
    shell.shows("allset");
    for (typed, completed) in [
        (format!("supervisor show {}", &task[..5]), format!("supervisor show {task}")),
        (format!("supervisor show {}", &task[2..6]), format!("supervisor show {}", &task[2..])),
        ("supervisor list --tenant ac".to_owned(), "supervisor list --tenant acme".to_owned()),
        ("supervisor create x --assignee she".to_owned(), "--assignee shell".to_owned()),
        ("supervisor create x --policy unconf".to_owned(), "--policy unconfined".to_owned()),
        ("supervisor --board rel".to_owned(), "--board releases".to_owned()),
        ("supervisor boards switch rel".to_owned(), "switch releases".to_owned()),
        ("supervisor tenant show newc".to_owned(), "show newcomer".to_owned()),
        ("supervisor profile create x --lane clau".to_owned(), "--lane claude".to_owned()),
        ("supervisor swarm x --worker clau".to_owned(), "--worker claude".to_owned()),
        ("supervisor lane show clau".to_owned(), "lane show claude".to_owned()),
        ("supervisor login clau".to_owned(), "login claude".to_owned()),
        ("supervisor plugin check dia".to_owned(), "plugin check diary".to_owned()),
        ("supervisor diar".to_owned(), "supervisor diary".to_owned()),
        ("supervisor diary yest".to_owned(), "diary yesterday".to_owned()),
        ("supervisor schedules run nigh".to_owned(), "run nightly".to_owned()),
        (format!("supervisor kill {task} -s US"), "-s USR".to_owned()),
        (format!("supervisor attach {task} ./figu"), "./figures.csv".to_owned()),
        ("supervisor run -- ./figu".to_owned(), "./figures.csv".to_owned()),
        (format!("supervisor complete {task} --artifact ./figu"), "./figures.csv".to_owned()),
    ] {
        shell.press(&format!("{typed}\t"));
        shell.shows(&completed);
        // Ctrl-U forgets the line.
        shell.press("\x15clear\n");
        shell.loses(&completed);
    }
    shell.press("exit\n");
    assert!(shell.end().success());
}

#[test]
fn bash_completes_ids_assignees_tenants_policies_and_boards() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = peopled(&fleet);
        let Some(bash) = shell(&fleet, "bash", &["--norc", "--noprofile", "-i"]) else { return };
        completes(bash, "source ~/completions", &task);
    }
}

#[test]
fn zsh_completes_them_from_a_script_and_from_a_file_of_its_search_path_at_the_first_key() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = peopled(&fleet);
        let Some(zsh) = shell(&fleet, "zsh", &["-f", "-i"]) else { return };
        completes(zsh, "autoload -U compinit; compinit -D; source ~/completions", &task);
    }
    let fleet = Fleet::boot();
    let task = peopled(&fleet);
    let Some(zsh) = shell(&fleet, "zsh", &["-f", "-i"]) else { return };
    let path = fleet.home().join("functions");
    std::fs::create_dir(&path).unwrap();
    std::fs::copy(fleet.home().join("completions"), path.join("_supervisor")).unwrap();
    completes(zsh, "fpath=(~/functions $fpath); autoload -U compinit; compinit -uD", &task);
}

#[test]
fn fish_completes_them() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = peopled(&fleet);
        let prompt = "function fish_prompt; echo -n 'ready> '; end";
        let Some(fish) = shell(&fleet, "fish", &["--no-config", "-i", "-C", prompt]) else { return };
        completes(fish, "source ~/completions", &task);
    }
}

/// Returns the candidates for the last word, one per line, and the message beside them.
fn offered(fleet: &Fleet, root: &str, words: &[&str]) -> (String, String) {
    let mut command = fleet.command(["--"]);
    command.env("SUPERVISOR_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() + 2).to_string());
    command.args(["supervisor", "--root", root]).args(words);
    let output = command.output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn runs_files_accounts_and_missions_are_offered_where_they_are_meant() {
    let fleet = Fleet::offline();
    fleet.lane("billed", "argv = [\"/bin/true\"]\naccount = \"invoices\"\n");
    fleet.start();
    let task = fleet.create("has a run and a file", "true", &[]);
    let other = fleet.create("has another", "true", &[]);
    let mission = fleet.json(["mission", "create", "find out", "--assignee", "nobody"]);
    let mission = mission["id"].as_str().unwrap();
    let run = |task: &str| fleet.wait_for(task, "done")["runs"][0]["id"].to_string();
    let (mine, others) = (run(&task), run(&other));
    std::fs::write(fleet.home().join("figures.csv"), "1").unwrap();
    let file = fleet.json(["attach", &task, "figures.csv"])["id"].to_string();
    let root = fleet.root().display().to_string();
    let offers = |words: &[&str]| {
        let (names, said) = offered(&fleet, &root, words);
        assert_eq!(said, "");
        // Bash gets a byte between candidates, and a space behind a word that is whole.
        let names = names.split(['\u{b}', '\n']).map(|name| name.trim().to_owned());
        names.filter(|name| !name.starts_with('-')).collect::<Vec<_>>()
    };
    assert_eq!(offers(&["logs", &task, "--run", ""]), [mine.as_str()]);
    assert_eq!(offers(&["diff", &other, "--run", ""]), [others.as_str()]);
    assert_eq!(offers(&["attachments", "get", ""]), [file.as_str()]);
    assert_eq!(offers(&["attach-rm", ""]), [file.as_str()]);
    assert_eq!(offers(&["release", "--account", "inv"]), ["invoices"]);
    assert_eq!(offers(&["mission", "show", "t_"]), [mission]);
    assert_eq!(offers(&["create", "x", "--mission", "t_"]), [mission]);
    assert_eq!(offers(&["show", "t_"]).len(), 3);
}

#[test]
fn a_completion_is_silent_where_nothing_can_be_asked() {
    let fleet = Fleet::offline();
    let complete = |root: &str, words: &[&str]| offered(&fleet, root, words);
    let root = fleet.root().display().to_string();
    let task = fleet.json(["create", "offline"])["id"].as_str().unwrap().to_owned();
    assert_eq!(complete(&root, &["show", "t_"]), (task, String::new()), "read without a daemon");
    let (names, said) = complete("/proc/no/such", &["show", "t_"]);
    assert_eq!((names.as_str(), said.as_str()), ("", ""));
}
