//! The environment of a run: built from an allow-list, never inherited.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// What `LC_*` stands for: the categories of glibc's locale(7).
const LOCALE: &[&str] = &[
    "LC_ALL",
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// Which variables a run gets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Names that are passed on; `LC_*` stands for the locale's categories.
    pub pass: Vec<Name>,
    /// Variables with their values.
    pub set: BTreeMap<String, String>,
}

/// The name of a variable, or `LC_*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Name(String);

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

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Debug for Environment {
    /// Values may be secrets; only names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("pass", &self.pass)
            .field("set", &self.set.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl Policy {
    /// Returns the environment of a run: what the policy passes on of `from`, then what the policy sets, then `set`.
    pub fn environment(
        &self,
        from: impl Fn(&str) -> Option<OsString>,
        set: BTreeMap<String, String>,
    ) -> BTreeMap<String, OsString> {
        let mut all = BTreeMap::new();
        for Name(name) in &self.env.pass {
            let names = if name == "LC_*" { LOCALE.to_vec() } else { vec![name.as_str()] };
            all.extend(names.into_iter().filter_map(|name| Some((name.to_owned(), from(name)?))));
        }
        let own = self.env.set.clone().into_iter().chain(set);
        all.extend(own.map(|(name, value)| (name, OsString::from(value))));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Option<OsString> {
        matches!(name, "TERM" | "LC_TIME" | "FAKE_API_KEY" | "PATH")
            .then(|| OsString::from(format!("{name}-value")))
    }

    #[test]
    fn only_listed_variables_pass_and_the_run_has_the_last_word() {
        let policy = Policy::builtin("default").unwrap();
        let set = BTreeMap::from([("PATH".to_owned(), "/mine".to_owned())]);
        let env = policy.environment(caller, set);
        let names: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(names, ["LC_TIME", "PATH", "TERM"]);
        assert_eq!(env["PATH"], "/mine");
    }

    #[test]
    fn debug_shows_no_value() {
        let env = Environment { pass: vec![], set: BTreeMap::from([("KEY".into(), "hunter2".into())]) };
        assert!(!format!("{env:?}").contains("hunter2"));
    }

    #[test]
    fn a_pattern_is_refused() {
        assert!(Name::try_from("AWS_*".to_owned()).is_err());
    }
}
