//! Changed profiles, and changed agent files of other programs.

use std::path::Path;

use super::{ProfileDefinition, adopt};

#[test]
fn a_file_that_is_adopted_is_a_profile_that_can_be_read() {
    fuzz::Target::new("profile", fuzz::Shape::Text).memory(8 << 20, 64).check(|input| {
        let Ok(text) = str::from_utf8(input) else { return "no text".to_owned() };
        let read = match ProfileDefinition::parse("ann", text, Path::new("ann.md")) {
            Ok(_) => "a profile".to_owned(),
            Err(defect) => {
                let message = defect.to_string();
                assert!(!message.contains('\n'), "{message}");
                assert!(
                    defect.line.is_none_or(|line| (1..=text.lines().count() + 1).contains(&line)),
                    "{message}"
                );
                message
            }
        };
        match adopt(text) {
            Ok(adopted) => {
                let written = adopted.draft.text("ann");
                let again =
                    adopt(&written).unwrap_or_else(|fault| panic!("{written:?} is refused: {fault:?}"));
                let trimmed = |prompt: &str| prompt.trim().to_owned();
                assert_eq!(trimmed(&again.draft.prompt), trimmed(&adopted.draft.prompt));
                assert_eq!(again.draft.text("ann"), written);
                format!("{read} {} {}", adopted.is_profile, adopted.left_out.len().min(9))
            }
            Err(fault) => {
                assert!((1..=text.lines().count() + 1).contains(&fault.line), "{fault:?}");
                format!("{read} {}", fault.message)
            }
        }
    });
}
