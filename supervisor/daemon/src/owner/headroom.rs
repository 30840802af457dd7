//! Checks that the host has headroom for one more worker: the memory, load and pressure that the configuration demands.

use kernel::{Waiting, WaitingCode};
use policies::ByteSize;

use host::headroom::{Gauge, Pressure};
use setup::config::admission::DispatchConfig;

/// Returns the resource that the host lacks, as a reason to wait. Reads the gauge only if the configuration sets a
/// limit.
pub(super) fn lack(wanted: &DispatchConfig, gauge: Gauge) -> Option<Waiting> {
    if wanted.min_free_memory.is_none() && wanted.max_load.is_none() && wanted.max_pressure.is_empty() {
        return None;
    }
    let reading = gauge();
    let lack = |text: String| Some(Waiting::new(WaitingCode::Headroom, text));
    if let Some(least) = wanted.min_free_memory {
        match reading.available.map(ByteSize) {
            Some(available) if available >= least => {}
            Some(available) => {
                return lack(format!(
                    "waits for memory: {available} available, dispatch.min_free_memory is {least}"
                ));
            }
            // A limit on an unreadable value keeps tasks waiting, as a reached limit does.
            None => {
                return lack(
                    "waits for memory: /proc/meminfo cannot be read (dispatch.min_free_memory)".to_owned(),
                );
            }
        }
    }
    if let Some(most) = wanted.max_load {
        match reading.load {
            Some(load) if load <= most => {}
            Some(load) => {
                return lack(format!(
                    "waits for a lower load: {load:.2} for each processor, dispatch.max_load is {most:.2}"
                ));
            }
            None => {
                return lack(
                    "waits for a lower load: /proc/loadavg cannot be read (dispatch.max_load)".to_owned(),
                );
            }
        }
    }
    under_pressure(wanted, reading.pressure).and_then(lack)
}

/// Returns the first kind of pressure that exceeds its limit, as text.
fn under_pressure(wanted: &DispatchConfig, pressure: Pressure) -> Option<String> {
    let readings = [pressure.memory, pressure.cpu, pressure.io];
    wanted.max_pressure.limits().into_iter().zip(readings).find_map(|((name, limit), found)| {
        let limit = limit?;
        match found {
            Some(found) if found <= limit => None,
            Some(found) => Some(format!(
                "waits for less {name} pressure: {found:.1} % of the last 10 s, dispatch.max_pressure.{name} is {limit:.1} %"
            )),
            None => Some(format!(
                "waits for less {name} pressure: this host has no /proc/pressure/{name} (a kernel with CONFIG_PSI, booted with psi=1, \
                 has it); take dispatch.max_pressure.{name} out to start without it"
            )),
        }
    })
}
