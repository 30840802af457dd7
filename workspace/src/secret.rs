//! Recognizes files that look like secrets, by their names and by keys in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Number of bytes of a file that are searched.
pub(crate) const SEARCHED: usize = 1024 * 1024;

/// Names of files with credentials.
const NAMES: [&str; 19] = [
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "master.key",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "service-account.json",
];

/// Extensions of keys and key stores.
const EXTENSIONS: [&str; 8] = ["jks", "kdbx", "key", "keystore", "p12", "pem", "pfx", "ppk"];

/// Extensions of examples, which have no values.
const EXAMPLES: [&str; 5] = ["dist", "example", "sample", "template", "tmpl"];

/// Keys by their first characters, with the smallest number of letters, digits, `-` and `_` that follow.
const KEYS: [(&[u8], usize); 14] = [
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"AIza", 35),
    (b"ghp_", 36),
    (b"gho_", 36),
    (b"ghs_", 36),
    (b"ghu_", 36),
    (b"github_pat_", 22),
    (b"glpat-", 20),
    (b"npm_", 36),
    (b"sk-ant-", 20),
    (b"sk-proj-", 20),
    (b"xoxb-", 20),
    (b"xoxp-", 20),
];

/// Beginning of a key in PEM.
const BEGIN: &[u8] = b"-----BEGIN ";
/// Rest of that line, after the kind of key.
const PRIVATE: &[u8] = b"PRIVATE KEY";
/// Longest name of a kind of key.
const KIND: usize = 40;

/// Returns true if a file has the name of a secret.
pub(crate) fn is_named(path: &Path) -> bool {
    let Some(name) = path.file_name().map(OsStr::to_string_lossy) else { return false };
    let name = name.to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if EXAMPLES.contains(&extension) {
        return false;
    }
    NAMES.contains(&name.as_str()) || name.starts_with(".env.") || EXTENSIONS.contains(&extension)
}

/// Returns true if a text contains a key.
pub(crate) fn is_held(text: &[u8]) -> bool {
    (0..text.len()).any(|at| begins(&text[at..], at.checked_sub(1).map(|before| text[before])))
}

/// Returns true if a text begins with a key; `before` is the character before it.
fn begins(text: &[u8], before: Option<u8>) -> bool {
    match text.first() {
        Some(b'-') => is_private_key(text),
        Some(b'A' | b'g' | b'n' | b's' | b'x') if !before.is_some_and(is_of_key) => {
            KEYS.iter().any(|(first, least)| {
                text.strip_prefix(*first)
                    .is_some_and(|rest| rest.iter().take_while(|byte| is_of_key(**byte)).count() >= *least)
            })
        }
        _ => false,
    }
}

fn is_private_key(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(BEGIN) else { return false };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = &line[..line.len().min(KIND)];
    line.windows(PRIVATE.len()).any(|part| part == PRIVATE)
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Returns a path that git stores as bytes.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_told_from_their_examples() {
        for name in [".env", "a/.env.local", "deploy/ID_RSA", "tls/server.pem", "x.P12", "credentials.json"] {
            assert!(is_named(Path::new(name)), "{name}");
        }
        for name in [".env.example", "env", "src/key.rs", "id_rsa.pub", "secrets.rs", "a.pem/b", "README"] {
            assert!(!is_named(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_key_is_found_in_a_text_and_a_word_that_begins_like_it_is_none() {
        let key = "0123456789abcdefghijABCDEFGHIJ012345";
        for text in [
            format!("{}RSA {}-----\nMII", "-----BEGIN ", "PRIVATE KEY"),
            format!("token = \"ghp_{key}\""),
            format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP"),
            format!("x\nsk-ant-{key}\n"),
        ] {
            assert!(is_held(text.as_bytes()), "{text}");
        }
        for text in [
            "-----BEGIN CERTIFICATE-----".to_owned(),
            "ghp_short".to_owned(),
            format!("xAKIA{key}"),
            "-----BEGIN PUBLIC KEY-----".to_owned(),
            "the AKIA prefix".to_owned(),
        ] {
            assert!(!is_held(text.as_bytes()), "{text}");
        }
    }
}
