//! The messages between a host and us. Requests have an `id` and say what to `do`; everything we say has the `id` of its
//! request and an `event`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::DocumentFilter;
use crate::result::DocumentInfo;

/// The version of the protocol. It grows when a message changes or goes away, not when one is added.
pub const PROTOCOL: u32 = 1;

/// Characters of a name of an agent.
const MAX_NAME: usize = 200;

/// Which documents are meant. Without paths, those of the library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Selection {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) ids: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) severities: Vec<String>,
    pub(crate) protocols: Vec<String>,
}

impl Selection {
    pub(crate) fn filter(&self) -> DocumentFilter {
        DocumentFilter {
            ids: self.ids.clone(),
            tags: self.tags.clone(),
            categories: self.categories.clone(),
            severities: self.severities.clone(),
            protocols: self.protocols.clone(),
        }
    }
}

/// Which run of a document is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DriveKind {
    /// The task without the payload.
    Control,
    /// The attack, after its control and the channel probes where they are not known yet.
    Attack,
}

/// A run that a host asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveRun {
    /// Who is attacked; what is known of one agent counts for all its runs.
    pub(crate) agent: String,
    /// The id of the document, or the name of its file without the ending.
    pub(crate) document: String,
    pub(crate) kind: DriveKind,
    #[serde(default)]
    pub(crate) paths: Vec<PathBuf>,
    #[serde(default = "one")]
    pub(crate) repeats: u32,
    /// The largest attack success rate that passes.
    #[serde(default)]
    pub(crate) max_asr: f64,
    /// Seconds that one run may take.
    #[serde(default)]
    pub(crate) deadline: Option<f64>,
    #[serde(default)]
    pub(crate) seed: u64,
    #[serde(default = "yes")]
    pub(crate) probes: bool,
    /// Texts that must not be in results.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// What a host has to say about a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveAnswer {
    /// The number of the prompt.
    pub(crate) call: u64,
    /// What the agent said.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// Something that a host wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DriveRequest {
    /// Which documents there are.
    Select(Selection),
    /// A run.
    Run(Box<DriveRun>),
    /// The answer to a prompt of a run.
    Answer(DriveAnswer),
    /// The end of a run.
    Cancel,
}

/// A request that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the line is no JSON object with a number `id`")]
    NoId,
    #[error("`do` is none of select, run, answer and cancel")]
    NoSuchRequest,
    #[error("{0}")]
    Fields(String),
    #[error("{key}: {rule}")]
    Value {
        key: &'static str,
        rule: &'static str,
    },
    #[error("a line of more than {0} bytes is not read")]
    LongLine(usize),
    #[error("more than {0} requests are open")]
    TooMany(usize),
    #[error("there is no open request with this id")]
    NotOpen,
    #[error("a request with this id is open already")]
    SameId,
    #[error("{0}")]
    Documents(String),
    #[error("no document is called `{name}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoDocument { name: String, near: Option<String> },
    #[error("several documents are called `{0}`; say which with its id")]
    Ambiguous(String),
    #[error("{0}")]
    CannotMeet(String),
    #[error("the document has no control (`x-proofhouse.twin`)")]
    NoControl,
    #[error("the run was cancelled")]
    Cancelled,
}

