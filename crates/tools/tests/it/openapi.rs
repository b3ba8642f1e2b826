//! `openapi` against real servers on the loopback address: descriptions in both notations and versions, what
//! reaches the server, and what must not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the helpers of a test may do what a test may"
)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofhouse_manifest::{Bundle, Tool};
use proofhouse_tools::http::EgressPolicy;
use proofhouse_tools::runtime::{
    ActionError, ActionFailure, ActionResult, Environment, Invocation, Runtimes, TokenError,
    TokenSource, ToolLimits, ToolTask,
};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::support::*;

/// A tool with these blocks at its top level.
fn tool_of(blocks: &str) -> Arc<Tool> {
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: api\ndescription: d\n{blocks}\n"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:#?}");
    Arc::new(bundle.tools().next().unwrap().clone())
}

fn environment_of(settings: Value) -> Environment {
    Environment::new(settings, || "2026-01-02T03:04:05.000Z".to_owned())
}

fn task_of(blocks: &str, environment: Environment) -> ToolTask {
    let runtimes = Runtimes::new(&limits(), loopback()).unwrap();
    ToolTask::new(tool_of(blocks), environment, runtimes, limits())
}

/// A tool whose description is at the server.
fn derived(server: &Server, settings: Value) -> ToolTask {
    let block = format!("openapi: {{url: \"http://127.0.0.1:{}/api\"}}", server.port);
    task_of(&block, environment_of(settings))
}

async fn call(
    task: &ToolTask,
    action: &str,
    arguments: Value,
) -> Result<ActionResult, ActionError> {
    let arguments = arguments.as_object().cloned().unwrap();
    task.invoke(action, arguments, json!({}), CancellationToken::new())
        .await
}

/// Serves a description at `/api`, and answers everything else.
async fn serve(
    description: &Value,
    answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> Server {
    let description = description.clone();
    Server::start(move |_, request| {
        if request.starts_with("GET /api ") {
            json_reply(&description)
        } else {
            answer(request)
        }
    })
    .await
}

fn ok(_: &str) -> Reply {
    json_reply(&json!({"ok": true}))
}

fn pets(version: &str) -> Value {
    let nullable = if version.starts_with("3.0") {
        json!({"type": "string", "nullable": true})
    } else {
        json!({"type": ["string", "null"]})
    };
    json!({
        "openapi": version,
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "/v1"}],
        "paths": {"/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
            "get": {"operationId": "pet.read", "summary": "Reads a pet.", "parameters": [
                {"name": "fields", "in": "query", "explode": false,
                 "schema": {"type": "array", "items": {"type": "string"}}},
            ]},
            "put": {"operationId": "pet.write", "requestBody": {"required": true, "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}},
            }}},
        }},
        "components": {"schemas": {"Pet": {
            "type": "object", "required": ["id", "name"],
            "properties": {
                "id": {"type": "integer", "readOnly": true}, "name": nullable,
                "parent": {"$ref": "#/components/schemas/Pet"},
            },
        }}},
    })
}

#[tokio::test]
async fn both_versions_in_both_notations() {
    for version in ["3.0.3", "3.1.0"] {
        let json = pets(version).to_string();
        let yaml = proofhouse_source::to_yaml(&pets(version));
        for (media, text) in [("application/json", json), ("application/yaml", yaml)] {
            let server = Server::start(move |_, request| {
                if request.starts_with("GET /api ") {
                    return reply("200 OK", &format!("content-type: {media}\r\n"), &text);
                }
                ok(request)
            })
            .await;
            let task = derived(&server, json!({}));
            let actions = task.actions(CancellationToken::new()).await.unwrap();
            let names: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
            assert_eq!(names, ["pet_read", "pet_write"], "{version} {media}");
            assert_eq!(actions[0].description, "Reads a pet.");
            let schema = actions[1].parameters.json_schema();
            assert_eq!(
                schema["$defs"]["Pet"]["properties"]["name"],
                json!({"type": ["string", "null"]})
            );
            assert_eq!(schema["$defs"]["Pet"]["required"], json!(["name"]));

            call(&task, "pet_read", json!({"id": 7, "fields": ["a", "b&c"]}))
                .await
                .unwrap();
            let request = server.seen().pop().unwrap();
            assert!(
                request.starts_with("GET /v1/pets/7?fields=a,b%26c HTTP/1.1\r\n"),
                "{request}"
            );
            let body = json!({"name": null, "parent": {"name": "x"}});
            let result = call(&task, "pet.write", json!({"id": 7, "body": body}))
                .await
                .unwrap();
            assert_eq!(result.value, json!({"ok": true}));
            let request = server.seen().pop().unwrap();
            assert!(
                request.starts_with("PUT /v1/pets/7 HTTP/1.1\r\n"),
                "{request}"
            );
            assert!(
                request.ends_with("\r\n\r\n{\"name\":null,\"parent\":{\"name\":\"x\"}}"),
                "{request}"
            );

            for (action, arguments) in [
                ("pet_read", json!({})),
                ("pet_read", json!({"id": "x"})),
                ("pet_read", json!({"id": 1, "other": 2})),
                ("pet_write", json!({"id": 1})),
                ("pet_write", json!({"id": 1, "body": {"name": 3}})),
                ("pet_raed", json!({})),
            ] {
                let error = call(&task, action, arguments).await.unwrap_err();
                assert_eq!(error.failure, ActionFailure::Arguments, "{error}");
            }
            // One description for all of it.
            let fetched = server
                .seen()
                .iter()
                .filter(|request| request.starts_with("GET /api"))
                .count();
            assert_eq!(fetched, 1);
        }
    }
}

