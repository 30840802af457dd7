//! Installs and removes the systemd units of the service, and reports its state: `supervisor service`.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::units::{MAIN, SOCKET, UnitFile, editor, files, is_own};
use crate::output::Output;
use base::environment;
use base::exit::Code;
use base::failure::Failure;
use host::service_manager::Manager;
use host::unix_user::user_by_uid;

/// Time of the first start of an installed service. In both cases, it also starts with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartMode {
    Now,
    Later,
}

/// Writes the units, makes the service manager read and enable them, and starts the service if asked to.
pub(super) fn install(manager: Manager, start: StartMode, output: Output) -> Result<u8, Failure> {
    require(manager, "install")?;
    if manager == Manager::System {
        require_own_program(&program()?)?;
    }
    let files = wanted(manager)?;
    for file in &files {
        refuse_foreign(manager, &file.path)?;
    }
    for file in &files {
        write(file)?;
        output.text(&format!("Wrote {}\n", file.path.display()))?;
    }
    systemctl(manager, &["daemon-reload"])?;
    match start {
        StartMode::Now => {
            systemctl(manager, &["enable", "--now", MAIN])?;
            output.text("Started; it starts with the host from now on. supervisor status shows it.\n")?;
        }
        StartMode::Later => {
            systemctl(manager, &["enable", MAIN])?;
            output.text(&format!(
                "It starts with the host from now on; start it now with: systemctl {} start supervisor\n",
                manager.option()
            ))?;
        }
    }
    if manager == Manager::User && !lingers() {
        output.text("It ends when you log out, unless you run: loginctl enable-linger\n")?;
    }
    Ok(0)
}

/// Prints the units that `install` would write.
pub(super) fn print(manager: Manager, output: Output) -> Result<u8, Failure> {
    for file in wanted(manager)? {
        output.text(&format!("# {}\n{}\n", file.path.display(), file.text))?;
    }
    Ok(0)
}

/// Stops the service and removes its units. Boards, logs and configuration are kept.
pub(super) fn uninstall(manager: Manager, output: Output) -> Result<u8, Failure> {
    require(manager, "uninstall")?;
    let there: Vec<UnitFile> = wanted(manager)?.into_iter().filter(|file| file.path.exists()).collect();
    if there.is_empty() {
        return Err(Failure::new(
            Code::NotFound,
            format!("{} is not installed", directory(manager)?.join(MAIN).display()),
        )
        .hint("a package's units are removed with the package"));
    }
    for file in &there {
        refuse_foreign(manager, &file.path)?;
    }
    // The socket is stopped first: otherwise the next command of a user would start the service again.
    let has_socket = there.iter().any(|file| file.path.ends_with(SOCKET));
    let units = has_socket.then_some(SOCKET).into_iter().chain([MAIN]);
    systemctl(manager, &["disable", "--now"].into_iter().chain(units).collect::<Vec<_>>())?;
    for file in &there {
        std::fs::remove_file(&file.path).map_err(|e| Failure::file("remove", &file.path, &e))?;
        output.text(&format!("Removed {}\n", file.path.display()))?;
    }
    systemctl(manager, &["daemon-reload"])?;
    output.text("Boards, logs and configuration are still there.\n")?;
    Ok(0)
}

/// Reports the state of the service. Returns exit code 3 if it is not active, as `systemctl is-active` does.
pub(super) fn status(manager: Manager, output: Output) -> Result<u8, Failure> {
    require_systemd(manager)?;
    let properties = format!("--property={}", KEYS.join(","));
    let shown = systemctl(manager, &["show", &properties, MAIN])?;
    let value = |key: &str| {
        let line = shown.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().to_owned()
    };
    let active = value("ActiveState") == "active";
    if output.json() {
        let object: serde_json::Map<String, serde_json::Value> =
            KEYS.iter().map(|key| ((*key).to_owned(), value(key).into())).collect();
        output.value(&object)?;
    } else if value("LoadState") == "not-found" {
        output.text("not installed; install it with: supervisor service install\n")?;
    } else {
        let pid = value("MainPID");
        let lines = [
            ("state", format!("{} ({})", value("ActiveState"), value("SubState"))),
            ("doing", value("StatusText")),
            ("pid", if pid == "0" { String::new() } else { pid }),
            ("restarts", value("NRestarts")),
            ("unit", format!("{} ({})", value("FragmentPath"), value("UnitFileState"))),
        ];
        let lines = lines.iter().filter(|(_, text)| !text.is_empty());
        for (name, text) in lines {
            output.text(&format!("{name:<9} {text}\n"))?;
        }
    }
    Ok(if active { 0 } else { NOT_ACTIVE })
}

/// Properties of the unit to show (`systemctl show`).
const KEYS: [&str; 8] = [
    "LoadState",
    "ActiveState",
    "SubState",
    "FragmentPath",
    "UnitFileState",
    "MainPID",
    "NRestarts",
    "StatusText",
];

