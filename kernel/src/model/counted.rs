//! Formats a number with its noun: `1 task`, `2 tasks`.

use std::fmt;

/// Number and its noun in the singular. The noun is written in the plural unless the number is exactly one.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a, N>(pub N, pub &'a str);

impl<N: Copy + fmt::Display + PartialEq + From<u8>> fmt::Display for Counted<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(number, noun) = *self;
        if number == N::from(1) {
            return write!(f, "{number} {noun}");
        }
        let vowel_before_y = |stem: &str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
        match noun.strip_suffix('y') {
            Some(stem) if !vowel_before_y(stem) => write!(f, "{number} {stem}ies"),
            _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => {
                write!(f, "{number} {noun}es")
            }
            _ => write!(f, "{number} {noun}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_every_other_number_plural() {
        let texts = [
            Counted(0_usize, "task").to_string(),
            Counted(1_usize, "task").to_string(),
            Counted(2_usize, "task").to_string(),
            Counted(2_usize, "process").to_string(),
            Counted(2_usize, "retry").to_string(),
            Counted(2_usize, "day").to_string(),
            Counted(3_usize, "child branch").to_string(),
        ];
        assert_eq!(
            texts,
            ["0 tasks", "1 task", "2 tasks", "2 processes", "2 retries", "2 days", "3 child branches"]
        );
    }
}
