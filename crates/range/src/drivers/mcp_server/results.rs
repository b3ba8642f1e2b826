//! What a result looks like: which response of an item is chosen, and how it is filled in.

use proofhouse_oatf::ResponseEntry;
use serde_json::{Map, Value, json};

use super::content::ContentKind;
use super::service::McpServerService;
use super::surface::{SurfaceItem, has_templates};
use crate::branches;

/// A result, or how to come by it.
pub(super) enum Built {
    Ready(Value),
    /// To be generated; `otherwise` when that fails.
    Generated {
        prompt: String,
        otherwise: Value,
    },
}

impl McpServerService {
    /// The result of using an item, as far as no generation is needed.
    pub(super) fn build(&self, kind: ContentKind, item: &SurfaceItem, view: &Value) -> Built {
        let entry = self.choose(kind, item, view);
        let resolve = |value: &Value| self.resolved(value, view);
        let result = match kind {
            ContentKind::Tool => tool_result(
                entry
                    .and_then(|entry| entry.content.as_ref())
                    .map(resolve)
                    .unwrap_or_default(),
            ),
            ContentKind::Prompt => {
                let messages = entry.and_then(|entry| entry.fields.get("messages"));
                let content = entry.and_then(|entry| entry.content.as_ref());
                match (messages, content) {
                    (Some(messages), _) => json!({"messages": resolve(messages)}),
                    (None, Some(content)) => prompt_result(resolve(content)),
                    (None, None) => json!({"messages": []}),
                }
            }
            ContentKind::Resource => {
                let content = entry.and_then(|entry| entry.content.as_ref());
                let content = content.or(item.content.as_ref()).map(resolve);
                let uri = view.get("uri").cloned().unwrap_or_default();
                resource_result(content.unwrap_or_default(), &uri, &item.listed)
            }
        };
        let prompt = entry
            .and_then(|entry| entry.synthesize.as_ref())
            .and_then(|synthesize| synthesize.prompt.clone());
        match prompt {
            Some(prompt) => Built::Generated {
                prompt,
                otherwise: result,
            },
            None => Built::Ready(result),
        }
    }

    /// The response that answers a request.
    pub(super) fn choose<'i>(
        &self,
        kind: ContentKind,
        item: &'i SurfaceItem,
        view: &Value,
    ) -> Option<&'i ResponseEntry> {
        self.context
            .select(kind.method().as_str(), &item.responses, view)
    }

    /// The branch of an item that answers a request; `null` when there is none.
    pub(super) fn chosen_branch(
        &self,
        kind: ContentKind,
        item: &SurfaceItem,
        view: &Value,
    ) -> Value {
        match (self.choose(kind, item, view), &item.content) {
            (Some(entry), _) if entry.content.is_some() || item.content.is_none() => {
                branches::of_entry(entry)
            }
            (_, Some(content)) => json!({"content": content}),
            (Some(entry), None) => branches::of_entry(entry),
            (None, None) => Value::Null,
        }
    }

    /// What was generated, if it has the shape that the protocol needs.
    pub(super) fn generated(&self, kind: ContentKind, content: Value) -> Option<Value> {
        let result = match (kind, content) {
            (ContentKind::Tool, content @ (Value::Array(_) | Value::String(_))) => {
                tool_result(content)
            }
            (ContentKind::Tool, content) if content.get("content").is_some_and(Value::is_array) => {
                content
            }
            (ContentKind::Prompt, content @ Value::Array(_)) => prompt_result(content),
            (ContentKind::Prompt, content)
                if content.get("messages").is_some_and(Value::is_array) =>
            {
                content
            }
            (ContentKind::Resource, content)
                if content.get("contents").is_some_and(Value::is_array) =>
            {
                content
            }
            _ => {
                self.context
                    .warn("what was generated is no answer to this request; it is left out");
                return None;
            }
        };
        Some(result)
    }

    /// The value with its templates resolved; copied only, where there are none.
    pub(super) fn resolved(&self, value: &Value, request: &Value) -> Value {
        if has_templates(value) {
            self.context.interpolate(value, Some(request), None)
        } else {
            value.clone()
        }
    }
}

/// An object is the whole result, a list is its content, a text is a list of one.
fn tool_result(content: Value) -> Value {
    match content {
        result @ Value::Object(_) => result,
        Value::String(text) => json!({"content": [{"type": "text", "text": text}]}),
        Value::Null => json!({"content": []}),
        list => wrapped("content", list),
    }
}

fn prompt_result(content: Value) -> Value {
    match content {
        result @ Value::Object(_) => result,
        list => wrapped("messages", list),
    }
}

/// An object with `contents` is the whole result, a list is the contents, an object is one of them.
fn resource_result(content: Value, uri: &Value, listed: &Value) -> Value {
    match content {
        Value::Object(map) if map.contains_key("contents") => Value::Object(map),
        Value::Object(map) => {
            let mut content = Map::new();
            content.insert("uri".to_owned(), uri.clone());
            if let Some(kind) = listed.get("mimeType") {
                content.insert("mimeType".to_owned(), kind.clone());
            }
            content.extend(map);
            json!({"contents": [content]})
        }
        list @ Value::Array(_) => wrapped("contents", list),
        Value::Null => json!({"contents": [{"uri": uri, "text": ""}]}),
        text => json!({"contents": [{"uri": uri, "text": text}]}),
    }
}

fn wrapped(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_become_whole_results() {
        for (content, expected) in [
            (json!({"isError": true}), json!({"isError": true})),
            (json!([1]), json!({"content": [1]})),
            (
                json!("hi"),
                json!({"content": [{"type": "text", "text": "hi"}]}),
            ),
            (json!(null), json!({"content": []})),
        ] {
            assert_eq!(tool_result(content.clone()), expected, "{content}");
        }
        let (uri, listed) = (json!("a://x"), json!({"mimeType": "text/plain"}));
        for (content, expected) in [
            (json!({"contents": []}), json!({"contents": []})),
            (json!([7]), json!({"contents": [7]})),
            (
                json!({"text": "T"}),
                json!({"contents": [{"uri": "a://x", "mimeType": "text/plain", "text": "T"}]}),
            ),
            (
                json!({"blob": "AA==", "mimeType": "image/png", "uri": "b://"}),
                json!({"contents": [{"uri": "b://", "mimeType": "image/png", "blob": "AA=="}]}),
            ),
            (
                json!(null),
                json!({"contents": [{"uri": "a://x", "text": ""}]}),
            ),
        ] {
            let result = resource_result(content.clone(), &uri, &listed);
            assert_eq!(result, expected, "{content}");
        }
    }
}
