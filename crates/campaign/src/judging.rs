//! From a verdict to what a run came to: the same for a run that just ended and for one that is judged again.

use proofhouse_detect::DocumentVerdict;
use proofhouse_source::plain_error;
use serde_json::Value;

use crate::result::{IndicatorOutcome, RunEvidence};

/// Evidence of one indicator that is kept; the trace has the rest.
const MAX_EVIDENCE: usize = 5;
/// Characters of an answer, an error or a piece of evidence that are kept.
pub(crate) const MAX_TEXT: usize = 500;

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

/// What went wrong, for people: one line, not too long, without the numbers that systems give their errors.
pub(crate) fn error_line(text: &str) -> String {
    line(&plain_error(text))
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
    fn lines_are_short_and_single() {
        assert_eq!(line("a\n  b\tc"), "a b c");
        assert_eq!(error_line("a\nb (os error 13)"), "a b");
        assert_eq!(line(&"x".repeat(1000)).chars().count(), MAX_TEXT + 1);
    }
}
