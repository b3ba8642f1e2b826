//! Using a tool, a prompt or a resource: what the client must be asked first, and what with its answers.

use std::borrow::Cow;
use std::sync::Arc;

use proofhouse_oatf::Direction;
use proofhouse_protocol::mcp::{McpEra, McpMethod, error, result_type};
use proofhouse_protocol::rpc::{self, RpcFailure};
use serde_json::{Map, Value, json};

use super::answer::{AcceptedRequest, AnswerScript, Carried, RemainingWork, finish};
use super::call::{CallReply, ServerCall};
use super::results::Built;
use super::rounds::Round;
use super::service::McpServerService;
use super::steps::{Ask, DeliveryStep};
use super::surface::{OfferedSurface, SurfaceItem};
use crate::phases::PhaseView;
use crate::{Advance, CarrierKind};

/// What can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Tool,
    Prompt,
    Resource,
}

impl ContentKind {
    /// The kind that a method uses.
    pub(super) fn of(method: &str) -> Option<Self> {
        Some(match McpMethod::parse(method)? {
            McpMethod::ToolsCall => Self::Tool,
            McpMethod::PromptsGet => Self::Prompt,
            McpMethod::ResourcesRead => Self::Resource,
            _ => return None,
        })
    }

    pub(super) fn method(self) -> McpMethod {
        match self {
            Self::Tool => McpMethod::ToolsCall,
            Self::Prompt => McpMethod::PromptsGet,
            Self::Resource => McpMethod::ResourcesRead,
        }
    }

    /// The parameter that names the item.
    pub(super) fn name_key(self) -> &'static str {
        self.method().item_param().unwrap_or_default()
    }

    pub(super) fn carrier(self) -> CarrierKind {
        match self {
            Self::Tool => CarrierKind::ToolResponse,
            Self::Prompt => CarrierKind::Prompt,
            Self::Resource => CarrierKind::Resource,
        }
    }
}

impl McpServerService {
    pub(super) fn begin_use(
        &self,
        call: &ServerCall,
        kind: ContentKind,
        mut advances: Vec<Advance>,
    ) -> AcceptedRequest {
        let name = call.text(kind.name_key());
        let state = call.params.get("requestState").filter(|state| {
            // In the legacy era the key has no meaning.
            call.era == McpEra::Modern && !state.is_null()
        });
        let round = state.map(|state| self.rounds.resume(state.as_str()?, &call.method, name));
        let phase = if round.is_none() {
            let turn = self
                .context
                .received(&call.method, Direction::Request, &call.params, None);
            advances.push(turn.advance);
            turn.phase
        } else {
            // The same event again, now with answers.
            self.context
                .overheard(&call.method, Direction::Request, &call.params, None)
        };
        let mut carried = Carried::Nothing;
        let (phase, surface, work) = match round {
            Some(None) => {
                self.context
                    .warn("a client came back with a `requestState` that is not ours");
                let failure = RpcFailure::new(rpc::INVALID_PARAMS, "`requestState` is not valid");
                let surface = phase.prepared(OfferedSurface::of);
                (phase, surface, Err(failure))
            }
            Some(Some(round)) => {
                let surface = round.phase.prepared(OfferedSurface::of);
                let phase = Arc::clone(&round.phase);
                let place = (&phase, &*surface);
                let work =
                    self.use_item(call, kind, place, Some(round), &mut advances, &mut carried);
                (phase, surface, work)
            }
            None => {
                let surface = phase.prepared(OfferedSurface::of);
                let place = (&phase, &*surface);
                let work = match self.check_call(call, kind, &surface) {
                    Ok(()) => self.use_item(call, kind, place, None, &mut advances, &mut carried),
                    Err(answer) => answer,
                };
                (phase, surface, work)
            }
        };
        AcceptedRequest {
            phase,
            surface,
            advances,
            work: work.unwrap_or_else(|failure| RemainingWork::Ready(CallReply::Error(failure))),
            carried,
        }
    }

    /// Notes a tool call, and whether its arguments are what the tool's schema allows. As a real server would, this one
    /// answers others with an error: in a result since 2025-11-25, as an error of the protocol before.
    fn check_call(
        &self,
        call: &ServerCall,
        kind: ContentKind,
        surface: &OfferedSurface,
    ) -> Result<(), Result<RemainingWork, RpcFailure>> {
        if kind != ContentKind::Tool {
            return Ok(());
        }
        let name = call.text(kind.name_key());
        // One that is not there is told later.
        let Some(tool) = surface.tools.get(name) else {
            self.context.called(name, false);
            return Ok(());
        };
        let Err(fault) = tool.check_arguments(call.params.get("arguments")) else {
            self.context.called(name, true);
            return Ok(());
        };
        self.context.called(name, false);
        let message = format!("Invalid arguments for tool {name}: {fault}");
        let in_result = match (call.era, &call.peer) {
            (McpEra::Legacy, Some(peer)) => peer.reads_input_errors_in_results(),
            (McpEra::Legacy, None) | (McpEra::Modern, _) => true,
        };
        Err(if in_result {
            let result = json!({"content": [{"type": "text", "text": message}], "isError": true});
            let result = finish(result, call.era, surface, false);
            Ok(RemainingWork::Ready(CallReply::Result(result)))
        } else {
            Err(RpcFailure::new(rpc::INVALID_PARAMS, message))
        })
    }

