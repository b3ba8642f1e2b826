//! The values both generations have: tasks, messages, updates, artifacts, parts, push settings.
//!
//! Every function takes a value in either form and gives it in the wanted one. Unknown members,
//! enums and kinds stay as they are.

use serde_json::{Map, Value, json};

use super::{A2aRole, A2aTaskState, A2aVersion};

/// Marks a data part whose value 0.3 could not say and that is wrapped therefore; the name is that
/// of the official SDKs.
const WRAPPED_DATA: &str = "data_part_compat";

/// The state of a task or a status update in 0.3.
#[must_use]
pub fn state_of(value: &Value) -> Option<&str> {
    value.get("status")?.get("state")?.as_str()
}

/// A task.
#[must_use]
pub fn task(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        kind(map, "task", to);
        each(map, "status", |value| status(value, to));
        each_item(map, "artifacts", |value| artifact(value, to));
        each_item(map, "history", |value| message(value, to));
    })
}

/// A message.
#[must_use]
pub fn message(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        kind(map, "message", to);
        each(map, "role", |value| role(value, to));
        each_item(map, "parts", |value| part(value, to));
    })
}

/// A status update.
#[must_use]
pub fn status_update(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        kind(map, "status-update", to);
        each(map, "status", |value| status(value, to));
        if to == A2aVersion::V1_0 {
            map.shift_remove("final");
        } else if !map.contains_key("final") {
            let state = map.get("status").and_then(|status| status.get("state"));
            let state = state.and_then(Value::as_str).and_then(A2aTaskState::parse);
            let ends = state.is_some_and(A2aTaskState::is_terminal);
            map.insert("final".to_owned(), ends.into());
        }
    })
}

/// An artifact update.
#[must_use]
pub fn artifact_update(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        kind(map, "artifact-update", to);
        each(map, "artifact", |value| artifact(value, to));
    })
}

/// An artifact.
#[must_use]
pub fn artifact(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        each_item(map, "parts", |value| part(value, to));
    })
}

/// The status of a task.
#[must_use]
pub fn status(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        each(map, "state", |value| state(value, to));
        each(map, "message", |value| message(value, to));
        each(map, "timestamp", zoned);
    })
}

/// A state.
#[must_use]
pub fn state(value: &Value, to: A2aVersion) -> Value {
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    // What is in the wanted form already stays as it is written.
    if A2aTaskState::version_of(text) == to {
        return value.clone();
    }
    A2aTaskState::parse(text).map_or_else(|| value.clone(), |state| state.as_str(to).into())
}

/// A role.
#[must_use]
pub fn role(value: &Value, to: A2aVersion) -> Value {
    match value.as_str().and_then(A2aRole::parse) {
        Some(role) => role.as_str(to).into(),
        None => value.clone(),
    }
}

/// A part.
#[must_use]
pub fn part(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| match to {
        A2aVersion::V0_3 if !map.contains_key("kind") => legacy_part(map),
        A2aVersion::V0_3 => {}
        A2aVersion::V1_0 => modern_part(map),
    })
}

/// What a file has in 0.3, and where that is in a part of 1.0.
pub const FILE_MEMBERS: [(&str, &str); 4] = [
    ("bytes", "raw"),
    ("uri", "url"),
    ("mimeType", "mediaType"),
    ("name", "filename"),
];

fn legacy_part(map: &mut Map<String, Value>) {
    if map.contains_key("text") {
        map.insert("kind".to_owned(), "text".into());
    } else if let Some(data) = map.get_mut("data") {
        if !data.is_object() {
            *data = json!({ "value": data.take() });
            let metadata = map.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert(WRAPPED_DATA.to_owned(), true.into());
            }
        }
        map.insert("kind".to_owned(), "data".into());
    } else if map.contains_key("file") {
        map.insert("kind".to_owned(), "file".into());
    } else if map.contains_key("raw") || map.contains_key("url") {
        let mut file = Map::new();
        for (legacy, modern) in FILE_MEMBERS {
            if let Some(value) = map.shift_remove(modern) {
                file.insert(legacy.to_owned(), value);
            }
        }
        map.insert("kind".to_owned(), "file".into());
        map.insert("file".to_owned(), file.into());
    }
}

