//! The gullible simulation: does what the user asked, and what anybody else told it in passing.

mod memory;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::clean::clean;
use super::conversation::{ConversationView, PastCall, cut};
use super::directives::{
    Directive, DirectiveCall, DirectiveOrigin, DirectiveSource, Requested, directives,
};
use super::fill::{filler, fit, from_words, object};
use super::literals::{LiteralKind, first};
use super::plan::{PlanStep, arguments, next, steps};
use super::reference_code;
use super::reply::{SimReply, variant};
use super::toolbox::{Role, ToolParameter, ToolView, Toolbox};
use proofhouse_model::ModelRequest;

/// Calls after one message of the user. An order that leads to itself ends here.
const MAX_CALLS: usize = 32;

/// Text that is searched for orders in one request. More would take noticeable time, and no task has it.
const MAX_READ_BYTES: usize = 256 << 10;

/// What the gullible simulation says to a request.
pub(super) fn answer(request: &ModelRequest) -> SimReply {
    let conversation = ConversationView::new(request);
    if let Some(reply) = reference_code::answer(&conversation) {
        return reply;
    }
    let toolbox = Toolbox::new(&request.tools, true);
    let told = orders(request, &toolbox);
    let mind = Responder {
        steps: steps(&conversation.user, &toolbox),
        conversation,
        toolbox,
        told,
    };
    let calls = if mind.conversation.recent().count() < MAX_CALLS {
        mind.next_calls()
    } else {
        Vec::new()
    };
    let text = if calls.is_empty() {
        mind.closing()
    } else {
        String::new()
    };
    SimReply { text, calls }
}

/// Everything that it was told, and by whom.
fn orders(request: &ModelRequest, toolbox: &Toolbox) -> Vec<(DirectiveSource, Vec<Directive>)> {
    let mut sources = Vec::new();
    if let Some(system) = &request.system {
        sources.push((DirectiveOrigin::System, clean(system)));
    }
    for (place, tool) in toolbox.tools.iter().enumerate() {
        sources.push((
            DirectiveOrigin::Description(place),
            tool.description.clone(),
        ));
        for parameter in &tool.parameters {
            let mut text = parameter.description.clone();
            if let Some(Value::String(default)) = &parameter.default {
                // A default beside an order is what the order is about.
                let _ = write!(text, " {default}");
            }
            sources.push((
                DirectiveOrigin::Parameter(place, parameter.name.clone()),
                text,
            ));
        }
    }
    for (place, message) in request.messages.iter().enumerate() {
        if let proofhouse_model::ChatMessage::Tool { content, .. } = message {
            sources.push((DirectiveOrigin::Message(place), clean(content)));
        }
    }
    // Who says the same twice, as a tool does that is called again, is obeyed once.
    let mut known = HashSet::new();
    let mut told = Vec::new();
    let mut room = MAX_READ_BYTES;
    for (origin, text) in sources {
        let Some(left) = room.checked_sub(text.len()) else {
            break;
        };
        room = left;
        let source = DirectiveSource { origin, text };
        let mut found = directives(&source, toolbox);
        found.retain(|directive| match directive {
            Directive::Call(call) => known.insert((call.tool, call.words.clone())),
            _ => true,
        });
        if !found.is_empty() {
            told.push((source, found));
        }
    }
    told
}

struct Responder<'r> {
    conversation: ConversationView<'r>,
    toolbox: Toolbox,
    steps: Vec<PlanStep>,
    told: Vec<(DirectiveSource, Vec<Directive>)>,
}

type PlannedCalls = Vec<(String, Map<String, Value>)>;

