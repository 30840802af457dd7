//! Where a page ended, as one word that no shell changes and nobody is tempted to read.

use kernel::RunId;

use crate::failure::Failure;

/// The word for a position of the kernel's.
pub(super) fn sealed(position: &str) -> String {
    let digits = position.bytes().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// The position that a word stands for.
pub(super) fn opened(word: &str) -> Result<String, Failure> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = word.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        })
        .collect();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(not_a_cursor)
}

/// The run after which a page of runs starts.
pub(super) fn after(word: Option<&str>) -> Result<RunId, Failure> {
    let Some(word) = word else { return Ok(RunId(0)) };
    let number = opened(word)?.parse().map_err(|_| not_a_cursor())?;
    Ok(RunId(number))
}

fn not_a_cursor() -> Failure {
    Failure::usage("the cursor is not valid").hint("start again without --cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was_and_nothing_else_is_taken_for_one() {
        let position = r#"["grün",5,"t_01234567"]"#;
        assert_eq!(opened(&sealed(position)).unwrap(), position);
        for wrong in ["5b3", "xy", "ff", "é"] {
            assert!(opened(wrong).is_err(), "{wrong}");
        }
    }
}
