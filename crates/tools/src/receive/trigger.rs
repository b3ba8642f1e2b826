//! Triggers: whether a raw event starts a task, and what that task is given.

use proofhouse_expr::Variables;
use serde_json::{Map, Value};

use super::Discard;
use super::filter::discard;
use super::message::render;
use proofhouse_manifest::{EventTrigger, OnFail, StepAction};

/// What a task that a trigger starts is given.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggeredTask {
    /// What it is told; nothing where the trigger has no message.
    pub message: Option<String>,
    /// The rest of its input.
    pub inputs: Map<String, Value>,
    /// What the message could not have, and was left empty.
    pub problems: Vec<String>,
}

/// Whether a trigger listens to a source: the tool or source in the address that the event was posted to.
#[must_use]
pub fn listens(trigger: &EventTrigger, source: &str) -> bool {
    trigger.enabled && trigger.source.kind == source
}

/// Whether an event `{payload, headers}` starts a task. Allow lists play no part in it; assertions do.
///
/// # Errors
///
/// Returns why no task starts.
pub fn fire(trigger: &EventTrigger, event: &Value, now: &str) -> Result<TriggeredTask, Discard> {
    if !trigger.enabled {
        return Err(Discard::Disabled);
    }
    let mut variables = Variables::new();
    variables.bind("event", event);
    variables.bind_owned("now", now.into());
    for (number, step) in trigger.source.before.iter().enumerate() {
        let StepAction::Assert(program) = &step.action else {
            continue;
        };
        let applies = match &step.condition {
            Some(condition) => condition.evaluate_bool(&variables),
            None => Ok(true),
        };
        let held = match applies {
            Ok(false) => Ok(true),
            Ok(true) => program.evaluate_bool(&variables),
            Err(error) => Err(error),
        };
        let reason = match held {
            Ok(true) => continue,
            Ok(false) => {
                let text = step.error_message.as_ref();
                let message = text.map(|text| text.source().to_owned());
                Discard::Assertion { number, message }
            }
            Err(error) => discard(error),
        };
        if step.on_fail != OnFail::Continue {
            return Err(reason);
        }
    }
    let mut problems = Vec::new();
    let message = trigger.message.as_ref();
    let message = message.map(|message| render(message, event, &mut problems).0);
    Ok(TriggeredTask {
        message,
        inputs: trigger.inputs.clone(),
        problems,
    })
}
