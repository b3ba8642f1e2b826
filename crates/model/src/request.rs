//! What a model is asked: the conversation so far, the tools it may call, and a few settings.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The instructions of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// What the model may call.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// Settings of the generation.
    #[serde(default)]
    pub options: ModelOptions,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What the user said.
    User {
        /// The words.
        text: String,
    },
    /// What the model answered.
    Assistant {
        /// The words; empty when it only called tools.
        text: String,
        /// What it called.
        #[serde(default)]
        calls: Vec<ToolCall>,
    },
    /// What a tool returned.
    Tool {
        /// The id of the call that it answers.
        call_id: String,
        /// The name of the tool.
        name: String,
        /// The result as text.
        content: String,
        /// Whether it tells of a failure.
        #[serde(default)]
        is_error: bool,
    },
}

impl ChatMessage {
    /// What the user said.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }

    /// What a tool returned for a call.
    #[must_use]
    pub fn tool(call: &ToolCall, content: impl Into<String>, is_error: bool) -> Self {
        Self::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: content.into(),
            is_error,
        }
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name to call it by.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// One call that a model wants to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call, so that its result can be told apart.
    pub id: String,
    /// The name of the tool; it may be one that does not exist.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
    /// Something of the provider's own that must go back to it with the call, such as Gemini's thought
    /// signature. Whoever keeps a conversation keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
}

impl ToolCall {
    /// A call with arguments that are fine.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Map<String, Value>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: Arguments::Object(arguments),
            opaque: None,
        }
    }
}

/// The arguments of a call, as far as they could be understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// An object, as it should be.
    Object(Map<String, Value>),
    /// What the model wrote instead.
    Malformed {
        /// Its very words.
        text: String,
        /// What is wrong with them.
        reason: String,
    },
}

impl Arguments {
    /// Reads what a model wrote. Nothing at all counts as no arguments.
    ///
    /// ```
    /// use proofhouse_model::Arguments;
    /// assert!(Arguments::parse(r#"{"city": "Paris"}"#).object().is_some());
    /// assert!(Arguments::parse(r#"{"city": "Par"#).object().is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(value) => Self::from_value(value),
            Err(error) => Self::Malformed {
                text: text.to_owned(),
                reason: format!("not JSON: {error}"),
            },
        }
    }

    /// Takes a value for arguments; only an object is fine.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::Object(object) => Self::Object(object),
            Value::Null => Self::Object(Map::new()),
            other => Self::Malformed {
                reason: "arguments must be an object".to_owned(),
                text: other.to_string(),
            },
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn object(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Object(object) => Some(object),
            Self::Malformed { .. } => None,
        }
    }

    /// The arguments as JSON text; malformed ones are the model's very words.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Object(object) => Value::Object(object.clone()).to_string(),
            Self::Malformed { text, .. } => text.clone(),
        }
    }

    /// The arguments as an object, for providers that take nothing else.
    #[must_use]
    pub fn to_object(&self) -> Value {
        match self {
            Self::Object(object) => Value::Object(object.clone()),
            Self::Malformed { text, .. } => serde_json::json!({ "malformed_arguments": text }),
        }
    }
}

/// Settings of the generation. What is absent is up to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelOptions {
    /// How freely words are chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Makes the choice repeatable, where the provider knows of it. Simulations always obey it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The most tokens of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// What the provider offers by itself and the model may use, such as `web-search`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built_in: Vec<String>,
}

/// What providers can be asked to offer by themselves.
pub const BUILT_IN: [&str; 1] = ["web-search"];

impl ModelOptions {
    /// Whether the model may search the web by itself.
    pub fn searches(&self) -> bool {
        self.built_in.iter().any(|name| name == BUILT_IN[0])
    }
}
