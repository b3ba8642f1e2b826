//! Verdicts: what evaluation found out.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AttackResult, IndicatorResult, Tier};

/// What one indicator found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndicatorVerdict {
    /// The indicator.
    pub indicator_id: String,
    /// The outcome.
    pub result: IndicatorResult,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// What matched, or why it could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The tool that produced the verdict; filled in by that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl IndicatorVerdict {
    /// A verdict without evidence; more can be set on it.
    ///
    /// ```
    /// use proofhouse_oatf::{IndicatorResult, IndicatorVerdict};
    /// let verdict = IndicatorVerdict {
    ///     evidence: Some("no model was there to ask".into()),
    ///     ..IndicatorVerdict::new("ACME-001-01", IndicatorResult::Skipped)
    /// };
    /// assert_eq!(verdict.result.as_str(), "skipped");
    /// ```
    #[must_use]
    pub fn new(indicator_id: impl Into<String>, result: IndicatorResult) -> Self {
        Self {
            indicator_id: indicator_id.into(),
            result,
            timestamp: None,
            evidence: None,
            source: None,
        }
    }
}

/// Whether the agent complied with the attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackVerdict {
    /// The attack, when it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attack_id: Option<String>,
    /// The outcome.
    pub result: AttackResult,
    /// The highest tier among matched indicators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tier: Option<Tier>,
    /// Every indicator's outcome, in document order.
    pub indicator_verdicts: Vec<IndicatorVerdict>,
    /// How many indicators had which outcome.
    pub evaluation_summary: EvaluationSummary,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// The tool that produced the verdict; filled in by that tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why there is no trustworthy answer, when the result is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
}

/// Counts of indicator outcomes; they add up to the number of indicators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationSummary {
    /// Indicators that matched.
    pub matched: usize,
    /// Indicators that did not.
    pub not_matched: usize,
    /// Indicators that failed.
    pub error: usize,
    /// Indicators that were not evaluated.
    pub skipped: usize,
}
