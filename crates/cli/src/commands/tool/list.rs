//! `proofhouse tool list`: the functions that a model would see.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_manifest::{Tool, ToolAction};
use proofhouse_subjects::operator::Operator;
use proofhouse_subjects::tool_manifests::{self, Located};
use proofhouse_tools::functions::{Function, Functions};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, complain, printable, printable_line};
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// List the functions that a model would see
///
/// OpenAPI descriptions and MCP servers are asked for theirs; all others are known from the manifest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool list examples/tools/weather.yaml\n  \
    proofhouse tool list examples/tools/clock.yaml examples/tools/weather.yaml --format openai\n\n\
    Exit codes: 0 all listed, 3 a manifest cannot be used, or a backend does not answer or has none, 64 usage.")]
pub(crate) struct ToolList {
    /// Manifests: files, directories searched for .yaml and .yml, or `-` for stdin
    #[arg(required = true, value_name = "MANIFEST")]
    manifests: Vec<PathBuf>,

    /// How to print the functions
    #[arg(long, value_enum, default_value_t = ToolListFormat::Human)]
    format: ToolListFormat,

    #[command(flatten)]
    operator: OperatorOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolListFormat {
    /// For people
    Human,
    /// For programs: where each function comes from, and both schemas
    Json,
    /// The `tools` of a request to an OpenAI-compatible model
    Openai,
    /// The result of `tools/list` of an MCP server
    Mcp,
}

impl ToolList {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let located = manifests::tools(&self.manifests)?;
        let operator = self.operator.operator()?;
        let cancel = CancellationToken::new();
        let asked = until_interrupted(&cancel, ask(&operator, &located, &cancel))?;
        let tools = tool_manifests::of_located(&located);
        let (actions, failed) = asked.whole()?;
        let functions = tool_manifests::functions(&tools, &actions);
        let mut data = StdoutData::new();
        match self.format {
            ToolListFormat::Human => human(&mut data, &tools, &actions, &functions)?,
            ToolListFormat::Json => {
                let entry = |function: &Function| entry(&tools, &actions, function);
                let entries: Vec<Value> = functions.iter().map(entry).collect();
                data.json(&json!({"version": VERSION, "functions": entries}))?;
            }
            ToolListFormat::Openai => {
                data.json(&functions.iter().map(Function::to_openai).collect())?;
            }
            ToolListFormat::Mcp => {
                let tools: Vec<Value> = functions.iter().map(Function::to_mcp).collect();
                data.json(&json!({"tools": tools}))?;
            }
        }
        data.finish()?;
        Ok(if failed {
            Exit::CannotRun
        } else {
            Exit::Success
        })
    }
}

/// The actions of each tool, and whether one could not tell.
async fn ask(
    operator: &Operator,
    tools: &[Located],
    cancel: &CancellationToken,
) -> (Vec<Vec<Arc<ToolAction>>>, bool) {
    let (mut actions, mut failed) = (Vec::new(), false);
    for located in tools {
        let task = operator.task(located);
        match task.actions(cancel.clone()).await {
            Ok(known) => {
                if known.is_empty() {
                    let reasons = task.why_none(cancel.clone()).await.unwrap_or_default();
                    failed |= !reasons.is_empty();
                    for reason in reasons {
                        let line = format!("{}: {reason}", located.tool.name);
                        complain(&printable_line(&line));
                    }
                }
                actions.push(known);
            }
            Err(error) => {
                complain(&format!("{}: {error}", printable_line(&located.tool.name)));
                actions.push(Vec::new());
                failed = true;
            }
        }
        manifests::tear_down(&task).await;
    }
    (actions, failed)
}

fn human(
    data: &mut StdoutData,
    tools: &[Arc<Tool>],
    actions: &[Vec<Arc<ToolAction>>],
    functions: &Functions,
) -> Result<(), CommandError> {
    for function in functions.iter() {
        let tool = &tools[function.reference];
        let runtime = runtime_of(actions, function);
        let from = format!("{}/{}, {}", tool.namespace, tool.name, function.action);
        let from = printable_line(&from);
        data.line(&format!("{} ({from}, {runtime})", function.name))?;
        for line in printable(&function.description).lines() {
            data.line(&format!("    {line}"))?;
        }
        let properties = function.parameters.get("properties");
        for (name, property) in properties.and_then(Value::as_object).into_iter().flatten() {
            let shown = parameter(name, property, &function.parameters);
            data.line(&format!("    - {}", printable_line(&shown)))?;
        }
    }
    Ok(())
}

fn parameter(name: &str, property: &Value, schema: &Value) -> String {
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut shown = format!("{name}: {kind}");
    if is_required {
        shown.push_str(", required");
    }
    if let Some(default) = property.get("default") {
        shown.push_str(&format!(", default {default}"));
    }
    if let Some(description) = property.get("description").and_then(Value::as_str) {
        let first = description.lines().next().unwrap_or_default();
        shown.push_str(&format!("; {first}"));
    }
    shown
}

fn entry(tools: &[Arc<Tool>], actions: &[Vec<Arc<ToolAction>>], function: &Function) -> Value {
    let tool = &tools[function.reference];
    json!({
        "name": function.name,
        "tool": {"namespace": tool.namespace, "name": tool.name},
        "action": function.action,
        "runtime": runtime_of(actions, function),
        "openai": function.to_openai(),
        "mcp": function.to_mcp(),
    })
}

fn runtime_of(actions: &[Vec<Arc<ToolAction>>], function: &Function) -> &'static str {
    let mut of = actions[function.reference].iter();
    of.find(|action| action.name == function.action)
        .map_or("unknown", |action| action.execute.key())
}