    fn use_item(
        &self,
        call: &ServerCall,
        kind: ContentKind,
        (phase, surface): (&Arc<PhaseView>, &OfferedSurface),
        round: Option<Round>,
        advances: &mut Vec<Advance>,
        carried: &mut Carried,
    ) -> Result<RemainingWork, RpcFailure> {
        let name = call.text(kind.name_key());
        let (item, variables) =
            find(surface, kind, name).ok_or_else(|| not_found(kind, name, call.era))?;
        check_capabilities(call, item)?;
        let asks = asks(call, kind, item, surface, &self.context);
        let is_news = round.as_ref().is_none_or(|round| !round.resumed);
        let mut answers = round.map(|round| round.answers).unwrap_or_default();
        if call.era == McpEra::Modern {
            let given = self.take_answers(call, &asks, &mut answers, is_news)?;
            advances.extend(given);
            let open = asks.iter().filter(|ask| !answers.contains_key(&ask.key));
            if let Some(round) = open.map(|ask| ask.round).min() {
                let (result, asked) = self.require_input(call, kind, phase, &asks, round, answers);
                *carried = Carried::Asked(asked);
                return Ok(RemainingWork::Ready(CallReply::Result(finish(
                    result, call.era, surface, false,
                ))));
            }
        }
        let view = view(&call.params, &answers, variables);
        let branch = self.chosen_branch(kind, item, &view);
        *carried = Carried::One(kind.carrier(), name.to_owned(), branch);
        let waits = |step: &DeliveryStep| {
            call.era == McpEra::Legacy || !matches!(step, DeliveryStep::Ask(_))
        };
        let has_to_wait = (call.era == McpEra::Legacy && !asks.is_empty())
            || item.steps.iter().any(waits)
            || self
                .choose(kind, item, &view)
                .is_some_and(|entry| entry.synthesize.is_some());
        if has_to_wait {
            return Ok(RemainingWork::Play(AnswerScript {
                kind,
                name: name.to_owned(),
                view: view.into_owned(),
            }));
        }
        let (Built::Ready(result)
        | Built::Generated {
            otherwise: result, ..
        }) = self.build(kind, item, &view);
        let cacheable = kind == ContentKind::Resource;
        Ok(RemainingWork::Ready(CallReply::Result(finish(
            result, call.era, surface, cacheable,
        ))))
    }

    /// Takes the answers that came with the request; each is an event of its own, once.
    fn take_answers(
        &self,
        call: &ServerCall,
        asks: &[Ask],
        answers: &mut Map<String, Value>,
        is_news: bool,
    ) -> Result<Vec<Advance>, RpcFailure> {
        let mut advances = Vec::new();
        let given = match call.params.get("inputResponses") {
            None => return Ok(advances),
            Some(Value::Object(given)) => given,
            Some(_) => {
                let message = "`inputResponses` is not an object";
                return Err(RpcFailure::new(rpc::INVALID_PARAMS, message));
            }
        };
        for ask in asks {
            let Some(answer) = given.get(&ask.key) else {
                continue;
            };
            let direction = Direction::Response;
            if is_news {
                let turn = self.context.received(&ask.method, direction, answer, None);
                advances.push(turn.advance);
            } else {
                self.context.overheard(&ask.method, direction, answer, None);
            }
            if answer.is_object() {
                answers.insert(ask.key.clone(), answer.clone());
            } else {
                let warning = format!("the answer `{}` is not an object; asked again", ask.key);
                self.context.warn(&warning);
            }
        }
        Ok(advances)
    }

