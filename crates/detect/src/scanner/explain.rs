//! Why an indicator judged one message as it did: the filter, the path, the operator.

use proofhouse_oatf::{
    Condition, Indicator, IndicatorResult, MatchBudget, MatchCondition, coerce_to_text,
    evaluate_condition_within, evaluate_indicator, resolve_simple_path, resolve_wildcard_path,
};
use serde::Serialize;
use serde_json::Value;

use super::Scanner;
use super::canaries::EXTENSION_FIELD;
use super::checksum;
use super::class::{Dropped, dropped_by, is_of_others};
use super::evidence::{locate, shorten};
use super::group::RuleId;
use crate::trace::{TraceMessage, reading};

/// How many values of one message are shown.
const MAX_VALUES: usize = 3;

/// What an indicator made of one message.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// A filter dropped it.
    Dropped(Dropped),
    /// It was evaluated.
    Kept(Kept),
}

/// How a message was evaluated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    /// The outcome.
    pub result: IndicatorResult,
    /// What the evaluator says: why it failed or was not there, or a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The path that was followed, as the document has it.
    pub target: String,
    /// How many values it led to.
    pub reached: usize,
    /// The first of them, and the one that matched.
    pub values: Vec<Resolved>,
    /// The test of the message as a whole: `exists`, `cel` or `semantic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<OperatorCheck>,
    /// Whether a canary of the indicator was found, and in which form; the indicator matches then, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<OperatorCheck>,
}

/// A value the path led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// The place, with its indices written out.
    pub path: String,
    /// The value as operators see it, shortened.
    pub text: String,
    /// Each operator by itself; all have to hold.
    pub checks: Vec<OperatorCheck>,
    /// Whether they do.
    pub matches: bool,
}

/// One operator and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorCheck {
    /// The operator as documents write it, `equals`, `cel`, `semantic` or `canary`.
    pub operator: &'static str,
    /// What it asks for, shortened.
    pub operand: String,
    /// Whether it holds; absent when it could not be told, such as in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
}

impl Scanner {
    /// Why an indicator makes of a message what it does; `None` when there is no such indicator.
    ///
    /// ```
    /// # use proofhouse_detect::{Dropped, Judgement, TraceMessage, Scanner};
    /// # use serde_json::json;
    /// # let document = proofhouse_oatf::load(r#"
    /// # oatf: "0.1"
    /// # attack:
    /// #   execution: {mode: mcp_server, state: {tools: []}}
    /// #   indicators: [{surface: tools/call, target: arguments, pattern: {contains: passwd}}]
    /// # "#).unwrap().document;
    /// # let scanner = Scanner::builder().add("passwd", document).build().unwrap();
    /// let message = TraceMessage::new("mcp", "tools/list", json!({}));
    /// assert_eq!(scanner.explain(0, 0, &message), Some(Judgement::Dropped(Dropped::Surface)));
    ///
    /// let message = TraceMessage::new("mcp", "tools/call", json!({"arguments": "/etc/hosts"}));
    /// let Some(Judgement::Kept(kept)) = scanner.explain(0, 0, &message) else { panic!() };
    /// let check = &kept.values[0].checks[0];
    /// assert_eq!((check.operator, check.operand.as_str(), check.holds), ("contains", "passwd", Some(false)));
    /// ```
    #[must_use]
    pub fn explain(
        &self,
        document: usize,
        indicator: usize,
        message: &TraceMessage,
    ) -> Option<Judgement> {
        let source = &self.documents.get(document)?.document;
        let declared = source.attack.indicators().get(indicator)?;
        let rule = self.rule_of(document, indicator)?;
        Some(self.judgement(rule, declared, message))
    }

