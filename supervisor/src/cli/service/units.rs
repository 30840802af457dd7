//! Unit files for `service install`: the files of `systemd/`, with the path of the program on this host.

use std::path::{Path, PathBuf};

use host::service_manager::Manager;

/// Beginning of the first line of an installed file. A file without it was written by another program or a person.
const MARK: &str = "# Written by `supervisor service install`, which replaces it; settings of your own: ";

/// Returns the command with which a person adds settings to the unit.
pub(super) fn editor(manager: Manager) -> &'static str {
    match manager {
        Manager::System => "systemctl edit supervisor",
        Manager::User => "systemctl --user edit supervisor",
    }
}

/// Texts of the units of the host's service, by name.
const SYSTEM: [(&str, &str); 3] = [
    ("supervisor.service", include_str!("../../../../systemd/supervisor.service")),
    ("supervisor-stop.service", include_str!("../../../../systemd/supervisor-stop.service")),
    (SOCKET, include_str!("../../../../systemd/supervisor.socket")),
];
/// Texts of the units of a user's service, by name.
const USER: [(&str, &str); 3] = [
    ("supervisor.service", include_str!("../../../../systemd/user/supervisor.service")),
    ("supervisor-stop.service", include_str!("../../../../systemd/user/supervisor-stop.service")),
    (SOCKET, include_str!("../../../../systemd/user/supervisor.socket")),
];

/// Name of the unit that runs the daemon.
pub(super) const MAIN: &str = "supervisor.service";

/// Name of the unit with which systemd listens on the operator's socket. A person enables it.
pub(super) const SOCKET: &str = "supervisor.socket";

/// Unit file to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Returns the unit files of a service that runs `program`, with their paths in the directory `dir`.
pub(super) fn files(manager: Manager, program: &Path, dir: &Path) -> Vec<UnitFile> {
    let (units, shipped) = match manager {
        Manager::System => (SYSTEM, "/usr/local/bin/supervisor"),
        Manager::User => (USER, "%h/.local/bin/supervisor"),
    };
    let program = escaped(program);
    let file = |(name, text): (&str, &str)| UnitFile {
        path: dir.join(name),
        text: format!("{MARK}{}\n{}", editor(manager), text.replace(shipped, &program)),
    };
    units.into_iter().map(file).collect()
}

/// Returns true if this program wrote a file.
pub(super) fn is_own(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Escapes a path for a command line in a unit, where `%` begins a specifier, `$` a variable, and a space separates
/// words (systemd.service(5), "Command lines").
fn escaped(program: &Path) -> String {
    let text = program.display().to_string().replace('%', "%%").replace('$', "$$");
    if text.contains([' ', '\t', '"', '\\', '\'', ';']) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_unit_is_the_installed_program() {
        for (manager, option) in [(Manager::System, "--system"), (Manager::User, "--user")] {
            for file in files(manager, Path::new("/opt/supervisor/bin/supervisor"), Path::new("/units")) {
                assert!(is_own(&file.text));
                let first = file.text.lines().next().unwrap();
                assert_eq!(first.contains("systemctl --user edit"), manager == Manager::User, "{first}");
                let commands =
                    file.text.lines().filter(|line| line.starts_with("Exec") && line.contains("supervisor"));
                for command in commands {
                    let (_, command) = command.split_once('=').unwrap();
                    let command = command.trim_start_matches('-');
                    assert!(command.starts_with("/opt/supervisor/bin/supervisor "), "{command}");
                    assert!(command.contains(option) || command.ends_with("__handback"), "{command}");
                }
            }
        }
        assert!(!is_own("[Unit]\nDescription=a unit of a person's own\n"));
    }

    #[test]
    fn what_a_unit_would_read_otherwise_is_escaped() {
        assert_eq!(escaped(Path::new("/opt/a b/100%/su$er")), "\"/opt/a b/100%%/su$$er\"");
        assert_eq!(escaped(Path::new("/usr/bin/supervisor")), "/usr/bin/supervisor");
    }
}
