//! Tenants of the fleet: each has a directory with a ledger to add up, and a gate that holds its first attempt.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kernel::Tenant;

use super::directory::{self, Owners};
use base::failure::Failure;

pub(super) const COUNT: u32 = 50;

const GATE: &str = include_str!("scripts/gate.sh");
const LEDGER: &str = include_str!("scripts/ledger.sh");
const ASKS: &str = include_str!("scripts/asks.sh");
const CRASHES: &str = include_str!("scripts/crashes.sh");
const OVERRUNS: &str = include_str!("scripts/overruns.sh");
const STEALS: &str = include_str!("scripts/steals.sh");

/// Behaviour of a tenant's worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoRole {
    /// Adds up the ledger.
    Works,
    /// Asks a question first.
    Asks,
    /// Crashes at the first attempt.
    Crashes,
    /// Never ends by itself.
    Overruns,
    /// Tries to read others' files and memory.
    Steals,
}

#[derive(Debug)]
pub(super) struct DemoTenant {
    pub(super) number: u32,
    pub(super) name: Tenant,
    /// Behaviour of its worker.
    pub(super) role: DemoRole,
    pub(super) dir: PathBuf,
    /// Both ends of the named pipe at which the worker waits. Opening a pipe for writing alone waits for a reader
    /// (fifo(7)); with both ends open, the gate can be opened before the worker waits, and it closes with this process.
    gate: File,
}

impl DemoTenant {
    /// Makes the directory of a tenant, and gives it to its owner.
    pub(super) fn make(tenants: &Path, number: u32, owners: Owners) -> Result<Self, Failure> {
        let text = format!("tenant-{number:02}");
        let name = text.parse().map_err(|e| Failure::failed(format!("{text}: {e}")))?;
        let dir = tenants.join(text);
        let fail = |e: std::io::Error| Failure::file("make the tenant's directory", &dir, &e);
        base::paths::make_dir(&dir, 0o700)?;
        std::fs::write(dir.join("ledger.csv"), ledger(number)).map_err(fail)?;
        let pipe = dir.join("go");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)
            .map_err(|e| fail(e.into()))?;
        let gate = File::options().read(true).write(true).open(&pipe).map_err(fail)?;
        directory::give(&dir, owners.of_tenant(number))?;
        Ok(DemoTenant { number, name, role: role(number), dir, gate })
    }

    /// Lets its worker pass the gate.
    pub(super) fn open_gate(&self) -> Result<(), Failure> {
        (&self.gate).write_all(b"go\n").map_err(|e| Failure::file("open the gate of", &self.dir, &e))
    }

    /// Returns the sum of its ledger.
    pub(super) fn total(&self) -> u64 {
        entries(self.number).map(|(_, amount)| amount).sum()
    }

    /// Returns the script of its worker. `targets` replaces `{targets}` in the script of a worker that steals.
    pub(super) fn script(&self, targets: &str) -> String {
        match self.role {
            DemoRole::Works => format!("{GATE}{LEDGER}"),
            DemoRole::Asks => format!("{GATE}{ASKS}"),
            DemoRole::Crashes => format!("{GATE}{CRASHES}"),
            DemoRole::Steals => format!("{GATE}{}", STEALS.replace("{targets}", targets)),
            // No gate: the runtime limit of this worker counts from its start.
            DemoRole::Overruns => OVERRUNS.to_owned(),
        }
    }

    pub(super) fn title(&self) -> String {
        let what = match self.role {
            DemoRole::Works => "add up the ledger",
            DemoRole::Asks => "add up the ledger, after a question",
            DemoRole::Crashes => "add up the ledger, at the second attempt",
            DemoRole::Overruns => "never end",
            DemoRole::Steals => "read what belongs to others",
        };
        format!("{}: {what}", self.name)
    }
}

fn role(number: u32) -> DemoRole {
    match number {
        7 => DemoRole::Asks,
        13 => DemoRole::Crashes,
        34 => DemoRole::Steals,
        COUNT => DemoRole::Overruns,
        _ => DemoRole::Works,
    }
}

/// Returns a made-up ledger, different for each tenant.
fn entries(tenant: u32) -> impl Iterator<Item = (u64, u64)> {
    let tenant = u64::from(tenant);
    (1..=100).map(move |entry| (entry, (entry * entry + tenant * 37) % 1000))
}

fn ledger(tenant: u32) -> String {
    let lines: Vec<String> = entries(tenant).map(|(entry, amount)| format!("{entry},{amount}\n")).collect();
    lines.concat()
}

/// Quotes a word for the shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_odd_role_is_played_once_and_the_last_tenant_never_ends() {
        let roles: Vec<DemoRole> = (1..=COUNT).map(role).collect();
        for odd in [DemoRole::Asks, DemoRole::Crashes, DemoRole::Overruns, DemoRole::Steals] {
            assert_eq!(roles.iter().filter(|role| **role == odd).count(), 1, "{odd:?}");
        }
        assert_eq!(roles.last(), Some(&DemoRole::Overruns));
    }

    #[test]
    fn a_word_survives_the_shell() {
        for word in ["plain", "with space", "it's", "$HOME `x` \"y\""] {
            let out = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }
}
