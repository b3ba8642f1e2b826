//! Completion: the keys and values that the schema of a format has at the cursor.

use serde_json::{Value, json};

use crate::cursor::{CursorSpot, cursor};
use crate::formats::FileKind;
use crate::schema_walk::{Candidate, SchemaWalk};
use crate::server::EditedDocument;
use crate::text::LspPlace;

/// The kinds of items, as the protocol numbers them.
const PROPERTY: u32 = 10;
const ENUM_MEMBER: u32 = 20;

/// Whether a file has no key yet.
fn is_begun(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    !lines.any(|line| line.contains([':', '-', '[', '{']))
}

/// What could be written at a place.
pub(crate) fn complete(document: &EditedDocument, place: LspPlace) -> Value {
    let buffer = &document.buffer;
    let offset = buffer.offset(place);
    let start = buffer.line_start(place.line);
    let Some(found) = cursor(buffer, place.line, offset.saturating_sub(start)) else {
        return json!([]);
    };
    let kind = match FileKind::recognized(document.path.as_deref(), buffer.text()) {
        Some(kind) => kind,
        // A file without a key yet may become one of ours.
        None if is_begun(buffer.text()) => FileKind::Document,
        None => return json!([]),
    };
    let part = &buffer.text()[buffer.line_start(found.part)..];
    let schema = kind.format(part).schema();
    let walk = SchemaWalk::new(&schema);
    let from = offset - found.word.len().min(offset - start);
    let range = buffer.range(from..offset);
    let item = |candidate: &Candidate, item_kind: u32, text: String, place: usize| {
        let rank = if candidate.is_required { 0 } else { 1 };
        json!({
            "label": candidate.label,
            "kind": item_kind,
            "documentation": {"kind": "markdown", "value": candidate.doc},
            // Those that are needed first, then in the order in which people should write them.
            "sortText": format!("{rank}{place:04}"),
            "filterText": candidate.label,
            "textEdit": {"range": range, "newText": text},
        })
    };
    let indent = buffer.line(place.line);
    let indent = " ".repeat(indent.len() - indent.trim_start_matches([' ', '-']).len());
    let items: Vec<Value> = match found.spot {
        CursorSpot::Value => {
            let values = walk.values(&found.path);
            let values = values.iter().enumerate();
            values
                .map(|(place, value)| item(value, ENUM_MEMBER, value.label.clone(), place))
                .collect()
        }
        CursorSpot::Key { siblings } => {
            let keys = walk.keys(&found.path);
            let keys = keys.iter().enumerate();
            let mut items: Vec<Value> = keys
                .filter(|(_, key)| !siblings.contains(&key.label))
                .map(|(place, key)| {
                    let text = if key.is_block {
                        format!("{}:\n{indent}  ", key.label)
                    } else {
                        format!("{}: ", key.label)
                    };
                    item(key, PROPERTY, text, place)
                })
                .collect();
            // An item of a list may be a word.
            let words = walk.values(&found.path);
            let words = words.iter().enumerate();
            items.extend(
                words.map(|(place, word)| item(word, ENUM_MEMBER, word.label.clone(), place)),
            );
            items
        }
    };
    json!(items)
}
