//! Makes messages of one OpenTelemetry span or log record that follows the GenAI conventions.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;

use jiff::Timestamp;
use proofhouse_oatf::Direction::{self, Request, Response};
use proofhouse_oatf::Protocol;
use proofhouse_protocol::a2a::A2aMethod;
use proofhouse_protocol::mcp::McpMethod;
use serde_json::{Map, Value, json};

use super::{ImportOptions, methods};
use crate::trace::TraceMessage;
use crate::trace::lenient::read_mended;
use crate::trace::repair::Repairs;

/// Tool calls that are remembered so that a history that is repeated in every span is told once.
const MAX_SEEN: usize = 65_536;

/// Turns spans into messages.
pub(crate) struct Converter {
    actor: Option<String>,
    protocol: Option<Protocol>,
    enrich: bool,
    sequence: u64,
    /// Keys that nobody outside can know, so that nobody can hide one call behind another.
    hasher: RandomState,
    seen: HashSet<u64>,
    order: VecDeque<u64>,
    /// Calls with arguments that were not recorded, since it was last asked.
    without_arguments: u64,
}

/// A tool call of a history, by its id.
type HistoryCalls = HashMap<String, (Value, Value)>;

impl Converter {
    pub(crate) fn new(options: &ImportOptions) -> Self {
        Self {
            actor: options.actor.clone(),
            protocol: options.protocol.clone(),
            enrich: options.enrich,
            sequence: 0,
            hasher: RandomState::new(),
            seen: HashSet::new(),
            order: VecDeque::new(),
            without_arguments: 0,
        }
    }

    /// How many calls had arguments that were not recorded or cannot be read, since this was last asked.
    pub(crate) fn take_without_arguments(&mut self) -> u64 {
        std::mem::take(&mut self.without_arguments)
    }

    /// Notes whether the arguments of a call are there to be judged; another span may have those of the same call.
    fn note_arguments(&mut self, id: Option<&str>, content: &Value) {
        let mark = Value::from("arguments");
        let arguments = content.get("arguments");
        if arguments.is_some_and(|arguments| arguments.is_object() || arguments.is_array()) {
            if id.is_some() {
                self.is_new(Request, id, &mark);
            }
            return;
        }
        let known = self.hasher.hash_one((Request, id, mark.to_string()));
        if id.is_none() || !self.seen.contains(&known) {
            self.without_arguments += 1;
        }
    }

    /// Gives the messages of one span or log record to `out`.
    pub(crate) fn convert(&mut self, record: &Value, mut out: impl FnMut(TraceMessage)) {
        let span = GenAiSpan::read(record);
        let operation = span.text("gen_ai.operation.name").unwrap_or_default();
        if let Some(method) = span.text("mcp.method.name") {
            self.mcp(&span, method, &mut out);
        } else if operation == "execute_tool"
            || (operation.is_empty() && span.name.starts_with("execute_tool"))
        {
            self.execute_tool(&span, &mut out);
        } else {
            self.chat(&span, operation, &mut out);
        }
    }

    /// A span of the MCP conventions: the method is the operation.
    fn mcp(&mut self, span: &GenAiSpan<'_>, method: &str, out: &mut impl FnMut(TraceMessage)) {
        if method == McpMethod::ToolsCall.as_str() {
            self.execute_tool(span, out);
            return;
        }
        let mut params = Map::new();
        for (attribute, key) in [("gen_ai.prompt.name", "name"), ("mcp.resource.uri", "uri")] {
            if let Some(value) = span.attributes.get(attribute) {
                params.insert(key.into(), value.clone());
            }
        }
        self.send(
            Protocol::Mcp,
            method,
            Request,
            params.clone().into(),
            &span.start,
            out,
        );
        if let Some(mut error) = span.error() {
            if self.enrich && methods::enriches(&Protocol::Mcp, method) {
                add_missing(&mut error, params);
            }
            self.send(Protocol::Mcp, method, Response, error, &span.end, out);
        }
    }

