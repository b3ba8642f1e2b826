//! Finding out which era the server is of, and beginning the conversation as that asks for.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpMethod, McpNotification, McpRevision, answer_with_call, error, meta, newest_offered,
};
use serde_json::{Value, json};

use crate::driver::{ActorError, ActorErrorKind};
use crate::phases::PhaseView;

use super::link::{Link, MessageOrigin};
use super::session::{McpClientSession, RequestOutcome};

/// How long a server may take to say that it is modern.
const PROBE: Duration = Duration::from_secs(5);
/// How much of a command an error quotes.
const MAX_COMMAND_CHARS: usize = 200;

/// What the probe told.
enum Probe {
    Modern {
        version: String,
        /// The result of the discovery, if there is one.
        discovered: Option<Value>,
    },
    Legacy,
    /// The process did not survive the question.
    Died,
}

/// What came of beginning.
pub(super) enum HandshakeResult {
    /// The conversation can go on.
    Yes,
    /// The server ended at the first question. It must be started again, and not asked that.
    Again,
}

impl McpClientSession {
    /// Begins the conversation. `version` is the one that the document insists on.
    pub(super) async fn begin(
        &mut self,
        phase: &Arc<PhaseView>,
        version: Option<&str>,
        may_probe: bool,
    ) -> Result<HandshakeResult, ActorError> {
        let probe = match version {
            Some(version) if version >= McpRevision::FIRST_STATELESS.as_str() => Probe::Modern {
                version: version.to_owned(),
                discovered: None,
            },
            None if may_probe => self.probe(phase).await?,
            _ => Probe::Legacy,
        };
        match probe {
            Probe::Modern {
                version,
                discovered,
            } => {
                self.stateless = Some(version);
                self.met(discovered.as_ref());
                Ok(HandshakeResult::Yes)
            }
            Probe::Legacy => self
                .initialize(phase, version)
                .await
                .map(|()| HandshakeResult::Yes),
            Probe::Died => Ok(HandshakeResult::Again),
        }
    }

    async fn probe(&mut self, phase: &Arc<PhaseView>) -> Result<Probe, ActorError> {
        let method = McpMethod::ServerDiscover.as_str();
        let newest = McpRevision::LATEST.to_string();
        self.stateless = Some(newest.clone());
        let patience = PROBE.min(self.context.limits().response_timeout);
        let outcome = self.request(phase, method, None, None, patience).await;
        self.stateless = None;
        let (outcome, raw) = match outcome {
            RequestOutcome::Answered { outcome, raw, .. } => (outcome, raw),
            RequestOutcome::Failed {
                reason,
                unreachable: true,
                ..
            } => return Err(self.context.error(ActorErrorKind::Unreachable, reason)),
            RequestOutcome::Failed { .. } if self.dead => return Ok(Probe::Died),
            RequestOutcome::Failed { .. } => return Ok(Probe::Legacy),
        };
        let (Ok(content) | Err(content)) = &outcome;
        let direction = Direction::Response;
        self.context
            .overheard(method, direction, content, Some(raw));
        Ok(match outcome {
            Ok(result) => match supported(&result["supportedVersions"]) {
                Some(version) => Probe::Modern {
                    version,
                    discovered: Some(result),
                },
                None => Probe::Legacy,
            },
            Err(refusal) if refusal["code"].as_i64().is_some_and(error::is_modern) => {
                let told = &refusal["data"]["supported"];
                match supported(told) {
                    Some(version) => Probe::Modern {
                        version,
                        discovered: None,
                    },
                    // It names only versions of the legacy era.
                    None if told.as_array().is_some_and(|told| !told.is_empty()) => Probe::Legacy,
                    None => Probe::Modern {
                        version: newest,
                        discovered: None,
                    },
                }
            }
            Err(_) => Probe::Legacy,
        })
    }

    /// What a legacy server says on `initialize`, from what a modern one says on discovery, so
    /// that a document finds both under one name.
    fn met(&mut self, discovered: Option<&Value>) {
        let Some(discovered) = discovered else { return };
        let Some(version) = &self.stateless else {
            return;
        };
        let info = match meta::get(discovered, meta::SERVER_INFO) {
            None | Some(Value::Null) => &discovered["serverInfo"],
            Some(info) => info,
        };
        let mut content = json!({
            "protocolVersion": version,
            "capabilities": discovered["capabilities"],
            "serverInfo": info,
        });
        if let Some(instructions) = discovered.get("instructions") {
            content["instructions"] = instructions.clone();
        }
        let raw = Some(discovered.clone());
        let event = McpMethod::Initialize.as_str();
        let turn = self
            .context
            .received(event, Direction::Response, &content, raw);
        drop(turn);
    }

