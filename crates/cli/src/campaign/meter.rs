//! How far a campaign is: one line that changes on a terminal, a line per run elsewhere. On stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proofhouse_campaign::engine::CampaignProgress;
use proofhouse_campaign::result::RunRecord;
use proofhouse_wire::sync::lock;

use crate::output::{complain, printable_line, talk};

/// How often the line is drawn again.
const INTERVAL: Duration = Duration::from_millis(100);
/// How wide it may be.
const WIDTH: usize = 79;

/// Tells how far a campaign is.
pub(crate) struct CampaignMeter {
    on_terminal: bool,
    drawn: Mutex<Option<Instant>>,
    has_trouble: AtomicBool,
}

impl CampaignMeter {
    pub(crate) fn new() -> Self {
        Self {
            on_terminal: io::stderr().is_terminal(),
            drawn: Mutex::new(None),
            has_trouble: AtomicBool::new(false),
        }
    }

    /// Whether something could not be kept.
    pub(crate) fn has_trouble(&self) -> bool {
        self.has_trouble.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, progress: &CampaignProgress<'_>) {
        if let Some(trouble) = progress.trouble {
            self.erase();
            self.has_trouble.store(true, Ordering::Relaxed);
            complain(&printable_line(&format!(
                "the results cannot be kept: {trouble}"
            )));
        }
        let Some(run) = progress.run else { return };
        if run.has_failed() {
            self.erase();
            talk(&printable_line(&line(run)));
        } else if !self.on_terminal {
            let (done, total) = (progress.done, progress.total);
            talk(&printable_line(&format!("[{done}/{total}] {}", line(run))));
        }
        if self.on_terminal {
            self.draw(progress, run);
        }
    }

    fn draw(&self, progress: &CampaignProgress<'_>, run: &RunRecord) {
        let mut drawn = lock(&self.drawn);
        let is_last = progress.done == progress.total;
        if !is_last && drawn.is_some_and(|last| last.elapsed() < INTERVAL) {
            return;
        }
        *drawn = Some(Instant::now());
        let left = progress.left.map(|left| format!(", {} left", clock(left)));
        let text = format!(
            "{}/{} runs{}  {}",
            progress.done,
            progress.total,
            left.unwrap_or_default(),
            printable_line(&run.id)
        );
        let text: String = text.chars().take(WIDTH).collect();
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
    }

    /// Takes the line away.
    pub(crate) fn erase(&self) {
        let mut drawn = lock(&self.drawn);
        if self.on_terminal && drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(run: &RunRecord) -> String {
    let what = match (&run.error, run.reason) {
        (Some(error), _) if run.has_failed() => format!("inconclusive: {error}"),
        _ if run.twin && run.outcome.gave_way() => "false alarm".to_owned(),
        (_, Some(reason)) if run.twin => format!("control: {}", reason.code()),
        _ if run.twin => "control: task done".to_owned(),
        (_, Some(reason)) => format!("{}: {}", run.outcome.word(), reason.code()),
        (_, None) => run.outcome.word().to_owned(),
    };
    format!("{}: {what}", run.id)
}

fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        seconds => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (seconds, shown) in [(5, "5 s"), (65, "1:05 min"), (3700, "1:01 h")] {
            assert_eq!(clock(Duration::from_secs(seconds)), shown);
        }
    }
}
