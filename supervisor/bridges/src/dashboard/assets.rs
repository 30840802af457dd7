//! Files of the dashboard's page, embedded in the binary, with their compressed forms. A debug build reads them from
//! the source tree, so that reloading the page shows a change.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use sha2::{Digest as _, Sha256};

/// Files of `page/`, embedded at build time.
#[derive(Debug, RustEmbed)]
#[folder = "src/dashboard/page"]
struct PageFiles;

/// Largest compressed size that is worth sending, in percent of the original.
const WORTH: usize = 90;

/// Compressed forms by digest, so that each text is compressed once.
static COMPRESSED: LazyLock<Mutex<BTreeMap<DigestKey, Option<Bytes>>>> = LazyLock::new(Mutex::default);

/// First half of a file's digest, enough to tell the page's files apart.
type DigestKey = [u8; 16];

/// Bytes for a browser, with their cache tag.
#[derive(Clone, Debug)]
pub(super) struct Asset {
    pub(super) bytes: Bytes,
    /// Compressed bytes; none if they are hardly shorter.
    pub(super) gzip: Option<Bytes>,
    key: DigestKey,
}

impl Asset {
    pub(super) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let key = key(&Sha256::digest(&bytes).into());
        Asset { gzip: compressed(&bytes), bytes, key }
    }

    /// Returns the cache tag. The compressed form has its own, because its bytes differ.
    pub(super) fn tag(&self, is_compressed: bool) -> String {
        let key = hex::encode(self.key);
        if is_compressed { format!("\"{key}-gzip\"") } else { format!("\"{key}\"") }
    }
}

/// Returns a file by its name.
pub(super) fn get(name: &str) -> Option<Asset> {
    let file = PageFiles::get(name)?;
    let key = key(&file.metadata.sha256_hash());
    let bytes: Bytes = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.into(),
    };
    let known = COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    let gzip = known.unwrap_or_else(|| {
        let gzip = compressed(&bytes);
        COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner).insert(key, gzip.clone());
        gzip
    });
    Some(Asset { bytes, gzip, key })
}

/// Returns the sorted names of all files, and a version of their present contents.
pub(super) fn all() -> (Vec<String>, String) {
    let mut names: Vec<String> = PageFiles::iter().map(|name| name.into_owned()).collect();
    names.sort();
    let mut version = Sha256::new();
    for name in &names {
        version.update(name.as_bytes());
        version.update(PageFiles::get(name).map_or([0; 32], |file| file.metadata.sha256_hash()));
    }
    (names, hex::encode(&version.finalize()[..8]))
}

/// Compresses all files, so that no request waits for it.
pub(super) fn warm() {
    for name in all().0 {
        drop(get(&name));
    }
}

fn key(digest: &[u8; 32]) -> DigestKey {
    let mut key = DigestKey::default();
    key.copy_from_slice(&digest[..16]);
    key
}

fn compressed(bytes: &[u8]) -> Option<Bytes> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).ok()?;
    let gzip = gzip.finish().ok()?;
    (gzip.len() * 100 < bytes.len() * WORTH).then(|| gzip.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn every_text_of_the_page_is_compressed_and_comes_back_as_it_was() {
        let (names, _) = all();
        assert!(names.len() > 50, "{names:?}");
        let (mut raw, mut sent) = (0, 0);
        for name in names {
            let asset = get(&name).unwrap();
            let Some(gzip) = &asset.gzip else {
                assert!(asset.bytes.len() < 1 << 10, "{name} is not compressed");
                continue;
            };
            let mut back = Vec::new();
            flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut back).unwrap();
            assert_eq!(back, asset.bytes, "{name}");
            assert_ne!(asset.tag(true), asset.tag(false));
            raw += asset.bytes.len();
            sent += gzip.len();
        }
        assert!(sent * 2 < raw, "{sent} of {raw} bytes");
    }
}
