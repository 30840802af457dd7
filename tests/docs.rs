//! The README and the manual, run: every command in a block marked `console` works as it is shown.
//!
//! The lines that begin with `$ ` are commands; those that begin with `> ` go on with the last one. The lines after them are
//! what it prints, in their order; `…` stands for anything, and so does a line of it alone. The blocks of a document are one
//! session, in a fresh directory that stands in for `/tmp/tour` and for `$tour/root`. A command succeeds unless its block says `status=N`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Fleet, Output, User};
use crate::http::free_port;

/// A command of a document, and what it is said to do.
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
    status: i32,
}

/// Pastes the tour as a user with an empty home and no identity for git, in each place that people start it in.
#[track_caller]
fn take_the_tour(user: User) {
    for place in [Some("/tmp"), Some("/opt"), None] {
        run_as("README.md", user, &Visitor::Stranger(place.map(PathBuf::from)));
    }
}

#[test]
fn the_tour_of_the_readme_works_for_an_ordinary_user_wherever_it_is_pasted() {
    take_the_tour(User::ordinary());
}

#[test]
fn the_tour_of_the_readme_works_for_root_wherever_it_is_pasted() {
    match User::current() {
        User::Root => take_the_tour(User::Root),
        User::Ordinary(_) => crate::harness::skip("the tour as root: needs root"),
    }
}

#[test]
fn the_first_steps_work_as_they_are_written() {
    run("docs/getting-started.md");
}

#[test]
fn the_page_about_the_board_works_as_it_is_written() {
    run("docs/board.md");
}

#[test]
fn the_page_about_lanes_works_as_it_is_written() {
    run("docs/lanes.md");
}

#[test]
fn the_page_about_profiles_works_as_it_is_written() {
    run("docs/profiles.md");
}

#[test]
fn the_page_about_fleets_works_as_it_is_written() {
    run("docs/fleet.md");
}

#[test]
fn the_four_stories_work_as_they_are_written() {
    run("docs/stories.md");
}

#[test]
fn the_page_about_plugins_works_as_it_is_written() {
    run("docs/plugins.md");
}

#[test]
fn the_page_about_schedules_works_as_it_is_written() {
    run("docs/schedules.md");
}

#[test]
fn the_pages_about_programs_of_agents_work_as_they_are_written() {
    run("docs/lanes/claude.md");
    run("docs/lanes/codex.md");
    run("docs/lanes/gemini.md");
    run("docs/lanes/opencode.md");
    run("docs/lanes/hermes.md");
    run("docs/lanes/http.md");
    run("docs/lanes/a2a.md");
}

#[test]
fn the_page_about_a2a_works_as_it_is_written() {
    run("docs/a2a.md");
}

#[test]
fn the_page_about_missions_works_as_it_is_written() {
    run("docs/missions.md");
}

#[test]
fn the_tutorial_works_as_it_is_written() {
    run("docs/tutorial.md");
}

#[test]
fn the_page_about_triage_works_as_it_is_written() {
    run("docs/triage.md");
}

#[test]
fn the_page_about_operations_works_as_it_is_written() {
    run("docs/operations.md");
}

#[test]
fn the_page_about_notifications_works_as_it_is_written() {
    run("docs/notifications.md");
}

#[test]
fn the_page_about_chats_works_as_it_is_written() {
    run("docs/chat.md");
}

#[test]
fn the_page_about_the_dashboard_works_as_it_is_written() {
    run("docs/dashboard.md");
}

#[test]
fn the_page_about_the_api_works_as_it_is_written() {
    run("docs/api.md");
}

#[test]
fn the_page_about_tools_works_as_it_is_written() {
    run("docs/mcp.md");
}

#[test]
fn the_page_about_the_library_of_policies_works_as_it_is_written() {
    run("policies/README.md");
}

