//! The default CEL evaluator, on the budgeted engine of `proofhouse-expr`.

use proofhouse_expr::{CompileError, EvaluateErrorKind, Program, Variables};
use serde_json::Value;

use crate::error::{EvaluationError, EvaluationErrorKind};
use crate::extension::{CelContext, CelEvaluator};
use crate::model::CelExpression;

/// The default evaluator: compiles an expression once, keeps it with the model, and bounds the time
/// and memory of every evaluation. A result that is not a boolean is a type error.
///
/// ```
/// use proofhouse_oatf::{CelContext, CelEvaluator, DefaultCelEvaluator};
/// use serde_json::json;
/// let message = json!({"name": "evil-tool"});
/// let mut context = CelContext::new();
/// context.bind("message", &message);
/// let result = DefaultCelEvaluator.evaluate("message.name.startsWith('evil')", &context);
/// assert_eq!(result, Ok(json!(true)));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultCelEvaluator;

impl CelEvaluator for DefaultCelEvaluator {
    fn evaluate(
        &self,
        expression: &str,
        context: &CelContext<'_>,
    ) -> Result<Value, EvaluationError> {
        run(
            &Program::compile(expression).map_err(|error| compile_error(&error))?,
            context,
        )
    }

    fn evaluate_kept(
        &self,
        expression: &CelExpression,
        context: &CelContext<'_>,
    ) -> Result<Value, EvaluationError> {
        run(
            &compiled(expression).map_err(|error| compile_error(&error))?,
            context,
        )
    }
}

/// The program kept with an expression, compiled if this is the first time.
pub(crate) fn compiled(expression: &CelExpression) -> Result<Program, CompileError> {
    match expression.compiled_with(Program::compile) {
        Some(kept) => kept.clone(),
        // Another evaluator keeps its own form there.
        None => Program::compile(expression.as_str()),
    }
}

fn run(program: &Program, context: &CelContext<'_>) -> Result<Value, EvaluationError> {
    let mut variables = Variables::new();
    for (name, value) in context.iter() {
        variables.bind(name, value);
    }
    let result = program.evaluate_bool(&variables).map(Value::Bool);
    result.map_err(|error| {
        let kind = match error.kind {
            EvaluateErrorKind::UnsupportedFunction => EvaluationErrorKind::UnsupportedMethod,
            EvaluateErrorKind::Type => EvaluationErrorKind::TypeError,
            _ => EvaluationErrorKind::CelError,
        };
        EvaluationError::new(kind, error.message)
    })
}

fn compile_error(error: &CompileError) -> EvaluationError {
    EvaluationError::new(EvaluationErrorKind::CelError, error.message.clone())
}