#[tokio::test]
async fn an_action_is_the_operation_of_its_name() {
    let server = serve(&pets("3.1.0"), ok).await;
    let blocks = format!(
        "openapi:
  url: \"http://127.0.0.1:{}/api\"
  headers: {{X-Tenant: \"t-{{tenant}}\"}}
parameters: {{properties: {{tenant: {{type: string, default: acme}}}}}}
actions:
  - name: pet.read
    description: Mine.
    parameters: {{properties: {{fields: {{default: [name]}}, id: {{description: Which one.}}}}}}
    execute: {{openapi: {{}}}}
  - name: pet_wriet
    description: d
    execute: {{openapi: {{}}}}",
        server.port
    );
    let task = task_of(&blocks, environment_of(json!({})));
    call(&task, "pet.read", json!({"id": 3})).await.unwrap();
    let request = server.seen().pop().unwrap();
    assert!(
        request.starts_with("GET /v1/pets/3?fields=name HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nx-tenant: t-acme\r\n"), "{request}");
    let error = call(&task, "pet.read", json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Arguments, "{error}");
    let error = call(&task, "pet_wriet", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_manifest: the description has no operation `pet_wriet`; did you mean `pet_write`?"
    );
}

#[tokio::test]
async fn what_the_manifest_declares_is_what_models_see() {
    let server = serve(&pets("3.0.0"), ok).await;
    let blocks = format!(
        "actions:
  - name: pet.read
    description: Mine.
    parameters: {{properties: {{fields: {{default: [name]}}, id: {{description: Which one.}}}}}}
    execute: {{openapi: {{url: \"http://127.0.0.1:{}/api\"}}}}",
        server.port
    );
    let task = task_of(&blocks, environment_of(json!({})));
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    assert_eq!(actions.len(), 1);
    assert_eq!(
        (actions[0].name.as_str(), actions[0].description.as_str()),
        ("pet.read", "Mine.")
    );
    assert_eq!(
        actions[0].parameters.json_schema(),
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer", "description": "Which one."},
                "fields": {"type": "array", "items": {"type": "string"}, "default": ["name"]},
            },
            "required": ["id"],
            "additionalProperties": false,
        })
    );
}

fn secured(scheme: &Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "security": [{"auth": []}],
        "paths": {"/me": {"get": {}}, "/open": {"get": {"security": []}}},
        "components": {"securitySchemes": {"auth": scheme}},
    })
}

/// Answers with the request, so that whatever was sent could be shown.
fn echo(request: &str) -> Reply {
    json_reply(&json!({"request": request}))
}

/// A tool whose manifest grants something to the scheme `auth`.
fn granting(server: &Server, credential: &str, environment: Environment) -> ToolTask {
    let block = format!(
        "settings: {{properties: {{auth: {{}}}}}}\nopenapi: {{url: \"http://127.0.0.1:{}/api\", credentials: {{auth: \"{credential}\"}}}}",
        server.port
    );
    task_of(&block, environment)
}

/// A description chooses the names of its schemes; what it gets is for the manifest to say.
#[tokio::test]
async fn a_description_gets_only_what_its_manifest_grants() {
    let scheme = |name: &str| json!({"type": "apiKey", "in": "header", "name": name});
    let description = json!({
        "openapi": "3.1.0",
        "paths": {"/me": {"get": {"operationId": "get_me"}}},
        "security": [{"api_key": [], "github": []}],
        "components": {"securitySchemes": {"api_key": scheme("X-A"), "github": scheme("X-B")}},
    });
    let server = serve(&description, echo).await;
    let block = format!(
        "settings: {{properties: {{api_key: {{}}}}}}\nopenapi: {{url: \"http://127.0.0.1:{}/api\"}}",
        server.port
    );
    let tokens = Arc::new(Tokens::default());
    let environment = environment_of(json!({"api_key": "sk-secret-1"}));
    let task = task_of(&block, environment.with_tokens(tokens.clone()));
    let error = call(&task, "get_me", json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Setting);
    assert_eq!(
        tokens.given.load(Ordering::SeqCst),
        0,
        "no token was fetched"
    );
    assert_eq!(server.seen().len(), 1, "only the description was fetched");
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    for (scheme, settings, sent) in [
        (
            json!({"type": "apiKey", "in": "header", "name": "X-Key"}),
            json!({"auth": "sk-secret-1"}),
            "\r\nx-key: sk-secret-1\r\n",
        ),
        (
            json!({"type": "apiKey", "in": "query", "name": "key"}),
            json!({"auth": "sk-secret-1&"}),
            "GET /me?key=sk-secret-1%26 HTTP/1.1\r\n",
        ),
        (
            json!({"type": "apiKey", "in": "cookie", "name": "sid"}),
            json!({"auth": "sk-secret-1"}),
            "\r\ncookie: sid=sk-secret-1\r\n",
        ),
        (
            json!({"type": "http", "scheme": "basic"}),
            json!({"auth": "user:sk-secret-1"}),
            "\r\nauthorization: Basic dXNlcjpzay1zZWNyZXQtMQ==\r\n",
        ),
        (
            json!({"type": "oauth2", "flows": {}}),
            json!({"auth": "sk-secret-1"}),
            "\r\nauthorization: Bearer sk-secret-1\r\n",
        ),
    ] {
        let server = serve(&secured(&scheme), echo).await;
        let task = granting(&server, "{settings.auth}", environment_of(settings));
        let shown = call(&task, "get_me", json!({}))
            .await
            .unwrap()
            .value
            .to_string();
        let request = server.seen().pop().unwrap();
        assert!(request.contains(sent), "{request}");
        assert!(shown.contains("[redacted]"), "{shown}");
        assert!(
            !shown.contains("sk-secret") && !shown.contains("zay1zZWNyZX"),
            "{shown}"
        );
        call(&task, "get_open", json!({})).await.unwrap();
        let request = server.seen().pop().unwrap();
        assert!(!request.contains("sk-secret"), "{request}");
    }
}

#[tokio::test]
async fn missing_credentials_end_the_task_before_anything_is_sent() {
    let server = serve(&secured(&json!({"type": "http", "scheme": "bearer"})), ok).await;
    let task = derived(&server, json!({"other": "x"}));
    let error = call(&task, "get_me", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "missing_setting: `get_me` needs credentials; configure `openapi.credentials.auth` in the manifest, \
         such as \"{settings.name}\" or \"{auth.name()}\""
    );
    assert!(!error.is_recoverable());
    assert_eq!(server.seen().len(), 1);
    // A header of the manifest is as good.
    let block = format!(
        "settings: {{properties: {{mine: {{}}}}}}\nopenapi: {{url: \"http://127.0.0.1:{}/api\", headers: {{Authorization: \"Bearer {{settings.mine}}\"}}}}",
        server.port
    );
    let task = task_of(&block, environment_of(json!({"mine": "token-1"})));
    call(&task, "get_me", json!({})).await.unwrap();
    assert!(
        server
            .seen()
            .pop()
            .unwrap()
            .contains("\r\nauthorization: Bearer token-1\r\n")
    );
}

#[derive(Default)]
struct Tokens {
    given: AtomicUsize,
}

impl TokenSource for Tokens {
    fn token<'a>(&'a self, _: &'a str, fresh: bool) -> BoxFuture<'a, Result<String, TokenError>> {
        self.given.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(if fresh { "fresh-token" } else { "stale-token" }.to_owned()) })
    }
}