    /// The same of an indicator that there is.
    pub(super) fn judgement(
        &self,
        rule: RuleId,
        indicator: &Indicator,
        message: &TraceMessage,
    ) -> Judgement {
        let Some(filter) = dropped_by(indicator, message) else {
            let kept = self.keep(rule, indicator, message);
            // A second reading counts where the first says nothing.
            let other = reading::other(message).filter(|_| kept.result != IndicatorResult::Matched);
            let other = other.map(|other| self.keep(rule, indicator, &other));
            let other = other.filter(|other| other.result == IndicatorResult::Matched);
            return Judgement::Kept(other.unwrap_or(kept));
        };
        let is_aside = filter == Dropped::Surface && !is_of_others(indicator, message);
        let found = is_aside
            .then(|| self.canary_of(rule, message, true))
            .flatten();
        match found.flatten() {
            Some(form) => {
                let mut kept = details(indicator, message, IndicatorResult::Matched, None);
                kept.found(&form);
                Judgement::Kept(kept)
            }
            None => Judgement::Dropped(filter),
        }
    }

    /// How an indicator evaluates a message that its filters keep.
    fn keep(&self, rule: RuleId, indicator: &Indicator, message: &TraceMessage) -> Kept {
        let (result, reason) = self.judge(indicator, message);
        let mut kept = details(indicator, message, result, reason);
        match self.canary_of(rule, message, false) {
            Some(Some(form)) => kept.found(&form),
            Some(None) => {
                kept.canary = Some(OperatorCheck {
                    operator: "canary",
                    operand: "in any form".to_owned(),
                    holds: Some(false),
                });
            }
            None => {}
        }
        kept
    }

    /// The result and what the evaluator says about it.
    fn judge(
        &self,
        indicator: &Indicator,
        message: &TraceMessage,
    ) -> (IndicatorResult, Option<String>) {
        if indicator.detection().is_none() && indicator.extensions.contains_key(EXTENSION_FIELD) {
            // It has nothing but its canary.
            return (IndicatorResult::NotMatched, None);
        }
        let verdict = evaluate_indicator(
            indicator,
            &message.content,
            self.cel.as_deref(),
            self.semantic.as_deref(),
        );
        if verdict.result == IndicatorResult::Matched
            && let Some(pattern) = &indicator.pattern
        {
            let target = pattern.target.as_ref().unwrap_or(&indicator.target);
            let values = resolve_wildcard_path(target, &message.content);
            if !checksum::holds_for(indicator, &values) {
                let reason = "the checksum holds for no match".to_owned();
                return (IndicatorResult::NotMatched, Some(reason));
            }
        }
        // Of a match by pattern or expression this is the match itself.
        let says = verdict
            .evidence
            .filter(|_| indicator.semantic.is_some() || verdict.result != IndicatorResult::Matched);
        (verdict.result, says)
    }
}

impl Kept {
    /// A canary was found in this form, so it matches.
    pub(super) fn found(&mut self, form: &str) {
        self.canary = Some(OperatorCheck {
            operator: "canary",
            operand: shorten(form),
            holds: Some(true),
        });
        self.result = IndicatorResult::Matched;
    }
}

/// What stands behind a result.
fn details(
    indicator: &Indicator,
    message: &TraceMessage,
    result: IndicatorResult,
    reason: Option<String>,
) -> Kept {
    let mut kept = Kept {
        result,
        reason,
        target: indicator.target.clone(),
        reached: 0,
        values: Vec::new(),
        whole: None,
        canary: None,
    };
    let holds = match result {
        IndicatorResult::Matched => Some(true),
        IndicatorResult::NotMatched => Some(false),
        IndicatorResult::Error | IndicatorResult::Skipped => None,
    };
    if let Some(pattern) = &indicator.pattern {
        kept.target = pattern.target.clone().unwrap_or(kept.target);
        pattern_details(&mut kept, pattern.condition.as_ref(), message);
    } else if let Some(expression) = &indicator.expression {
        kept.whole = Some(OperatorCheck {
            operator: "cel",
            operand: shorten(expression.cel.as_str()),
            holds,
        });
        // What the expression looks at is anyone's guess, except for its variables.
        let variables = expression.variables.iter().flatten();
        for (name, path) in variables.take(MAX_VALUES) {
            let value = resolve_simple_path(path, &message.content).unwrap_or(&Value::Null);
            kept.values.push(plain(format!("{name} = {path}"), value));
        }
        show_target(&mut kept, message);
    } else if let Some(semantic) = &indicator.semantic {
        kept.target = semantic.target.clone().unwrap_or(kept.target);
        kept.whole = Some(OperatorCheck {
            operator: "semantic",
            operand: shorten(&semantic.intent),
            holds,
        });
        show_target(&mut kept, message);
    }
    kept
}