fn modern_part(map: &mut Map<String, Value>) {
    let named =
        |map: &Map<String, Value>, kind: &str| map.get("kind").is_none_or(|value| value == kind);
    if map.contains_key("text") && named(map, "text") {
        map.shift_remove("kind");
    } else if map.contains_key("data") && named(map, "data") {
        map.shift_remove("kind");
        unwrap_data(map);
    } else if let Some(Value::Object(file)) = map.get("file")
        && named(map, "file")
        // 1.0 holds one of both; a file that has both, or none, can only be sent as it is.
        && file.contains_key("bytes") != file.contains_key("uri")
    {
        let mut file = file.clone();
        map.shift_remove("kind");
        map.shift_remove("file");
        for (legacy, modern) in FILE_MEMBERS {
            if let Some(value) = file.shift_remove(legacy) {
                map.insert(modern.to_owned(), value);
            }
        }
        if !file.is_empty() {
            map.insert("file".to_owned(), file.into());
        }
    }
}

fn unwrap_data(map: &mut Map<String, Value>) {
    let flag = map.get("metadata").and_then(|meta| meta.get(WRAPPED_DATA));
    if flag != Some(&Value::Bool(true)) {
        return;
    }
    let Some(inner) = map.get("data").and_then(|data| data.get("value")).cloned() else {
        return;
    };
    map.insert("data".to_owned(), inner);
    if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
        metadata.shift_remove(WRAPPED_DATA);
        if metadata.is_empty() {
            map.shift_remove("metadata");
        }
    }
}

/// The settings of push notifications, without the task: 0.3 lists schemes, 1.0 has one.
#[must_use]
pub fn push_config(value: &Value, to: A2aVersion) -> Value {
    object(value, |map| {
        each(map, "authentication", |value| {
            object(value, |map| match to {
                A2aVersion::V1_0 => {
                    let first = match map.get("schemes") {
                        Some(Value::Array(schemes)) if !map.contains_key("scheme") => {
                            schemes.first().map(|first| (first.clone(), schemes.len()))
                        }
                        _ => None,
                    };
                    if let Some((first, count)) = first {
                        map.insert("scheme".to_owned(), first);
                        if count == 1 {
                            map.shift_remove("schemes");
                        }
                    }
                }
                A2aVersion::V0_3 => {
                    if let Some(scheme) = map.shift_remove("scheme") {
                        map.entry("schemes").or_insert_with(|| json!([scheme]));
                    }
                }
            })
        });
    })
}

/// A time without a zone gets the one it must mean.
fn zoned(value: &Value) -> Value {
    let Some(text) = value.as_str() else {
        return value.clone();
    };
    let is_date = |byte: (usize, u8)| match byte.0 {
        4 | 7 => byte.1 == b'-',
        10 => matches!(byte.1, b'T' | b't'),
        13 | 16 => byte.1 == b':',
        19 => byte.1 == b'.',
        _ => byte.1.is_ascii_digit(),
    };
    let zoneless = text.len() >= 19 && text.bytes().enumerate().all(is_date);
    if zoneless && !text.ends_with('.') {
        format!("{text}Z").into()
    } else {
        value.clone()
    }
}

/// 0.3 says by `kind` what 1.0 says by the place.
fn kind(map: &mut Map<String, Value>, kind: &str, to: A2aVersion) {
    match to {
        A2aVersion::V0_3 => {
            map.entry("kind").or_insert_with(|| kind.into());
        }
        A2aVersion::V1_0 if map.get("kind").is_some_and(|value| value == kind) => {
            map.shift_remove("kind");
        }
        A2aVersion::V1_0 => {}
    }
}

pub(super) fn object(value: &Value, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    match value {
        Value::Object(map) => {
            let mut map = map.clone();
            change(&mut map);
            Value::Object(map)
        }
        other => other.clone(),
    }
}

pub(super) fn each(map: &mut Map<String, Value>, key: &str, change: impl Fn(&Value) -> Value) {
    if let Some(value) = map.get_mut(key) {
        *value = change(value);
    }
}

pub(super) fn each_item(map: &mut Map<String, Value>, key: &str, change: impl Fn(&Value) -> Value) {
    if let Some(Value::Array(items)) = map.get_mut(key) {
        for item in items {
            *item = change(item);
        }
    }
}
