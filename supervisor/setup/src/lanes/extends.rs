//! Reads lane files with `extends`, whose missing settings come from a built-in lane. Tables are merged key by key, as in
//! policies; any other value replaces the built-in one.
//!
//! Only a built-in lane can be extended, because chains of files would have to be read in an order.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::builtin;

/// Key that names the built-in lane.
const KEY: &str = "extends";

/// Reason why a file cannot be read.
#[derive(Debug)]
pub(super) enum Misread {
    /// Invalid TOML, or a key that is not understood.
    Toml(toml::de::Error),
    /// `extends` does not name a built-in lane.
    NotBuiltIn(String),
}

/// Parses a file merged with the lane that it extends. Errors have positions in the file itself.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Misread> {
    let mut table = DeTable::parse(text).map_err(Misread::Toml)?;
    if let Some(base) = table.get_mut().remove(KEY) {
        let base = match base.into_inner() {
            DeValue::String(name) => text_of(&name),
            other => Err(Misread::NotBuiltIn(format!("it is of type {}, not a text", other.type_str()))),
        }?;
        let base = DeTable::parse(base).map_err(Misread::Toml)?;
        add(table.get_mut(), base.into_inner());
    }
    T::deserialize(Deserializer::from(table)).map_err(Misread::Toml)
}

fn text_of(name: &str) -> Result<&'static str, Misread> {
    let builtin = builtin::ALL.iter().find(|(known, _)| *known == name);
    builtin.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<&str> = builtin::ALL.iter().map(|(name, _)| *name).collect();
        Misread::NotBuiltIn(format!("no lane `{name}` is built in; there are {}", known.join(", ")))
    })
}

/// Adds the keys of `base` that `own` lacks, also in its tables.
fn add<'i>(table: &mut DeTable<'i>, base: DeTable<'i>) {
    for (key, value) in base {
        match table.get_mut(&**key.get_ref()).map(Spanned::get_mut) {
            None => drop(table.insert(key, value)),
            Some(DeValue::Table(table)) => {
                if let DeValue::Table(base) = value.into_inner() {
                    add(table, base);
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<toml::Table, String> {
        super::read(text).map_err(|misread| match misread {
            Misread::Toml(error) => error.message().to_owned(),
            Misread::NotBuiltIn(message) => message,
        })
    }

    #[test]
    fn what_a_file_does_not_say_is_as_in_the_lane_that_it_extends() {
        let table = read(
            "extends = \"claude\"\nmodel = \"large\"\n[env]\nDISABLE_AUTOUPDATER = \"0\"\nMINE = \"1\"\n",
        )
        .unwrap();
        assert_eq!((table["model"].as_str(), table["account"].as_str()), (Some("large"), Some("anthropic")));
        let env = table["env"].as_table().unwrap();
        assert_eq!((env["DISABLE_AUTOUPDATER"].as_str(), env["MINE"].as_str()), (Some("0"), Some("1")));
        assert!(env.contains_key("CLAUDE_CONFIG_DIR") && !table.contains_key("extends"));
        assert_eq!(read("argv = [\"x\"]").unwrap().len(), 1, "it extends nothing");
    }

    #[test]
    fn what_is_extended_is_built_in() {
        assert!(
            read("extends = \"mine\"")
                .unwrap_err()
                .contains("`mine` is built in; there are shell, exec, claude")
        );
        assert_eq!(read("extends = 1").unwrap_err(), "it is of type integer, not a text");
    }
}
