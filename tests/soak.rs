//! Everything dies at random, for a given time, in four settings, and evidence that workers keep themselves decides what was lost, run twice,
//! left behind or recorded wrongly. `tests/run --soak 10m` starts it; it is no part of the suite.

mod chaos;
mod evidence;
mod scripts;
mod setting;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use self::chaos::{Chaos, Done};
use self::setting::Setting;
use crate::crash::Chance;
use crate::invariants::{Broken, BrokenInvariant};

/// Time for which a fleet is disturbed before it is checked.
const ROUND: Duration = Duration::from_secs(45);
/// Between two lines that say how far it has come.
const PROGRESS: Duration = Duration::from_secs(5);

/// Totals of a setting.
#[derive(Debug, Default)]
struct Sum {
    rounds: usize,
    tasks: usize,
    runs: usize,
    done: Done,
    faults: BTreeMap<Broken, usize>,
}

impl Sum {
    fn of(&self, broken: Broken) -> usize {
        self.faults.get(&broken).copied().unwrap_or(0)
    }

    fn take(&mut self, faults: &[BrokenInvariant]) {
        for fault in faults {
            println!("FAULT {fault}");
            *self.faults.entry(fault.broken).or_default() += 1;
        }
    }
}

/// The columns of the last table.
const COLUMNS: [&str; 12] = [
    "setting",
    "rounds",
    "tasks",
    "runs",
    "daemons",
    "shims",
    "workers",
    "others",
    "lost",
    "duplicated",
    "leftover",
    "wrong",
];

/// A row of the last table.
struct Row<'a>(&'a str, &'a Sum);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row(name, sum) = self;
        let Done { daemons, shims, workers, .. } = sum.done;
        let broken =
            [Broken::Lost, Broken::Duplicated, Broken::LeftOver, Broken::Wrong].map(|one| sum.of(one));
        write!(f, "{name:<24}")?;
        let counts = [sum.rounds, sum.tasks, sum.runs, daemons, shims, workers, sum.done.others()];
        for (count, column) in counts.into_iter().chain(broken).zip(&COLUMNS[1..]) {
            write!(f, "{count:>width$}", width = column.len() + 2)?;
        }
        Ok(())
    }
}

fn table(sums: &[(Setting, Sum)]) {
    let (first, rest) = COLUMNS.split_first().unwrap();
    println!("\n{first:<24}  {}", rest.join("  "));
    for (setting, sum) in sums {
        println!("{}", Row(setting.name(), sum));
    }
    println!(
        "daemons, shims, workers: how many were killed; others: full disks, lost sockets, slow clients, and shims that were stopped for a while"
    );
}

#[test]
#[ignore = "takes as long as its argument says: tests/run --soak 10m"]
fn nothing_is_lost_and_nothing_runs_twice() {
    let whole = Duration::from_secs(crate::crash::setting("SOAK_SECONDS", 60) as u64);
    let wanted = std::env::var("SOAK_SETTINGS").unwrap_or_default();
    let settings: Vec<Setting> = Setting::ALL
        .into_iter()
        .filter(|setting| wanted.is_empty() || wanted.split(',').any(|word| word == setting.name()))
        .filter(|setting| setting.is_possible())
        .collect();
    assert!(!settings.is_empty(), "no such setting here: {wanted}");
    let mut chance = Chance::new();
    let share = whole / u32::try_from(settings.len()).unwrap();
    let mut sums = Vec::new();
    for setting in settings {
        println!("== {}: {}", setting.name(), setting.described());
        let (mut sum, begin) = (Sum::default(), Instant::now());
        while begin.elapsed() < share {
            let left = share.saturating_sub(begin.elapsed());
            round(setting, left.min(ROUND), &mut chance, &mut sum);
        }
        sums.push((setting, sum));
    }
    table(&sums);
    let total: usize = sums.iter().flat_map(|(_, sum)| sum.faults.values()).sum();
    assert_eq!(total, 0, "every count of the last four columns has to be 0");
}

/// Disturbs one fleet for a while, lets it come to rest, and looks at everything.
fn round(setting: Setting, lasts: Duration, chance: &mut Chance, sum: &mut Sum) {
    let mut chaos = Chaos::begin(setting);
    let (begin, mut said) = (Instant::now(), Instant::now());
    while begin.elapsed() < lasts {
        chaos.step(chance);
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            println!("{:>5}s  {}: {}", begin.elapsed().as_secs(), setting.name(), chaos.progress());
        }
    }
    let seen = chaos.rest();
    sum.rounds += 1;
    sum.tasks += seen.tasks;
    sum.runs += seen.runs;
    sum.done.add(&seen.done);
    sum.take(&seen.faults);
    println!("       {}: round {} looked at, {} faults", setting.name(), sum.rounds, seen.faults.len());
}