impl RequestError {
    /// What programs tell it by.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoId
            | Self::NoSuchRequest
            | Self::Fields(_)
            | Self::Value { .. }
            | Self::LongLine(_)
            | Self::TooMany(_)
            | Self::NotOpen
            | Self::SameId => "invalid_request",
            Self::Documents(_) => "unusable_documents",
            Self::NoDocument { .. } | Self::Ambiguous(_) => "no_such_document",
            Self::CannotMeet(_) => "cannot_meet",
            Self::NoControl => "no_control",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Reads a line: its id, where it has one, and what is wanted.
pub(crate) fn read(line: &str) -> (Option<u64>, Result<DriveRequest, RequestError>) {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else {
        return (None, Err(RequestError::NoId));
    };
    let Some(id) = fields.remove("id").and_then(|id| id.as_u64()) else {
        return (None, Err(RequestError::NoId));
    };
    let wanted = fields.remove("do");
    let rest = Value::Object(fields);
    let request = match wanted.as_ref().and_then(Value::as_str) {
        Some("select") => typed(rest).map(DriveRequest::Select),
        Some("run") => typed::<DriveRun>(rest).and_then(|run| {
            let wrong = |key, rule| Err(RequestError::Value { key, rule });
            if run.agent.is_empty() || run.agent.chars().count() > MAX_NAME {
                return wrong("agent", "write a name of up to 200 characters");
            }
            if !(1..=1000).contains(&run.repeats) {
                return wrong("repeats", "write a number from 1 to 1000");
            }
            if !(0.0..=1.0).contains(&run.max_asr) {
                return wrong("max_asr", "write a number from 0 to 1");
            }
            if run
                .deadline
                .is_some_and(|seconds| !(0.1..=86_400.0).contains(&seconds))
            {
                return wrong("deadline", "write seconds, from 0.1 to 86400");
            }
            Ok(DriveRequest::Run(Box::new(run)))
        }),
        Some("answer") => typed::<DriveAnswer>(rest).and_then(|answer| {
            if answer.text.is_some() == answer.error.is_some() {
                let rule = "write either `text` or `error`";
                return Err(RequestError::Value {
                    key: "answer",
                    rule,
                });
            }
            Ok(DriveRequest::Answer(answer))
        }),
        Some("cancel") => Ok(DriveRequest::Cancel),
        _ => Err(RequestError::NoSuchRequest),
    };
    (Some(id), request)
}

fn typed<T: serde::de::DeserializeOwned>(fields: Value) -> Result<T, RequestError> {
    serde_json::from_value(fields).map_err(|error| RequestError::Fields(error.to_string()))
}

/// A document as a host sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DriveDocument {
    pub(crate) id: String,
    /// The name of its file without the ending.
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) category: Option<String>,
    pub(crate) severity: Option<String>,
    pub(crate) has_control: bool,
}

impl DriveDocument {
    pub(crate) fn of(info: &DocumentInfo) -> Self {
        Self {
            id: info.id.clone(),
            slug: crate::document::slug(&info.path).to_owned(),
            name: info.name.clone(),
            description: info.description.clone(),
            category: info.category.clone(),
            severity: info.severity.clone(),
            has_control: info.has_twin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        let (_, request) = read(line);
        request.expect_err(line).to_string()
    }

    #[test]
    fn requests_are_read() {
        let (id, select) = read(r#"{"id": 1, "do": "select", "ids": ["a*"]}"#);
        assert_eq!(id, Some(1));
        assert!(matches!(select, Ok(DriveRequest::Select(all)) if all.ids == ["a*"]));
        let line = r#"{"id": 2, "do": "run", "agent": "a", "document": "d", "kind": "attack", "repeats": 3}"#;
        let Ok(DriveRequest::Run(run)) = read(line).1 else {
            panic!("{line}");
        };
        assert_eq!(
            (run.repeats, run.kind, run.probes),
            (3, DriveKind::Attack, true)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(refused("x").contains("no JSON object"));
        assert!(refused("[1]").contains("no JSON object"));
        assert!(refused(r#"{"id": -1, "do": "cancel"}"#).contains("`id`"));
        assert!(refused(r#"{"id": 1, "do": "dance"}"#).contains("none of"));
        assert!(refused(r#"{"id": 1, "do": "select", "idz": []}"#).contains("idz"));
        assert!(refused(r#"{"id": 1, "do": "answer", "call": 1}"#).contains("either"));
        let run = |more: &str| {
            let fields = r#""agent": "a", "document": "d", "kind": "attack""#;
            refused(&format!("{{\"id\": 1, \"do\": \"run\", {fields}, {more}}}"))
        };
        assert!(run("\"repeats\": 0").contains("repeats"));
        assert!(run("\"max_asr\": 2").contains("max_asr"));
        assert!(run("\"deadline\": 0").contains("deadline"));
    }
}
