//! What the tests of tasks share: a model that does what a test says, and hosts of small agents.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_agent::model::{
    ChatMessage, Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelSink, ToolCall,
    Usage,
};
use proofhouse_agent::task::{Host, Task, TaskOptions, User};
use proofhouse_manifest::{Bundle, Catalog};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

type Answer = dyn Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync;

/// A model that answers as a function says, and keeps what it was asked.
pub(crate) struct Puppet {
    answer: Box<Answer>,
    pub(crate) asked: Mutex<Vec<ModelRequest>>,
}

impl Puppet {
    pub(crate) fn new(
        answer: impl Fn(&ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            asked: Mutex::default(),
        })
    }

    /// Calls functions at its first turn after an input, and then says `done`.
    pub(crate) fn calling(calls: Vec<(&'static str, Value)>) -> Arc<Self> {
        Self::new(move |request| {
            let answered = matches!(request.messages.last(), Some(ChatMessage::Tool { .. }));
            Ok(if answered { say("done") } else { call(&calls) })
        })
    }
}

pub(crate) fn say(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        usage: Usage {
            prompt: 10,
            completion: 5,
        },
        model: "puppet".to_owned(),
        ..ModelReply::default()
    }
}

pub(crate) fn call(calls: &[(&str, Value)]) -> ModelReply {
    let calls = calls.iter().enumerate().map(|(at, (name, arguments))| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        ToolCall::new(format!("call-{at}"), *name, arguments)
    });
    ModelReply {
        calls: calls.collect(),
        ..say("")
    }
}

impl Model for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.asked
            .lock()
            .expect("nobody panicked")
            .push(request.clone());
        let reply = (self.answer)(request);
        if let Ok(reply) = &reply {
            events.event(ModelEvent::Text(reply.text.clone()));
        }
        Box::pin(async { reply })
    }
}

/// Tools that answer with what they were called with.
pub(crate) const TOOLS: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: demo
name: notes
description: Keeps notes.
parameters: {properties: {owner: {type: string, default: nobody}}}
actions:
  - name: read
    description: Reads a note.
    parameters: {properties: {path: {type: string}}}
    execute: {cel: {expression: "{'owner': input.owner, 'path': input.path}"}}
  - name: write
    description: Writes a note.
    parameters: {properties: {path: {type: string}, text: {type: string, default: ''}}}
    execute: {cel: {expression: "{'written': input.path, 'by': input.owner}"}}
  - name: fail
    description: Always fails.
    execute: {cel: {expression: "1 / 0"}}
---
kind: commonagents.info/v1beta2/tool
namespace: demo
name: audit-log
description: Keeps track.
actions:
  - name: record
    description: Records an event.
    parameters: {properties: {what: {type: string}}}
    execute: {cel: {expression: "input.what"}}
---
"#;

pub(crate) fn host(manifests: &str, model: Arc<dyn Model>) -> Host {
    let (bundle, findings) = Bundle::read(manifests);
    let wrong: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == DiagnosticSeverity::Error)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut catalog = Catalog::default();
    catalog.add(&bundle);
    let limits = ToolLimits {
        outage: std::time::Duration::ZERO,
        ..ToolLimits::default()
    };
    let loopback = "127.0.0.0/8".parse().expect("a network");
    let runtimes = Runtimes::new(&limits, EgressPolicy::allowing([loopback])).expect("a client");
    let settings = json!({"api_key": "sk-0123456789abcdef"});
    let environment = Environment::new(settings, || "2026-01-02T03:04:05.000Z".to_owned());
    Host::new(catalog, runtimes, limits, environment, model)
}

/// An agent named `clerk`, with the tools above.
pub(crate) fn agent(rest: &str) -> String {
    format!(
        "{TOOLS}kind: commonagents.info/v1beta2/agent\nnamespace: demo\nname: clerk\n\
         description: Helps.\nprompt: You help.\n{rest}"
    )
}

pub(crate) fn start(manifests: &str, model: Arc<dyn Model>) -> Task {
    let options = TaskOptions {
        id: "task-1".to_owned(),
        user: User {
            id: "u1".to_owned(),
            email: Some("u1@example.com".to_owned()),
        },
        ..TaskOptions::default()
    };
    host(manifests, model)
        .start("demo", "clerk", options)
        .expect("the task begins")
}
