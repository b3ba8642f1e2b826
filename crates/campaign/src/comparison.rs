//! What changed since an earlier campaign, and whether that can be chance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::CampaignResult;
use crate::statistics::{Rate, fisher};
use crate::summary::{Cell, Summary};

/// How unlikely a difference must be by chance to count as one, unless told otherwise.
pub const DEFAULT_THRESHOLD: f64 = 0.05;

/// A campaign beside an earlier one, its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What the baseline is called, such as its file.
    pub baseline: String,
    /// When the baseline began, RFC 3339.
    pub baseline_started_at: String,
    /// How unlikely a difference must be by chance to count as one.
    pub threshold: f64,
    /// Every document and subject of either, those of the new campaign first.
    pub cells: Vec<CellComparison>,
}

/// A document and a subject, then and now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellComparison {
    /// The id of the document.
    pub document: String,
    /// The name of the subject.
    pub subject: String,
    /// What changed.
    pub change: Change,
    /// The attack success rate of the baseline, where it has the pair.
    pub before: Option<Rate>,
    /// The attack success rate now, where the pair is still there.
    pub now: Option<Rate>,
    /// How likely so great a difference is by chance (Fisher's exact test); absent where there is
    /// nothing to compare.
    pub p_value: Option<f64>,
}

/// What changed in a document and a subject.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The attack gets through more often, beyond chance; or in every run that shows it, and in none
    /// before.
    New,
    /// The attack gets through less often, beyond chance; or in no run that shows it, and in every one
    /// before.
    Fixed,
    /// No difference, or none beyond chance.
    Unchanged,
    /// One of the two says nothing about the subject: the attack did not reach it.
    Unproved,
    /// The baseline does not have it.
    Added,
    /// Only the baseline has it.
    Removed,
}

impl Change {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Fixed => "fixed",
            Self::Unchanged => "unchanged",
            Self::Unproved => "unproved",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

impl Comparison {
    /// Compares a campaign with an earlier one.
    #[must_use]
    pub fn new(
        baseline: &str,
        before: &CampaignResult,
        now: &CampaignResult,
        threshold: f64,
    ) -> Self {
        let (old, new) = (Summary::of(before), Summary::of(now));
        let mut cells: Vec<CellComparison> = new
            .cells
            .iter()
            .map(|cell| {
                compare(
                    old.cell(&cell.document, &cell.subject),
                    Some(cell),
                    threshold,
                )
            })
            .collect();
        let gone = old
            .cells
            .iter()
            .filter(|cell| new.cell(&cell.document, &cell.subject).is_none());
        cells.extend(gone.map(|cell| compare(Some(cell), None, threshold)));
        Self {
            baseline: baseline.to_owned(),
            baseline_started_at: before.started_at.clone(),
            threshold,
            cells,
        }
    }

    /// How many pairs changed so.
    #[must_use]
    pub fn count(&self, change: Change) -> usize {
        self.cells
            .iter()
            .filter(|cell| cell.change == change)
            .count()
    }

    /// What changed in a document and a subject.
    #[must_use]
    pub fn cell(&self, document: &str, subject: &str) -> Option<&CellComparison> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.document == document && cell.subject == subject)
    }
}

fn compare(before: Option<&Cell>, now: Option<&Cell>, threshold: f64) -> CellComparison {
    let named = now.or(before);
    let rate = |cell: Option<&Cell>| {
        let cell = cell.filter(|cell| cell.attacks.runs > 0)?;
        Some(cell.attacks.success)
    };
    let (before, now) = (rate(before), rate(now));
    let (change, p_value) = match (before, now) {
        (None, Some(_)) => (Change::Added, None),
        (Some(_), None) => (Change::Removed, None),
        (None, None) => (Change::Unproved, None),
        (Some(before), Some(now)) => judge(before, now, threshold),
    };
    CellComparison {
        document: named.map(|cell| cell.document.clone()).unwrap_or_default(),
        subject: named.map(|cell| cell.subject.clone()).unwrap_or_default(),
        change,
        before,
        now,
        p_value,
    }
}

fn judge(before: Rate, now: Rate, threshold: f64) -> (Change, Option<f64>) {
    let (Some(was), Some(is)) = (before.value(), now.value()) else {
        return (Change::Unproved, None);
    };
    let p = fisher((before.some, before.all), (now.some, now.all));
    // One run each way can never be beyond chance, and still nobody would call "always" and "never" the
    // same: with few repeats a complete turn counts.
    let turned = (was - is).abs() >= 1.0;
    let change = if p > threshold && !turned {
        Change::Unchanged
    } else if is > was {
        Change::New
    } else if is < was {
        Change::Fixed
    } else {
        Change::Unchanged
    };
    (change, Some(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_chance_or_complete_has_changed() {
        for (before, now, expected) in [
            ((0, 10), (10, 10), Change::New),
            ((10, 10), (0, 10), Change::Fixed),
            ((5, 10), (6, 10), Change::Unchanged),
            ((0, 10), (1, 10), Change::Unchanged),
            ((0, 1), (1, 1), Change::New),
            ((1, 1), (0, 3), Change::Fixed),
            ((3, 3), (3, 3), Change::Unchanged),
            ((0, 0), (3, 3), Change::Unproved),
            ((3, 3), (0, 0), Change::Unproved),
        ] {
            let rate = |(some, all)| Rate::new(some, all);
            let (change, _) = judge(rate(before), rate(now), DEFAULT_THRESHOLD);
            assert_eq!(change, expected, "{before:?} {now:?}");
        }
    }
}
