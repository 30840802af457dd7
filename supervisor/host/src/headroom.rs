//! Measures the available memory, the load and the resource pressure of the host.

use std::sync::OnceLock;

use procfs::{Current as _, CurrentSI as _};

/// Measurements of the host at one time. A value that cannot be read is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Memory available to new programs without swapping (`MemAvailable`), in bytes.
    pub available: Option<u64>,
    /// Load average of the last minute per processor.
    pub load: Option<f64>,
    /// Resource pressure: percentage of the last ten seconds in which at least one process waited for the resource.
    pub pressure: Pressure,
}

/// Values in `/proc/pressure`, in percent. Each is none on a host that does not account for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    pub memory: Option<f64>,
    pub cpu: Option<f64>,
    pub io: Option<f64>,
}

impl Pressure {
    /// Reads the pressure. A kernel built without `CONFIG_PSI`, or booted with `psi=0`, has none.
    fn read() -> Self {
        let memory = procfs::MemoryPressure::current().ok().map(|pressure| pressure.some);
        let cpu = procfs::CpuPressure::current().ok().map(|pressure| pressure.some);
        let io = procfs::IoPressure::current().ok().map(|pressure| pressure.some);
        let [memory, cpu, io] = [memory, cpu, io].map(|some| some.map(|some| f64::from(some.avg10)));
        Pressure { memory, cpu, io }
    }
}

/// Function that measures the host. Tests replace it.
pub type Gauge = fn() -> Reading;

/// Measures the host. A value that cannot be read is none.
pub fn read() -> Reading {
    let available = procfs::Meminfo::current().ok().and_then(|memory| memory.mem_available);
    let load = procfs::LoadAverage::current().ok().map(|load| f64::from(load.one) / processors());
    Reading { available, load, pressure: Pressure::read() }
}

/// Returns the number of processors of the host, to which the load average refers. This process may be restricted to fewer.
fn processors() -> f64 {
    static ONLINE: OnceLock<f64> = OnceLock::new();
    *ONLINE.get_or_init(online)
}

fn online() -> f64 {
    let online = procfs::KernelStats::current().map_or(1, |stats| stats.cpu_time.len().max(1));
    f64::from(u32::try_from(online).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    #[test]
    fn a_thread_that_may_use_one_processor_sees_the_load_of_the_host_as_every_other() {
        let all = super::processors();
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let mut one = CpuSet::new();
        let first = (0..CpuSet::count()).find(|cpu| own.is_set(*cpu).unwrap_or(false)).unwrap();
        one.set(first).unwrap();
        // The affinity of this thread alone.
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        assert!((super::online() - all).abs() < 0.5, "{} and {all}", super::online());
    }

    #[test]
    fn the_host_can_be_measured() {
        let reading = super::read();
        assert!(reading.available.is_some_and(|bytes| bytes > 0), "{reading:?}");
        assert!(reading.load.is_some_and(|load| load >= 0.0), "{reading:?}");
        let pressure = reading.pressure;
        for (name, read) in [("memory", pressure.memory), ("cpu", pressure.cpu), ("io", pressure.io)] {
            let has_it = std::fs::read_to_string(format!("/proc/pressure/{name}")).is_ok();
            assert_eq!(read.is_some(), has_it, "{name}: {reading:?}");
            assert!(read.is_none_or(|share| (0.0..=100.0).contains(&share)), "{name}: {reading:?}");
        }
    }
}
