//! Request bodies: JSON of any type, forms, parts, texts and bytes.

use std::hash::{BuildHasher, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::description::{OpenApiDescription, Operation};
use crate::error::ReferenceError;
use crate::keywords::{BASE64, cut_text, is_binary, is_readable};
use crate::style::{Shape, Style, in_query, text_of};
use crate::tree::Id;

/// How many bytes a body may have: as many as one that a manifest makes.
const MAX_BODY: usize = 10 << 20;

/// How deep `allOf` is followed to find the schema of a field.
const MAX_DEPTH: usize = 8;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BodyKind {
    // In the order in which they are chosen from.
    Json,
    Form,
    Multipart,
    Text,
    Bytes,
}

/// The body of an operation's requests.
#[derive(Debug, Clone)]
pub(crate) struct OperationBody {
    pub(crate) required: bool,
    pub(crate) description: String,
    kind: BodyKind,
    media: String,
    schema: Option<Id>,
    encoding: Option<Id>,
}

/// Why a value cannot be sent as a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body has more than {MAX_BODY} bytes")]
    TooLarge,
    #[error("the body must be an object")]
    NotAnObject,
    #[error("{0}: bytes are given as a text in base64")]
    NotText(String),
    #[error("{0}: this is not base64")]
    NotBase64(String),
}

