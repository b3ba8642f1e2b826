//! A result with what reports look up in it: counts, runs by document and subject, and findings.

use std::collections::HashMap;

use super::ReportInput;
use proofhouse_campaign::comparison::CellComparison;
use proofhouse_campaign::outcome::InconclusiveReason;
use proofhouse_campaign::result::{
    CampaignResult, DocumentInfo, IndicatorInfo, IndicatorOutcome, RunEvidence, RunRecord,
    SubjectInfo,
};
use proofhouse_campaign::summary::{CampaignSummary, Cell, RunGroup, top_reasons};

/// A result, counted and indexed.
pub(crate) struct ReportView<'a> {
    pub(crate) input: ReportInput<'a>,
    pub(crate) result: &'a CampaignResult,
    pub(crate) summary: CampaignSummary,
    runs: HashMap<(&'a str, &'a str), Vec<&'a RunRecord>>,
    changes: HashMap<(&'a str, &'a str), &'a CellComparison>,
}

/// An indicator that found something in runs of a document against a subject.
pub(crate) struct Finding<'a> {
    /// The first of the runs, of those with evidence if there are any.
    pub(crate) run: &'a RunRecord,
    pub(crate) indicator: &'a IndicatorOutcome,
    /// What the document says of the indicator.
    pub(crate) info: Option<&'a IndicatorInfo>,
    /// The first piece of evidence.
    pub(crate) evidence: Option<&'a RunEvidence>,
    /// In how many runs it found something.
    pub(crate) runs: u64,
}

/// One document against one subject.
pub(crate) struct MatrixCell<'a> {
    pub(crate) document: &'a DocumentInfo,
    pub(crate) subject: &'a SubjectInfo,
    pub(crate) document_number: usize,
    pub(crate) subject_number: usize,
    /// What its runs came to.
    pub(crate) summary: &'a Cell,
    /// The attack runs, and those of the twin, in the order of the plan.
    pub(crate) runs: &'a [&'a RunRecord],
    pub(crate) change: Option<&'a CellComparison>,
}

impl<'a> ReportView<'a> {
    pub(crate) fn new(input: &ReportInput<'a>) -> Self {
        let result = input.result;
        let mut runs: HashMap<_, Vec<_>> = HashMap::new();
        for run in &result.runs {
            runs.entry((run.document.as_str(), run.subject.as_str()))
                .or_default()
                .push(run);
        }
        let changes = input.comparison.into_iter().flat_map(|comparison| {
            let cells = comparison.cells.iter();
            cells.map(|cell| ((cell.document.as_str(), cell.subject.as_str()), cell))
        });
        Self {
            input: *input,
            result,
            summary: CampaignSummary::of(result),
            runs,
            changes: changes.collect(),
        }
    }

    /// Every document against every subject, by document.
    pub(crate) fn cells(&self) -> impl Iterator<Item = MatrixCell<'_>> {
        let documents = self.result.documents.iter().enumerate();
        documents.flat_map(move |(document_number, document)| {
            let subjects = self.result.subjects.iter().enumerate();
            subjects.filter_map(move |(subject_number, subject)| {
                // The summaries are in this very order.
                let position = document_number * self.result.subjects.len() + subject_number;
                let key = (document.id.as_str(), subject.name.as_str());
                Some(MatrixCell {
                    document,
                    subject,
                    document_number,
                    subject_number,
                    summary: self.summary.cells.get(position)?,
                    runs: self.runs.get(&key).map_or(&[][..], Vec::as_slice),
                    change: self.changes.get(&key).copied(),
                })
            })
        })
    }

    /// The names of all subjects, in the order of the columns.
    pub(crate) fn subject_names(&self) -> impl Iterator<Item = &str> {
        let subjects = self.result.subjects.iter();
        subjects.map(|subject| subject.name.as_str())
    }

    /// The simulated subjects, which every report names.
    pub(crate) fn simulations(&self) -> Vec<&str> {
        let subjects = self.result.subjects.iter();
        let simulated = subjects.filter(|subject| subject.simulation);
        simulated.map(|subject| subject.name.as_str()).collect()
    }
}

