//! A result with what reports look up in it: counts, runs by document and subject, and findings.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::ReportInput;
use super::text::{in_a_sentence, plural, words};
use proofhouse_campaign::accepted::AcceptedRisk;
use proofhouse_campaign::comparison::CellComparison;
use proofhouse_campaign::outcome::{InconclusiveReason, RunOutcome};
use proofhouse_campaign::result::{
    CampaignResult, DocumentInfo, IndicatorInfo, IndicatorOutcome, RunEvidence, RunRecord,
    SubjectInfo,
};
use proofhouse_campaign::summary::{CampaignSummary, Cell, RunGroup, tier_rank, top_reasons};

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

    /// What is counted: attacks, or attacks against each of several agents.
    pub(crate) fn counted_attacks(&self) -> &'static str {
        if self.result.subjects.len() > 1 {
            "attack–agent pairs"
        } else {
            "attacks"
        }
    }

    /// What is said of those of them whose attack got through.
    pub(crate) fn got_through(&self) -> &'static str {
        if self.result.subjects.len() > 1 {
            "were exploited"
        } else {
            "got through"
        }
    }

    /// How many attacks got through at least once, in a sentence. It says nothing as long as runs are missing.
    pub(crate) fn success_at_repeats(&self) -> String {
        let (overall, repeats) = (&self.summary.overall, self.result.repeats);
        if !self.result.complete {
            return format!("ASR@{repeats}: unknown, because runs are missing.");
        }
        format!(
            "ASR@{repeats}: {} of {} {} {} at least once.",
            overall.documents_exploited,
            overall.documents_counted,
            self.counted_attacks(),
            self.got_through(),
        )
    }

    /// How many attacks there are, or how many pairs where there are several agents.
    pub(crate) fn counted(&self, many: u64) -> String {
        if self.result.subjects.len() > 1 {
            plural(many, "attack–agent pair")
        } else {
            plural(many, "attack")
        }
    }

    /// Every document against every subject, the most severe first, and what got through before what did not.
    pub(crate) fn by_severity(&self) -> Vec<MatrixCell<'_>> {
        let mut cells: Vec<MatrixCell<'_>> = self.cells().collect();
        cells.sort_by_key(|cell| {
            let severity = severity_rank(cell.document.severity.as_deref());
            (Reverse(severity), outcome_rank(cell.summary.outcome))
        });
        cells
    }

    /// What got through, the worst first: by severity, tier and rate. What is accepted comes after all else.
    pub(crate) fn worst(&self) -> Vec<MatrixCell<'_>> {
        let cells = self.cells();
        let mut worst: Vec<MatrixCell<'_>> = cells.filter(MatrixCell::gave_way).collect();
        worst.sort_by_key(|cell| {
            let rate = cell.summary.attacks.success.value().unwrap_or_default();
            (
                self.is_accepted(cell),
                Reverse(severity_rank(cell.document.severity.as_deref())),
                Reverse(tier_rank(cell.summary.tier.as_deref())),
                Reverse((rate * 1e6) as u64),
            )
        });
        worst
    }

    /// A file that the user has and a line of it, for a finding in a document: the document itself, or where it is shipped with
    /// the program the configuration that asks for it, or the copy that was kept.
    pub(crate) fn place_of(
        &self,
        document: &DocumentInfo,
        number: Option<usize>,
    ) -> (String, usize) {
        if !document.shipped {
            return (document.path.clone(), number.unwrap_or(1).max(1));
        }
        let kept = self.input.directory.zip(document.kept.as_deref());
        let kept =
            kept.map(|(directory, kept)| format!("{}/{kept}", directory.trim_end_matches('/')));
        let config = self.input.config.map(str::to_owned);
        let file = config.or(kept).unwrap_or_else(|| document.path.clone());
        (file, 1)
    }

    /// The accepted risk that covers what was found here, if one does.
    pub(crate) fn acceptance(&self, cell: &MatrixCell<'_>) -> Option<&AcceptedRisk> {
        let (document, subject) = (&cell.document.id, &cell.subject.name);
        let accepted = self.result.accepts(document, subject);
        accepted.filter(|_| cell.gave_way())
    }

    /// Whether somebody accepted what was found here.
    pub(crate) fn is_accepted(&self, cell: &MatrixCell<'_>) -> bool {
        self.acceptance(cell).is_some()
    }

    /// How many attacks of each severity got through, and how many prove something; the most severe first.
    pub(crate) fn severities(&self) -> Vec<(String, u64, u64)> {
        let mut levels: Vec<(usize, String, u64, u64)> = Vec::new();
        for cell in self.cells() {
            let level = cell.document.severity.as_deref();
            let rank = severity_rank(level);
            // Levels that the format does not have stand together.
            let name = if rank == 0 {
                "unrated"
            } else {
                level.unwrap_or_default()
            };
            let known = levels.iter().position(|(known, ..)| *known == rank);
            let place = known.unwrap_or_else(|| {
                levels.push((rank, name.to_owned(), 0, 0));
                levels.len() - 1
            });
            let counts = cell.summary.attacks.success.all > 0;
            levels[place].2 += u64::from(cell.gave_way());
            levels[place].3 += u64::from(counts);
        }
        levels.sort_by_key(|(rank, ..)| Reverse(*rank));
        let levels = levels.into_iter();
        levels
            .map(|(_, name, some, all)| (name, some, all))
            .collect()
    }

    /// Why runs are inconclusive: each reason of each subject once, the most frequent first.
    pub(crate) fn inconclusive(&self) -> Vec<InconclusiveGroup<'a>> {
        let mut groups: Vec<InconclusiveGroup<'a>> = Vec::new();
        let runs = self.result.runs.iter();
        for run in runs.filter(|run| !run.twin && run.outcome == RunOutcome::Inconclusive) {
            let known = groups.iter_mut().find(|group| {
                group.subject == run.subject
                    && group.reason == run.reason
                    && group.advice == run.advice()
            });
            if let Some(group) = known {
                group.runs += 1;
                if !group.documents.contains(&run.document.as_str()) {
                    group.documents.push(&run.document);
                }
                continue;
            }
            let error = run.error.as_deref().unwrap_or("no reason was given");
            groups.push(InconclusiveGroup {
                subject: &run.subject,
                reason: run.reason,
                runs: 1,
                documents: vec![&run.document],
                what: match run.reason {
                    Some(reason) => reason.sentence(),
                    None => error,
                },
                why: run.why(),
                advice: run.advice(),
            });
        }
        groups.sort_by_key(|group| Reverse(group.runs));
        groups
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

