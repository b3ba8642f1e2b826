//! The agent over MCP: itself as a tool, and its capabilities as tools.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_mcp_serve::{
    McpAnswer, McpBackend, McpCall, McpServer, McpTool, McpTools, ServerInfo, ToolScope,
    UnknownTool,
};
use proofhouse_wire::CancellationToken;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::AgentService;
use super::conversations::end;
use super::run::{AnswerRun, AnswerStep};
use crate::model::ToolSpec;
use crate::task::{CallStatus, Decision, StartError, Task, TaskEvent, TaskInput, TaskOutput};

/// A server of the agent.
pub(super) fn server(service: &Arc<AgentService>) -> McpServer {
    let info = ServerInfo {
        name: service.agent.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(service.agent.description.clone()),
    };
    let backend = AgentBackend {
        service: Arc::clone(service),
    };
    McpServer::new(info, Arc::new(backend), service.limits.mcp.clone())
}

struct AgentBackend {
    service: Arc<AgentService>,
}

impl McpBackend for AgentBackend {
    fn open(&self, scope: ToolScope) -> Arc<dyn McpTools> {
        let (changed, changes) = watch::channel(0);
        Arc::new(Tools {
            service: Arc::clone(&self.service),
            scope,
            session: Mutex::default(),
            listed: Mutex::default(),
            changes,
            _changed: changed,
        })
    }
}

/// The agent as the tools of one session.
struct Tools {
    service: Arc<AgentService>,
    scope: ToolScope,
    /// The task that the session's calls of capabilities belong to.
    session: Mutex<Option<Task>>,
    listed: Mutex<Arc<Vec<McpTool>>>,
    changes: watch::Receiver<u64>,
    /// Kept, because a list whose sender is gone would count as closed.
    _changed: watch::Sender<u64>,
}

impl Tools {
    /// The task of the session. Clients of the modern protocol share one: when it is over, the others
    /// must not be without, so another begins. The rules of a session end with its task.
    fn task(&self) -> Result<Task, StartError> {
        let mut session = lock(&self.session);
        let is_over = |task: &Task| task.ended().is_some();
        if self.scope == ToolScope::Shared && session.as_ref().is_some_and(is_over) {
            *session = None;
        }
        if let Some(task) = &*session {
            return Ok(task.clone());
        }
        let task = self.service.begin(Vec::new())?;
        Ok(session.insert(task).clone())
    }

    fn all(&self, functions: Vec<ToolSpec>) -> Vec<McpTool> {
        let mut tools = vec![self.agent(&functions)];
        tools.extend(functions.into_iter().map(|function| McpTool {
            name: function.name,
            description: function.description,
            input_schema: function.parameters,
        }));
        tools
    }

    /// The agent as a tool: a message, and the agent's parameters.
    fn agent(&self, functions: &[ToolSpec]) -> McpTool {
        let agent = &self.service.agent;
        let mut schema = agent.parameters.json_schema();
        if schema["properties"].get("message").is_none() {
            let message = json!({"type": "string", "description": "What to say to the agent."});
            let mut properties = Map::new();
            properties.insert("message".to_owned(), message);
            if let Some(own) = schema["properties"].as_object() {
                properties.extend(own.clone());
            }
            schema["properties"] = Value::Object(properties);
            let mut required = vec![Value::from("message")];
            if let Some(own) = schema["required"].as_array() {
                required.extend(own.clone());
            }
            schema["required"] = Value::Array(required);
        }
        let taken = functions.iter().any(|other| other.name == agent.name);
        McpTool {
            name: if taken {
                format!("ask_{}", agent.name)
            } else {
                agent.name.clone()
            },
            description: agent.description.clone(),
            input_schema: schema,
        }
    }

