//! Runs of the simulator: random seeds for some time, one given seed, and planted faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shim::rundir::RunDir;

use super::fault::{Fault, Invariant};
use super::hazard::{self, Hazard, Hazards};
use super::life::Fixtures;
use super::plant::Plant;
use super::world::World;
use base::paths::RootChoice;
use host::watch::Watched;
use setup::config::Config;
use setup::roster::Roster;

/// Number of steps of one world. A longer one has more rows to check, and finds no more.
const STEPS: u64 = 12_000;
/// Default time for random seeds, in seconds.
const SECONDS: u64 = 10;
/// Number of steps in which a planted fault must be found. Most seeds show it within one world of 3500 steps. A fault
/// that needs a rare accident gets some thirty seeds, so that a change of all histories does not hide it.
const PLANTED: u64 = 100_000;

/// Objects made once for all worlds of a test, with their directory.
struct Bed {
    fixtures: Arc<Fixtures>,
    _directory: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Bed {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let lanes = directory.path().join("lanes.d");
        std::fs::create_dir(&lanes).unwrap();
        for lane in &super::people::PROFILES[..3] {
            std::fs::write(lanes.join(format!("{lane}.toml")), "argv = [\"agent\"]\n").unwrap();
        }
        let choice = RootChoice { root: Some(directory.path().into()), ..RootChoice::default() };
        let root = choice.resolve(|_| None).unwrap();
        let silent = RunDir::open(directory.path()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let entered = runtime.enter();
        let own = i32::try_from(std::process::id()).unwrap();
        let process = Arc::new(Watched::open(own).unwrap());
        drop(entered);
        let roster = Arc::new(Roster::load(&root));
        let accounts = roster.accounts(&Config::default());
        let fixtures = Arc::new(Fixtures { roster, accounts, silent, process });
        Bed { fixtures, _directory: directory, _runtime: runtime }
    }

    /// Runs a world for at most this many steps. Returns the world, and the fault that ended it.
    fn run(
        &self,
        seed: u64,
        steps: u64,
        (plant, hazards): (Option<Plant>, Hazards),
    ) -> (World, Option<Fault>) {
        let mut world = World::new(seed, plant, hazards, Arc::clone(&self.fixtures));
        while world.history.steps < steps {
            if let Some(fault) = guarded(|| world.step()) {
                return (world, Some(fault));
            }
        }
        let fault = guarded(|| world.end());
        (world, fault)
    }
}

/// Returns the hazards that a history needs for the same fault.
fn needed(bed: &Bed, seed: u64, steps: u64, broken: Invariant) -> Hazards {
    let mut left = hazard::all();
    for hazard in Hazard::ALL {
        let mut fewer = left.clone();
        fewer.remove(&hazard);
        let (_, fault) = bed.run(seed, steps, (None, fewer.clone()));
        if fault.is_some_and(|fault| fault.broken == broken) {
            left = fewer;
        }
    }
    left
}

/// Runs a step, and turns a panic into a fault.
fn guarded(step: impl FnOnce() -> Result<(), Fault>) -> Option<Fault> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(Fault::new(Invariant::NoSurprise, format!("a panic: {}", text.unwrap_or_default())))
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Describes a fault, with the command that reproduces it.
fn shown(bed: &Bed, seed: u64, (world, fault): (&World, &Fault)) -> String {
    let steps = world.history.steps;
    let needed = needed(bed, seed, steps, fault.broken);
    format!(
        "{:?} does not hold at step {steps} of seed {seed}: {}\n\nThe last steps:\n{}\nThe same with \
         nothing but {needed:?} going wrong breaks it as well.\nTo see it again:\n  \
         SIMULATION_SEED={seed} SIMULATION_STEPS={steps} cargo nextest run -p daemon simulated_days",
        fault.broken, fault.seen, world.history
    )
}

/// Returns the CPU time of this process, in seconds.
fn processor_seconds() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let nanoseconds = i32::try_from(spent.tv_nsec).unwrap_or_default();
    f64::from(i32::try_from(spent.tv_sec).unwrap_or(i32::MAX)) + f64::from(nanoseconds) / 1e9
}

#[test]
fn simulated_days_keep_every_invariant() {
    let bed = Bed::new();
    let steps = number("SIMULATION_STEPS").unwrap_or(STEPS);
    let named = number("SIMULATION_SEED");
    let limit = Duration::from_secs(number("SIMULATION_SECONDS").unwrap_or(SECONDS));
    let first = named.unwrap_or_else(rand::random);
    println!("the first seed is {first}");
    let (began, mut seed, mut done) = (Instant::now(), first, 0);
    loop {
        let (world, fault) = bed.run(seed, steps, (None, hazard::all()));
        done += world.history.steps;
        if let Some(fault) = fault {
            panic!("{}", shown(&bed, seed, (&world, &fault)));
        }
        if named.is_some() || began.elapsed() >= limit {
            break;
        }
        seed = seed.wrapping_add(1);
    }
    let steps = f64::from(u32::try_from(done).unwrap_or(u32::MAX));
    let (passed, spent) = (began.elapsed().as_secs_f64(), processor_seconds());
    println!(
        "{done} steps in {passed:.0} s: {:.0} a minute, {:.0} in a minute of a processor; the last seed is {seed}",
        steps / passed * 60.0,
        steps / spent * 60.0
    );
}

#[test]
fn a_seed_is_one_history() {
    let bed = Bed::new();
    let run = || {
        let (world, fault) = bed.run(7, 2500, (None, hazard::all()));
        (world.history.to_string(), world.history.steps, fault)
    };
    let (one, two) = (run(), run());
    assert_eq!(one, two);
}

/// Tries seeds until the planted fault is found.
fn find(bed: &Bed, plant: Plant) -> Option<(u64, u64, Fault)> {
    let mut left = PLANTED;
    for seed in 1.. {
        let (world, fault) = bed.run(seed, left.min(3500), (Some(plant), hazard::all()));
        if let Some(fault) = fault {
            return Some((seed, world.history.steps, fault));
        }
        left = left.checked_sub(world.history.steps)?;
    }
    None
}

#[test]
fn each_fault_that_is_planted_is_found() {
    let bed = Bed::new();
    let mut missed = Vec::new();
    for (plant, breaks) in Plant::ALL {
        match find(&bed, plant) {
            Some((seed, steps, fault)) => {
                println!("{plant:?}: seed {seed}, step {steps}: {:?}: {}", fault.broken, fault.seen);
                if !breaks.contains(&fault.broken) {
                    missed.push(format!("{plant:?} was taken for {fault:?}"));
                }
            }
            None => missed.push(format!("{plant:?} was not found in {PLANTED} steps")),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
