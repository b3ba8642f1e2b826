//! Why indicators judged a trace as they did: the lines of documents that decide, and the forms for people and for programs.

pub mod json;
mod text;

use proofhouse_detect::{
    DocumentVerdict, EXTENSION_FIELD, IndicatorExplanation, IndicatorReport, Kept,
};
use proofhouse_oatf::{Condition, Document, Indicator, IndicatorResult, Protocol, Span, Surface};

pub use text::text;

/// A trace and what was made of it.
pub struct Explained<'s> {
    /// Its name.
    pub trace: String,
    /// One per document, in the order of the scanner.
    pub verdicts: Vec<DocumentVerdict>,
    /// Those that were asked for.
    pub explanations: Vec<IndicatorExplanation<'s>>,
    /// How many lines were skipped.
    pub skipped: u64,
    /// Why reading ended before the end.
    pub error: Option<String>,
}

impl Explained<'_> {
    /// What an indicator found in the end.
    #[must_use]
    pub fn report(&self, explanation: &IndicatorExplanation<'_>) -> Option<&IndicatorReport> {
        let verdict = self.verdicts.get(explanation.document())?;
        verdict.indicators.get(explanation.indicator())
    }
}

/// The line of a document that holds what decides: an operator, the expression, the intent.
#[derive(Debug)]
pub struct DecidingLine<'d> {
    /// Its number, from one.
    pub line: usize,
    /// What it says.
    pub text: &'d str,
}

/// The line of `operator`, or of the first there is.
#[must_use]
pub fn deciding_line<'d>(
    document: &'d Document,
    index: usize,
    operator: Option<&str>,
) -> Option<DecidingLine<'d>> {
    let indicator = document.attack.indicators().get(index)?;
    let span = deciding_span(document, index, indicator, operator)?;
    let text = document.source_text()?;
    let line = text.lines().nth(span.line.checked_sub(1)?)?;
    Some(DecidingLine {
        line: span.line,
        text: line.trim_end(),
    })
}

/// The operator that decided on a message: the first that failed, or the first of the value that
/// matched.
#[must_use]
pub fn deciding_operator(kept: &Kept) -> Option<&'static str> {
    let matched = kept.result == IndicatorResult::Matched;
    let values = kept.values.iter();
    let mut checks = values
        .filter(|value| value.matches == matched)
        .flat_map(|value| &value.checks)
        .chain(&kept.whole)
        .chain(&kept.canary);
    let decides = checks.find(|check| check.holds == Some(matched));
    decides.map(|check| check.operator)
}

fn deciding_span(
    document: &Document,
    index: usize,
    indicator: &Indicator,
    operator: Option<&str>,
) -> Option<Span> {
    let at = |field: &[&str]| document.indicator_field_span(index, field);
    if operator == Some("canary") {
        return at(&[EXTENSION_FIELD, "canary"]);
    }
    if let Some(pattern) = &indicator.pattern {
        let operators = match &pattern.condition {
            Some(Condition::Operators(operators)) => operators.to_map(),
            _ => serde_json::Map::new(),
        };
        let written = operator.filter(|operator| operators.contains_key(*operator));
        // The condition may be written out or left away; where a field is not there, the place
        // around it is given, which comes before it.
        let first = operators.keys().next().map_or("condition", String::as_str);
        let first = written.unwrap_or(first);
        let spans = [
            at(&["pattern", first]),
            at(&["pattern", "condition"]),
            at(&["pattern", "condition", first]),
        ];
        return spans.into_iter().flatten().max_by_key(|span| span.offset);
    }
    if indicator.expression.is_some() {
        return at(&["expression", "cel"]);
    }
    at(&["semantic", "intent"])
}

/// What the filters of an indicator ask for, in the order they are asked.
#[must_use]
pub fn filters(indicator: &Indicator) -> Vec<(&'static str, &str)> {
    [
        (
            "protocol",
            indicator.protocol.as_ref().map(Protocol::as_str),
        ),
        ("surface", indicator.surface.as_ref().map(Surface::as_str)),
        ("actor", indicator.actor.as_deref()),
        (
            "direction",
            indicator.direction.map(proofhouse_oatf::Direction::as_str),
        ),
    ]
    .into_iter()
    .filter_map(|(filter, wanted)| Some((filter, wanted?)))
    .collect()
}
