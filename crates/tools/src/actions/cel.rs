//! `cel`: an expression over `context`, `input`, `now` and `runtime` whose result is the action's.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_expr::{FunctionError, Program, Variables};
use serde_json::{Value, json};

use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup,
};
use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{CelCall, Execute, mount_functions};

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(_setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    Ok(Arc::new(CelRuntime))
}

/// Evaluates expressions; keeps nothing between calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct CelRuntime;

impl ActionRuntime for CelRuntime {
    fn initialize<'a>(
        &'a self,
        _call: &'a ActionCall,
        _environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async { Ok(Arc::new(*self) as Arc<dyn ActionSession>) })
    }

    fn preview(&self, preview: Preview<'_>) -> Result<Value, ActionError> {
        let (call, environment) = (preview.call, preview.environment);
        Ok(json!({
            "expression": cel_of(call)?.expression.source(),
            "variables": {
                "context": call.context,
                "input": call.parameters,
                "now": environment.now(),
                "runtime": environment.root(Root::Runtime).cloned().unwrap_or(json!({})),
            },
        }))
    }
}

impl ActionSession for CelRuntime {
    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        Box::pin(async move {
            let cel = cel_of(call)?;
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
            let expression = with_files(&cel.expression, environment)?;
            let result = expression.evaluate(&variables);
            result.map_err(|error| ActionError::new(ActionFailure::Cel, error.to_string()))
        })
    }
}

fn cel_of(call: &ActionCall) -> Result<&CelCall, ActionError> {
    match &call.action.execute {
        Execute::Cel(cel) => Ok(cel),
        _ => Err(ActionError::new(
            ActionFailure::Manifest,
            "this is not a `cel` action",
        )),
    }
}

/// The expression with `mount.read` and `mount.write` on the files of the task, where it uses them.
fn with_files(expression: &Program, environment: &Environment) -> Result<Program, ActionError> {
    if !expression
        .functions()
        .any(|name| name.starts_with("mount."))
    {
        return Ok(expression.clone());
    }
    let Some(files) = environment.files() else {
        let message = "the expression uses files, and the agent has no `mount`";
        return Err(ActionError::new(ActionFailure::Manifest, message));
    };
    let (reading, writing) = (Arc::clone(files), Arc::clone(files));
    mount_functions(
        move |arguments| match arguments {
            [Value::String(path)] => reading
                .read(path)
                .map(Value::String)
                .map_err(|error| FunctionError::new(error.to_string())),
            _ => Err(FunctionError::new("mount.read takes a path")),
        },
        move |arguments| match arguments {
            [Value::String(path), Value::String(content)] => writing
                .write(path, content)
                .map(|()| Value::String(content.clone()))
                .map_err(|error| FunctionError::new(error.to_string())),
            _ => Err(FunctionError::new("mount.write takes a path and a text")),
        },
    )
    .compile(expression.source())
    .map_err(|error| ActionError::new(ActionFailure::Manifest, error.to_string()))
}