#[test]
fn every_page_with_commands_is_run_by_a_test_and_every_link_leads_somewhere() {
    let tests = std::fs::read_to_string(repository().join("tests/docs.rs")).unwrap();
    let mut pages = ["README.md", "CHANGELOG.md", "policies/README.md"].map(PathBuf::from).to_vec();
    for dir in ["docs", "docs/lanes", "docs/decisions", "docs/architecture"] {
        let entries = std::fs::read_dir(repository().join(dir)).unwrap();
        let markdown = entries.map(|entry| Path::new(dir).join(entry.unwrap().file_name()));
        pages.extend(markdown.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    for page in pages {
        let name = page.display().to_string();
        let text = std::fs::read_to_string(repository().join(&page)).unwrap();
        let covered =
            tests.contains(&format!("run(\"{name}\")")) || tests.contains(&format!("run_as(\"{name}\""));
        assert!(covered || steps(&text).is_empty(), "{name} shows commands that no test runs");
        for link in links(&text) {
            let target = repository().join(page.parent().unwrap()).join(link.split('#').next().unwrap());
            assert!(target.exists(), "{name} links to {link}, which does not exist");
        }
    }
}

#[test]
fn the_configuration_that_the_manual_shows_is_accepted() {
    let text = std::fs::read_to_string(repository().join("docs/configuration.md")).unwrap();
    let (_, from) = text.split_once("```toml\n").unwrap();
    let fleet = Fleet::offline();
    fleet.write_config("supervisor.toml", from.split_once("```").unwrap().0);
    fleet.cli(["create", "x"]).ok();
    let of_programs = std::fs::read_dir(repository().join("docs/lanes")).unwrap();
    let pages = of_programs.map(|page| page.unwrap().path()).chain([repository().join("docs/lanes.md")]);
    let lanes: String = pages.map(|page| std::fs::read_to_string(page).unwrap()).collect();
    for (number, from) in lanes.split("```toml\n").skip(1).enumerate() {
        fleet.lane(&format!("shown{number}"), from.split_once("```").unwrap().0);
    }
    let profiles = std::fs::read_to_string(repository().join("docs/profiles.md")).unwrap();
    let (_, from) = profiles.split_once("```markdown\n").unwrap();
    fleet.write_config("profiles.d/backend.md", from.split_once("```").unwrap().0);
    let schedules = std::fs::read_to_string(repository().join("docs/schedules.md")).unwrap();
    for (number, from) in schedules.split("```toml\n").skip(1).enumerate() {
        fleet.write_config(&format!("schedules.d/shown{number}.toml"), from.split_once("```").unwrap().0);
    }
    assert_eq!(fleet.problems("configuration_defect"), Vec::<serde_json::Value>::new());
    let listed = fleet.json(["dispatch", "--dry-run"]);
    assert_eq!(listed["spawned"].as_array().map(Vec::len), Some(0), "{listed}");
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The relative links of a page.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#')).collect()
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut status = None;
    let mut first = true;
    for (number, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            status = info.strip_prefix("console").map(|rest| {
                rest.trim().strip_prefix("status=").map_or(0, |status| status.parse::<i32>().unwrap())
            });
            first = true;
            continue;
        }
        let Some(status) = status else { continue };
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            steps.push(Step { line: number + 1, command, expected: Vec::new(), status });
            first = false;
        } else {
            assert!(!first, "line {}: a block of commands begins with `$ `", number + 1);
            let step = steps.last_mut().unwrap();
            match line.strip_prefix("> ") {
                Some(more) => write!(step.command, "\n{more}").unwrap(),
                None => step.expected.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Reader of a page.
enum Visitor {
    /// Somebody whose git knows a name, in a home of their own.
    Ann,
    /// Somebody whose home is empty, in this directory or there.
    Stranger(Option<PathBuf>),
}

/// Runs a page's commands in one shell, as an ordinary user, and compares what they print.
#[track_caller]
fn run(page: &str) {
    run_as(page, User::ordinary(), &Visitor::Ann);
}

#[track_caller]
fn run_as(page: &str, user: User, visitor: &Visitor) {
    let text = std::fs::read_to_string(repository().join(page)).unwrap();
    // A daemon of the person who runs the tests may have the port of the manual.
    let port = free_port();
    let steps = steps(&text.replace("127.0.0.1:8470", &format!("127.0.0.1:{port}")));
    let output = session(&steps, user, visitor, port);
    let mut rest = output.as_str();
    for (number, step) in steps.iter().enumerate() {
        let place = format!("{page}:{}: {}", step.line, step.command);
        let cut = rest.split_once(&format!("@@ {number}\n")).and_then(|(_, from)| from.split_once("@= "));
        let (printed, after) = cut.unwrap_or_else(|| panic!("{place}\ndoes not end\n{output}"));
        let (status, after) = after.split_once('\n').unwrap();
        assert_eq!(status, step.status.to_string(), "{place}\n{printed}");
        if let Some(missing) = missing(&step.expected, printed) {
            panic!("{place}\nis said to print\n  {missing}\nand printed\n{printed}");
        }
        rest = after;
    }
}

fn session(steps: &[Step], user: User, visitor: &Visitor, port: u16) -> String {
    let fleet = Fleet::offline_as(user);
    fleet.configure(&format!("[dashboard]\nlisten = \"127.0.0.1:{port}\"\n"));
    let root = fleet.root().display().to_string();
    let mut script = String::from("exec 2>&1\n");
    for (number, step) in steps.iter().enumerate() {
        let command = step.command.replace("/tmp/tour", &root).replace("$tour/root", &root);
        writeln!(script, "echo '@@ {number}'\n{command}\necho \"@= $?\"").unwrap();
    }
    // What a page leaves running would go on without it.
    script.push_str("supervisor stop --kill --wait >/dev/null\nwait\n");
    let mut shell = Command::new("timeout");
    fleet.dress(&mut shell);
    let examples = examples(&fleet);
    let path = format!(
        "{}:{}:/usr/local/bin:/usr/bin:/bin",
        fleet.binary().parent().unwrap().display(),
        examples.display()
    );
    shell.args(["--kill-after=5", "400", "bash", "-c", &script]).env("PATH", path);
    shell.env("SUPERVISOR_ROOT", &root).env("GIT_CONFIG_NOSYSTEM", "1");
    match visitor {
        Visitor::Stranger(Some(place)) => drop(shell.current_dir(place)),
        Visitor::Stranger(None) => {}
        Visitor::Ann => {
            for role in ["AUTHOR", "COMMITTER"] {
                shell
                    .env(format!("GIT_{role}_NAME"), "Ann")
                    .env(format!("GIT_{role}_EMAIL"), "ann@localhost");
            }
        }
    }
    Output::of(&mut shell).stdout
}

/// A directory with the programs among the libraries' examples, open to the fleet's user.
fn examples(fleet: &Fleet) -> PathBuf {
    let dir = fleet.home().join("examples");
    std::fs::create_dir_all(&dir).unwrap();
    let tests = std::env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples/confine");
    assert!(built.exists(), "build it first: cargo build -p policies --example confine");
    std::fs::copy(built, dir.join("confine")).unwrap();
    dir
}

/// The first expected line that the output does not have after those before it.
fn missing<'a>(expected: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    let mut wanted = expected.iter().map(String::as_str).filter(|wanted| *wanted != "…");
    wanted.find(|wanted| !lines.any(|line| fits(wanted, line)))
}

/// Returns true if a line matches a pattern, in which `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let pattern = pattern.trim_end();
    let Some((head, tail)) = pattern.split_once('…') else { return pattern == line.trim_end() };
    let Some(rest) = line.strip_prefix(head) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| fits(tail, &rest[at..]))
}
