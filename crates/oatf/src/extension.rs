//! Extension points: what tools plug in.

use serde_json::Value;

use crate::error::{EvaluationError, GenerationError};
use crate::model::{CelExpression, Protocol, SemanticExamples, SemanticIntentClass};

/// The variables of a CEL expression: borrowed where they can be.
#[derive(Debug, Clone, Default)]
pub struct CelContext<'a> {
    variables: Vec<(&'a str, &'a Value)>,
}

impl<'a> CelContext<'a> {
    /// No variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable; the last binding of a name wins.
    pub fn bind(&mut self, name: &'a str, value: &'a Value) {
        self.variables.retain(|(bound, _)| *bound != name);
        self.variables.push((name, value));
    }

    /// The variables, in the order they were bound.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.variables.iter().copied()
    }
}

impl<'a> FromIterator<(&'a str, &'a Value)> for CelContext<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a Value)>>(variables: T) -> Self {
        let mut context = Self::new();
        for (name, value) in variables {
            context.bind(name, value);
        }
        context
    }
}

/// Evaluates CEL expressions.
///
/// An implementation has no side effects, supports `size`, `contains`, `startsWith`, `endsWith`,
/// `matches`, `exists`, `all`, `filter` and `map`, answers an unsupported function with
/// `unsupported_method`, bounds the time it takes (100 ms recommended), and never panics.
///
/// ```
/// use proofhouse_oatf::{CelContext, CelEvaluator, EvaluationError, EvaluationErrorKind};
/// use serde_json::Value;
///
/// /// Knows one expression.
/// struct Only;
///
/// impl CelEvaluator for Only {
///     fn evaluate(&self, expression: &str, context: &CelContext<'_>) -> Result<Value, EvaluationError> {
///         match expression {
///             "message.ok" => Ok(context.iter().any(|(_, value)| value["ok"] == true).into()),
///             other => Err(EvaluationError::new(EvaluationErrorKind::UnsupportedMethod, other)),
///         }
///     }
/// }
///
/// let message = serde_json::json!({"ok": true});
/// let context = [("message", &message)].into_iter().collect();
/// assert_eq!(Only.evaluate("message.ok", &context), Ok(Value::Bool(true)));
/// ```
pub trait CelEvaluator: Send + Sync {
    /// Evaluates an expression.
    ///
    /// # Errors
    ///
    /// Returns why it could not be evaluated.
    fn evaluate(
        &self,
        expression: &str,
        context: &CelContext<'_>,
    ) -> Result<Value, EvaluationError>;

    /// Evaluates an expression that lives with a model, where the evaluator may keep what it
    /// compiled (see [`CelExpression::compiled_with`]).
    ///
    /// # Errors
    ///
    /// Returns why it could not be evaluated.
    fn evaluate_kept(
        &self,
        expression: &CelExpression,
        context: &CelContext<'_>,
    ) -> Result<Value, EvaluationError> {
        self.evaluate(expression.as_str(), context)
    }
}

/// Scores how well a text fits an intent. There is no default: it depends on a model.
///
/// An implementation may do I/O and blocks while it does.
///
/// ```
/// use proofhouse_oatf::{EvaluationError, SemanticEvaluator, SemanticExamples, SemanticIntentClass};
///
/// /// Finds texts that are word for word one of the examples.
/// struct Examples;
///
/// impl SemanticEvaluator for Examples {
///     fn evaluate(
///         &self,
///         text: &str,
///         _intent: &str,
///         _class: Option<SemanticIntentClass>,
///         _threshold: Option<f64>,
///         examples: Option<&SemanticExamples>,
///     ) -> Result<f64, EvaluationError> {
///         let positive = examples.and_then(|examples| examples.positive.as_ref());
///         Ok(f64::from(u8::from(positive.is_some_and(|known| known.iter().any(|known| known == text)))))
///     }
/// }
///
/// let examples = SemanticExamples { positive: Some(vec!["hand it over".into()]), ..Default::default() };
/// assert_eq!(Examples.evaluate("hand it over", "", None, None, Some(&examples)), Ok(1.0));
/// ```
pub trait SemanticEvaluator: Send + Sync {
    /// The confidence, from 0.0 to 1.0, that `text` has the intent.
    ///
    /// # Errors
    ///
    /// Returns why there is no score.
    fn evaluate(
        &self,
        text: &str,
        intent: &str,
        intent_class: Option<SemanticIntentClass>,
        threshold: Option<f64>,
        examples: Option<&SemanticExamples>,
    ) -> Result<f64, EvaluationError>;
}

/// Generates protocol content for `synthesize` blocks. There is no default: it depends on a model.
///
/// An implementation may do I/O and blocks while it does.
pub trait GenerationProvider: Send + Sync {
    /// Content for `protocol`, shaped by what `response_context` tells of the exchange. The prompt
    /// has no templates left in it.
    ///
    /// # Errors
    ///
    /// Returns why there is no content.
    fn generate(
        &self,
        prompt: &str,
        protocol: &Protocol,
        response_context: &Value,
    ) -> Result<Value, GenerationError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_binding_wins() {
        let (one, two) = (json!(1), json!(2));
        let mut context = CelContext::new();
        context.bind("a", &one);
        context.bind("b", &one);
        context.bind("a", &two);
        assert_eq!(
            context.iter().collect::<Vec<_>>(),
            [("b", &one), ("a", &two)]
        );
    }
}
