//! The comparison with an earlier result: what is new, what is fixed, what is as it was.

use crate::comparison::{CellComparison, Change, Comparison};
use crate::plan::Plan;
use crate::result::{CampaignResult, DocumentInfo, SubjectInfo};
use crate::statistics::{Rate, fisher};
use crate::summary::CampaignSummary;

/// How unlikely a difference must be by chance to count as one, unless told otherwise.
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
/// comes last. A difference counts when it is less likely by chance than `threshold`. `name` is what
/// `before` is called.
#[must_use]
pub fn compare(
    now: &CampaignResult,
    before: &CampaignResult,
    name: &str,
    threshold: f64,
) -> Comparison {
    let (counted_now, counted_before) = (CampaignSummary::of(now), CampaignSummary::of(before));
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for cell in counted_now.cells.iter().chain(&counted_before.cells) {
        let pair = (cell.document.as_str(), cell.subject.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let cells = pairs.into_iter().map(|(document, subject)| {
        let rate = |summary: &CampaignSummary| {
            summary
                .cell(document, subject)
                .map(|cell| cell.attacks.success)
        };
        let (now, before) = (rate(&counted_now), rate(&counted_before));
        let (change, p_value) = judge(now, before, threshold);
        CellComparison {
            document: document.to_owned(),
            subject: subject.to_owned(),
            change,
            before,
            now,
            p_value,
        }
    });
    Comparison {
        baseline: name.to_owned(),
        baseline_started_at: before.started_at.clone(),
        threshold,
        cells: cells.collect(),
    }
}

/// What two rates say together, and how likely a difference at least as great is by chance.
pub(crate) fn judge(
    now: Option<Rate>,
    before: Option<Rate>,
    threshold: f64,
) -> (Change, Option<f64>) {
    let pair = |rate: Option<Rate>| rate.map_or((0, 0), |rate| (rate.some, rate.all));
    let (a, b) = (pair(now), pair(before));
    match (a, b) {
        // The baseline knows nothing of it, so it cannot excuse it either.
        ((1.., _), (_, 0)) => return (Change::New, None),
        ((_, 0), _) | (_, (_, 0)) => return (Change::Unknown, None),
        _ => {}
    }
    let p = fisher(a, b);
    // Of one run each, nothing is ever significant; all that can be said is what was seen.
    let too_few = fisher((a.1, a.1), (0, b.1)) > threshold;
    let clear = p <= threshold || too_few;
    let more = u128::from(a.0) * u128::from(b.1) > u128::from(b.0) * u128::from(a.1);
    let change = match (a.0, b.0) {
        (0, 0) => Change::Unchanged,
        (_, 0) if clear => Change::New,
        (0, _) if clear => Change::Fixed,
        _ if p <= threshold && more => Change::Worse,
        _ if p <= threshold => Change::Better,
        _ => Change::Unchanged,
    };
    (change, Some(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        use Change::{Better, Fixed, New, Unchanged, Unknown, Worse};
        for (now, before, change) in [
            ((1, 1), (0, 1), New),
            ((0, 1), (1, 1), Fixed),
            ((0, 1), (0, 1), Unchanged),
            ((1, 1), (1, 1), Unchanged),
            ((0, 0), (1, 1), Unknown),
            ((0, 1), (0, 0), Unknown),
            ((1, 1), (0, 0), New),
            // With ten runs each, one of ten may be chance, and eight of ten are not.
            ((1, 10), (0, 10), Unchanged),
            ((8, 10), (0, 10), New),
            ((0, 10), (8, 10), Fixed),
            ((9, 10), (2, 10), Worse),
            ((2, 10), (9, 10), Better),
            ((5, 10), (4, 10), Unchanged),
        ] {
            let rate = |(some, all)| Some(Rate::new(some, all));
            let (found, _) = judge(rate(now), rate(before), 0.05);
            assert_eq!(found, change, "{now:?} {before:?}");
        }
        let alone = |some, all| judge(Some(Rate::new(some, all)), None, 0.05);
        assert_eq!(alone(1, 3), (New, None));
        assert_eq!(alone(0, 3), (Unknown, None));
        assert_eq!(alone(0, 0), (Unknown, None));
        assert_eq!(judge(None, Some(Rate::new(1, 1)), 0.05).0, Unknown);
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
        assert_eq!(found, [("A", Change::New), ("B", Change::Unknown)]);
    }
}