    /// The result that asks the client for the questions of a round.
    fn require_input(
        &self,
        call: &ServerCall,
        kind: ContentKind,
        phase: &Arc<PhaseView>,
        asks: &[Ask],
        round: u64,
        answers: Map<String, Value>,
    ) -> (Value, Vec<Ask>) {
        let view = view(&call.params, &answers, None);
        let (mut requests, mut asked) = (Map::new(), Vec::new());
        for ask in asks {
            if ask.round != round || answers.contains_key(&ask.key) {
                continue;
            }
            let mut params = self.resolved(&ask.params, &view);
            if let Value::Object(params) = &mut params {
                // The modern era has no such id.
                params.remove("elicitationId");
            }
            self.context
                .sent(phase, &ask.method, Direction::Request, &params, None);
            asked.push(ask.clone());
            let request = json!({"method": ask.method, "params": params});
            requests.insert(ask.key.clone(), request);
        }
        let state = self.rounds.wait(Round {
            method: call.method.clone(),
            name: call.text(kind.name_key()).to_owned(),
            phase: Arc::clone(phase),
            answers,
            resumed: false,
        });
        let result = json!({
            result_type::KEY: result_type::INPUT_REQUIRED,
            "inputRequests": requests,
            "requestState": state,
        });
        (result, asked)
    }
}

/// The item of a name, with the variables of a template.
pub(super) fn find<'s>(
    surface: &'s OfferedSurface,
    kind: ContentKind,
    name: &str,
) -> Option<(&'s SurfaceItem, Option<Map<String, Value>>)> {
    match kind {
        ContentKind::Tool => Some((surface.tools.get(name)?, None)),
        ContentKind::Prompt => Some((surface.prompts.get(name)?, None)),
        ContentKind::Resource => match surface.resources.get(name) {
            Some(item) => Some((item, None)),
            None => {
                let (item, variables) = surface.template(name)?;
                Some((item, Some(variables)))
            }
        },
    }
}

/// The questions of a call: those of the state and of the item, as far as the client can be asked.
pub(super) fn asks(
    call: &ServerCall,
    kind: ContentKind,
    item: &SurfaceItem,
    surface: &OfferedSurface,
    context: &crate::ActorContext,
) -> Vec<Ask> {
    let mut asks = Vec::new();
    if kind != ContentKind::Resource
        && let Some(entry) = context.select(&call.method, &surface.elicitations, &call.params)
    {
        let params = entry.fields.iter();
        asks.push(Ask {
            key: "elicitation".to_owned(),
            method: McpMethod::ElicitationCreate.as_str().to_owned(),
            params: Value::Object(params.map(|(key, v)| (key.clone(), v.clone())).collect()),
            round: 1,
            force: false,
        });
    }
    asks.extend(item.steps.iter().filter_map(|step| match step {
        DeliveryStep::Ask(ask) => Some(ask.clone()),
        _ => None,
    }));
    asks.retain(|ask| {
        let can = ask
            .capability()
            .is_none_or(|name| call.has_capability(name));
        if !can && !ask.force {
            let method = &ask.method;
            let warning = format!("`{method}` is left out: the client did not declare it");
            context.warn(&warning);
        }
        can || ask.force
    });
    asks
}

/// The request as predicates and templates see it: with what the client answered, and with the
/// variables of a resource template.
pub(super) fn view<'p>(
    params: &'p Value,
    answers: &Map<String, Value>,
    variables: Option<Map<String, Value>>,
) -> Cow<'p, Value> {
    if answers.is_empty() && variables.is_none() {
        return Cow::Borrowed(params);
    }
    let mut view = params.clone();
    if let Value::Object(view) = &mut view {
        if !answers.is_empty() {
            view.insert("inputResponses".to_owned(), answers.clone().into());
        }
        if let Some(variables) = variables {
            view.insert("variables".to_owned(), variables.into());
        }
    }
    Cow::Owned(view)
}

fn check_capabilities(call: &ServerCall, item: &SurfaceItem) -> Result<(), RpcFailure> {
    if item.requires.keys().all(|name| call.has_capability(name)) {
        return Ok(());
    }
    let message = "the client did not declare a capability that this needs";
    Err(match call.era {
        McpEra::Legacy => RpcFailure::new(rpc::INVALID_PARAMS, message),
        McpEra::Modern => RpcFailure::new(error::MISSING_CAPABILITY, message)
            .with_data(json!({"requiredCapabilities": item.requires}))
            .with_status(400),
    })
}

fn not_found(kind: ContentKind, name: &str, era: McpEra) -> RpcFailure {
    match (kind, era) {
        (ContentKind::Resource, era) => {
            RpcFailure::new(era.resource_not_found_code(), "Resource not found")
                .with_data(json!({"uri": name}))
        }
        (ContentKind::Tool, _) => {
            RpcFailure::new(rpc::INVALID_PARAMS, format!("Unknown tool: {name}"))
        }
        (ContentKind::Prompt, _) => {
            RpcFailure::new(rpc::INVALID_PARAMS, format!("Unknown prompt: {name}"))
        }
    }
}
