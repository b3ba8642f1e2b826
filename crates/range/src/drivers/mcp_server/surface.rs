//! The state of a phase as the server offers it: lists, and what is behind their items.

use std::collections::HashMap;

use proofhouse_oatf::{Document, Fragment, Mode, ResponseEntry};
use proofhouse_protocol::mcp::header_arguments;
use serde_json::{Map, Value, json};

use super::steps::{self, DeliveryStep};
use super::uri_template;
use crate::drivers::arguments::{ArgumentFault, ArgumentSchema};

/// Everything a phase offers.
#[derive(Debug)]
pub(super) struct OfferedSurface {
    /// The version the document insists on.
    pub(super) version: Option<String>,
    pub(super) server_info: Value,
    pub(super) instructions: Option<Value>,
    pub(super) capabilities: Value,
    pub(super) tools: SurfaceList,
    pub(super) resources: SurfaceList,
    pub(super) templates: SurfaceList,
    pub(super) prompts: SurfaceList,
    /// Asked while a tool or prompt request is handled.
    pub(super) elicitations: Vec<ResponseEntry>,
    /// How many items of a list go into one answer.
    pub(super) page_size: Option<usize>,
    pub(super) check_origin: bool,
    /// What in the state makes no sense.
    pub(super) warnings: Vec<String>,
}

/// The items of one kind.
#[derive(Debug, Default)]
pub(super) struct SurfaceList {
    pub(super) items: Vec<SurfaceItem>,
    by_name: HashMap<String, usize>,
}

/// A tool, a resource, a resource template or a prompt.
#[derive(Debug)]
pub(super) struct SurfaceItem {
    /// The name, or the URI.
    pub(super) name: String,
    /// As it stands in the list.
    pub(super) listed: Value,
    /// Whether there are templates in that.
    pub(super) listed_has_templates: bool,
    pub(super) responses: Vec<ResponseEntry>,
    /// What a resource holds.
    pub(super) content: Option<Value>,
    pub(super) steps: Vec<DeliveryStep>,
    /// What a client must have declared to use it, as the error names it.
    pub(super) requires: Map<String, Value>,
    /// Suggestions for its arguments.
    pub(super) completions: Map<String, Value>,
    /// Arguments that the modern era mirrors in headers: the argument and the header's last part.
    pub(super) header_arguments: Vec<(String, String)>,
    /// What arguments are checked against, if they are.
    arguments: ArgumentSchema,
}

/// Keys of items that are ours and never go over the wire.
const OWN_KEYS: [&str; 6] = [
    "responses",
    "content",
    "x-steps",
    "x-requires",
    "x-completions",
    LENIENT,
];

/// Says that a tool takes any arguments, whatever its schema says.
const LENIENT: &str = "x-proofhouse-lenient";

impl OfferedSurface {
    pub(super) fn of(state: &Value) -> Self {
        let mut warnings = Vec::new();
        let mut list =
            |key: &str, name: &str| SurfaceList::of(state.get(key), key, name, &mut warnings);
        let (mut tools, resources) = (list("tools", "name"), list("resources", "uri"));
        let templates = list("resource_templates", "uriTemplate");
        let prompts = list("prompts", "name");
        for tool in &mut tools.items {
            tool.complete_as_tool();
        }
        for (tool, written) in tools.items.iter_mut().zip(items(state, "tools")) {
            if written.get(LENIENT).and_then(Value::as_bool) == Some(true) {
                continue;
            }
            match ArgumentSchema::of(tool.listed.get("inputSchema")) {
                Ok(schema) => tool.arguments = schema,
                Err(reason) => warnings.push(format!(
                    "tools `{}`: arguments are not checked: {reason}",
                    tool.name
                )),
            }
        }
        let elicitations = entries(state.get("elicitations"), "elicitations", &mut warnings);
        Self {
            version: state
                .get("protocol_version")
                .and_then(Value::as_str)
                .map(str::to_owned),
            server_info: state
                .get("server_info")
                .cloned()
                .unwrap_or_else(|| json!({"name": "oatf-server", "version": "1.0.0"})),
            instructions: state.get("instructions").cloned(),
            capabilities: state
                .get("capabilities")
                .cloned()
                .unwrap_or_else(everything),
            tools,
            resources,
            templates,
            prompts,
            elicitations,
            page_size: state
                .get("x-page-size")
                .and_then(Value::as_u64)
                .and_then(|size| usize::try_from(size).ok())
                .filter(|size| *size > 0),
            check_origin: state.get("x-check-origin").and_then(Value::as_bool) != Some(false),
            warnings,
        }
    }

    /// The template that makes a URI, and its variables.
    pub(super) fn template(&self, uri: &str) -> Option<(&SurfaceItem, Map<String, Value>)> {
        self.templates
            .items
            .iter()
            .find_map(|item| Some((item, uri_template::variables(&item.name, uri)?)))
    }
}

