//! The functions that a model would see, as they are listed for people and for programs.

use std::sync::Arc;

use proofhouse_manifest::{Tool, ToolAction};
use proofhouse_source::{printable, printable_line};
use proofhouse_tools::functions::Function;
use serde_json::{Value, json};

/// A function for people: its name and origin, what it does, and what it takes.
#[must_use]
pub fn text(tools: &[Arc<Tool>], actions: &[Vec<Arc<ToolAction>>], function: &Function) -> String {
    let tool = &tools[function.reference];
    let runtime = runtime_of(actions, function);
    let from = format!("{}/{}, {}", tool.namespace, tool.name, function.action);
    let mut text = format!("{} ({}, {runtime})\n", function.name, printable_line(&from));
    for line in printable(&function.description).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    let properties = function.parameters.get("properties");
    for (name, property) in properties.and_then(Value::as_object).into_iter().flatten() {
        let shown = parameter(name, property, &function.parameters);
        text.push_str(&format!("    - {}\n", printable_line(&shown)));
    }
    text
}

fn parameter(name: &str, property: &Value, schema: &Value) -> String {
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut shown = format!("{name}: {kind}");
    if is_required {
        shown.push_str(", required");
    }
    if let Some(default) = property.get("default") {
        shown.push_str(&format!(", default {default}"));
    }
    if let Some(description) = property.get("description").and_then(Value::as_str) {
        let first = description.lines().next().unwrap_or_default();
        shown.push_str(&format!("; {first}"));
    }
    shown
}

/// A function for programs, with its origin and both schemas.
#[must_use]
pub fn entry(tools: &[Arc<Tool>], actions: &[Vec<Arc<ToolAction>>], function: &Function) -> Value {
    let tool = &tools[function.reference];
    json!({
        "name": function.name,
        "tool": {"namespace": tool.namespace, "name": tool.name},
        "action": function.action,
        "runtime": runtime_of(actions, function),
        "openai": function.to_openai(),
        "mcp": function.to_mcp(),
    })
}

fn runtime_of(actions: &[Vec<Arc<ToolAction>>], function: &Function) -> &'static str {
    let mut of = actions[function.reference].iter();
    of.find(|action| action.name == function.action)
        .map_or("unknown", |action| action.execute.key())
}
