//! In a container: a user namespace with 65,536 ids, in which root has no id that the host's root has.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Child, Command, Stdio};

use crate::harness::{BINARY, Fleet, Output, User, skip};

/// The host's id of the container's root.
const FIRST: u32 = 300_000;

/// A user namespace with a mount namespace of its own, held by a process that sleeps in them.
struct Container(Child);

impl Container {
    /// Makes one as container engines do: the ids are mapped from outside. None where the host permits none.
    fn make(fleet: &Fleet) -> Option<Self> {
        let mut holder = Command::new("unshare");
        holder.args(["--user", "--mount", "--", "sleep", "600"]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut container = Container(holder.spawn().ok()?);
        let pid = container.0.id();
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
        let made = fleet.eventually("the namespace is made, or refused", || {
            let ended = container.0.try_wait().unwrap().is_some();
            let sleeps = fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
            let own = sleeps && namespace(&pid.to_string()) != namespace("self");
            (ended || own).then_some(own)
        });
        let map = |kind: &str| fs::write(format!("/proc/{pid}/{kind}_map"), format!("0 {FIRST} 65536\n"));
        (made && map("uid").is_ok() && map("gid").is_ok()).then_some(container)
    }

    /// A command of the container's root.
    fn command(&self, fleet: &Fleet, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--setuid", "0", "--setgid", "0", "--target"]);
        command.arg(self.0.id().to_string()).args(["--", "sh", "-c", script]);
        fleet.dress(&mut command);
        command.current_dir("/");
        command
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_container_with_65536_ids_gives_its_workers_uids_that_it_has() {
    if User::current() != User::Root {
        return skip("a container with 65536 ids: needs root");
    }
    let fleet = Fleet::offline();
    let Some(container) = Container::make(&fleet) else {
        return skip("a container with 65536 ids: this host makes no user namespaces");
    };
    let root = fleet.home().join("container");
    fs::create_dir(&root).unwrap();
    // The build directory may be closed to the container.
    let binary = fleet.home().join("supervisor");
    fs::copy(BINARY, &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    // A container has a ledger of its own in its /var/lib, which this one shares with the host.
    let ledger = format!("[worker]\nuid_ledger = {:?}\n", root.join("uids"));
    fs::write(root.join("supervisor.toml"), ledger).unwrap();
    chown(&root, Some(FIRST), Some(FIRST)).unwrap();
    let supervisor = format!("{} --root {}", binary.display(), root.display());
    let script = format!(
        "exec 2>&1; {supervisor} create x --assignee shell --body 'id -u' && {supervisor} dispatch --json && \
         {supervisor} doctor && {supervisor} list"
    );
    let output = Output::of(&mut container.command(&fleet, &script));
    assert!(output.stdout.contains("\"completed\""), "{}{}", output.stdout, output.stderr);
    let given = fs::read_to_string(root.join("uids/ranges.json")).unwrap();
    let given: serde_json::Value = serde_json::from_str(&given).unwrap();
    let range = &given["ranges"][0];
    let (first, last) = (range["first"].as_u64().unwrap(), range["last"].as_u64().unwrap());
    assert!(first >= 1000 && last < 65_536 && last - first >= 1024, "{given}");
}
