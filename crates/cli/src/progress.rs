//! How far the reading of a trace has come, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::output::printable_line;
use crate::traces::OpenTrace;

/// How often the line is drawn again.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many characters the bar has.
const WIDTH: usize = 20;

/// A line on stderr that shows the bytes that were read and the messages per second.
pub(crate) struct ScanMeter {
    name: String,
    size: Option<u64>,
    read: Arc<AtomicU64>,
    started: Instant,
    drawn: Option<Instant>,
    shown: bool,
}

impl ScanMeter {
    pub(crate) fn new(name: &str, opened: &OpenTrace) -> Self {
        Self {
            name: printable_line(name),
            size: opened.size,
            read: Arc::clone(&opened.read),
            started: Instant::now(),
            drawn: None,
            shown: io::stderr().is_terminal(),
        }
    }

    pub(crate) fn step(&mut self, messages: u64) {
        let last = self.drawn.unwrap_or(self.started);
        if self.shown && last.elapsed() >= INTERVAL {
            self.drawn = Some(Instant::now());
            let read = self.read.load(Ordering::Relaxed);
            let line = line(
                &self.name,
                read,
                self.size,
                messages,
                self.started.elapsed(),
            );
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    pub(crate) fn finish(self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(name: &str, read: u64, size: Option<u64>, messages: u64, elapsed: Duration) -> String {
    let how_far = match size.filter(|size| *size > 0) {
        Some(size) => {
            let read = read.min(size);
            let full = usize::try_from(read.saturating_mul(WIDTH as u64) / size).unwrap_or(WIDTH);
            let percent = read.saturating_mul(100) / size;
            format!(
                "[{}{}] {percent:>3}% {} of {}",
                "#".repeat(full),
                "-".repeat(WIDTH - full.min(WIDTH)),
                megabytes(read),
                megabytes(size),
            )
        }
        None => megabytes(read),
    };
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let per_second = messages.saturating_mul(1000) / millis;
    let rest = format!("{how_far}, {per_second} messages/s ");
    // One line of a narrow terminal; the end of a path says more than its beginning.
    let room = 79usize.saturating_sub(rest.chars().count());
    let skip = name.chars().count().saturating_sub(room);
    rest + &name.chars().skip(skip).collect::<String>()
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_a_terminal() {
        let second = Duration::from_secs(2);
        assert_eq!(
            line("a.jsonl", 5_250_000, Some(10_500_000), 30_000, second),
            "[##########----------]  50% 5.2 MB of 10.5 MB, 15000 messages/s a.jsonl"
        );
        assert_eq!(
            line("-", 1, None, 0, Duration::ZERO),
            "0.0 MB, 0 messages/s -"
        );
        // A file that grew, an empty one, a long name.
        assert!(line("a", 20, Some(10), 1, second).contains("100%"));
        assert!(line("a", 0, Some(0), 1, second).starts_with("0.0 MB"));
        let long = line(&"x/".repeat(100), 1, Some(2), u64::MAX, second);
        assert!(long.chars().count() <= 79, "{long}");
    }
}
