//! Fits texts to a width, by cutting them or by breaking them between words.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Cuts a text to a width in columns. A cut text ends with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

/// Breaks a text between words into lines of at most `width` columns. A word longer than a line is broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_after(text, width, width)
}

/// Breaks a text as [`wrap`] does, with another width for the first line. A first line of width 0 is empty.
pub(super) fn wrap_after(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut taken) = (String::new(), 0);
    let mut width = first;
    let begins = text.split(' ').next().map_or(0, |word| word.width());
    if begins > first && (first == 0 || begins <= rest) {
        lines.push(String::new());
        width = rest;
    }
    for word in text.split(' ') {
        if taken > 0 && taken + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
            (taken, width) = (0, rest);
        } else if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if taken + wide > width {
                lines.push(std::mem::take(&mut line));
                (taken, width) = (0, rest);
            }
            line.push(c);
            taken += wide;
        }
    }
    lines.push(line);
    lines
}
