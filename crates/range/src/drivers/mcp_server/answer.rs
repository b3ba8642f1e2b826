//! What each method answers, from the state of the phase that held when the request came.

use std::ops::Range;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_wire::rpc;
use serde_json::{Map, Value, json};

use super::call::{
    CLIENT_INFO_KEY, Call, Era, Failure, LEGACY_VERSIONS, Listener, MODERN_VERSION, Outcome,
    SERVER_INFO_KEY, VERSION_KEY,
};
use super::content::Kind;
use super::peer;
use super::service::Service;
use super::surface::{List, Surface};
use crate::phases::PhaseView;
use crate::{Advance, CarrierKind};

/// A request that was taken in.
#[derive(Debug)]
pub(super) struct Begun {
    /// The phase that answers.
    pub(super) phase: Arc<PhaseView>,
    pub(super) surface: Arc<Surface>,
    /// Held until the answer is on its way.
    pub(super) advances: Vec<Advance>,
    pub(super) work: Work,
    pub(super) carried: Carried,
}

/// What is left to do for the answer.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing.
    Ready(Outcome),
    /// Something has to happen before.
    Play(Script),
    /// The caller wants to hear of changes.
    Listen(Value),
}

/// What has to happen before an answer.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) kind: Kind,
    /// The tool, resource, template or prompt.
    pub(super) name: String,
    /// The request as templates see it.
    pub(super) view: Value,
}

/// What of the attack an answer carries.
#[derive(Debug, Default)]
pub(super) enum Carried {
    #[default]
    Nothing,
    Instructions,
    Listed(CarrierKind, Range<usize>),
    One(CarrierKind, String),
}

impl Service {
    /// Takes a request in: it is recorded, may end the phase, and is answered as far as that needs
    /// no waiting.
    pub(super) fn begin(&self, call: &Call) -> Begun {
        let mut advances = Vec::new();
        if call.era == Era::Modern {
            advances.extend(self.contact(call));
        }
        if let Some(kind) = Kind::of(&call.method) {
            return self.begin_use(call, kind, advances);
        }
        let probed = call.era == Era::Legacy
            && call.method == "initialize"
            && self.contacts.was_probe(&client_name(call));
        let phase = if probed {
            self.context
                .overheard(&call.method, Direction::Request, &call.params, None)
        } else {
            let turn = self
                .context
                .received(&call.method, Direction::Request, &call.params, None);
            advances.push(turn.advance);
            turn.phase
        };
        let surface = phase.prepared(Surface::of);
        let mut carried = Carried::Nothing;
        let work = match self.simple(call, &surface, &mut carried) {
            Ok(work) => work,
            Err(failure) => Work::Ready(Outcome::Error(failure)),
        };
        Begun {
            phase,
            surface,
            advances,
            work,
            carried,
        }
    }

    /// The first request of a client of the modern era stands for the handshake.
    fn contact(&self, call: &Call) -> Option<Advance> {
        if !self.contacts.is_new(&client_name(call)) {
            return None;
        }
        let content = json!({
            "protocolVersion": call.meta(VERSION_KEY),
            "capabilities": *call.capabilities,
            "clientInfo": call.meta(CLIENT_INFO_KEY),
        });
        let turn = self
            .context
            .received("initialize", Direction::Request, &content, None);
        Some(turn.advance)
    }

