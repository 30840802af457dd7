//! Generates completions and manual pages from the definitions of the command line.

use std::io;
use std::path::{Path, PathBuf};

use super::{CommandLine, command, completion_script};
use base::failure::Failure;

/// Sections of the main page that concern all commands.
const COMMON: &str = r"
.SH ENVIRONMENT
.TP
.BR SUPERVISOR_ROOT ,\  SUPERVISOR_BOARD ,\  SUPERVISOR_TENANT
As \-\-root, \-\-board, and \-\-tenant of create.
.TP
.BR NO_COLOR ,\  CLICOLOR_FORCE ,\  COLUMNS
Whether to colour, and how wide tables are.
.TP
.B RUST_LOG
What the daemon logs, such as debug; info unless set.
.SH FILES
.TP
.IR /var/lib/supervisor ,\  /run/supervisor ,\  /etc/supervisor
Boards, sockets and configuration of the host's service.
.TP
.IR ~/.local/state/supervisor ,\  ~/.config/supervisor
Those of a user. With \-\-root, everything lies under one directory.
";

/// Expected kind of file, for the error about an unusable path.
const PLACE: &str = "a directory";

/// Manual page of the unit.
const UNIT: &str = include_str!("../../../systemd/supervisor.service.8");

/// Print completions for a shell
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The script asks the supervisor for ids of tasks, assignees, tenants, policies and
boards at each completion; without an answer within a moment there are none. With
--static it knows the words and options alone, and starts nothing.

Examples:
  supervisor completions bash > /etc/bash_completion.d/supervisor
  supervisor completions zsh > ~/.zfunc/_supervisor
  supervisor completions fish > ~/.config/fish/completions/supervisor.fish
  source <(supervisor completions bash)")]
pub(super) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
    /// Put all words and options into the script
    #[arg(long = "static")]
    is_static: bool,
}

/// Write the manual pages, one per verb
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The page of the unit, supervisor.service(8), goes into man8 beside a directory man1,
and into any other directory with the rest.

Examples:
  supervisor man /usr/local/share/man/man1")]
pub(super) struct Man {
    /// The directory for the pages
    dir: PathBuf,
}

/// Prints the completions for a shell.
pub(super) async fn completions(line: &CommandLine, asked: Completions) -> Result<u8, Failure> {
    let text = if asked.is_static {
        let mut text = Vec::new();
        clap_complete::generate(asked.shell, &mut command(), "supervisor", &mut text);
        String::from_utf8_lossy(&text).into_owned()
    } else {
        completion_script::script(asked.shell)?
    };
    line.output.text(&text)?;
    Ok(0)
}

/// Writes a manual page for the program and one for each verb.
pub(super) async fn man(line: &CommandLine, asked: Man) -> Result<u8, Failure> {
    let dir = asked.dir.as_path();
    std::fs::create_dir_all(dir).map_err(|e| Failure::named_file("make the directory", dir, &e, PLACE))?;
    let mut program = command().disable_help_subcommand(true);
    program.build();
    write(dir, &program, "supervisor")?;
    for verb in program.get_subcommands() {
        write(dir, verb, &format!("supervisor-{}", verb.get_name()))?;
    }
    let beside =
        if dir.file_name() == Some("man1".as_ref()) { dir.with_file_name("man8") } else { dir.to_owned() };
    std::fs::create_dir_all(&beside)
        .map_err(|e| Failure::named_file("make the directory", &beside, &e, PLACE))?;
    let path = beside.join("supervisor.service.8");
    std::fs::write(&path, UNIT).map_err(|e| Failure::named_file("write", &path, &e, PLACE))?;
    line.output.text(&format!("Wrote the manual to {}\n", dir.display()))?;
    Ok(0)
}

fn write(dir: &Path, command: &clap::Command, name: &str) -> Result<(), Failure> {
    let path = dir.join(format!("{name}.1"));
    let text =
        page(command, name).map_err(|e| Failure::failed(format!("failed to lay out {name}.1: {e}")))?;
    std::fs::write(&path, text).map_err(|e| Failure::named_file("write", &path, &e, PLACE))
}

fn page(command: &clap::Command, name: &str) -> io::Result<Vec<u8>> {
    use io::Write as _;
    let version = env!("CARGO_PKG_VERSION");
    // The names of pages have dashes, where commands have spaces.
    let man = clap_mangen::Man::new(command.clone().display_name(name.to_owned()))
        .title(name.to_uppercase())
        .source(format!("supervisor {version}"));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('-', r"\-");
    writeln!(text, ".SH SYNOPSIS\n{usage}")?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
        text.extend(COMMON.trim_start().bytes());
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    notes(&mut text, &after)?;
    if !command.has_subcommands() {
        writeln!(text, ".SH SEE ALSO\n.BR supervisor (1)")?;
    }
    Ok(text)
}

/// Writes the text below the help of a command, a section for each block. Blocks with a heading, such as the examples, keep
/// their line ends; other text is filled.
fn notes(text: &mut Vec<u8>, after: &str) -> io::Result<()> {
    use io::Write as _;
    for block in after.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let (head, body) = block.split_once(":\n").unwrap_or(("Notes", block));
        let escaped =
            body.replace('\\', r"\e").replace('-', r"\-").replace('\'', r"\(aq").replace("\n.", "\n\\&.");
        writeln!(text, ".SH {}", head.to_uppercase())?;
        if block.contains(":\n") {
            writeln!(text, ".nf\n{escaped}\n.fi")?;
        } else {
            writeln!(text, "{escaped}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_with_its_examples_as_they_are() {
        let mut program = command();
        program.build();
        for verb in program.get_subcommands().filter(|verb| verb.get_name() != "help") {
            let name = verb.get_name();
            let page = String::from_utf8(page(verb, &format!("supervisor-{name}")).unwrap()).unwrap();
            let synopsis = format!(".SH SYNOPSIS\nsupervisor {name}").replace('-', r"\-");
            assert!(page.contains(&synopsis), "{page}");
            assert!(page.contains("\n.SH EXAMPLES\n.nf\n  supervisor "), "{page}");
        }
    }
}
