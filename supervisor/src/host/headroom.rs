//! How much memory the host has left, and how loaded it is.

use procfs::Current as _;

/// The host at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Memory that new programs can have without swapping (`MemAvailable`), in bytes.
    pub(crate) available: Option<u64>,
    /// The load average of the last minute for each processor.
    pub(crate) load: Option<f64>,
}

/// How the host is measured.
pub(crate) type Gauge = fn() -> Reading;

/// Measures the host. What cannot be read is none.
pub(crate) fn read() -> Reading {
    let available = procfs::Meminfo::current().ok().and_then(|memory| memory.mem_available);
    let load = procfs::LoadAverage::current().ok().map(|load| f64::from(load.one) / processors());
    Reading { available, load }
}

fn processors() -> f64 {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_host_can_be_measured() {
        let reading = super::read();
        assert!(reading.available.is_some_and(|bytes| bytes > 0), "{reading:?}");
        assert!(reading.load.is_some_and(|load| load >= 0.0), "{reading:?}");
    }
}