    /// The methods that use no item.
    fn simple(
        &self,
        call: &Call,
        surface: &Surface,
        carried: &mut Carried,
    ) -> Result<Work, Failure> {
        let unknown = || Failure::unknown_method(&call.method, call.era);
        let result = match (call.method.as_str(), call.era) {
            ("initialize", Era::Legacy) => {
                *carried = Carried::Instructions;
                self.initialize(call, surface)
            }
            ("ping", Era::Legacy) => json!({}),
            ("logging/setLevel", Era::Legacy) => {
                let level = peer::level(call.text("level")).ok_or_else(|| {
                    Failure::new(rpc::INVALID_PARAMS, "there is no such log level")
                })?;
                if let Some(peer) = &call.peer {
                    peer.set_level(level);
                }
                json!({})
            }
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) => {
                let uri = call.text("uri");
                if uri.is_empty() {
                    return Err(Failure::new(rpc::INVALID_PARAMS, "`uri` is missing"));
                }
                if let Some(peer) = &call.peer {
                    if call.method == "resources/unsubscribe" {
                        peer.unsubscribe(uri);
                    } else if !peer.subscribe(uri) {
                        return Err(Failure::new(rpc::INVALID_PARAMS, "too many subscriptions"));
                    }
                }
                json!({})
            }
            ("server/discover", Era::Modern) => {
                *carried = Carried::Instructions;
                self.discover(call, surface)
            }
            ("subscriptions/listen", Era::Modern) => {
                let wanted = call.params.get("notifications").ok_or_else(|| {
                    Failure::new(rpc::INVALID_PARAMS, "`notifications` is missing")
                })?;
                return Ok(Work::Listen(Listener::honoured(wanted)));
            }
            ("tools/list", _) => {
                let kind = CarrierKind::ToolListed;
                self.list(call, surface, &surface.tools, "tools", kind, carried)?
            }
            ("resources/list", _) => {
                let kind = CarrierKind::ResourceListed;
                let list = &surface.resources;
                self.list(call, surface, list, "resources", kind, carried)?
            }
            ("resources/templates/list", _) => {
                let kind = CarrierKind::ResourceListed;
                let list = &surface.templates;
                self.list(call, surface, list, "resourceTemplates", kind, carried)?
            }
            ("prompts/list", _) => {
                let kind = CarrierKind::PromptListed;
                self.list(call, surface, &surface.prompts, "prompts", kind, carried)?
            }
            ("completion/complete", _) => complete(call, surface),
            _ => return Err(unknown()),
        };
        let cacheable = call.method == "server/discover" || call.method.ends_with("/list");
        Ok(Work::Ready(Outcome::Result(finish(
            result, call.era, surface, cacheable,
        ))))
    }

    fn initialize(&self, call: &Call, surface: &Surface) -> Value {
        let asked = call.text("protocolVersion");
        let latest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
        let version = match &surface.version {
            Some(version) => version,
            None if LEGACY_VERSIONS.contains(&asked) => asked,
            // Also for those who ask for the modern version with a handshake: one that is both
            // would confuse its client.
            None => latest,
        };
        if let Some(peer) = &call.peer {
            let capabilities = call.params.get("capabilities");
            peer.introduce(version, capabilities.unwrap_or(&json!({})));
        }
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.resolved(&surface.capabilities, &call.params),
            "serverInfo": self.resolved(&surface.server_info, &call.params),
        });
        if let Some(instructions) = &surface.instructions {
            result["instructions"] = self.resolved(instructions, &call.params);
        }
        result
    }

    fn discover(&self, call: &Call, surface: &Surface) -> Value {
        let mut result = json!({
            "supportedVersions": supported_versions(surface),
            "capabilities": self.resolved(&surface.capabilities, &call.params),
        });
        if let Some(instructions) = &surface.instructions {
            result["instructions"] = self.resolved(instructions, &call.params);
        }
        result
    }

    fn list(
        &self,
        call: &Call,
        surface: &Surface,
        list: &List,
        key: &str,
        kind: CarrierKind,
        carried: &mut Carried,
    ) -> Result<Value, Failure> {
        let start = match call.params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix(key)?.strip_prefix('.')?.parse().ok())
                .filter(|start| surface.page_size.is_some() && *start < list.items.len())
                .ok_or_else(|| Failure::new(rpc::INVALID_PARAMS, "there is no such cursor"))?,
        };
        let size = surface.page_size.unwrap_or(list.items.len());
        let end = list.items.len().min(start.saturating_add(size));
        let items = &list.items[start..end];
        let shown: Vec<Value> = items
            .iter()
            .map(|item| {
                if item.listed_has_templates {
                    self.context
                        .interpolate(&item.listed, Some(&call.params), None)
                } else {
                    item.listed.clone()
                }
            })
            .collect();
        *carried = Carried::Listed(kind, start..end);
        let mut result = Map::new();
        result.insert(key.to_owned(), Value::Array(shown));
        if end < list.items.len() {
            result.insert("nextCursor".to_owned(), format!("{key}.{end}").into());
        }
        Ok(Value::Object(result))
    }

    /// Counts what an answer carried to the subject.
    pub(super) fn count(&self, begun: &Begun, call: &Call) {
        let (surface, phase) = (&begun.surface, &begun.phase);
        match &begun.carried {
            Carried::Nothing => {}
            Carried::Instructions => {
                if surface.instructions.is_some() {
                    let kind = CarrierKind::Instructions;
                    self.context.delivered_in(phase, kind, "instructions");
                }
            }
            Carried::Listed(kind, range) => {
                let list = match (kind, call.method.as_str()) {
                    (CarrierKind::ToolListed, _) => &surface.tools,
                    (CarrierKind::PromptListed, _) => &surface.prompts,
                    (_, "resources/templates/list") => &surface.templates,
                    _ => &surface.resources,
                };
                for item in list.items.get(range.clone()).unwrap_or_default() {
                    self.context.delivered_in(phase, *kind, &item.name);
                }
            }
            Carried::One(kind, name) => self.context.delivered_in(phase, *kind, name),
        }
    }
}

