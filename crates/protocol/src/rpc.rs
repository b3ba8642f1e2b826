//! JSON-RPC 2.0: taking messages apart, and putting together right ones and wrong ones.

use serde_json::{Map, Value, json};

use crate::exact_id;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// Something went wrong inside.
pub const INTERNAL_ERROR: i64 = -32603;

/// A message as the other end sent it.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// A call that wants an answer.
    Request {
        /// The id. Numbers that no machine number holds are carried in a form of their own: [`to_text`] writes them as
        /// they were, and [`plain_id`] has the nearest value.
        id: Value,
        /// The method.
        method: String,
        /// The parameters; `null` when there are none.
        params: Value,
    },
    /// A call that wants none.
    Notification {
        /// The method.
        method: String,
        /// The parameters; `null` when there are none.
        params: Value,
    },
    /// An answer.
    Response {
        /// The id of the request.
        id: Value,
        /// The result, or the error object.
        outcome: Result<Value, Value>,
    },
}

impl RpcMessage {
    /// The method and the parameters of a call; nothing of an answer.
    #[must_use]
    pub fn call(&self) -> (&str, &Value) {
        match self {
            Self::Request { method, params, .. } | Self::Notification { method, params } => {
                (method, params)
            }
            Self::Response { .. } => ("", &Value::Null),
        }
    }
}

/// An error that a server answers a request with.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcFailure {
    /// The code.
    pub code: i64,
    /// What went wrong, for people.
    pub message: String,
    /// More about it, for programs.
    pub data: Option<Value>,
    /// The status that the answer has over HTTP.
    pub status: u16,
}

impl RpcFailure {
    /// An error that is told in an ordinary answer.
    ///
    /// ```
    /// use proofhouse_protocol::rpc::{self, RpcFailure};
    /// use serde_json::json;
    ///
    /// let failure = RpcFailure::new(rpc::METHOD_NOT_FOUND, "no such method").with_status(404);
    /// assert_eq!(failure.to_response(&json!(1))["error"]["code"], -32601);
    /// ```
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: 200,
        }
    }

    /// An error of a request that is wrong as it stands.
    #[must_use]
    pub fn bad_request(code: i64, message: impl Into<String>) -> Self {
        Self::new(code, message).with_status(400)
    }

    /// The same with more about it.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The same with another status over HTTP.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The error object.
    #[must_use]
    pub fn to_object(&self) -> Value {
        error_object(self.code, &self.message, self.data.clone())
    }

    /// The answer to the request of this id.
    #[must_use]
    pub fn to_response(&self, id: &Value) -> Value {
        error(id, self.code, &self.message, self.data.clone())
    }
}

/// Why a text is not a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidMessage {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no JSON-RPC message.
    #[error("not a JSON-RPC message: {reason}")]
    NotRpc {
        /// What is wrong.
        reason: &'static str,
        /// The id, if one can be told.
        id: Value,
    },
}

impl InvalidMessage {
    /// The error that a server answers with.
    ///
    /// ```
    /// use proofhouse_protocol::rpc;
    ///
    /// let invalid = rpc::parse(b"{").unwrap_err();
    /// assert_eq!(invalid.to_response()["error"]["code"], rpc::PARSE_ERROR);
    /// ```
    #[must_use]
    pub fn to_response(&self) -> Value {
        match self {
            Self::NotJson(_) => error(&Value::Null, PARSE_ERROR, &self.to_string(), None),
            Self::NotRpc { id, .. } => error(id, INVALID_REQUEST, &self.to_string(), None),
        }
    }
}

/// Reads one message. Nesting is bounded by the JSON reader, size by whoever read the bytes.
///
/// # Errors
///
/// Returns what is wrong, in a form that can be answered.
///
/// ```
/// use proofhouse_protocol::rpc::{self, RpcMessage};
/// use serde_json::json;
///
/// let message = rpc::parse(br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#).unwrap();
/// assert_eq!(message, RpcMessage::Request { id: json!(1), method: "ping".into(), params: json!(null) });
/// ```
pub fn parse(text: &[u8]) -> Result<RpcMessage, InvalidMessage> {
    let value =
        serde_json::from_slice(text).map_err(|error| InvalidMessage::NotJson(error.to_string()))?;
    of_text(value, text)
}

/// Reads a message that is JSON already, and was read from this text. Its id is exactly as it stands there.
///
/// # Errors
///
/// Returns what is wrong, in a form that can be answered.
pub fn of_text(value: Value, text: &[u8]) -> Result<RpcMessage, InvalidMessage> {
    match from_value(value) {
        Ok(RpcMessage::Request { id, method, params }) => Ok(RpcMessage::Request {
            id: exact_id::carried(id, text),
            method,
            params,
        }),
        Err(InvalidMessage::NotRpc { reason, id }) => Err(InvalidMessage::NotRpc {
            reason,
            id: exact_id::carried(id, text),
        }),
        other => other,
    }
}