#[tokio::test]
async fn a_refused_token_is_fetched_anew_once() {
    let scheme = json!({"type": "openIdConnect"});
    let server = serve(&secured(&scheme), |request| {
        if request.contains("Bearer fresh-token") {
            echo(request)
        } else {
            reply("401 Unauthorized", "", "not stale-token")
        }
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let environment = environment_of(json!({})).with_tokens(tokens.clone());
    let task = granting(&server, "{auth.hub()}", environment);
    let shown = call(&task, "get_me", json!({}))
        .await
        .unwrap()
        .value
        .to_string();
    assert!(
        shown.contains("Bearer [redacted]") && !shown.contains("fresh-token"),
        "{shown}"
    );
    assert_eq!(tokens.given.load(Ordering::SeqCst), 2);

    let server = serve(&secured(&scheme), |_| {
        reply("401 Unauthorized", "", "no fresh-token")
    })
    .await;
    let environment = environment_of(json!({})).with_tokens(Arc::new(Tokens::default()));
    let task = granting(&server, "{auth.hub()}", environment);
    let error = call(&task, "get_me", json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::HttpStatus);
    assert_eq!(error.detail["body"], "no [redacted]");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn files_are_read_beside_the_manifest() {
    let server = Server::start(|_, request| ok(request)).await;
    let directory = std::env::temp_dir().join(format!("proofhouse-openapi-{}", std::process::id()));
    let inside = directory.join("manifests");
    std::fs::create_dir_all(inside.join("apis")).unwrap();
    std::fs::write(
        inside.join("apis/pets.yaml"),
        proofhouse_source::to_yaml(&pets("3.1.0")),
    )
    .unwrap();
    std::fs::write(directory.join("outside.json"), pets("3.1.0").to_string()).unwrap();
    std::os::unix::fs::symlink("../outside.json", inside.join("link.json")).unwrap();
    let settings = json!({"server_url": format!("http://127.0.0.1:{}/base", server.port)});
    let with = |url: &str, base: Option<&Path>, settings: &Value| {
        let environment = environment_of(settings.clone());
        let environment = match base {
            Some(base) => environment.with_base(base),
            None => environment,
        };
        task_of(&format!("openapi: {{url: \"{url}\"}}"), environment)
    };
    for url in [
        "file:./apis/pets.yaml",
        "apis/pets.yaml",
        "./apis/pets.yaml",
        "file:apis/pets.yaml",
    ] {
        let task = with(url, Some(&inside), &settings);
        call(&task, "pet_read", json!({"id": 1})).await.unwrap();
        let request = server.seen().pop().unwrap();
        assert!(
            request.starts_with("GET /base/pets/1 HTTP/1.1\r\n"),
            "{request}"
        );
    }
    for (url, base, settings, message) in [
        (
            "apis/pets.yaml",
            None,
            &settings,
            "it is not known where the manifest is",
        ),
        (
            "link.json",
            Some(inside.as_path()),
            &settings,
            "must be below the manifest's directory",
        ),
        (
            "nothing.json",
            Some(&inside),
            &settings,
            "`nothing.json`: No such file",
        ),
        ("apis", Some(&inside), &settings, "`apis` is not a file"),
        (
            "apis/pets.yaml",
            Some(&inside),
            &json!({}),
            "configure the setting `server_url`",
        ),
    ] {
        let error = call(&with(url, base, settings), "pet_read", json!({"id": 1}))
            .await
            .unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert!(!error.is_recoverable());
    }
    std::fs::remove_dir_all(&directory).unwrap();
    for url in [
        "../outside.json",
        "file:/etc/passwd",
        "file:///etc/passwd",
        "a/../../b",
        "file:{settings.x}",
    ] {
        let text = format!(
            "kind: commonagents.info/v1/tool\nnamespace: n\nname: t\ndescription: d\nopenapi: {{url: \"{url}\"}}"
        );
        let (_, findings) = Bundle::read(&text);
        assert!(
            findings.iter().any(|finding| finding.code == "TM-013"),
            "{url}: {findings:?}"
        );
    }
}

#[tokio::test]
async fn the_rules_of_egress_hold_for_descriptions_and_servers() {
    let server = serve(&pets("3.1.0"), ok).await;
    let block = format!("openapi: {{url: \"http://127.0.0.1:{}/api\"}}", server.port);
    let runtimes = Runtimes::new(&limits(), EgressPolicy::default()).unwrap();
    let task = ToolTask::new(
        tool_of(&block),
        environment_of(json!({})),
        runtimes,
        limits(),
    );
    let error = call(&task, "pet_read", json!({"id": 1})).await.unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::EgressDenied, false)
    );
    assert_eq!(server.seen().len(), 0);

    let mut elsewhere = pets("3.1.0");
    elsewhere["servers"] = json!([{"url": "http://169.254.169.254/latest"}]);
    let server = serve(&elsewhere, ok).await;
    let error = call(&derived(&server, json!({})), "pet_read", json!({"id": 1}))
        .await
        .unwrap_err();
    assert_eq!(
        (error.failure, error.is_recoverable()),
        (ActionFailure::EgressDenied, false)
    );
}

#[tokio::test]
async fn descriptions_that_cannot_be_had_are_told() {
    let html = "content-type: text/html\r\n";
    for (answer, failure, message) in [
        (
            reply("404 Not Found", "", "gone"),
            ActionFailure::Manifest,
            "HTTP 404",
        ),
        (
            reply("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
            ActionFailure::Manifest,
            "HTTP 302",
        ),
        (
            reply("500 Oh", "", "later"),
            ActionFailure::HttpStatus,
            "HTTP 500",
        ),
        (
            reply("200 OK", html, "<!doctype html>\n<p>: ["),
            ActionFailure::Manifest,
            "cannot be used",
        ),
        (
            reply("200 OK", "", "{\"swagger\": \"2.0\"}"),
            ActionFailure::Manifest,
            "Swagger 2.0",
        ),
        (
            Reply::Silence,
            ActionFailure::Timeout,
            "fetching the OpenAPI description",
        ),
    ] {
        let answer = Mutex::new(Some(answer));
        let server = Server::start(move |_, _| match answer.lock().unwrap().take() {
            Some(first) => first,
            None => json_reply(&pets("3.1.0")),
        })
        .await;
        let task = derived(&server, json!({}));
        let error = call(&task, "pet_read", json!({"id": 1})).await.unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
        assert!(error.message.contains(message), "{error}");
        // What may get well is tried again at the next call; what is wrong stays wrong.
        let second = call(&task, "pet_read", json!({"id": 1})).await;
        assert_eq!(second.is_ok(), error.is_recoverable());
    }
}

#[tokio::test]
async fn a_description_without_end_is_given_up() {
    static PIECE: &[u8] = &[b' '; 1 << 16];
    let server = Server::start(|_, _| Reply::Endless(PIECE, Duration::ZERO)).await;
    let limits = ToolLimits {
        http: Duration::from_secs(60),
        ..limits()
    };
    let runtimes = Runtimes::new(&limits, loopback()).unwrap();
    let block = format!("openapi: {{url: \"http://127.0.0.1:{}/api\"}}", server.port);
    let task = ToolTask::new(tool_of(&block), environment_of(json!({})), runtimes, limits);
    let error = call(&task, "get_a", json!({})).await.unwrap_err();
    assert_eq!(error.failure, ActionFailure::Manifest);
    assert!(
        error.message.contains("more than 33554432 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn a_post_that_may_have_had_its_effect_is_not_repeated() {
    let description = json!({"openapi": "3.0.0", "paths": {"/a": {"post": {}, "get": {}}}});
    let server = serve(&description, |_| Reply::Close).await;
    for (action, tries, unknown) in [("post_a", 1, true), ("get_a", 3, false)] {
        let task = derived(&server, json!({}));
        let before = server.seen().len();
        let error = call(&task, action, json!({})).await.unwrap_err();
        assert_eq!(
            (error.failure, error.outcome_unknown),
            (ActionFailure::Broken, unknown),
            "{error}"
        );
        assert_eq!(server.seen().len() - before - 1, tries, "{action}");
    }
}

#[tokio::test]
async fn broken_operations_are_left_out_and_the_others_work() {
    let mut description = pets("3.1.0");
    description["paths"]["/broken"] = json!({"get": {"parameters": [{"$ref": "other.yaml#/p"}]}});
    let server = serve(&description, ok).await;
    let task = derived(&server, json!({}));
    assert_eq!(
        task.actions(CancellationToken::new()).await.unwrap().len(),
        2
    );
    let error = call(&task, "get_broken", json!({})).await.unwrap_err();
    assert!(error.message.contains("leads nowhere"), "{error}");
    call(&task, "pet_read", json!({"id": 1})).await.unwrap();
}

/// Keeps what is warned of.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::field::Visit for Warnings {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, about: &tracing::Metadata<'_>) -> bool {
        *about.level() == tracing::Level::WARN && about.target().contains("openapi")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_response_that_breaks_its_schema_warns_only() {
    let description = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {
        "application/json": {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }}}}}}});
    let server = serve(&description, |_| json_reply(&json!({"n": "private"}))).await;
    let warnings = Warnings::default();
    let _watching = tracing::subscriber::set_default(warnings.clone());
    let task = derived(&server, json!({}));
    let result = call(&task, "get_a", json!({})).await.unwrap();
    assert_eq!(result.value, json!({"n": "private"}));
    let told = warnings.0.lock().unwrap().join("\n");
    assert!(
        told.contains("violation=/n: ") && told.contains("operation=get_a"),
        "{told}"
    );
    assert!(!told.contains("private"), "{told}");
}

