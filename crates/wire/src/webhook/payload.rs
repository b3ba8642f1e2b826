//! Payloads: the body of a delivery as JSON, within bounds.

use http::HeaderMap;
use serde_json::{Map, Value};

use super::Delivery;

/// How large a payload may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadLimits {
    /// Bytes of the body. Platforms send some hundred KiB at most, but for a few that send files.
    pub max_bytes: usize,
    /// How deep lists and objects may be nested. Whatever walks a payload later may recurse.
    pub max_depth: usize,
    /// Fields of a form.
    pub max_fields: usize,
}

impl Default for PayloadLimits {
    /// 4 MiB, 64 levels, 1,000 fields.
    fn default() -> Self {
        Self {
            max_bytes: 4 << 20,
            max_depth: 64,
            max_fields: 1_000,
        }
    }
}

/// Why a body is no payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It is longer than it may be; the status for it is 413.
    #[error("the body has {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// It is nested deeper than it may be.
    #[error("the body is nested more than {limit} levels deep")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// It says that it is JSON and is not.
    #[error("the body is not JSON: {message}")]
    Json {
        /// Where and why, without a piece of the body.
        message: String,
    },
    /// It says that it is a form and is not one, or has too many fields.
    #[error("the body is not a form that can be read: {reason}")]
    Form {
        /// Why.
        reason: &'static str,
    },
    /// It is of a type that is not read; the status for it is 415.
    #[error("bodies of the type `{essence}` are not read; send JSON or a form")]
    Type {
        /// The type, cut to a bounded length.
        essence: String,
    },
    /// It is compressed; the status for it is 415.
    #[error("compressed bodies are not read")]
    Compressed,
}

impl PayloadError {
    /// The HTTP status that tells the sender.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::Type { .. } | Self::Compressed => 415,
            Self::TooDeep { .. } | Self::Json { .. } | Self::Form { .. } => 400,
        }
    }
}

/// Reads the payload of a delivery: JSON, or a form whose field `payload` holds JSON, or the fields of any
/// other form. No body at all is an empty object: some platforms say everything in headers.
///
/// # Errors
///
/// Returns an error when the body is too large, too deep, or not what it says it is.
pub fn read_payload(
    delivery: &Delivery<'_>,
    limits: &PayloadLimits,
) -> Result<Value, PayloadError> {
    let body = delivery.body;
    if body.len() > limits.max_bytes {
        return Err(PayloadError::TooLarge {
            bytes: body.len(),
            limit: limits.max_bytes,
        });
    }
    if is_compressed(delivery.headers) {
        return Err(PayloadError::Compressed);
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(Map::new()));
    }
    let kind = delivery.header("content-type").unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match essence.as_str() {
        "" | "application/json" | "text/json" => json(body, limits),
        json_like if json_like.ends_with("+json") => json(body, limits),
        "application/x-www-form-urlencoded" => form(body, limits),
        _ => Err(PayloadError::Type {
            essence: essence.chars().take(80).collect(),
        }),
    }
}

fn is_compressed(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all("content-encoding").iter();
    encodings.into_iter().any(|encoding| {
        let encoding = encoding.to_str().unwrap_or("?").trim();
        !(encoding.is_empty() || encoding.eq_ignore_ascii_case("identity"))
    })
}

fn json(body: &[u8], limits: &PayloadLimits) -> Result<Value, PayloadError> {
    // Before it is read: reading builds what is nested. Few have as many brackets as they may have levels.
    let brackets = body.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    if brackets.count() > limits.max_depth && depth(body) > limits.max_depth {
        return Err(PayloadError::TooDeep {
            limit: limits.max_depth,
        });
    }
    serde_json::from_slice(body).map_err(|error| PayloadError::Json {
        message: format!(
            "{} at line {} column {}",
            match error.classify() {
                serde_json::error::Category::Eof => "it ends too early",
                _ => "something does not belong there",
            },
            error.line(),
            error.column()
        ),
    })
}

/// How deep brackets are nested outside of texts, in one pass.
fn depth(body: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

fn form(body: &[u8], limits: &PayloadLimits) -> Result<Value, PayloadError> {
    let mut fields: Map<String, Value> = Map::new();
    for (count, (name, value)) in url::form_urlencoded::parse(body).enumerate() {
        if count >= limits.max_fields {
            return Err(PayloadError::Form {
                reason: "it has too many fields",
            });
        }
        let value = Value::String(value.into_owned());
        match fields.get_mut(&*name) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    match fields.get("payload") {
        Some(Value::String(payload)) => json(payload.as_bytes(), limits),
        Some(_) => Err(PayloadError::Form {
            reason: "it has the field `payload` more than once",
        }),
        None => Ok(Value::Object(fields)),
    }
}
