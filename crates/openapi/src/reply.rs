//! Replies: whether what a server answered is what its description promised. A broken promise warns only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use proofhouse_wire::sync::lock;
use serde_json::Value;

use crate::description::{OpenApiDescription, Operation};
use crate::schema::{SchemaDirection, derive};
use crate::tree::Id;
use proofhouse_manifest::json_schema;
use proofhouse_wire::HttpResponse;

/// How large the schema of a response may be; a larger one is not checked.
const MAX_SCHEMA: usize = 512 << 10;

/// How many compiled schemas are kept in a task.
const MAX_KEPT: usize = 64;

/// The schemas of responses that were needed so far.
#[derive(Debug, Default)]
pub struct Replies {
    compiled: Mutex<HashMap<Id, Option<Arc<Validator>>>>,
}

impl Replies {
    /// What is wrong with a result, in one sentence without any of its values.
    pub fn violation(
        &self,
        description: &OpenApiDescription,
        operation: &Operation,
        answer: &HttpResponse,
        result: &Value,
    ) -> Option<String> {
        let schema = schema_of(description, operation, answer)?;
        let validator = self.compiled(description, schema)?;
        let error = validator.iter_errors(result).next()?;
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "the whole" } else { &path };
        Some(format!("{place}: {}", error.masked()))
    }

    fn compiled(&self, description: &OpenApiDescription, schema: Id) -> Option<Arc<Validator>> {
        let mut kept = lock(&self.compiled);
        if let Some(known) = kept.get(&schema) {
            return known.clone();
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let compiled = compile(description, schema).map(Arc::new);
        kept.insert(schema, compiled.clone());
        compiled
    }
}

fn compile(description: &OpenApiDescription, schema: Id) -> Option<Validator> {
    let derived = derive(
        description,
        SchemaDirection::Response,
        &[schema],
        MAX_SCHEMA,
    );
    // Where something was left out, what is right could look wrong.
    if derived.cut {
        return None;
    }
    let mut whole = derived.values.into_iter().next()?;
    if let (Some(whole), false) = (whole.as_object_mut(), derived.definitions.is_empty()) {
        whole.insert("$defs".to_owned(), derived.definitions.into());
    }
    json_schema::validator(&whole)
}

/// The schema that the description has for this status and media type.
fn schema_of(
    description: &OpenApiDescription,
    operation: &Operation,
    answer: &HttpResponse,
) -> Option<Id> {
    let tree = &description.tree;
    let responses = tree.get(operation.node, "responses")?;
    let status = answer.status.as_u16().to_string();
    let class = format!("{}XX", &status[..1]);
    let mut keys = [status.as_str(), class.as_str(), "default"].into_iter();
    let response = keys.find_map(|key| tree.get(responses, key))?;
    let response = description.resolve(response).ok()?;
    let content = tree.get(response, "content")?;
    let essence = |media: &str| {
        let essence = media.split(';').next().unwrap_or_default().trim();
        essence.to_ascii_lowercase()
    };
    let sent = essence(answer.header("content-type")?);
    let same = tree.entries(content).take(50).find(|(media, _)| {
        let media = essence(media);
        media == sent || media == "*/*"
    });
    let (_, media) = same?;
    tree.get(description.resolve(media).ok()?, "schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, StatusCode};
    use serde_json::json;

    fn violation(status: u16, media: &'static str, result: &Value) -> Option<String> {
        let value = json!({
            "openapi": "3.0.0",
            "paths": {"/": {"get": {"responses": {
                "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                "2XX": {"content": {"application/json; v=1": {"schema": {"type": "string"}}}},
                "default": {"$ref": "#/components/responses/any"},
            }}}},
            "components": {
                "schemas": {"A": {
                    "type": "object", "required": ["n"],
                    "properties": {"n": {"type": "integer"}, "more": {"$ref": "#/components/schemas/A"}},
                }},
                "responses": {"any": {"content": {"*/*": {"schema": {"type": "boolean"}}}}},
            },
        });
        let description = OpenApiDescription::new(Tree::from_value(&value), None).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(media));
        let answer = HttpResponse {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
        };
        let replies = Replies::default();
        let first = replies.violation(&description, &description.operations[0], &answer, result);
        let again = replies.violation(&description, &description.operations[0], &answer, result);
        assert_eq!(first, again);
        first
    }

    #[test]
    fn broken_promises_are_told_without_values() {
        let json = "application/json; charset=utf-8";
        assert_eq!(
            violation(200, json, &json!({"n": 1, "more": {"n": 2}})),
            None
        );
        let told = violation(200, json, &json!({"n": 1, "more": {"n": "secret"}})).unwrap();
        assert!(
            told.starts_with("/more/n: ") && !told.contains("secret"),
            "{told}"
        );
        assert!(
            violation(200, json, &json!([]))
                .unwrap()
                .starts_with("the whole: ")
        );
        assert!(violation(201, json, &json!(1)).is_some());
        assert_eq!(violation(201, json, &json!("text")), None);
        assert!(violation(418, "text/x", &json!("text")).is_some());
        assert_eq!(violation(200, "text/plain", &json!("text")), None);
    }
}