#[tokio::test]
async fn bodies_of_other_kinds_arrive() {
    let schema = json!({"properties": {"file": {"type": "string", "format": "binary"}, "note": {"type": "string"}}});
    let body = |media: &str| json!({"requestBody": {"content": {media: {"schema": schema}}}});
    let description = json!({"openapi": "3.0.0", "paths": {"/a": {
        "post": body("multipart/form-data"), "put": body("application/x-www-form-urlencoded"),
        "patch": {"requestBody": {"content": {"application/octet-stream": {}}}},
    }}});
    let server = serve(&description, ok).await;
    let task = derived(&server, json!({}));
    let given = json!({"body": {"file": "aGVsbG8=", "note": "x y"}});
    call(&task, "post_a", given).await.unwrap();
    let request = server.seen().pop().unwrap();
    assert!(
        request.contains("\r\ncontent-type: multipart/form-data; boundary=proofhouse-"),
        "{request}"
    );
    assert!(
        request.contains(
            "filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\nhello\r\n"
        ),
        "{request}"
    );
    call(&task, "put_a", json!({"body": {"note": "x y"}}))
        .await
        .unwrap();
    assert!(server.seen().pop().unwrap().ends_with("\r\n\r\nnote=x%20y"));
    call(&task, "patch_a", json!({"body": "aGVsbG8="}))
        .await
        .unwrap();
    let request = server.seen().pop().unwrap();
    assert!(
        request.contains("\r\ncontent-type: application/octet-stream\r\n"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    let error = call(&task, "patch_a", json!({"body": "***"}))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "bad_arguments: the body: this is not base64"
    );
}

/// A description of many operations: `read_0`, `read_1` and so on, in two tags.
fn large(count: usize) -> Value {
    let paths = (0..count).map(|number| {
        let tag = if number % 2 == 0 { "even" } else { "odd" };
        let operation = json!({
            "operationId": format!("read_{number}"), "tags": [tag],
            "summary": if number == 77 { "Brews coffee for everybody." } else { "Reads something." },
            "parameters": [{"name": "size", "in": "query", "required": true, "schema": {"type": "integer"}}],
        });
        (format!("/{tag}/{number}"), json!({"get": operation}))
    });
    let paths: serde_json::Map<String, Value> = paths.collect();
    json!({"openapi": "3.1.0", "servers": [{"url": "/"}], "paths": paths})
}

async fn names(task: &ToolTask) -> Vec<String> {
    let actions = task.actions(Default::default()).await.unwrap();
    actions.iter().map(|action| action.name.clone()).collect()
}

#[tokio::test]
async fn operations_are_included_and_excluded() {
    let server = serve(&large(300), ok).await;
    for (filters, expected) in [
        ("include: [read_7], exclude: []", vec!["read_7"]),
        (
            "include: ['read_2*'], exclude: ['/odd/*', 'read_2*0', 'read_2*2', 'read_2*4', 'read_2*6']",
            vec![
                "read_2", "read_28", "read_208", "read_218", "read_228", "read_238", "read_248",
                "read_258", "read_268", "read_278", "read_288", "read_298",
            ],
        ),
        (
            "include: ['tag:odd'], exclude: ['/odd/1*', '/odd/2*', '*3', '*5', '*7']",
            vec![
                "read_9", "read_31", "read_39", "read_41", "read_49", "read_51", "read_59",
                "read_61", "read_69", "read_71", "read_79", "read_81", "read_89", "read_91",
                "read_99",
            ],
        ),
    ] {
        let block = format!(
            "openapi: {{url: \"http://127.0.0.1:{}/api\", {filters}}}",
            server.port
        );
        let found = names(&task_of(&block, environment_of(json!({})))).await;
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, expected, "{filters}");
    }
}

