//! Finding out which era the server is of, and beginning the conversation as that asks for.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_oatf::Direction;
use serde_json::{Value, json};

use crate::driver::{ActorError, ActorErrorKind};
use crate::phases::PhaseView;

use super::envelope::{LEGACY, MODERN};
use super::link::{Link, Source};
use super::session::{Era, Outcome, Session};

/// How long a server may take to say that it is modern.
const PROBE: Duration = Duration::from_secs(5);

/// The errors that only modern servers know: header mismatch, missing capability, version.
const MODERN_ERRORS: std::ops::RangeInclusive<i64> = -32022..=-32020;
/// The version is not supported; the data says which are.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

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
pub(super) enum Begun {
    /// The conversation can go on.
    Yes,
    /// The server ended at the first question. It must be started again, and not asked that.
    Again,
}

impl Session {
    /// Begins the conversation. `version` is the one that the document insists on.
    pub(super) async fn begin(
        &mut self,
        phase: &Arc<PhaseView>,
        version: Option<&str>,
        may_probe: bool,
    ) -> Result<Begun, ActorError> {
        let probe = match version {
            Some(version) if version >= MODERN => Probe::Modern {
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
                self.era = Era::Modern(version);
                self.met(discovered.as_ref());
                Ok(Begun::Yes)
            }
            Probe::Legacy => self.initialize(phase, version).await.map(|()| Begun::Yes),
            Probe::Died => Ok(Begun::Again),
        }
    }

    async fn probe(&mut self, phase: &Arc<PhaseView>) -> Result<Probe, ActorError> {
        let method = "server/discover";
        self.era = Era::Modern(MODERN.to_owned());
        let patience = PROBE.min(self.context.limits().response_timeout);
        let outcome = self.request(phase, method, None, None, patience).await;
        self.era = Era::Legacy;
        let (outcome, raw) = match outcome {
            Outcome::Answered { outcome, raw, .. } => (outcome, raw),
            Outcome::Failed {
                reason,
                unreachable: true,
                ..
            } => return Err(self.context.error(ActorErrorKind::Unreachable, reason)),
            Outcome::Failed { .. } if self.dead => return Ok(Probe::Died),
            Outcome::Failed { .. } => return Ok(Probe::Legacy),
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
            Err(error)
                if error["code"]
                    .as_i64()
                    .is_some_and(|c| MODERN_ERRORS.contains(&c)) =>
            {
                let told = &error["data"]["supported"];
                match supported(told) {
                    Some(version) => Probe::Modern {
                        version,
                        discovered: None,
                    },
                    // It names only versions of the legacy era.
                    None if told.as_array().is_some_and(|told| !told.is_empty()) => Probe::Legacy,
                    None => Probe::Modern {
                        version: MODERN.to_owned(),
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
        let Era::Modern(version) = &self.era else {
            return;
        };
        let info = match &discovered["_meta"]["io.modelcontextprotocol/serverInfo"] {
            Value::Null => &discovered["serverInfo"],
            info => info,
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
        let turn = self
            .context
            .received("initialize", Direction::Response, &content, raw);
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
            "protocolVersion": version.unwrap_or(LEGACY),
            "capabilities": self.capabilities,
            "clientInfo": self.client_info,
        });
        let patience = self.context.limits().response_timeout;
        let method = "initialize";
        let outcome = self
            .request(phase, method, Some(&params), None, patience)
            .await;
        let (outcome, raw) = match outcome {
            Outcome::Answered { outcome, raw, .. } => (outcome, raw),
            Outcome::Failed {
                reason,
                unreachable,
                ..
            } => return Err(self.not_begun(&reason, unreachable)),
        };
        let (Ok(content) | Err(content)) = &outcome;
        let turn = self
            .context
            .received(method, Direction::Response, content, Some(raw));
        match &outcome {
            Ok(result) => {
                let agreed = result["protocolVersion"].as_str().unwrap_or(LEGACY);
                if let Link::Http(link) = &mut self.link {
                    link.version = Some(agreed.to_owned());
                }
            }
            Err(error) => {
                let warning = format!("the server refused `initialize`: {}", error["message"]);
                self.context.warn(&warning);
            }
        }
        self.notify(phase, "notifications/initialized", None).await;
        if let Link::Http(link) = &mut self.link {
            link.listen();
            // Servers drop what they want to say on this stream while it is not open.
            self.settled(Source::Stream).await;
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
                let mut message = format!("the command does not answer `initialize`: {reason}");
                for line in lines.iter().rev() {
                    message.push_str("\n  ");
                    message.push_str(line);
                }
                let kind = if self.dead {
                    ActorErrorKind::Command
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
    let modern: Vec<&str> = versions.filter(|version| is_modern(version)).collect();
    // Versions are dates. Ours if it is there, otherwise the nearest that could be meant.
    let ours = modern.iter().find(|version| **version == MODERN);
    ours.or(modern.first()).map(|version| (*version).to_owned())
}

fn is_modern(version: &str) -> bool {
    let is_date = version.len() == MODERN.len() && version.is_ascii();
    is_date && version >= MODERN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modern_versions_make_a_server_modern() {
        for (versions, expected) in [
            (json!(["2025-11-25", "2026-07-28"]), Some("2026-07-28")),
            (json!(["2027-01-01", "2026-07-28"]), Some("2026-07-28")),
            (json!(["2027-01-01"]), Some("2027-01-01")),
            (json!(["2025-11-25"]), None),
            (json!(["zzz", 7]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            assert_eq!(supported(&versions).as_deref(), expected, "{versions}");
        }
    }
}
