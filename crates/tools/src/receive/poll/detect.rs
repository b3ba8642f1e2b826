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
/// How far `poll.last_fetched_at` lies before the last step of a poll that has a `key`. Clocks differ, and endpoints list
/// an item some time after the time it bears; what is found twice is known by its key.
const OVERLAP: SignedDuration = SignedDuration::from_mins(1);

/// The items of an answer. On the first step, `poll.last_fetched_at` is 1970: everything is remembered, unless
/// that is too much, and then what is from just now.
pub(super) fn detect(
    poll: &Poll,
    response: &Value,
    parameters: &Map<String, Value>,
    state: &PollState,
    now: Timestamp,
) -> Result<Vec<PollItem>, PollProblem> {
    let before = |instant: Timestamp| match &poll.key {
        Some(_) => instant.checked_sub(OVERLAP).unwrap_or(instant),
        None => instant,
    };
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
        Value::Array(items) => {
            let items = items.into_iter().map(|item| identified(poll, item));
            let items: Result<_, _> = items.collect();
            items.map_err(|problem| (problem, false))
        }
        other => Err((PollProblem::NotAList(type_name(&other)), false)),
    }
}

/// An item with what it is told from others by, where the poll says so.
fn identified(poll: &Poll, item: Value) -> Result<PollItem, PollProblem> {
    let Some(program) = &poll.key else {
        return Ok(PollItem { id: None, item });
    };
    let mut variables = Variables::new();
    variables.bind("item", &item);
    let key = program.evaluate(&variables);
    let key = key.map_err(|error| PollProblem::Key(error.message))?;
    // A key of the endpoint's making can be of any length; what is remembered is not.
    let hash = digest::digest(&digest::SHA256, key.to_string().as_bytes());
    let id = URL_SAFE_NO_PAD.encode(&hash.as_ref()[..16]);
    Ok(PollItem { id: Some(id), item })
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
