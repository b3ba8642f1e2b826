//! A request on its way, and what comes of it.

use std::sync::Arc;

use proofhouse_wire::rpc;
use serde::Serialize;
use serde_json::{Value, json};

use super::outlet::Outlet;
use super::peer::Peer;

/// The prefix of the protocol's own keys in `_meta`.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub(super) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The one version of the modern era.
pub(super) const MODERN_VERSION: &str = "2026-07-28";
/// The versions of the legacy era, the latest last.
pub(super) const LEGACY_VERSIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// Which of the two protocols a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// With a handshake and sessions.
    Legacy,
    /// Every request stands for itself.
    Modern,
}

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) era: Era,
    /// Who sent it; in the modern era only where there is one peer, on stdio.
    pub(super) peer: Option<Arc<Peer>>,
    /// What the client can do.
    pub(super) capabilities: Arc<Value>,
    /// How urgent a log message must be; `None` for those who want none.
    pub(super) level: Option<usize>,
    /// Tells apart clients of the modern era: where they come from.
    pub(super) origin: String,
}

impl Call {
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// A text among the parameters.
    pub(super) fn text(&self, key: &str) -> &str {
        self.params
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.capabilities
            .get(name)
            .is_some_and(|capability| !capability.is_null())
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Result(Value),
    Error(Failure),
}

/// An error that is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
    /// The status over HTTP.
    pub(super) status: u16,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: 200,
        }
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn unknown_method(method: &str, era: Era) -> Self {
        let failure = Self::new(
            rpc::METHOD_NOT_FOUND,
            format!("there is no method {method}"),
        );
        match era {
            Era::Legacy => failure,
            Era::Modern => failure.with_status(404),
        }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            value["data"] = data.clone();
        }
        value
    }
}

impl Outcome {
    /// What the trace has of it.
    pub(super) fn content(&self) -> Value {
        match self {
            Self::Result(result) => result.clone(),
            Self::Error(failure) => failure.to_value(),
        }
    }

    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Result(_) => 200,
            Self::Error(failure) => failure.status,
        }
    }

    /// The response as text.
    pub(super) fn to_text(&self, id: &Value) -> String {
        #[derive(Serialize)]
        struct Response<'a> {
            jsonrpc: &'static str,
            id: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<Value>,
        }
        let (result, error) = match self {
            Self::Result(result) => (Some(result), None),
            Self::Error(failure) => (None, Some(failure.to_value())),
        };
        let response = Response {
            jsonrpc: "2.0",
            id,
            result,
            error,
        };
        // Values are always JSON.
        serde_json::to_string(&response).unwrap_or_default()
    }
}

/// Something that listens to changes, in the modern era.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    /// The id of the request that opened it.
    pub(super) subscription: Value,
    /// What it wants to hear.
    pub(super) filter: Value,
    pub(super) outlet: Outlet,
}

impl Listener {
    /// What of the wanted is there to be heard, in the words of the protocol.
    pub(super) fn honoured(wanted: &Value) -> Value {
        let mut filter = json!({});
        for key in [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
        ] {
            if wanted.get(key) == Some(&Value::Bool(true)) {
                filter[key] = true.into();
            }
        }
        if let Some(Value::Array(uris)) = wanted.get("resourceSubscriptions") {
            let uris = uris.iter().filter(|uri| uri.is_string());
            // A client could ask for any number; this many are honoured.
            filter["resourceSubscriptions"] = uris.take(1_000).cloned().collect();
        }
        filter
    }

    /// Whether it wants to hear this notification.
    pub(super) fn wants(&self, method: &str, params: &Value) -> bool {
        let flag = |key: &str| self.filter.get(key) == Some(&Value::Bool(true));
        match method {
            "notifications/tools/list_changed" => flag("toolsListChanged"),
            "notifications/prompts/list_changed" => flag("promptsListChanged"),
            "notifications/resources/list_changed" => flag("resourcesListChanged"),
            "notifications/resources/updated" => self
                .filter
                .get("resourceSubscriptions")
                .and_then(Value::as_array)
                .is_some_and(|uris| params.get("uri").is_some_and(|uri| uris.contains(uri))),
            _ => false,
        }
    }
}

/// Parameters that say which subscription they belong to.
pub(super) fn tagged(params: &Value, subscription: &Value) -> Value {
    let mut params = match params {
        Value::Object(map) => map.clone(),
        _ => serde_json::Map::new(),
    };
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(SUBSCRIPTION_KEY.to_owned(), subscription.clone());
    }
    Value::Object(params)
}
