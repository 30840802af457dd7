//! Changed files of lanes are read or refused, and the refusal has a line of the file.

use std::path::Path;

use super::{Lane, builtin};

#[test]
fn the_file_of_a_lane_is_read_or_refused_with_its_line() {
    let target = builtin::ALL
        .iter()
        .fold(fuzz::Target::new("lane", fuzz::Shape::Toml), |target, (_, text)| target.seed(text));
    // The extended lane is read along with it.
    target.memory(8 << 20, 64).check(|input| {
        let Ok(text) = str::from_utf8(input) else { return "no text".to_owned() };
        match Lane::parse("fuzzed", text, Path::new("fuzzed.toml")) {
            Ok(_) => "a lane".to_owned(),
            Err(defect) => {
                // A text that ends too early has its error on the line after its last.
                assert!(
                    defect.line.is_none_or(|line| (1..=text.lines().count() + 1).contains(&line)),
                    "{defect}"
                );
                defect.message.into_string()
            }
        }
    });
}
