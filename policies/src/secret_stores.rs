//! Locations of secrets that a policy or a lane names by a name alone.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits that the mode of a file may not have.
pub(crate) const FILE_BITS: u32 = 0o077;
/// Bits that the mode of a credential may not have. systemd closes the directory. For the user of a unit it may use an
/// access list, whose mask then appears as the group's part of the mode.
pub(crate) const CREDENTIAL_BITS: u32 = 0o037;
/// Longest name, in bytes.
const LONGEST: usize = 32;
/// Limit on the digits of a name. The keys of services have more digits, or capitals, so a value is never taken for a
/// name.
const DIGITS: usize = 4;

/// Name of a secret: a credential of the daemon's unit, or else a file in the directory of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SecretName(String);

/// Error for a text that is no name of a secret. It does not repeat the text, which may be a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a secret has at most {LONGEST} small letters, digits, `-` and `_`, at most {DIGITS} of them digits"
)]
pub struct NoSecretName;

impl TryFrom<String> for SecretName {
    type Error = NoSecretName;

    fn try_from(name: String) -> Result<Self, NoSecretName> {
        let is_of_it =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let digits = name.bytes().filter(u8::is_ascii_digit).count();
        let fits = !name.is_empty() && name.len() <= LONGEST && digits <= DIGITS;
        if fits && name.bytes().all(is_of_it) { Ok(Self(name)) } else { Err(NoSecretName) }
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Places searched for secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretStores {
    /// Directory of the credentials of the daemon's unit.
    pub credentials: Option<PathBuf>,
    /// Directory of secrets, one file each.
    pub directory: Option<PathBuf>,
}

impl SecretStores {
    /// Returns the path of a named secret, with the bits that its mode may not have: the credential if it exists, else
    /// the file.
    pub(crate) fn find(&self, SecretName(name): &SecretName) -> Option<(PathBuf, u32)> {
        let credential = self.credential(name).filter(|path| path.symlink_metadata().is_ok());
        let file = || self.directory.as_deref().map(|dir: &Path| (dir.join(name), FILE_BITS));
        credential.map(|path| (path, CREDENTIAL_BITS)).or_else(file)
    }

    pub(crate) fn credential(&self, name: &str) -> Option<PathBuf> {
        self.credentials.as_deref().map(|dir| dir.join(name))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Secret;

    fn written(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_name_is_a_credential_or_else_a_file_of_the_directory() {
        let (units, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = Secret::Named("anthropic-key".to_owned().try_into().unwrap());
        let stores = SecretStores {
            credentials: Some(units.path().to_owned()),
            directory: Some(files.path().to_owned()),
        };
        let path = files.path().join("anthropic-key");
        assert!(!secret.is_there(&stores));
        let missing = secret.fetch("KEY", &stores).unwrap_err().to_string();
        assert!(missing.contains("KEY") && missing.contains(path.to_str().unwrap()), "{missing}");

        written(&path, "of-the-file", 0o644);
        assert!(secret.fetch("KEY", &stores).unwrap_err().to_string().contains("chmod 600"));
        written(&path, "of-the-file", 0o600);
        assert_eq!(secret.fetch("KEY", &stores).unwrap().bytes(), b"of-the-file");
        written(&units.path().join("anthropic-key"), "of-the-unit", 0o440);
        assert_eq!(secret.fetch("KEY", &stores).unwrap().bytes(), b"of-the-unit");
        assert!(secret.is_there(&stores) && !secret.is_there(&SecretStores::default()));
    }

    #[test]
    fn what_may_be_a_value_is_no_name() {
        for name in ["anthropic-key", "k", "openai_2"] {
            assert!(SecretName::try_from(name.to_owned()).is_ok(), "{name}");
        }
        for name in ["", "sk-Abc", "../x", ".", "a b", "0f1e2d3c4b5a", "abcdefghijklmnopqrstuvwxyzabcdefg"] {
            assert!(SecretName::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
