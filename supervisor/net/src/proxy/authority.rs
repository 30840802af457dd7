//! Certificate authority of one run. It certifies the hosts of the run's brokers, and no other host, to the worker.
//!
//! A program that cannot be given the address of a broker contacts the host itself, through a tunnel of the proxy. The
//! proxy terminates the TLS of such a tunnel with a certificate of this authority, so that the broker can add its key. The
//! run gets the certificate of the authority. The key of the authority stays in the run directory, which no worker can
//! access, so that the next daemon can serve the same run. Other runs do not trust the authority.
//!
//! See decision 0194.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::RunId;
use policies::{Host, Policy, Target};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use shim::rundir::write_json;

/// File in the run directory.
const FILE: &str = "authority.json";

/// Reason why no certificate can be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("failed to make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("failed to use a certificate: {0}")]
    Protocol(#[from] rustls::Error),
    #[error("failed to keep the key of the run's authority: {0}")]
    Kept(#[from] io::Error),
    #[error("the key of the run's authority is damaged")]
    Damaged,
}

/// Stored form of the authority, from which every daemon of the run makes the same issuer.
#[derive(Serialize, Deserialize)]
struct StoredAuthority {
    /// Common name, which the certificates name as their issuer.
    name: String,
    /// Private key: PKCS 8 in base64.
    key: String,
}

/// Authority of a run, with the certificates that it has issued, by host and port.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    made: Mutex<HashMap<Target, Arc<ServerConfig>>>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes the authority of a run and stores its key in the run directory. Returns its certificate, which limits the
    /// authority to the hosts of the policy's brokers.
    pub fn make(policy: &Policy, run: RunId, dir: &Path) -> Result<CertificateDer<'static>, AuthorityError> {
        let name = format!("supervisor: run {run}, {}", uuid::Uuid::new_v4());
        let key = KeyPair::generate()?;
        let record = StoredAuthority { name: name.clone(), key: STANDARD.encode(key.serialized_der()) };
        write_json(dir, FILE, &record)?;
        let mut params = of_name(&name)?;
        // A constraint applies only to names of its own form (RFC 5280, section 4.2.1.10), and a DNS name includes its
        // subdomains. `certify` gives certificates for the brokers' hosts alone.
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: policy
                .broker
                .iter()
                .map(|broker| match &broker.host.target().host {
                    Host::Name(name) => GeneralSubtree::DnsName(name.clone()),
                    Host::Address(address) => {
                        GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(*address, whole(*address)))
                    }
                })
                .collect(),
            excluded_subtrees: Vec::new(),
        });
        Ok(params.self_signed(&key)?.der().clone())
    }

    /// Reads the authority of a run from its directory; none if the run has none.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, AuthorityError> {
        let bytes = match std::fs::read(dir.join(FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let record: StoredAuthority = serde_json::from_slice(&bytes).map_err(|_| AuthorityError::Damaged)?;
        let key = STANDARD.decode(record.key).map_err(|_| AuthorityError::Damaged)?;
        let key = KeyPair::try_from(key)?;
        let issuer = Issuer::new(of_name(&record.name)?, key);
        Ok(Some(Authority { issuer, made: Mutex::default() }))
    }

    /// Returns the server configuration that terminates a tunnel to a host, with a certificate for that host only. It offers
    /// HTTP/1.1 only. The caller makes sure that the host is a broker's.
    pub(super) fn certify(&self, target: &Target) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(target) {
            return Ok(Arc::clone(config));
        }
        let mut params = CertificateParams::new(vec![target.host.to_string()])?;
        params.distinguished_name = DistinguishedName::new();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        made.insert(target.clone(), Arc::clone(&config));
        Ok(config)
    }
}

