//! `detect`: which items an answer holds, and what each is told from others by.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use proofhouse_expr::{EvaluateErrorKind, Variables};
use ring::digest;
use serde_json::{Map, Value, json};

use super::{PollItem, PollProblem, PollState};
use proofhouse_manifest::Poll;

/// How many items an answer may hold. Each is remembered, and the state is written at every step.
pub const MAX_DETECTED: usize = 5_000;
/// How far `poll.last_fetched_at` lies before the last step. Clocks differ, and endpoints list an item some
/// time after the time it bears; what is found twice is known by its id.
const OVERLAP: SignedDuration = SignedDuration::from_mins(1);
/// The fields that name an item, the first that is there.
const ID_FIELDS: [&str; 5] = ["id", "guid", "uuid", "node_id", "key"];

/// The items of an answer. On the first step, `poll.last_fetched_at` is 1970: everything is remembered, unless
/// that is too much, and then what is from just now.
pub(super) fn detect(
    poll: &Poll,
    response: &Value,
    parameters: &Map<String, Value>,
    state: &PollState,
    now: Timestamp,
) -> Result<Vec<PollItem>, PollProblem> {
    let before = |instant: Timestamp| instant.checked_sub(OVERLAP).unwrap_or(instant);
    let parameters = Value::Object(parameters.clone());
    match state.last_fetched_at {
        Some(last) => {
            evaluate(poll, response, &parameters, before(last)).map_err(|(problem, _)| problem)
        }
        None => match evaluate(poll, response, &parameters, Timestamp::UNIX_EPOCH) {
            Err((_, true)) => {
                evaluate(poll, response, &parameters, before(now)).map_err(|(problem, _)| problem)
            }
            other => other.map_err(|(problem, _)| problem),
        },
    }
}

/// The second part of an error is whether it was too much.
fn evaluate(
    poll: &Poll,
    response: &Value,
    parameters: &Value,
    since: Timestamp,
) -> Result<Vec<PollItem>, (PollProblem, bool)> {
    // Fixed width, so that times can be compared as texts.
    let about = json!({"last_fetched_at": format!("{since:.3}")});
    let mut variables = Variables::new();
    variables.bind("response", response);
    variables.bind("poll", &about);
    variables.bind("parameters", parameters);
    let found = poll.detect.evaluate(&variables).map_err(|error| {
        let is_much = error.kind == EvaluateErrorKind::Budget;
        (PollProblem::Detect(error.message), is_much)
    })?;
    match found {
        Value::Array(items) if items.len() > MAX_DETECTED => {
            Err((PollProblem::TooMany(items.len()), true))
        }
        Value::Array(items) => Ok(items.into_iter().map(identified).collect()),
        other => Err((PollProblem::NotAList(type_name(&other)), false)),
    }
}

fn identified(item: Value) -> PollItem {
    let named = ID_FIELDS.iter().find_map(|field| {
        let id = item.get(field)?;
        let is_id = id.is_number() || id.as_str().is_some_and(|text| !text.is_empty());
        is_id.then(|| format!("{field}:{id}"))
    });
    // An id of the endpoint can be of any length; what is remembered is not.
    let text = named.unwrap_or_else(|| format!("item:{item}"));
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    PollItem {
        id: URL_SAFE_NO_PAD.encode(&hash.as_ref()[..16]),
        item,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_apart_by_their_ids() {
        let id = |item: Value| identified(item).id;
        assert_eq!(
            id(json!({"id": 1, "views": 1})),
            id(json!({"id": 1, "views": 2}))
        );
        assert_ne!(id(json!({"id": 1})), id(json!({"id": "1"})));
        assert_ne!(id(json!({"id": 1})), id(json!({"guid": 1})));
        assert_ne!(id(json!({"title": "a"})), id(json!({"title": "b"})));
        assert_eq!(
            id(json!({"id": null, "t": 1})),
            id(json!({"id": null, "t": 1}))
        );
        assert_ne!(id(json!({"id": "", "t": 1})), id(json!({"id": "", "t": 2})));
        assert_eq!(id(json!({"id": "x".repeat(100_000)})).len(), 22);
        assert_eq!(id(json!("text")), id(json!("text")));
    }
}
