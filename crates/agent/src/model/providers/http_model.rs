//! A model behind an HTTP interface: asks in its dialect, reads the reply whole or as events.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_wire::{CancellationToken, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::super::{
    Model, ModelConfig, ModelError, ModelErrorKind, ModelOpenError, ModelReply, ModelRequest,
    ModelSink,
};
use super::assembly::{Assembly, AssemblyProblem};
use super::exchange::ProviderExchange;
use super::{ProviderDialect, ProviderRequest};

/// A model of a provider.
pub(in super::super) struct HttpModel {
    name: String,
    /// The model in the provider's words, until it says so itself.
    model: String,
    stream: bool,
    dialect: Box<dyn ProviderDialect>,
    exchange: ProviderExchange,
}

impl HttpModel {
    pub(super) fn new(
        provider: &str,
        model: &str,
        config: &ModelConfig,
        dialect: Box<dyn ProviderDialect>,
    ) -> Result<Self, ModelOpenError> {
        Ok(Self {
            name: format!("{provider}:{model}"),
            model: model.to_owned(),
            stream: config.stream,
            dialect,
            exchange: ProviderExchange::new(config)?,
        })
    }

    async fn converse(
        &self,
        outgoing: &ProviderRequest,
        reply: &mut Assembly<'_>,
    ) -> Result<(), AssemblyProblem> {
        let response = self.exchange.send(outgoing).await?;
        let failure = |error| AssemblyProblem::Error(self.exchange.failure(&error));
        if !response.is_event_stream() {
            let body = response.bytes().await.map_err(failure)?;
            let body: Value = serde_json::from_slice(&body)
                .map_err(|error| garbage(&format!("the answer is not JSON: {error}")))?;
            self.check(&body)?;
            self.dialect.whole(&body, reply)?;
            reply.end();
            return Ok(());
        }
        let mut events = response.events();
        while let Some(event) = events.next().await.map_err(failure)? {
            let data = event.data.trim();
            if data == "[DONE]" {
                reply.end();
            } else if !data.is_empty() {
                let event: Value = serde_json::from_str(data)
                    .map_err(|error| garbage(&format!("an event is not JSON: {error}")))?;
                self.check(&event)?;
                self.dialect.event(&event, reply)?;
            }
            if reply.has_ended() {
                // Whatever follows is not read; that closes the connection.
                break;
            }
        }
        Ok(())
    }

    /// Errors look the same in all dialects.
    fn check(&self, said: &Value) -> Result<(), AssemblyProblem> {
        match said.get("error") {
            None | Some(Value::Null) => Ok(()),
            Some(error) => Err(self.exchange.told(error).into()),
        }
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_simulation(&self) -> bool {
        false
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let limits = self.exchange.limits();
            let outgoing = self.dialect.write(request, self.stream);
            let mut reply = Assembly::new(events, limits, &self.model);
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(AssemblyProblem::Error(ModelError::new(
                    ModelErrorKind::Cancelled,
                    "cancelled",
                ))),
                outcome = self.converse(&outgoing, &mut reply) => outcome,
                () = tokio::time::sleep(limits.total) => Err(AssemblyProblem::Error(ModelError::new(
                    ModelErrorKind::Timeout,
                    format!("the reply took more than {} s", limits.total.as_secs_f32()),
                ))),
            };
            let finished = reply.finish(outcome);
            let whole = finished.as_ref().ok().map(|reply| reply.usage);
            let partial = || Some(finished.as_ref().err()?.partial.as_ref()?.usage);
            if let Some(usage) = whole.or_else(partial) {
                self.exchange.used(usage).await;
            }
            finished
        }
        .boxed()
    }
}

fn garbage(message: &str) -> AssemblyProblem {
    ModelError::new(ModelErrorKind::Garbage, message).into()
}

/// The base URL of a provider, without the slash at its end.
pub(super) fn base_url(config: &ModelConfig, usual: &str) -> Result<String, ModelOpenError> {
    let url = config.base_url.as_deref().unwrap_or(usual);
    let parsed = url::Url::parse(url)
        .map_err(|error| ModelOpenError::Config(format!("the base URL is no URL: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(ModelOpenError::Config(
            "the base URL must be http or https".to_owned(),
        ));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// The headers of every request: the key where the provider wants it, then the caller's own.
pub(super) fn headers(
    config: &ModelConfig,
    key_header: &str,
    key_prefix: &str,
    more: &[(&str, &str)],
) -> Result<HeaderMap, ModelOpenError> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        let wrong = || ModelOpenError::Config(format!("the header `{name}` cannot be sent"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok::<_, ModelOpenError>(())
    };
    add("content-type", "application/json")?;
    for (name, value) in more {
        add(name, value)?;
    }
    if let Some(key) = &config.key {
        add(key_header, &format!("{key_prefix}{}", key.expose()))?;
    }
    for (name, value) in config.headers.expose() {
        add(name, value)?;
    }
    Ok(headers)
}
