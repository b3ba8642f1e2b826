//! Previews: what a call would send is shown with secrets masked, and nothing is sent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofhouse_manifest::{BackendKind, Bundle};
use proofhouse_tools::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Invocation,
    Preview, Runtimes, ToolTask,
};
use serde_json::{Value, json};

use crate::support::*;

/// A runtime that needs a cluster or a server, and that a preview may not initialize.
struct Untouched(Arc<dyn ActionRuntime>);

impl ActionRuntime for Untouched {
    fn initialize<'a>(
        &'a self,
        _: &'a ActionCall,
        _: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        unreachable!("a preview initializes nothing")
    }

    fn completes_actions(&self) -> bool {
        self.0.completes_actions()
    }

    fn preview(&self, preview: Preview<'_>) -> Result<Value, ActionError> {
        self.0.preview(preview)
    }
}

/// The same runtimes; that of the kind may not be initialized.
fn untouched(runtimes: Runtimes, kind: BackendKind) -> Runtimes {
    let real = Arc::clone(runtimes.get(kind).expect("a runtime"));
    runtimes.with(kind, Arc::new(Untouched(real)))
}

const HEAD: &str = "
kind: commonagents.info/v1beta2/tool
namespace: demo
name: t
description: T.
settings:
  properties:
    api_key: {format: password}
    host: {default: 'http://127.0.0.1:9'}
parameters:
  properties:
    x: {type: string}
    n: {type: integer, default: 2}
";