/// A body that is ready to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncodedBody {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl OperationBody {
    /// Chooses among the media types that an operation takes.
    pub(crate) fn new(
        description: &OpenApiDescription,
        operation: &Operation,
    ) -> Result<Option<Self>, ReferenceError> {
        let tree = &description.tree;
        let Some(node) = tree.get(operation.node, "requestBody") else {
            return Ok(None);
        };
        let node = description.resolve(node)?;
        let Some(content) = tree.get(node, "content") else {
            return Ok(None);
        };
        let mut best: Option<Self> = None;
        for (media, entry) in tree.entries(content).take(50) {
            let entry = description.resolve(entry)?;
            let schema = tree.get(entry, "schema");
            let Some((kind, media)) = kind(description, media, schema) else {
                continue;
            };
            if best.as_ref().is_some_and(|best| best.kind <= kind) {
                continue;
            }
            let text = tree.text_at(node, "description").unwrap_or_default();
            best = Some(Self {
                required: tree.flag_at(node, "required") == Some(true),
                description: cut_text(text, 1000),
                kind,
                media,
                schema,
                encoding: tree.get(entry, "encoding"),
            });
        }
        Ok(best)
    }

    /// Its schema in the description.
    pub(crate) fn schema(&self) -> Option<Id> {
        self.schema
    }

    /// The schema as models see it: what is not JSON is a text for them.
    pub(crate) fn shown(&self, schema: Value) -> Value {
        match self.kind {
            BodyKind::Bytes => json!({
                "type": "string", "contentEncoding": "base64", "description": BASE64,
            }),
            BodyKind::Text if self.media.contains("xml") => {
                json!({"type": "string", "description": "An XML document."})
            }
            BodyKind::Text if schema.get("type").is_none() => json!({"type": "string"}),
            BodyKind::Json | BodyKind::Form | BodyKind::Multipart | BodyKind::Text => schema,
        }
    }

    /// Writes a value.
    pub(crate) fn write(
        &self,
        description: &OpenApiDescription,
        value: &Value,
    ) -> Result<EncodedBody, BodyError> {
        let mut content_type = self.media.clone();
        let bytes = match self.kind {
            BodyKind::Json => value.to_string().into_bytes(),
            BodyKind::Text => text_of(value).into_bytes(),
            BodyKind::Bytes => decoded(value, "the body")?,
            BodyKind::Form => self.form(description, value)?.into_bytes(),
            BodyKind::Multipart => {
                let boundary = boundary();
                content_type = format!("{content_type}; boundary={boundary}");
                self.parts(description, value, &boundary)?
            }
        };
        if bytes.len() > MAX_BODY {
            return Err(BodyError::TooLarge);
        }
        Ok(EncodedBody {
            content_type,
            bytes,
        })
    }

    fn form(&self, description: &OpenApiDescription, value: &Value) -> Result<String, BodyError> {
        let tree = &description.tree;
        let Value::Object(fields) = value else {
            return Err(BodyError::NotAnObject);
        };
        let mut pairs = Vec::new();
        for (name, value) in fields {
            let encoding = self.encoding.and_then(|encoding| tree.get(encoding, name));
            let style = encoding.and_then(|encoding| tree.text_at(encoding, "style"));
            let style = style.and_then(Style::named);
            let explode = encoding.and_then(|encoding| tree.flag_at(encoding, "explode"));
            let reserved = encoding.and_then(|encoding| tree.flag_at(encoding, "allowReserved"));
            let has_style = style.is_some() || explode.is_some() || reserved.is_some();
            let style = style.unwrap_or(Style::Form);
            let shape = Shape {
                style,
                explode: explode.unwrap_or(style == Style::Form),
                reserved: reserved == Some(true),
            };
            // Without a style, the media type of the field counts, which is JSON for objects.
            let media = encoding.and_then(|encoding| tree.text_at(encoding, "contentType"));
            let says_json = media.is_some_and(|media| media.contains("json"));
            if !has_style && (value.is_object() || (says_json && !value.is_null())) {
                let text = Value::String(value.to_string());
                pairs.extend(in_query(name, &text, shape));
            } else {
                pairs.extend(in_query(name, value, shape));
            }
        }
        let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
        Ok(pairs.collect::<Vec<_>>().join("&"))
    }

    fn parts(
        &self,
        description: &OpenApiDescription,
        value: &Value,
        boundary: &str,
    ) -> Result<Vec<u8>, BodyError> {
        let tree = &description.tree;
        let Value::Object(fields) = value else {
            return Err(BodyError::NotAnObject);
        };
        let mut bytes = Vec::new();
        for (name, value) in fields {
            let schema = self
                .schema
                .and_then(|schema| field(description, schema, name, 0));
            let encoding = self.encoding.and_then(|encoding| tree.get(encoding, name));
            let media = encoding.and_then(|encoding| tree.text_at(encoding, "contentType"));
            let media = media.filter(|media| is_media_type(media));
            let items = match value {
                Value::Null => &[],
                Value::Array(items) if !media.is_some_and(|media| media.contains("json")) => {
                    items.as_slice()
                }
                one => std::slice::from_ref(one),
            };
            let schema = match value {
                Value::Array(_) => schema.map(|schema| items_of(description, schema)),
                _ => schema,
            };
            for item in items {
                let binary = schema.is_some_and(|schema| is_binary(tree, schema))
                    || media.is_some_and(|media| item.is_string() && !is_readable(media));
                let part = MultipartPart {
                    name,
                    value: item,
                    media,
                    binary,
                };
                part.write(boundary, &mut bytes)?;
            }
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok(bytes)
    }
}

/// A part of a multipart body.
struct MultipartPart<'p> {
    name: &'p str,
    value: &'p Value,
    media: Option<&'p str>,
    binary: bool,
}

impl MultipartPart<'_> {
    fn write(&self, boundary: &str, bytes: &mut Vec<u8>) -> Result<(), BodyError> {
        // As browsers write names, so that none ends its header.
        let quoted = self.name.replace('"', "%22");
        let quoted = quoted.replace('\r', "%0D").replace('\n', "%0A");
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{quoted}\"");
        let usual = match self.value {
            _ if self.binary => Some("application/octet-stream"),
            Value::Object(_) | Value::Array(_) => Some("application/json"),
            _ => None,
        };
        if self.binary {
            head.push_str(&format!("; filename=\"{quoted}\""));
        }
        if let Some(media) = self.media.or(usual) {
            head.push_str(&format!("\r\nContent-Type: {media}"));
        }
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(b"\r\n\r\n");
        if self.binary {
            bytes.extend(decoded(self.value, self.name)?);
        } else {
            bytes.extend_from_slice(text_of(self.value).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        if bytes.len() > MAX_BODY {
            Err(BodyError::TooLarge)
        } else {
            Ok(())
        }
    }
}