/// Runs of one subject that are inconclusive for the same reason.
pub(crate) struct InconclusiveGroup<'a> {
    pub(crate) subject: &'a str,
    /// None: the runs have no reason, only an error.
    pub(crate) reason: Option<InconclusiveReason>,
    pub(crate) runs: u64,
    /// The attacks they belong to, in the order of the plan.
    pub(crate) documents: Vec<&'a str>,
    /// What happened.
    pub(crate) what: &'a str,
    /// What is known of the first run.
    pub(crate) why: Option<&'a str>,
    /// What to do about it.
    pub(crate) advice: Option<&'static str>,
}

impl<'a> MatrixCell<'a> {
    /// Whether the attack got through, fully or in part.
    pub(crate) fn gave_way(&self) -> bool {
        self.summary.outcome.is_some_and(RunOutcome::gave_way)
    }

    /// What is said where there are no runs.
    pub(crate) fn absence(&self) -> &'static str {
        if self.subject.guard.is_some() && !self.document.is_guardable() {
            "not guarded"
        } else {
            "not run"
        }
    }

    /// What happened, in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let success = &self.summary.attacks.success;
        let findings = self.findings();
        let what = findings
            .first()
            .and_then(|finding| finding.info?.description.as_deref());
        let what = what.map(|what| {
            let what = what.trim().trim_end_matches('.');
            format!(": {}", in_a_sentence(what))
        });
        // A hit that the control has, too, is not the attack's.
        let control = if self.summary.twins.false_positives.some > 0 {
            " The control run matched, too: the agent does the same without the attack, so this hit may not be the attack's doing."
        } else {
            ""
        };
        format!(
            "The attack got through against {} ({} of {} runs){}.{control}",
            self.subject.name,
            success.some,
            success.all,
            what.unwrap_or_default()
        )
    }

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
        // The worst of them says what happened.
        findings.sort_by_key(|finding| {
            let tier = finding.info.and_then(|info| info.tier.as_deref());
            Reverse(tier_rank(tier))
        });
        findings
    }

    /// The most frequent reason for which runs are inconclusive.
    pub(crate) fn reason(&self) -> Option<InconclusiveReason> {
        let reasons = top_reasons(&self.summary.reasons);
        reasons.first().map(|(reason, _)| *reason)
    }

    /// What to do about the most frequent reason, by the first such run.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        let reason = self.reason()?;
        let mut runs = self.attack_runs().filter(|run| run.reason == Some(reason));
        runs.find_map(RunRecord::advice)
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
            .map(|(name, some, all)| format!("{} {some}/{all}", words(name)))
            .collect();
        conditions.join(", ")
    }

    /// The conditions that did not hold in every run, in one line.
    pub(crate) fn unmet_line(&self) -> String {
        let conditions = self.conditions().into_iter();
        let unmet: Vec<String> = conditions
            .filter(|(_, some, all)| some < all)
            .map(|(name, some, all)| format!("{} {some}/{all}", words(name)))
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

/// How severe a level is; 0 for what the format does not have.
pub(crate) fn severity_rank(level: Option<&str>) -> usize {
    const LEVELS: [&str; 5] = ["informational", "low", "medium", "high", "critical"];
    let place = LEVELS.iter().position(|known| Some(*known) == level);
    place.map_or(0, |place| place + 1)
}

/// What people want to read first.
fn outcome_rank(outcome: Option<RunOutcome>) -> u8 {
    match outcome {
        Some(RunOutcome::Exploited) => 0,
        Some(RunOutcome::Partial) => 1,
        Some(RunOutcome::Inconclusive) => 2,
        Some(RunOutcome::Resisted) => 3,
        None => 4,
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
