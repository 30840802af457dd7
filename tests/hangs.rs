//! A daemon that is stopped or hangs: commands name it and the way out, and do not wait for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{Fleet, User, skip};

#[test]
fn a_stopped_daemon_is_named_and_no_command_waits_for_it() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let pid = fleet.daemon_pid();
        fleet.signal(Signal::SIGSTOP);
        let start = Instant::now();
        for args in [&["status"][..], &["create", "x"], &["watch"]] {
            fleet.cli(args).refused(75, &format!("kill -CONT {pid}"));
        }
        assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
        let doctor = fleet.cli(["doctor"]);
        assert!(doctor.code == 1 && doctor.stdout.contains(&format!("kill -CONT {pid}")), "{doctor:?}");
        fleet.signal(Signal::SIGCONT);
        fleet.cli(["status"]).ok();
    }
}

/// A cgroup in which nothing goes on, for as long as this is there.
struct Frozen(PathBuf);

impl Frozen {
    /// Freezes a process; none where this host lets nobody do it.
    fn of(pid: i32) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let group = Frozen(Path::new(mount).join(format!("frozen-{pid}")));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join("cgroup.procs"), pid.to_string()).ok()?;
        fs::write(group.0.join("cgroup.freeze"), "1").ok()?;
        Some(group)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(fs::write(self.0.join("cgroup.freeze"), "0"));
        let procs = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in procs.lines() {
            drop(fs::write(self.0.parent().unwrap().join("cgroup.procs"), pid));
        }
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn a_daemon_that_hangs_is_named_by_status_with_the_way_out() {
    let fleet = Fleet::boot();
    let pid = fleet.daemon_pid();
    let task = fleet.create("waits for its file", "exec sleep 600", &[]);
    let file = fleet.home().join("report.md");
    fs::write(&file, "a report").unwrap();
    let Some(frozen) = Frozen::of(pid) else { return skip("a daemon that hangs: needs root and cgroup2") };

    // A long answer is waited for only as long as the daemon gives any.
    fleet.cli(["attach", &task, file.to_str().unwrap()]).refused(75, "has not answered within 30s");
    let refused = fleet.cli(["status"]).refused(75, &format!("`kill -9 {pid}` ends it"));

    drop(frozen);
    assert!(refused.stderr.contains("has not answered within 10s"), "{}", refused.stderr);
    fleet.cli(["status"]).ok();
}
