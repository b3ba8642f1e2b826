//! What an operation takes: its parameters and its body, under names that are used once.

use serde_json::{Map, Value, json};

use crate::body::OperationBody;
use crate::description::{OpenApiDescription, Operation};
use crate::error::{OperationError, ReferenceError};
use crate::keywords::cut_text;
use crate::names::{FunctionNames, property_of};
use crate::schema::{SchemaDirection, derive};
use crate::style::{Shape, Style};
use crate::tree::Id;

/// How many parameters an operation may have.
pub(crate) const MAX_PARAMETERS: usize = 300;

/// How long the name of a parameter may be.
const MAX_NAME: usize = 256;

/// How long the description of an operation may be.
const MAX_DESCRIPTION: usize = 3000;

/// The property that holds the request body.
const BODY: &str = "body";

/// Headers that are not for parameters: OpenAPI says so of the first three, the others frame the request.
const NO_PARAMETERS: [&str; 10] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "cookie",
];

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
}

/// One parameter.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// Its name for models.
    pub(crate) property: String,
    /// Its name for the server.
    pub(crate) name: String,
    pub(crate) place: ParameterLocation,
    pub(crate) shape: Shape,
    /// Whether its value is written as JSON, whatever it is.
    pub(crate) json: bool,
    required: bool,
    schema: Option<Id>,
    description: String,
}

/// What an operation takes.
#[derive(Debug)]
pub struct OperationInput {
    pub(crate) parameters: Vec<Parameter>,
    /// The body and the property that holds it.
    pub(crate) body: Option<(String, OperationBody)>,
}

impl OperationInput {
    /// Reads the parameters of an operation and of its path, and its body.
    pub fn new(
        description: &OpenApiDescription,
        operation: &Operation,
    ) -> Result<Self, OperationError> {
        let mut found: Vec<Parameter> = Vec::new();
        for place in [operation.item, operation.node] {
            let Some(list) = description.tree.get(place, "parameters") else {
                continue;
            };
            if description.tree.items(list).len() > MAX_PARAMETERS {
                return Err(too_many(operation));
            }
            for node in description.tree.items(list) {
                let node = description.resolve(node)?;
                let Some(parameter) = parameter(description, node)? else {
                    continue;
                };
                let same = |known: &Parameter| {
                    known.place == parameter.place && known.name == parameter.name
                };
                match found.iter_mut().find(|known| same(known)) {
                    Some(known) => *known = parameter,
                    None => found.push(parameter),
                }
            }
        }
        let in_path = path_names(&operation.path);
        if in_path.len() > MAX_PARAMETERS {
            return Err(too_many(operation));
        }
        found.retain(|parameter| {
            parameter.place != ParameterLocation::Path || in_path.contains(&parameter.name.as_str())
        });
        for name in in_path {
            let mut known = found.iter();
            if !known.any(|known| known.place == ParameterLocation::Path && known.name == name) {
                found.push(undeclared(name));
            }
        }
        let body = OperationBody::new(description, operation)?;
        let mut names = FunctionNames::default();
        let body = body.map(|body| (names.unique(BODY), body));
        for parameter in &mut found {
            let mut wanted = property_of(&parameter.name);
            if names.has(&wanted) {
                let place = match parameter.place {
                    ParameterLocation::Path => "path",
                    ParameterLocation::Query => "query",
                    ParameterLocation::Header => "header",
                    ParameterLocation::Cookie => "cookie",
                };
                wanted = property_of(&format!("{wanted}_{place}"));
            }
            parameter.property = names.unique(&wanted);
        }
        Ok(Self {
            parameters: found,
            body,
        })
    }

    /// The JSON Schema of it all, for models.
    pub fn schema(&self, description: &OpenApiDescription, max_bytes: usize) -> Value {
        let body = self.body.iter().map(|(_, body)| body.schema());
        let ids = self.parameters.iter().map(|parameter| parameter.schema);
        let ids: Vec<Option<Id>> = ids.chain(body).collect();
        let roots: Vec<Id> = ids.iter().copied().flatten().collect();
        let schemas = derive(description, SchemaDirection::Request, &roots, max_bytes);
        let mut made = schemas.values.into_iter();
        let mut values = ids.into_iter().map(|id| id.and_then(|_| made.next()));

        let (mut properties, mut required) = (Map::new(), Vec::new());
        for parameter in &self.parameters {
            let mut schema = object(values.next().flatten());
            if schema.is_empty() && parameter.place == ParameterLocation::Path {
                schema.insert("type".to_owned(), "string".into());
            }
            describe(&mut schema, &parameter.description);
            if parameter.required {
                required.push(parameter.property.clone());
            }
            properties.insert(parameter.property.clone(), schema.into());
        }
        if let Some((property, body)) = &self.body {
            let schema = values.next().flatten().unwrap_or(Value::Bool(true));
            let mut schema = object(Some(body.shown(schema)));
            describe(&mut schema, &body.description);
            if body.required {
                required.push(property.clone());
            }
            properties.insert(property.clone(), schema.into());
        }
        let mut whole = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        if !schemas.definitions.is_empty() {
            whole["$defs"] = schemas.definitions.into();
        }
        whole
    }
}

