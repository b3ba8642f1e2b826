//! One row per runtime: a real peer, a tool that works, fails and hangs there, and what the peer can tell of it.

pub(crate) mod cluster;
pub(crate) mod expression;
pub(crate) mod process;
pub(crate) mod web;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_manifest::{Bundle, Tool};
use proofhouse_tools::runtime::{ActionFailure, Runtimes, ToolLimits, ToolTask};
use serde_json::Value;

use crate::support;

/// The setting that must never be seen.
pub(crate) const SECRET: &str = "sk-secret/1";

/// What the action of a tool is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Answers with what it was given, and with the secret it was trusted with.
    Work,
    /// Fails in a way that the model is told.
    Fail,
    /// Waits until it is cancelled.
    Hang,
}

/// A peer, and tools that use it.
pub(crate) trait Peer: Send + Sync {
    /// A new task of a tool that can be used.
    fn task(&self) -> ToolTask;

    /// A new task of a tool that cannot be used, and why not.
    fn broken(&self) -> (ToolTask, ActionFailure);

    /// The action that does something, and its arguments with a text. Nothing if no action of this runtime
    /// can do it.
    fn call(&self, does: Does, text: &str) -> Option<(&'static str, Value)>;

    /// What a failing call fails with.
    fn failure(&self) -> ActionFailure;

    /// How often the peer was made ready for a task, where it can tell.
    fn initialized(&self) -> Option<usize> {
        None
    }

    /// How often the peer saw the end of a task, where it can tell.
    fn torn_down(&self) -> Option<usize> {
        None
    }

    /// How many calls the peer is busy with.
    fn running(&self) -> usize {
        0
    }
}

type Start = fn() -> BoxFuture<'static, Box<dyn Peer>>;

/// Every runtime, by its key in manifests.
pub(crate) const ROWS: [(&str, Start); 6] = [
    ("cel", || Box::pin(expression::start())),
    ("stateless_http", || Box::pin(web::stateless())),
    ("stateful_session", || Box::pin(web::session())),
    ("openapi", || Box::pin(web::described())),
    ("mcp", || Box::pin(process::start())),
    ("kubernetes_job", || Box::pin(cluster::start())),
];

/// A tool with the settings of the tests, the parameter `x` if it declares actions, and these blocks.
pub(crate) fn tool(blocks: &str) -> Arc<Tool> {
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: t\ndescription: d\n\
         settings: {{properties: {{api_key: {{}}, region: {{}}}}}}\n{blocks}\n"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}\n{text}");
    Arc::new(bundle.tools().next().expect("a tool").clone())
}

/// The actions `work`, `fail` and `hang` with these `execute` blocks.
pub(crate) fn actions(execute: impl Fn(&str) -> Option<String>) -> String {
    let mut text = "parameters: {properties: {x: {default: one}}}\nactions:\n".to_owned();
    for name in ["work", "fail", "hang"] {
        if let Some(execute) = execute(name) {
            text.push_str(&format!(
                "  - {{name: {name}, description: d, execute: {{{execute}}}}}\n"
            ));
        }
    }
    text
}

/// The action of the same name as what it does, with the parameter `x`.
pub(crate) fn plainly(does: Does, text: &str) -> (&'static str, Value) {
    let name = match does {
        Does::Work => "work",
        Does::Fail => "fail",
        Does::Hang => "hang",
    };
    (name, serde_json::json!({"x": text}))
}

pub(crate) fn limits() -> ToolLimits {
    ToolLimits {
        http: std::time::Duration::from_secs(20),
        ..support::limits()
    }
}

pub(crate) fn runtimes() -> Runtimes {
    Runtimes::new(&limits(), support::loopback()).expect("the client is set up")
}

pub(crate) fn task(tool: Arc<Tool>, runtimes: Runtimes) -> ToolTask {
    ToolTask::new(tool, support::environment(), runtimes, limits())
}
