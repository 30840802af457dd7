//! A process that survives SIGKILL keeps its claim, is shown, and is never joined by a second run; its run ends when it
//! has ended.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Fleet, User, mount_fuse};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, outcomes, records};
use crate::survivors::start_without_cgroups;

/// The header of a request: length, opcode and number, and more (`linux/fuse.h`, `struct fuse_in_header`).
const HEADER: usize = 40;
/// `FUSE_INIT`, the request without whose answer the kernel sends no other.
const INIT: u32 = 26;
/// `struct fuse_init_out` without the header of the answer.
const INIT_ANSWER: usize = 64;

/// A mount whose server takes each request and answers none. Who has asked waits in state D, and SIGKILL does not end it.
struct Hung {
    at: PathBuf,
    /// True if a process waits for a reply.
    is_met: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Hung {
    /// Mounts it, where this host allows that.
    fn over(at: &Path) -> Option<Self> {
        let device = mount_fuse(at, "a process that cannot be killed")?;
        let is_met = Arc::new(AtomicBool::new(false));
        let met = Arc::clone(&is_met);
        let server = std::thread::spawn(move || take_requests(device, &met));
        Some(Hung { at: at.to_owned(), is_met, server: Some(server) })
    }

    /// Waits until somebody waits for an answer.
    #[track_caller]
    fn wait_for_somebody(&self) {
        let until = Instant::now() + Duration::from_mins(1);
        while !self.is_met.load(Ordering::Acquire) {
            assert!(Instant::now() < until, "nobody looks into the mount");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends all that waits for it: the connection is aborted.
    fn let_go(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        let Some(server) = self.server.take() else { return };
        // By force: that is what aborts the connection, also while a process is inside (fuse(4), "umount").
        umount2(&self.at, MntFlags::MNT_FORCE).ok();
        umount2(&self.at, MntFlags::MNT_DETACH).ok();
        server.join().unwrap();
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        self.abort();
    }
}

/// Answers the first request, and no other, until the connection is aborted.
fn take_requests(mut device: File, met: &AtomicBool) {
    let mut request = vec![0; 256 * 1024];
    while let Ok(length) = device.read(&mut request) {
        assert!(length >= HEADER, "the kernel sends whole requests");
        let opcode = u32::from_ne_bytes(request[4..8].try_into().unwrap());
        if opcode != INIT {
            met.store(true, Ordering::Release);
            continue;
        }
        let mut answer = Vec::with_capacity(16 + INIT_ANSWER);
        answer.extend(u32::try_from(16 + INIT_ANSWER).unwrap().to_ne_bytes());
        answer.extend(0_i32.to_ne_bytes());
        answer.extend(&request[8..16]);
        // The version, and the rest as the kernel takes it where nothing is asked for.
        answer.extend([7_u32, 31].map(u32::to_ne_bytes).concat());
        answer.resize(16 + INIT_ANSWER, 0);
        // The largest write.
        answer[36..40].copy_from_slice(&4096_u32.to_ne_bytes());
        device.write_all(&answer).unwrap();
    }
}

/// Returns the note of `status` about the only worker, once SIGKILL has not ended it.
#[track_caller]
fn shown_as_unkillable(fleet: &Fleet) -> String {
    fleet.eventually("status says that it is unkillable", || {
        let status = fleet.json(["status"]);
        let worker = status["workers"].as_array()?.iter().find(|worker| worker["phase"] == "unkillable")?;
        worker["note"].as_str().map(str::to_owned)
    })
}

fn events(fleet: &Fleet, task: &str) -> usize {
    let events = fleet.json(["events", "--task", task, "--kind", "unkillable"]);
    events["events"].as_array().unwrap().len()
}

/// The first run of a task looks into the mount; the next one does not.
fn script(journal: &Journal, hung: &Path) -> String {
    let look = format!("[ -e again ] || {{ touch again; cat '{}/x'; }}", hung.display());
    journal.own_script(&look)
}

fn begun(journal: &Journal, task: &str) -> usize {
    journal.lines().iter().filter(|line| line.task == task && line.what == "start").count()
}

#[test]
fn what_cannot_be_killed_keeps_its_claim_and_its_run_ends_when_it_has_ended() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let place = fleet.home().join("hung");
        fs::create_dir(&place).unwrap();
        let Some(hung) = Hung::over(&place) else { return };
        let journal = Journal::of(&fleet, 1, "grace = 1\n");
        let task = fleet.create("hangs", &script(&journal, &place), &["--policy", "unconfined"]);
        fleet.start();
        hung.wait_for_somebody();
        fleet.cli(["reclaim", &task]).ok();

        let note = shown_as_unkillable(&fleet);

        assert!(note.contains("(cat, state D)"), "{note}");
        assert_eq!(fleet.json(["status"])["daemon"]["taken"], 0, "it takes no slot");
        let shown = fleet.show(&task);
        assert_eq!(
            (&shown["task"]["status"], &shown["why"]["code"]),
            (&"running".into(), &"unkillable".into())
        );
        let found = fleet.json(["diagnostics", "--severity", "critical"]);
        assert_eq!(found[0]["diagnostics"][0]["kind"], "unkillable", "{found:#}");
        let status = fleet.cli(["status"]);
        assert!(status.code == 1 && status.stdout.contains("SIGKILL does not end 1 run"), "{status:?}");
        assert_eq!(events(&fleet, &task), 1);
        // It runs nothing any more: the only slot is free for others.
        let other = fleet.create("another", &journal.own_script("true"), &["--policy", "unconfined"]);
        fleet.wait_for(&other, "done");
        // Nobody's word frees it.
        fleet.cli(["reclaim", &task]).ok();
        fleet.restart();
        shown_as_unkillable(&fleet);
        let stopped = fleet.cli(["stop", "--now", "--wait"]);
        assert!(stopped.code == 1 && stopped.stdout.contains(&format!("It leaves {task}")), "{stopped:?}");
        assert!(fleet.reap_daemon().success());
        fleet.start();
        shown_as_unkillable(&fleet);
        assert_eq!((events(&fleet, &task), begun(&journal, &task)), (1, 1));
        assert_eq!(fleet.status_of(&task), "running");

        hung.let_go();

        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown).len(), 2, "{shown:#}");
        assert_eq!(begun(&journal, &task), 2);
        journal.audit(&fleet, &[other], Attempts::Many);
        invariants_hold(&fleet);
    }
}

