//! Full-screen views: enters and leaves the alternate screen, and restores the terminal however the view ends.

use std::io::{self, Stdout, Write as _};
use std::sync::Once;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;

use crate::failure::Failure;

/// Keys that have a meaning in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Letter with the control key.
    Control(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Tab,
}

/// Input of the person at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    Pasted(String),
    /// The terminal was resized.
    Resized,
    Gone,
}

/// Terminal while a view fills it. Dropping it restores the terminal.
#[derive(Debug)]
pub struct FullScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    /// Takes the terminal. A panic restores it before the panic is reported.
    pub fn enter() -> Result<Self, Failure> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                report(panic);
            }));
        });
        let screen = FullScreen { terminal: blank().map_err(|e| failed(&e))? };
        take().map_err(|e| failed(&e))?;
        Ok(screen)
    }

    /// Draws a view; only the cells that changed are written.
    pub fn draw(&mut self, view: impl FnOnce(Rect, &mut Buffer)) -> Result<(), Failure> {
        let drawn = self.terminal.draw(|frame| view(frame.area(), frame.buffer_mut()));
        drawn.map(drop).map_err(|e| failed(&e))
    }

    /// Restores the terminal, stops this process as a job of the shell, and takes the terminal again when it is
    /// continued.
    pub fn suspend(&mut self) -> Result<(), Failure> {
        leave();
        // SIGSTOP, because a handler catches SIGTSTP. The process is stopped when the call returns.
        kill(Pid::this(), Signal::SIGSTOP).map_err(|e| failed(&e.into()))?;
        self.resume()
    }

    /// Takes the terminal again and draws from scratch: others may have written to it.
    pub fn resume(&mut self) -> Result<(), Failure> {
        // Raw mode is left first. Otherwise it would be saved as the state to restore.
        let taken = disable_raw_mode().and_then(|()| take());
        // A new terminal instead of `clear`: that asks the terminal for the cursor position, and the answer would be
        // read as keys.
        self.terminal = taken.and_then(|()| blank()).map_err(|e| failed(&e))?;
        Ok(())
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave();
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure::failed(format!("the terminal cannot be used: {error}"))
}

fn blank() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    Terminal::new(CrosstermBackend::new(io::stdout()))
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    let clear = Clear(ClearType::All);
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide, clear)
}

/// Restores the terminal. Errors are dropped: there is no place left to report them.
fn leave() {
    drop(execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show));
    drop(io::stdout().flush());
    drop(disable_raw_mode());
}

/// Reads input on a thread of its own, because a read of a terminal cannot be cancelled. The thread ends when `take`
/// returns false, when the terminal is gone, or with the process.
pub fn read_input(take: impl Fn(Input) -> bool + Send + 'static) {
    std::thread::spawn(move || {
        loop {
            let input = match event::read() {
                Ok(event) => meant(event),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
                Err(_) => Some(Input::Gone),
            };
            let is_end = input == Some(Input::Gone);
            if input.is_some_and(|input| !take(input)) || is_end {
                return;
            }
        }
    });
}

/// Returns the meaning of a terminal event; none if it has no meaning here.
fn meant(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key).map(Input::Key),
        Event::Paste(text) => Some(Input::Pasted(text)),
        Event::Resize(..) => Some(Input::Resized),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn pressed(key: KeyEvent) -> Option<Key> {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char(letter) if with_control => Key::Control(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_meaning_and_others_have_none() {
        let key = |code, modifiers| pressed(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Control('c')));
        assert_eq!(key(KeyCode::Char('A'), KeyModifiers::SHIFT), Some(Key::Char('A')));
        assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), None);
        assert_eq!(meant(Event::FocusLost), None);
        assert_eq!(meant(Event::Paste("cy".to_owned())), Some(Input::Pasted("cy".to_owned())));
    }
}
