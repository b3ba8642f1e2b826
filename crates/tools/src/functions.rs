//! Functions: what a model sees of tools, by names that every model takes.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_wire::fnv;
use serde_json::{Map, Value, json};

use proofhouse_manifest::{Execute, Tool, ToolAction};

/// The longest name that models take.
pub const MAX_NAME_BYTES: usize = 64;

/// What a name stands for that has no letter or digit of its own.
const NAMELESS: &str = "tool";

/// The actions of one tool, under the reference by which an agent knows it.
#[derive(Debug, Clone, Default)]
pub struct ToolReference<'a> {
    /// The tool's name, or for an agent the name of the capability.
    pub name: &'a str,
    /// What the tool is for; it describes actions that have no description.
    pub description: &'a str,
    /// Its actions.
    pub actions: &'a [Arc<ToolAction>],
    /// Parameters that the model does not see, because they are bound.
    pub hidden: &'a [&'a str],
    /// Whether the actions are those of a server, whose names say what they are: even an only one keeps its
    /// name.
    pub keeps_names: bool,
}

impl<'a> ToolReference<'a> {
    /// A tool under its own name, with these of its actions and nothing hidden.
    #[must_use]
    pub fn to_tool(tool: &'a Tool, actions: &'a [Arc<ToolAction>]) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            actions,
            hidden: &[],
            keeps_names: false,
        }
    }
}

/// One function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The name the model calls it by.
    pub name: String,
    /// Which of the references it belongs to, from 0.
    pub reference: usize,
    /// The action.
    pub action: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments, which are always an object.
    pub parameters: Value,
}

impl Function {
    /// The function as OpenAI-compatible models take it.
    #[must_use]
    pub fn to_openai(&self) -> Value {
        json!({"type": "function", "function": {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }})
    }

    /// The function as an MCP server lists it.
    #[must_use]
    pub fn to_mcp(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.parameters,
        })
    }
}

/// The functions of several tools together; no two have one name.
///
/// ```
/// use proofhouse_tools::functions::{Functions, ToolReference};
/// use proofhouse_manifest::Bundle;
///
/// let (bundle, _) = Bundle::read(r#"
/// kind: commonagents.info/v1beta2/tool
/// namespace: demo
/// name: world-clock
/// description: Tells the time.
/// actions:
///   - name: now
///     description: The time in UTC.
///     execute: {cel: {expression: now}}
/// "#);
/// let tool = bundle.tools().next().unwrap();
/// let functions = Functions::new(&[ToolReference::to_tool(tool, &tool.actions)]);
/// let function = functions.find("world_clock").unwrap();
/// assert_eq!((function.reference, function.action.as_str()), (0, "now"));
/// assert_eq!(function.to_mcp()["inputSchema"]["type"], "object");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Functions {
    list: Vec<Function>,
}

impl Functions {
    /// Names the functions of these references, in their order. Names that would be the same are told
    /// apart by a number; whoever comes first keeps the plain one.
    #[must_use]
    pub fn new(references: &[ToolReference<'_>]) -> Self {
        let mut taken = HashSet::new();
        let mut list = Vec::new();
        for (position, reference) in references.iter().enumerate() {
            for action in reference.actions {
                let wanted = match reference.actions.len() {
                    1 if !reference.keeps_names => reference.name.to_owned(),
                    _ => format!("{}_{}", reference.name, action.name),
                };
                let name = unique(&fitting(&wanted), &taken);
                taken.insert(name.clone());
                let description = if action.description.trim().is_empty() {
                    reference.description
                } else {
                    &action.description
                };
                list.push(Function {
                    name,
                    reference: position,
                    action: action.name.clone(),
                    description: description.to_owned(),
                    parameters: visible(action.parameters.json_schema(), reference.hidden),
                });
            }
        }
        Self { list }
    }

    /// The function of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Function> {
        self.list.iter().find(|function| function.name == name)
    }

    /// The function of an action of a reference.
    #[must_use]
    pub fn of(&self, reference: usize, action: &str) -> Option<&Function> {
        let mut list = self.list.iter();
        list.find(|function| function.reference == reference && function.action == action)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Function> {
        self.list.iter()
    }
}

/// A name of the letters, digits and underscores that models take, and not too long. What is cut off
/// is stood for by a hash of the whole, so that long names with one beginning stay different.
fn fitting(wanted: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = wanted.chars().map(plain).collect();
    if !name.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        return NAMELESS.to_owned();
    }
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    with_ending(&name, &format!("_{:08x}", fnv::hash_32(wanted.bytes())))
}

fn unique(name: &str, taken: &HashSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    // One more number than there are names: one of them is free.
    (2..=taken.len() + 2)
        .map(|number| with_ending(name, &format!("_{number}")))
        .find(|name| !taken.contains(name))
        .unwrap_or_else(|| name.to_owned())
}

/// The name with an ending, cut so that both fit.
fn with_ending(name: &str, ending: &str) -> String {
    let room = MAX_NAME_BYTES.saturating_sub(ending.len()).min(name.len());
    // Only ASCII is left in a name.
    format!("{}{ending}", &name[..room])
}

