//! The JSON Schema of a format, made from its table.

use serde_json::{Map, Value, json};

use super::table::{FieldKind, FieldSpec, TypeSpec};

/// In what the published schemas of formats differ. They are kept as they are, so that nobody's copy changes.
#[derive(Debug, Clone, Copy)]
pub struct SchemaStyle {
    /// Whether the keys that are needed stand before the properties instead of after them.
    pub required_first: bool,
    /// Whether a choice says that it is a text.
    pub typed_choices: bool,
}

/// Makes the parts of one schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaMaker {
    style: SchemaStyle,
}

impl SchemaMaker {
    /// A maker of schemas in this style.
    #[must_use]
    pub const fn new(style: SchemaStyle) -> Self {
        Self { style }
    }

    /// The JSON Schema (2020-12) of a document: its outermost mapping, and a definition for each of the others.
    /// A format adds what a table cannot say. `kind` is what `proofhouse schema` calls it.
    ///
    /// ```
    /// use proofhouse_source::format::schema::SchemaMaker;
    /// use proofhouse_source::format::{FieldKind, FieldSpec, SchemaStyle, TypeSpec};
    ///
    /// static ROOT: TypeSpec = TypeSpec {
    ///     name: "Root",
    ///     doc: "A file.",
    ///     fields: &[FieldSpec::required("name", FieldKind::Text, "E-1", "Its name.")],
    ///     extensions: false,
    ///     exactly_one: None,
    /// };
    /// let style = SchemaStyle { required_first: false, typed_choices: true };
    /// let schema = SchemaMaker::new(style).document("file", "A file", &ROOT, []);
    /// assert_eq!(schema["properties"]["name"]["type"], "string");
    /// assert_eq!(schema["required"][0], "name");
    /// assert_eq!(schema["$id"], "urn:proofhouse:schema:file");
    /// ```
    pub fn document(
        self,
        kind: &str,
        title: &str,
        root: &TypeSpec,
        parts: impl IntoIterator<Item = &'static TypeSpec>,
    ) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        schema.insert("$id".to_owned(), id(kind).into());
        schema.insert("title".to_owned(), title.into());
        schema.extend(self.object(root));
        let defs: Map<String, Value> = parts
            .into_iter()
            .map(|part| (part.name.to_owned(), self.object(part).into()))
            .collect();
        schema.insert("$defs".to_owned(), Value::Object(defs));
        schema
    }

    /// The schema of a mapping.
    #[must_use]
    pub fn object(self, spec: &TypeSpec) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut forbidden = Vec::new();
        for field in spec.fields {
            properties.insert(field.key.to_owned(), self.property(field));
            if let Some(alias) = field.alias {
                properties.insert(alias.key.to_owned(), self.property(field));
                forbidden.push(json!({"not": {"required": [field.key, alias.key]}}));
            }
        }
        let needed = spec.fields.iter().filter(|field| field.required.is_some());
        let required: Vec<&str> = needed.map(|field| field.key).collect();
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("type", "object".into());
        put("description", spec.doc.into());
        if self.style.required_first && !required.is_empty() {
            put("required", json!(required));
        }
        put("properties", Value::Object(properties));
        if spec.extensions {
            put("patternProperties", json!({"^x-": true}));
        }
        put("additionalProperties", false.into());
        if !self.style.required_first && !required.is_empty() {
            put("required", json!(required));
        }
        if !forbidden.is_empty() {
            put("allOf", Value::Array(forbidden));
        }
        if spec.exactly_one.is_some() {
            put("minProperties", json!(1));
            put("maxProperties", json!(1));
        }
        object
    }

    fn property(self, field: &FieldSpec) -> Value {
        let mut schema = self.kind(&field.kind);
        schema["description"] = field.doc.into();
        schema
    }

    /// The schema of what a key may hold.
    #[must_use]
    pub fn kind(self, kind: &FieldKind) -> Value {
        match kind {
            FieldKind::Any => json!({}),
            FieldKind::Flag => json!({"type": "boolean"}),
            FieldKind::Text => json!({"type": "string"}),
            FieldKind::SomeText => json!({"type": "string", "minLength": 1}),
            FieldKind::Matching(pattern) => json!({"type": "string", "pattern": pattern}),
            FieldKind::Scalar(types) => json!({"type": types}),
            FieldKind::Integer { min, max: None } => json!({"type": "integer", "minimum": min}),
            FieldKind::Integer { min, max } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            FieldKind::Number { min, max } => {
                json!({"type": "number", "minimum": min, "maximum": max})
            }
            FieldKind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
            FieldKind::Exactly(number) => json!({"const": number}),
            FieldKind::Duration(durations) => durations.schema(),
            FieldKind::Date => json!({
                "type": "string",
                "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt].+([Zz]|[+-][0-9]{2}:?[0-9]{2}))?$",
                "examples": ["2026-01-15", "2026-01-15T10:30:00Z"],
            }),
            FieldKind::Choice(words) if self.style.typed_choices => {
                json!({"type": "string", "enum": words})
            }
            FieldKind::Choice(words) => json!({"enum": words}),
            FieldKind::Object => json!({"type": "object"}),
            FieldKind::Map { names, values } => {
                let mut map = json!({"type": "object"});
                if let Some(pattern) = names {
                    map["propertyNames"] = json!({"pattern": pattern});
                }
                map["additionalProperties"] = self.kind(values);
                map
            }
            FieldKind::List { of, min, unique } => {
                let mut list = json!({"type": "array", "items": self.kind(of)});
                if *min > 0 {
                    list["minItems"] = json!(min);
                }
                if *unique {
                    list["uniqueItems"] = json!(true);
                }
                list
            }
            FieldKind::OneOrMore(of) => {
                let item = self.kind(of);
                json!({"anyOf": [item, {"type": "array", "items": item}]})
            }
            FieldKind::AnyOf(kinds) => {
                let kinds: Vec<Value> = kinds.iter().map(|kind| self.kind(kind)).collect();
                json!({"anyOf": kinds})
            }
            FieldKind::Type(spec) => reference(spec.name),
            FieldKind::Called(_, kind) => self.kind(kind),
            FieldKind::Shape(name) => reference(name),
            FieldKind::Written(_, schema) => schema(),
        }
    }
}

/// What the schema of a kind of file is called: a name, not an address, so that it is the same wherever a copy lies.
#[must_use]
pub fn id(kind: &str) -> String {
    format!("urn:proofhouse:schema:{kind}")
}

/// A reference to a definition of the schema.
#[must_use]
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}