#[tokio::test]
async fn a_large_description_is_searched_and_called() {
    let server = serve(&large(300), echo).await;
    let task = derived(&server, json!({}));
    assert_eq!(names(&task).await, ["search", "call"]);
    let found = call(&task, "search", json!({"query": "brew some coffee"})).await;
    let found = found.unwrap().value;
    let best = &found["operations"][0];
    assert_eq!(
        (&best["operation"], &best["request"]),
        (&json!("read_77"), &json!("GET /odd/77"))
    );
    assert_eq!(best["parameters"]["required"], json!(["size"]));
    let called = json!({"operation": "read_77", "arguments": {"size": 3}});
    call(&task, "call", called).await.unwrap();
    let request = server.seen().pop().unwrap();
    assert!(request.starts_with("GET /odd/77?size=3 "), "{request}");
    for wrong in [
        json!({"operation": "read_77", "arguments": {"size": "many"}}),
        json!({"operation": "read_77"}),
        json!({"operation": "read_999"}),
        json!({}),
    ] {
        let error = call(&task, "call", wrong).await.unwrap_err();
        assert_eq!(error.failure, ActionFailure::Arguments, "{error}");
    }
    // Whoever knows an operation need not search: agents call it by its name, with what they bind.
    call(&task, "read_77", json!({"size": 1})).await.unwrap();
    let wanted = ["read_77".to_owned(), "nope".to_owned()];
    let named = task.actions_named(&wanted, CancellationToken::new());
    let named = named.await.unwrap();
    assert_eq!(named.len(), 1);
}