/// The schema without the parameters that are hidden.
fn visible(schema: Value, hidden: &[&str]) -> Value {
    // `true` and the like say nothing about an object.
    let mut schema = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    schema.entry("type").or_insert("object".into());
    let properties = schema.entry("properties").or_insert(json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.retain(|name, _| !hidden.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| hidden.contains(&name)));
    }
    Value::Object(schema)
}

/// The operation and the arguments that a call of `call`, the function of a searched API, is about.
#[must_use]
pub fn searched_call(
    tool: &Tool,
    action: &str,
    arguments: &Map<String, Value>,
) -> Option<(String, Map<String, Value>)> {
    let is_declared = tool.actions.iter().any(|declared| declared.name == action);
    let derives = tool
        .deriving()
        .iter()
        .any(|block| matches!(block, Execute::OpenApi(_)));
    if is_declared || !derives || action != proofhouse_openapi::search::CALL {
        return None;
    }
    let operation = arguments.get("operation")?.as_str()?;
    let given = match arguments.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(given) => given.as_object()?.clone(),
    };
    Some((operation.to_owned(), given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_manifest::{CelCall, Execute, ParameterSchema};

    fn action(name: &str, parameters: &Value) -> Arc<ToolAction> {
        let expression = proofhouse_expr::Program::compile("1").unwrap();
        Arc::new(ToolAction {
            name: name.to_owned(),
            description: String::new(),
            parameters: ParameterSchema::given(parameters.clone()),
            execute: Execute::Cel(CelCall { expression }),
        })
    }

    fn names(tools: &[(&str, &[&str])]) -> Vec<String> {
        let actions: Vec<Vec<Arc<ToolAction>>> = tools
            .iter()
            .map(|(_, actions)| {
                actions
                    .iter()
                    .map(|name| action(name, &json!({})))
                    .collect()
            })
            .collect();
        let references: Vec<ToolReference<'_>> = tools
            .iter()
            .zip(&actions)
            .map(|((name, _), actions)| ToolReference {
                name,
                actions,
                ..ToolReference::default()
            })
            .collect();
        let functions = Functions::new(&references);
        for function in functions.iter() {
            let back = functions.find(&function.name).unwrap();
            assert_eq!(back, function);
            let by_action = functions.of(function.reference, &function.action);
            assert_eq!(by_action, Some(function));
        }
        functions
            .iter()
            .map(|function| function.name.clone())
            .collect()
    }

    #[test]
    fn names_are_those_that_models_take() {
        let long = "x".repeat(70);
        let cut = format!(
            "{}_{:08x}",
            "x".repeat(55),
            proofhouse_wire::fnv::hash_32(long.bytes())
        );
        for (tools, expected) in [
            (&[("weather", &["forecast"][..])][..], vec!["weather"]),
            (
                &[("git-hub", &["list-issues", "get"])],
                vec!["git_hub_list_issues", "git_hub_get"],
            ),
            (&[("wétter/1.2", &["a"])], vec!["w_tter_1_2"]),
            (&[("???", &["a"])], vec!["tool"]),
            (&[(&long, &["a"])], vec![&cut]),
            // Whoever comes first keeps the plain name, across tools too.
            (
                &[("a", &["x"]), ("a", &["y"]), ("a", &["z"])],
                vec!["a", "a_2", "a_3"],
            ),
            (
                &[("a", &["b-c", "b_c"]), ("a_b_c", &["x"])],
                vec!["a_b_c", "a_b_c_2", "a_b_c_3"],
            ),
            (
                &[("a", &["x"]), ("a_2", &["y"]), ("a", &["z"])],
                vec!["a", "a_2", "a_3"],
            ),
        ] {
            assert_eq!(names(tools), expected);
        }
    }

    #[test]
    fn many_long_names_stay_different_and_short() {
        let tool = "t".repeat(64);
        let actions: Vec<String> = (0..300).map(|n| format!("action-{n}")).collect();
        let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
        let named = names(&[(&tool, &actions), (&tool, &actions)]);
        let different: HashSet<&String> = named.iter().collect();
        assert_eq!(different.len(), 600);
        for name in &named {
            assert!(name.len() <= MAX_NAME_BYTES, "{name}");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            assert!(name.bytes().all(plain), "{name}");
        }
    }

    #[test]
    fn bound_parameters_are_hidden_and_schemas_are_objects() {
        let schema = json!({
            "type": "object",
            "properties": {"owner": {"type": "string"}, "title": {"$ref": "#/$defs/T"}},
            "required": ["owner", "title"],
            "$defs": {"T": {"type": "string"}},
        });
        let actions = [action("open", &schema), action("odd", &json!(true))];
        let reference = ToolReference {
            name: "issues",
            description: "Issues of a repository.",
            actions: &actions,
            hidden: &["owner"],
            ..ToolReference::default()
        };
        let functions = Functions::new(&[reference]);
        assert_eq!(
            functions.find("issues_open").unwrap().to_openai(),
            json!({"type": "function", "function": {
                "name": "issues_open",
                "description": "Issues of a repository.",
                "parameters": {
                    "type": "object",
                    "properties": {"title": {"$ref": "#/$defs/T"}},
                    "required": ["title"],
                    "$defs": {"T": {"type": "string"}},
                },
            }})
        );
        assert_eq!(
            functions.find("issues_odd").unwrap().to_mcp()["inputSchema"],
            json!({"type": "object", "properties": {}})
        );
    }
}
