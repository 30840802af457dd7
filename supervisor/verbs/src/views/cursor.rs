//! The end of a page, encoded as an opaque word that needs no quotes in a shell.

use kernel::RunId;

use base::failure::Failure;

/// Encodes a position of the kernel as a cursor.
pub(crate) fn sealed(position: &str) -> String {
    hex::encode(position)
}

/// Decodes a cursor. Fails for a word that is no cursor.
pub(crate) fn opened(word: &str) -> Result<String, Failure> {
    hex::decode(word).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(not_a_cursor)
}

/// Returns the run after which a page of runs starts. Without a cursor it is 0.
pub(crate) fn after(word: Option<&str>) -> Result<RunId, Failure> {
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