#[tokio::test]
async fn what_is_bound_goes_only_to_operations_that_have_it() {
    let server = serve(&large(300), echo).await;
    let task = derived(&server, json!({}));
    let invocation = |action: &str, bound: &[&str]| Invocation {
        action: action.to_owned(),
        arguments: json!({"size": 1, "owner": "acme"})
            .as_object()
            .unwrap()
            .clone(),
        bound: bound.iter().map(|name| (*name).to_owned()).collect(),
        ..Invocation::default()
    };
    task.carry_out(invocation("read_77", &["owner"]))
        .await
        .unwrap();
    let error = task
        .carry_out(invocation("read_77", &[]))
        .await
        .unwrap_err();
    assert_eq!(error.failure, ActionFailure::Arguments, "{error}");
}

/// A description in several documents, of which one is elsewhere and one is missing.
#[tokio::test]
async fn a_description_may_be_in_several_documents() {
    let elsewhere = Server::start(|_, _| {
        json_reply(&json!({"Size": {"name": "size", "in": "query", "required": true, "schema": {"type": "integer"}}}))
    })
    .await;
    let place = format!("http://127.0.0.1:{}/shared.json#/Size", elsewhere.port);
    let server = Server::start(move |_, request| {
        if request.starts_with("GET /v1/api ") {
            json_reply(&json!({"openapi": "3.1.0", "paths": {
                "/pets": {"$ref": "paths/pets.json"},
                "/gone": {"get": {"operationId": "gone", "parameters": [{"$ref": "no/such.json#/x"}]}},
            }}))
        } else if request.starts_with("GET /v1/paths/pets.json ") {
            json_reply(&json!({"get": {"operationId": "pets", "parameters": [{"$ref": place}]}}))
        } else if request.starts_with("GET /v1/no/") {
            reply("404 Not Found", "", "")
        } else {
            json_reply(&json!({"ok": true}))
        }
    })
    .await;
    let block = format!(
        "settings: {{properties: {{key: {{type: string}}}}}}\n\
         openapi: {{url: \"http://127.0.0.1:{}/v1/api\", headers: {{X-Key: \"{{settings.key}}\"}}}}",
        server.port
    );
    let task = task_of(&block, environment_of(json!({"key": "k-secret"})));
    assert_eq!(names(&task).await, ["pets"]);
    call(&task, "pets", json!({"size": 3})).await.unwrap();
    assert!(call(&task, "pets", json!({"size": "x"})).await.is_err());
    let seen = server.seen();
    let pets = seen
        .iter()
        .find(|request| request.starts_with("GET /v1/paths/pets.json "));
    assert!(pets.unwrap().contains("k-secret"));
    // Another server does not get what the manifest sends to the first.
    assert!(
        !elsewhere.seen()[0].contains("k-secret"),
        "{:?}",
        elsewhere.seen()
    );
}

