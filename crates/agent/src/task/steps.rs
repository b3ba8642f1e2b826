//! Steps: what is asserted, invoked and transformed around calls, inputs and outputs. Whatever cannot be
//! evaluated has failed.

use std::sync::{Arc, Mutex};

use proofhouse_expr::{CompileError, EvaluateError, Form, FunctionError, Program};
use proofhouse_manifest::interpolate::{Root, TemplateScope};
use proofhouse_manifest::{MiddlewareStep, OnFail, StepAction};
use proofhouse_tools::runtime::{ActionError, Environment, Invocation};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};

use super::capabilities::{self, BindingError, Capabilities};
use super::context::{self, ExpressionScope, TaskContext};
use super::journal::Keeper;
use super::review::Reviews;
use super::watch::Watchers;
use super::{CallStatus, Decision, TaskEvent, Turn};

/// Where the steps are taken.
pub(super) struct StepSite<'a> {
    pub(super) context: &'a mut TaskContext,
    pub(super) capabilities: &'a Capabilities,
    pub(super) environment: &'a Environment,
    pub(super) runtime: &'a Value,
    pub(super) reviews: &'a Reviews,
    pub(super) events: &'a Watchers,
    pub(super) cancel: &'a CancellationToken,
    /// The function around which they are taken, or what stands for it.
    pub(super) function: &'a str,
    /// Its action, which `match` is about.
    pub(super) action: &'a str,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    /// The event around which they are taken, if it is one.
    pub(super) event: Option<Value>,
    /// The id of the call around which they are taken.
    pub(super) call: &'a str,
    pub(super) keeper: &'a Keeper,
}

/// How steps went.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Passed {
    /// All held, or those that did not are passed over.
    Yes,
    /// The model is told this, and the call does not happen.
    Blocked(String),
    /// The task ends.
    Locked(String),
    /// The task was cancelled meanwhile.
    Cancelled,
}

/// Why a step was not taken to its end.
enum StepFault {
    Failed(StepError),
    Cancelled,
}

impl From<StepError> for StepFault {
    fn from(error: StepError) -> Self {
        Self::Failed(error)
    }
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("an assertion of the agent does not hold")]
    Assertion,
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error(transparent)]
    Binding(#[from] BindingError),
    #[error("there is no tool `{0}`")]
    NoTool(String),
    #[error("`{tool}` failed: {source}")]
    Tool {
        tool: String,
        source: Box<ActionError>,
    },
}

