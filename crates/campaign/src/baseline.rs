//! The comparison with an earlier result: what is new, what is fixed, what is as it was.

use crate::count::{Counts, Tally};
use crate::result::CampaignResult;
use crate::statistics::fisher;

/// How a document and a subject compare with before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It never gave way before, and does now.
    New,
    /// It gave way before, and does so clearly more often now.
    Worse,
    /// It gave way before, and does so clearly less often now.
    Better,
    /// It gave way before, and does not now.
    Fixed,
    /// What differs may be chance.
    Unchanged,
    /// One of the two says nothing: not there, not reached, or without a verdict.
    Unknown,
}

impl ChangeKind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Fixed => "fixed",
            Self::Unchanged => "unchanged",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the subject has become weaker.
    #[must_use]
    pub fn is_regression(self) -> bool {
        matches!(self, Self::New | Self::Worse)
    }
}

/// A document and a subject, now and before.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The id of the document.
    pub document: String,
    /// The name of the subject.
    pub subject: String,
    /// What changed.
    pub kind: ChangeKind,
    /// Before.
    pub before: Option<Tally>,
    /// Now.
    pub now: Option<Tally>,
    /// How likely a difference at least as great is by chance, where there is one to judge.
    pub p: Option<f64>,
    /// Whether there were too few runs for chance to be ruled out, whatever had come of them; then
    /// what was seen counts as it is.
    pub too_few: bool,
}

/// Compares two results, in the order of the documents and subjects of `now`; what only `before` has
/// comes last. A difference counts when it is less likely by chance than `threshold`.
#[must_use]
pub fn compare(now: &CampaignResult, before: &CampaignResult, threshold: f64) -> Vec<Change> {
    let (now_counts, before_counts) = (Counts::of(now), Counts::of(before));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for result in [now, before] {
        for document in &result.documents {
            for subject in &result.subjects {
                let pair = (document.id.clone(), subject.name.clone());
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    pairs
        .into_iter()
        .filter_map(|pair| {
            let (now, before) = (now_counts.cells.get(&pair), before_counts.cells.get(&pair));
            if now.is_none() && before.is_none() {
                return None;
            }
            let (kind, p, too_few) = judge(now, before, threshold);
            Some(Change {
                document: pair.0,
                subject: pair.1,
                kind,
                before: before.cloned(),
                now: now.cloned(),
                p,
                too_few,
            })
        })
        .collect()
}

/// What two tallies say together.
pub(crate) fn judge(
    now: Option<&Tally>,
    before: Option<&Tally>,
    threshold: f64,
) -> (ChangeKind, Option<f64>, bool) {
    let (Some(now), Some(before)) = (now, before) else {
        return (ChangeKind::Unknown, None, false);
    };
    let (a, b) = (
        (now.gave_way(), now.counted()),
        (before.gave_way(), before.counted()),
    );
    if a.1 == 0 || b.1 == 0 {
        return (ChangeKind::Unknown, None, false);
    }
    let p = fisher(a, b);
    // Of one run each, nothing is ever significant; all that can be said is what was seen.
    let too_few = fisher((a.1, a.1), (0, b.1)) > threshold;
    let clear = p <= threshold || too_few;
    let more = u128::from(a.0) * u128::from(b.1) > u128::from(b.0) * u128::from(a.1);
    let kind = match (a.0, b.0) {
        (0, 0) => ChangeKind::Unchanged,
        (_, 0) if clear => ChangeKind::New,
        (0, _) if clear => ChangeKind::Fixed,
        _ if p <= threshold && more => ChangeKind::Worse,
        _ if p <= threshold => ChangeKind::Better,
        _ => ChangeKind::Unchanged,
    };
    (kind, Some(p), too_few)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(gave_way: u64, all: u64) -> Tally {
        Tally {
            exploited: gave_way,
            resisted: all - gave_way,
            ..Tally::default()
        }
    }

    #[test]
    fn kinds() {
        use ChangeKind::{Better, Fixed, New, Unchanged, Unknown, Worse};
        for (now, before, kind) in [
            ((1, 1), (0, 1), New),
            ((0, 1), (1, 1), Fixed),
            ((0, 1), (0, 1), Unchanged),
            ((1, 1), (1, 1), Unchanged),
            ((0, 0), (1, 1), Unknown),
            // With ten runs each, one of ten may be chance, and eight of ten are not.
            ((1, 10), (0, 10), Unchanged),
            ((8, 10), (0, 10), New),
            ((0, 10), (8, 10), Fixed),
            ((9, 10), (2, 10), Worse),
            ((2, 10), (9, 10), Better),
            ((5, 10), (4, 10), Unchanged),
        ] {
            let (found, ..) = judge(
                Some(&tally(now.0, now.1)),
                Some(&tally(before.0, before.1)),
                0.05,
            );
            assert_eq!(found, kind, "{now:?} {before:?}");
        }
        assert_eq!(judge(Some(&tally(1, 1)), None, 0.05).0, Unknown);
    }

    #[test]
    fn what_only_one_has_is_there_and_unknown() {
        use crate::count::tests::{result, run};
        use crate::result::{Outcome, SubjectInfo};
        let with = |runs| {
            let mut result = result(runs);
            result.subjects.push(SubjectInfo {
                name: "s".to_owned(),
                kind: "sim".to_owned(),
                simulation: true,
                description: String::new(),
            });
            result
        };
        let now = with(vec![run("A", "s", 1, Outcome::Exploited)]);
        let before = with(vec![run("B", "s", 1, Outcome::Exploited)]);
        let kinds: Vec<_> = compare(&now, &before, 0.05)
            .into_iter()
            .map(|change| (change.document, change.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("A".to_owned(), ChangeKind::Unknown),
                ("B".to_owned(), ChangeKind::Unknown)
            ]
        );
    }
}