fn plain(path: String, value: &Value) -> Resolved {
    Resolved {
        path,
        text: shorten(&coerce_to_text(value)),
        checks: Vec::new(),
        matches: false,
    }
}

/// Shows the values at the target, without a test of each.
fn show_target(kept: &mut Kept, message: &TraceMessage) {
    let values = resolve_wildcard_path(&kept.target, &message.content);
    kept.reached = values.len();
    for value in values.into_iter().take(MAX_VALUES) {
        let path = locate(&kept.target, &message.content, value);
        kept.values.push(plain(path, value));
    }
}

fn pattern_details(kept: &mut Kept, condition: Option<&Condition>, message: &TraceMessage) {
    let Some(condition) = condition else { return };
    let values = resolve_wildcard_path(&kept.target, &message.content);
    kept.reached = values.len();
    if let Condition::Operators(operators) = condition
        && let Some(exists) = operators.exists
    {
        kept.whole = Some(OperatorCheck {
            operator: "exists",
            operand: exists.to_string(),
            holds: Some(values.is_empty() != exists),
        });
    }
    // One for all values and operators, as when the message was judged.
    let budget = &mut MatchBudget::default();
    let matched = values
        .iter()
        .position(|value| holds(condition, value, budget) == Some(true));
    for (index, value) in values.into_iter().enumerate() {
        if index >= MAX_VALUES && matched != Some(index) {
            continue;
        }
        let mut resolved = plain(locate(&kept.target, &message.content, value), value);
        resolved.checks = checks(condition, value, budget);
        resolved.matches = matched == Some(index) || holds(condition, value, budget) == Some(true);
        kept.values.push(resolved);
    }
}

/// Whether a condition holds; `None` when that is not decided in time.
fn holds(condition: &Condition, value: &Value, budget: &mut MatchBudget) -> Option<bool> {
    evaluate_condition_within(condition, value, budget).ok()
}

/// Every operator of a condition by itself.
fn checks(condition: &Condition, value: &Value, budget: &mut MatchBudget) -> Vec<OperatorCheck> {
    let operators = match condition {
        Condition::Equals(expected) => {
            return vec![OperatorCheck {
                operator: "equals",
                operand: shorten(&coerce_to_text(expected)),
                holds: holds(condition, value, budget),
            }];
        }
        Condition::Operators(operators) => operators,
    };
    let written = operators.to_map();
    MatchCondition::OPERATORS
        .iter()
        .filter_map(|operator| {
            let alone = alone(operators, operator)?;
            Some(OperatorCheck {
                operator,
                operand: shorten(&coerce_to_text(written.get(*operator)?)),
                holds: holds(&Condition::Operators(Box::new(alone)), value, budget),
            })
        })
        .collect()
}

