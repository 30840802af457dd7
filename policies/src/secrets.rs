//! Secrets of a run: a policy refers to their sources, and the values are read immediately before the command starts
//! and are never shown.
//!
//! Policies, plans, run directories and reports contain only the reference. The process that becomes the worker reads
//! the value while it still has the daemon's user, and passes it from the file into the environment of the command.
//!
//! See decision 0092.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::secret_stores::{CREDENTIAL_BITS, FILE_BITS, SecretName, SecretStores};

/// Largest size of a secret, in bytes. One variable of the environment, with its name, may have 128 KiB
/// (execve(2), `MAX_ARG_STRLEN`).
const LARGEST: u64 = 64 << 10;
/// Source of a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Secret {
    /// Name of a credential, or else of a file in the directory of secrets.
    Named(SecretName),
    /// Name of a credential that systemd has given to the daemon (systemd.exec(5), "CREDENTIALS").
    Credential(CredentialName),
    /// File that belongs to root or to the daemon's user and that no other user may read.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for Secret {
    /// Reads a reference. People sometimes write the value itself in its place, so no error repeats the text that was
    /// read.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reference)
    }
}

/// Visitor that reads a reference.
struct Reference;

const REFERENCE: &str =
    "a secret is \"NAME\", { credential = \"NAME\" } or { file = \"/PATH\" }, and never its value";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    named: Option<SecretName>,
    credential: Option<CredentialName>,
    file: Option<PathBuf>,
}

impl<'de> Visitor<'de> for Reference {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
        // A text that is not a valid name may be the value itself, so the error does not repeat it.
        SecretName::try_from(text.to_owned()).map(Secret::Named).map_err(|_| E::custom(REFERENCE))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Secret, A::Error> {
        match SecretTable::deserialize(MapAccessDeserializer::new(map))? {
            SecretTable { named: Some(name), credential: None, file: None } => Ok(Secret::Named(name)),
            SecretTable { named: None, credential: Some(name), file: None } => Ok(Secret::Credential(name)),
            SecretTable { named: None, credential: None, file: Some(path) } if path.is_absolute() => {
                Ok(Secret::File(path))
            }
            SecretTable { .. } => Err(serde::de::Error::custom(REFERENCE)),
        }
    }
}

/// Name of a credential: a file name of 1 to 255 bytes that does not start with a dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CredentialName(String);

impl TryFrom<String> for CredentialName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.') || name.len() > 255 {
            return Err(format!(
                "`{name}` is not the name of a credential: it is that of a file, without a directory"
            ));
        }
        Ok(Self(name))
    }
}

impl From<CredentialName> for String {
    fn from(name: CredentialName) -> Self {
        name.0
    }
}

/// Failure to read a secret. The message names the variable and the file, never a part of the value.
#[derive(Debug, thiserror::Error)]
#[error("read the secret of {variable} from {source_name}: {why}")]
pub struct SecretError {
    variable: String,
    source_name: String,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("nothing says where the secrets of this host are")]
    NoDirectory,
    #[error(
        "the daemon has no credentials: CREDENTIALS_DIRECTORY is not set; LoadCredential= of its unit gives it some"
    )]
    NoCredentials,
    #[error("it is not a regular file")]
    Kind,
    #[error("it belongs to user {0}; it must belong to root or to the daemon's user")]
    Owner(u32),
    #[error("its mode is {0:04o}, so others than its owner can reach it; chmod 600 closes it")]
    Mode(u32),
    #[error("it is empty")]
    Empty,
    #[error("it is larger than {LARGEST} bytes")]
    Large,
    #[error("it has a zero byte, which no variable can have")]
    Zero,
}

/// Value of a secret, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(OsString);

