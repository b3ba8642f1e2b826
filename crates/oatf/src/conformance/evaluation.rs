//! Suites about indicators and verdicts.

use std::collections::HashMap;

use crate::{
    Attack, Correlation, DefaultCelEvaluator, EvaluationError, Fragment, Indicator,
    IndicatorVerdict, SemanticEvaluator, SemanticExamples, SemanticIntentClass, compute_verdict,
    evaluate_expression, evaluate_indicator,
};
use serde_json::{Value, json};

use super::{CaseCheck, CaseFailure, ConformanceCase, expect, expect_value, part};

/// Answers every text with the score the case gives.
struct FixedScore(f64);

impl SemanticEvaluator for FixedScore {
    fn evaluate(
        &self,
        _: &str,
        _: &str,
        _: Option<SemanticIntentClass>,
        _: Option<f64>,
        _: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError> {
        Ok(self.0)
    }
}

/// An indicator gives the expected result for a message.
pub(super) fn indicator_case(case: &ConformanceCase<'_>) -> CaseCheck {
    let indicator: Indicator = part(case.field("indicator"))?;
    let message = case.field("message");
    let cel = DefaultCelEvaluator;
    let cel = (case.field("cel_evaluator") != "absent").then_some(&cel as _);
    let score = case
        .field("semantic_evaluator")
        .get("mock_score")
        .and_then(Value::as_f64);
    let semantic = score.map(FixedScore);
    let semantic = semantic
        .as_ref()
        .map(|evaluator| evaluator as &dyn SemanticEvaluator);
    let verdict = evaluate_indicator(&indicator, message, cel, semantic);
    expect(Some(verdict.result.as_str()), case.expected.as_str())?;
    if let Some(kind) = case
        .whole
        .get("expected_error_kind")
        .and_then(Value::as_str)
    {
        let expression = indicator.expression.as_ref();
        let expression = expression.ok_or(CaseFailure::Malformed("not an expression"))?;
        let found = evaluate_expression(expression, message, cel).err();
        expect(found.map(|error| error.kind.as_str()), Some(kind))?;
    }
    Ok(())
}

/// Indicator verdicts combine to the expected attack verdict.
pub(super) fn verdict_case(case: &ConformanceCase<'_>) -> CaseCheck {
    let mut attack = Attack::default();
    let mut indicators = Vec::new();
    for entry in case.field("indicators").as_array().into_iter().flatten() {
        let mut entry = entry.clone();
        if let Some(map) = entry.as_object_mut() {
            map.entry("target").or_insert_with(|| json!(""));
        }
        let indicator = Indicator::from_value(&entry)
            .map_err(|errors| CaseFailure::Unreadable(format!("{errors:?}")))?;
        indicators.push(indicator);
    }
    attack.indicators = (!case.field("indicators").is_null()).then_some(indicators);
    let logic = case
        .field("correlation_logic")
        .as_str()
        .map(str::parse)
        .transpose();
    attack.correlation = Some(Correlation {
        logic: logic.map_err(CaseFailure::unreadable)?,
    });
    let mut verdicts = HashMap::new();
    for entry in case.field("verdicts").as_array().into_iter().flatten() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let indicator_id = text("indicator_id").unwrap_or_default().to_owned();
        let result = text("result").unwrap_or_default().parse();
        let verdict = IndicatorVerdict {
            indicator_id: indicator_id.clone(),
            result: result.map_err(CaseFailure::unreadable)?,
            timestamp: None,
            evidence: None,
            source: None,
        };
        verdicts.insert(indicator_id, verdict);
    }
    let verdict = compute_verdict(&attack, &verdicts);
    let found = serde_json::to_value(&verdict).map_err(CaseFailure::unreadable)?;
    for (key, wanted) in case.expected.as_object().into_iter().flatten() {
        expect_value(found.get(key).unwrap_or(&Value::Null), wanted).map_err(|failure| {
            CaseFailure::At {
                key: key.clone(),
                failure: Box::new(failure),
            }
        })?;
    }
    Ok(())
}