fn too_many(operation: &Operation) -> OperationError {
    OperationError::TooManyParameters {
        operation: operation.name.clone(),
    }
}

/// What an operation does, for models.
pub fn about(description: &OpenApiDescription, operation: &Operation) -> String {
    let tree = &description.tree;
    let text = |key| tree.text_at(operation.node, key).unwrap_or_default().trim();
    let (summary, details) = (text("summary"), text("description"));
    let mut about = match (summary, details) {
        ("", "") => format!("{} {}", operation.method, operation.path),
        (summary, "") => summary.to_owned(),
        ("", details) => details.to_owned(),
        (summary, details) if details.starts_with(summary) => details.to_owned(),
        (summary, details) => format!("{summary}\n\n{details}"),
    };
    if tree.flag_at(operation.node, "deprecated") == Some(true) {
        about.insert_str(0, "Deprecated. ");
    }
    cut_text(&about, MAX_DESCRIPTION)
}

/// A schema that a description can be added to.
fn object(schema: Option<Value>) -> Map<String, Value> {
    match schema {
        Some(Value::Object(map)) => map,
        Some(Value::Bool(false)) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    }
}

/// Adds a description; what the schema says itself stays behind it.
fn describe(schema: &mut Map<String, Value>, text: &str) {
    if text.is_empty() {
        return;
    }
    let own = schema.get("description").and_then(Value::as_str);
    let whole = match own {
        Some(own) if own != text => format!("{text} {own}"),
        _ => text.to_owned(),
    };
    schema.insert("description".to_owned(), whole.into());
}

fn parameter(
    description: &OpenApiDescription,
    node: Id,
) -> Result<Option<Parameter>, ReferenceError> {
    let tree = &description.tree;
    let (Some(name), Some(place)) = (tree.text_at(node, "name"), tree.text_at(node, "in")) else {
        return Ok(None);
    };
    let (place, usual) = match place {
        "path" => (ParameterLocation::Path, Style::Simple),
        "query" => (ParameterLocation::Query, Style::Form),
        "header" => (ParameterLocation::Header, Style::Simple),
        "cookie" => (ParameterLocation::Cookie, Style::Form),
        _ => return Ok(None),
    };
    let is_framing = NO_PARAMETERS
        .iter()
        .any(|header| header.eq_ignore_ascii_case(name));
    let fits_in = (1..=MAX_NAME).contains(&name.len());
    if !fits_in || (place == ParameterLocation::Header && is_framing) {
        return Ok(None);
    }
    let content = tree.get(node, "content");
    let content = content.and_then(|content| tree.entries(content).next());
    let schema = match content {
        Some((_, media)) => tree.get(description.resolve(media)?, "schema"),
        None => tree.get(node, "schema"),
    };
    let style = tree.text_at(node, "style").and_then(Style::named);
    let style = style.filter(|style| fits(*style, place)).unwrap_or(usual);
    let explode = tree.flag_at(node, "explode");
    let text = tree.text_at(node, "description").unwrap_or_default();
    Ok(Some(Parameter {
        property: String::new(),
        name: name.to_owned(),
        place,
        shape: Shape {
            style,
            explode: explode.unwrap_or(style == Style::Form),
            reserved: tree.flag_at(node, "allowReserved") == Some(true),
        },
        json: content.is_some_and(|(media, _)| media.to_ascii_lowercase().contains("json")),
        required: place == ParameterLocation::Path || tree.flag_at(node, "required") == Some(true),
        schema,
        description: cut_text(text, 1000),
    }))
}

fn fits(style: Style, place: ParameterLocation) -> bool {
    match place {
        ParameterLocation::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        ParameterLocation::Query => !matches!(style, Style::Simple | Style::Label | Style::Matrix),
        ParameterLocation::Header => style == Style::Simple,
        ParameterLocation::Cookie => style == Style::Form,
    }
}

