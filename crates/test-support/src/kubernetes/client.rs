//! Requests to the API server, in plain JSON.

use std::path::Path;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// How a body says what is to be changed.
const MERGE: &str = "application/strategic-merge-patch+json";
/// How a body says what shall be.
const APPLY: &str = "application/apply-patch+yaml";

/// An answer that is none of success.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// The status; 0 without an answer.
    pub code: u16,
    /// What the cluster says.
    pub message: String,
}

/// One user of one cluster.
#[derive(Clone)]
pub struct ClusterClient(Client);

impl std::fmt::Debug for ClusterClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterClient")
    }
}

impl ClusterClient {
    /// Signs in with a kubeconfig. It belongs to the runtime that it is made in.
    pub async fn new(kubeconfig: &Path) -> Self {
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await;
        let mut config = config.unwrap();
        config.proxy_url = None;
        config.default_retry = false;
        Self(Client::try_from(config).unwrap())
    }

    /// An object, or a list.
    ///
    /// # Errors
    ///
    /// If the cluster refuses, as with the other methods.
    pub async fn get(&self, path: &str) -> Result<Value, Refused> {
        self.ask(Method::GET, path, None, &Value::Null).await
    }

    /// Makes an object in the collection of this path.
    ///
    /// # Errors
    ///
    /// If the cluster refuses.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Refused> {
        self.ask(Method::POST, path, None, object).await
    }

    /// Changes parts of an object.
    ///
    /// # Errors
    ///
    /// If the cluster refuses.
    pub async fn patch(&self, path: &str, change: &Value) -> Result<Value, Refused> {
        self.ask(Method::PATCH, path, Some(MERGE), change).await
    }

    /// Applies an object on the server's side, strictly: unknown fields are refused.
    ///
    /// # Errors
    ///
    /// If the cluster refuses.
    pub async fn apply(&self, path: &str, object: &Value) -> Result<Value, Refused> {
        let path = format!("{path}?fieldManager=test&force=true&fieldValidation=Strict");
        self.ask(Method::PATCH, &path, Some(APPLY), object).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// If the cluster refuses.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Value, Refused> {
        self.ask(Method::DELETE, path, None, options).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: Option<&str>,
        body: &Value,
    ) -> Result<Value, Refused> {
        let kind = kind.unwrap_or("application/json");
        let text = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind).body(Body::from(text));
        let sent = self.0.send(request.unwrap()).await.map_err(unanswered)?;
        let status = sent.status();
        let body = sent.into_body().collect().await.map_err(unanswered)?;
        let answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        let code = status.as_u16();
        Err(Refused { code, message })
    }

    /// The events of a watch, until it ends.
    pub(super) async fn watch(&self, path: &str) -> Result<ClusterWatch, Refused> {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let sent = self.0.send(request).await.map_err(unanswered)?;
        let code = sent.status().as_u16();
        if !sent.status().is_success() {
            let message = "the watch is refused".to_owned();
            return Err(Refused { code, message });
        }
        Ok(ClusterWatch {
            body: sent.into_body(),
            buffer: Vec::new(),
        })
    }
}

/// A watch that is open.
pub(super) struct ClusterWatch {
    body: Body,
    buffer: Vec<u8>,
}

impl ClusterWatch {
    /// The next event; none at its end, or at the first trouble.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return serde_json::from_slice(&line).ok();
            }
            let frame = self.body.frame().await?.ok()?;
            self.buffer
                .extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
    }
}

fn unanswered(error: impl std::fmt::Display) -> Refused {
    let message = error.to_string();
    Refused { code: 0, message }
}
