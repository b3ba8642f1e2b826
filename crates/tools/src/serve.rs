//! Tools of manifests as an MCP server serves them: one task per tool and session.
//!
//! ```
//! use std::sync::Arc;
//! use proofhouse_mcp_serve::{McpServer, ServeLimits, ServerInfo};
//! use proofhouse_tools::serve::ManifestTools;
//! use proofhouse_wire::CancellationToken;
//! # use proofhouse_tools::http::EgressPolicy;
//! # use proofhouse_manifest::Bundle;
//! # use proofhouse_tools::runtime::{Environment, ToolLimits, Runtimes};
//! # use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (bundle, _) = Bundle::read(r#"
//! # kind: commonagents.info/v1beta2/tool
//! # namespace: demo
//! # name: clock
//! # description: Tells the time.
//! # actions:
//! #   - name: now
//! #     description: The time.
//! #     execute: {cel: {expression: "now"}}
//! # "#);
//! # let tool = Arc::new(bundle.tools().next().ok_or("no tool")?.clone());
//! # let environment = Environment::new(json!({}), || "2026-01-01T00:00:00.000Z".to_owned());
//! # let runtimes = Runtimes::new(&ToolLimits::default(), EgressPolicy::default())?;
//! let tools = ManifestTools::new(vec![(tool, environment)], runtimes, ToolLimits::default());
//! let info = ServerInfo { name: "demo".into(), version: "1".into(), instructions: None };
//! let server = McpServer::new(info, Arc::new(tools), ServeLimits::default());
//! let (input, output) = (
//!     &br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#[..],
//!     tokio::io::sink(),
//! );
//! server.serve_lines(input, output, CancellationToken::new()).await;
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, join_all};
use proofhouse_protocol::mcp::McpLogLevel;
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::functions::{Functions, ToolReference};
use crate::runtime::{
    ActionError, ActionFailure, ActionResult, Environment, Observer, Runtimes, ToolLimits, ToolTask,
};
use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{Tool, ToolAction};
use proofhouse_mcp_serve::{
    McpAnswer, McpBackend, McpCall, McpTool, McpTools, OperatorNotes, ToolScope, UnknownTool,
    block, blocks, media,
};

/// Opens tools of manifests.
///
/// Each session has tasks of its own, which begin with it and are torn down at its end. Clients of the
/// modern protocol over HTTP have no sessions and share one task per tool.
#[derive(Clone)]
pub struct ManifestTools {
    tools: Vec<(Arc<Tool>, Environment)>,
    runtimes: Runtimes,
    limits: ToolLimits,
    observer: Option<Arc<dyn Observer>>,
    notes: OperatorNotes,
}

impl ManifestTools {
    /// Tools, each with what it knows.
    #[must_use]
    pub fn new(
        tools: Vec<(Arc<Tool>, Environment)>,
        runtimes: Runtimes,
        limits: ToolLimits,
    ) -> Self {
        Self {
            tools,
            runtimes,
            limits,
            observer: None,
            notes: Arc::new(|_| {}),
        }
    }

    /// The same, with someone who is told of every call.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same, with someone who hears what the operator should know.
    #[must_use]
    pub fn with_notes(mut self, notes: OperatorNotes) -> Self {
        self.notes = notes;
        self
    }
}

impl McpBackend for ManifestTools {
    fn open(&self, scope: ToolScope) -> Arc<dyn McpTools> {
        let tasks = self.tools.iter().map(|(tool, environment)| {
            let (runtimes, limits) = (self.runtimes.clone(), self.limits.clone());
            let task = ToolTask::new(Arc::clone(tool), environment.clone(), runtimes, limits);
            BoundTools {
                task: match &self.observer {
                    Some(observer) => task.with_observer(Arc::clone(observer)),
                    None => task,
                },
                context: json!({"agent": environment.root(Root::Agent)}),
                dead: Mutex::default(),
                complaint: Mutex::default(),
            }
        });
        Arc::new(Tasks {
            scope,
            tasks: tasks.collect(),
            listed: Mutex::default(),
            changes: watch::Sender::new(0),
            max_result_bytes: self.limits.max_result_bytes,
            notes: Arc::clone(&self.notes),
        })
    }
}

impl std::fmt::Debug for ManifestTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.tools.iter().map(|(tool, _)| &tool.name);
        f.debug_list().entries(names).finish()
    }
}

/// The tasks of one session.
struct Tasks {
    scope: ToolScope,
    tasks: Vec<BoundTools>,
    /// What was listed last, and the functions behind it.
    listed: Mutex<Option<Listed>>,
    changes: watch::Sender<u64>,
    max_result_bytes: usize,
    notes: OperatorNotes,
}

struct BoundTools {
    task: ToolTask,
    /// What calls know of who makes them.
    context: Value,
    /// The error that ended the task of the tool, which every later call comes to.
    dead: Mutex<Option<ActionError>>,
    /// What the operator was told last of it, so that clients cannot make us say it again and again.
    complaint: Mutex<String>,
}

#[derive(Clone)]
struct Listed {
    functions: Arc<Functions>,
    tools: Arc<Vec<McpTool>>,
}

