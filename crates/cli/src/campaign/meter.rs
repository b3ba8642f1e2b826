//! How far a campaign is: one line that changes on a terminal, a line per ten percent elsewhere. On stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proofhouse_campaign::engine::CampaignProgress;
use proofhouse_campaign::result::RunRecord;
use proofhouse_wire::sync::lock;

use crate::output::{complain, is_quiet, printable_line, stderr_columns, talk};
use crate::report::plural;

/// How often the line is drawn again.
const INTERVAL: Duration = Duration::from_millis(100);

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgressMode {
    /// One line that is updated, on a terminal; otherwise as plain
    Auto,
    /// One line for every ten percent
    Plain,
    /// No progress
    None,
}

/// Tells how far a campaign is.
pub(crate) struct CampaignMeter {
    mode: ProgressMode,
    on_terminal: bool,
    is_verbose: bool,
    drawn: Mutex<Option<Instant>>,
    /// The last tenth that was told, and how many attacks got through until now.
    told: Mutex<(usize, usize)>,
    has_trouble: AtomicBool,
    /// How many of all runs are attacks and controls.
    kinds: (usize, usize),
}

impl CampaignMeter {
    pub(crate) fn new(mode: ProgressMode, is_verbose: bool, kinds: (usize, usize)) -> Self {
        let is_shown = mode != ProgressMode::None && !is_quiet();
        Self {
            mode: if is_shown { mode } else { ProgressMode::None },
            on_terminal: mode == ProgressMode::Auto && is_shown && io::stderr().is_terminal(),
            is_verbose,
            drawn: Mutex::new(None),
            told: Mutex::new((0, 0)),
            has_trouble: AtomicBool::new(false),
            kinds,
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
                "the results cannot be written: {trouble}"
            )));
        }
        let Some(run) = progress.run else { return };
        if self.is_verbose {
            self.erase();
            let (done, total) = (progress.done, progress.total);
            talk(&printable_line(&format!("[{done}/{total}] {}", line(run))));
            for run in progress.decided {
                talk(&printable_line(&format!("[{done}/{total}] {}", line(run))));
            }
        }
        if self.on_terminal {
            self.draw(progress, run);
        } else if self.mode != ProgressMode::None {
            self.step(progress, run);
        }
    }

    /// Tells every tenth of the way, for pipes and files.
    fn step(&self, progress: &CampaignProgress<'_>, run: &RunRecord) {
        let mut told = lock(&self.told);
        let ended = progress.decided.iter().chain([run]);
        told.1 += ended.filter(|run| got_through(run)).count();
        let tenth = progress.done * 10 / progress.total.max(1);
        if tenth > told.0 {
            told.0 = tenth;
            let left = progress.left.filter(|_| tenth < 10);
            let left = left.map(|left| format!(", {} left", clock(left)));
            let (attacks, controls) = self.kinds;
            let kinds = format!(
                " ({}, {})",
                plural(attacks, "attack"),
                plural(controls, "control")
            );
            talk(&format!(
                "{:>3}%  {} of {} runs{}, {} got through{}",
                progress.done * 100 / progress.total.max(1),
                progress.done,
                progress.total,
                if tenth == 10 { kinds.as_str() } else { "" },
                told.1,
                left.unwrap_or_default(),
            ));
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
        // A line that is as wide as the terminal would go on in the next one.
        let width = stderr_columns().saturating_sub(1);
        let text: String = text.chars().take(width).collect();
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

fn got_through(run: &RunRecord) -> bool {
    !run.twin && run.outcome.gave_way()
}

fn line(run: &RunRecord) -> String {
    let what = match (&run.error, run.reason) {
        (Some(error), _) if run.has_failed() => format!("inconclusive: {error}"),
        _ if run.twin && run.outcome.gave_way() => "false alarm".to_owned(),
        _ if run.is_waiting_for_control() => {
            "ended; the result depends on its control run, which is not done yet".to_owned()
        }
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
    fn a_run_is_called_inconclusive_only_when_it_is() {
        let mut run: RunRecord = serde_json::from_value(serde_json::json!({
            "id": "A-001/mine/1", "document": "A-001", "subject": "mine", "repeat": 1, "twin": false,
            "outcome": "inconclusive", "reason": "control_not_run", "reached": true, "carriers": [1, 1],
            "indicators": [], "warnings": [], "milliseconds": 1, "messages": 1,
        }))
        .unwrap();
        let waiting = line(&run);
        assert!(waiting.contains("depends on its control run"), "{waiting}");
        assert!(!waiting.contains("inconclusive"), "{waiting}");
        run.reason = Some(proofhouse_campaign::outcome::InconclusiveReason::ControlFailed);
        assert_eq!(line(&run), "A-001/mine/1: inconclusive: control_failed");
    }

    #[test]
    fn times() {
        for (seconds, shown) in [(5, "5 s"), (65, "1:05 min"), (3700, "1:01 h")] {
            assert_eq!(clock(Duration::from_secs(seconds)), shown);
        }
    }
}
