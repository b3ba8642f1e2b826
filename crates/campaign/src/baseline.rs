//! The comparison with an earlier result: what is new, what is fixed, what is as it was.
//!
//! A gate that looks at many documents and fails when any of them differs fails by chance. So the chance of a false alarm is
//! controlled over the whole gate: it is divided among the subjects, and half of each share goes to the documents one
//! by one, the other half to all documents together.

use std::collections::{HashMap, HashSet};

use crate::comparison::{CellComparison, Change, Comparison, Incomparable, SubjectComparison};
use crate::plan::Plan;
use crate::result::{CampaignResult, DocumentInfo, SubjectInfo};
use crate::statistics::{CountPair, Rate, adjusted_rises, rise, rise_of_all};
use crate::summary::CampaignSummary;

/// How likely a false alarm of the whole gate may be, unless told otherwise.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// What a plan does not have in common with an earlier result, so that nothing can be compared: no subject, or no
/// document.
#[must_use]
pub fn missing_in_common(
    plan: &Plan,
    subjects: &[SubjectInfo],
    before: &CampaignResult,
) -> Option<&'static str> {
    let has_subject = |one: &SubjectInfo| subjects.iter().any(|other| other.name == one.name);
    let has_document = |one: &DocumentInfo| {
        let mut documents = plan.documents.iter();
        documents.any(|other| other.info.id == one.id)
    };
    if !before.subjects.iter().any(has_subject) {
        return Some("subject");
    }
    let shares = before.documents.iter().any(has_document);
    (!shares).then_some("document")
}

/// Compares two results, in the order of the documents and subjects of `now`; what only `before` has
/// comes last. If nothing has changed, a regression is found with a probability of at most `threshold`, whatever the
/// number of documents and subjects. `name` is what `before` is called.
#[must_use]
pub fn compare(
    now: &CampaignResult,
    before: &CampaignResult,
    name: &str,
    threshold: f64,
) -> Comparison {
    let incomparable = incomparable(now, before);
    let (counted_now, counted_before) = (CampaignSummary::of(now), CampaignSummary::of(before));
    let (rates_now, rates_before) = (rates(&counted_now), rates(&counted_before));
    let mut seen = HashSet::new();
    let mut cells = Vec::new();
    for cell in counted_now.cells.iter().chain(&counted_before.cells) {
        let pair = (cell.document.as_str(), cell.subject.as_str());
        if !seen.insert(pair) {
            continue;
        }
        cells.push(CellComparison {
            document: cell.document.clone(),
            subject: cell.subject.clone(),
            change: Change::Unknown,
            before: rates_before.get(&pair).copied(),
            now: rates_now.get(&pair).copied(),
            p_value: None,
            adjusted: None,
        });
    }
    let mut comparison = Comparison {
        baseline: name.to_owned(),
        baseline_started_at: before.started_at.clone(),
        threshold,
        incomparable,
        subjects: Vec::new(),
        cells,
    };
    if incomparable.is_none() {
        judge_subjects(&mut comparison);
    }
    comparison
}

/// The attack success rate of each document and subject.
fn rates(summary: &CampaignSummary) -> HashMap<(&str, &str), Rate> {
    let cells = summary.cells.iter();
    let rates = cells.map(|cell| {
        let pair = (cell.document.as_str(), cell.subject.as_str());
        (pair, cell.attacks.success)
    });
    rates.collect()
}

/// Whether every planned run of a campaign was made. One that ended on what it saw is no fair sample: where it stopped at a
/// success, the rate is too high, and among those that went on, too low.
#[must_use]
pub fn is_fair_sample(result: &CampaignResult) -> bool {
    result.complete && result.spared == 0
}

/// Why two results cannot be compared, whatever they counted.
fn incomparable(now: &CampaignResult, before: &CampaignResult) -> Option<Incomparable> {
    if !is_fair_sample(before) {
        Some(Incomparable::BaselineStopped)
    } else if !is_fair_sample(now) {
        Some(Incomparable::CampaignStopped)
    } else {
        None
    }
}