/// What is offered unless the document says otherwise: everything, for lists may be empty.
/// The definitions of tools that the MCP servers of a document list before anything has happened, by actor.
#[must_use]
pub fn offered_tools(document: &Document) -> HashMap<String, Vec<Value>> {
    let actors = document.attack.execution.actors().iter();
    let servers = actors.filter(|actor| actor.mode == Mode::McpServer);
    let offered = servers.filter_map(|actor| {
        let state = actor.phases.iter().find_map(|phase| phase.state.as_ref())?;
        let tools = OfferedSurface::of(state).tools.items.into_iter();
        Some((actor.name.clone(), tools.map(|tool| tool.listed).collect()))
    });
    offered.collect()
}

fn everything() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    })
}

impl SurfaceList {
    fn of(value: Option<&Value>, key: &str, name: &str, warnings: &mut Vec<String>) -> Self {
        let mut list = Self::default();
        let items = match value {
            None => return list,
            Some(Value::Array(items)) => items,
            Some(_) => {
                warnings.push(format!("`{key}` is not a list and is left out"));
                return list;
            }
        };
        for value in items {
            let item = SurfaceItem::of(value, key, name, warnings);
            // The first of a name answers; the second is still listed, as the document has it.
            let position = list.items.len();
            list.by_name.entry(item.name.clone()).or_insert(position);
            list.items.push(item);
        }
        list
    }

    pub(super) fn get(&self, name: &str) -> Option<&SurfaceItem> {
        self.items.get(*self.by_name.get(name)?)
    }
}

impl SurfaceItem {
    fn of(value: &Value, key: &str, name: &str, warnings: &mut Vec<String>) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text(name).to_owned();
        let listed = match value {
            Value::Object(map) => {
                let shown = map
                    .iter()
                    .filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()));
                Value::Object(
                    shown
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect(),
                )
            }
            other => other.clone(),
        };
        let place = format!("{key} `{name}`");
        let steps = steps::read(value.get("x-steps"), &mut |warning| {
            warnings.push(format!("{place}: {warning}"));
        });
        let requires = match value.get("x-requires") {
            Some(Value::Object(map)) => map.clone(),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(|name| (name.to_owned(), json!({}))).collect()
            }
            _ => Map::new(),
        };
        let map = |key: &str| match value.get(key) {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        };
        Self {
            responses: entries(value.get("responses"), &place, warnings),
            listed_has_templates: has_templates(&listed),
            header_arguments: header_arguments(value.get("inputSchema").unwrap_or(&Value::Null))
                .map(|(argument, header)| (argument.to_owned(), header.to_owned()))
                .collect(),
            content: value.get("content").cloned(),
            arguments: ArgumentSchema::default(),
            completions: map("x-completions"),
            name,
            listed,
            steps,
            requires,
        }
    }

    /// Whether the arguments of a call are what the tool's schema allows.
    pub(super) fn check_arguments(&self, arguments: Option<&Value>) -> Result<(), ArgumentFault> {
        self.arguments.check(arguments)
    }

    /// Clients refuse a whole list for one tool without a schema, so a missing one is filled in.
    fn complete_as_tool(&mut self) {
        if let Value::Object(map) = &mut self.listed
            && !map.contains_key("inputSchema")
        {
            map.insert("inputSchema".to_owned(), json!({"type": "object"}));
        }
    }
}

fn items<'s>(state: &'s Value, list: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    let items = state.get(list).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn entries(value: Option<&Value>, place: &str, warnings: &mut Vec<String>) -> Vec<ResponseEntry> {
    let items = match value {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            warnings.push(format!("{place}: what should be a list of entries is none"));
            return Vec::new();
        }
    };
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        match ResponseEntry::from_value(item) {
            Ok(entry) => entries.push(entry),
            Err(errors) => {
                let why = errors.first().map(ToString::to_string).unwrap_or_default();
                warnings.push(format!("{place}: an entry is left out: {why}"));
            }
        }
    }
    entries
}

/// Whether any text in the value asks to be resolved.
pub(in crate::drivers) fn has_templates(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_templates),
        Value::Object(map) => map.values().any(has_templates),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_stays_here_and_what_is_missing_is_filled() {
        let surface = OfferedSurface::of(&json!({
            "tools": [
                {"name": "a", "responses": [{"content": []}, {"when": 3}], "x-steps": [{"pause": "1s"}]},
                {"name": "b", "inputSchema": null, "x-anything": 1},
            ],
            "prompts": 7,
        }));
        let listed: Vec<&Value> = surface
            .tools
            .items
            .iter()
            .map(|item| &item.listed)
            .collect();
        assert_eq!(
            listed,
            [
                &json!({"name": "a", "inputSchema": {"type": "object"}}),
                &json!({"name": "b", "inputSchema": null, "x-anything": 1}),
            ]
        );
        let first = surface.tools.get("a").unwrap();
        assert_eq!((first.responses.len(), first.steps.len()), (1, 1));
        assert_eq!(surface.warnings.len(), 2, "{:?}", surface.warnings);
        assert_eq!(surface.server_info["name"], "oatf-server");
        assert!(surface.check_origin && surface.capabilities.get("tools").is_some());
    }
}
