//! The table of providers, and real models over HTTP: one exchange with limits and retries, and one dialect per provider.

mod anthropic;
mod assembly;
mod exchange;
mod google;
mod http_model;
mod openai;

use assembly::{Assembly, AssemblyProblem};
use proofhouse_wire::HeaderMap;
use serde_json::Value;

use super::open::{RECORDING, SIMULATION};
use super::{ModelRequest, ProviderRow};

/// Every kind of model there is, in the order in which help and messages name them.
pub const PROVIDERS: &[ProviderRow] = &[
    openai::OPENAI,
    openai::AZURE,
    anthropic::ANTHROPIC,
    google::GOOGLE,
    SIMULATION,
    RECORDING,
];

/// What is sent for one request.
struct ProviderRequest {
    url: String,
    headers: HeaderMap,
    body: Value,
}

/// How one provider writes requests and replies.
trait ProviderDialect: Send + Sync {
    /// The request in the provider's words.
    fn write(&self, request: &ModelRequest, stream: bool) -> ProviderRequest;

    /// Reads one event of a streamed reply.
    fn event(&self, event: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem>;

    /// Reads a reply that came in one piece.
    fn whole(&self, body: &Value, reply: &mut Assembly<'_>) -> Result<(), AssemblyProblem>;
}

/// The text of a field, or nothing.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The number of a field, or 0.
fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// The items of a field, or none.
fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The schema of a tool without parameters still is an object: every provider insists on one.
fn schema(parameters: &Value) -> Value {
    match parameters {
        Value::Object(object) if object.contains_key("type") => parameters.clone(),
        Value::Object(object) => {
            let mut object = object.clone();
            object.insert("type".to_owned(), "object".into());
            Value::Object(object)
        }
        _ => serde_json::json!({"type": "object", "properties": {}}),
    }
}