#[tokio::test]
async fn documents_beside_the_manifest_stay_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join("tool").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    std::fs::write(
        directory.path().join("secret.yaml"),
        "Size: {name: leak, in: query}\n",
    )
    .unwrap();
    write(
        "api/openapi.yaml",
        "openapi: 3.1.0\nservers: [{url: 'http://127.0.0.1:1'}]\npaths:\n  /a: {get: {operationId: a, parameters: \
         [{$ref: '../common.yaml#/Size'}]}}\n  /b: {get: {operationId: b, parameters: [{$ref: '../../secret.yaml#/Size'}]}}\n  \
         /c: {get: {operationId: c, parameters: [{$ref: 'file:///etc/passwd'}]}}\n",
    );
    write(
        "common.yaml",
        "Size: {name: size, in: query, schema: {type: integer}}\n",
    );
    let environment = environment_of(json!({})).with_base(&directory.path().join("tool"));
    let task = task_of("openapi: {url: ./api/openapi.yaml}", environment);
    assert_eq!(names(&task).await, ["a"]);
}

#[tokio::test]
async fn an_empty_list_says_why() {
    let nothing = json!({"openapi": "3.1.0", "paths": {}});
    let unusable = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "#/nowhere"}]}}}});
    for (description, more, reason) in [
        (&nothing, "", "the OpenAPI description has no operation"),
        (
            &unusable,
            "",
            "none of the 1 operations of the OpenAPI description can be called; for example: `get_a`: `$ref: #/nowhere`",
        ),
        (
            &large(3),
            ", include: [nobody]",
            "`include` and `exclude` of the manifest leave none of the 3 operations",
        ),
    ] {
        let server = serve(description, ok).await;
        let block = format!(
            "openapi: {{url: \"http://127.0.0.1:{}/api\"{more}}}",
            server.port
        );
        let task = task_of(&block, environment_of(json!({})));
        assert!(names(&task).await.is_empty());
        let why = task.why_none(CancellationToken::new()).await.unwrap();
        assert!(why.len() == 1 && why[0].starts_with(reason), "{why:?}");
    }
}