    fn execute_tool(&mut self, span: &GenAiSpan<'_>, out: &mut impl FnMut(TraceMessage)) {
        let Some(name) = span.tool_name() else { return };
        let id = span.text("gen_ai.tool.call.id");
        let mut params = Map::new();
        params.insert("name".into(), name.into());
        if let Some(arguments) = span.attributes.get("gen_ai.tool.call.arguments") {
            params.insert("arguments".into(), structured(arguments));
        }
        let content = Value::Object(params.clone());
        // A call without an id may well be made twice; one with an id was told by the chat before it.
        if self.is_new(Request, id, &content) || id.is_none() {
            self.note_arguments(id, &content);
            self.send(
                Protocol::Mcp,
                McpMethod::ToolsCall.as_str(),
                Request,
                content,
                &span.start,
                out,
            );
        }
        let result = span
            .attributes
            .get("gen_ai.tool.call.result")
            .map(tool_result);
        let error = span.error();
        let Some(mut content) = result.or_else(|| error.clone()) else {
            return;
        };
        if error.is_some() && content.get("code").is_none() {
            add_missing(
                &mut content,
                Map::from_iter([("isError".into(), true.into())]),
            );
        }
        if self.is_new(Response, id, &content) || id.is_none() {
            if self.enrich {
                add_missing(&mut content, params);
            }
            self.send(
                Protocol::Mcp,
                McpMethod::ToolsCall.as_str(),
                Response,
                content,
                &span.end,
                out,
            );
        }
    }

    /// A model call, or the call of an agent: what went in, what came out, and the tools in both.
    fn chat(&mut self, span: &GenAiSpan<'_>, operation: &str, out: &mut impl FnMut(TraceMessage)) {
        let (input, output) = (span.messages(true), span.messages(false));
        let instructions = span
            .attributes
            .get("gen_ai.system_instructions")
            .map(structured);
        let tools = span
            .attributes
            .get("gen_ai.tool.definitions")
            .map(structured);
        if let Some(Value::Array(tools)) = &tools {
            let content = json!({"tools": tools.iter().map(tool_definition).collect::<Vec<_>>()});
            if self.is_new(Response, None, &content) {
                self.send(
                    Protocol::Mcp,
                    McpMethod::ToolsList.as_str(),
                    Response,
                    content,
                    &span.start,
                    out,
                );
            }
        }
        let mut calls = HistoryCalls::new();
        self.tool_parts(&input, &mut calls, &span.start, out);
        let operation = if operation.is_empty() {
            "chat"
        } else {
            operation
        };
        if !input.is_empty() || instructions.is_some() {
            let content = if operation == "invoke_agent" {
                agent_request(span, &input)
            } else {
                let mut content = json!({"messages": input});
                for (key, value) in [("system_instructions", &instructions), ("tools", &tools)] {
                    if let Some(value) = value {
                        content[key] = value.clone();
                    }
                }
                if let Some(model) = span.attributes.get("gen_ai.request.model") {
                    content["model"] = model.clone();
                }
                content
            };
            self.model_message(operation, Request, content, &span.start, out);
        }
        self.tool_parts(&output, &mut calls, &span.end, out);
        if !output.is_empty() {
            let content = if operation == "invoke_agent" {
                json!({"kind": "message", "role": "agent", "parts": parts(&output)})
            } else {
                json!({"messages": output})
            };
            self.model_message(operation, Response, content, &span.end, out);
        }
    }

    fn model_message(
        &mut self,
        operation: &str,
        direction: Direction,
        content: Value,
        time: &Option<String>,
        out: &mut impl FnMut(TraceMessage),
    ) {
        match operation {
            "invoke_agent" => self.send(
                Protocol::A2a,
                A2aMethod::SendMessage.event(),
                direction,
                content,
                time,
                out,
            ),
            other => self.send(
                Protocol::from("gen_ai"),
                other,
                direction,
                content,
                time,
                out,
            ),
        }
    }

