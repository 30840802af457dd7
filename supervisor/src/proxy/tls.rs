//! TLS to the hosts of brokers: the certificates that this host trusts, and those of a file of the configuration.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The longest file of certificates, in bytes.
const LONGEST: u64 = 4 << 20;

/// Why no host can be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("failed to read the certificates of {}: {source}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} has no certificate in PEM that can be used", .0.display())]
    NoCertificate(PathBuf),
    #[error(
        "this host has no certificates of authorities; install its package ca-certificates, or name a file as [proxy] ca"
    )]
    None,
    #[error(transparent)]
    Protocol(#[from] rustls::Error),
}

/// What is trusted, read when it is first needed and again when the file of the configuration has changed.
#[derive(Debug, Default)]
pub(super) struct Trust(Mutex<Option<Read>>);

#[derive(Debug)]
struct Read {
    of: (Option<PathBuf>, Option<SystemTime>),
    config: Arc<ClientConfig>,
}

impl Trust {
    /// Returns how hosts are asked. Blocking: it reads files.
    pub(super) fn config(&self, extra: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
        let changed = extra.and_then(|path| path.metadata().ok()?.modified().ok());
        let of = (extra.map(Path::to_owned), changed);
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Read { of: known, config }) = &*read
            && *known == of
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(client(extra)?);
        *read = Some(Read { of, config: Arc::clone(&config) });
        Ok(config)
    }
}

/// How a host is asked that the authorities of this host vouch for.
pub(crate) fn trusted() -> Result<Arc<ClientConfig>, TlsError> {
    trusting(None)
}

/// The same with a file of certificates beside them. Blocking.
pub(crate) fn trusting(extra: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    client(extra).map(Arc::new)
}

fn client(extra: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    // What of them cannot be read is not trusted, and the others are.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        let own = certificates(path).map_err(|source| TlsError::File { path: path.to_owned(), source })?;
        if roots.add_parsable_certificates(own).0 == 0 {
            return Err(TlsError::NoCertificate(path.to_owned()));
        }
    }
    if roots.is_empty() {
        return Err(TlsError::None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let trust = Trust::default();
        let missing = trust.config(Some(&path)).unwrap_err().to_string();
        assert!(missing.contains("ca.pem") && missing.contains("No such file"), "{missing}");
        std::fs::write(&path, "nothing\n").unwrap();
        let empty = trust.config(Some(&path)).unwrap_err().to_string();
        assert!(empty.contains("ca.pem has no certificate"), "{empty}");
    }
}
