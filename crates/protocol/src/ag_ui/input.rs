//! The input of a run.

use serde_json::{Value, json};

/// Fills in what the input of a run lacks, never changing what is there. Older agents insist on the lists that newer
/// ones leave out, and every message needs an id. What is no object is left as it is.
///
/// ```
/// use proofhouse_protocol::ag_ui::complete_input;
/// use serde_json::json;
///
/// let input = complete_input(json!({"threadId": "t", "messages": [{"role": "user", "content": "hi"}]}));
/// assert_eq!((&input["threadId"], &input["runId"], &input["tools"]), (&json!("t"), &json!("run-1"), &json!([])));
/// assert_eq!(input["messages"][0]["id"], "message-1");
/// ```
#[must_use]
pub fn complete_input(mut input: Value) -> Value {
    let Value::Object(map) = &mut input else {
        return input;
    };
    for (key, default) in [
        ("threadId", json!("thread-1")),
        ("runId", json!("run-1")),
        ("messages", json!([])),
        ("tools", json!([])),
        ("context", json!([])),
        ("forwardedProps", json!({})),
        ("state", json!({})),
    ] {
        map.entry(key).or_insert(default);
    }
    if let Some(Value::Array(messages)) = map.get_mut("messages") {
        for (position, message) in messages.iter_mut().enumerate() {
            if let Value::Object(message) = message
                && !message.contains_key("id")
            {
                let id = format!("message-{}", position + 1);
                message.insert("id".to_owned(), id.into());
            }
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_filled_in_and_what_is_there_stays() {
        let input = complete_input(json!({
            "threadId": "t", "state": null, "extra": 1,
            "messages": [{"role": "user", "content": "a"}, {"id": "x", "role": "user"}, "odd"],
        }));
        assert_eq!(
            (&input["state"], &input["extra"]),
            (&json!(null), &json!(1))
        );
        assert_eq!(
            (&input["context"], &input["forwardedProps"]),
            (&json!([]), &json!({}))
        );
        let ids: Vec<&Value> = input["messages"].as_array().unwrap()[..2]
            .iter()
            .map(|message| &message["id"])
            .collect();
        assert_eq!(ids, ["message-1", "x"]);
        assert_eq!(complete_input(json!("not an input")), "not an input");
    }
}