/// Judges the cells, subject by subject.
fn judge_subjects(comparison: &mut Comparison) {
    let mut names: Vec<String> = Vec::new();
    for cell in &comparison.cells {
        if cell.pair().has_both() && !names.contains(&cell.subject) {
            names.push(cell.subject.clone());
        }
    }
    let level = comparison.threshold / names.len().max(1) as f64;
    for name in names {
        let cells = comparison.cells.iter_mut();
        let mut cells: Vec<&mut CellComparison> =
            cells.filter(|cell| cell.subject == name).collect();
        let pairs: Vec<CountPair> = cells.iter().map(|cell| cell.pair()).collect();
        let judged = judge(&pairs, level);
        for (cell, document) in cells.iter_mut().zip(&judged.documents) {
            cell.change = document.change;
            cell.p_value = document.p_value;
            cell.adjusted = document.adjusted;
        }
        let compared = pairs.iter().filter(|pair| pair.has_both());
        let total = |of: fn(&CountPair) -> (u64, u64)| {
            let counts = compared.clone().map(of);
            let (some, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            Rate::new(some, all)
        };
        comparison.subjects.push(SubjectComparison {
            subject: name,
            change: judged.together,
            documents: compared.clone().count() as u64,
            before: total(|pair| pair.before),
            now: total(|pair| pair.now),
            p_value: judged.p_value,
            could_find: judged.could_find,
        });
    }
}

/// What the counts of one subject say.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedSubject {
    /// Each document, in the order given.
    pub documents: Vec<JudgedDocument>,
    /// All documents together.
    pub together: Change,
    /// How likely so great a difference of all together is by chance, in the direction it has.
    pub p_value: Option<f64>,
    /// Whether any result of so many runs could have been a regression.
    pub could_find: bool,
}

/// What the counts of one document say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedDocument {
    /// What changed.
    pub change: Change,
    /// How likely so great a difference is by chance, in the direction it has.
    pub p_value: Option<f64>,
    /// The same, adjusted for all documents that were looked at.
    pub adjusted: Option<f64>,
}

impl JudgedSubject {
    /// Whether the subject has become weaker, in a document or as a whole.
    #[must_use]
    pub fn has_regressed(&self) -> bool {
        let mut documents = self.documents.iter();
        self.together.is_regression() || documents.any(|one| one.change.is_regression())
    }
}

/// Judges the documents of one subject. If nothing has changed, a regression is found with a probability of at most
/// `level`, and an improvement too.
///
/// ```
/// use proofhouse_campaign::baseline::judge;
/// use proofhouse_campaign::comparison::Change;
/// use proofhouse_campaign::statistics::CountPair;
///
/// let judged = judge(&[CountPair::new((5, 5), (0, 5)), CountPair::new((1, 1), (0, 1))], 0.05);
/// assert_eq!(judged.documents[0].change, Change::New);
/// assert_eq!(judged.documents[1].change, Change::Unknown, "one run says nothing");
/// ```
#[must_use]
pub fn judge(pairs: &[CountPair], level: f64) -> JudgedSubject {
    let half = level / 2.0;
    let compared: Vec<CountPair> = pairs
        .iter()
        .copied()
        .filter(|pair| pair.has_both())
        .collect();
    let reversed: Vec<CountPair> = compared.iter().map(|pair| pair.reversed()).collect();
    let mut adjusted = adjusted_rises(&compared)
        .into_iter()
        .zip(adjusted_rises(&reversed));
    let documents = pairs.iter().map(|pair| {
        let adjusted = if pair.has_both() {
            adjusted.next()
        } else {
            None
        };
        let Some((risen, fallen)) = adjusted else {
            return JudgedDocument {
                change: Change::Unknown,
                p_value: None,
                adjusted: None,
            };
        };
        let (p_risen, p_fallen) = (rise(*pair), rise(pair.reversed()));
        let (p_value, adjusted) = if p_risen <= p_fallen {
            (p_risen, risen)
        } else {
            (p_fallen, fallen)
        };
        JudgedDocument {
            change: change_of(*pair, risen <= half, fallen <= half, half),
            p_value: Some(p_value),
            adjusted: Some(adjusted),
        }
    });
    let documents = documents.collect();
    let greatest: Vec<CountPair> = compared.iter().map(|pair| pair.greatest_rise()).collect();
    let could_find = !compared.is_empty() && rise_of_all(&greatest) <= half;
    let (risen, fallen) = (rise_of_all(&compared), rise_of_all(&reversed));
    let together = if !could_find {
        Change::Unknown
    } else if risen <= half {
        Change::Worse
    } else if fallen <= half {
        Change::Better
    } else {
        Change::Unchanged
    };
    JudgedSubject {
        documents,
        together,
        p_value: (!compared.is_empty()).then(|| risen.min(fallen)),
        could_find,
    }
}

