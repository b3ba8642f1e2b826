//! `cel`: an expression over `context`, `input`, `now` and `runtime` whose result is the action's.

use futures_util::future::BoxFuture;
use proofhouse_expr::Variables;
use serde_json::{Value, json};

use crate::interpolate::Root;
use crate::manifest::Execute;
use crate::runtime::{ActionError, ActionRuntime, Call, Environment, Failure, State};

/// Evaluates expressions; keeps nothing between calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct CelRuntime;

impl ActionRuntime for CelRuntime {
    fn initialize<'a>(
        &'a self,
        _call: &'a Call,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<State, ActionError>> {
        Box::pin(async { Ok(State::new(())) })
    }

    fn invoke<'a>(
        &'a self,
        _state: &'a State,
        call: &'a Call,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let Execute::Cel(cel) = &call.action.execute else {
                return Err(ActionError::new(
                    Failure::Manifest,
                    "this is not a `cel` action",
                ));
            };
            let mut variables = Variables::new();
            variables
                .bind("context", &call.context)
                .bind_owned("input", Value::Object(call.parameters.clone()))
                .bind_owned("now", environment.now().into())
                .bind_owned(
                    "runtime",
                    environment
                        .root(Root::Runtime)
                        .cloned()
                        .unwrap_or(json!({})),
                );
            let result = cel.expression.evaluate(&variables);
            result.map_err(|error| ActionError::new(Failure::Cel, error.to_string()))
        })
    }
}
