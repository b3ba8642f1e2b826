//! Values out to JSON, and JSON given away by functions back in.

use std::rc::Rc;

use serde_json::{Number, Value as Json};

use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::library::time_text;
use crate::ops::{ELEMENT, HEADER};
use crate::value::{JsonMap, Val, from_number};

/// What a JSON value takes in a list.
const JSON: usize = size_of::<Json>();
/// What an entry of a JSON map takes on top: hash, index and slack.
const ENTRY: usize = 64;

/// Copies a value out. Shared parts are copied as often as they are used, so
/// every copy pays.
pub(crate) fn to_json(
    value: &Val<'_>,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<Json, BoxedError> {
    budget.steps(1)?;
    Ok(match value {
        Val::Null => Json::Null,
        Val::Bool(bool) => Json::Bool(*bool),
        Val::Int(int) => Json::from(*int),
        Val::UInt(uint) => Json::from(*uint),
        Val::Double(double) => Number::from_f64(*double).map(Json::Number).ok_or_else(|| {
            let message = format!("{double} cannot be written as JSON");
            fault(EvaluateErrorKind::Type, message)
        })?,
        Val::Text(text) => Json::String(copy(text, budget)?),
        Val::OwnText(text) => Json::String(copy(text, budget)?),
        Val::Bytes(bytes) => {
            budget.bytes(bytes.len().saturating_mul(2))?;
            Json::String(base64(bytes))
        }
        Val::Timestamp(_) | Val::Duration(_) => {
            Json::String(time_text(value).unwrap_or_default().as_ref().to_owned())
        }
        Val::Type(name) => Json::String((*name).to_owned()),
        Val::Set(set) => to_json(&set.single()?, budget, depth)?,
        Val::Sets(_) => {
            let message = "sets by name are no value; name one of them";
            return Err(fault(EvaluateErrorKind::Type, message));
        }
        Val::JsonList(_) | Val::List(_) => list_to_json(value, budget, depth)?,
        Val::JsonMap(map) => map_to_json(map, budget, depth)?,
        Val::Map(entries) => {
            budget.depth(depth)?;
            let mut map = JsonMap::new();
            for (key, value) in entries.iter() {
                budget.bytes(JSON + ENTRY)?;
                let key = match to_json(key, budget, depth + 1)? {
                    Json::String(key) => key,
                    key => key.to_string(),
                };
                map.insert(key, to_json(value, budget, depth + 1)?);
            }
            Json::Object(map)
        }
    })
}

fn list_to_json(
    value: &Val<'_>,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<Json, BoxedError> {
    budget.depth(depth)?;
    let Some(items) = value.as_list() else {
        return Ok(Json::Null);
    };
    budget.bytes(items.len().saturating_mul(JSON))?;
    let mut list = Vec::with_capacity(items.len());
    for at in 0..items.len() {
        let Some(item) = items.get(at) else { break };
        list.push(to_json(&item, budget, depth + 1)?);
    }
    Ok(Json::Array(list))
}

fn map_to_json(
    map: &JsonMap,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<Json, BoxedError> {
    budget.depth(depth)?;
    budget.bytes(map.len().saturating_mul(JSON + ENTRY))?;
    let mut copied = JsonMap::with_capacity(map.len());
    for (key, value) in map {
        let key = copy(key, budget)?;
        copied.insert(key, to_json(&Val::from_json(value), budget, depth + 1)?);
    }
    Ok(Json::Object(copied))
}

fn copy(text: &str, budget: &mut StepBudget<'_>) -> Result<String, BoxedError> {
    budget.bytes(text.len())?;
    Ok(text.to_owned())
}

/// Takes in what a registered function gave away.
pub(crate) fn from_owned_json<'a>(
    json: Json,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<Val<'a>, BoxedError> {
    budget.steps(1)?;
    Ok(match json {
        Json::Null => Val::Null,
        Json::Bool(bool) => Val::Bool(bool),
        Json::Number(number) => from_number(&number),
        Json::String(text) => {
            budget.bytes(text.len() + HEADER)?;
            Val::OwnText(text.into())
        }
        Json::Array(items) => {
            budget.depth(depth)?;
            budget.bytes(items.len().saturating_mul(ELEMENT) + HEADER)?;
            let items: Result<Rc<[_]>, BoxedError> = items
                .into_iter()
                .map(|item| from_owned_json(item, budget, depth + 1))
                .collect();
            Val::List(items?)
        }
        Json::Object(map) => {
            budget.depth(depth)?;
            budget.bytes(map.len().saturating_mul(2 * ELEMENT) + HEADER)?;
            let entries: Result<Rc<[_]>, BoxedError> = map
                .into_iter()
                .map(|(key, value)| {
                    let key = from_owned_json(Json::String(key), budget, depth + 1)?;
                    Ok((key, from_owned_json(value, budget, depth + 1)?))
                })
                .collect();
            Val::Map(entries?)
        }
    })
}

/// Bytes in JSON are base64, as in the JSON form of protocol buffers.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .zip([16, 8, 0])
            .fold(0_u32, |bits, (byte, shift)| {
                bits | u32::from(*byte) << shift
            });
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = DIGITS[(bits >> shift & 63) as usize];
            text.push(if at <= chunk.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