/// Returns the prefix length of a single address.
fn whole(address: std::net::IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Makes the parameters of an authority that cannot certify further authorities (path length 0).
fn of_name(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// Formats certificates as a PEM file.
pub fn pem<'a>(certificates: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = STANDARD.encode(certificate);
        while !rest.is_empty() {
            let next = rest.split_off(rest.len().min(64));
            text.push_str(&rest);
            text.push('\n');
            rest = next;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

    use super::*;

    fn policy() -> Policy {
        let text = "version = 1\n[network]\nmode = 'proxy'\n[[broker]]\nhost = 'api.example'\nheader = 'a'\nsecret = 'k'\n\
                    [[broker]]\nhost = '10.0.0.1:8443'\nheader = 'a'\nsecret = 'k'";
        Policy::from_toml(text, Path::new("p.toml")).unwrap()
    }

    fn target(text: &str) -> Target {
        Target::parse(text, Some(443)).unwrap()
    }

    /// Returns the certificate that a client gets, and the protocol that both ends agree on.
    fn shown(
        config: &Arc<ServerConfig>,
        offered: &[&[u8]],
    ) -> Result<(CertificateDer<'static>, Vec<u8>), rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        client.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        client.dangerous().set_certificate_verifier(Arc::new(Anything));
        let name = ServerName::try_from("api.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::clone(config)).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        let shown = client.peer_certificates().unwrap()[0].clone().into_owned();
        Ok((shown, client.alpn_protocol().unwrap_or_default().to_vec()))
    }

    /// Client that verifies nothing.
    #[derive(Debug)]
    struct Anything;

    impl rustls::client::danger::ServerCertVerifier for Anything {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
            Ok(rustls::client::danger::ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
        }
    }

    fn trusts(root: &CertificateDer<'static>, shown: &CertificateDer<'_>, name: &str) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now()).is_ok()
    }

    #[test]
    fn a_host_of_a_broker_is_certified_for_this_run_alone_and_by_the_next_daemon_too() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = Authority::make(&policy(), RunId(1), one.path()).unwrap();
        let other = Authority::make(&policy(), RunId(1), two.path()).unwrap();
        let mode = std::fs::metadata(one.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for _daemon in 0..2 {
            let authority = Authority::read(one.path()).unwrap().unwrap();
            let config = authority.certify(&target("api.example")).unwrap();
            let (certificate, _) = shown(&config, &[b"http/1.1"]).unwrap();
            assert!(trusts(&root, &certificate, "api.example"));
            assert!(!trusts(&root, &certificate, "www.api.example"), "for that host alone");
            assert!(!trusts(&other, &certificate, "api.example"), "of that run alone");
            let address = authority.certify(&target("10.0.0.1:8443")).unwrap();
            assert!(trusts(&root, &shown(&address, &[]).unwrap().0, "10.0.0.1"));
            // Even a holder of the key cannot certify a host without a broker.
            let beyond = authority.certify(&target("other.example")).unwrap();
            assert!(!trusts(&root, &shown(&beyond, &[]).unwrap().0, "other.example"));
        }
    }

    #[test]
    fn the_one_protocol_inside_is_the_one_that_is_read() {
        let dir = tempfile::tempdir().unwrap();
        Authority::make(&policy(), RunId(1), dir.path()).unwrap();
        let authority = Authority::read(dir.path()).unwrap().unwrap();
        let config = authority.certify(&target("api.example")).unwrap();
        assert_eq!(shown(&config, &[b"h2", b"http/1.1"]).unwrap().1, b"http/1.1");
        assert!(shown(&config, &[b"h2"]).is_err(), "nothing in common");
    }

    #[test]
    fn a_run_without_an_authority_has_none_and_a_damaged_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Authority::read(dir.path()).unwrap().is_none());
        for damaged in ["", "{}", r#"{"name": "a", "key": "%"}"#, r#"{"name": "a", "key": "AAAA"}"#] {
            std::fs::write(dir.path().join(FILE), damaged).unwrap();
            assert!(Authority::read(dir.path()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn certificates_are_written_in_lines_that_programs_read() {
        use rustls::pki_types::pem::PemObject as _;
        let dir = tempfile::tempdir().unwrap();
        let root = Authority::make(&policy(), RunId(1), dir.path()).unwrap();
        let text = pem([&root, &root]);
        assert!(text.lines().all(|line| line.len() <= 64), "{text}");
        let read: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, [root.clone(), root]);
    }
}
