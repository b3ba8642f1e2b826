//! New tasks: what they listen to, what their bindings seal, and their first input, as one row to store.

use data_encoding::HEXLOWER;
use proofhouse_agent::task::{TaskOptions, User};
use proofhouse_manifest::{Agent, Receive};
use proofhouse_store::model::{AllowEntry, DirectDelivery, NewInterest, NewPoll, NewTask};
use proofhouse_tools::receive::timeout::{effective_timeout, is_included};
use proofhouse_wire::trace::TraceParent;
use serde_json::{Map, Value, json};

use super::manifests::ManifestSnapshot;
use super::options::EngineOptions;
use super::{EngineError, kept_trace};

/// The most a poll of a new task waits before it looks for the first time: many tasks that begin together do
/// not ask together.
const FIRST_POLL_SPREAD_MS: i64 = 1_000;

/// A task to start.
#[derive(Debug, Clone, Default)]
pub struct TaskRequest {
    /// The namespace of the agent; may be empty where the name says enough.
    pub namespace: String,
    /// The agent.
    pub agent: String,
    /// Who talks to it.
    pub user: User,
    /// What it is told; it waits if nobody says anything.
    pub message: Option<String>,
    /// The parameters of the agent.
    pub parameters: Map<String, Value>,
    /// What begins it, for people: `{"by": "api"}`.
    pub origin: Value,
    /// What it is begun for, if not for the request that is under way.
    pub trace: Option<TraceParent>,
    /// Whether it begins to work though nobody says anything: the agent has words for that.
    pub unasked: bool,
}

/// The request with a namespace: the name of the agent alone says enough where one namespace has it.
pub(super) fn with_namespace(
    snapshot: &ManifestSnapshot,
    mut request: TaskRequest,
) -> Result<TaskRequest, EngineError> {
    if request.namespace.is_empty() {
        let agents = snapshot.catalog().agents();
        let mut named = agents.filter(|agent| agent.name == request.agent);
        request.namespace = match (named.next(), named.next()) {
            (Some(agent), None) => agent.namespace.clone(),
            (Some(_), Some(_)) => {
                return Err(EngineError::Invalid(format!(
                    "several namespaces have an agent `{}`: say which",
                    request.agent
                )));
            }
            (None, _) => {
                return Err(EngineError::NotFound(format!("agent `{}`", request.agent)));
            }
        };
    }
    Ok(request)
}

/// The row of a new task.
pub(super) fn build(
    snapshot: &ManifestSnapshot,
    options: &EngineOptions,
    request: TaskRequest,
) -> Result<NewTask, EngineError> {
    build_as(random_id(options, "task")?, snapshot, options, request)
}

/// The row of a new task with this id.
pub(super) fn build_as(
    id: String,
    snapshot: &ManifestSnapshot,
    options: &EngineOptions,
    request: TaskRequest,
) -> Result<NewTask, EngineError> {
    let Some(agent) = snapshot.agent(&request.namespace, &request.agent) else {
        let agent = format!("{}/{}", request.namespace, request.agent);
        return Err(EngineError::NotFound(format!("agent `{agent}`")));
    };
    check(&agent, &request)?;
    let task = TaskOptions {
        id: id.clone(),
        user: request.user.clone(),
        ..TaskOptions::default()
    };
    let mut first = request.parameters.clone();
    if let Some(message) = &request.message {
        first.insert("message".to_owned(), message.clone().into());
    }
    let sealed = snapshot.host.sealed(&agent, &task, &first);
    let sealed = sealed.entries().filter_map(|entry| {
        Some(AllowEntry {
            tool: snapshot.resolve(&agent, &entry.tool)?,
            name: entry.name,
            value: entry.value,
            sealed: entry.sealed,
        })
    });
    let (interests, polls) = listening(snapshot, options, &agent);
    let trace = request.trace.or_else(TraceParent::current);
    let mut origin = request.origin;
    kept_trace::note(&mut origin, trace);
    let works = request.unasked || request.message.is_some() || !request.parameters.is_empty();
    let first = works.then(|| DirectDelivery {
        key: Some("first".to_owned()),
        name: "message".to_owned(),
        body: {
            let mut body = json!({"message": request.message, "parameters": request.parameters});
            kept_trace::note(&mut body, trace);
            body
        },
        same: Vec::new(),
    });
    Ok(NewTask {
        id,
        agent_namespace: agent.namespace.clone(),
        agent_name: agent.name.clone(),
        model: agent.model.clone(),
        user_id: request.user.id,
        user_email: request.user.email,
        params: Value::Object(request.parameters),
        origin,
        interests,
        sealed: sealed.collect(),
        polls,
        first,
    })
}

/// An input that does not fit is refused before there is a task.
fn check(agent: &Agent, request: &TaskRequest) -> Result<(), EngineError> {
    let declared = agent.parameters.properties();
    let mut given = request.parameters.clone();
    if let Some(message) = &request.message
        && declared.contains_key("message")
    {
        given.insert("message".to_owned(), message.clone().into());
    }
    if request.message.is_none() && given.is_empty() {
        return Ok(());
    }
    match agent.parameters.complete(given) {
        Ok(_) => Ok(()),
        Err(problems) => Err(EngineError::Invalid(format!(
            "the input does not fit: {}",
            problems.join("; ")
        ))),
    }
}

/// The events a task of an agent wants, and those among them that are asked for.
fn listening(
    snapshot: &ManifestSnapshot,
    options: &EngineOptions,
    agent: &Agent,
) -> (Vec<NewInterest>, Vec<NewPoll>) {
    let (mut interests, mut polls) = (Vec::new(), Vec::new());
    for (reference, grant) in &agent.capabilities {
        let Some(tool) = snapshot.resolve(agent, reference) else {
            continue;
        };
        let Some(compiled) = snapshot.tool(&tool) else {
            continue;
        };
        let rules = grant.capability.as_ref();
        for event in &compiled.tool.events {
            let known =
                |interest: &NewInterest| interest.tool == tool && interest.event == event.name;
            if !is_included(rules, &event.name) || interests.iter().any(known) {
                continue;
            }
            let timeout = effective_timeout(rules, event, options.max_timeout);
            interests.push(NewInterest {
                tool: tool.clone(),
                event: event.name.clone(),
                timeout_ms: timeout
                    .map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)),
            });
            if let Receive::Poll(_) = &event.receive {
                polls.push(NewPoll {
                    tool: tool.clone(),
                    event: event.name.clone(),
                    due_in_ms: chance(options, FIRST_POLL_SPREAD_MS),
                });
            }
        }
    }
    (interests, polls)
}

/// A name that nobody can guess.
pub(super) fn random_id(options: &EngineOptions, prefix: &str) -> Result<String, EngineError> {
    let mut bytes = [0_u8; 16];
    if !(options.random)(&mut bytes) {
        let message = "the system gives no random numbers".to_owned();
        return Err(EngineError::Unavailable(message));
    }
    Ok(format!("{prefix}-{}", HEXLOWER.encode(&bytes)))
}

/// A random number below this.
pub(super) fn chance(options: &EngineOptions, below: i64) -> i64 {
    let mut bytes = [0_u8; 4];
    if (options.random)(&mut bytes) {
        i64::from(u32::from_le_bytes(bytes)) % below.max(1)
    } else {
        0
    }
}
