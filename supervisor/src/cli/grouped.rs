//! The help of the whole program, with its subcommands in groups.

use clap::Command;
use clap::builder::Styles;

use super::arguments::GROUPS;
use base::terminal::{Colour, Screen};

/// Lists the subcommands under the headings of their groups.
pub(super) fn helped(command: Command) -> Command {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let shown = |word: &&Command| !word.is_hide_set() && word.get_name() != "help";
    let widest = command.get_subcommands().filter(shown).map(|word| word.get_name().len()).max().unwrap_or(0);
    let line = |word: &Command| {
        let name = word.get_name();
        let about = word.get_about().map(ToString::to_string).unwrap_or_default();
        // The text is wrapped at the width of the terminal, as in clap's own output.
        let mut screen = Screen::stdout(Colour::Never);
        screen.hanging(
            &format!("  {literal}{name}{literal:#}{:gap$}  ", "", gap = widest - name.len()),
            &about,
        );
        screen.into_text()
    };
    let mut words = command.get_subcommands();
    let groups: Vec<String> = GROUPS
        .iter()
        .map(|(group, count)| {
            let lines: String = words.by_ref().take(*count).filter(shown).map(line).collect();
            format!("{header}{group}:{header:#}\n{lines}\n")
        })
        .collect();
    drop(words);
    // Clap renders all subcommands as one list, and headings of options only if that list is included. So the options
    // are rendered with all subcommands hidden.
    let mut bare = command.clone().mut_subcommands(|word| word.hide(true)).help_template("{all-args}");
    let options = bare.render_help().ansi().to_string();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}{{after-help}}",
        groups.concat(),
        options.trim_end(),
    );
    command.help_template(template)
}