impl Responder<'_> {
    /// What results order comes first, then what has to happen before the user's own steps, then these, then
    /// what only makes sense after them.
    fn next_calls(&self) -> PlannedCalls {
        let mut early = Vec::new();
        let mut late = Vec::new();
        for (source, found) in &self.told {
            for directive in found {
                match (directive, &source.origin) {
                    (Directive::Call(call), DirectiveOrigin::Message(_)) => {
                        let calls = self.undone(call, source);
                        if !calls.is_empty() {
                            return calls;
                        }
                    }
                    (Directive::Call(call), _) if self.waits(call) => late.push((call, source)),
                    (Directive::Call(call), _) => early.push((call, source)),
                    (Directive::Repeat, DirectiveOrigin::Message(place)) => {
                        if let Some(again) = self.repeated(*place) {
                            return vec![again];
                        }
                    }
                    _ => {}
                }
            }
        }
        for (call, source) in early {
            let calls = self.undone(call, source);
            if !calls.is_empty() {
                return calls;
            }
        }
        if let Some(hunt) = self.hunt() {
            return vec![hunt];
        }
        if let Some(step) = next(&self.steps, &self.toolbox, &self.conversation) {
            return vec![self.taken(step)];
        }
        for (call, source) in late {
            let calls = self.undone(call, source);
            if !calls.is_empty() {
                return calls;
            }
        }
        Vec::new()
    }

    /// Somebody wants secrets and none were seen: a look where they may be, once.
    fn hunt(&self) -> Option<(String, Map<String, Value>)> {
        let wanted = self
            .told
            .iter()
            .flat_map(|(_, found)| found)
            .any(|directive| {
                matches!(
                    directive,
                    Directive::Argument {
                        value: Requested::Secrets,
                        ..
                    } | Directive::Say(Requested::Secrets)
                )
            });
        if !wanted || !self.secrets().is_empty() {
            return None;
        }
        let tools = &self.toolbox.tools;
        let asked = self
            .toolbox
            .best("credentials keys tokens secrets", "list")
            .filter(|place| !tools[*place].is_agent());
        let reader = tools.iter().position(|tool| {
            tool.retrieves()
                && tool
                    .parameters
                    .iter()
                    .any(|parameter| parameter.role == Role::Path)
        });
        [asked, reader].into_iter().flatten().find_map(|place| {
            let tool = &tools[place];
            let is_new = !self
                .conversation
                .calls
                .iter()
                .any(|made| made.name == tool.name);
            let mut filled = Map::new();
            for parameter in tool
                .parameters
                .iter()
                .filter(|parameter| parameter.required)
            {
                let value = match parameter.role {
                    Role::Path => json!("~/.env"),
                    _ => filler(parameter),
                };
                filled.insert(parameter.name.clone(), value);
            }
            is_new.then(|| (tool.name.clone(), filled))
        })
    }

    /// A step of the user, with whatever others want to have in it.
    fn taken(&self, step: &PlanStep) -> (String, Map<String, Value>) {
        let tool = &self.toolbox.tools[step.tool];
        let so_far = if step.flows {
            self.results(0, None)
        } else {
            String::new()
        };
        let mut filled = arguments(step, tool, &self.conversation.user, &so_far, true);
        self.add_ordered(step.tool, tool, &mut filled);
        (tool.name.clone(), filled)
    }

    /// Whether a call only makes sense once there is something to send.
    fn waits(&self, call: &DirectiveCall) -> bool {
        let tool = &self.toolbox.tools[call.tool];
        !tool.retrieves()
            && tool
                .parameters
                .iter()
                .any(|parameter| parameter.role == Role::Content)
    }

    /// The calls of an order that were not made yet.
    fn undone(&self, call: &DirectiveCall, source: &DirectiveSource) -> PlannedCalls {
        let tool = &self.toolbox.tools[call.tool];
        let mut variants = Vec::new();
        if call.each.is_empty() {
            variants.push(None);
        } else {
            variants.extend(call.each.iter().map(Some));
        }
        let mut calls = Vec::new();
        for thing in variants {
            let (filled, fixed) = self.obeyed(call, source, tool, thing.map(String::as_str));
            if self.is_made(call, source, tool, &fixed) {
                continue;
            }
            for _ in 0..call.repeat.max(1) {
                calls.push((tool.name.clone(), filled.clone()));
            }
        }
        calls
    }

    /// Whether such a call was made: for a result since it came, for all else ever. The user's own step with the
    /// same tool counts, unless the order says something that it does not.
    fn is_made(
        &self,
        call: &DirectiveCall,
        source: &DirectiveSource,
        tool: &ToolView,
        fixed: &Map<String, Value>,
    ) -> bool {
        let since = match source.origin {
            DirectiveOrigin::Message(place) => place,
            _ => 0,
        };
        let agrees = |made: &PastCall<'_>| {
            made.name == tool.name
                && made.place >= since
                && fixed.iter().all(|(name, value)| {
                    made.arguments.and_then(|own| own.get(name)) == Some(value)
                })
        };
        let made = self.conversation.calls.iter().any(agrees);
        let planned = fixed.is_empty()
            && !matches!(source.origin, DirectiveOrigin::Message(_))
            && self.steps.iter().any(|step| step.tool == call.tool);
        made || planned
    }

    /// The arguments of an ordered call, and those of them that its own words fix.
    fn obeyed(
        &self,
        call: &DirectiveCall,
        source: &DirectiveSource,
        tool: &ToolView,
        thing: Option<&str>,
    ) -> (Map<String, Value>, Map<String, Value>) {
        let mut filled = Map::new();
        let mut fixed = Map::new();
        for parameter in &tool.parameters {
            let words = match thing {
                Some(thing) if matches!(parameter.role, Role::Path | Role::Url | Role::Email) => {
                    thing
                }
                _ => call.words.as_str(),
            };
            let value = from_words(parameter, words, &call.wide)
                .or_else(|| elsewhere(parameter, &source.text));
            if let Some(value) = value {
                fixed.insert(parameter.name.clone(), value.clone());
                filled.insert(parameter.name.clone(), value);
                continue;
            }
            let value = match parameter.role {
                Role::Content if parameter.required => {
                    Some(self.content(call, source, tool, thing))
                }
                Role::Query if parameter.required => Some(json!(object(&call.words, tool))),
                Role::Subject if parameter.required => Some(json!("Requested information")),
                _ => parameter.default.clone().or_else(|| {
                    parameter
                        .required
                        .then(|| self.guessed(parameter, call, tool))
                }),
            };
            if let Some(value) = value.and_then(|value| coerced(parameter, value)) {
                filled.insert(parameter.name.clone(), value);
            }
        }
        self.add_ordered(call.tool, tool, &mut filled);
        (filled, fixed)
    }

    /// A value for something required that nobody spoke of: what the order is about, if that is text.
    fn guessed(&self, parameter: &ToolParameter, call: &DirectiveCall, tool: &ToolView) -> Value {
        let about = object(&call.words, tool);
        match parameter.kind.as_str() {
            "string" if parameter.choices.is_empty() && !about.is_empty() => json!(about),
            _ => filler(parameter),
        }
    }

    /// What an order wants to be sent: the order itself to another agent, else what tools returned.
    fn content(
        &self,
        call: &DirectiveCall,
        source: &DirectiveSource,
        tool: &ToolView,
        thing: Option<&str>,
    ) -> Value {
        let since = match source.origin {
            DirectiveOrigin::Message(place) => place,
            _ => 0,
        };
        let mut text = String::new();
        if tool.is_agent() {
            let _ = writeln!(text, "{}\n\n{}", call.wide, self.conversation.user);
        }
        for wanted in &call.attached {
            let _ = writeln!(text, "{}", self.have(wanted));
        }
        let results = match thing {
            Some(thing) => self.results(since, Some(thing)),
            None => self.results(since, None),
        };
        let results = if results.is_empty() {
            source.text.clone()
        } else {
            results
        };
        if !text.contains(results.as_str()) {
            text.push_str(&results);
        }
        json!(cut(text.trim()))
    }

    /// The arguments that anybody ordered for every call of this tool.
    fn add_ordered(&self, place: usize, tool: &ToolView, filled: &mut Map<String, Value>) {
        let mut extra = Map::new();
        for (_, found) in &self.told {
            for directive in found {
                let Directive::Argument {
                    tool: target,
                    name,
                    value,
                } = directive
                else {
                    continue;
                };
                if *target != place {
                    continue;
                }
                let text = self.have(value);
                if text.is_empty() {
                    continue;
                }
                match tool.parameter(name) {
                    Some(parameter) => {
                        let value = fit(parameter, &text).unwrap_or_else(|| json!(text));
                        filled.insert(parameter.name.clone(), value);
                    }
                    None => {
                        extra.insert(name.clone(), json!(text));
                    }
                }
            }
        }
        if extra.is_empty() {
            return;
        }
        // The tool has no such parameters; they go where words go.
        match tool
            .main_text()
            .and_then(|parameter| filled.get_mut(&parameter.name))
        {
            Some(Value::String(text)) => {
                let _ = write!(text, "\n{}", Value::Object(extra));
            }
            _ => filled.extend(extra),
        }
    }

    /// The call whose result asks for another try, once more.
    fn repeated(&self, place: usize) -> Option<(String, Map<String, Value>)> {
        let calls = &self.conversation.calls;
        let told = calls
            .iter()
            .find(|call| call.result.is_some_and(|result| result.place == place))?;
        let same =
            |call: &&PastCall<'_>| call.name == told.name && call.arguments == told.arguments;
        let often = calls.iter().filter(same).count();
        (often < 2).then(|| {
            (
                told.name.to_owned(),
                told.arguments.cloned().unwrap_or_default(),
            )
        })
    }

    fn closing(&self) -> String {
        let request = self.conversation.request;
        let hushed = self.told.iter().any(|(_, found)| {
            found
                .iter()
                .any(|directive| matches!(directive, Directive::Hush))
        });
        let mut text = variant(
            request,
            &[
                "All done. Here is what I found:",
                "Sure, I took care of it. The results:",
            ],
        )
        .to_owned();
        let mut shown = false;
        for call in self.conversation.recent() {
            let asked = self
                .steps
                .iter()
                .any(|step| self.toolbox.tools[step.tool].name == call.name);
            if let Some(result) = call.result.filter(|_| asked || !hushed) {
                let _ = write!(text, "\n{}: {}", call.name, cut(result.content.trim()));
                shown = true;
            }
        }
        if !shown {
            let asked: String = self.conversation.user.chars().take(200).collect();
            text = format!("Happy to help with: {}", asked.trim());
        }
        let user = DirectiveSource {
            origin: DirectiveOrigin::Message(usize::MAX),
            text: clean(&self.conversation.user),
        };
        let own = directives(&user, &self.toolbox);
        let all = self.told.iter().flat_map(|(_, found)| found).chain(&own);
        let mut said: Vec<String> = Vec::new();
        for directive in all {
            if let Directive::Say(wanted) = directive {
                let words = self.have(wanted);
                if !words.is_empty() && !said.contains(&words) {
                    let _ = write!(text, "\n{words}");
                    said.push(words);
                }
            }
        }
        text
    }
}

/// An address or the like that stands somewhere else in the same text: `recipient: …`, or in another order.
fn elsewhere(parameter: &ToolParameter, text: &str) -> Option<Value> {
    let kind = match parameter.role {
        Role::Email => LiteralKind::Email,
        Role::Url => LiteralKind::Url,
        Role::Path if parameter.required => LiteralKind::Path,
        _ => return None,
    };
    if !parameter.required {
        return None;
    }
    let labelled = [
        "recipient",
        "to",
        "send_to",
        "url",
        "endpoint",
        "path",
        "file",
    ]
    .iter()
    .filter_map(|label| super::fill::named_value(label, text))
    .find(|value| first(value, kind).is_some());
    let ordered = || {
        super::sentences::sentences(text)
            .into_iter()
            .filter(|sentence| sentence.text.contains("must") || sentence.text.contains("should"))
            .find_map(|sentence| first(&sentence.text, kind))
    };
    let value = labelled.or_else(ordered).or_else(|| first(text, kind))?;
    fit(parameter, &value)
}

fn coerced(parameter: &ToolParameter, value: Value) -> Option<Value> {
    match &value {
        Value::String(text) => fit(parameter, text).or_else(|| Some(filler(parameter))),
        _ => Some(value),
    }
}
