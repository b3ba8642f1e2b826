//! One message of a trace.

use proofhouse_oatf::Direction;
use serde_json::Value;

/// One message that was seen on the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The position in its trace, from 1; evidence points at it.
    pub sequence: u64,
    /// When it was seen, as an RFC 3339 text.
    pub time: Option<String>,
    /// The actor of the attacking side whose traffic it is.
    pub actor: Option<String>,
    /// The phase that actor was in.
    pub phase: Option<String>,
    /// The protocol: `mcp`, `a2a`, `ag_ui` or another.
    pub protocol: String,
    /// The operation or event, such as `tools/call`.
    pub operation: String,
    /// The protocol role of the message.
    pub direction: Option<Direction>,
    /// The content root that indicators look at: params, result, event or card.
    pub content: Value,
}

impl Message {
    /// A message with nothing but what every message has.
    ///
    /// ```
    /// use proofhouse_detect::Message;
    /// use serde_json::json;
    /// let message = Message::new("mcp", "tools/list", json!({"tools": []}));
    /// assert_eq!(message.sequence, 1);
    /// ```
    #[must_use]
    pub fn new(protocol: &str, operation: &str, content: Value) -> Self {
        Self {
            sequence: 1,
            time: None,
            actor: None,
            phase: None,
            protocol: protocol.to_owned(),
            operation: operation.to_owned(),
            direction: None,
            content,
        }
    }
}
