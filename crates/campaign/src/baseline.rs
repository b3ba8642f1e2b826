//! The comparison with an earlier result: what is new, what is fixed, what is as it was.
//!
//! A gate that looks at many documents and fails when any of them differs fails by chance. So the chance of a false alarm is
//! controlled over the whole gate: it is divided among the subjects, and half of each share goes to the documents one
//! by one, the other half to all documents together.
//!
//! Rates count runs that prove something. Which runs those are may itself change: what gives way is never inconclusive, so a
//! campaign in which more runs are has a higher rate of the same subject. Whatever is called a rise is therefore one, too, if
//! today's inconclusive runs are counted as attacks that did not get through.

use std::collections::{HashMap, HashSet};

use crate::comparison::{CellComparison, Change, Comparison, Incomparable, SubjectComparison};
use crate::plan::Plan;
use crate::result::{CampaignResult, DocumentInfo, SubjectInfo};
use crate::statistics::{CountPair, Rate, adjusted_rises, rise, rise_of_all};
use crate::summary::{CampaignSummary, Counts};

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
    let (counted_now, counted_before) = (CampaignSummary::of(now), CampaignSummary::of(before));
    let (runs_now, runs_before) = (runs(&counted_now), runs(&counted_before));
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
            before: runs_before.get(&pair).map(|counts| counts.success),
            now: runs_now.get(&pair).map(|counts| counts.success),
            inconclusive_before: runs_before
                .get(&pair)
                .map_or(0, |counts| counts.inconclusive),
            inconclusive_now: runs_now.get(&pair).map_or(0, |counts| counts.inconclusive),
            obscured: false,
            p_value: None,
            adjusted: None,
        });
    }
    let has_shared = runs_now.iter().any(|(pair, counts)| {
        let before = runs_before.get(pair);
        counts.runs > 0 && before.is_some_and(|counts| counts.runs > 0)
    });
    let incomparable = incomparable(now, before, has_shared);
    let mut comparison = Comparison {
        baseline: name.to_owned(),
        baseline_started_at: before.started_at.clone(),
        threshold,
        incomparable,
        advice: None,
        subjects: Vec::new(),
        cells,
    };
    if incomparable.is_none() {
        judge_subjects(&mut comparison);
    }
    comparison
}

/// The attacks of each document and subject.
fn runs(summary: &CampaignSummary) -> HashMap<(&str, &str), &Counts> {
    let cells = summary.cells.iter();
    let runs = cells.map(|cell| {
        let pair = (cell.document.as_str(), cell.subject.as_str());
        (pair, &cell.attacks)
    });
    runs.collect()
}

/// Whether every planned run of a campaign was made. One that ended on what it saw is no fair sample: where it stopped at a
/// success, the rate is too high, and among those that went on, too low.
#[must_use]
pub fn is_fair_sample(result: &CampaignResult) -> bool {
    result.complete && result.spared == 0
}

/// Why two results cannot be compared, whatever they counted.
fn incomparable(
    now: &CampaignResult,
    before: &CampaignResult,
    has_shared: bool,
) -> Option<Incomparable> {
    if !is_fair_sample(before) {
        Some(Incomparable::BaselineStopped)
    } else if !is_fair_sample(now) {
        Some(Incomparable::CampaignStopped)
    } else {
        (!has_shared).then_some(Incomparable::NothingShared)
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
        let runs: Vec<ComparedRuns> = cells.iter().map(|cell| cell.runs()).collect();
        let judged = judge(&runs, level);
        for (cell, document) in cells.iter_mut().zip(&judged.documents) {
            cell.change = document.change;
            cell.obscured = document.obscured;
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
            obscured: judged.obscured,
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
    /// Whether it may have become weaker as a whole, and inconclusive runs of the baseline hide it.
    pub obscured: bool,
    /// Whether any result of so many runs could have been a regression.
    pub could_find: bool,
}

/// What the counts of one document say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedDocument {
    /// What changed.
    pub change: Change,
    /// Whether it may have risen, and inconclusive runs of the baseline hide it.
    pub obscured: bool,
    /// How likely so great a difference is by chance, in the direction it has.
    pub p_value: Option<f64>,
    /// The same, adjusted for all documents that were looked at.
    pub adjusted: Option<f64>,
}

/// The runs of a document and a subject, then and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedRuns {
    /// Those that prove something, and how many of them gave way.
    pub proved: CountPair,
    /// How many prove nothing now.
    pub inconclusive_now: u64,
    /// How many proved nothing before.
    pub inconclusive_before: u64,
}