/// How a media type is written, and what the request calls it.
fn kind(
    description: &OpenApiDescription,
    media: &str,
    schema: Option<Id>,
) -> Option<(BodyKind, String)> {
    if !is_media_type(media) {
        return None;
    }
    let tree = &description.tree;
    let schema = schema.and_then(|schema| description.resolve(schema).ok());
    let binary = schema.is_some_and(|schema| is_binary(tree, schema));
    let essence = media.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    if essence.contains('*') {
        let readable = essence.starts_with("text/");
        return Some(match (binary, readable) {
            (_, true) => (BodyKind::Text, "text/plain".to_owned()),
            (true, _) => (BodyKind::Bytes, "application/octet-stream".to_owned()),
            _ if matches!(essence.as_str(), "*/*" | "application/*") => {
                (BodyKind::Json, "application/json".to_owned())
            }
            _ => (BodyKind::Bytes, "application/octet-stream".to_owned()),
        });
    }
    let kind = match essence.as_str() {
        "application/json" | "text/json" => BodyKind::Json,
        other if other.ends_with("+json") => BodyKind::Json,
        "application/x-www-form-urlencoded" => BodyKind::Form,
        other if other.starts_with("multipart/") => BodyKind::Multipart,
        _ if binary => BodyKind::Bytes,
        other if is_readable(other) => BodyKind::Text,
        _ => match schema.and_then(|schema| tree.text_at(schema, "type")) {
            // A text that is not said to be bytes.
            Some("string") if essence != "application/octet-stream" => BodyKind::Text,
            _ => BodyKind::Bytes,
        },
    };
    // The parameters of a multipart type are ours to write.
    let name = if kind == BodyKind::Multipart {
        essence
    } else {
        media.trim().to_owned()
    };
    Some((kind, name))
}

/// Whether a text can stand in a header as a media type.
fn is_media_type(text: &str) -> bool {
    let visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    visible && text.contains('/') && text.len() <= 200
}

/// The schema of a field of an object.
fn field(description: &OpenApiDescription, schema: Id, name: &str, depth: usize) -> Option<Id> {
    let tree = &description.tree;
    let schema = description.resolve(schema).ok()?;
    let properties = tree.get(schema, "properties");
    if let Some(found) = properties.and_then(|properties| tree.get(properties, name)) {
        return description.resolve(found).ok();
    }
    if depth >= MAX_DEPTH {
        return None;
    }
    let all = tree.get(schema, "allOf")?;
    let mut parts = tree.items(all).take(MAX_DEPTH);
    parts.find_map(|part| field(description, part, name, depth + 1))
}

fn items_of(description: &OpenApiDescription, schema: Id) -> Id {
    let items = description.tree.get(schema, "items");
    let items = items.and_then(|items| description.resolve(items).ok());
    items.unwrap_or(schema)
}

fn decoded(value: &Value, name: &str) -> Result<Vec<u8>, BodyError> {
    let text = value
        .as_str()
        .ok_or_else(|| BodyError::NotText(name.to_owned()))?;
    let text: String = text.split_ascii_whitespace().collect();
    [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD]
        .iter()
        .find_map(|engine| engine.decode(&text).ok())
        .ok_or_else(|| BodyError::NotBase64(name.to_owned()))
}

/// A line that no part holds, since nobody can guess it.
fn boundary() -> String {
    let chance = RandomState::new();
    format!(
        "proofhouse-{:016x}{:016x}",
        chance.hash_one(0),
        chance.hash_one(1)
    )
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