impl StepSite<'_> {
    /// Takes steps in order, until one of them stops it.
    pub(super) async fn take(&mut self, steps: &[MiddlewareStep]) -> Passed {
        for step in steps {
            if step
                .matches
                .as_ref()
                .is_some_and(|name| name != self.action)
            {
                continue;
            }
            let taken = match self.applies(step) {
                Ok(false) => continue,
                Ok(true) => self.step(step).await,
                Err(error) => Err(error.into()),
            };
            let fault = match taken {
                Ok(()) => continue,
                Err(StepFault::Cancelled) => return Passed::Cancelled,
                Err(StepFault::Failed(error)) => self.message(step, &error),
            };
            match step.on_fail {
                OnFail::Continue => {}
                OnFail::Block => return Passed::Blocked(fault),
                OnFail::LockTask => return Passed::Locked(fault),
            }
        }
        Passed::Yes
    }

    fn applies(&self, step: &MiddlewareStep) -> Result<bool, StepError> {
        match &step.condition {
            None => Ok(true),
            Some(condition) => Ok(truthy(&self.evaluate(condition)?)),
        }
    }

    async fn step(&mut self, step: &MiddlewareStep) -> Result<(), StepFault> {
        match &step.action {
            StepAction::Assert(program) => {
                let value = self.evaluate_with_reviews(program).await?;
                if truthy(&value) {
                    Ok(())
                } else {
                    Err(StepError::Assertion.into())
                }
            }
            StepAction::Transform(program) => {
                let value = self.evaluate(program)?;
                match &mut self.output {
                    Some(output) => *output = value,
                    None => self.input = value,
                }
                Ok(())
            }
            StepAction::Invoke {
                tool,
                action,
                bindings,
            } => self.invoke(tool, action.as_deref(), bindings).await,
        }
    }

    async fn invoke(
        &mut self,
        tool: &str,
        action: Option<&str>,
        bindings: &[(String, proofhouse_manifest::Binding)],
    ) -> Result<(), StepFault> {
        let now = self.environment.now();
        let arguments = capabilities::bound(
            bindings,
            self.context,
            self.scope(),
            &now,
            self.environment,
            self.runtime,
        );
        let arguments = arguments.map_err(StepError::from)?;
        let gone = || StepError::NoTool(tool.to_owned());
        let only = || {
            let (task, _) = self.capabilities.helper(tool, "")?;
            task.tool()
                .actions
                .first()
                .map(|action| action.name.clone())
        };
        let action = match action {
            Some(action) => action.to_owned(),
            None => only().ok_or_else(gone)?,
        };
        let (task, name) = self.capabilities.helper(tool, &action).ok_or_else(gone)?;
        let invocation = Invocation {
            id: String::new(),
            action,
            arguments: arguments.clone(),
            bound: Vec::new(),
            context: self.context.value().clone(),
            cancel: self.cancel.clone(),
        };
        let calling = || Turn::Calling {
            time: now.clone(),
            call: self.call.to_owned(),
            function: name.clone(),
            arguments: arguments.clone(),
            step: true,
        };
        let kept = self.keeper.turn(calling).await;
        kept.map_err(|_| StepFault::Cancelled)?;
        let result = task.carry_out(invocation).await;
        let (output, status) = match &result {
            Ok(outcome) => (outcome.value.clone(), CallStatus::Successful),
            Err(error) => (error.to_json(), CallStatus::Errored),
        };
        let now = self.environment.now();
        let invoked = || Turn::Invoked {
            time: now.clone(),
            function: name.clone(),
            arguments: arguments.clone(),
            output: output.clone(),
            status,
        };
        let kept = self.keeper.turn(invoked).await;
        kept.map_err(|_| StepFault::Cancelled)?;
        self.context
            .called(&name, &now, &arguments, &output, status, None);
        match result {
            Ok(_) => Ok(()),
            Err(_) if self.cancel.is_cancelled() => Err(StepFault::Cancelled),
            Err(source) => {
                let (tool, source) = (tool.to_owned(), Box::new(source));
                Err(StepError::Tool { tool, source }.into())
            }
        }
    }

    fn scope(&self) -> ExpressionScope<'_> {
        ExpressionScope {
            input: Some(&self.input),
            output: self.output.as_ref(),
            event: self.event.as_ref(),
        }
    }

    fn evaluate(&self, program: &Program) -> Result<Value, StepError> {
        let compiled = with_functions(program, &[], &Reviewer::default())?;
        Ok(self.run(&compiled)?)
    }

    fn run(&self, program: &Program) -> Result<Value, EvaluateError> {
        let now = self.environment.now();
        let scope = self.scope();
        let variables =
            context::variables(program.source(), self.context, scope, &now, self.runtime);
        program.evaluate(&variables)
    }

    /// Evaluates an assertion. Where it asks for a review, the person is asked, and then it is evaluated
    /// again with the answer.
    async fn evaluate_with_reviews(&self, program: &Program) -> Result<Value, StepFault> {
        let mut answers: Vec<(String, bool)> = Vec::new();
        loop {
            let asked = Reviewer::default();
            let compiled = with_functions(program, &answers, &asked).map_err(StepError::from)?;
            let error = match self.run(&compiled) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let asked = lock(&asked).take();
            let reviewer = match asked {
                Some(reviewer) if answers.len() < MAX_REVIEWS => reviewer,
                _ => return Err(StepError::from(error).into()),
            };
            let arguments = self.input.as_object().cloned().unwrap_or_default();
            let (review, decision) = self.reviews.ask(
                reviewer.clone(),
                self.function,
                &arguments,
                self.output.as_ref(),
            );
            let id = review.id;
            let question = || Turn::Asked {
                time: self.environment.now(),
                review: review.clone(),
            };
            if self.keeper.turn(question).await.is_err() {
                self.reviews.forget(id);
                return Err(StepFault::Cancelled);
            }
            let _ = self.events.send(TaskEvent::Review(review));
            let decision = tokio::select! {
                biased;
                decision = decision => decision.unwrap_or(Decision::Deny),
                () = self.cancel.cancelled() => {
                    self.reviews.forget(id);
                    return Err(StepFault::Cancelled);
                }
            };
            answers.push((reviewer, decision == Decision::Approve));
        }
    }

    /// What is told of a failed step: the manifest's words, if it has any.
    fn message(&self, step: &MiddlewareStep, error: &StepError) -> String {
        let Some(template) = &step.error_message else {
            return error.to_string();
        };
        let mut variables = Map::new();
        variables.insert("input".to_owned(), self.input.clone());
        variables.insert("i".to_owned(), self.input.clone());
        if let Some(output) = &self.output {
            variables.insert("output".to_owned(), output.clone());
            variables.insert("o".to_owned(), output.clone());
        }
        if let Some(event) = &self.event {
            variables.insert("event".to_owned(), event.clone());
        }
        variables.insert("now".to_owned(), self.environment.now().into());
        variables.insert("c".to_owned(), self.context.value().clone());
        let mut scope = TemplateScope::default();
        scope.set(Root::Parameters, Value::Object(variables));
        scope.set(Root::Context, self.context.value().clone());
        scope.set(Root::Runtime, self.runtime.clone());
        match scope.text(template) {
            Ok(text) => text.into_exposed(),
            Err(_) => error.to_string(),
        }
    }
}

/// Questions of one assertion.
const MAX_REVIEWS: usize = 16;
/// Who is asked by an assertion that cannot go on without the answer.
type Reviewer = Arc<Mutex<Option<String>>>;

/// The program with `put` and `review` as they are now. Without answers, `review` is an error that tells
/// who is asked.
fn with_functions(
    program: &Program,
    answers: &[(String, bool)],
    asked: &Reviewer,
) -> Result<Program, CompileError> {
    let special = |name: &str| matches!(name, "put" | "review");
    if !program.functions().any(special) {
        return Ok(program.clone());
    }
    let (answers, asked) = (answers.to_vec(), Arc::clone(asked));
    proofhouse_manifest::compiler()
        .function("put", Form::Member, |arguments| match arguments {
            [Value::Object(map), Value::String(key), value] => {
                let mut map = map.clone();
                map.insert(key.clone(), value.clone());
                Ok(Value::Object(map))
            }
            _ => Err(FunctionError::new("put takes a name and a value, on a map")),
        })
        .function("review", Form::Global, move |arguments| {
            let [Value::String(reviewer)] = arguments else {
                return Err(FunctionError::new("review takes the name of a person"));
            };
            match answers.iter().find(|(answered, _)| answered == reviewer) {
                Some((_, approved)) => Ok(json!(approved)),
                None => {
                    *lock(&asked) = Some(reviewer.clone());
                    Err(FunctionError::new("a review is needed"))
                }
            }
        })
        .compile(program.source())
}

/// What counts as holding.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}
