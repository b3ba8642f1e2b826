//! What A2A says of messages, tasks and their states, written as each generation writes it.

use proofhouse_protocol::a2a::{A2aRole, A2aShape, A2aVersion};
use serde_json::{Value, json};

use super::super::texts::cut;

/// What is kept of one text of a message, in bytes.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// Parts of one message.
const MAX_PARTS: usize = 256;

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum A2aPart {
    Text(String),
    Data(Value),
    /// A file that is named, and neither fetched nor kept.
    File {
        name: String,
        url: Option<String>,
    },
}

impl A2aPart {
    /// Reads a part of either generation.
    fn read(value: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
        if let Some(text) = text(value, "text") {
            return Some(Self::Text(text));
        }
        if let Some(data) = value.get("data") {
            return Some(Self::Data(data.clone()));
        }
        if let Some(file) = value.get("file") {
            return Some(Self::File {
                name: text(file, "name").unwrap_or_default(),
                url: text(file, "uri"),
            });
        }
        (value.get("raw").is_some() || value.get("url").is_some()).then(|| Self::File {
            name: text(value, "filename").unwrap_or_default(),
            url: text(value, "url"),
        })
    }

    /// As the model reads it.
    fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Data(data) => data.to_string(),
            Self::File { name, url } => {
                let url = url.as_deref().unwrap_or_default();
                format!(
                    "[a file that is not read: {}]",
                    format!("{name} {url}").trim()
                )
            }
        }
    }

    /// As it is kept.
    fn kept(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(cut(&text, MAX_KEPT_BYTES)),
            Self::Data(data) if data.to_string().len() > MAX_KEPT_BYTES => {
                Self::Text("[data that is too large to keep]".to_owned())
            }
            Self::File { name, url } => Self::File {
                name: cut(&name, 256),
                url: url.map(|url| cut(&url, 2048)),
            },
            other => other,
        }
    }

    fn to_json(&self, generation: A2aVersion) -> Value {
        match (self, generation) {
            (Self::Text(text), A2aVersion::V0_3) => json!({"kind": "text", "text": text}),
            (Self::Text(text), A2aVersion::V1_0) => json!({"text": text}),
            (Self::Data(data), A2aVersion::V0_3) => json!({"kind": "data", "data": data}),
            (Self::Data(data), A2aVersion::V1_0) => json!({"data": data}),
            (
                Self::File {
                    name,
                    url: Some(url),
                },
                A2aVersion::V0_3,
            ) => {
                json!({"kind": "file", "file": {"name": name, "uri": url}})
            }
            (
                Self::File {
                    name,
                    url: Some(url),
                },
                A2aVersion::V1_0,
            ) => {
                json!({"url": url, "filename": name})
            }
            (Self::File { .. }, A2aVersion::V0_3) => {
                json!({"kind": "text", "text": self.to_text()})
            }
            (Self::File { .. }, A2aVersion::V1_0) => json!({"text": self.to_text()}),
        }
    }
}

/// Why a message of a client cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidA2aMessage {
    #[error("`message.messageId` must be a text")]
    Id,
    #[error("`message.parts` must be a list of 1 to {MAX_PARTS}")]
    Parts,
    #[error("`message.parts` holds something that is no part")]
    Part,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct A2aMessage {
    pub(super) id: String,
    pub(super) from_user: bool,
    pub(super) parts: Vec<A2aPart>,
}

impl A2aMessage {
    pub(super) fn of_agent(text: impl Into<String>) -> Self {
        Self {
            id: super::super::texts::fresh_id(),
            from_user: false,
            parts: vec![A2aPart::Text(text.into()).kept()],
        }
    }

    /// Reads the parts of a message: what the model is told, and what is kept.
    pub(super) fn read(message: &Value) -> Result<(String, Self), InvalidA2aMessage> {
        let id = message.get("messageId").and_then(Value::as_str);
        let id = id.filter(|id| !id.is_empty() && id.len() <= 512);
        let id = id.ok_or(InvalidA2aMessage::Id)?;
        let parts = message.get("parts").and_then(Value::as_array);
        let parts = parts.filter(|parts| !parts.is_empty() && parts.len() <= MAX_PARTS);
        let parts = parts.ok_or(InvalidA2aMessage::Parts)?;
        let parts: Option<Vec<A2aPart>> = parts.iter().map(A2aPart::read).collect();
        let parts = parts.ok_or(InvalidA2aMessage::Part)?;
        let texts: Vec<String> = parts.iter().map(A2aPart::to_text).collect();
        let kept = Self {
            id: id.to_owned(),
            from_user: true,
            parts: parts.into_iter().map(A2aPart::kept).collect(),
        };
        Ok((texts.join("\n"), kept))
    }

    pub(super) fn to_json(&self, task: &str, context: &str, generation: A2aVersion) -> Value {
        let parts: Vec<Value> = self
            .parts
            .iter()
            .map(|part| part.to_json(generation))
            .collect();
        let mut message = json!({
            "messageId": self.id, "taskId": task, "contextId": context, "parts": parts,
        });
        let role = if self.from_user {
            A2aRole::User
        } else {
            A2aRole::Agent
        };
        message["role"] = role.as_str(generation).into();
        if generation == A2aVersion::V0_3 {
            message["kind"] = A2aShape::Message.kind().into();
        }
        message
    }
}

/// What a task came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Artifact {
    pub(super) id: String,
    pub(super) parts: Vec<A2aPart>,
}

impl Artifact {
    pub(super) fn to_json(&self, generation: A2aVersion) -> Value {
        let parts: Vec<Value> = self
            .parts
            .iter()
            .map(|part| part.to_json(generation))
            .collect();
        json!({"artifactId": self.id, "name": "answer", "parts": parts})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_both_generations_are_read_and_written() {
        let message = json!({"messageId": "m", "parts": [
            {"kind": "text", "text": "a"}, {"text": "b"}, {"kind": "data", "data": {"c": 1}},
            {"kind": "file", "file": {"name": "d", "uri": "http://h/d"}}, {"raw": "AA==", "filename": "e"},
        ]});
        let (text, kept) = A2aMessage::read(&message).unwrap();
        assert_eq!(
            text,
            "a\nb\n{\"c\":1}\n[a file that is not read: d http://h/d]\n[a file that is not read: e]"
        );
        let legacy = kept.to_json("t", "c", A2aVersion::V0_3);
        assert_eq!(legacy["kind"], "message");
        assert_eq!(legacy["role"], "user");
        assert_eq!(legacy["parts"][3]["file"]["uri"], "http://h/d");
        let modern = kept.to_json("t", "c", A2aVersion::V1_0);
        assert_eq!(modern.get("kind"), None);
        assert_eq!(modern["role"], "ROLE_USER");
        assert_eq!(modern["parts"][2], json!({"data": {"c": 1}}));
        for wrong in [
            json!({}),
            json!({"messageId": "m"}),
            json!({"messageId": "m", "parts": []}),
            json!({"messageId": "m", "parts": [{"odd": 1}]}),
            json!({"messageId": 3, "parts": [{"text": "a"}]}),
            json!({"messageId": "m", "parts": vec![json!({"text": "a"}); 257]}),
        ] {
            assert!(A2aMessage::read(&wrong).is_err(), "{wrong}");
        }
    }
}