/// Reads a message that is JSON already.
///
/// # Errors
///
/// Returns what is wrong, in a form that can be answered.
pub fn from_value(value: Value) -> Result<RpcMessage, InvalidMessage> {
    let Value::Object(mut object) = value else {
        return Err(InvalidMessage::NotRpc {
            reason: "it is not an object",
            id: Value::Null,
        });
    };
    let id = object.remove("id");
    let invalid = |reason| InvalidMessage::NotRpc {
        reason,
        id: id.clone().filter(is_id).unwrap_or_default(),
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` is not \"2.0\""));
    }
    match object.remove("method") {
        Some(Value::String(method)) => {
            let params = object.remove("params").unwrap_or_default();
            if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
                return Err(invalid("`params` is neither an object nor a list"));
            }
            match id {
                None => Ok(RpcMessage::Notification { method, params }),
                Some(id) if is_id(&id) => Ok(RpcMessage::Request { id, method, params }),
                Some(_) => Err(invalid("`id` is neither a text nor a number")),
            }
        }
        Some(_) => Err(invalid("`method` is not a text")),
        None => {
            let outcome = match (object.remove("result"), object.remove("error")) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(error),
                _ => return Err(invalid("there is no method, result or error")),
            };
            let id = id.unwrap_or_default();
            Ok(RpcMessage::Response { id, outcome })
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

/// The text of a message, with its id as the other end wrote it.
///
/// ```
/// use proofhouse_protocol::rpc::{self, RpcMessage};
/// use serde_json::json;
///
/// let asked = br#"{"jsonrpc": "2.0", "id": 123456789012345678901234567890, "method": "ping"}"#;
/// let Ok(RpcMessage::Request { id, .. }) = rpc::parse(asked) else { panic!() };
/// let answer = rpc::to_text(&rpc::response(&id, json!({})));
/// assert_eq!(answer, r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}"#);
/// ```
#[must_use]
pub fn to_text(message: &Value) -> String {
    let Value::Object(object) = message else {
        return message.to_string();
    };
    let fields = object.iter().map(|(key, value)| {
        let value = if key == "id" {
            id_text(value)
        } else {
            value.to_string()
        };
        format!("{}:{value}", Value::from(key.as_str()))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// An id as the other end wrote it.
#[must_use]
pub fn id_text(id: &Value) -> String {
    exact_id::text_of(id)
}

/// An id as one value among others; very long numbers lose digits.
#[must_use]
pub fn plain_id(id: &Value) -> Value {
    exact_id::plain(id)
}

/// A request.
#[must_use]
pub fn request(id: &Value, method: &str, params: Option<&Value>) -> Value {
    let mut object = head();
    object.insert("id".to_owned(), id.clone());
    object.insert("method".to_owned(), method.into());
    if let Some(params) = params {
        object.insert("params".to_owned(), params.clone());
    }
    Value::Object(object)
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: Option<&Value>) -> Value {
    let mut object = head();
    object.insert("method".to_owned(), method.into());
    if let Some(params) = params {
        object.insert("params".to_owned(), params.clone());
    }
    Value::Object(object)
}

/// A successful response.
#[must_use]
pub fn response(id: &Value, result: Value) -> Value {
    let mut object = head();
    object.insert("id".to_owned(), id.clone());
    object.insert("result".to_owned(), result);
    Value::Object(object)
}

/// An error response.
#[must_use]
pub fn error(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut object = head();
    object.insert("id".to_owned(), id.clone());
    object.insert("error".to_owned(), error_object(code, message, data));
    Value::Object(object)
}

/// The error object of an error response.
///
/// ```
/// use proofhouse_protocol::rpc;
/// use serde_json::json;
///
/// let error = rpc::error_object(rpc::INVALID_PARAMS, "no such cursor", None);
/// assert_eq!(error, json!({"code": -32602, "message": "no such cursor"}));
/// ```
#[must_use]
pub fn error_object(code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    error
}

fn head() -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("jsonrpc".to_owned(), "2.0".into());
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_wrong_is_told_with_the_id_where_there_is_one() {
        for (text, code, id) in [
            ("", PARSE_ERROR, json!(null)),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":",
                PARSE_ERROR,
                json!(null),
            ),
            ("[]", INVALID_REQUEST, json!(null)),
            ("{\"id\":7,\"method\":\"ping\"}", INVALID_REQUEST, json!(7)),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
                INVALID_REQUEST,
                json!(null),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
                INVALID_REQUEST,
                json!(null),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":3}",
                INVALID_REQUEST,
                json!("a"),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"a\",\"params\":3}",
                INVALID_REQUEST,
                json!(2),
            ),
            ("{\"jsonrpc\":\"2.0\",\"id\":2}", INVALID_REQUEST, json!(2)),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1,\"error\":2}",
                INVALID_REQUEST,
                json!(2),
            ),
        ] {
            let answer = parse(text.as_bytes()).expect_err(text).to_response();
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(code), &id),
                "{text}"
            );
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(
            parse(deep.as_bytes()),
            Err(InvalidMessage::NotJson(_))
        ));
    }

    #[test]
    fn what_is_put_together_is_read_as_the_same() {
        let params = json!({"a": [1]});
        let sent = [
            request(&json!("x"), "tools/call", Some(&params)),
            notification("notifications/initialized", None),
            response(&json!(3), json!({"tools": []})),
            error(&json!(3), INVALID_PARAMS, "no", Some(json!(1))),
        ];
        let read: Vec<RpcMessage> = sent.into_iter().map(|v| from_value(v).unwrap()).collect();
        assert_eq!(
            read,
            [
                RpcMessage::Request {
                    id: json!("x"),
                    method: "tools/call".into(),
                    params
                },
                RpcMessage::Notification {
                    method: "notifications/initialized".into(),
                    params: Value::Null
                },
                RpcMessage::Response {
                    id: json!(3),
                    outcome: Ok(json!({"tools": []}))
                },
                RpcMessage::Response {
                    id: json!(3),
                    outcome: Err(json!({"code": INVALID_PARAMS, "message": "no", "data": 1}))
                },
            ]
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