fn preview(rest: &str, action: &str, arguments: &Value) -> Result<Value, ActionError> {
    let (bundle, findings) = Bundle::read(&format!("{HEAD}{rest}"));
    assert!(findings.is_empty(), "{findings:?}");
    let tool = Arc::new(bundle.tools().next().expect("a tool").clone());
    let mut runtimes = Runtimes::new(&limits(), loopback()).expect("the client is set up");
    for kind in [BackendKind::OpenApi, BackendKind::Mcp] {
        runtimes = untouched(runtimes, kind);
    }
    let environment = Environment::new(json!({"api_key": "sk-secret/1"}), || "NOW".to_owned());
    let task = ToolTask::new(tool, environment, runtimes, limits());
    let shown = task.preview(Invocation {
        action: action.to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
        ..Invocation::default()
    });
    let text = match &shown {
        Ok(shown) => shown.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(!text.contains("sk-secret"), "{text}");
    shown
}

fn one_action(execute: &str) -> String {
    format!("actions: [{{name: go, description: Goes., execute: {{{execute}}}}}]\n")
}

#[test]
fn every_backend_says_what_it_would_do() {
    let args = json!({"x": "a b"});
    let cases = [
        (
            one_action("cel: {expression: 'input.n'}"),
            json!({
                "runtime": "cel",
                "expression": "input.n",
                "variables": {"context": null, "input": {"x": "a b", "n": 2}, "now": "NOW", "runtime": {}},
            }),
        ),
        (
            one_action(
                "stateless_http: {method: POST, url: '{settings.host}/v/{x}?k={settings.api_key}&t={auth.git()}', \
                 headers: {Authorization: 'Bearer {auth.git()}', X-Key: '{settings.api_key}'}, \
                 body: {n: '{n}', key: '{settings.api_key}'}}",
            ),
            json!({"runtime": "stateless_http", "request": {
                "method": "POST",
                "url": "http://127.0.0.1:9/v/a%20b?k=[redacted]&t=[redacted]",
                "headers": {
                    "authorization": "Bearer [redacted]",
                    "x-key": "[redacted]",
                    "content-type": "application/json",
                },
                "body": {"n": 2, "key": "[redacted]"},
            }}),
        ),
        (
            one_action(
                "stateless_http: {method: POST, url: '{settings.host}/f', \
                 headers: {Content-Type: application/x-www-form-urlencoded}, \
                 body: {n: '{n}', x: '{x}', key: '{settings.api_key}', token: '{auth.git()}', \
                 list: [a&b, {c: 1}], none: null}}",
            ),
            json!({"runtime": "stateless_http", "request": {
                "method": "POST",
                "url": "http://127.0.0.1:9/f",
                "headers": {"content-type": "application/x-www-form-urlencoded"},
                "body": "n=2&x=a+b&key=[redacted]&token=[redacted]&list=a%26b&list=%7B%22c%22%3A1%7D",
            }}),
        ),
        (
            one_action(
                "stateful_session: {create: {method: POST, url: '{settings.host}/s'}, extract: {id: $.id}, \
                 execute: {method: POST, url: '{settings.host}/s/{session.id}', body: {x: '{x}'}}, \
                 destroy: {method: DELETE, url: '{settings.host}/s/{session.id}'}}",
            ),
            json!({"runtime": "stateful_session", "requests": {
                "create": {"method": "POST", "url": "http://127.0.0.1:9/s", "headers": {}},
                "execute": {
                    "method": "POST", "url": "http://127.0.0.1:9/s/{session.id}",
                    "headers": {"content-type": "application/json"}, "body": {"x": "a b"},
                },
                "destroy": {"method": "DELETE", "url": "http://127.0.0.1:9/s/{session.id}", "headers": {}},
            }}),
        ),
        (
            "mcp: {transport: stdio, command: server, args: ['--key={settings.api_key}'], env: {K: '{settings.api_key}'}}\n"
                .to_owned(),
            json!({
                "runtime": "mcp",
                "server": {
                    "transport": "stdio", "command": "server", "args": ["--key=[redacted]"],
                    "env": {"K": "[redacted]"},
                },
                "tool": "go",
                "arguments": {"x": "a b"},
            }),
        ),
        (
            "openapi: {url: 'https://api.example.com/openapi.json', headers: {X-Key: '{settings.api_key}'}}\n"
                .to_owned(),
            json!({
                "runtime": "openapi",
                "description": {
                    "url": "https://api.example.com/openapi.json", "headers": {"x-key": "[redacted]"},
                },
                "operation": "go",
                "arguments": {"x": "a b"},
            }),
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(preview(&rest, "go", &args).expect(&rest), expected);
    }
}

#[test]
fn a_job_is_shown_with_its_values() {
    let rest = one_action(
        "kubernetes_job: {namespace: jobs, spec: {template: {spec: {containers: \
         [{name: c, image: busybox, args: ['{x}', '{settings.api_key}']}]}}}}",
    );
    // The runtime may say more about the Job it would make; what the manifest says is there.
    let (bundle, _) = Bundle::read(&format!("{HEAD}{rest}"));
    let tool = Arc::new(bundle.tools().next().expect("a tool").clone());
    let runtimes = Runtimes::new(&limits(), loopback()).expect("the client is set up");
    let runtimes = untouched(runtimes, BackendKind::KubernetesJob);
    let environment = Environment::new(json!({"api_key": "sk-secret/1"}), || "NOW".to_owned());
    let task = ToolTask::new(tool, environment, runtimes, limits());
    let shown = task.preview(Invocation {
        action: "go".to_owned(),
        arguments: [("x".to_owned(), json!("hello"))].into_iter().collect(),
        ..Invocation::default()
    });
    let shown = shown.expect("a preview");
    assert_eq!(shown["namespace"], "jobs");
    let container = &shown["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["hello", "[redacted]"]));
}

#[test]
fn what_would_fail_before_sending_fails() {
    let http = one_action("stateless_http: {method: GET, url: '{settings.host}/{x}'}");
    for (rest, action, arguments, failure, words) in [
        (&http, "go", json!({}), ActionFailure::Arguments, "x"),
        (
            &http,
            "go",
            json!({"x": ".."}),
            ActionFailure::Arguments,
            "refused",
        ),
        (
            &http,
            "gp",
            json!({}),
            ActionFailure::Arguments,
            "did you mean `go`?",
        ),
    ] {
        let error = preview(rest, action, &arguments).expect_err(words);
        assert_eq!(error.failure, failure, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}