/// What changed, when it is known whether the rate has risen or fallen.
fn change_of(pair: CountPair, risen: bool, fallen: bool, level: f64) -> Change {
    if risen && pair.before.0 == 0 {
        Change::New
    } else if risen {
        Change::Worse
    } else if fallen && pair.now.0 == 0 {
        Change::Fixed
    } else if fallen {
        Change::Better
    } else if rise(pair.greatest_rise()) > level {
        // Whatever had come of so few runs, it would say nothing.
        Change::Unknown
    } else {
        Change::Unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        use Change::{Better, Fixed, New, Unchanged, Unknown, Worse};
        for (now, before, change) in [
            // One run each says nothing, and neither do three.
            ((1, 1), (0, 1), Unknown),
            ((0, 1), (1, 1), Unknown),
            ((0, 1), (0, 1), Unknown),
            ((3, 3), (0, 3), Unknown),
            ((0, 1), (1, 5), Unknown),
            ((0, 0), (1, 1), Unknown),
            ((5, 5), (0, 0), Unknown),
            // Four can.
            ((4, 4), (0, 4), New),
            ((3, 4), (0, 4), Unchanged),
            ((0, 4), (4, 4), Fixed),
            // With ten runs each, one of ten may be chance, and eight of ten are not.
            ((1, 10), (0, 10), Unchanged),
            ((8, 10), (0, 10), New),
            ((0, 10), (8, 10), Fixed),
            ((9, 10), (2, 10), Worse),
            ((2, 10), (9, 10), Better),
            ((5, 10), (4, 10), Unchanged),
        ] {
            let judged = judge(&[CountPair::new(now, before)], 0.05);
            assert_eq!(judged.documents[0].change, change, "{now:?} {before:?}");
        }
    }

    #[test]
    fn many_small_rises_are_found_together() {
        let judged = judge(&[CountPair::new((1, 1), (0, 1)); 6], 0.05);
        assert_eq!(judged.together, Change::Worse);
        assert!(judged.could_find && judged.has_regressed());
        let unknown = |one: &JudgedDocument| one.change == Change::Unknown;
        assert!(judged.documents.iter().all(unknown));
        let judged = judge(&[CountPair::new((1, 1), (0, 1)); 5], 0.05);
        assert_eq!(
            (judged.together, judged.could_find),
            (Change::Unknown, false)
        );
        assert_eq!(judge(&[], 0.05).p_value, None);
    }

    #[test]
    fn subjects_share_the_error() {
        use crate::result::RunOutcome;
        use crate::store::tests::{result, run};
        let campaign = |outcome: RunOutcome, subjects: &[&str]| {
            let mut runs = Vec::new();
            for subject in subjects {
                runs.extend((1..=4).map(|repeat| run("A", subject, repeat, outcome)));
            }
            let mut result = result(runs);
            result.documents.truncate(1);
            let described = result.subjects.clone();
            result.subjects = subjects
                .iter()
                .map(|name| SubjectInfo {
                    name: (*name).to_owned(),
                    ..described[0].clone()
                })
                .collect();
            result
        };
        let changes = |subjects: &[&str]| {
            let now = campaign(RunOutcome::Exploited, subjects);
            let before = campaign(RunOutcome::Resisted, subjects);
            let comparison = compare(&now, &before, "before.json", 0.05);
            let cells = comparison.cells.iter();
            cells.map(|cell| cell.change).collect::<Vec<_>>()
        };
        assert_eq!(changes(&["s"]), [Change::New]);
        assert_eq!(changes(&["s", "t"]), [Change::Unknown; 2]);
    }

    #[test]
    fn what_only_one_has_is_there() {
        use crate::result::RunOutcome;
        use crate::store::tests::{result, run};
        let now = result(vec![run("A", "s", 1, RunOutcome::Exploited)]);
        let before = result(vec![run("B", "s", 1, RunOutcome::Exploited)]);
        let comparison = compare(&now, &before, "before.json", 0.05);
        let found: Vec<_> = comparison
            .cells
            .iter()
            .map(|cell| (cell.document.as_str(), cell.change))
            .collect();
        assert_eq!(found, [("A", Change::Unknown), ("B", Change::Unknown)]);
        assert_eq!(comparison.unknown_successes(), 1);
        assert!(comparison.is_blind());
    }
}
