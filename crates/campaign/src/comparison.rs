//! A campaign beside an earlier one, as reports tell it. Whoever has both results judges them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::baseline::ComparedRuns;
use crate::statistics::{CountPair, Rate};

/// A campaign beside an earlier one, its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What the baseline is called, such as its file.
    pub baseline: String,
    /// When the baseline began, RFC 3339.
    pub baseline_started_at: String,
    /// How likely it may be that a regression is found where nothing has changed, over all documents and subjects.
    pub threshold: f64,
    /// Why nothing is compared, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomparable: Option<Incomparable>,
    /// What whoever knows where the campaigns are kept says to do about that.
    #[serde(skip)]
    pub advice: Option<String>,
    /// All documents of each subject together, for subjects that both have runs of.
    #[serde(default)]
    pub subjects: Vec<SubjectComparison>,
    /// Every document and subject of either, those of the new campaign first.
    pub cells: Vec<CellComparison>,
}

/// Why two campaigns cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Incomparable {
    /// The baseline ended before its runs were made, and when may have depended on what came of them.
    BaselineStopped,
    /// This campaign did.
    CampaignStopped,
    /// They have no pair of an attack and a subject in common.
    NothingShared,
}

impl Incomparable {
    /// Why, for people, and what to do.
    #[must_use]
    pub fn reason(self) -> String {
        format!("{}; {}", self.cause(), self.advice())
    }

    /// Why, for people.
    fn cause(self) -> &'static str {
        match self {
            Self::BaselineStopped => {
                "the baseline stopped before all its runs were made, so its rates are not a fair sample"
            }
            Self::CampaignStopped => {
                "this campaign stopped before all its runs were made, so its rates are not a fair sample"
            }
            Self::NothingShared => "the two campaigns share no attack and subject",
        }
    }

    /// What to do where nobody knows where the campaigns are kept.
    fn advice(self) -> &'static str {
        match self {
            Self::BaselineStopped => {
                "finish it with --resume (one in a store: with `proofhouse worker`), or make a new one"
            }
            Self::CampaignStopped => {
                "finish it with --resume (one in a store: with `proofhouse worker`)"
            }
            Self::NothingShared => "choose two that ran the same attacks against the same subjects",
        }
    }
}

/// All documents of a subject together, then and now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectComparison {
    /// The name of the subject.
    pub subject: String,
    /// Whether it has become weaker or stronger as a whole: `worse`, `better`, `unchanged` or `unknown`.
    pub change: Change,
    /// How many documents both campaigns have runs of; only those are counted here.
    pub documents: u64,
    /// Their attack success rate in the baseline.
    pub before: Rate,
    /// Their attack success rate now.
    pub now: Rate,
    /// How likely so great a difference is by chance, in the direction it has (exact stratified test).
    pub p_value: Option<f64>,
    /// Whether it may have become weaker, and inconclusive runs of the baseline hide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub obscured: bool,
    /// Whether any result of so many runs could have been a regression.
    pub could_find: bool,
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
    /// Runs of the baseline that prove nothing, and are in no rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive_before: u64,
    /// Such runs now. What counts as a rise is one even if they are counted as attacks that did not get through.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconclusive_now: u64,
    /// Whether the rate may have risen, and inconclusive runs of the baseline hide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub obscured: bool,
    /// How likely so great a difference is by chance, in the direction it has (Fisher's exact test, one-sided); absent
    /// where there is nothing to compare.
    pub p_value: Option<f64>,
    /// The same, adjusted for the number of documents (Holm); this is what decides.
    #[serde(default)]
    pub adjusted: Option<f64>,
}

impl CellComparison {
    /// The counts; no runs where one of the two does not have the pair.
    pub(crate) fn pair(&self) -> CountPair {
        let counts = |rate: Option<Rate>| rate.map_or((0, 0), |rate| (rate.some, rate.all));
        CountPair::new(counts(self.now), counts(self.before))
    }

    /// The same with the runs that prove nothing.
    pub(crate) fn runs(&self) -> ComparedRuns {
        ComparedRuns {
            proved: self.pair(),
            inconclusive_now: self.inconclusive_now,
            inconclusive_before: self.inconclusive_before,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What changed in a document and a subject.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It never gave way before, and clearly does now.
    New,
    /// It gave way before, and does so clearly more often now.
    Worse,
    /// It gave way before, and does so clearly less often now.
    Better,
    /// It gave way before, and clearly no longer does.
    Fixed,
    /// What differs may be chance.
    Unchanged,
    /// There are too few runs to tell, or none: whatever had come of them, it could have been chance.
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

    /// How many pairs in which the subject has become weaker, and subjects that have become weaker as a whole.
    #[must_use]
    pub fn regressions(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.change);
        let subjects = self.subjects.iter().map(|subject| subject.change);
        let changes = cells.chain(subjects);
        changes.filter(|change| change.is_regression()).count()
    }

    /// Why nothing is compared and what to do, for people, where that is so.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        match (self.incomparable, &self.advice) {
            (Some(incomparable), Some(advice)) => {
                Some(format!("{}; {advice}", incomparable.cause()))
            }
            (Some(incomparable), None) => Some(incomparable.reason()),
            (None, _) => {
                let nothing = "no attack has conclusive runs in both campaigns";
                self.subjects.is_empty().then(|| nothing.to_owned())
            }
        }
    }

    /// The subjects that have changed as a whole.
    pub fn changed_subjects(&self) -> impl Iterator<Item = &SubjectComparison> {
        let subjects = self.subjects.iter();
        subjects.filter(|subject| subject.change.is_regression() || subject.change.is_improvement())
    }

    /// Whether no result of so many runs could have been a regression, so that finding none proves nothing.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        !self.subjects.iter().any(|subject| subject.could_find)
    }

    /// How many pairs give way now of which the baseline says nothing.
    #[must_use]
    pub fn unknown_successes(&self) -> usize {
        let is_unknown = |cell: &&CellComparison| {
            let pair = cell.pair();
            pair.now.0 > 0 && pair.before.1 == 0
        };
        self.cells.iter().filter(is_unknown).count()
    }

    /// Pairs of which inconclusive runs of the baseline may hide that they give way more often.
    pub fn obscured_cells(&self) -> impl Iterator<Item = &CellComparison> {
        self.cells.iter().filter(|cell| cell.obscured)
    }

    /// What to say of attacks that got through before and still do: they are no regressions, and not resisted either.
    #[must_use]
    pub fn standing(&self) -> Option<String> {
        let stands = |cell: &&CellComparison| {
            let pair = cell.pair();
            pair.now.0 > 0 && pair.before.0 > 0
        };
        match self.cells.iter().filter(stands).count() {
            0 => None,
            1 => Some("1 attack got through in the baseline and still does.".to_owned()),
            many => Some(format!(
                "{many} attacks got through in the baseline and still do."
            )),
        }
    }

    /// All counts for people: `1 new, 0 worse, …`.
    #[must_use]
    pub fn counts(&self) -> String {
        let counts = Change::ALL.map(|change| format!("{} {}", self.count(change), change.word()));
        counts.join(", ")
    }
}
