//! What documents see of a message: its parameters, its result, and which call it belongs to.

use serde_json::{Value, json};

/// The content of a message with these parameters; without any, an empty one, in which documents
/// can look for what is not there.
pub(super) fn content_of(params: Option<&Value>) -> Value {
    match params {
        None | Some(Value::Null) => json!({}),
        Some(params) => params.clone(),
    }
}

/// The content of a response. Those to calls of tools and prompts tell which call it was.
pub(super) fn enriched(
    method: &str,
    params: Option<&Value>,
    outcome: Result<Value, Value>,
) -> Value {
    let mut content = outcome.unwrap_or_else(|error| error);
    if matches!(method, "tools/call" | "prompts/get")
        && let (Value::Object(content), Some(Value::Object(params))) = (&mut content, params)
    {
        for (key, value) in params.iter().filter(|(key, _)| *key != "_meta") {
            content.entry(key).or_insert_with(|| value.clone());
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn responses_to_calls_tell_which_call_it_was() {
        let params = json!({"name": "x", "content": "hidden", "_meta": {}});
        let result = enriched("tools/call", Some(&params), Ok(json!({"content": []})));
        assert_eq!(result, json!({"content": [], "name": "x"}));
        let error = enriched("prompts/get", Some(&params), Err(json!({"code": 1})));
        assert_eq!(error["name"], "x");
        let list = enriched("tools/list", Some(&params), Ok(json!({"tools": []})));
        assert_eq!(list, json!({"tools": []}));
    }
}
