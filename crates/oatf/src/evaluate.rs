//! Evaluating indicators against messages.

use jiff::Timestamp;
use proofhouse_expr::re2::MatchBudget;
use serde_json::Value;

use crate::error::{EvaluationError, EvaluationErrorKind};
use crate::extension::{CelContext, CelEvaluator, SemanticEvaluator};
use crate::model::{
    Condition, ExpressionMatch, Indicator, IndicatorResult, IndicatorVerdict, PatternMatch,
    SemanticMatch,
};
use crate::primitives::{
    any_at_wildcard_path, coerce_to_text, evaluate_condition_within, resolve_simple_path,
    resolve_wildcard_path, unusable, usable, within_depth,
};

/// The score a semantic indicator needs when it names no threshold.
pub const DEFAULT_SEMANTIC_THRESHOLD: f64 = 0.7;

/// How much matched text a verdict quotes.
const EVIDENCE_CHARACTERS: usize = 200;

/// Whether a normalized pattern matches a message.
///
/// # Errors
///
/// Returns `regex_timeout` when its regular expression takes longer than 100 ms on all values together, and an error when
/// the pattern has no condition, its regular expression does not compile or its target is too deep, all of which
/// [`validate`](crate::validate) reports.
pub fn evaluate_pattern(pattern: &PatternMatch, message: &Value) -> Result<bool, EvaluationError> {
    evaluate_pattern_within(pattern, message, &mut MatchBudget::default())
}

/// As [`evaluate_pattern`], within a time that the caller gives.
///
/// ```
/// use proofhouse_oatf::{Fragment, MatchBudget, PatternMatch, evaluate_pattern_within};
/// use serde_json::json;
/// use std::time::Duration;
/// let pattern = PatternMatch::from_value(&json!({"target": "", "regex": "a+b"})).unwrap();
/// let budget = &mut MatchBudget::new(Duration::ZERO);
/// let error = evaluate_pattern_within(&pattern, &json!("aab"), budget).unwrap_err();
/// assert_eq!(error.kind.as_str(), "regex_timeout");
/// ```
///
/// # Errors
///
/// As for [`evaluate_pattern`].
pub fn evaluate_pattern_within(
    pattern: &PatternMatch,
    message: &Value,
    budget: &mut MatchBudget,
) -> Result<bool, EvaluationError> {
    let target = pattern.target.as_deref().unwrap_or_default();
    find_match(pattern, target, message, budget).map(|found| found.is_some())
}

/// What a pattern matched: a value, or the absence of one.
enum PatternEvidence<'m> {
    Value(&'m Value),
    Absence,
}

fn find_match<'m>(
    pattern: &PatternMatch,
    target: &str,
    message: &'m Value,
    budget: &mut MatchBudget,
) -> Result<Option<PatternEvidence<'m>>, EvaluationError> {
    let Some(condition) = &pattern.condition else {
        return Err(unusable("the pattern has no condition"));
    };
    within_depth(target)?;
    if let Condition::Operators(operators) = condition {
        if operators.is_empty() {
            return Err(unusable("the condition has no operator"));
        }
        if let Some(regex) = &operators.regex {
            usable(regex)?;
        }
        if let Some(exists) = operators.exists.filter(|_| operators.only_exists()) {
            let first = resolve_wildcard_path(target, message).first().copied();
            return Ok(match first {
                Some(value) if exists => Some(PatternEvidence::Value(value)),
                None if !exists => Some(PatternEvidence::Absence),
                _ => None,
            });
        }
        if operators.exists == Some(false) {
            // There is no value for the other operators to look at.
            return Ok(None);
        }
    }
    let mut found = None;
    any_at_wildcard_path(target, message, |value| {
        let matches = evaluate_condition_within(condition, value, budget)?;
        if matches {
            found = Some(PatternEvidence::Value(value));
        }
        Ok(matches)
    })?;
    Ok(found)
}