    /// The beginning of a legacy session.
    pub(super) async fn initialize(
        &mut self,
        phase: &Arc<PhaseView>,
        version: Option<&str>,
    ) -> Result<(), ActorError> {
        if let Link::Http(link) = &mut self.link {
            (link.session, link.version) = (None, None);
        }
        let params = json!({
            "protocolVersion": version.unwrap_or(McpRevision::LATEST_WITH_SESSIONS.as_str()),
            "capabilities": self.capabilities,
            "clientInfo": self.client_info,
        });
        let patience = self.context.limits().response_timeout;
        let method = McpMethod::Initialize.as_str();
        self.is_initializing = true;
        let outcome = self
            .request(phase, method, Some(&params), None, patience)
            .await;
        self.is_initializing = false;
        let late = self.late_discovery.take();
        let (outcome, raw) = match outcome {
            RequestOutcome::Answered { outcome, raw, .. } => (outcome, raw),
            RequestOutcome::Failed {
                reason,
                unreachable,
                ..
            } => return Err(self.not_begun(&reason, unreachable)),
        };
        if let (Err(refusal), Some(discovered)) = (&outcome, late) {
            // It is modern after all, and was only slow to start.
            let direction = Direction::Response;
            self.context
                .overheard(method, direction, refusal, Some(raw));
            self.stateless = supported(&discovered["supportedVersions"]);
            self.met(Some(&discovered));
            return Ok(());
        }
        let (Ok(content) | Err(content)) = &outcome;
        let turn = self
            .context
            .received(method, Direction::Response, content, Some(raw));
        match &outcome {
            Ok(result) => {
                let agreed = result["protocolVersion"].as_str();
                let agreed = agreed.unwrap_or(McpRevision::LATEST_WITH_SESSIONS.as_str());
                if let Link::Http(link) = &mut self.link {
                    link.version = Some(agreed.to_owned());
                }
            }
            Err(error) => {
                let warning = format!("the server refused `initialize`: {}", error["message"]);
                self.context.warn(&warning);
            }
        }
        let initialized = McpNotification::Initialized.as_str();
        self.notify(phase, initialized, None).await;
        if let Link::Http(link) = &mut self.link {
            link.listen();
            // Servers drop what they want to say on this stream while it is not open.
            self.settled(MessageOrigin::Stream).await;
        }
        drop(turn);
        Ok(())
    }

    fn not_begun(&self, reason: &str, unreachable: bool) -> ActorError {
        match &self.link {
            Link::Http(_) if unreachable => self.context.error(ActorErrorKind::Unreachable, reason),
            Link::Http(link) => {
                let message = format!("{} does not answer `initialize`: {reason}", link.url());
                self.context.error(ActorErrorKind::Protocol, message)
            }
            Link::Stdio(link) => {
                let stderr = link.stderr();
                let lines: Vec<&str> = stderr.trim().lines().rev().take(5).collect();
                let command: String = link.command().chars().take(MAX_COMMAND_CHARS).collect();
                let is_silent = !self.dead && !self.was_heard;
                let mut message = if is_silent {
                    let patience = self.context.limits().response_timeout;
                    format!(
                        "`{command}` never answered: it was sent `initialize` and wrote nothing to its standard output \
                         in {patience:?}. Is it an MCP server that speaks over stdio?"
                    )
                } else {
                    format!("`{command}` does not answer `initialize`: {reason}")
                };
                for line in lines.iter().rev() {
                    message.push_str("\n  ");
                    message.push_str(line);
                }
                let kind = if self.dead {
                    ActorErrorKind::Command
                } else if is_silent {
                    ActorErrorKind::Unreachable
                } else {
                    ActorErrorKind::Protocol
                };
                self.context.error(kind, message)
            }
        }
    }
}

/// The version to speak of those that a server supports, if it supports a modern one.
pub(super) fn supported(versions: &Value) -> Option<String> {
    let versions = versions.as_array()?.iter().filter_map(Value::as_str);
    newest_offered(versions).map(str::to_owned)
}

/// The content of a response. Those to calls of tools and prompts tell which call it was.
pub(super) fn enriched(
    method: &str,
    params: Option<&Value>,
    outcome: Result<Value, Value>,
) -> Value {
    answer_with_call(method, params, outcome.unwrap_or_else(|error| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modern_versions_make_a_server_modern() {
        let (legacy, modern) = (McpRevision::LATEST_WITH_SESSIONS, McpRevision::LATEST);
        let (legacy, modern) = (legacy.as_str(), modern.as_str());
        for (versions, expected) in [
            (json!([legacy, modern]), Some(modern)),
            (json!(["2099-01-01", modern]), Some(modern)),
            (json!(["2099-01-01"]), Some("2099-01-01")),
            (json!([legacy]), None),
            (json!(["zzz", 7]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            assert_eq!(supported(&versions).as_deref(), expected, "{versions}");
        }
    }

    #[test]
    fn responses_to_calls_tell_which_call_it_was() {
        let params = json!({"name": "x", "content": "hidden", "_meta": {}});
        let error = enriched("prompts/get", Some(&params), Err(json!({"code": 1})));
        assert_eq!(error, json!({"code": 1, "name": "x", "content": "hidden"}));
    }
}