    /// Tool calls and their results inside model messages, told once however often they come.
    fn tool_parts(
        &mut self,
        messages: &[Value],
        calls: &mut HistoryCalls,
        time: &Option<String>,
        out: &mut impl FnMut(TraceMessage),
    ) {
        for part in messages
            .iter()
            .filter_map(|message| message.get("parts")?.as_array())
            .flatten()
        {
            let id = part.get("id").and_then(Value::as_str);
            match part.get("type").and_then(Value::as_str) {
                Some("tool_call") => {
                    let Some(name) = part.get("name") else {
                        continue;
                    };
                    let mut content = json!({"name": name});
                    let arguments = part.get("arguments").map(structured);
                    if let Some(arguments) = &arguments {
                        content["arguments"] = arguments.clone();
                    }
                    if let Some(id) = id {
                        calls.insert(
                            id.to_owned(),
                            (name.clone(), arguments.unwrap_or(Value::Null)),
                        );
                    }
                    if self.is_new(Request, id, &content) {
                        self.note_arguments(id, &content);
                        self.send(
                            Protocol::Mcp,
                            McpMethod::ToolsCall.as_str(),
                            Request,
                            content,
                            time,
                            out,
                        );
                    }
                }
                Some("tool_call_response") => {
                    let result = part.get("response").or_else(|| part.get("result"));
                    let mut content = tool_result(result.unwrap_or(&Value::Null));
                    if self.is_new(Response, id, &content) {
                        if self.enrich
                            && let Some((name, arguments)) = id.and_then(|id| calls.get(id))
                        {
                            let mut params = Map::from_iter([("name".to_owned(), name.clone())]);
                            if !arguments.is_null() {
                                params.insert("arguments".into(), arguments.clone());
                            }
                            add_missing(&mut content, params);
                        }
                        self.send(
                            Protocol::Mcp,
                            McpMethod::ToolsCall.as_str(),
                            Response,
                            content,
                            time,
                            out,
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether this was not told yet. Only what is equal in every way counts as told.
    fn is_new(&mut self, direction: Direction, id: Option<&str>, content: &Value) -> bool {
        let hash = self.hasher.hash_one((direction, id, content.to_string()));
        if !self.seen.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        true
    }

    fn send(
        &mut self,
        protocol: Protocol,
        operation: &str,
        direction: Direction,
        content: Value,
        time: &Option<String>,
        out: &mut impl FnMut(TraceMessage),
    ) {
        self.sequence += 1;
        let protocol = self.protocol.clone().unwrap_or(protocol);
        let mut message = TraceMessage::new(protocol, operation, content);
        message.sequence = self.sequence;
        message.direction = Some(direction);
        message.time.clone_from(time);
        message.actor.clone_from(&self.actor);
        out(message);
    }
}

/// The parts of a span, or of a log record, that matter here.
struct GenAiSpan<'a> {
    name: &'a str,
    attributes: Map<String, Value>,
    events: Vec<(&'a str, Map<String, Value>)>,
    start: Option<String>,
    end: Option<String>,
    failed: Option<&'a str>,
}

impl<'a> GenAiSpan<'a> {
    fn read(record: &'a Value) -> Self {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let name = text("name")
            .or_else(|| text("eventName"))
            .or_else(|| text("event_name"));
        let mut attributes = attributes(record);
        let mut events: Vec<_> = list(record, "events")
            .map(|event| {
                (
                    event
                        .get("name")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                    self::attributes(event),
                )
            })
            .collect();
        // A log record is an event by itself, with its content in the body.
        let body = record
            .get("body")
            .map(any_value)
            .map(|body| structured(&body));
        if let Some(Value::Object(body)) = body {
            let event = match attributes.get("event.name") {
                Some(Value::String(event)) => old_event(event),
                _ => name.and_then(old_event),
            };
            events.push((event.unwrap_or_default(), body));
        }
        // The content may be in an event instead, so as not to weigh down the span.
        for (_, event) in &events {
            for (key, value) in event.iter().filter(|(key, _)| key.starts_with("gen_ai.")) {
                attributes
                    .entry(key.clone())
                    .or_insert_with(|| value.clone());
            }
        }
        let at = |keys: &[&str]| keys.iter().find_map(|key| time(record.get(*key)?));
        let start = at(&[
            "startTimeUnixNano",
            "start_time_unix_nano",
            "timeUnixNano",
            "observedTimeUnixNano",
        ]);
        let end = at(&["endTimeUnixNano", "end_time_unix_nano"]).or_else(|| start.clone());
        let status = record.get("status");
        let code = status.and_then(|status| status.get("code"));
        let failed = code.is_some_and(|code| *code == 2 || *code == "STATUS_CODE_ERROR");
        let reason = status
            .and_then(|status| status.get("message"))
            .and_then(Value::as_str);
        Self {
            name: name.unwrap_or_default(),
            attributes,
            events,
            start,
            end,
            failed: failed.then(|| reason.unwrap_or_default()),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).and_then(Value::as_str)
    }

    /// The tool, from its attribute or from the name of the span.
    fn tool_name(&self) -> Option<&str> {
        let from_name = || {
            let name = self
                .name
                .strip_prefix("execute_tool ")
                .or_else(|| self.name.strip_prefix("tools/call "));
            name.filter(|name| !name.is_empty())
        };
        self.text("gen_ai.tool.name").or_else(from_name)
    }

    /// What went wrong, as the error a response would carry.
    fn error(&self) -> Option<Value> {
        let kind = self.text("error.type");
        if self.failed.is_none() && kind.is_none() {
            return None;
        }
        let message = self
            .failed
            .filter(|text| !text.is_empty())
            .or(kind)
            .unwrap_or("error");
        Some(json!({"content": [{"type": "text", "text": message}], "isError": true}))
    }

    /// The messages to the model, or from it: in one attribute, or one event each as once was usual.
    fn messages(&self, input: bool) -> Vec<Value> {
        let key = if input {
            "gen_ai.input.messages"
        } else {
            "gen_ai.output.messages"
        };
        if let Some(value) = self.attributes.get(key) {
            return match structured(value) {
                Value::Array(messages) => messages,
                other => vec![other],
            };
        }
        self.events
            .iter()
            .filter_map(|(name, attributes)| old_message(name, attributes, input))
            .collect()
    }
}

/// The events that were used before there was one attribute for all, and whose message each is.
const OLD_EVENTS: &[(&str, &str)] = &[
    ("gen_ai.system.message", "system"),
    ("gen_ai.user.message", "user"),
    ("gen_ai.assistant.message", "assistant"),
    ("gen_ai.tool.message", "tool"),
    ("gen_ai.choice", "assistant"),
];

fn old_event(name: &str) -> Option<&'static str> {
    let found = OLD_EVENTS.iter().find(|(known, _)| *known == name);
    found.map(|(known, _)| *known)
}

/// A message of one of these events.
fn old_message(name: &str, attributes: &Map<String, Value>, input: bool) -> Option<Value> {
    let (_, role) = *OLD_EVENTS.iter().find(|(known, _)| *known == name)?;
    if input == (name == "gen_ai.choice") {
        return None;
    }
    let inner = attributes.get("message").map(structured);
    let get = |key: &str| attributes.get(key).or_else(|| inner.as_ref()?.get(key));
    let mut parts = Vec::new();
    if let Some(content) = get("content") {
        if role == "tool" {
            parts.push(json!({"type": "tool_call_response", "id": get("id"), "response": content}));
        } else {
            parts.push(json!({"type": "text", "content": content}));
        }
    }
    if let Some(Value::Array(calls)) = get("tool_calls").map(structured) {
        parts.extend(calls.iter().map(|call| {
            let function = call.get("function").unwrap_or(call);
            json!({
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            })
        }));
    }
    Some(json!({"role": role, "parts": parts}))
}

/// A tool as `tools/list` shows it.
fn tool_definition(definition: &Value) -> Value {
    let inner = definition.get("function").unwrap_or(definition);
    let mut tool = inner.clone();
    if let Value::Object(map) = &mut tool {
        map.shift_remove("type");
        if let Some(schema) = map.shift_remove("parameters") {
            map.entry("inputSchema").or_insert(schema);
        }
    }
    tool
}

/// The last thing the user said, as a message to another agent.
fn agent_request(span: &GenAiSpan<'_>, input: &[Value]) -> Value {
    let is_user = |message: &&Value| message.get("role").is_some_and(|role| *role == "user");
    let last = input.iter().rfind(is_user).or(input.last());
    let mut message = json!({"kind": "message", "role": "user"});
    message["parts"] = last.map_or_else(|| json!([]), |last| parts(std::slice::from_ref(last)));
    if let Some(id) = span.attributes.get("gen_ai.conversation.id") {
        message["contextId"] = id.clone();
    }
    json!({"message": message})
}

/// The parts of model messages as A2A has them; what has no text goes in as data.
fn parts(messages: &[Value]) -> Value {
    let mut result = Vec::new();
    for message in messages {
        if let Some(text) = message.get("content").and_then(Value::as_str) {
            result.push(json!({"kind": "text", "text": text}));
        }
        for part in list(message, "parts") {
            match part.get("content").and_then(Value::as_str) {
                Some(text) => result.push(json!({"kind": "text", "text": text})),
                None => result.push(json!({"kind": "data", "data": part})),
            }
        }
    }
    result.into()
}

/// A result as `tools/call` gives it.
fn tool_result(value: &Value) -> Value {
    let text = |text: String| json!([{"type": "text", "text": text}]);
    match structured(value) {
        // Already one.
        Value::Object(map) if map.get("content").is_some_and(Value::is_array) => Value::Object(map),
        Value::Array(items) if !items.is_empty() && items.iter().all(is_content_block) => {
            json!({"content": items})
        }
        Value::String(string) => json!({"content": text(string)}),
        Value::Null => json!({"content": []}),
        other => {
            let original = value
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned);
            json!({"content": text(original), "structuredContent": other})
        }
    }
}

fn is_content_block(item: &Value) -> bool {
    let kinds = ["text", "image", "audio", "resource", "resource_link"];
    item.get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Objects and lists may come as texts of JSON.
fn structured(value: &Value) -> Value {
    if let Value::String(text) = value
        && text.trim_ascii_start().starts_with(['{', '['])
        && let Ok(parsed) = read_mended(text, &mut Repairs::default(), |text| {
            serde_json::from_str(text)
        })
    {
        return parsed;
    }
    value.clone()
}

fn add_missing(content: &mut Value, more: Map<String, Value>) {
    if let Value::Object(map) = content {
        for (key, value) in more {
            map.entry(key).or_insert(value);
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// `[{key, value: {stringValue}}]` as a map.
fn attributes(record: &Value) -> Map<String, Value> {
    list(record, "attributes")
        .filter_map(|entry| {
            Some((
                entry.get("key")?.as_str()?.to_owned(),
                any_value(entry.get("value")?),
            ))
        })
        .collect()
}

/// An OTLP value as JSON. Integers come as texts, because JSON numbers may lose digits.
fn any_value(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|map| map.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" | "int_value" => {
            match inner.as_str().and_then(|text| text.parse::<i64>().ok()) {
                Some(number) => number.into(),
                None => inner.clone(),
            }
        }
        "arrayValue" | "array_value" => list(inner, "values").map(any_value).collect(),
        "kvlistValue" | "kvlist_value" => list(inner, "values")
            .filter_map(|entry| {
                Some((
                    entry.get("key")?.as_str()?.to_owned(),
                    any_value(entry.get("value")?),
                ))
            })
            .collect::<Map<_, _>>()
            .into(),
        _ => inner.clone(),
    }
}

/// Nanoseconds since 1970 as RFC 3339.
fn time(value: &Value) -> Option<String> {
    let nanoseconds = match value {
        Value::String(text) => text.parse::<i128>().ok()?,
        other => i128::from(other.as_u64()?),
    };
    if nanoseconds == 0 {
        return None;
    }
    Timestamp::from_nanosecond(nanoseconds)
        .ok()
        .map(|time| time.to_string())
}
