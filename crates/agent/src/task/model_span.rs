//! The span of one request to a model, by the conventions of OpenTelemetry for generative AI (`gen_ai.*`).

use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::model::{Model, ModelError, ModelReply};

/// Names of providers that the conventions spell in another way.
const PROVIDER_NAMES: [(&str, &str); 3] = [
    ("google", "gcp.gemini"),
    ("azure", "azure.ai.openai"),
    ("mistral", "mistral_ai"),
];

/// The provider and the model of a name such as `openai:gpt-5`, as the conventions have them.
fn parts(name: &str) -> (&str, &str) {
    let (provider, model) = name.split_once(':').unwrap_or((name, name));
    let known = PROVIDER_NAMES.iter().find(|(ours, _)| *ours == provider);
    (known.map_or(provider, |(_, theirs)| theirs), model)
}

/// Asks a model within a span of its own, which tells who was asked, by whom, and what it cost.
pub(super) async fn measured(
    model: &dyn Model,
    agent: &str,
    task: &str,
    asking: impl Future<Output = Result<ModelReply, ModelError>>,
) -> Result<ModelReply, ModelError> {
    let (provider, requested) = parts(model.name());
    let span = tracing::info_span!(
        "model.request",
        otel.name = %format_args!("chat {requested}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = requested,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = task,
        "error.type" = Empty,
    );
    let asked = asking.instrument(span.clone()).await;
    match &asked {
        Ok(reply) => record(&span, reply),
        Err(error) => {
            let kind = serde_json::to_value(error.kind).unwrap_or_default();
            span.record("error.type", kind.as_str());
            span.record("otel.status_code", "ERROR");
            if let Some(partial) = &error.partial {
                record(&span, partial);
            }
        }
    }
    asked
}

fn record(span: &Span, reply: &ModelReply) {
    span.record("gen_ai.response.model", reply.model.as_str());
    let usage = reply.usage;
    // Where a provider does not tell, nothing is told.
    if usage.prompt > 0 || usage.completion > 0 {
        span.record("gen_ai.usage.input_tokens", usage.prompt);
        span.record("gen_ai.usage.output_tokens", usage.completion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_named_as_others_name_them() {
        assert_eq!(parts("openai:gpt-5"), ("openai", "gpt-5"));
        assert_eq!(parts("google:gemini-3"), ("gcp.gemini", "gemini-3"));
        assert_eq!(parts("sim:scripted:a.yaml"), ("sim", "scripted:a.yaml"));
        assert_eq!(parts("instantly"), ("instantly", "instantly"));
    }
}
