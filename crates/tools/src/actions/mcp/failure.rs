//! Failures: what the errors of links and of the SDK mean for a task.

use std::error::Error;

use proofhouse_protocol::mcp::error;
use rmcp::ServiceError;
use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;

use crate::runtime::{ActionError, ActionFailure};

/// How much of what a server says is told in an error.
pub(super) const MAX_SAID: usize = 4096;

/// The error of a link, on its way through the layers of the SDK.
#[derive(Clone)]
pub(super) struct LinkError(pub(super) ActionError);

/// The SDK writes errors to the log; what a server said may hold a secret.
impl std::fmt::Debug for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LinkError({})", self.0.failure.word())
    }
}

impl std::fmt::Display for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.failure.word())
    }
}

impl Error for LinkError {}

impl LinkError {
    pub(super) fn new(failure: ActionFailure, message: impl Into<String>) -> Self {
        Self(ActionError::new(failure, message))
    }
}

const TOO_LONG: &str = "the answer of the server is larger than it may be";

/// What stands for an answer that was too long to be read. A server that says the same gains nothing.
pub(super) fn too_long() -> ErrorData {
    ErrorData::internal_error(TOO_LONG, None)
}

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The server does not know the session any more; it has done nothing.
    SessionEnded,
    /// The connection is gone, and the outcome not known.
    Gone(ActionError),
    /// Anything else.
    Other(ActionError),
}

/// The error of a call.
pub(super) fn of_call(error: ServiceError) -> CallFailure {
    match error {
        ServiceError::McpError(said) if said == too_long() => {
            let mut error = ActionError::new(ActionFailure::TooLarge, TOO_LONG);
            error.outcome_unknown = true;
            CallFailure::Other(error)
        }
        ServiceError::McpError(said) => {
            let mut error = ActionError::new(
                ActionFailure::Tool,
                format!("the server answers with an error: {}", said.message),
            );
            error.detail.insert("code".to_owned(), said.code.0.into());
            CallFailure::Other(error)
        }
        ServiceError::TransportSend(error) => {
            if is_session_end(&error) {
                return CallFailure::SessionEnded;
            }
            match link_error(&error) {
                Some(error) if error.failure == ActionFailure::Broken => CallFailure::Gone(error),
                Some(error) => CallFailure::Other(error),
                None => CallFailure::Gone(broken("the connection to the server broke")),
            }
        }
        ServiceError::TransportClosed => {
            CallFailure::Gone(broken("the connection to the server ended"))
        }
        ServiceError::UnexpectedResponse => CallFailure::Other(ActionError::new(
            ActionFailure::Response,
            "the answer of the server is not that of a tool",
        )),
        ServiceError::Cancelled { .. } => CallFailure::Other(ActionError::new(
            ActionFailure::Cancelled,
            "the server cancelled the call",
        )),
        other => CallFailure::Other(ActionError::new(ActionFailure::Response, other.to_string())),
    }
}

/// The error of a start.
pub(super) fn of_start(error: &ClientInitializeError) -> ActionError {
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return of_start(fallback);
    }
    if let Some(link) = link_error_of_start(error) {
        return link;
    }
    match error {
        ClientInitializeError::JsonRpcError(said) => {
            let message = format!("the server refuses to start a session: {}", said.message);
            let mut error = ActionError::new(ActionFailure::Tool, message);
            error.detail.insert("code".to_owned(), said.code.0.into());
            error
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let versions: Vec<&str> = server_supported
                .iter()
                .take(10)
                .map(|version| version.as_str())
                .collect();
            let message = format!(
                "the server speaks no version of MCP that is known here; it names: {}",
                versions.join(", ")
            );
            ActionError::new(ActionFailure::Response, message)
        }
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => ActionError::new(
            ActionFailure::Broken,
            "the server ended the connection before it was ready",
        ),
        _ => ActionError::new(
            ActionFailure::Response,
            "the server does not answer as an MCP server does",
        ),
    }
}

/// Whether the other era should be tried after a start that failed: what the server said was no answer
/// of the modern era.
pub(super) fn may_be_legacy(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion { .. }
        | ClientInitializeError::LegacyFallbackFailed { .. }
        | ClientInitializeError::Cancelled => false,
        ClientInitializeError::JsonRpcError(said) => !error::is_modern(said.code.0.into()),
        other => link_error_of_start(other).is_none_or(|error| match error.failure {
            ActionFailure::HttpStatus => !matches!(status(&error), Some(401 | 403)),
            ActionFailure::Broken | ActionFailure::Response => true,
            _ => false,
        }),
    }
}

/// The HTTP status that an error tells of.
pub(super) fn status(error: &ActionError) -> Option<u64> {
    error.detail.get("status").and_then(Value::as_u64)
}

/// A connection that ended while an answer was awaited.
pub(super) fn broken(message: &str) -> ActionError {
    let mut error = ActionError::new(ActionFailure::Broken, message);
    error.outcome_unknown = true;
    error
}

fn is_session_end(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|cause| {
        matches!(
            cause.downcast_ref::<StreamableHttpError<LinkError>>(),
            Some(StreamableHttpError::SessionExpired)
        )
    })
}

/// The same for the error of a start, which does not name its cause as one.
fn link_error_of_start(error: &ClientInitializeError) -> Option<ActionError> {
    match error {
        ClientInitializeError::TransportError { error, .. } => link_error(error),
        _ => None,
    }
}

/// What a link said, if it is behind an error.
fn link_error(error: &(dyn Error + 'static)) -> Option<ActionError> {
    chain(error).find_map(|cause| {
        if let Some(StreamableHttpError::Client(error)) =
            cause.downcast_ref::<StreamableHttpError<LinkError>>()
        {
            return Some(error.0.clone());
        }
        cause
            .downcast_ref::<LinkError>()
            .map(|error| error.0.clone())
    })
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    // As deep as the layers of a library go; a chain that bites its tail must end too.
    let next = |error: &&'e (dyn Error + 'static)| -> Option<&'e (dyn Error + 'static)> {
        (*error).source()
    };
    std::iter::successors(Some(error), next).take(20)
}

/// The start of a text, and whether it was cut.
pub(super) fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The end of a text.
pub(super) fn tail(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(0)..]
}
