//! What each method answers, from the state of the phase that held when the request came.

use std::ops::Range;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{
    McpEra, McpLogLevel, McpMethod, McpRevision, meta, result_type, subscription_filter,
};
use proofhouse_protocol::rpc::{self, RpcFailure};
use serde_json::{Map, Value, json};

use super::call::{CallReply, ServerCall, unknown_method};
use super::content::ContentKind;
use super::service::McpServerService;
use super::steps::Ask;
use super::surface::{OfferedSurface, SurfaceList};
use crate::delivery_note::{DeliveryNote, NotedCarrier};
use crate::phases::PhaseView;
use crate::{Advance, CarrierKind};

/// A request that was taken in.
#[derive(Debug)]
pub(super) struct AcceptedRequest {
    /// The phase that answers.
    pub(super) phase: Arc<PhaseView>,
    pub(super) surface: Arc<OfferedSurface>,
    /// Held until the answer is on its way.
    pub(super) advances: Vec<Advance>,
    pub(super) work: RemainingWork,
    pub(super) carried: Carried,
}

/// What is left to do for the answer.
#[derive(Debug)]
pub(super) enum RemainingWork {
    /// Nothing.
    Ready(CallReply),
    /// Something has to happen before.
    Play(AnswerScript),
    /// The caller wants to hear of changes.
    Listen(Value),
}

/// What has to happen before an answer.
#[derive(Debug)]
pub(super) struct AnswerScript {
    pub(super) kind: ContentKind,
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
    /// A branch of what using an item may give.
    One(CarrierKind, String, Value),
    /// Questions that have to be answered first.
    Asked(Vec<Ask>),
}

impl McpServerService {
    /// Takes a request in: it is recorded, may end the phase, and is answered as far as that needs
    /// no waiting.
    pub(super) fn begin(&self, call: &ServerCall) -> AcceptedRequest {
        let mut advances = Vec::new();
        if call.era == McpEra::Modern {
            advances.extend(self.contact(call));
            // Asking what a server can do may lead to a session.
            if call.method != McpMethod::ServerDiscover.as_str() {
                self.context.spoken_to_without_session();
            }
        }
        if let Some(kind) = ContentKind::of(&call.method) {
            return self.begin_use(call, kind, advances);
        }
        let probed = call.era == McpEra::Legacy
            && call.method == McpMethod::Initialize.as_str()
            && self.contacts.was_probe(&client_name(call));
        let phase = if probed {
            self.context.overheard(
                &call.method,
                Direction::Request,
                &call.params,
                call.envelope(),
            )
        } else {
            let turn = self.context.received(
                &call.method,
                Direction::Request,
                &call.params,
                call.envelope(),
            );
            advances.push(turn.advance);
            turn.phase
        };
        let surface = phase.prepared(OfferedSurface::of);
        let mut carried = Carried::Nothing;
        let work = match self.simple(call, &surface, &mut carried) {
            Ok(work) => work,
            Err(failure) => RemainingWork::Ready(CallReply::Error(failure)),
        };
        AcceptedRequest {
            phase,
            surface,
            advances,
            work,
            carried,
        }
    }

    /// The first request of a client of the modern era stands for the handshake.
    fn contact(&self, call: &ServerCall) -> Option<Advance> {
        if !self.contacts.is_new(&client_name(call)) {
            return None;
        }
        let content = json!({
            "protocolVersion": call.meta(meta::PROTOCOL_VERSION),
            "capabilities": *call.capabilities,
            "clientInfo": call.meta(meta::CLIENT_INFO),
        });
        let event = McpMethod::Initialize.as_str();
        let turn = self
            .context
            .received(event, Direction::Request, &content, None);
        Some(turn.advance)
    }

    /// The methods that use no item.
    fn simple(
        &self,
        call: &ServerCall,
        surface: &OfferedSurface,
        carried: &mut Carried,
    ) -> Result<RemainingWork, RpcFailure> {
        let unknown = || unknown_method(&call.method, call.era);
        let method = McpMethod::parse(&call.method)
            .filter(|method| method.exists_in(call.era.latest()))
            .ok_or_else(unknown)?;
        let result = match method {
            McpMethod::Initialize => {
                *carried = Carried::Instructions;
                self.initialize(call, surface)
            }
            McpMethod::Ping => json!({}),
            McpMethod::LoggingSetLevel => {
                let level = McpLogLevel::parse(call.text("level")).ok_or_else(|| {
                    RpcFailure::new(rpc::INVALID_PARAMS, "there is no such log level")
                })?;
                if let Some(peer) = &call.peer {
                    peer.set_level(level);
                }
                json!({})
            }
            McpMethod::ResourcesSubscribe | McpMethod::ResourcesUnsubscribe => {
                let uri = call.text("uri");
                if uri.is_empty() {
                    return Err(RpcFailure::new(rpc::INVALID_PARAMS, "`uri` is missing"));
                }
                if let Some(peer) = &call.peer {
                    if method == McpMethod::ResourcesUnsubscribe {
                        peer.unsubscribe(uri);
                    } else if !peer.subscribe(uri) {
                        return Err(RpcFailure::new(
                            rpc::INVALID_PARAMS,
                            "too many subscriptions",
                        ));
                    }
                }
                json!({})
            }
            McpMethod::ServerDiscover => {
                *carried = Carried::Instructions;
                self.discover(call, surface)
            }
            McpMethod::SubscriptionsListen => {
                let wanted = call.params.get("notifications").ok_or_else(|| {
                    RpcFailure::new(rpc::INVALID_PARAMS, "`notifications` is missing")
                })?;
                return Ok(RemainingWork::Listen(subscription_filter(wanted)));
            }
            McpMethod::ToolsList => {
                let kind = CarrierKind::ToolListed;
                self.list(call, surface, &surface.tools, "tools", kind, carried)?
            }
            McpMethod::ResourcesList => {
                let kind = CarrierKind::ResourceListed;
                let list = &surface.resources;
                self.list(call, surface, list, "resources", kind, carried)?
            }
            McpMethod::ResourcesTemplatesList => {
                let kind = CarrierKind::ResourceListed;
                let list = &surface.templates;
                self.list(call, surface, list, "resourceTemplates", kind, carried)?
            }
            McpMethod::PromptsList => {
                let kind = CarrierKind::PromptListed;
                self.list(call, surface, &surface.prompts, "prompts", kind, carried)?
            }
            McpMethod::CompletionComplete => complete(call, surface),
            // Items are used elsewhere; the rest is what servers ask, and tasks, which this one has none of.
            McpMethod::ToolsCall
            | McpMethod::ResourcesRead
            | McpMethod::PromptsGet
            | McpMethod::SamplingCreateMessage
            | McpMethod::ElicitationCreate
            | McpMethod::RootsList
            | McpMethod::TasksGet
            | McpMethod::TasksResult
            | McpMethod::TasksList
            | McpMethod::TasksCancel => return Err(unknown()),
        };
        let cacheable = method.is_cacheable();
        Ok(RemainingWork::Ready(CallReply::Result(finish(
            result, call.era, surface, cacheable,
        ))))
    }

