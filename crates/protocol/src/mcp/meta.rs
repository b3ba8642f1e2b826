//! The keys of `_meta`, which every request and result of the stateless revisions carries.

use serde_json::Value;

/// The member that holds the rest.
pub const KEY: &str = "_meta";
/// The revision of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// How urgent log messages must be that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is; on every result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription that a notification belongs to: the id of the request that opened it.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// What the client calls the progress of a request; in every revision.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// A value in the `_meta` of parameters or of a result.
///
/// ```
/// use proofhouse_protocol::mcp::meta;
/// use serde_json::json;
///
/// let params = json!({"_meta": {"progressToken": 7}});
/// assert_eq!(meta::get(&params, meta::PROGRESS_TOKEN), Some(&json!(7)));
/// assert_eq!(meta::get(&params, meta::LOG_LEVEL), None);
/// ```
#[must_use]
pub fn get<'v>(holder: &'v Value, key: &str) -> Option<&'v Value> {
    holder.get(KEY)?.get(key)
}
