//! Reads the configuration file, for commands, for a daemon at its start, and for a reload.
//!
//! A daemon that meets a defective file while runs need it goes on with the text that it could use last
//! (`last-good.toml`), or every later daemon would refuse the file and the workers would run without one. Without
//! runs it refuses to start.

use std::path::Path;

use super::definitions::{Defect, Subject};
use super::tenants::Tenants;
use super::{Config, settings};
use base::failure::Failure;
use base::paths::{Root, private_file};

impl Config {
    /// Reads the configuration for a program that cannot work without it.
    pub fn load(root: &Root) -> Result<Self, Failure> {
        let path = root.config_file();
        let text =
            settings::read_if_any(&path).map_err(|e| Failure::file("read", &path, &e))?.unwrap_or_default();
        let config = Config::parse(&text, &path).map_err(|defect| unusable(&defect))?;
        Ok(config.with_tenants(Tenants::load(root)))
    }

    /// Reads the configuration for a daemon. If the file is defective and there are runs to look after, the last good
    /// configuration is used, and the defect is returned with it. `is_ending` means that the daemon only ends runs;
    /// then the defaults suffice.
    pub fn load_for_daemon(root: &Root, is_ending: bool) -> Result<(Self, Option<Defect>), Failure> {
        let tenants = || Tenants::load(root);
        let defect = match read(root) {
            Ok((text, config)) => {
                remember(root, &text);
                return Ok((config.with_tenants(tenants()), None));
            }
            Err(defect) => defect,
        };
        match last_good(root).filter(|_| root.has_runs()) {
            Some(config) => Ok((config.with_tenants(tenants()), Some(defect.kept_last()))),
            None if is_ending => Ok((Config::default().with_tenants(tenants()), Some(defect))),
            None => Err(unusable(&defect)),
        }
    }

    /// Reads the configuration for a read-only command. An unusable file is replaced by the last good configuration
    /// or the defaults.
    pub fn to_read_with(root: &Root) -> (Self, Option<Defect>) {
        let (config, defect) = match read(root) {
            Ok((_, config)) => (config, None),
            Err(defect) => (last_good(root).unwrap_or_default(), Some(defect)),
        };
        (config.with_tenants(Tenants::load(root)), defect)
    }

    /// Reads the configuration again. On a defect the daemon keeps `before`.
    pub fn reload(root: &Root, before: &Config) -> Result<Self, Defect> {
        let (text, config) = read(root).map_err(Defect::kept_last)?;
        remember(root, &text);
        Ok(config.with_tenants(Tenants::reload(root, &before.tenants)))
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, Defect> {
        let config: Config =
            toml::from_str(text).map_err(|e| Defect::toml(Subject::Settings, path, text, &e))?;
        match config.unusable() {
            Some(why) => Err(Defect::new(Subject::Settings, path, why)),
            None => Ok(config),
        }
    }
}

fn read(root: &Root) -> Result<(String, Config), Defect> {
    let path = root.config_file();
    let text = settings::read_if_any(&path)
        .map_err(|e| Defect::unreadable(Subject::Settings, &path, &e))?
        .unwrap_or_default();
    let config = Config::parse(&text, &path)?;
    Ok((text, config))
}

/// Returns the last configuration that a daemon could use.
fn last_good(root: &Root) -> Option<Config> {
    let path = root.last_good_config();
    let text = settings::read_if_any(&path).ok().flatten()?;
    Config::parse(&text, &path).ok()
}

fn unusable(defect: &Defect) -> Failure {
    Failure::usage(defect.to_string())
        .hint("correct the file; `supervisor help docs/configuration.md` describes its keys")
}

/// Stores the text of a usable configuration. A later daemon that finds the file defective uses it; without it that
/// daemon cannot start.
fn remember(root: &Root, text: &str) {
    let path = root.last_good_config();
    if settings::read_if_any(&path).is_ok_and(|before| before.as_deref() == Some(text)) {
        return;
    }
    if let Err(error) = private_file::write(&path, text.as_bytes()) {
        tracing::warn!(path = %path.display(), %error, "configuration_not_kept");
    }
}
