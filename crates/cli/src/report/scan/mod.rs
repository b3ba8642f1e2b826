//! What scans found, in the formats people and programs read, one file each.

pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod sarif;

use proofhouse_detect::{DocumentVerdict, Format, LineError, LineErrorKind, ReadSummary};
use proofhouse_oatf::{AttackResult, IndicatorResult};

use crate::exit_code::Exit;
use crate::traces::failure;

/// How many bad lines of a trace are kept for reports; all are counted.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// What was found in one trace.
#[derive(Debug)]
pub(crate) struct ScannedTrace {
    pub(crate) name: String,
    pub(crate) format: Format,
    /// One per document, in the order of the scanner.
    pub(crate) verdicts: Vec<DocumentVerdict>,
    pub(crate) summary: ReadSummary,
    /// The first of them.
    pub(crate) problems: Vec<LineError>,
    /// Why reading ended before the end.
    pub(crate) error: Option<String>,
}

impl ScannedTrace {
    /// Why the trace could not be judged to its end.
    pub(crate) fn failure(&self) -> Option<String> {
        failure(self.format, &self.summary, self.error.as_deref())
    }
}

/// How many lines, or parts of them, were skipped.
pub(crate) fn skipped(scans: &[ScannedTrace]) -> u64 {
    let summaries = scans.iter().map(|scan| &scan.summary);
    summaries.map(ReadSummary::skipped).sum()
}

/// How many traces are only a part of what happened: empty ones, and those with messages whose beginning is missing or
/// that were too much to be judged as a whole.
pub(crate) fn partial(scans: &[ScannedTrace]) -> usize {
    let is_partial = |scan: &&ScannedTrace| {
        let summary = &scan.summary;
        summary.messages == 0
            || summary.forgotten_requests > 0
            || summary.count(LineErrorKind::Unrequested) > 0
            || summary.count(LineErrorKind::InParts) > 0
    };
    scans.iter().filter(is_partial).count()
}

/// How many traces were not read to their end.
pub(crate) fn incomplete(scans: &[ScannedTrace]) -> usize {
    let failed = scans.iter().filter(|scan| scan.failure().is_some());
    failed.count()
}

/// How many documents had which result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct VerdictCounts {
    pub(crate) exploited: usize,
    pub(crate) partial: usize,
    pub(crate) not_exploited: usize,
    pub(crate) error: usize,
}

impl VerdictCounts {
    pub(crate) fn of<'a>(results: impl IntoIterator<Item = &'a DocumentVerdict>) -> Self {
        let mut counts = Self::default();
        for verdict in results {
            match verdict.attack.result {
                AttackResult::Exploited => counts.exploited += 1,
                AttackResult::Partial => counts.partial += 1,
                AttackResult::NotExploited => counts.not_exploited += 1,
                AttackResult::Error => counts.error += 1,
            }
        }
        counts
    }
}

/// How a scan ends. That a trace was not read to its end comes before everything: what was found
/// stands, but it may not be all. What was found comes before what could not be told.
pub(crate) fn exit(scans: &[ScannedTrace], allow_skipped: bool) -> Exit {
    let verdicts = || scans.iter().flat_map(|scan| &scan.verdicts);
    let counts = VerdictCounts::of(verdicts());
    let mut indicators = verdicts().flat_map(|verdict| &verdict.indicators);
    if scans.iter().any(|scan| scan.failure().is_some()) {
        Exit::CannotRun
    } else if counts.exploited + counts.partial > 0
        || indicators.any(|found| found.result == IndicatorResult::Matched)
    {
        Exit::Failure
    } else if counts.error > 0 || (skipped(scans) + partial(scans) as u64 > 0 && !allow_skipped) {
        Exit::Inconclusive
    } else {
        Exit::Success
    }
}
