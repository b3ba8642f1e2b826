//! From a verdict to what a run came to: the same for a run that just ended and for one that is judged again.

use proofhouse_detect::DocumentVerdict;
use proofhouse_oatf::AttackResult;
use serde_json::Value;

use crate::result::{IndicatorOutcome, RunEvidence, RunOutcome};

/// Evidence of one indicator that is kept; the trace has the rest.
const MAX_EVIDENCE: usize = 5;
/// Characters of an answer, an error or a piece of evidence that are kept.
pub(crate) const MAX_TEXT: usize = 500;

/// What came of a run: its verdict, whether it broke off, and whether the attack reached the subject. What
/// got through got through, whatever else went wrong.
pub(crate) fn outcome(result: Option<AttackResult>, broken: bool, reached: bool) -> RunOutcome {
    match (result, broken) {
        (Some(AttackResult::Exploited), _) => RunOutcome::Exploited,
        (Some(AttackResult::Partial), _) => RunOutcome::Partial,
        (Some(AttackResult::Error) | None, _) | (_, true) => RunOutcome::Error,
        (Some(AttackResult::NotExploited), false) if reached => RunOutcome::Resisted,
        (Some(AttackResult::NotExploited), false) => RunOutcome::NotReached,
    }
}

/// What each indicator found.
pub(crate) fn indicators(verdict: &DocumentVerdict) -> Vec<IndicatorOutcome> {
    let reports = verdict.indicators.iter();
    reports
        .map(|report| IndicatorOutcome {
            id: report.id.clone(),
            result: report.result.as_str().to_owned(),
            evidence: report
                .evidence
                .iter()
                .take(MAX_EVIDENCE)
                .map(|evidence| RunEvidence {
                    seq: evidence.sequence,
                    last_seq: evidence.pieces.map(|pieces| pieces.last_sequence),
                    path: (!evidence.path.is_empty()).then(|| evidence.path.clone()),
                    text: (!evidence.text.is_empty()).then(|| cut(&evidence.text)),
                    detail: evidence
                        .reason
                        .as_deref()
                        .map_or(Value::Null, |reason| cut(reason).into()),
                })
                .collect(),
        })
        .collect()
}

/// One line, not too long.
pub(crate) fn line(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_got_through_got_through() {
        use AttackResult as A;
        for (result, broken, reached, expected) in [
            (Some(A::Exploited), true, true, RunOutcome::Exploited),
            (Some(A::Partial), false, true, RunOutcome::Partial),
            (Some(A::NotExploited), false, true, RunOutcome::Resisted),
            (Some(A::NotExploited), false, false, RunOutcome::NotReached),
            (Some(A::NotExploited), true, true, RunOutcome::Error),
            (Some(A::Error), false, true, RunOutcome::Error),
            (None, false, true, RunOutcome::Error),
        ] {
            assert_eq!(outcome(result, broken, reached), expected);
        }
    }

    #[test]
    fn lines_are_short_and_single() {
        assert_eq!(line("a\n  b\tc"), "a b c");
        assert_eq!(line(&"x".repeat(1000)).chars().count(), MAX_TEXT + 1);
    }
}
