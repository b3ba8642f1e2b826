//! The least that an agent can be: an MCP client and an A2A client without a mind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use proofhouse_wire::client::Client;
use proofhouse_wire::{HeaderMap, HeaderName, HeaderValue, Method, WireLimits};
use serde_json::{Value, json};

/// A client of the era of sessions.
pub(crate) struct Mcp {
    client: Client,
    url: String,
    session: Option<String>,
    id: u64,
}

impl Mcp {
    pub(crate) async fn open(url: &str) -> Self {
        let mut mcp = Self {
            client: Client::new(WireLimits::default()).unwrap(),
            url: url.to_owned(),
            session: None,
            id: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "puppet", "version": "1"}});
        mcp.call("initialize", hello).await;
        mcp.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        mcp
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        let answer = self.post(&request).await;
        answer["result"].clone()
    }

    /// Sends a message; the answer may be JSON or the last event of a stream.
    async fn post(&mut self, message: &Value) -> Value {
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value).unwrap();
            headers.insert(HeaderName::from_static(name), value);
        };
        set("content-type", "application/json");
        set("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            set("mcp-session-id", session);
            set("mcp-protocol-version", "2025-11-25");
        }
        let body = message.to_string().into();
        let sent = self
            .client
            .send(Method::POST, &self.url, headers, body)
            .await;
        let Ok(response) = sent else {
            return Value::Null;
        };
        if let Some(session) = response.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        if !response.is_event_stream() {
            let bytes = response.bytes().await.unwrap_or_default();
            return serde_json::from_slice(&bytes).unwrap_or_default();
        }
        let mut events = response.events();
        while let Ok(Some(event)) = events.next().await {
            let value: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if value.get("result").is_some() || value.get("error").is_some() {
                return value;
            }
        }
        Value::Null
    }
}

/// Fetches the card of an agent and sends it a message; returns the response.
pub(crate) async fn a2a_send(address: &str, text: &str) -> Value {
    let client = Client::new(WireLimits::default()).unwrap();
    let base = address.trim_end_matches('/');
    let card = format!("{base}/.well-known/agent-card.json");
    let none = Vec::new().into();
    let _ = client
        .send(Method::GET, &card, HeaderMap::new(), none)
        .await;
    let message = json!({"role": "user", "messageId": "m-1", "kind": "message",
        "parts": [{"kind": "text", "text": text}]});
    let params = json!({"message": message});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params});
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let body = request.to_string().into();
    let Ok(response) = client.send(Method::POST, address, headers, body).await else {
        return Value::Null;
    };
    let bytes = response.bytes().await.unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}