/// A parameter that only the path mentions.
fn undeclared(name: &str) -> Parameter {
    Parameter {
        property: String::new(),
        name: name.to_owned(),
        place: ParameterLocation::Path,
        shape: Shape {
            style: Style::Simple,
            explode: false,
            reserved: false,
        },
        json: false,
        required: true,
        schema: None,
        description: String::new(),
    }
}

/// The names in the braces of a path.
fn path_names(path: &str) -> Vec<&str> {
    let after = path.split('{').skip(1);
    let mut names: Vec<&str> = Vec::new();
    for name in after
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name)
    {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use proptest::prelude::*;

    fn schema_of(item: &Value) -> Result<Value, OperationError> {
        let value = json!({
            "openapi": "3.1.0", "paths": {"/a/{id}": item},
            "components": {
                "parameters": {"page": {"name": "page", "in": "query", "schema": {"type": "integer"}}},
                "requestBodies": {"b": {"content": {"application/json": {"schema": {"type": "array"}}}}},
            },
        });
        let description = OpenApiDescription::new(Tree::from_value(&value), None).unwrap();
        let operation = &description.operations[0];
        let input = OperationInput::new(&description, operation)?;
        Ok(input.schema(&description, 10_000))
    }

    #[test]
    fn parameters_of_path_and_operation_are_one() {
        let made = schema_of(&json!({
            "parameters": [
                {"name": "id", "in": "path", "schema": {"type": "integer"}},
                {"name": "v", "in": "query", "description": "theirs"},
            ],
            "get": {"parameters": [
                {"name": "v", "in": "query", "required": true, "description": "mine",
                 "schema": {"type": "string", "description": "A text."}},
                {"$ref": "#/components/parameters/page"},
                {"name": "id", "in": "header"},
                {"name": "body", "in": "query"},
                {"name": "Authorization", "in": "header", "required": true},
                {"name": "gone", "in": "path"},
                {"name": "filter[x]", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                {"in": "query"}, 7, {"name": "z", "in": "nowhere"},
            ], "requestBody": {"$ref": "#/components/requestBodies/b"}},
        }));
        assert_eq!(
            made.unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "v": {"type": "string", "description": "mine A text."},
                    "page": {"type": "integer"},
                    "id_header": {},
                    "body_query": {},
                    "filter_x": {"type": "object"},
                    "body": {"type": "array"},
                },
                "required": ["id", "v"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_path_says_itself_what_it_needs() {
        let made = schema_of(&json!({"get": {}})).unwrap();
        assert_eq!(made["properties"], json!({"id": {"type": "string"}}));
        assert_eq!(made["required"], json!(["id"]));
    }

    #[test]
    fn operations_that_cannot_be_read_say_why() {
        let broken = json!({"get": {"parameters": [{"$ref": "params.yaml#/x"}]}});
        assert!(
            schema_of(&broken)
                .unwrap_err()
                .to_string()
                .contains("leads out of the description")
        );
        let broken = json!({"get": {"requestBody": {"$ref": "#/none"}}});
        let error = schema_of(&broken).unwrap_err().to_string();
        assert!(error.contains("leads nowhere"));
        let many: Vec<Value> = (0..400)
            .map(|n| json!({"name": format!("p{n}"), "in": "query"}))
            .collect();
        let error = schema_of(&json!({"get": {"parameters": many}})).unwrap_err();
        let error = error.to_string();
        assert!(error.ends_with("has more than 300 parameters"), "{error}");
    }

    proptest! {
        #[test]
        fn any_description_is_read_or_refused(value in crate::arbitrary::json(), version in 0..2) {
            let mut whole = json!({"openapi": if version == 0 { "3.0.0" } else { "3.1.0" }});
            whole["paths"] = json!({"/a/{b}": {"get": value, "parameters": value["parameters"], "post": value["get"]}});
            whole["components"] = json!({"schemas": {"A": value}});
            for whole in [value, whole] {
                let Ok(description) = OpenApiDescription::new(Tree::from_value(&whole), None) else {
                    continue;
                };
                for operation in &description.operations {
                    about(&description, operation);
                    if let Ok(input) = OperationInput::new(&description, operation) {
                        let schema = input.schema(&description, 5000);
                        prop_assert!(jsonschema::validator_for(&schema).is_ok(), "{}", schema);
                    }
                }
            }
        }
    }
}
