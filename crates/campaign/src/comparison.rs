//! A campaign beside an earlier one, as reports tell it. Whoever has both results judges them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::Rate;

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
    /// It gives way now and did not before, as far as the baseline knows; also where that has nothing to say of it.
    New,
    /// It gave way before, and does so clearly more often now.
    Worse,
    /// It gave way before, and does so clearly less often now.
    Better,
    /// It gave way before, and does not now.
    Fixed,
    /// What differs may be chance.
    Unchanged,
    /// One of the two says nothing (not there, not reached, or without a verdict), and it does not give way now.
    Unknown,
}

impl Change {
    /// Every change there is, in the order in which reports tell them.
    pub const ALL: [Self; 6] = [
        Self::New,
        Self::Worse,
        Self::Better,
        Self::Fixed,
        Self::Unchanged,
        Self::Unknown,
    ];

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

    /// Whether the subject has become stronger.
    #[must_use]
    pub fn is_improvement(self) -> bool {
        matches!(self, Self::Better | Self::Fixed)
    }
}

impl Comparison {
    /// How many pairs changed so.
    #[must_use]
    pub fn count(&self, change: Change) -> usize {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.change == change).count()
    }

    /// How many pairs in which the subject has become weaker.
    #[must_use]
    pub fn regressions(&self) -> usize {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.change.is_regression()).count()
    }

    /// All counts for people: `1 new, 0 worse, …`.
    #[must_use]
    pub fn counts(&self) -> String {
        let counts = Change::ALL.map(|change| format!("{} {}", self.count(change), change.word()));
        counts.join(", ")
    }
}
