//! Putting values together: texts, lists, parts, and the members around them.

use serde_json::Value;

use super::role::PieceForm;

/// Members that differ from piece to piece because each is a message of its own; that of the last counts.
const OF_EACH_PIECE: [&str; 8] = [
    "type",
    "timestamp",
    "rawEvent",
    "append",
    "lastChunk",
    "final",
    "progress",
    "total",
];

/// What has grown so far.
#[derive(Debug, Clone)]
pub(super) enum GrownText {
    Text(String),
    List(Vec<Value>),
}

impl GrownText {
    pub(super) fn new(form: PieceForm) -> Self {
        match form {
            PieceForm::Text(_) => Self::Text(String::new()),
            PieceForm::List(_) | PieceForm::Parts(_) => Self::List(Vec::new()),
        }
    }

    /// Adds what a piece brings, and tells by how many bytes it grew.
    pub(super) fn grow(&mut self, form: PieceForm, content: &Value) -> usize {
        let more = form.path().iter().try_fold(content, |at, key| at.get(key));
        match (self, more) {
            (Self::Text(text), Some(Value::String(more))) => {
                text.push_str(more);
                more.len()
            }
            (Self::List(list), Some(Value::Array(more))) => {
                let added = more.iter().map(weight).sum();
                let mut more = more.iter();
                if let PieceForm::Parts(_) = form
                    && let (Some(last), Some(first)) = (list.last_mut(), more.as_slice().first())
                    && join(last, first)
                {
                    more.next();
                }
                list.extend(more.cloned());
                added
            }
            (Self::Text(_) | Self::List(_), _) => 0,
        }
    }

    /// Keeps only the end, so that what stands across the cut can still be found.
    pub(super) fn keep_end(&mut self, bytes: usize) {
        match self {
            Self::Text(text) => keep_end(text, bytes),
            Self::List(list) => {
                let last = list.pop().filter(is_text);
                list.clear();
                list.extend(last.map(|mut part| {
                    if let Some(Value::String(text)) = part.get_mut("text") {
                        keep_end(text, bytes);
                    }
                    part
                }));
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(list) => list.iter().map(weight).sum(),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.clone().into(),
        }
    }

    /// The whole message: the members around the text, with the text in its place.
    pub(super) fn within(&self, around: &Value, form: PieceForm) -> Value {
        let mut content = around.clone();
        if let Some(place) = place(&mut content, form) {
            *place = self.to_value();
        }
        content
    }
}

/// The members of a piece, without its text.
pub(super) fn around(content: &Value, form: PieceForm) -> Value {
    fn copy(value: &Value, path: &[&str]) -> Value {
        match (value, path.split_first()) {
            // The place stays, so that the members keep their order.
            (_, None) => Value::Null,
            (Value::Object(map), Some((key, rest))) => {
                let members = map.iter().map(|(name, value)| {
                    let copied = if name == key {
                        copy(value, rest)
                    } else {
                        value.clone()
                    };
                    (name.clone(), copied)
                });
                Value::Object(members.collect())
            }
            (other, Some(_)) => other.clone(),
        }
    }
    copy(content, form.path())
}

/// Whether a piece says something else than those before it, besides its text.
pub(super) fn contradicts(around: &Value, content: &Value, form: PieceForm) -> bool {
    fn differs(old: &Value, new: &Value, path: &[&str]) -> bool {
        let (Value::Object(old), Value::Object(new)) = (old, new) else {
            return old != new;
        };
        new.iter().any(|(key, value)| match path.split_first() {
            Some((first, [])) if first == key => false,
            step => old.get(key).is_some_and(|known| {
                let rest = step
                    .filter(|(first, _)| *first == key)
                    .map(|(_, rest)| rest);
                !OF_EACH_PIECE.contains(&key.as_str())
                    && differs(known, value, rest.unwrap_or_default())
            }),
        })
    }
    differs(around, content, form.path())
}

/// Adds the members of a piece to those before; where they differ, the newer counts. Tells by how many bytes they grew.
pub(super) fn merge(around: &mut Value, content: &Value, form: PieceForm) -> isize {
    fn add(old: &mut Value, new: &Value, path: &[&str]) -> isize {
        let (Value::Object(old), Value::Object(new)) = (&mut *old, new) else {
            if old == new {
                return 0;
            }
            let change = weight(new).cast_signed() - weight(old).cast_signed();
            *old = new.clone();
            return change;
        };
        let mut change = 0;
        for (key, value) in new {
            let rest = match path.split_first() {
                Some((first, [])) if first == key => continue,
                Some((first, rest)) if first == key => rest,
                Some(_) | None => &[],
            };
            change += match old.get_mut(key) {
                Some(known) => add(known, value, rest),
                None => {
                    old.insert(key.clone(), value.clone());
                    (key.len() + weight(value)).cast_signed()
                }
            };
        }
        change
    }
    add(around, content, form.path())
}

fn place(content: &mut Value, form: PieceForm) -> Option<&mut Value> {
    let path = form.path();
    let (last, before) = path.split_last()?;
    let parent = before
        .iter()
        .try_fold(content, |at, key| at.get_mut(key))?
        .as_object_mut()?;
    Some(parent.entry(*last).or_insert(Value::Null))
}

/// The content of a sampling message in which texts that stand side by side are one; `None` when there are none.
pub(super) fn blocks(content: &Value) -> Option<Value> {
    fn is_cut(content: &Value) -> bool {
        let blocks = content.get("content").and_then(Value::as_array);
        blocks.is_some_and(|blocks| {
            let mut pairs = blocks.windows(2);
            pairs.any(|pair| is_text(&pair[0]) && is_text(&pair[1]))
        })
    }
    fn mend(content: &mut Value) {
        if let Some(Value::Array(blocks)) = content.get_mut("content") {
            let mut whole: Vec<Value> = Vec::with_capacity(blocks.len());
            for block in blocks.drain(..) {
                if !whole.last_mut().is_some_and(|last| join(last, &block)) {
                    whole.push(block);
                }
            }
            *blocks = whole;
        }
    }
    let messages = content.get("messages").and_then(Value::as_array);
    let asked_in_pieces = messages.is_some_and(|messages| messages.iter().any(is_cut));
    if !is_cut(content) && !asked_in_pieces {
        return None;
    }
    let mut content = content.clone();
    mend(&mut content);
    if let Some(Value::Array(messages)) = content.get_mut("messages") {
        messages.iter_mut().for_each(mend);
    }
    Some(content)
}

fn is_text(part: &Value) -> bool {
    part.get("text").is_some_and(Value::is_string)
}

/// Adds the text of a part to that of the one before it, if both have one.
fn join(last: &mut Value, next: &Value) -> bool {
    let Some(more) = next.get("text").and_then(Value::as_str) else {
        return false;
    };
    let Some(Value::String(text)) = last.get_mut("text") else {
        return false;
    };
    text.push_str(more);
    true
}

fn keep_end(text: &mut String, bytes: usize) {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.drain(..start);
}

/// About how many bytes a value holds.
pub(super) fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| key.len() + weight(value))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