#[test]
fn what_cannot_be_killed_keeps_its_claim_also_without_its_shim() {
    for start in [Fleet::start, start_without_cgroups] {
        let fleet = Fleet::offline();
        let place = fleet.home().join("hung");
        fs::create_dir(&place).unwrap();
        let Some(hung) = Hung::over(&place) else { return };
        let journal = Journal::of(&fleet, 1, "grace = 1\n");
        let task = fleet.create("hangs", &script(&journal, &place), &["--policy", "unconfined"]);
        start(&fleet);
        hung.wait_for_somebody();
        let (_, shim) = records(&fleet, "pid").pop().unwrap();

        kill(Pid::from_raw(pid_of(&shim)), Signal::SIGKILL).unwrap();

        let note = shown_as_unkillable(&fleet);
        assert!(note.contains("(cat, state D)"), "{note}");
        fleet.restart();
        shown_as_unkillable(&fleet);
        assert_eq!((events(&fleet, &task), begun(&journal, &task)), (1, 1));
        assert_eq!(fleet.status_of(&task), "running");

        hung.let_go();

        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown), ["lost", "completed"], "{shown:#}");
        journal.audit(&fleet, &[task], Attempts::Many);
        invariants_hold(&fleet);
    }
}

fn pid_of(record: &Value) -> i32 {
    record["pid"].as_i64().unwrap().try_into().unwrap()
}

/// A test that cannot find its stand-in for a hung disk would pass without having seen one.
#[test]
fn who_looks_into_the_hung_mount_outlives_sigkill() {
    let place = tempfile::tempdir().unwrap();
    let Some(hung) = Hung::over(place.path()) else { return };
    let mut looks = Command::new("cat").arg(place.path().join("x")).spawn().unwrap();
    hung.wait_for_somebody();
    looks.kill().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", looks.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next()
    };
    while state() != Some('D') {
        assert!(Instant::now() < until, "it waits in state {:?}", state());
        std::thread::yield_now();
    }
    hung.let_go();
    looks.wait().unwrap();
}
