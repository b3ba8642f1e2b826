//! What a result is, and what tools that look at messages see of one.

use serde_json::{Value, json};

use super::{McpMethod, meta};

/// The values of `resultType`, from 2026-07-28 on; absent means complete.
pub mod result_type {
    /// The member that says it.
    pub const KEY: &str = "resultType";
    /// The request is done.
    pub const COMPLETE: &str = "complete";
    /// The client must answer questions and ask again.
    pub const INPUT_REQUIRED: &str = "input_required";
    /// The request goes on as a task, with the extension for tasks.
    pub const TASK: &str = "task";
}

/// The content of a message with these parameters; without any, an empty one, in which documents can look for
/// what is not there.
#[must_use]
pub fn content_of_params(params: Option<&Value>) -> Value {
    match params {
        None | Some(Value::Null) => json!({}),
        Some(params) => params.clone(),
    }
}

/// A result, or an error, together with what was asked for, where it makes no sense otherwise: the members of the
/// parameters that the result does not have itself.
///
/// ```
/// use proofhouse_protocol::mcp::answer_with_call;
/// use serde_json::json;
///
/// let params = json!({"name": "weather", "content": "hidden", "_meta": {}});
/// let answer = answer_with_call("tools/call", Some(&params), json!({"content": []}));
/// assert_eq!(answer, json!({"content": [], "name": "weather"}));
/// let list = answer_with_call("tools/list", Some(&params), json!({"tools": []}));
/// assert_eq!(list, json!({"tools": []}));
/// ```
#[must_use]
pub fn answer_with_call(method: &str, params: Option<&Value>, mut answer: Value) -> Value {
    if McpMethod::parse(method).is_some_and(McpMethod::result_needs_call)
        && let (Value::Object(answer), Some(Value::Object(params))) = (&mut answer, params)
    {
        for (key, value) in params.iter().filter(|(key, _)| *key != meta::KEY) {
            answer.entry(key).or_insert_with(|| value.clone());
        }
    }
    answer
}
