//! The context of a task: what expressions can read of it, kept as the JSON that the specification
//! describes.

use std::sync::Arc;

use proofhouse_expr::Variables;
use serde_json::{Map, Value, json};

use super::{CallStatus, User};

/// What expressions read as `context`.
#[derive(Debug, Clone)]
pub(super) struct TaskContext {
    /// Shared with those outside who look at it, until it changes.
    value: Arc<Value>,
}

/// What can be read of a function that was never called.
fn unused() -> Value {
    json!({
        "count_successful": 0, "count_errored": 0, "count_restricted": 0,
        "timestamps": [], "inputs": [], "outputs": [],
        "successful": [], "errored": [], "restricted": [],
    })
}

impl TaskContext {
    pub(super) fn new(
        agent: &str,
        namespace: &str,
        started_at: &str,
        user: &User,
        model: &str,
    ) -> Self {
        Self {
            value: Arc::new(json!({
                "agent": {"name": agent, "namespace": namespace, "started_at": started_at},
                "user": {"id": user.id, "email": user.email},
                "llm": {"model": model, "tokens": {"total": 0, "prompt": 0, "completion": 0}},
                "_history": {"turns": [], "turn_count": 0},
                "input": [],
                "output": [],
                "capabilities": {"_meta": {"invocations": [], "count": 0, "delegation_count": 0}},
            })),
        }
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// The context as it is now, for those outside.
    pub(super) fn shared(&self) -> Arc<Value> {
        Arc::clone(&self.value)
    }

    fn change(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.value)
    }

    /// Makes sure that a function can be read, used or not.
    pub(super) fn know(&mut self, function: &str) {
        if self.value["capabilities"].get(function).is_some() {
            return;
        }
        if let Some(capabilities) = self.change()["capabilities"].as_object_mut() {
            capabilities.insert(function.to_owned(), unused());
        }
    }

    pub(super) fn turn(&mut self, word: &str) {
        let history = &mut self.change()["_history"];
        push(&mut history["turns"], word.into());
        add(&mut history["turn_count"], 1);
    }

    pub(super) fn used(&mut self, prompt: u64, completion: u64) {
        let tokens = &mut self.change()["llm"]["tokens"];
        add(&mut tokens["prompt"], prompt);
        add(&mut tokens["completion"], completion);
        add(&mut tokens["total"], prompt.saturating_add(completion));
    }

    pub(super) fn tokens(&self) -> (u64, u64) {
        let tokens = &self.value["llm"]["tokens"];
        let of = |name: &str| tokens[name].as_u64().unwrap_or(0);
        (of("prompt"), of("completion"))
    }

    pub(super) fn input(&mut self, message: &str, parameters: &Map<String, Value>) {
        push(&mut self.change()["input"], task_io(message, parameters));
    }

    /// What a parameter was when it was last given.
    pub(super) fn parameter(&self, name: &str) -> Option<&Value> {
        let mut inputs = self.value["input"].as_array()?.iter().rev();
        inputs.find_map(|input| input.get(name))
    }

    pub(super) fn output(&mut self, message: &str, exposed: &Map<String, Value>) {
        push(&mut self.change()["output"], task_io(message, exposed));
    }

    /// Takes the last input back, which a guardrail refused.
    pub(super) fn replace_last_output(&mut self, output: Value) {
        if let Some(outputs) = self.change()["output"].as_array_mut() {
            outputs.pop();
            outputs.push(output);
        }
    }

    /// Notes a call that came to its end.
    pub(super) fn called(
        &mut self,
        function: &str,
        time: &str,
        input: &Map<String, Value>,
        output: &Value,
        status: CallStatus,
        child: Option<&str>,
    ) {
        self.know(function);
        let entry = &mut self.change()["capabilities"][function];
        let flags = [
            ("successful", "count_successful", CallStatus::Successful),
            ("errored", "count_errored", CallStatus::Errored),
            ("restricted", "count_restricted", CallStatus::Restricted),
        ];
        for (list, count, of) in flags {
            push(&mut entry[list], (status == of).into());
            add(&mut entry[count], u64::from(status == of));
        }
        push(&mut entry["timestamps"], time.into());
        push(&mut entry["inputs"], Value::Object(input.clone()));
        push(&mut entry["outputs"], output.clone());
        if let Some(child) = child {
            if entry.get("task_ids").is_none() {
                entry["task_ids"] = json!([]);
            }
            push(&mut entry["task_ids"], child.into());
        }
        let meta = &mut self.change()["capabilities"]["_meta"];
        push(&mut meta["invocations"], function.into());
        add(&mut meta["count"], 1);
        add(&mut meta["delegation_count"], u64::from(child.is_some()));
    }

    /// The context as `c`, which also has `cap`.
    pub(super) fn short(&self) -> Value {
        let mut short = Value::clone(&self.value);
        short["cap"] = self.value["capabilities"].clone();
        short
    }
}

