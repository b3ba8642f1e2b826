//! A rule, compiled: an expression, a pattern, and what happens when both match.

use std::ops::Range;
use std::time::Duration;

use proofhouse_expr::re2::{MatchBudget, Re2Pattern};
use proofhouse_expr::{Program, Variables};
use serde_json::{Map, Value};

use crate::finding::GuardDecision;
use crate::taint::fields::is_value;

/// How much a pattern may do in one message, as the time that it takes at worst: enough for the longest message, which takes far less.
const MAX_WORK: Duration = Duration::from_secs(300);

/// A rule about calls or results.
#[derive(Debug)]
pub struct PolicyRule {
    /// What findings call it.
    pub id: String,
    /// Whether it looks at results, not at calls.
    pub is_about_results: bool,
    /// The condition.
    pub when: Option<Program>,
    /// What a text must match.
    pub pattern: Option<Re2Pattern>,
    /// What happens when it matches.
    pub decision: GuardDecision,
    /// What the model is told.
    pub message: Option<String>,
    /// Whether a message passes about which the rule cannot say anything.
    pub fails_open: bool,
}

/// Why a rule could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleFailure {
    /// The expression failed.
    #[error("the expression failed: {0}")]
    Expression(String),
    /// The pattern took too long.
    #[error("the pattern took too long")]
    Pattern,
    /// Without what the pattern matches, two keys of one object are the same.
    #[error("two keys are the same without what is taken out")]
    Keys,
}

impl PolicyRule {
    /// Whether it matches a message with these texts. `values` are asked for only where an expression needs them.
    ///
    /// # Errors
    ///
    /// Returns an error when that cannot be told.
    pub fn matches<'v>(
        &self,
        texts: &Value,
        values: impl FnOnce() -> &'v [(&'static str, Value)],
    ) -> Result<bool, RuleFailure> {
        if let Some(pattern) = &self.pattern
            && !matches_below(pattern, texts, &mut MatchBudget::of_work(MAX_WORK))?
        {
            return Ok(false);
        }
        let Some(program) = &self.when else {
            return Ok(true);
        };
        let values = values().iter();
        let variables = Variables::from_iter(values.map(|(name, value)| (*name, value)));
        program
            .evaluate_bool(&variables)
            .map_err(|error| RuleFailure::Expression(error.to_string()))
    }

    /// Replaces what the pattern matches in every text below a value, and in keys that may carry one.
    ///
    /// # Errors
    ///
    /// Returns an error when the pattern takes too long, or two keys of one object would be the same.
    pub fn redact(&self, value: &mut Value) -> Result<(), RuleFailure> {
        match &self.pattern {
            Some(pattern) => redact_below(pattern, value, &mut MatchBudget::of_work(MAX_WORK)),
            None => Ok(()),
        }
    }
}

fn matches_below(
    pattern: &Re2Pattern,
    value: &Value,
    budget: &mut MatchBudget,
) -> Result<bool, RuleFailure> {
    match value {
        Value::String(text) => pattern
            .is_match(text, budget)
            .map_err(|_| RuleFailure::Pattern),
        Value::Array(items) => any(items.iter(), |item| matches_below(pattern, item, budget)),
        Value::Object(members) => {
            for (key, item) in members {
                let is_match = is_value(key)
                    && pattern
                        .is_match(key, budget)
                        .map_err(|_| RuleFailure::Pattern)?;
                if is_match || matches_below(pattern, item, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
    }
}

fn any<'v>(
    values: impl Iterator<Item = &'v Value>,
    mut test: impl FnMut(&Value) -> Result<bool, RuleFailure>,
) -> Result<bool, RuleFailure> {
    for value in values {
        if test(value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn redact_below(
    pattern: &Re2Pattern,
    value: &mut Value,
    budget: &mut MatchBudget,
) -> Result<(), RuleFailure> {
    match value {
        Value::String(text) => *text = redacted(pattern, text, budget)?,
        Value::Array(items) => {
            for item in items {
                redact_below(pattern, item, budget)?;
            }
        }
        Value::Object(members) => {
            let mut done = Map::with_capacity(members.len());
            for (key, mut item) in std::mem::take(members) {
                redact_below(pattern, &mut item, budget)?;
                let key = if is_value(&key) {
                    redacted(pattern, &key, budget)?
                } else {
                    key
                };
                if done.insert(key, item).is_some() {
                    return Err(RuleFailure::Keys);
                }
            }
            *members = done;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn redacted(
    pattern: &Re2Pattern,
    text: &str,
    budget: &mut MatchBudget,
) -> Result<String, RuleFailure> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found: Option<Range<usize>> = pattern
            .find(rest, budget)
            .map_err(|_| RuleFailure::Pattern)?;
        match found {
            Some(found) if !found.is_empty() => {
                done.push_str(&rest[..found.start]);
                done.push_str(proofhouse_detect::REDACTED);
                rest = &rest[found.end..];
            }
            _ => {
                done.push_str(rest);
                return Ok(done);
            }
        }
    }
}
