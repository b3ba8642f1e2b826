//! Texts that are a whole page or a whole object: error pages of servers, and error objects of APIs.

use serde_json::{Map, Value};

use super::AnswerKind;
use super::phrases;

/// How much of a page is looked at for what it is.
const MAX_HEAD: usize = 2_000;
/// How deep lists of one item are opened.
const MAX_OPENED: usize = 4;

/// What a page or an object is; `None` for any other text.
pub(super) fn kind(text: &str) -> Option<AnswerKind> {
    let of = |is_error: bool| {
        if is_error {
            AnswerKind::Error
        } else {
            AnswerKind::Answer
        }
    };
    if text.starts_with('<') {
        return is_page(text).map(of);
    }
    let text = event_data(text).unwrap_or(text);
    if text.starts_with(['{', '[']) {
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            return Some(object_kind(&value));
        }
        // Python writes objects with other quotes.
        let head = text[..text.floor_char_boundary(80)].to_lowercase();
        let is_error = phrases::PYTHON_ERRORS
            .iter()
            .any(|start| head.contains(start));
        return is_error.then_some(AnswerKind::Error);
    }
    None
}

/// The data of the only event of a stream.
fn event_data(text: &str) -> Option<&str> {
    let text = match text.strip_prefix("event:") {
        Some(rest) => rest.split_once('\n')?.1,
        None => text,
    };
    text.trim().strip_prefix("data:").map(str::trim)
}

/// Whether a page tells of an error; `None` for what is no page.
fn is_page(text: &str) -> Option<bool> {
    let head = text[..text.floor_char_boundary(MAX_HEAD)].to_lowercase();
    let is_html = head.starts_with("<!doctype html") || head.contains("<html");
    let is_xml = head.starts_with("<?xml") || head.starts_with("<error");
    if is_xml && !is_html {
        return Some(head.contains("<error") || head.contains("<fault"));
    }
    if !is_html {
        return None;
    }
    let titles = ["title", "h1", "h2"].map(|tag| inside(&head, tag));
    let titles: Vec<&str> = titles.into_iter().flatten().collect();
    Some(titles.iter().any(|title| {
        let mut words = title.split(|c: char| !c.is_ascii_digit());
        let has_status = words.any(is_error_status);
        has_status
            || phrases::PAGE_TITLES
                .iter()
                .any(|known| title.contains(known))
    }))
}

/// What stands in the first element of a name.
fn inside<'t>(page: &'t str, tag: &str) -> Option<&'t str> {
    let start = page.find(&format!("<{tag}"))?;
    let rest = &page[start..];
    let rest = &rest[rest.find('>')? + 1..];
    Some(rest.split("</").next().unwrap_or(rest))
}

/// Whether a word is the number of an HTTP status that tells of an error.
pub(super) fn is_error_status(word: &str) -> bool {
    word.len() == 3
        && word.starts_with(['4', '5'])
        && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn object_kind(value: &Value) -> AnswerKind {
    let mut value = value;
    for _ in 0..MAX_OPENED {
        match value {
            Value::Array(items) if items.len() == 1 => value = &items[0],
            _ => break,
        }
    }
    match value {
        Value::Null => AnswerKind::Nothing,
        Value::Object(map) if map.is_empty() => AnswerKind::Nothing,
        Value::Array(items) if items.is_empty() => AnswerKind::Answer,
        Value::Object(map) if is_error_object(map) => AnswerKind::Error,
        // A message of a protocol was printed by a program.
        Value::Object(map) if map.contains_key("jsonrpc") => AnswerKind::Nothing,
        Value::Object(map) if is_blank_answer(map) => AnswerKind::Nothing,
        Value::Object(_)
        | Value::Array(_)
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => AnswerKind::Answer,
    }
}

/// Whether an object says that something failed, and nothing else.
fn is_error_object(map: &Map<String, Value>) -> bool {
    let get = |wanted: &str| {
        let mut entries = map.iter();
        let entry = entries.find(|(key, _)| key.eq_ignore_ascii_case(wanted));
        entry.map(|(_, value)| value).filter(|value| tells(value))
    };
    // Structured answers may have a field for errors beside what they say.
    let has_answer = phrases::ANSWER_KEYS.iter().any(|key| match get(key) {
        Some(Value::String(text)) => AnswerKind::of(text).is_answer(),
        other => other.is_some(),
    });
    if has_answer {
        return false;
    }
    if phrases::ERROR_KEYS.iter().any(|key| get(key).is_some()) {
        return true;
    }
    let says_error = ["type", "object", "status", "kind"].iter().any(|key| {
        let word = get(key).and_then(Value::as_str);
        word.is_some_and(|word| matches!(word, "error" | "failure" | "failed" | "ERROR"))
    });
    let has_status = ["status", "statusCode", "status_code", "code"]
        .iter()
        .filter_map(|key| get(key))
        .any(|value| is_error_status(value.to_string().trim_matches('"')));
    let only_detail = map.len() <= 2 && get("detail").is_some();
    let message = get("message").and_then(Value::as_str);
    let only_message = map.len() <= 2
        && message.is_some_and(|message| AnswerKind::of(message) == AnswerKind::Error);
    says_error || has_status || only_detail || only_message
}

/// Whether an object has a place for an answer, and nothing there.
fn is_blank_answer(map: &Map<String, Value>) -> bool {
    let is_answer = |key: &String| {
        let mut known = phrases::ANSWER_KEYS.iter();
        known.any(|known| key.eq_ignore_ascii_case(known))
    };
    let mut answers = map.iter().filter(|(key, _)| is_answer(key)).peekable();
    answers.peek().is_some()
        && answers.all(|(_, value)| match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
        })
}

/// Whether a value says anything.
fn tells(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}
