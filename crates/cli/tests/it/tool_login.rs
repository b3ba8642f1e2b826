//! `proofhouse tool login`: from the address that it shows to a token that is kept, sealed.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use proofhouse_test_support::http::{SeenRequest, TestReply, TestServer};
use serde_json::{Value, json};
use url::Url;

use crate::support::run;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// An MCP server that wants a token, and the authorization server that gives one.
fn server() -> TestServer {
    TestServer::start(|request: &SeenRequest, _| {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match path {
            "/mcp" => TestReply::Plain(
                401,
                "www-authenticate: Bearer scope=\"issues\"\r\n",
                String::new(),
            ),
            "/.well-known/oauth-protected-resource/mcp" => TestReply::Json(json!({
                "resource": format!("{base}/mcp"), "authorization_servers": [base],
            })),
            "/.well-known/oauth-authorization-server" => TestReply::Json(json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            })),
            "/register" => TestReply::Json(json!({"client_id": "made-up"})),
            "/authorize" => {
                let asked = Url::parse(&format!("{base}/?{query}")).unwrap();
                let value = |name: &str| {
                    let mut pairs = asked.query_pairs();
                    pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
                };
                let back = Url::parse_with_params(
                    &value("redirect_uri"),
                    [("code", "c-1".to_owned()), ("state", value("state"))],
                );
                let line = format!("location: {}\r\n", back.unwrap());
                TestReply::Plain(302, line.leak(), String::new())
            }
            "/token" => TestReply::Json(json!({
                "access_token": "top-secret-token", "token_type": "Bearer", "expires_in": 3600, "scope": "issues",
            })),
            _ => TestReply::Plain(404, "", String::new()),
        }
    })
}

/// What a browser does: asks, and says where it is sent.
fn visit(url: &Url) -> (String, Option<String>) {
    let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nhost: {}:{}\r\nconnection: close\r\n\r\n",
        url.host_str().unwrap(),
        url.port().unwrap()
    )
    .unwrap();
    let mut answer = String::new();
    #[expect(clippy::disallowed_methods, reason = "an answer of the test")]
    stream.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    (answer, location)
}

fn files(directory: &Path, server: &TestServer, mcp: &str) -> (String, String) {
    let manifest = directory.join("tracker.yaml");
    let text = format!(
        "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: tracker\ndescription: Issues.\n\
         mcp: {{transport: streamable_http, url: \"http://{}/mcp\"}}\n",
        server.address()
    );
    fs::write(&manifest, text).unwrap();
    let operator = directory.join("operator.yaml");
    fs::write(
        &operator,
        format!("egress: {{allow: [127.0.0.1]}}\nmcp: {mcp}\n"),
    )
    .unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    (path(&manifest), path(&operator))
}

#[test]
fn a_person_agrees_and_the_token_is_kept_sealed() {
    let scratch = tempfile::tempdir().unwrap();
    let server = server();
    let tokens = scratch.path().join("tokens");
    let mcp = format!(
        "{{oauth: {{demo/tracker: {{}}}}, tokens: \"{}\"}}",
        tokens.display()
    );
    let (manifest, operator) = files(scratch.path(), &server, &mcp);
    let mut child = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args([
            "tool",
            "login",
            &manifest,
            "--settings",
            &operator,
            "--format",
            "json",
        ])
        .env("PROOFHOUSE_TOKEN_KEY", KEY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines
        .by_ref()
        .map(|line| line.unwrap())
        .find(|line| line.starts_with("http://"))
        .unwrap();
    let address = Url::parse(&address).unwrap();
    assert!(
        address.query().unwrap().contains("scope=issues"),
        "{address}"
    );
    let (_, back) = visit(&address);
    let (thanks, _) = visit(&Url::parse(&back.unwrap()).unwrap());
    assert!(thanks.starts_with("HTTP/1.1 200"), "{thanks}");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(told["tools"][0]["tool"], "demo/tracker");
    let kept: Vec<_> = fs::read_dir(&tokens).unwrap().collect();
    assert_eq!(kept.len(), 1);
    for entry in kept {
        #[expect(clippy::disallowed_methods, reason = "a file of the test")]
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("top-secret"));
    }
    assert!(!lines.any(|line| line.unwrap().contains("top-secret")));
    // The token that was kept is sent.
    let called = Command::new(env!("CARGO_BIN_EXE_proofhouse"))
        .args(["tool", "list", &manifest, "--settings", &operator])
        .env("PROOFHOUSE_TOKEN_KEY", KEY)
        .output()
        .unwrap();
    // This server takes no token, so there is nothing to list; but it was shown one.
    assert_eq!(called.status.code(), Some(3));
    let sent = server.requests();
    let shown =
        |request: &SeenRequest| request.header("authorization") == Some("Bearer top-secret-token");
    assert!(sent.iter().any(shown));
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    assert!(!said.contains("top-secret"), "{said}");
}

#[test]
fn what_is_missing_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let server = server();
    for (mcp, said) in [
        ("{oauth: {demo/tracker: {}}}", "`mcp.tokens`"),
        (
            "{oauth: {demo/tracker: {}}, tokens: t}",
            "PROOFHOUSE_TOKEN_KEY",
        ),
        ("{oauth: {tracker: {}}}", "OC-012"),
        (
            "{oauth: {demo/tracker: {grant: jwt_bearer}}}",
            "`assertion`",
        ),
        (
            "{oauth: {demo/tracker: {grant: client_credentials}}}",
            "`client_id`",
        ),
        (
            "{oauth: {demo/tracker: {grant: magic}}}",
            "client_credentials",
        ),
    ] {
        let (manifest, operator) = files(scratch.path(), &server, mcp);
        let ran = run(&["tool", "login", &manifest, "--settings", &operator]);
        assert_eq!(ran.code, Some(3), "{mcp}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{mcp}: {}", ran.stderr);
    }
    assert!(server.requests().is_empty());
}
