//! Client side of TLS, for brokers' hosts and other services: trusts the authorities of this host, and the certificates
//! in a configured file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Limit on a file of certificates, in bytes. The rest of a longer file is not read.
const LONGEST: u64 = 4 << 20;

/// Reason why no TLS connection can be made to any host.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
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

/// Trusted certificates, read on first use and again after a change of the configured file.
#[derive(Debug, Default)]
pub(super) struct Trust(Mutex<Option<LoadedTrust>>);

#[derive(Debug)]
struct LoadedTrust {
    /// Configured file and the time of its last change, when the certificates were read.
    of: (Option<PathBuf>, Option<SystemTime>),
    config: Arc<ClientConfig>,
}

impl Trust {
    /// Returns the client configuration that also trusts the certificates in the file `extra`. Blocks: reads files.
    pub(super) fn config(&self, extra: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
        let changed = extra.and_then(|path| path.metadata().ok()?.modified().ok());
        let of = (extra.map(Path::to_owned), changed);
        // The lock is kept while the files are read, so that concurrent connections read them once.
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(LoadedTrust { of: known, config }) = &*read
            && *known == of
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(client(extra)?);
        *read = Some(LoadedTrust { of, config: Arc::clone(&config) });
        Ok(config)
    }
}

/// Returns a client configuration that trusts the authorities of this host.
pub fn trusted() -> Result<Arc<ClientConfig>, TlsError> {
    trusting(None)
}

/// Returns a client configuration that trusts the authorities of this host and the certificates in a file. Blocks.
pub fn trusting(extra: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    client(extra).map(Arc::new)
}

fn client(extra: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    // Certificates of the host that cannot be read or parsed are skipped.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra {
        let extra_roots =
            certificates(path).map_err(|source| TlsError::File { path: path.to_owned(), source })?;
        if roots.add_parsable_certificates(extra_roots).0 == 0 {
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
