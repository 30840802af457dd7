//! Variables that a policy gives to a run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::Mode;
use crate::secrets::Secret;

/// Variables that a run gets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Names of variables that are passed on. `LC_*` stands for the categories of the locale.
    pub pass: Vec<Name>,
    /// Variables with their values.
    pub set: BTreeMap<String, String>,
    /// Variables whose values are read from a file when a run starts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secret: BTreeMap<String, Secret>,
}

/// Name of a variable, or `LC_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Name(pub(crate) String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if plain || name == "LC_*" {
            Ok(Self(name))
        } else {
            Err(format!("`{name}` is not the name of a variable; the only pattern is `LC_*`"))
        }
    }
}

impl AsRef<String> for Name {
    fn as_ref(&self) -> &String {
        &self.0
    }
}

/// Variables by which programs find their proxy. Some programs read only the names in lower case, some only the upper
/// case (curl(1), "ENVIRONMENT").
pub(crate) const PROXY: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// Variables with the hosts that programs reach without their proxy.
pub(crate) const NO_PROXY: &str = "NO_PROXY";
/// Returns true if the supervisor sets a variable for each run, so that a policy's value would have no effect.
pub(crate) fn is_reserved(name: &str, mode: Mode) -> bool {
    let of_proxy = || PROXY.into_iter().chain([NO_PROXY]).any(|own| name.eq_ignore_ascii_case(own));
    let of_run = matches!(name, "HOME" | "TMPDIR");
    of_run
        || name.starts_with("SUPERVISOR_")
        || name.starts_with("HERMES_")
        || (mode == Mode::Proxy && of_proxy())
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Debug for Environment {
    /// Shows only names, because values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("pass", &self.pass)
            .field("set", &self.set.keys().collect::<Vec<_>>())
            .field("secret", &self.secret)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let env = Environment {
            pass: vec![],
            set: BTreeMap::from([("KEY".into(), "hunter2".into())]),
            ..Environment::default()
        };
        let shown = format!("{env:?}");
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_variable_is_passed_on_by_its_name_and_no_pattern_but_that_of_the_locale() {
        for name in ["PATH", "MY_KEY_2", "_", "LC_*"] {
            assert!(Name::try_from(name.to_owned()).is_ok(), "{name}");
        }
        for name in ["AWS_*", "A-B", "A=B", "A B", ""] {
            assert!(Name::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