impl From<CountPair> for ComparedRuns {
    /// Runs of which each proves something.
    fn from(proved: CountPair) -> Self {
        Self {
            proved,
            inconclusive_now: 0,
            inconclusive_before: 0,
        }
    }
}

impl ComparedRuns {
    fn all_now(self) -> (u64, u64) {
        let (some, all) = self.proved.now;
        (some, all.saturating_add(self.inconclusive_now))
    }

    fn all_before(self) -> (u64, u64) {
        let (some, all) = self.proved.before;
        (some, all.saturating_add(self.inconclusive_before))
    }

    /// What a rise has to be seen in: nothing of it may come from runs that prove nothing now.
    fn rise(self) -> CountPair {
        CountPair::new(self.all_now(), self.proved.before)
    }

    /// The same for what has fallen, as a rise of the other direction.
    fn fall(self) -> CountPair {
        CountPair::new(self.all_before(), self.proved.now)
    }

    /// All runs of both. A rise that is seen only here may be hidden by runs that proved nothing before.
    fn all(self) -> CountPair {
        CountPair::new(self.all_now(), self.all_before())
    }
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
/// use proofhouse_campaign::baseline::{ComparedRuns, judge};
/// use proofhouse_campaign::comparison::Change;
/// use proofhouse_campaign::statistics::CountPair;
///
/// let documents = [((5, 5), (0, 5)), ((1, 1), (0, 1))];
/// let runs = documents.map(|(now, before)| CountPair::new(now, before).into());
/// let judged = judge(&runs, 0.05);
/// assert_eq!(judged.documents[0].change, Change::New);
/// assert_eq!(judged.documents[1].change, Change::Unknown, "one run says nothing");
///
/// // Six of ten runs prove nothing now: three of ten gave way then, and do so now.
/// let fewer = ComparedRuns { inconclusive_now: 6, ..CountPair::new((3, 4), (3, 10)).into() };
/// assert_eq!(judge(&[fewer], 0.05).documents[0].change, Change::Unchanged);
/// ```
#[must_use]
pub fn judge(runs: &[ComparedRuns], level: f64) -> JudgedSubject {
    let half = level / 2.0;
    let compared = runs.iter().filter(|one| one.proved.has_both());
    let pairs = |of: fn(ComparedRuns) -> CountPair| -> Vec<CountPair> {
        compared.clone().map(|one| of(*one)).collect()
    };
    let (rises, falls) = (pairs(ComparedRuns::rise), pairs(ComparedRuns::fall));
    let all = pairs(ComparedRuns::all);
    let mut adjusted = adjusted_rises(&rises)
        .into_iter()
        .zip(adjusted_rises(&falls))
        .zip(adjusted_rises(&all));
    let documents = runs.iter().map(|one| {
        let adjusted = if one.proved.has_both() {
            adjusted.next()
        } else {
            None
        };
        let Some(((risen, fallen), risen_of_all)) = adjusted else {
            return JudgedDocument {
                change: Change::Unknown,
                obscured: false,
                p_value: None,
                adjusted: None,
            };
        };
        let (p_risen, p_fallen) = (rise(one.rise()), rise(one.fall()));
        let (p_value, adjusted) = if p_risen <= p_fallen {
            (p_risen, risen)
        } else {
            (p_fallen, fallen)
        };
        let obscured = risen > half && risen_of_all <= half;
        JudgedDocument {
            change: if obscured {
                Change::Unknown
            } else {
                change_of(one.proved, risen <= half, fallen <= half, half)
            },
            obscured,
            p_value: Some(p_value),
            adjusted: Some(adjusted),
        }
    });
    let documents = documents.collect();
    let greatest: Vec<CountPair> = pairs(|one| one.proved.greatest_rise());
    let could_find = !greatest.is_empty() && rise_of_all(&greatest) <= half;
    // A document whose runs all prove nothing now counts here, too: only documents that nothing got through can be such, and
    // without them the rest would look weaker than the subject is.
    let of_all = |of: fn(ComparedRuns) -> CountPair| {
        let pairs = runs.iter().map(|one| of(*one));
        let pairs: Vec<CountPair> = pairs.filter(|pair| pair.has_both()).collect();
        rise_of_all(&pairs)
    };
    let (risen, fallen) = (of_all(ComparedRuns::rise), of_all(ComparedRuns::fall));
    let obscured = risen > half && of_all(ComparedRuns::all) <= half;
    let together = if !could_find || obscured {
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
        p_value: (!greatest.is_empty()).then(|| risen.min(fallen)),
        obscured,
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
            let judged = judge(&[CountPair::new(now, before).into()], 0.05);
            assert_eq!(judged.documents[0].change, change, "{now:?} {before:?}");
        }
    }