/// The request that would be sent is the one that is sent, with its secrets masked.
#[tokio::test]
async fn a_preview_shows_the_request_of_an_operation() {
    let description = json!({
        "openapi": "3.1.0",
        "paths": {"/pets/{id}": {"post": {
            "operationId": "feed",
            "security": [{"key": []}],
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "q", "in": "query", "schema": {"type": "string"}},
            ],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
        }}},
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    });
    let server = serve(&description, ok).await;
    let block = format!(
        "settings: {{properties: {{key: {{type: string}}}}}}\n\
         openapi: {{url: \"http://127.0.0.1:{}/api\", credentials: {{key: \"{{settings.key}}\"}}}}",
        server.port
    );
    let task = task_of(&block, environment_of(json!({"key": "k-secret"})));
    let shown = task.preview_request(Invocation {
        action: "feed".to_owned(),
        arguments: json!({"id": "a/b", "q": "x y", "body": {"n": 1}})
            .as_object()
            .unwrap()
            .clone(),
        ..Invocation::default()
    });
    let shown = shown.await.unwrap();
    assert_eq!(shown["method"], "POST");
    let url = shown["url"].as_str().unwrap();
    assert!(url.ends_with("/pets/a%2Fb?q=x%20y"), "{url}");
    assert_eq!(shown["headers"]["x-key"], "[redacted]");
    assert_eq!(shown["body"], json!({"n": 1}));
    assert_eq!(shown["operation"], "feed");
    // The description was fetched, and nothing else.
    assert_eq!(server.seen().len(), 1);
    let wrong = task.preview_request(Invocation {
        action: "feed".to_owned(),
        arguments: json!({"id": 7}).as_object().unwrap().clone(),
        ..Invocation::default()
    });
    assert_eq!(wrong.await.unwrap_err().failure, ActionFailure::Arguments);
}