/// What a server of this state speaks in the modern era.
pub(super) fn supported_versions(surface: &Surface) -> Value {
    match &surface.version {
        Some(version) => json!([version]),
        None => json!([MODERN_VERSION]),
    }
}

/// The result with what the modern era wants on every one.
pub(super) fn finish(mut result: Value, era: Era, surface: &Surface, cacheable: bool) -> Value {
    if era == Era::Legacy {
        return result;
    }
    if let Value::Object(map) = &mut result {
        map.entry("resultType").or_insert_with(|| "complete".into());
        if cacheable {
            // Clients would not ask again after a change otherwise.
            map.entry("ttlMs").or_insert_with(|| 0.into());
            map.entry("cacheScope").or_insert_with(|| "private".into());
        }
        let meta = map.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.entry(SERVER_INFO_KEY)
                .or_insert_with(|| surface.server_info.clone());
        }
    }
    result
}

fn complete(call: &Call, surface: &Surface) -> Value {
    let reference = call.params.get("ref");
    let text = |key: &str| {
        reference
            .and_then(|reference| reference.get(key)?.as_str())
            .unwrap_or_default()
    };
    let item = match text("type") {
        "ref/prompt" => surface.prompts.get(text("name")),
        _ => surface.templates.get(text("uri")),
    };
    let argument = |key: &str| call.params.pointer(&format!("/argument/{key}"));
    let name = argument("name").and_then(Value::as_str).unwrap_or_default();
    let begun = argument("value")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let values: Vec<&Value> = item
        .and_then(|item| item.completions.get(name)?.as_array())
        .into_iter()
        .flatten()
        .filter(|value| value.as_str().is_some_and(|value| value.starts_with(begun)))
        // The protocol allows no more.
        .take(100)
        .collect();
    json!({"completion": {"total": values.len(), "values": values, "hasMore": false}})
}

/// What tells clients of the modern era apart.
fn client_name(call: &Call) -> String {
    let info = match call.era {
        Era::Modern => call.meta(CLIENT_INFO_KEY),
        Era::Legacy => call.params.get("clientInfo"),
    };
    let mut name = format!("{} {}", call.origin, info.unwrap_or(&Value::Null));
    name.truncate(name.floor_char_boundary(500));
    name
}