/// A message and what comes with it. The message is a list of content parts.
pub(super) fn task_io(message: &str, more: &Map<String, Value>) -> Value {
    let mut io = more.clone();
    io.insert(
        "message".to_owned(),
        json!([{"type": "text", "text": message}]),
    );
    Value::Object(io)
}

/// The text of a task's input or output.
pub(super) fn text_of(io: &Value) -> Option<String> {
    match io {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => match &io["message"] {
            Value::String(text) => Some(text.clone()),
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                Some(texts.join("\n"))
            }
            _ => None,
        },
        Value::Array(list) => list.last().and_then(text_of),
        _ => None,
    }
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

fn add(number: &mut Value, more: u64) {
    *number = number.as_u64().unwrap_or(0).saturating_add(more).into();
}

/// The functions whose use an expression reads: `capabilities.name`, `cap['name']`.
pub(super) fn functions_read(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for word in ["capabilities", "cap"] {
        for (at, _) in source.match_indices(word) {
            let rest = &source[at + word.len()..];
            let name: String = if let Some(rest) = rest.strip_prefix('.') {
                rest.chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect()
            } else if let Some(rest) = rest.strip_prefix('[') {
                let rest = rest.trim_start().trim_start_matches(['\'', '"']);
                rest.chars()
                    .take_while(|c| !matches!(c, '\'' | '"' | ']'))
                    .collect()
            } else {
                continue;
            };
            if !name.is_empty() && name != "_meta" && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// What an expression can read beside the context.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExpressionScope<'a> {
    pub(super) input: Option<&'a Value>,
    pub(super) output: Option<&'a Value>,
    /// The event that is taken in, if one is.
    pub(super) event: Option<&'a Value>,
}

/// The variables of an expression.
pub(super) fn variables<'a>(
    source: &str,
    context: &'a TaskContext,
    scope: ExpressionScope<'a>,
    now: &str,
    runtime: &'a Value,
) -> Variables<'a> {
    let mut variables = Variables::new();
    variables.bind("context", context.value());
    if source.contains("cap") {
        variables.bind_owned("c", context.short());
    } else {
        variables.bind("c", context.value());
    }
    if let Some(input) = scope.input {
        variables.bind("input", input).bind("i", input);
    }
    if let Some(output) = scope.output {
        variables.bind("output", output).bind("o", output);
    }
    if let Some(event) = scope.event {
        variables.bind("event", event);
    }
    variables
        .bind_owned("now", now.into())
        .bind("runtime", runtime);
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_expr::Program;

    fn context() -> TaskContext {
        let user = User {
            id: "u1".to_owned(),
            email: None,
        };
        TaskContext::new(
            "clerk",
            "demo",
            "2026-01-01T00:00:00.000Z",
            &user,
            "sim:careful",
        )
    }

    #[test]
    fn calls_are_counted_and_kept() {
        let mut context = context();
        let input = json!({"path": "a"});
        let input = input.as_object().unwrap();
        context.called(
            "read",
            "t1",
            input,
            &json!("one"),
            CallStatus::Successful,
            None,
        );
        context.called(
            "read",
            "t2",
            input,
            &json!("two"),
            CallStatus::Restricted,
            None,
        );
        context.called(
            "ask",
            "t3",
            input,
            &json!("x"),
            CallStatus::Errored,
            Some("child"),
        );
        let capabilities = &context.value()["capabilities"];
        assert_eq!(capabilities["read"]["count_successful"], 1);
        assert_eq!(capabilities["read"]["restricted"], json!([false, true]));
        assert_eq!(capabilities["read"]["outputs"], json!(["one", "two"]));
        assert_eq!(capabilities["ask"]["task_ids"], json!(["child"]));
        assert_eq!(
            capabilities["_meta"],
            json!({"invocations": ["read", "read", "ask"], "count": 3, "delegation_count": 1})
        );
    }

    #[test]
    fn functions_nobody_used_read_as_zero() {
        let source =
            "context.capabilities.never.count_successful == 0 && c.cap['other'].outputs == []";
        assert_eq!(functions_read(source), ["never", "other"]);
        let mut context = context();
        for name in functions_read(source) {
            context.know(&name);
        }
        let runtime = json!({});
        let program = Program::compile(source).unwrap();
        let variables = variables(
            source,
            &context,
            ExpressionScope::default(),
            "now",
            &runtime,
        );
        assert!(program.evaluate_bool(&variables).unwrap());
    }

    #[test]
    fn messages_are_content_parts() {
        let mut context = context();
        context.input("hello", json!({"ticket": 7}).as_object().unwrap());
        assert_eq!(
            context.value()["input"][0],
            json!({"ticket": 7, "message": [{"type": "text", "text": "hello"}]})
        );
        assert_eq!(text_of(&context.value()["input"]), Some("hello".to_owned()));
    }
}
