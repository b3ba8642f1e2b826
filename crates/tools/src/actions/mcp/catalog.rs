//! The catalog: the tools of a server as they were last listed, and as actions.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, RwLock};

use jsonschema::Validator;
use proofhouse_source::did_you_mean;
use proofhouse_wire::sync::{read, write};
use rmcp::ServiceError;
use rmcp::model::{ErrorCode, PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient};
use serde_json::{Map, Value, json};

use super::failure::{CallFailure, head, of_call};
use super::known_secrets::KnownSecrets;
use crate::runtime::{ActionError, ActionFailure};
use proofhouse_manifest::interpolate::Secrets;
use proofhouse_manifest::json_schema;
use proofhouse_manifest::{Execute, ParameterSchema, ToolAction};

/// Pages of a list of tools; a server could go on for ever.
const MAX_PAGES: usize = 100;

/// Tools of one server. A model can choose from some dozens.
const MAX_TOOLS: usize = 1000;

/// Bytes of a tool's name. The specification says 128 characters; functions of models have 64.
const MAX_NAME_BYTES: usize = 128;

/// Bytes of a tool's description, all of which the model reads with every turn.
const MAX_DESCRIPTION_BYTES: usize = 16 << 10;

/// Bytes of a schema, which is compiled and told to the model.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// How many names are told when one is not found.
const MAX_NAMES_TOLD: usize = 20;

/// The tools of a server.
#[derive(Debug)]
pub(super) struct ToolCatalog {
    execute: Execute,
    secrets: KnownSecrets,
    entries: RwLock<Vec<Arc<ListedTool>>>,
}

/// A tool that was listed once.
#[derive(Debug)]
pub(super) struct ListedTool {
    /// The action that it is, if the manifest says nothing of it.
    derived: Arc<ToolAction>,
    /// The action together with the manifest's declaration.
    completed: OnceLock<Arc<ToolAction>>,
    output: Option<Value>,
    /// What checks a result against it, made at the first one.
    promise: OnceLock<Option<Validator>>,
    /// Whether it is still in the list. One that is not can be called all the same: the server says what
    /// it thinks of it.
    listed: bool,
}

impl ToolCatalog {
    /// An empty catalog of actions that are carried out like this.
    pub(super) fn new(execute: Execute, secrets: KnownSecrets) -> Self {
        Self {
            execute,
            secrets,
            entries: RwLock::default(),
        }
    }

    /// Takes a new list. A server may put into it what it found in its environment, and a model reads
    /// it; so secrets are taken out, and a tool with one in its name is left out.
    pub(super) fn replace(&self, tools: Vec<Tool>) {
        let secrets = self.secrets.all();
        let mut entries: Vec<Arc<ListedTool>> = tools
            .into_iter()
            .filter(|tool| secrets.redact(&tool.name) == tool.name)
            .map(|tool| Arc::new(self.entry(tool, &secrets)))
            .collect();
        let mut kept = write(&self.entries);
        for old in kept.iter() {
            let is_new = entries.iter().any(|new| new.name() == old.name());
            if !is_new && entries.len() < 2 * MAX_TOOLS {
                entries.push(Arc::new(ListedTool {
                    derived: Arc::clone(&old.derived),
                    completed: old.completed.clone(),
                    output: old.output.clone(),
                    promise: OnceLock::new(),
                    listed: false,
                }));
            }
        }
        *kept = entries;
    }

    fn entry(&self, tool: Tool, secrets: &Secrets) -> ListedTool {
        let description = secrets.redact(tool.description.as_deref().unwrap_or_default());
        let visible = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let description: String = head(&description, MAX_DESCRIPTION_BYTES)
            .chars()
            .filter(visible)
            .collect();
        let schema = secrets.redact_value(Value::Object(Map::clone(&tool.input_schema)));
        let schema = small(schema);
        let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
        ListedTool {
            derived: Arc::new(ToolAction {
                name: tool.name.into_owned(),
                description,
                parameters: ParameterSchema::given(schema),
                execute: self.execute.clone(),
            }),
            completed: OnceLock::new(),
            output: tool
                .output_schema
                .and_then(|schema| small(Value::Object(Map::clone(&schema)))),
            promise: OnceLock::new(),
            listed: true,
        }
    }

    fn find(&self, name: &str) -> Option<Arc<ListedTool>> {
        let entries = read(&self.entries);
        entries.iter().find(|entry| entry.name() == name).cloned()
    }

