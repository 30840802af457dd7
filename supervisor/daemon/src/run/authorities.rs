//! Certificate authorities that a run with brokers trusts: the host's, and the run's own for its brokers' hosts.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kernel::RunId;
use policies::Policy;

use super::fault::LaunchError;
use super::stage::Stage;
use host::remove::AUTHORITIES;
use net::proxy::{Authority, pem};

/// Variables in which programs look up their trusted authorities. `NODE_EXTRA_CA_CERTS` adds to the built-in ones; the
/// others replace them.
const VARIABLES: [&str; 5] =
    ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"];

/// Returns the path of the certificate file, beside the home of a run; none if the run needs no authority.
pub(super) fn file(policy: &Policy, home: &Path) -> Option<PathBuf> {
    (policy.has_proxy() && !policy.broker.is_empty()).then(|| home.with_file_name(AUTHORITIES))
}

/// Adds the variables that name the file. Values of the lane or the policy take precedence.
pub(super) fn name(env: &mut BTreeMap<String, String>, policy: &Policy, home: &Path) {
    let Some(file) = file(policy, home) else { return };
    for variable in VARIABLES {
        env.entry(variable.to_owned()).or_insert_with(|| file.display().to_string());
    }
}

/// Makes the authority of a run, whose key stays in the run directory, and writes the certificate file.
pub(super) fn make(policy: &Policy, run: RunId, dir: &Path, home: &Path) -> Result<(), LaunchError> {
    const STAGE: Stage = Stage::MakeAuthority;
    let Some(path) = file(policy, home) else { return Ok(()) };
    let authority = Authority::make(policy, run, dir).map_err(|e| LaunchError::system(STAGE, &e))?;
    // Unreadable certificates of the host are left out, and so not trusted.
    let of_host = rustls_native_certs::load_native_certs().certs;
    let text = pem(of_host.iter().chain([&authority]));
    let written = std::fs::write(&path, text);
    // The worker reads the file without owning it, so its mode must not depend on the daemon's umask.
    let readable = written.and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(0o644)));
    readable.map_err(|e| LaunchError::system(STAGE, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_set_is_kept_and_a_run_without_brokers_has_none() {
        let text = "version = 1\n[network]\nmode = 'proxy'\n";
        let without = Policy::from_toml(text, Path::new("p.toml")).unwrap();
        let broker = "[[broker]]\nhost = 'a'\nheader = 'b'\nsecret = 'c'\n";
        let with = Policy::from_toml(&format!("{text}{broker}"), Path::new("p.toml")).unwrap();
        let named = |policy: &Policy| {
            let mut env = BTreeMap::from([("SSL_CERT_FILE".to_owned(), "/own.pem".to_owned())]);
            name(&mut env, policy, Path::new("/run/home"));
            env
        };
        assert_eq!(named(&without).len(), 1);
        let env = named(&with);
        assert_eq!((env.len(), env["SSL_CERT_FILE"].as_str()), (5, "/own.pem"));
        assert_eq!(env["NODE_EXTRA_CA_CERTS"], "/run/authorities.pem");
    }
}