/// A condition of one operator only; `exists` is about the path, not the value.
fn alone(operators: &MatchCondition, operator: &str) -> Option<MatchCondition> {
    let mut alone = MatchCondition::default();
    match operator {
        "contains" => alone.contains.clone_from(&operators.contains),
        "starts_with" => alone.starts_with.clone_from(&operators.starts_with),
        "ends_with" => alone.ends_with.clone_from(&operators.ends_with),
        "regex" => alone.regex.clone_from(&operators.regex),
        "any_of" => alone.any_of.clone_from(&operators.any_of),
        "gt" => alone.gt = operators.gt,
        "lt" => alone.lt = operators.lt,
        "gte" => alone.gte = operators.gte,
        "lte" => alone.lte = operators.lte,
        _ => return None,
    }
    (!alone.is_empty()).then_some(alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::{Fragment, evaluate_pattern};
    use serde_json::json;

    fn explained(indicator: &Value, content: Value) -> Kept {
        let indicator = Indicator::from_value(indicator).unwrap();
        let message = TraceMessage::new("mcp", "x", content);
        let matched = indicator
            .pattern
            .as_ref()
            .is_some_and(|pattern| evaluate_pattern(pattern, &message.content).unwrap());
        let result = if matched {
            IndicatorResult::Matched
        } else {
            IndicatorResult::NotMatched
        };
        details(&indicator, &message, result, None)
    }

    fn told(checks: &[OperatorCheck]) -> Vec<(&str, &str, Option<bool>)> {
        let checks = checks.iter();
        checks
            .map(|check| (check.operator, check.operand.as_str(), check.holds))
            .collect()
    }

    #[test]
    fn what_is_not_decided_in_time_does_not_fail() {
        let mut bits = 1_u64;
        let mut text = || -> String {
            let bit = |_| {
                bits ^= bits << 13;
                bits ^= bits >> 7;
                bits ^= bits << 17;
                if bits & 1 == 0 { '0' } else { '1' }
            };
            (0..700_000).map(bit).collect()
        };
        let indicator =
            json!({"target": "a[*]", "pattern": {"condition": {"regex": "1[01]{900}2"}}});
        let indicator = Indicator::from_value(&indicator).unwrap();
        let content = json!({"a": [text(), text()]});
        let message = TraceMessage::new("mcp", "x", content);
        let kept = details(&indicator, &message, IndicatorResult::Error, None);
        for value in &kept.values {
            assert_eq!(value.checks[0].holds, None);
            assert!(!value.matches);
        }
        assert_eq!(kept.values.len(), 2);
    }

    #[test]
    fn every_operator_is_told_by_itself() {
        let indicator = json!({"target": "a", "pattern": {"target": "a", "condition":
            {"contains": "b", "starts_with": "x", "regex": "c$", "any_of": ["abc"], "exists": true}}});
        let kept = explained(&indicator, json!({"a": "abc"}));
        assert_eq!(
            told(&kept.values[0].checks),
            [
                ("contains", "b", Some(true)),
                ("starts_with", "x", Some(false)),
                ("regex", "c$", Some(true)),
                ("any_of", "[\"abc\"]", Some(true)),
            ]
        );
        assert_eq!(
            told(kept.whole.as_slice()),
            [("exists", "true", Some(true))]
        );
        assert!(!kept.values[0].matches);
    }

    #[test]
    fn numbers_and_equality() {
        let indicator = json!({"target": "n", "pattern": {"target": "n", "condition":
            {"gt": 1, "lt": 5, "gte": 4, "lte": 3}}});
        let kept = explained(&indicator, json!({"n": 3}));
        assert_eq!(
            told(&kept.values[0].checks),
            [
                ("gt", "1", Some(true)),
                ("lt", "5", Some(true)),
                ("gte", "4", Some(false)),
                ("lte", "3", Some(true)),
            ]
        );
        let indicator = json!({"target": "n", "pattern": {"target": "n", "condition": 3}});
        let kept = explained(&indicator, json!({"n": 3.0}));
        assert_eq!(told(&kept.values[0].checks), [("equals", "3", Some(true))]);
    }

    #[test]
    fn the_value_that_matched_is_shown_however_late_it_comes() {
        let indicator = json!({"target": "a[*]", "pattern": {"target": "a[*]",
            "condition": {"contains": "x"}}});
        let kept = explained(&indicator, json!({"a": ["1", "2", "3", "4", "5x", "6"]}));
        let shown: Vec<_> = kept
            .values
            .iter()
            .map(|v| (v.path.as_str(), v.matches))
            .collect();
        assert_eq!(
            shown,
            [
                ("a[0]", false),
                ("a[1]", false),
                ("a[2]", false),
                ("a[4]", true)
            ]
        );
        assert_eq!(kept.reached, 6);
    }
}
