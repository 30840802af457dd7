//! Asks a question at the terminal: by arrow keys, by number, or by a line of text.

use std::io::{self, Write as _};

use console::{Key, Term};
use kernel::Question;

use super::printable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    /// Moves the mark to this entry.
    At(usize),
    Take(usize),
    /// Chooses none of the entries.
    Leave,
}

/// Returns the meaning of a key when the mark stands at `at` among `count` entries.
fn pressed(key: &Key, at: usize, count: usize) -> Pressed {
    match key {
        Key::ArrowUp | Key::Char('k') => Pressed::At((at + count - 1) % count),
        Key::ArrowDown | Key::Tab | Key::Char('j') => Pressed::At((at + 1) % count),
        Key::Home => Pressed::At(0),
        Key::End => Pressed::At(count - 1),
        Key::Enter => Pressed::Take(at),
        Key::Escape | Key::CtrlC | Key::Char('q') => Pressed::Leave,
        Key::Char(digit) => match digit.to_digit(10).map(|digit| digit as usize) {
            Some(number) if (1..=count).contains(&number) => Pressed::Take(number - 1),
            Some(_) | None => Pressed::At(at),
        },
        _ => Pressed::At(at),
    }
}

/// Asks the person at the terminal. None if the person declines to answer.
pub fn ask(question: &Question) -> io::Result<Option<String>> {
    let term = Term::stderr();
    term.write_line(&super::printable_lines(&question.text))?;
    if question.choices.is_empty() {
        return line(&term);
    }
    let mut entries: Vec<String> = question.choices.iter().map(|choice| printable(choice)).collect();
    if question.free_text {
        entries.push("something else".to_owned());
    }
    let taken = if std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
        // A dumb terminal has no cursor keys: the person types the number or a text.
        show(&term, &entries, None)?;
        return line(&term);
    } else {
        pick(&term, &entries)?
    };
    match taken {
        None => Ok(None),
        Some(at) if at == question.choices.len() => line(&term),
        Some(at) => Ok(Some(question.choices[at].clone())),
    }
}

/// Asks the person at the terminal to confirm. Any answer but a yes is a no. Blocks.
pub fn confirm(question: &str) -> io::Result<bool> {
    let mut terminal = io::stderr().lock();
    write!(terminal, "{question} [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn pick(term: &Term, entries: &[String]) -> io::Result<Option<usize>> {
    let mut at = 0;
    loop {
        show(term, entries, Some(at))?;
        let key = match term.read_key_raw() {
            Ok(key) => key,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Key::CtrlC,
            Err(e) => return Err(e),
        };
        match pressed(&key, at, entries.len()) {
            Pressed::At(next) => {
                at = next;
                term.clear_last_lines(entries.len())?;
            }
            Pressed::Take(taken) => return Ok(Some(taken)),
            Pressed::Leave => return Ok(None),
        }
    }
}

fn show(term: &Term, entries: &[String], at: Option<usize>) -> io::Result<()> {
    let width = usize::from(term.size().1).max(20) - 1;
    for (index, entry) in entries.iter().enumerate() {
        let mark = if at == Some(index) { ">" } else { " " };
        // Each entry is cut to one line: `clear_last_lines` erases one line for each entry.
        let text: String = format!("{mark} {}. {entry}", index + 1).chars().take(width).collect();
        term.write_line(&text)?;
    }
    Ok(())
}

fn line(term: &Term) -> io::Result<Option<String>> {
    term.write_str("answer: ")?;
    let text = term.read_line()?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_round_numbers_choose_and_escape_leaves() {
        assert_eq!(pressed(&Key::ArrowUp, 0, 3), Pressed::At(2));
        assert_eq!(pressed(&Key::ArrowDown, 2, 3), Pressed::At(0));
        assert_eq!(pressed(&Key::Enter, 1, 3), Pressed::Take(1));
        assert_eq!(pressed(&Key::Char('3'), 0, 3), Pressed::Take(2));
        assert_eq!(pressed(&Key::Char('4'), 1, 3), Pressed::At(1));
        assert_eq!(pressed(&Key::Char('0'), 1, 3), Pressed::At(1));
        assert_eq!(pressed(&Key::Escape, 1, 3), Pressed::Leave);
    }
}