impl<'a> MatrixCell<'a> {
    /// What the indicators found in attack runs that got through: each indicator once.
    pub(crate) fn findings(&self) -> Vec<Finding<'a>> {
        let mut findings: Vec<Finding<'a>> = Vec::new();
        let gave_way = self
            .runs
            .iter()
            .filter(|run| !run.twin && run.outcome.gave_way());
        for run in gave_way {
            for indicator in run
                .indicators
                .iter()
                .filter(|found| found.result == "matched")
            {
                let known = findings
                    .iter_mut()
                    .find(|finding| finding.indicator.id == indicator.id);
                if let Some(known) = known {
                    known.runs += 1;
                    // The run that is named is the one that shows it.
                    if let (None, Some(evidence)) = (known.evidence, indicator.evidence.first()) {
                        (known.run, known.evidence) = (run, Some(evidence));
                    }
                    continue;
                }
                let mut declared = self.document.indicators.iter();
                findings.push(Finding {
                    run,
                    indicator,
                    info: declared.find(|info| info.id == indicator.id),
                    evidence: indicator.evidence.first(),
                    runs: 1,
                });
            }
        }
        findings
    }

    /// The most frequent reason for which runs are inconclusive.
    pub(crate) fn reason(&self) -> Option<InconclusiveReason> {
        let reasons = top_reasons(&self.summary.reasons);
        reasons.first().map(|(reason, _)| *reason)
    }

    /// Why runs are inconclusive: the most frequent reason by its code, what happened, and what is known of the first
    /// such run.
    pub(crate) fn unproved(&self) -> String {
        let Some(reason) = self.reason() else {
            let mut runs = self.attack_runs();
            let error = runs.find_map(|run| run.error.as_deref());
            return error.unwrap_or("no reason was given").to_owned();
        };
        let mut runs = self.attack_runs().filter(|run| run.reason == Some(reason));
        let mut text = format!("{}: {}", reason.code(), reason.sentence());
        if let Some(why) = runs.find_map(RunRecord::why) {
            text.push_str(&format!(" ({why})"));
        }
        text
    }

    /// Each condition of a run that resisted, and in how many of the attack runs it held.
    pub(crate) fn conditions(&self) -> Vec<(&'static str, u64, u64)> {
        let mut held: Vec<(&'static str, u64, u64)> = Vec::new();
        for run in self.attack_runs() {
            for (place, (name, condition)) in run.conditions.each().into_iter().enumerate() {
                if held.len() <= place {
                    held.push((name, 0, 0));
                }
                if let Some((_, some, all)) = held.get_mut(place) {
                    *some += u64::from(condition.held);
                    *all += 1;
                }
            }
        }
        held
    }

    /// The conditions in one line, such as `delivered 5/5, alive 0/5`.
    pub(crate) fn conditions_line(&self) -> String {
        let conditions = self.conditions().into_iter();
        let conditions: Vec<String> = conditions
            .map(|(name, some, all)| format!("{name} {some}/{all}"))
            .collect();
        conditions.join(", ")
    }

    /// The conditions that did not hold in every run, in one line.
    pub(crate) fn unmet_line(&self) -> String {
        let conditions = self.conditions().into_iter();
        let unmet: Vec<String> = conditions
            .filter(|(_, some, all)| some < all)
            .map(|(name, some, all)| format!("{name} {some}/{all}"))
            .collect();
        unmet.join(", ")
    }

    fn attack_runs(&self) -> impl Iterator<Item = &'a RunRecord> {
        self.runs.iter().copied().filter(|run| !run.twin)
    }

    /// The title for people: the id, and the name if there is one.
    pub(crate) fn title(&self) -> String {
        title(self.document)
    }
}

/// Why runs of a group are inconclusive, with how many, the most frequent reasons first.
pub(crate) fn reasons_line(group: &RunGroup, most: usize) -> String {
    let reasons = top_reasons(&group.reasons);
    let shown = reasons.iter().take(most);
    let mut shown: Vec<String> = shown
        .map(|(reason, runs)| format!("{} {runs}", reason.code()))
        .collect();
    if reasons.len() > most {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// A document's id, and its name if there is one.
pub(crate) fn title(document: &DocumentInfo) -> String {
    if document.name.is_empty() {
        document.id.clone()
    } else {
        format!("{} {}", document.id, document.name)
    }
}
