//! How much memory a process holds and how much time it takes, as the system sees it.

use std::fs;
use std::time::Duration;

/// Bytes that are resident now.
pub(crate) fn resident() -> Option<u64> {
    status("self", "VmRSS:")
}

/// The most bytes that were resident since [`forget_peak`].
pub(crate) fn peak() -> Option<u64> {
    status("self", "VmHWM:")
}

/// The most bytes that were resident in another process since it began.
pub(crate) fn peak_of(process: u32) -> Option<u64> {
    status(&process.to_string(), "VmHWM:")
}

/// Starts the peak anew, where the system can.
pub(crate) fn forget_peak() {
    // Without it the peak is that of the whole process, which is only too high.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status(process: &str, field: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a short file of the kernel")]
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The time that this process has spent on all cores together.
pub(crate) fn cpu_time() -> Option<Duration> {
    /// Parts of a second that Linux counts this in, on all machines that we know.
    const TICKS: u64 = 100;
    #[expect(clippy::disallowed_methods, reason = "a short file of the kernel")]
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1_000 / TICKS))
}