    fn initialize(&self, call: &ServerCall, surface: &OfferedSurface) -> Value {
        let asked = call.text("protocolVersion");
        let version = match &surface.version {
            Some(version) => version,
            None => McpRevision::negotiate(asked).as_str(),
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

    fn discover(&self, call: &ServerCall, surface: &OfferedSurface) -> Value {
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
        call: &ServerCall,
        surface: &OfferedSurface,
        list: &SurfaceList,
        key: &str,
        kind: CarrierKind,
        carried: &mut Carried,
    ) -> Result<Value, RpcFailure> {
        let start = match call.params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix(key)?.strip_prefix('.')?.parse().ok())
                .filter(|start| surface.page_size.is_some() && *start < list.items.len())
                .ok_or_else(|| RpcFailure::new(rpc::INVALID_PARAMS, "there is no such cursor"))?,
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

    /// What an answer carries to the subject.
    pub(super) fn note(&self, begun: &AcceptedRequest, call: &ServerCall) -> DeliveryNote {
        let surface = &begun.surface;
        let carrier = |kind, name: &str, branch| NotedCarrier {
            phase: Arc::clone(&begun.phase),
            kind,
            name: name.to_owned(),
            branch,
        };
        let carriers = match &begun.carried {
            Carried::Nothing => Vec::new(),
            Carried::Instructions => {
                let kind = CarrierKind::Instructions;
                let has_some = surface.instructions.is_some();
                let counted = has_some.then(|| carrier(kind, "instructions", None));
                counted.into_iter().collect()
            }
            Carried::Listed(kind, range) => {
                let list = match (kind, call.method.as_str()) {
                    (CarrierKind::ToolListed, _) => &surface.tools,
                    (CarrierKind::PromptListed, _) => &surface.prompts,
                    (_, method) if method == McpMethod::ResourcesTemplatesList.as_str() => {
                        &surface.templates
                    }
                    _ => &surface.resources,
                };
                let items = list.items.get(range.clone()).unwrap_or_default();
                items
                    .iter()
                    .map(|item| carrier(*kind, &item.name, None))
                    .collect()
            }
            Carried::One(kind, name, branch) => {
                vec![carrier(*kind, name, Some(branch.clone()))]
            }
            Carried::Asked(asks) => asks
                .iter()
                .map(|ask| {
                    let kind = super::service::carrier(&ask.method);
                    carrier(kind, &ask.method, Some(ask.branch()))
                })
                .collect(),
        };
        DeliveryNote::new(&self.context, carriers)
    }
}

/// What a server of this state speaks in the modern era.
pub(super) fn supported_versions(surface: &OfferedSurface) -> Value {
    match &surface.version {
        Some(version) => json!([version]),
        None => McpRevision::all_stateless()
            .map(McpRevision::as_str)
            .collect(),
    }
}

/// The result with what the modern era wants on every one.
pub(super) fn finish(
    mut result: Value,
    era: McpEra,
    surface: &OfferedSurface,
    cacheable: bool,
) -> Value {
    if era == McpEra::Legacy {
        return result;
    }
    if let Value::Object(map) = &mut result {
        map.entry(result_type::KEY)
            .or_insert_with(|| result_type::COMPLETE.into());
        if cacheable {
            // Clients would not ask again after a change otherwise.
            map.entry("ttlMs").or_insert_with(|| 0.into());
            map.entry("cacheScope").or_insert_with(|| "private".into());
        }
        let meta = map.entry(meta::KEY).or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.entry(meta::SERVER_INFO)
                .or_insert_with(|| surface.server_info.clone());
        }
    }
    result
}

fn complete(call: &ServerCall, surface: &OfferedSurface) -> Value {
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
fn client_name(call: &ServerCall) -> String {
    let info = match call.era {
        McpEra::Modern => call.meta(meta::CLIENT_INFO),
        McpEra::Legacy => call.params.get("clientInfo"),
    };
    let mut name = format!("{} {}", call.origin, info.unwrap_or(&Value::Null));
    name.truncate(name.floor_char_boundary(500));
    name
}
