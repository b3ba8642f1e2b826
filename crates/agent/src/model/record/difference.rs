//! Finds where two requests begin to differ, and says it for a person.

use serde_json::Value;

use super::super::ModelRequest;

/// How much of a value is shown around the place where it differs.
const EXCERPT_CHARS: usize = 60;

/// The first difference of two requests.
pub(super) fn first_difference(recorded: &ModelRequest, asked: &ModelRequest) -> String {
    let recorded = serde_json::to_value(recorded).unwrap_or_default();
    let asked = serde_json::to_value(asked).unwrap_or_default();
    find(&recorded, &asked, "").unwrap_or_else(|| "they differ in the order of keys".to_owned())
}

fn find(recorded: &Value, asked: &Value, path: &str) -> Option<String> {
    match (recorded, asked) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let path = format!("{path}.{key}");
                match new.get(key) {
                    None => return Some(format!("{} is not asked any more", shown(&path))),
                    Some(other) => {
                        if let Some(found) = find(value, other, &path) {
                            return Some(found);
                        }
                    }
                }
            }
            let added = new.keys().find(|key| !old.contains_key(*key))?;
            Some(format!("{} is new", shown(&format!("{path}.{added}"))))
        }
        (Value::Array(old), Value::Array(new)) => {
            for (place, (value, other)) in old.iter().zip(new).enumerate() {
                if let Some(found) = find(value, other, &format!("{path}[{place}]")) {
                    return Some(found);
                }
            }
            if old.len() == new.len() {
                return None;
            }
            let (old, new) = (old.len(), new.len());
            Some(format!(
                "{} has {new} items, recorded were {old}",
                shown(path)
            ))
        }
        (old, new) if old == new => None,
        (Value::String(old), Value::String(new)) => {
            let same = old
                .chars()
                .zip(new.chars())
                .take_while(|(a, b)| a == b)
                .count();
            let (old, new) = (excerpt(old, same), excerpt(new, same));
            Some(format!("{} is {new}, recorded was {old}", shown(path)))
        }
        (old, new) => {
            let (old, new) = (excerpt(&old.to_string(), 0), excerpt(&new.to_string(), 0));
            Some(format!("{} is {new}, recorded was {old}", shown(path)))
        }
    }
}

fn shown(path: &str) -> String {
    let path = path.trim_start_matches('.');
    let cut: String = path.chars().take(200).collect();
    format!("`{cut}`")
}

/// A piece of a text from a little before a place.
fn excerpt(text: &str, place: usize) -> String {
    let start = place.saturating_sub(EXCERPT_CHARS / 3);
    let piece: String = text.chars().skip(start).take(EXCERPT_CHARS).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if text.chars().count() > start + EXCERPT_CHARS {
        "…"
    } else {
        ""
    };
    format!("{before}{piece:?}{after}")
}
