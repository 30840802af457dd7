//! Changed configurations are read or refused, and the refusal has a line of the file.

use std::path::Path;

use super::Config;

#[test]
fn a_configuration_is_read_or_refused_with_its_line() {
    fuzz::Target::new("configuration", fuzz::Shape::Toml).check(|input| {
        let Ok(text) = str::from_utf8(input) else { return "no text".to_owned() };
        match Config::parse(text, Path::new("supervisor.toml")) {
            Ok(config) => {
                // What is taken can be used.
                let total = config.limits.total();
                format!("{} {}", config.quotas().longest_hold.is_zero(), total.min(2))
            }
            Err(defect) => {
                // A text that ends too early is wrong in the line after its last.
                assert!(
                    defect.line.is_none_or(|line| (1..=text.lines().count() + 1).contains(&line)),
                    "{defect}"
                );
                defect.message.into_string()
            }
        }
    });
}
