//! What scans of traces found, and its forms, one file each.

pub mod json;
pub mod sarif;
pub mod text;

use proofhouse_detect::{
    DocumentVerdict, Format, LineError, LineErrorKind, NotJudged, ReadSummary,
};
use proofhouse_oatf::{AttackResult, IndicatorResult};

/// How many bad lines of a trace are kept for reports; all are counted.
pub const MAX_PROBLEMS: usize = 100;

/// What was found in one trace.
#[derive(Debug)]
pub struct ScannedTrace {
    /// Its name.
    pub name: String,
    /// What it was read as.
    pub format: Format,
    /// One per document, in the order of the scanner.
    pub verdicts: Vec<DocumentVerdict>,
    /// How much was read.
    pub summary: ReadSummary,
    /// What is wrong with its lines, the first [`MAX_PROBLEMS`].
    pub problems: Vec<LineError>,
    /// Why reading ended before the end.
    pub error: Option<String>,
}

impl ScannedTrace {
    /// Why the trace could not be judged to its end.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        failure(self.format, &self.summary, self.error.as_deref())
    }
}

/// Why a trace could not be judged to its end. A file without one good line is no trace.
#[must_use]
pub fn failure(format: Format, summary: &ReadSummary, error: Option<&str>) -> Option<String> {
    if let Some(error) = error {
        return Some(error.to_owned());
    }
    let nothing = summary.messages == 0 && summary.skipped() > 0;
    nothing.then(|| {
        format!("no line could be read as one of the format `{format}`; --from names another")
    })
}

/// How many lines, or parts of them, were skipped.
#[must_use]
pub fn skipped(scans: &[ScannedTrace]) -> u64 {
    let summaries = scans.iter().map(|scan| &scan.summary);
    summaries.map(ReadSummary::skipped).sum()
}

/// How many traces are not what happened in one run: empty ones, those with messages whose beginning is missing or that
/// were too much to be judged as a whole, those with missing numbers, those with calls whose arguments are missing, and
/// those of several recordings.
#[must_use]
pub fn partial(scans: &[ScannedTrace]) -> usize {
    let is_partial = |scan: &&ScannedTrace| {
        let summary = &scan.summary;
        summary.messages == 0
            || summary.forgotten_requests > 0
            || summary.without_arguments > 0
            || summary.count(LineErrorKind::Unrequested) > 0
            || summary.count(LineErrorKind::InParts) > 0
            || LineErrorKind::ALL
                .iter()
                .any(|kind| kind.breaks_run() && summary.count(*kind) > 0)
    };
    scans.iter().filter(is_partial).count()
}

/// How many traces were not read to their end.
#[must_use]
pub fn incomplete(scans: &[ScannedTrace]) -> usize {
    let failed = scans.iter().filter(|scan| scan.failure().is_some());
    failed.count()
}

/// What a document came to, in one word.
#[must_use]
pub fn result_word(verdict: &DocumentVerdict) -> &'static str {
    match verdict.not_judged() {
        Some(_) => "not_judged",
        None => verdict.attack.result.as_str(),
    }
}

/// What scans come to together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanConclusion {
    /// A trace was not read to its end: what was found stands, but it may not be all.
    Unreadable,
    /// An indicator matched.
    Found,
    /// Nothing was found, and not everything could be looked at.
    Inconclusive,
    /// Nothing was found.
    Clean,
}

impl ScanConclusion {
    /// What was found comes before what could not be told. A document for another protocol than the trace's is no gap if
    /// another document was judged.
    #[must_use]
    pub fn of(scans: &[ScannedTrace], allow_skipped: bool) -> Self {
        let verdicts = || scans.iter().flat_map(|scan| &scan.verdicts);
        let counts = VerdictCounts::of(verdicts());
        let mut indicators = verdicts().flat_map(|verdict| &verdict.indicators);
        let unknown = |verdict: &DocumentVerdict| {
            matches!(verdict.not_judged(), Some(NotJudged::Unknown { .. }))
        };
        let blind = |scan: &ScannedTrace| {
            let mut verdicts = scan.verdicts.iter();
            scan.summary.messages > 0 && verdicts.all(|verdict| verdict.not_judged().is_some())
        };
        if scans.iter().any(|scan| scan.failure().is_some()) {
            Self::Unreadable
        } else if counts.exploited + counts.partial > 0
            || indicators.any(|found| found.result == IndicatorResult::Matched)
        {
            Self::Found
        } else if counts.error > 0
            || verdicts().any(unknown)
            || scans.iter().any(blind)
            || (skipped(scans) + partial(scans) as u64 > 0 && !allow_skipped)
        {
            Self::Inconclusive
        } else {
            Self::Clean
        }
    }
}

/// How many documents had which result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    /// The attack got through.
    pub exploited: usize,
    /// Some of it did.
    pub partial: usize,
    /// Nothing of it was found.
    pub not_exploited: usize,
    /// Nothing of it was found, and not all of it was looked for.
    pub not_judged: usize,
    /// There is no trustworthy answer.
    pub error: usize,
}

impl VerdictCounts {
    /// Counts verdicts.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a DocumentVerdict>) -> Self {
        let mut counts = Self::default();
        for verdict in results {
            match verdict.attack.result {
                AttackResult::Exploited => counts.exploited += 1,
                AttackResult::Partial => counts.partial += 1,
                AttackResult::NotExploited if verdict.not_judged().is_some() => {
                    counts.not_judged += 1;
                }
                AttackResult::NotExploited => counts.not_exploited += 1,
                AttackResult::Error => counts.error += 1,
            }
        }
        counts
    }
}