    /// Says something to the agent, in a task of its own: whoever calls a tool does not see the
    /// conversations of others, nor its own earlier ones.
    async fn ask(&self, mut arguments: Map<String, Value>, cancel: CancellationToken) -> McpAnswer {
        let message = match arguments.shift_remove("message") {
            None => None,
            Some(Value::String(message)) => Some(message),
            Some(_) => return McpAnswer::error("`message` must be a text"),
        };
        let task = match self.service.begin(Vec::new()) {
            Ok(task) => task,
            Err(error) => return McpAnswer::error(error.to_string()),
        };
        let input = TaskInput {
            message,
            parameters: arguments,
            ..TaskInput::default()
        };
        let mut run = AnswerRun::start(&task, input);
        let output = loop {
            let step = tokio::select! {
                step = run.next() => step,
                () = cancel.cancelled(), if !run.cancel.is_cancelled() => {
                    run.cancel.cancel();
                    continue;
                }
            };
            match step {
                AnswerStep::Event(TaskEvent::Review(review)) => {
                    task.decide(review.id, Decision::Deny);
                }
                AnswerStep::Event(_) | AnswerStep::Missed => deny_all(&task),
                AnswerStep::Done(output) => break output,
            }
        };
        end(&task, self.service.limits.close).await;
        answered(output)
    }

    async fn call_function(
        &self,
        function: String,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> McpAnswer {
        let task = match self.task() {
            Ok(task) => task,
            Err(error) => return McpAnswer::error(error.to_string()),
        };
        let mut events = task.events();
        let calling = task.call(function, arguments, cancel);
        tokio::pin!(calling);
        let output = loop {
            tokio::select! {
                output = &mut calling => break output,
                event = events.recv() => match event {
                    Ok(TaskEvent::Review(review)) => {
                        task.decide(review.id, Decision::Deny);
                    }
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => {
                        break calling.await;
                    }
                    _ => deny_all(&task),
                },
            }
        };
        let structured = output.result.as_object().cloned();
        let text = match output.result {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut answer = match output.status {
            CallStatus::Successful => McpAnswer::text(text),
            CallStatus::Errored | CallStatus::Restricted => McpAnswer::error(text),
        };
        if !answer.is_error {
            answer.structured = structured;
        }
        answer
    }
}

/// MCP has nobody who could be asked, so whatever needs an approval is denied.
fn deny_all(task: &Task) {
    for review in task.reviews() {
        task.decide(review.id, Decision::Deny);
    }
}

fn answered(output: TaskOutput) -> McpAnswer {
    let failed = output
        .failed
        .or_else(|| output.ended.map(|end| end.message));
    if let Some(message) = failed {
        return McpAnswer::error(message);
    }
    let mut answer = McpAnswer::text(output.message.clone());
    if !output.exposes.is_empty() {
        let mut structured = output.exposes;
        structured.insert("message".to_owned(), output.message.into());
        answer.structured = Some(structured);
    }
    answer
}

impl McpTools for Tools {
    fn list(&self, cancel: CancellationToken) -> BoxFuture<'_, Arc<Vec<McpTool>>> {
        Box::pin(async move {
            let functions = match self.task() {
                Err(_) => Vec::new(),
                Ok(task) => tokio::select! {
                    () = cancel.cancelled() => Vec::new(),
                    functions = task.functions() => functions.unwrap_or_else(|end| {
                        tracing::warn!(reason = %end.message, "the agent has no functions to list");
                        Vec::new()
                    }),
                },
            };
            let tools = Arc::new(self.all(functions));
            *lock(&self.listed) = Arc::clone(&tools);
            tools
        })
    }

    fn listed(&self, name: &str) -> Option<McpTool> {
        let listed = Arc::clone(&lock(&self.listed));
        listed.iter().find(|tool| tool.name == name).cloned()
    }

    fn call(&self, call: McpCall) -> BoxFuture<'_, Result<McpAnswer, UnknownTool>> {
        Box::pin(async move {
            if lock(&self.listed).is_empty() {
                self.list(call.cancel.clone()).await;
            }
            let listed = Arc::clone(&lock(&self.listed));
            let found = listed.iter().position(|tool| tool.name == call.name);
            match found {
                None => Err(UnknownTool { name: call.name }),
                Some(0) => Ok(self.ask(call.arguments, call.cancel).await),
                Some(_) => Ok(self
                    .call_function(call.name, call.arguments, call.cancel)
                    .await),
            }
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let task = lock(&self.session).take();
            if let Some(task) = task {
                end(&task, self.service.limits.close).await;
            }
        })
    }
}
