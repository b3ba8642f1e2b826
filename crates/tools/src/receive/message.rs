//! What a task is told of an event: its aliases, and the message with them in place.

use proofhouse_expr::{EvaluateError, Program, Variables};
use serde_json::{Map, Value};

use proofhouse_manifest::interpolate::{Root, Template, TemplatePiece, TemplateScope};
use proofhouse_manifest::{EventParameters, ToolEvent};

/// The longest message. A model is told no more of anything.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// How many problems are recorded.
const MAX_PROBLEMS: usize = 100;

/// What a task is told of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// The text.
    pub message: String,
    /// `event` as steps of middleware see it: `payload`, `headers` where there are some, and the aliases.
    pub event: Value,
    /// What could not be had, and was left empty. The event goes on: a missing title must not lose it.
    pub problems: Vec<String>,
    /// Whether the text was longer than it may be, and cut.
    pub truncated: bool,
}

/// Composes what a task is told. `event` is `{payload, headers}`; for an item of a poll, `payload` is the item,
/// which aliases also name `item`. An alias whose expression fails is null, and what has no value is empty
/// text; each is a recorded problem.
#[must_use]
pub fn compose(event: &ToolEvent, value: &Value) -> Composed {
    let mut problems = Vec::new();
    let mut whole: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    if let EventParameters::Aliases(aliases) = &event.parameters {
        for (name, program) in aliases {
            let found = alias(program, value).unwrap_or_else(|error| {
                note(&mut problems, format!("`event.{name}` is empty: {error}"));
                Value::Null
            });
            // The payload stays what it is, whatever an alias is called.
            if name != "payload" {
                whole.insert(name.clone(), found);
            }
        }
    }
    let whole = Value::Object(whole);
    let (message, truncated) = render(&event.message, &whole, &mut problems);
    Composed {
        message,
        event: whole,
        problems,
        truncated,
    }
}

/// A template with `{event…}` references as text; what has no value is left empty and noted.
#[must_use]
pub fn render(template: &Template, event: &Value, problems: &mut Vec<String>) -> (String, bool) {
    let mut scope = TemplateScope::default();
    scope.set(Root::Event, event.clone());
    let mut text = String::new();
    for part in template.parts() {
        match part {
            TemplatePiece::Text(literal) => text.push_str(literal),
            TemplatePiece::Value(reference) => match scope.resolve(reference) {
                Ok(Value::Null) => {}
                Ok(Value::String(value)) => text.push_str(&value),
                Ok(value) => text.push_str(&value.to_string()),
                Err(_) => note(problems, format!("`{reference}` has no value")),
            },
        }
        if text.len() > MAX_MESSAGE_BYTES {
            text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
            return (text, true);
        }
    }
    (text, false)
}

fn alias(program: &Program, event: &Value) -> Result<Value, EvaluateError> {
    let nothing = Value::Null;
    let mut variables = Variables::new();
    variables.bind("event", event);
    variables.bind("item", event.get("payload").unwrap_or(&nothing));
    program.evaluate(&variables)
}

fn note(problems: &mut Vec<String>, problem: String) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(problem);
    }
}
