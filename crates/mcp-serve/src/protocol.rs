//! The words and numbers of MCP that both eras' servers share.

use std::sync::Arc;

use proofhouse_wire::{StatusCode, rpc};
use serde_json::{Map, Value, json};

/// The version of the modern era.
pub(super) const MODERN: &str = "2026-07-28";
/// The version that a legacy client is given when it asks for one that we do not speak.
pub(super) const LATEST_LEGACY: &str = "2025-11-25";
/// The versions of the legacy era, whose differences do not show in what a server of tools says.
pub(super) const LEGACY_VERSIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY];

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A header does not say what the body says.
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// The version is not one that we speak.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// The generation of the protocol that a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25: a handshake and a session.
    Legacy,
    /// From 2026-07-28: every request stands alone.
    Modern,
}

/// How urgent a log message is, the least urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for errors in the server.
    Debug,
    /// What is usual.
    Info,
    /// What is usual and worth noting.
    Notice,
    /// What may become an error.
    Warning,
    /// What failed.
    Error,
    /// A part of the server that failed.
    Critical,
    /// What somebody must do something about.
    Alert,
    /// The server cannot be used.
    Emergency,
}

impl Level {
    const ALL: [(Self, &str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(level, _)| *level)
    }

    pub(super) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(level, _)| *level == self);
        found.map_or("info", |(_, name)| name)
    }
}

/// A JSON-RPC error, and the status that it has over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
    pub(super) status: StatusCode,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: StatusCode::OK,
        }
    }

    pub(super) fn bad_request(code: i64, message: impl Into<String>) -> Self {
        Self::new(code, message).with_status(StatusCode::BAD_REQUEST)
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn to_response(&self, id: &Value) -> Value {
        rpc::error(id, self.code, &self.message, self.data.clone())
    }
}

/// What a request comes to.
pub(super) type Outcome = Result<Value, Failure>;

/// The answer as it stands on the wire.
pub(super) fn response(id: &Value, outcome: Outcome) -> Value {
    match outcome {
        Ok(result) => rpc::response(id, result),
        Err(failure) => failure.to_response(id),
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What a model should know to use it, if anything.
    pub instructions: Option<String>,
}

impl ServerInfo {
    fn to_json(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// The result of the legacy handshake.
    pub(super) fn initialized(&self, asked: &str) -> Value {
        let version = match LEGACY_VERSIONS.contains(&asked) {
            true => asked,
            false => LATEST_LEGACY,
        };
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": true}, "logging": {}},
            "serverInfo": self.to_json(),
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result
    }

    /// The result of `server/discover`.
    pub(super) fn discovered(&self) -> Value {
        let mut result = json!({
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {"listChanged": true}, "logging": {}},
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        self.cached(result)
    }

    /// A result of the modern era that says how long it may be kept: not at all, because a backend may
    /// change its mind at any time, and for nobody else, because settings may decide what it says.
    pub(super) fn cached(&self, mut result: Value) -> Value {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
        self.complete(result)
    }

    /// A result of the modern era.
    pub(super) fn complete(&self, mut result: Value) -> Value {
        result["resultType"] = "complete".into();
        if let Some(object) = result.as_object_mut() {
            let meta = object.entry("_meta").or_insert_with(|| json!({}));
            meta[SERVER_INFO_KEY] = self.to_json();
        }
        result
    }
}

/// A notification that belongs to a subscription of the modern era.
pub(super) fn tagged(method: &str, mut params: Map<String, Value>, subscription: &Value) -> Value {
    params.insert("_meta".into(), json!({SUBSCRIPTION_KEY: subscription}));
    rpc::notification(method, Some(&Value::Object(params)))
}

/// A request of a client, whichever way it came.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) era: Era,
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Request {
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }
}

/// Who hears what the operator should know: one line at a time, without secrets.
pub type Notes = Arc<dyn Fn(&str) + Send + Sync>;