/// Whether a CEL expression holds for a message, which it sees as `message`.
///
/// A variable whose path does not resolve is null. Where a value that is missing must not count, ask with
/// `has(message.…)` first.
///
/// ```
/// use proofhouse_oatf::{DefaultCelEvaluator, ExpressionMatch, Fragment, evaluate_expression};
/// use serde_json::json;
/// let expression = ExpressionMatch::from_value(&json!({
///     "cel": "count > 2", "variables": {"count": "arguments.count"},
/// })).unwrap();
/// let message = json!({"arguments": {"count": 3}});
/// assert_eq!(evaluate_expression(&expression, &message, Some(&DefaultCelEvaluator)), Ok(true));
/// assert!(evaluate_expression(&expression, &message, None).is_err());
/// ```
///
/// # Errors
///
/// Returns what the evaluator returns, and a type error when the result is not a boolean.
pub fn evaluate_expression(
    expression: &ExpressionMatch,
    message: &Value,
    cel_evaluator: Option<&dyn CelEvaluator>,
) -> Result<bool, EvaluationError> {
    let Some(evaluator) = cel_evaluator else {
        return Err(unusable("CEL evaluation is not available"));
    };
    let mut context = CelContext::new();
    context.bind("message", message);
    for (name, path) in expression.variables.iter().flatten() {
        let value = resolve_simple_path(path, message);
        context.bind(name, value.unwrap_or(&Value::Null));
    }
    match evaluator.evaluate_kept(&expression.cel, &context)? {
        Value::Bool(value) => Ok(value),
        other => Err(EvaluationError::new(
            EvaluationErrorKind::TypeError,
            format!("the expression gave {}, not a boolean", kind_of(&other)),
        )),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Evaluates a normalized indicator against one message.
///
/// ```
/// use proofhouse_oatf::{Fragment, Indicator, IndicatorResult, evaluate_indicator};
/// use serde_json::json;
/// let indicator = Indicator::from_value(&json!({
///     "id": "X-001-01", "target": "arguments",
///     "pattern": {"target": "arguments", "condition": {"contains": "passwd"}},
/// })).unwrap();
/// let message = json!({"arguments": {"path": "/etc/passwd"}});
/// let verdict = evaluate_indicator(&indicator, &message, None, None);
/// assert_eq!(verdict.result, IndicatorResult::Matched);
/// assert_eq!(verdict.evidence.as_deref(), Some(r#"{"path":"/etc/passwd"}"#));
/// ```
#[must_use]
pub fn evaluate_indicator(
    indicator: &Indicator,
    message: &Value,
    cel_evaluator: Option<&dyn CelEvaluator>,
    semantic_evaluator: Option<&dyn SemanticEvaluator>,
) -> IndicatorVerdict {
    let (result, evidence) = match outcome(indicator, message, cel_evaluator, semantic_evaluator) {
        Ok(outcome) => outcome,
        Err(error) => (IndicatorResult::Error, Some(error.to_string())),
    };
    IndicatorVerdict {
        indicator_id: indicator.id.clone().unwrap_or_default(),
        result,
        timestamp: Some(Timestamp::now()),
        evidence,
        source: None,
    }
}

type EvaluateResult = (IndicatorResult, Option<String>);

fn outcome(
    indicator: &Indicator,
    message: &Value,
    cel_evaluator: Option<&dyn CelEvaluator>,
    semantic_evaluator: Option<&dyn SemanticEvaluator>,
) -> Result<EvaluateResult, EvaluationError> {
    if let Some(pattern) = &indicator.pattern {
        let target = pattern.target.as_ref().unwrap_or(&indicator.target);
        return Ok(
            match find_match(pattern, target, message, &mut MatchBudget::default())? {
                Some(PatternEvidence::Value(value)) => {
                    (IndicatorResult::Matched, Some(quote(value)))
                }
                Some(PatternEvidence::Absence) => {
                    (IndicatorResult::Matched, Some("absent".to_owned()))
                }
                None => (IndicatorResult::NotMatched, None),
            },
        );
    }
    if let Some(expression) = &indicator.expression {
        if cel_evaluator.is_none() {
            return Ok(skipped("CEL evaluation is not available"));
        }
        let matched = evaluate_expression(expression, message, cel_evaluator)?;
        return Ok(if matched {
            (
                IndicatorResult::Matched,
                Some(clip(expression.cel.as_str())),
            )
        } else {
            (IndicatorResult::NotMatched, None)
        });
    }
    if let Some(semantic) = &indicator.semantic {
        return match semantic_evaluator {
            None => Ok(skipped("semantic evaluation is not available")),
            Some(evaluator) => {
                let target = semantic.target.as_ref().unwrap_or(&indicator.target);
                semantic_outcome(semantic, target, message, evaluator)
            }
        };
    }
    Err(unusable("the indicator has no way of detection"))
}

fn skipped(reason: &str) -> EvaluateResult {
    (IndicatorResult::Skipped, Some(reason.to_owned()))
}

fn semantic_outcome(
    semantic: &SemanticMatch,
    target: &str,
    message: &Value,
    evaluator: &dyn SemanticEvaluator,
) -> Result<EvaluateResult, EvaluationError> {
    let mut highest: Option<f64> = None;
    for value in resolve_wildcard_path(target, message) {
        let score = evaluator.evaluate(
            &coerce_to_text(value),
            &semantic.intent,
            semantic.intent_class,
            semantic.threshold,
            semantic.examples.as_ref(),
        )?;
        if !(0.0..=1.0).contains(&score) {
            let message = format!("the evaluator gave a score of {score}, outside 0.0 to 1.0");
            return Err(EvaluationError::new(
                EvaluationErrorKind::SemanticError,
                message,
            ));
        }
        highest = Some(highest.map_or(score, |highest| highest.max(score)));
    }
    let Some(score) = highest else {
        return Ok((IndicatorResult::NotMatched, None));
    };
    let threshold = semantic.threshold.unwrap_or(DEFAULT_SEMANTIC_THRESHOLD);
    let result = if score >= threshold {
        IndicatorResult::Matched
    } else {
        IndicatorResult::NotMatched
    };
    Ok((result, Some(format!("score {score}"))))
}

fn quote(value: &Value) -> String {
    clip(&coerce_to_text(value))
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(EVIDENCE_CHARACTERS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
