//! What the tests of A2A share: runs of documents, and requests as agents send them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_oatf::{Document, load};
use proofhouse_range::{
    ActorEndpoint, RunError, RunEvent, RunHandle, RunOptions, RunReport, TraceLimits, run,
};
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method, WireLimits};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The normalized form of a document.
pub(crate) fn document(text: &str) -> Document {
    load(text).unwrap().document
}

/// Limits that make hostile peers give up early.
pub(crate) fn small() -> WireLimits {
    WireLimits {
        max_message_bytes: 100_000,
        max_stream_bytes: 400_000,
        max_events: 500,
        // Long enough for those who behave on a slow machine.
        header_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(5),
        response_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(2),
        ..WireLimits::default()
    }
}

/// Options that do not wait long.
pub(crate) fn options() -> RunOptions {
    RunOptions {
        grace: Duration::from_millis(20),
        settle: Duration::from_secs(20),
        max_session: Duration::from_secs(60),
        limits: small(),
        trace_limits: TraceLimits {
            max_messages: 2_000,
            ..TraceLimits::default()
        },
        ..RunOptions::default()
    }
}

/// A server actor that is running.
pub(crate) struct Running {
    pub(crate) address: String,
    handle: RunHandle,
    task: JoinHandle<Result<RunReport, RunError>>,
}

impl Running {
    /// Runs a document whose one server is the subject's peer.
    pub(crate) async fn start(text: &str, mut options: RunOptions) -> Self {
        let (sender, ready) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        options.observer = Some(Arc::new(move |event| {
            if let RunEvent::Ready {
                address: Some(address),
                ..
            } = event
                && let Some(sender) = sender.lock().unwrap().take()
            {
                sender.send(address.clone()).unwrap();
            }
        }));
        let (document, handle) = (document(text), RunHandle::default());
        let task = tokio::spawn({
            let handle = handle.clone();
            async move { run(&document, options, &handle).await }
        });
        Self {
            address: ready.await.unwrap(),
            handle,
            task,
        }
    }

    /// Ends the run.
    pub(crate) async fn finish(self) -> RunReport {
        self.handle.subject_is_done();
        self.task.await.unwrap().unwrap()
    }

    pub(crate) async fn post(
        &self,
        body: impl Into<Bytes>,
    ) -> Result<StreamedResponse, ClientError> {
        self.send(Method::POST, "/", &[], body).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &'static str)],
        body: impl Into<Bytes>,
    ) -> Result<StreamedResponse, ClientError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        let client = Client::new(WireLimits::default()).unwrap();
        let url = format!("{}{path}", self.address);
        client.send(method, &url, map, body.into()).await
    }

    /// Calls a method; the whole response.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let response = self.post(body.to_string()).await.unwrap();
        assert_eq!(response.status, 200);
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    /// Calls a method; the items of the stream.
    pub(crate) async fn stream(&self, method: &str, params: Value) -> Vec<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let response = self.post(body.to_string()).await.unwrap();
        assert!(response.is_event_stream());
        let (mut events, mut items) = (response.events(), Vec::new());
        while let Some(event) = events.next().await.unwrap() {
            let item: Value = serde_json::from_str(&event.data).unwrap();
            assert_eq!((&item["jsonrpc"], &item["id"]), (&json!("2.0"), &json!(7)));
            items.push(item["result"].clone());
        }
        items
    }

    pub(crate) async fn card(&self) -> Value {
        let path = "/.well-known/agent-card.json";
        let response = self.send(Method::GET, path, &[], Bytes::new()).await;
        serde_json::from_slice(&response.unwrap().bytes().await.unwrap()).unwrap()
    }
}

/// A message of 0.3.
pub(crate) fn message(text: &str) -> Value {
    json!({"message": {"kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "text", "text": text}]}})
}

/// The same of 1.0.
pub(crate) fn modern_message(text: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// Runs a document whose one client attacks what is at `url`.
pub(crate) async fn attack(
    text: &str,
    url: &str,
    options: RunOptions,
) -> Result<RunReport, RunError> {
    let endpoints = HashMap::from([("default".to_owned(), ActorEndpoint::Url(url.to_owned()))]);
    let options = RunOptions {
        endpoints,
        ..options
    };
    run(&document(text), options, &RunHandle::default()).await
}

/// The result of a run's verdict, as a word.
pub(crate) fn verdict(report: &RunReport) -> &'static str {
    report.verdict.as_ref().unwrap().attack.result.as_str()
}

/// `operation direction` of every message.
pub(crate) fn steps(report: &RunReport) -> Vec<String> {
    let step = |message: &proofhouse_detect::TraceMessage| {
        let direction = message.direction.unwrap().as_str();
        format!("{} {direction}", message.operation)
    };
    report.trace.iter().map(step).collect()
}
