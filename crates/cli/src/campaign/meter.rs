//! How far a campaign is: one line that changes on a terminal, a line per ten percent elsewhere. On stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proofhouse_campaign::engine::CampaignProgress;
use proofhouse_campaign::result::RunRecord;
use proofhouse_report::progress::{got_through, live_line, run_line, tenth_line};
use proofhouse_wire::sync::lock;

use crate::output::{complain, is_quiet, printable_line, stderr_columns, talk};

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
            talk(&printable_line(&format!(
                "[{done}/{total}] {}",
                run_line(run)
            )));
            for run in progress.decided {
                talk(&printable_line(&format!(
                    "[{done}/{total}] {}",
                    run_line(run)
                )));
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
            talk(&tenth_line(progress, told.1, self.kinds));
        }
    }

    fn draw(&self, progress: &CampaignProgress<'_>, run: &RunRecord) {
        let mut drawn = lock(&self.drawn);
        let is_last = progress.done == progress.total;
        if !is_last && drawn.is_some_and(|last| last.elapsed() < INTERVAL) {
            return;
        }
        *drawn = Some(Instant::now());
        let text = live_line(progress, run);
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
