//! `proofhouse tool list`: the functions that a model would see.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use proofhouse_manifest::ToolAction;
use proofhouse_subjects::operator::Operator;
use proofhouse_subjects::tool_listing;
use proofhouse_subjects::tool_manifests::{self, Located};
use proofhouse_tools::functions::Function;
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, complain, printable_line};
use crate::tools::manifests;
use crate::tools::options::OperatorOptions;
use crate::tools::work::until_interrupted;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// List the functions that a model sees
///
/// Most functions are declared in the manifest. Those of OpenAPI descriptions and MCP servers are fetched from
/// there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse tool list examples/tools/weather.yaml\n  \
    proofhouse tool list examples/tools/clock.yaml examples/tools/weather.yaml --format openai\n\n\
    Exit codes:\n  \
    0   all functions are listed\n  \
    3   a manifest cannot be used, or a backend does not answer or has no functions\n  \
    64  invalid arguments, or a path that does not exist")]
pub(crate) struct ToolList {
    /// Tool manifests: files, directories (searched for .yaml and .yml files), or `-` for stdin
    #[arg(required = true, value_name = "MANIFEST")]
    manifests: Vec<PathBuf>,

    /// The output format
    #[arg(long, value_enum, default_value_t = ToolListFormat::Human)]
    format: ToolListFormat,

    #[command(flatten)]
    operator: OperatorOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ToolListFormat {
    /// For people
    Human,
    /// For programs, with the origin and both schemas of each function
    Json,
    /// As `tools` in a request to an OpenAI-compatible API
    Openai,
    /// As an MCP server answers `tools/list`
    Mcp,
}

impl ToolList {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let located = manifests::tools(&self.manifests)?;
        let operator = self.operator.operator_of(&located)?;
        let cancel = CancellationToken::new();
        let asked = until_interrupted(&cancel, ask(&operator, &located, &cancel))?;
        let tools = tool_manifests::of_located(&located);
        let (actions, failed) = asked.whole()?;
        let functions = tool_manifests::functions(&tools, &actions);
        let mut data = StdoutData::new();
        match self.format {
            ToolListFormat::Human => {
                let listed = functions.iter();
                let mut listed =
                    listed.map(|function| tool_listing::text(&tools, &actions, function));
                listed.try_for_each(|text| data.write(&text))?;
            }
            ToolListFormat::Json => {
                let entry = |function: &Function| tool_listing::entry(&tools, &actions, function);
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
