//! Fields of carriers: where in a listed tool, a result or a message a payload stands. A model that is shown the
//! description of a tool may never see its annotations, so each kind of field is a channel of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exposure::CarrierKind;

/// A kind of field.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PayloadField {
    /// What the carrier is for: the description of what is listed, the text of what is answered or said.
    #[default]
    Text,
    /// The description beside another text: that of an agent, of a context, of a part.
    Description,
    /// The name or the address of what is listed.
    Name,
    /// The title.
    Title,
    /// The schema of what goes in: arguments of tools and prompts, forms.
    InputSchema,
    /// The schema of what comes out.
    OutputSchema,
    /// Annotations.
    Annotations,
    /// Metadata (`_meta`, `metadata`).
    Meta,
    /// Structured content beside or instead of a text.
    Structured,
    /// Images, sounds, files and links.
    Media,
    /// Anything else.
    Other,
}

impl PayloadField {
    /// Whether it is the field that the carrier is for.
    #[must_use]
    pub fn is_text(&self) -> bool {
        *self == Self::Text
    }

    /// The field of a carrier that has something at this path.
    pub(crate) fn of(kind: CarrierKind, path: &[String]) -> Self {
        use CarrierKind as K;
        let has = |key: &str| path.iter().any(|segment| segment == key);
        let first = path.first().map(String::as_str).unwrap_or_default();
        let last = path.last().map(String::as_str).unwrap_or_default();
        if has("_meta") || (has("metadata") && kind != K::State) {
            return Self::Meta;
        }
        match kind {
            K::Instructions | K::State => Self::Text,
            K::ToolListed | K::ResourceListed | K::PromptListed => match first {
                "description" => Self::Text,
                "name" | "uri" | "uriTemplate" => Self::Name,
                "title" => Self::Title,
                "inputSchema" | "parameters" | "arguments" => Self::InputSchema,
                "outputSchema" => Self::OutputSchema,
                "annotations" => Self::Annotations,
                _ => Self::Other,
            },
            K::Card => match (first, last) {
                ("skills", "description") => Self::Text,
                ("description", _) => Self::Description,
                ("name", _) => Self::Name,
                _ => Self::Other,
            },
            K::Notification => match last {
                "data" => Self::Text,
                _ => Self::Other,
            },
            K::Elicitation if has("requestedSchema") => Self::InputSchema,
            K::Elicitation => match last {
                "message" | "content" | "text" => Self::Text,
                _ => Self::Other,
            },
            K::Sampling if has("systemPrompt") => Self::Other,
            K::Context => match last {
                "description" => Self::Description,
                _ => Self::Text,
            },
            K::Message if has("arguments") => Self::Text,
            K::ToolResponse
            | K::Resource
            | K::Prompt
            | K::Sampling
            | K::TaskResponse
            | K::Message
            | K::FrontendToolResult => of_content(path, last),
        }
    }
}

/// The field of something that is answered or said.
fn of_content(path: &[String], last: &str) -> PayloadField {
    let has = |key: &str| path.iter().any(|segment| segment == key);
    if has("annotations") {
        return PayloadField::Annotations;
    }
    if has("structuredContent") {
        return PayloadField::Structured;
    }
    match last {
        "text" | "content" | "message" | "synthesize" | "" => PayloadField::Text,
        "data" if has("content") => PayloadField::Media,
        "blob" | "uri" | "bytes" | "file" | "mimeType" => PayloadField::Media,
        "description" => PayloadField::Description,
        "name" | "role" | "kind" | "type" => PayloadField::Name,
        "title" => PayloadField::Title,
        _ if has("data") => PayloadField::Structured,
        _ if has("file") => PayloadField::Media,
        _ => PayloadField::Other,
    }
}

/// A text or another single value, and where it stands; places in lists do not count.
pub(crate) type ShownValue = (Vec<String>, Value);

/// Every single value below a value.
pub(crate) fn leaves(value: &Value) -> Vec<ShownValue> {
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

fn collect(value: &Value, path: &mut Vec<String>, found: &mut Vec<ShownValue>) {
    match value {
        Value::Array(items) => {
            for item in items {
                collect(item, path, found);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                path.push(key.clone());
                collect(value, path, found);
                path.pop();
            }
        }
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.push((path.clone(), value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_field_is_told_apart() {
        use CarrierKind as K;
        use PayloadField as F;
        for (kind, value, expected) in [
            (K::ToolListed, json!({"description": "x"}), F::Text),
            (K::ToolListed, json!({"title": "x"}), F::Title),
            (K::ToolListed, json!({"name": "x"}), F::Name),
            (
                K::ToolListed,
                json!({"inputSchema": {"properties": {"a": {"description": "x"}}}}),
                F::InputSchema,
            ),
            (
                K::ToolListed,
                json!({"parameters": {"title": "x"}}),
                F::InputSchema,
            ),
            (
                K::ToolListed,
                json!({"outputSchema": {"description": "x"}}),
                F::OutputSchema,
            ),
            (
                K::ToolListed,
                json!({"annotations": {"title": "x"}}),
                F::Annotations,
            ),
            (K::ToolListed, json!({"_meta": {"note": "x"}}), F::Meta),
            (K::ToolListed, json!({"icons": [{"src": "x"}]}), F::Other),
            (
                K::ToolResponse,
                json!({"content": {"content": [{"text": "x"}]}}),
                F::Text,
            ),
            (K::ToolResponse, json!({"content": "x"}), F::Text),
            (
                K::ToolResponse,
                json!({"content": {"structuredContent": {"note": "x"}}}),
                F::Structured,
            ),
            (
                K::ToolResponse,
                json!({"content": [{"data": "x"}]}),
                F::Media,
            ),
            (
                K::ToolResponse,
                json!({"content": {"_meta": {"note": "x"}}}),
                F::Meta,
            ),
            (K::Card, json!({"skills": [{"description": "x"}]}), F::Text),
            (K::Card, json!({"description": "x"}), F::Description),
            (
                K::TaskResponse,
                json!({"content": {"artifacts": [{"parts": [{"text": "x"}]}]}}),
                F::Text,
            ),
            (
                K::Message,
                json!({"params": {"message": {"parts": [{"data": {"note": "x"}}]}}}),
                F::Structured,
            ),
            (
                K::Message,
                json!({"params": {"message": {"metadata": {"note": "x"}}}}),
                F::Meta,
            ),
            (
                K::Message,
                json!({"params": {"arguments": {"note": "x"}}}),
                F::Text,
            ),
            (K::Context, json!([{"value": "x"}]), F::Text),
            (K::Context, json!([{"description": "x"}]), F::Description),
            (K::State, json!({"a": {"metadata": "x"}}), F::Text),
            (
                K::Elicitation,
                json!({"params": {"requestedSchema": {"title": "x"}}}),
                F::InputSchema,
            ),
            (K::Notification, json!({"params": {"data": "x"}}), F::Text),
            (
                K::Notification,
                json!({"params": {"message": "x"}}),
                F::Other,
            ),
        ] {
            let leaves = leaves(&value);
            let field = PayloadField::of(kind, &leaves[0].0);
            assert_eq!(field, expected, "{kind:?} {value}");
        }
    }
}
