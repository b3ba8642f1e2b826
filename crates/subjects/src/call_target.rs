//! Which action of which tool somebody means who calls one by its name.

use std::sync::Arc;

use proofhouse_manifest::ToolAction;
use proofhouse_source::did_you_mean;
use proofhouse_tools::runtime::{ActionError, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Map, Value};

use crate::tool_manifests::{self, Located};

/// An action that is to be called.
#[derive(Debug)]
pub struct CallTarget {
    /// The tool it is of.
    pub from: Located,
    /// Its name.
    pub action: String,
    /// What the model would call it.
    pub function: String,
    /// The parameters that are known.
    pub properties: Map<String, Value>,
}

/// Why a name means no action, or no single one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchAction {
    /// Several tools have one.
    #[error("several tools have an action `{wanted}`; name the function: {functions}")]
    Several {
        /// The name.
        wanted: String,
        /// The functions that tell them apart.
        functions: String,
    },
    /// No tool has one.
    #[error(
        "there is no action `{wanted}`{}; `proofhouse tool list` lists them all",
        .near.as_ref().map(|near| format!(", did you mean `{near}`?")).unwrap_or_default()
    )]
    None {
        /// The name.
        wanted: String,
        /// One that is like it.
        near: Option<String>,
    },
}

impl CallTarget {
    /// Finds the action among those of all tools: by its name, by that of its function, or as one that
    /// a description or a server may have.
    ///
    /// # Errors
    ///
    /// Returns an error when there is none, or several.
    pub fn find(located: &[Located], wanted: &str) -> Result<Self, NoSuchAction> {
        let tools = tool_manifests::of_located(located);
        let declared: Vec<Vec<Arc<ToolAction>>> =
            tools.iter().map(|tool| tool.actions.clone()).collect();
        let functions = tool_manifests::functions(&tools, &declared);
        let of_function = functions.find(wanted);
        let found: Vec<_> = match of_function {
            Some(function) => vec![function],
            None => functions
                .iter()
                .filter(|function| function.action == wanted)
                .collect(),
        };
        if let [function] = found.as_slice() {
            let tool = &tools[function.reference];
            let mut actions = tool.actions.iter();
            let action = actions.find(|action| action.name == function.action);
            let properties = action.map(|action| action.parameters.properties().clone());
            return Ok(Self {
                from: located[function.reference].clone(),
                action: function.action.clone(),
                function: function.name.clone(),
                properties: properties.unwrap_or_default(),
            });
        }
        if !found.is_empty() {
            let names: Vec<&str> = found
                .iter()
                .map(|function| function.name.as_str())
                .collect();
            return Err(NoSuchAction::Several {
                wanted: wanted.to_owned(),
                functions: names.join(", "),
            });
        }
        let deriving: Vec<&Located> = located
            .iter()
            .filter(|located| !located.tool.deriving().is_empty())
            .collect();
        if let [from] = deriving.as_slice() {
            let prefix = format!("{}_", from.tool.name.replace('-', "_"));
            return Ok(Self {
                from: Located::clone(from),
                action: wanted.strip_prefix(&prefix).unwrap_or(wanted).to_owned(),
                function: if wanted.starts_with(&prefix) {
                    wanted.to_owned()
                } else {
                    format!("{prefix}{wanted}")
                },
                properties: Map::new(),
            });
        }
        let known = functions
            .iter()
            .flat_map(|function| [function.name.as_str(), function.action.as_str()]);
        Err(NoSuchAction::None {
            wanted: wanted.to_owned(),
            near: did_you_mean(wanted, known).map(str::to_owned),
        })
    }

    /// Asks the backend for the action, where only the backend knows all of it.
    ///
    /// # Errors
    ///
    /// Returns why the backend cannot tell.
    pub async fn complete(
        &mut self,
        task: &ToolTask,
        wanted: &str,
        cancel: &CancellationToken,
    ) -> Result<(), ActionError> {
        let target = self;
        let mut declared = task.tool().actions.iter();
        let declared = declared.find(|action| action.name == target.action);
        let asks = |action: &ToolAction| action.execute.kind().is_described_by_backend();
        if declared.is_some_and(|action| !asks(action)) {
            return Ok(());
        }
        let actions = vec![task.actions(cancel.clone()).await?];
        let functions = tool_manifests::functions(std::slice::from_ref(task.tool()), &actions);
        let found = match declared {
            Some(action) => functions.of(0, &action.name),
            None => {
                let of_function = functions.find(wanted);
                of_function.or_else(|| functions.of(0, wanted))
            }
        };
        // Where there is none, the call says so, and what is near.
        if let Some(function) = found {
            target.action.clone_from(&function.action);
            target.function.clone_from(&function.name);
            let mut actions = actions[0].iter();
            if let Some(action) = actions.find(|action| action.name == function.action) {
                target.properties = action.parameters.properties().clone();
            }
        }
        Ok(())
    }
}