/// Exit code of `systemctl is-active` for a service that is not active.
const NOT_ACTIVE: u8 = 3;

/// Returns the unit files that start this program.
fn wanted(manager: Manager) -> Result<Vec<UnitFile>, Failure> {
    Ok(files(manager, &program()?, &directory(manager)?))
}

/// Returns the path of this program.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::failed(format!("the path of this program cannot be found: {e}")))
}

/// Refuses a program that users other than root could replace, because the host's service runs it as root. Each
/// directory above the program is checked as well. A group with write access is trusted, as Debian trusts the group
/// `staff` with `/usr/local`.
fn require_own_program(program: &Path) -> Result<(), Failure> {
    for place in program.ancestors() {
        let meta = std::fs::symlink_metadata(place).map_err(|e| Failure::file("look at", place, &e))?;
        if meta.uid() != 0 || meta.mode() & 0o002 != 0 {
            return Err(Failure::new(
                Code::NotPermitted,
                format!(
                    "the service would run {} as root, and others may change {}",
                    program.display(),
                    place.display()
                ),
            )
            .hint("copy it to /usr/local/bin with: install -m 755, and run it from there"));
        }
    }
    Ok(())
}

/// Returns the directory for units that no package installed (systemd.unit(5)).
fn directory(manager: Manager) -> Result<PathBuf, Failure> {
    match manager {
        Manager::System => Ok("/etc/systemd/system".into()),
        Manager::User => {
            let named =
                |name| environment::variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let config = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")));
            config.map(|config| config.join("systemd/user")).ok_or_else(|| {
                Failure::usage("no home directory to keep the unit in: HOME is not set").hint("set HOME")
            })
        }
    }
}

/// Refuses the host's service to users other than root, and hosts without systemd. `verb` names the action in the error.
fn require(manager: Manager, verb: &str) -> Result<(), Failure> {
    let root = nix::unistd::geteuid().is_root();
    if manager == Manager::System && !root {
        return Err(Failure::new(Code::NotPermitted, format!("the host's service needs root to {verb}"))
            .hint(format!(
                "run: sudo supervisor service {verb}; or for yourself alone: supervisor --user service {verb}"
            )));
    }
    require_systemd(manager)
}

fn require_systemd(manager: Manager) -> Result<(), Failure> {
    let runs = match manager {
        Manager::System => Path::new("/run/systemd/system").is_dir(),
        Manager::User => environment::variable("XDG_RUNTIME_DIR")
            .is_some_and(|dir| PathBuf::from(dir).join("systemd").is_dir()),
    };
    if runs {
        return Ok(());
    }
    let (which, hint) = match manager {
        Manager::System => (
            "systemd",
            "run `supervisor daemon` under your own service manager; `supervisor service install --print` shows the units",
        ),
        Manager::User => (
            "the service manager of this user",
            "log in on the host itself (XDG_RUNTIME_DIR must be set), or run `supervisor daemon`; `supervisor service install --print` shows the units",
        ),
    };
    Err(Failure::failed(format!("{which} does not run here")).hint(hint))
}

/// Refuses to change a unit that a person or a package wrote.
fn refuse_foreign(manager: Manager, path: &Path) -> Result<(), Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) if is_own(&text) => Ok(()),
        Ok(_) => Err(Failure::new(
            Code::Conflict,
            format!("{} was not written by `supervisor service install`", path.display()),
        )
        .hint(format!("move it away first; settings of your own belong into: {}", editor(manager)))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Failure::file("read", path, &e)),
    }
}

fn write(file: &UnitFile) -> Result<(), Failure> {
    if let Some(dir) = file.path.parent() {
        std::fs::create_dir_all(dir).map_err(|e| Failure::file("make the directory", dir, &e))?;
    }
    std::fs::write(&file.path, &file.text).map_err(|e| Failure::file("write", &file.path, &e))
}

/// Returns true if the services of this user continue after the last logout (`loginctl(1)`).
fn lingers() -> bool {
    let user = user_by_uid(nix::unistd::geteuid());
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user.name).exists())
}

/// Runs systemctl and returns what it printed.
fn systemctl(manager: Manager, arguments: &[&str]) -> Result<String, Failure> {
    let line = format!("systemctl {} {}", manager.option(), arguments.join(" "));
    let output = Command::new("systemctl").arg(manager.option()).args(arguments).output().map_err(|e| {
        Failure::failed(format!("systemctl cannot be run: {e}")).hint("install systemd, or set PATH")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("`{line}` failed: {}", message.trim()))
        .hint("journalctl -u supervisor may say more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_others_may_replace_is_not_run_as_root() {
        // A temporary directory is anybody's, whatever lies in it.
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let program = dir.path().join("supervisor");
        std::fs::write(&program, "").unwrap();
        let failure = require_own_program(&program).unwrap_err();
        assert_eq!(failure.code, Code::NotPermitted);
        assert!(failure.hint.unwrap().contains("/usr/local/bin"));
        require_own_program(Path::new("/usr/bin")).unwrap();
    }
}