impl SecretValue {
    /// Returns the value, which has no zero byte.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

/// Values of secret variables by the variable's name. `Debug` shows only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, OsString>);

impl Secrets {
    /// Reads the values of variables. The effective user of the process must be able to read their files.
    pub(crate) fn read(
        variables: &BTreeMap<String, Secret>,
        stores: &SecretStores,
    ) -> Result<Self, SecretError> {
        let read = |(variable, secret): (&String, &Secret)| {
            let SecretValue(value) = secret.fetch(variable, stores)?;
            Ok((variable.clone(), value))
        };
        variables.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl IntoIterator for Secrets {
    type Item = (String, OsString);
    type IntoIter = std::collections::btree_map::IntoIter<String, OsString>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Secret {
    /// Reads the value. The effective user of the process must be able to read its file. `variable` names the purpose of
    /// the value in the error.
    ///
    /// # Errors
    /// Fails if no regular file exists, or if the file has another owner, is open to others, or has no usable value. The
    /// error names the purpose and the source of the value, and no part of the value.
    pub fn fetch(&self, variable: &str, stores: &SecretStores) -> Result<SecretValue, SecretError> {
        self.read(stores).map(SecretValue).map_err(|why| SecretError {
            variable: variable.to_owned(),
            source_name: self.source_name(stores),
            why,
        })
    }

    /// Describes the source of the value: the path of its file, or the name of the credential or secret.
    pub fn source_name(&self, stores: &SecretStores) -> String {
        match self {
            Self::Named(name) => match stores.find(name) {
                Some((path, _)) => path.display().to_string(),
                None => format!("the secret {name}"),
            },
            Self::Credential(CredentialName(name)) => format!("the credential {name}"),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Returns true if a file exists at the path of the value, readable or not.
    pub fn is_there(&self, stores: &SecretStores) -> bool {
        let path = match self {
            Self::Named(name) => stores.find(name).map(|(path, _)| path),
            Self::Credential(CredentialName(name)) => stores.credential(name),
            Self::File(path) => Some(path.clone()),
        };
        path.is_some_and(|path| path.symlink_metadata().is_ok())
    }

    fn read(&self, stores: &SecretStores) -> Result<OsString, Why> {
        match self {
            Self::Named(name) => {
                let (path, open_to_others) = stores.find(name).ok_or(Why::NoDirectory)?;
                read_closed(&path, open_to_others)
            }
            Self::Credential(CredentialName(name)) => {
                read_closed(&stores.credential(name).ok_or(Why::NoCredentials)?, CREDENTIAL_BITS)
            }
            Self::File(path) => read_closed(path, FILE_BITS),
        }
    }
}

/// Byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file, and refuses it if its mode has one of the bits `open_to_others`.
fn read_closed(path: &Path, open_to_others: u32) -> Result<OsString, Why> {
    // NONBLOCK: opening a FIFO must not wait for its writer (fifo(7)). NOFOLLOW: a symbolic link is refused, because
    // another user may be able to replace its target. The checks below use the open file, so no rename can evade them.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Why::Kind);
    }
    if meta.uid() != 0 && meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Why::Owner(meta.uid()));
    }
    if meta.mode() & open_to_others != 0 {
        return Err(Why::Mode(meta.mode() & 0o7777));
    }
    let mut value = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut value)?;
    if value.len() as u64 > LARGEST {
        return Err(Why::Large);
    }
    // Editors and `echo` end a file with a line feed, which is no part of the value.
    while value.pop_if(|last| matches!(last, b'\n' | b'\r')).is_some() {}
    // Editors of Windows begin a file with a byte order mark, which is no part of the value either.
    if value.starts_with(MARK) {
        value.drain(..MARK.len());
    }
    match value.as_slice() {
        [] => Err(Why::Empty),
        bytes if bytes.contains(&0) => Err(Why::Zero),
        _ => Ok(OsString::from_vec(value)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::policy::Policy;
    use crate::run_context::RunContext;

    const VALUE: &str = "sk-hunter2-hunter2";

    fn written(path: &Path, text: &[u8], mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn policy(secret: &str) -> Policy {
        let text = format!("version = 1\n[env]\nsecret = {{ API_KEY = {secret} }}");
        Policy::from_toml(&text, Path::new("p.toml")).unwrap()
    }

    fn refusal(path: &Path) -> String {
        let read = policy(&format!("{{ file = '{}' }}", path.display()));
        let text = Secrets::read(&read.env.secret, &SecretStores::default()).unwrap_err().to_string();
        assert!(
            !text.contains(VALUE) && text.contains("API_KEY") && text.contains(&path.display().to_string()),
            "{text}"
        );
        text
    }

    #[test]
    fn a_file_of_the_owner_alone_is_read_without_its_last_line_feed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        written(&path, format!("{VALUE}\n").as_bytes(), 0o600);
        let context = crate::run_context::bare(dir.path());
        let read = policy(&format!("{{ file = '{}' }}", path.display()));
        let secrets = Secrets::read(&read.env.secret, &context.secret_stores()).unwrap();
        assert!(!format!("{secrets:?}").contains(VALUE) && format!("{secrets:?}").contains("API_KEY"));
        assert_eq!(secrets.into_iter().collect::<Vec<_>>(), [("API_KEY".to_owned(), VALUE.into())]);
        assert!(!format!("{read:?}").contains(VALUE) && !toml::to_string(&read).unwrap().contains(VALUE));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let secret = Secret::File(path.clone());
        written(&path, format!("\u{feff}{VALUE}\r\n").as_bytes(), 0o600);
        assert_eq!(secret.fetch("API_KEY", &SecretStores::default()).unwrap().bytes(), VALUE.as_bytes());
        written(&path, "\u{feff}\n".as_bytes(), 0o600);
        assert!(secret.fetch("API_KEY", &SecretStores::default()).is_err(), "nothing is left");
    }

    #[test]
    fn a_credential_is_one_of_the_daemons() {
        let dir = tempfile::tempdir().unwrap();
        written(&dir.path().join("anthropic"), VALUE.as_bytes(), 0o440);
        let context = RunContext {
            credentials: Some(dir.path().to_owned()),
            ..crate::run_context::bare(Path::new("/ws"))
        };
        let policy = policy("{ credential = 'anthropic' }");
        assert!(Secrets::read(&policy.env.secret, &context.secret_stores()).is_ok());
        let none = crate::run_context::bare(Path::new("/ws"));
        assert!(
            Secrets::read(&policy.env.secret, &none.secret_stores())
                .unwrap_err()
                .to_string()
                .contains("LoadCredential=")
        );
        assert!(CredentialName::try_from("c".repeat(255)).is_ok());
        for name in ["../anthropic", "", ".", "a/b", &"c".repeat(256), &"c".repeat(300)] {
            assert!(CredentialName::try_from(name.to_owned()).is_err(), "{name}");
        }
    }

    #[test]
    fn what_others_can_reach_or_what_is_no_value_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for (mode, bits) in [(0o640, "0640"), (0o604, "0604"), (0o620, "0620"), (0o601, "0601")] {
            written(&path, VALUE.as_bytes(), mode);
            let text = refusal(&path);
            assert!(text.contains(bits) && text.contains("chmod 600"), "{text}");
        }
        let large = "x".repeat((64 << 10) + 1);
        for (bytes, word) in [(&b"\n"[..], "empty"), (b"a\0b", "zero byte"), (large.as_bytes(), "larger")] {
            written(&path, bytes, 0o600);
            assert!(refusal(&path).contains(word), "{word}");
        }
        written(&path, VALUE.as_bytes(), 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        refusal(&link);
        refusal(&dir.path().join("missing"));
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(refusal(&pipe).contains("not a regular file"), "and nothing waits for who writes");
        assert!(refusal(dir.path()).contains("not a regular file"));
        if rustix::process::geteuid().is_root() {
            written(&path, VALUE.as_bytes(), 0o600);
            std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
            assert!(refusal(&path).contains("belongs to user 4711"));
        }
    }

    #[test]
    fn a_secret_is_a_reference_and_nothing_else() {
        for secret in [
            "'sk-Plain'",
            "'0123456789abcdef0123'",
            "{ value = 'sk-Plain' }",
            "{ file = 'a' }",
            "{ file = '/a', credential = 'b' }",
            "{ named = 'a', credential = 'b' }",
        ] {
            let text = format!("version = 1\n[env]\nsecret = {{ API_KEY = {secret} }}");
            let refused = Policy::from_toml(&text, Path::new("p.toml")).unwrap_err().to_string();
            assert!(
                refused.contains("p.toml:3") && !refused.contains("sk-Plain") && !refused.contains("0123"),
                "{refused}"
            );
        }
        let number =
            Policy::from_toml("version = 1\n[env]\nsecret = { KEY = 7 }", Path::new("p.toml")).unwrap_err();
        assert!(number.to_string().contains("expected a table"), "{number}");
        let text = "version = 1\n[env]\nsecret = { HOME = { file = '/a' } }";
        assert!(Policy::from_toml(text, Path::new("p.toml")).unwrap_err().to_string().contains("HOME"));
    }

    #[test]
    fn a_secret_is_written_by_its_name_and_its_value_is_never_shown() {
        for reference in ["\"anthropic-key\"", "credential = \"anthropic\"", "file = \"/key\""] {
            let secret =
                if reference.starts_with('"') { reference.to_owned() } else { format!("{{ {reference} }}") };
            let written = toml::to_string(&policy(&secret)).unwrap();
            assert!(written.contains(reference), "{written}");
        }
        let named = Secret::Named("anthropic-key".to_owned().try_into().unwrap());
        assert_eq!(named.source_name(&SecretStores::default()), "the secret anthropic-key");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let largest = "x".repeat(usize::try_from(LARGEST).unwrap());
        written(&path, largest.as_bytes(), 0o600);
        let value = Secret::File(path).fetch("KEY", &SecretStores::default()).unwrap();
        assert_eq!((value.bytes().len(), format!("{value:?}").as_str()), (largest.len(), "SecretValue"));
    }
}