impl McpTools for Tasks {
    fn list(&self, cancel: CancellationToken) -> BoxFuture<'_, Arc<Vec<McpTool>>> {
        Box::pin(async move { self.refresh(&cancel).await.tools })
    }

    fn listed(&self, name: &str) -> Option<McpTool> {
        let listed = lock(&self.listed).clone()?;
        listed.tools.iter().find(|tool| tool.name == name).cloned()
    }

    fn call(&self, call: McpCall) -> BoxFuture<'_, Result<McpAnswer, UnknownTool>> {
        Box::pin(self.carry_out(call))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let ended = join_all(self.tasks.iter().map(|bound| bound.task.teardown())).await;
            for (bound, error) in self
                .tasks
                .iter()
                .zip(ended)
                .flat_map(|(bound, errors)| errors.into_iter().map(move |error| (bound, error)))
            {
                let name = &bound.task.tool().name;
                (self.notes)(&format!("`{name}` was not torn down: {}", error.message));
            }
        })
    }
}

impl Tasks {
    /// Asks every tool for its actions. One that cannot tell has those of its manifest.
    async fn refresh(&self, cancel: &CancellationToken) -> Listed {
        let asked = join_all(self.tasks.iter().map(|bound| async {
            match bound.task.actions(cancel.clone()).await {
                Ok(actions) => actions,
                Err(error) => {
                    self.complain(bound, &error);
                    bound.task.tool().actions.clone()
                }
            }
        }));
        let actions: Vec<Vec<Arc<ToolAction>>> = asked.await;
        let references: Vec<ToolReference<'_>> = self
            .tasks
            .iter()
            .zip(&actions)
            .map(|(bound, actions)| ToolReference::to_tool(bound.task.tool(), actions))
            .collect();
        let functions = Functions::new(&references);
        let tools = functions.iter().map(|function| McpTool {
            name: function.name.clone(),
            description: function.description.clone(),
            input_schema: function.parameters.clone(),
        });
        let fresh = Listed {
            tools: Arc::new(tools.collect()),
            functions: Arc::new(functions),
        };
        let earlier = lock(&self.listed).replace(fresh.clone());
        if earlier.is_some_and(|earlier| earlier.tools != fresh.tools) {
            self.changes.send_modify(|number| *number += 1);
        }
        fresh
    }

    fn complain(&self, bound: &BoundTools, error: &ActionError) {
        if matches!(
            error.failure,
            ActionFailure::Cancelled | ActionFailure::Ended
        ) {
            return;
        }
        let name = &bound.task.tool().name;
        self.note_once(
            bound,
            &format!("the actions of `{name}` are not known: {}", error.message),
        );
    }

    /// Tells the operator something of a tool, unless it was the last that was told of it.
    fn note_once(&self, bound: &BoundTools, complaint: &str) {
        let earlier = std::mem::replace(&mut *lock(&bound.complaint), complaint.to_owned());
        if earlier != complaint {
            (self.notes)(complaint);
        }
    }

    async fn carry_out(&self, call: McpCall) -> Result<McpAnswer, UnknownTool> {
        let known = lock(&self.listed).clone();
        let found = |listed: &Listed| listed.functions.find(&call.name).cloned();
        let function = match known.as_ref().and_then(found) {
            Some(function) => Some(function),
            None => found(&self.refresh(&call.cancel).await),
        };
        let bound = function
            .as_ref()
            .and_then(|function| self.tasks.get(function.reference));
        let (Some(function), Some(bound)) = (function, bound) else {
            return Err(UnknownTool { name: call.name });
        };
        let dead = lock(&bound.dead).clone();
        if let Some(error) = dead {
            return Ok(failed(&error));
        }
        let cancel = call.cancel.clone();
        let invoked = bound
            .task
            .invoke(
                &function.action,
                call.arguments,
                bound.context.clone(),
                cancel,
            )
            .await;
        Ok(match invoked {
            Ok(outcome) => self.answer(outcome),
            Err(error) => {
                if !error.is_recoverable() && error.failure != ActionFailure::Ended {
                    let name = &bound.task.tool().name;
                    let complaint = format!("`{name}` cannot go on: {}", error.message);
                    self.note_once(bound, &complaint);
                    call.sink.log(McpLogLevel::Error, name, &error.to_json());
                    match self.scope {
                        ToolScope::Session if error.is_final() => {
                            *lock(&bound.dead) = Some(error.clone());
                        }
                        // The host may answer again, and other hosts of the tool may answer now.
                        ToolScope::Session => {}
                        // Nobody could begin a new session to get the tool back, so it begins anew.
                        ToolScope::Shared => drop(bound.task.evict().await),
                    }
                }
                failed(&error)
            }
        })
    }

    fn answer(&self, outcome: ActionResult) -> McpAnswer {
        if outcome.truncated {
            let text = outcome.value.as_str().unwrap_or_default();
            let mut answer = McpAnswer::text(text);
            let note = format!("[the result was cut after {} bytes]", self.max_result_bytes);
            answer.content.push(json!({"type": "text", "text": note}));
            answer
                .meta
                .insert("proofhouse/truncated".into(), true.into());
            return answer;
        }
        match outcome.value {
            Value::String(text) => McpAnswer::text(text),
            Value::Array(parts) => match blocks(&parts) {
                Some(content) => McpAnswer {
                    content,
                    ..McpAnswer::default()
                },
                None => McpAnswer::text(Value::Array(parts).to_string()),
            },
            Value::Object(object) => match media(&object).or_else(|| block(&object)) {
                Some(block) => McpAnswer {
                    content: vec![block],
                    ..McpAnswer::default()
                },
                None => McpAnswer {
                    structured: Some(object.clone()),
                    ..McpAnswer::text(Value::Object(object).to_string())
                },
            },
            other => McpAnswer::text(other.to_string()),
        }
    }
}

fn failed(error: &ActionError) -> McpAnswer {
    McpAnswer::error(error.to_json().to_string())
}
