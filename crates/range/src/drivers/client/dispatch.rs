//! Dispatch lists of a state: read once, answered from with templates resolved.

use proofhouse_oatf::{Fragment, ResponseEntry};
use serde_json::Value;

use crate::actor::ActorContext;

/// The entries of the list `key`, without those that make no sense; what is wrong with them is
/// added to `problems`.
pub(crate) fn entries(state: &Value, key: &str, problems: &mut Vec<String>) -> Vec<ResponseEntry> {
    let list = match state.get(key) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            problems.push(format!("`{key}` is not a list and is passed over"));
            return Vec::new();
        }
    };
    let mut entries = Vec::with_capacity(list.len());
    for (position, entry) in list.iter().enumerate() {
        match ResponseEntry::from_value(entry) {
            Ok(entry) => entries.push(entry),
            Err(errors) => {
                let reason = errors.first().map(ToString::to_string).unwrap_or_default();
                problems.push(format!("`{key}[{position}]` is passed over: {reason}"));
            }
        }
    }
    entries
}

/// The content of an entry: generated where it asks for that and what comes has the right shape,
/// otherwise as written, with templates resolved.
pub(crate) async fn content(
    context: &ActorContext,
    entry: &ResponseEntry,
    request: &Value,
    fits: impl Fn(&Value) -> bool,
) -> Option<Value> {
    let prompt = entry.synthesize.as_ref().and_then(|s| s.prompt.as_deref());
    if let Some(prompt) = prompt
        && let Some(generated) = context.generate(prompt, request.clone()).await
    {
        if fits(&generated) {
            return Some(generated);
        }
        context.warn("`synthesize` gave something of the wrong shape; it is passed over");
    }
    let content = entry.content.as_ref()?;
    Some(context.interpolate(content, Some(request), None))
}