    /// The names of the tools that are listed.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = read(&self.entries);
        let listed = entries.iter().filter(|entry| entry.listed);
        listed.map(|entry| entry.name().to_owned()).collect()
    }

    /// The action that a listed tool is.
    pub(super) fn derived(&self, name: &str) -> Option<Arc<ToolAction>> {
        let entry = self.find(name).filter(|entry| entry.listed)?;
        Some(Arc::clone(&entry.derived))
    }

    /// What the manifest declares, with what the server knows of it.
    pub(super) fn completed(&self, declared: &ToolAction) -> Result<Arc<ToolAction>, ActionError> {
        let Some(entry) = self.find(&declared.name) else {
            return Err(self.unknown(&declared.name));
        };
        let action = entry.completed.get_or_init(|| {
            let description = if declared.description.is_empty() {
                entry.derived.description.clone()
            } else {
                declared.description.clone()
            };
            Arc::new(ToolAction {
                name: declared.name.clone(),
                description,
                parameters: merged(&entry.derived.parameters, &declared.parameters),
                execute: declared.execute.clone(),
            })
        });
        Ok(Arc::clone(action))
    }

    fn unknown(&self, name: &str) -> ActionError {
        let names = self.names();
        let mut message = format!("the MCP server has no tool `{name}`");
        if let Some(near) = did_you_mean(name, names.iter().map(String::as_str)) {
            message.push_str(&format!("; did you mean `{near}`?"));
        }
        let more = if names.len() > MAX_NAMES_TOLD {
            ", …"
        } else {
            ""
        };
        let told: Vec<&str> = names
            .iter()
            .take(MAX_NAMES_TOLD)
            .map(String::as_str)
            .collect();
        message.push_str(&format!(" (it has: {}{more})", told.join(", ")));
        ActionError::new(ActionFailure::Manifest, message)
    }

    /// Whether a structured result is what the tool promised.
    pub(super) fn keeps_promise(&self, name: &str, structured: &Value) -> bool {
        let Some(entry) = self.find(name) else {
            return true;
        };
        // A schema that cannot be compiled promises nothing.
        let compile = || entry.output.as_ref().and_then(json_schema::validator);
        let validator = entry.promise.get_or_init(compile);
        let kept = |validator: &Validator| validator.is_valid(structured);
        validator.as_ref().is_none_or(kept)
    }
}

impl ListedTool {
    fn name(&self) -> &str {
        &self.derived.name
    }
}

fn small(schema: Value) -> Option<Value> {
    (schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some(schema)
}

/// The server's schema with the properties that the manifest declares in the place of its own.
fn merged(server: &ParameterSchema, declared: &ParameterSchema) -> ParameterSchema {
    let own = declared.properties();
    if own.is_empty() {
        return server.clone();
    }
    let mut schema = server.json_schema();
    let Some(object) = schema.as_object_mut() else {
        return declared.clone();
    };
    let mut properties = server.properties().clone();
    let mut required: Vec<Value> = match object.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let declared_schema = declared.json_schema();
    for (name, property) in own {
        required.retain(|known| known != name.as_str());
        if property.get("default").is_none() {
            required.push(name.as_str().into());
        }
        let plain = &declared_schema["properties"][name.as_str()];
        properties.insert(name.clone(), plain.clone());
    }
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("required".to_owned(), Value::Array(required));
    ParameterSchema::given(schema)
}

/// Asks for all tools, page by page. Those that cannot be named are left out, and a name counts once.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ActionError> {
    let (mut tools, mut names, mut cursors) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor
            .take()
            .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = match peer.list_tools(params).await {
            Ok(page) => page,
            // A server without tools need not know the question.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return Ok(tools);
            }
            Err(error) => return Err(listing_error(error)),
        };
        for tool in page.tools {
            if !is_name(&tool.name) {
                tracing::warn!(
                    "an MCP server has a tool whose name cannot be used; it is left out"
                );
            } else if !names.insert(tool.name.to_string()) {
                tracing::warn!("an MCP server has two tools of one name; the first counts");
            } else {
                tools.push(tool);
            }
            if tools.len() >= MAX_TOOLS {
                tracing::warn!("an MCP server has too many tools; the first {MAX_TOOLS} count");
                return Ok(tools);
            }
        }
        match page.next_cursor {
            None => return Ok(tools),
            Some(next) if !cursors.insert(next.clone()) => {
                tracing::warn!("an MCP server lists its tools in a circle");
                return Ok(tools);
            }
            Some(next) => cursor = Some(next),
        }
    }
    tracing::warn!("an MCP server has too many pages of tools; the first {MAX_PAGES} count");
    Ok(tools)
}

fn listing_error(error: ServiceError) -> ActionError {
    let mut error = match of_call(error) {
        CallFailure::SessionEnded => ActionError::new(
            ActionFailure::Broken,
            "the server ended the session at once",
        ),
        CallFailure::Gone(error) | CallFailure::Other(error) => error,
    };
    error.message = format!("the tools cannot be listed: {}", error.message);
    error.outcome_unknown = false;
    error
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_wins_where_it_says_something() {
        let server = ParameterSchema::given(json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}},
            "required": ["a", "b"],
        }));
        let declared = json!({"b": {"type": "string", "default": "x"}, "c": {"enum": [1]}});
        let declared = ParameterSchema::new(declared.as_object().unwrap().clone()).unwrap();
        let merged = merged(&server, &declared).json_schema();
        assert_eq!(merged["required"], json!(["a", "c"]));
        assert_eq!(merged["properties"]["b"]["type"], "string");
        assert_eq!(merged["properties"]["a"]["type"], "string");
        let none = ParameterSchema::default();
        assert_eq!(
            super::merged(&server, &none).json_schema(),
            server.json_schema()
        );
    }

    #[test]
    fn names_with_control_characters_are_none() {
        for name in ["a", "a.b/c-d", "größe", "two words"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "  ", "a\u{1b}[31m", "a\nb", &"x".repeat(129)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