    #[test]
    fn another_share_of_inconclusive_runs_is_no_change() {
        let judged = |now, inconclusive_now, before, inconclusive_before| {
            let runs = ComparedRuns {
                proved: CountPair::new(now, before),
                inconclusive_now,
                inconclusive_before,
            };
            let judged = judge(&[runs], 0.05);
            (
                judged.documents[0].change,
                judged.documents[0].obscured,
                judged.together,
            )
        };
        use Change::{Better, New, Unchanged, Unknown, Worse};
        // The same subject, and most runs of today prove nothing.
        assert_eq!(
            judged((6, 6), 14, (6, 20), 0),
            (Unchanged, false, Unchanged)
        );
        // The same the other way round: the rate has not fallen.
        assert_eq!(
            judged((6, 20), 0, (6, 6), 14),
            (Unchanged, false, Unchanged)
        );
        // Nor where both have them.
        assert_eq!(
            judged((6, 6), 14, (6, 6), 14),
            (Unchanged, false, Unchanged)
        );
        // A rise that is one however they are counted.
        assert_eq!(judged((16, 18), 2, (0, 20), 0), (New, false, Worse));
        assert_eq!(judged((2, 20), 0, (16, 18), 2), (Better, false, Better));
        // What got through was counted over few runs then, and may have risen since.
        assert_eq!(judged((16, 20), 0, (4, 5), 15), (Unknown, true, Unknown));
    }

    #[test]
    fn many_small_rises_are_found_together() {
        let judged = judge(&[CountPair::new((1, 1), (0, 1)).into(); 6], 0.05);
        assert_eq!(judged.together, Change::Worse);
        assert!(judged.could_find && judged.has_regressed());
        let unknown = |one: &JudgedDocument| one.change == Change::Unknown;
        assert!(judged.documents.iter().all(unknown));
        let judged = judge(&[CountPair::new((1, 1), (0, 1)).into(); 5], 0.05);
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
        use crate::gates::Gate;
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
        assert_eq!(comparison.incomparable, Some(Incomparable::NothingShared));
        assert_eq!(comparison.gate(), Gate::NothingProved);
        let same = compare(&now, &now, "before.json", 0.05);
        assert_eq!((same.incomparable, same.gate()), (None, Gate::Passed));
        assert_eq!(same.obstacle(), None);
        let nothing = result(vec![run("A", "s", 1, RunOutcome::Inconclusive)]);
        let comparison = compare(&now, &nothing, "before.json", 0.05);
        assert_eq!(comparison.incomparable, None);
        let obstacle = comparison.obstacle().unwrap();
        assert!(obstacle.contains("no attack has conclusive"), "{obstacle}");
    }
}
