//! A month of ticks goes by for a daemon whose calendar is moved on, and which is killed at random all the while: each tick is made once.

mod accounts;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::crash::Chance;
use crate::harness::{Fleet, skip};
use crate::invariants::{in_lines, of_board};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// 2027-03-02 00:00 UTC. Berlin moves its clocks on on the 28th.
const FROM: i64 = 1_803_945_600;
/// First second at which Berlin is two hours ahead of UTC instead of one.
const SUMMER: i64 = 1_806_195_600;

/// Schedules: every five minutes, at the half hours of Berlin, on its workdays at nine, and two tasks twice a day.
const SCHEDULES: [(&str, &str); 4] = [
    ("five", "every = \"5m\"\n[task]\ntitle = \"five\"\n"),
    ("half", "cron = \"*/30 * * * *\"\ntime_zone = \"Europe/Berlin\"\n[task]\ntitle = \"half\"\n"),
    ("work", "cron = \"0 9 * * mon-fri\"\ntime_zone = \"Europe/Berlin\"\n[task]\ntitle = \"work\"\n"),
    (
        "pair",
        "every = \"12h\"\n[[tasks]]\nname = \"a\"\ntitle = \"a\"\n[[tasks]]\nname = \"b\"\nparents = [\"a\"]\ntitle = \"b\"\n",
    ),
];

/// The ticks of some days by schedule and second, with the number of tasks that each of them makes.
fn expected(days: i64) -> BTreeMap<(String, i64), usize> {
    let seconds = (FROM + 1)..=(FROM + days * DAY);
    let mut ticks = BTreeMap::new();
    for at in seconds.filter(|at| at % 300 == 0) {
        let local = at + if at < SUMMER { HOUR } else { 2 * HOUR };
        // The epoch began on a Thursday.
        let is_workday = (local.div_euclid(DAY) + 3) % 7 < 5;
        let due = [
            ("five", true, 1),
            ("half", at % 1800 == 0, 1),
            ("work", is_workday && local % DAY == 9 * HOUR, 1),
            ("pair", at % (12 * HOUR) == 0, 2),
        ];
        let due = due.into_iter().filter(|(_, is_due, _)| *is_due);
        ticks.extend(due.map(|(name, _, tasks)| ((name.to_owned(), at), tasks)));
    }
    ticks
}

/// A fleet whose daemons have a calendar of their own.
struct Calendar {
    fleet: Fleet,
    library: PathBuf,
    /// Seconds by which it is ahead of the host's clock.
    ahead: i64,
}

impl Calendar {
    /// None where the host has no C compiler.
    fn new() -> Option<Self> {
        let fleet = Fleet::offline();
        let (source, library) = (fleet.home().join("clock.c"), fleet.home().join("clock.so"));
        fs::write(&source, include_str!("month/clock.c")).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            skip("a calendar that is moved on: needs a C compiler");
            return None;
        }
        Some(Calendar { fleet, library, ahead: FROM - host() })
    }

    fn now(&self) -> i64 {
        host() + self.ahead
    }

    /// The command of a daemon that has this calendar; it becomes the daemon.
    fn daemon(&self) -> Command {
        let mut command = Command::new("env");
        command
            .arg(format!("LD_PRELOAD={}", self.library.display()))
            .arg(format!("CLOCK_AHEAD={}", self.ahead))
            .arg(self.fleet.binary())
            .arg("--root")
            .arg(self.fleet.root())
            .arg("daemon");
        command
    }

    /// Starts a daemon and does not wait for it.
    fn launch(&self) {
        let log = fs::File::options().create(true).append(true).open(self.fleet.log_file()).unwrap();
        let mut command = self.daemon();
        self.fleet.dress(&mut command);
        command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "warn");
        self.fleet.adopt(command.spawn().unwrap());
    }

    /// Starts a daemon and waits until nothing is due any more.
    fn catch_up(&self) {
        self.fleet.start_by(&mut self.daemon());
        self.fleet.eventually("all that is due is decided", || {
            let listed = self.fleet.json(["schedules", "list"]);
            let now = self.now();
            let is_later = |line: &Value| line["next"].as_i64().is_some_and(|next| next > now);
            listed.as_array().unwrap().iter().all(is_later).then_some(())
        });
    }
}

fn host() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Lets some days go by, during which the host sleeps for hours and the daemon is killed at random moments.
fn ticks_of(days: i64) {
    let Some(mut calendar) = Calendar::new() else { return };
    calendar.fleet.start_by(&mut calendar.daemon());
    for (name, text) in SCHEDULES {
        let file = format!("missed = \"all\"\noverlap = \"replace\"\n{text}");
        fs::write(calendar.fleet.home().join("one.toml"), file).unwrap();
        calendar.fleet.cli(["schedules", "add", name, "--file", "one.toml"]).ok();
    }
    calendar.fleet.kill_daemon();
    let mut chance = Chance::new();
    let (end, mut kills, mut caught_up) = (FROM + days * DAY, 0, FROM);
    while calendar.now() < end {
        let slept = 60 + i64::try_from(chance.below(16 * 3600)).unwrap();
        calendar.ahead += slept.min(end + 1 - calendar.now());
        // What is missed is made up to a thousand ticks, which are three and a half days of `five`.
        if calendar.now() - caught_up > 2 * DAY || chance.below(4) == 0 {
            calendar.catch_up();
            caught_up = calendar.now();
        } else {
            calendar.launch();
            std::thread::sleep(Duration::from_millis(20 + chance.below(500)));
        }
        calendar.fleet.kill_daemon();
        kills += 1;
    }
    calendar.catch_up();

    let listed = calendar.fleet.json(["list", "--archived"]);
    let mut made: BTreeMap<(String, i64), usize> = BTreeMap::new();
    for task in listed.as_array().unwrap() {
        let (name, tick) = (task["schedule"].as_str().unwrap(), task["tick"].as_i64().unwrap());
        *made.entry((name.to_owned(), tick)).or_default() += 1;
    }
    // The calendar goes on while this looks.
    made.retain(|(_, tick), _| *tick <= end);
    let expected = expected(days);
    println!("{} ticks, {kills} kills", made.len());
    let wrong: Vec<_> = expected.iter().filter(|(tick, tasks)| made.get(tick) != Some(tasks)).collect();
    assert!(wrong.is_empty(), "lost or doubled: {wrong:?}");
    assert_eq!(made.len(), expected.len(), "ticks that no schedule has");
    let faults = of_board(&calendar.fleet);
    assert!(faults.is_empty(), "{}", in_lines(&faults));
}

#[test]
fn a_thousand_ticks_of_three_days_are_each_made_once_over_daemons_that_are_killed() {
    assert!(expected(3).len() > 1000);
    ticks_of(3);
}

#[test]
#[ignore = "it takes minutes: tests/run --soak month"]
fn ten_thousand_ticks_of_a_month_are_each_made_once_over_daemons_that_are_killed() {
    assert!(expected(30).len() > 10_000);
    ticks_of(30);
}
