//! What the system says about this process: memory, time of the processor, open files. Only where there is a `/proc`.

use std::fmt;
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use proofhouse_wire::files::FileInput;

/// The largest file that is read.
const MAX_FILE: usize = 64 << 10;
/// How many ticks of its clock Linux tells programs of in a second, on every machine.
const TICKS: f64 = 100.0;

/// Tells what the system says.
#[derive(Debug)]
pub(super) struct ProcessCollector;

fn file(name: &str) -> Option<String> {
    let path = Path::new("/proc/self").join(name);
    FileInput::File(path).read(MAX_FILE).ok()
}

/// Bytes of memory that are in use, of `status`.
fn resident_bytes(status: &str) -> Option<i64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Seconds that the processor worked, of `stat`. The name of the program stands in it and may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "it is not so long")]
    let ticks = user.checked_add(system)? as f64;
    Some(ticks / TICKS)
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Memory in use",
                file("status").as_deref().and_then(resident_bytes),
            ),
            (
                "process_open_fds",
                "Open files",
                std::fs::read_dir("/proc/self/fd")
                    .ok()
                    .and_then(|open| i64::try_from(open.count()).ok()),
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else {
                continue;
            };
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(encoder)?;
        }
        if let Some(seconds) = file("stat").as_deref().and_then(cpu_seconds) {
            let help = "Seconds that the processor worked";
            let name = "process_cpu_seconds";
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(encoder)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let status = "Name:\tproofhouse\nVmPeak:\t  9 kB\nVmRSS:\t   123 kB\n";
        assert_eq!(resident_bytes(status), Some(123 * 1024));
        assert_eq!(resident_bytes("VmRSS: much"), None);
        let stat = "7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
    }
}
