//! The examples of the specification, as they are written, inside a tool: they validate, and they run. Their
//! hosts are on the loopback address here, behind TLS and a certificate authority of the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use proofhouse_manifest::interpolate::Root;
use proofhouse_manifest::{Bundle, Receive, Tool};
use proofhouse_source::DiagnosticSeverity;
use proofhouse_tools::allow_list::AllowList;
use proofhouse_tools::http::{EgressPolicy, HttpClient};
use proofhouse_tools::receive::filter::{AllowedValues, CompiledFilter, ParameterTypes};
use proofhouse_tools::receive::message::compose;
use proofhouse_tools::receive::poll::{PollState, step};
use proofhouse_tools::receive::subscription::{
    ChannelRequest, Subscribed, Unsubscribed, subscribe, unsubscribe,
};
use proofhouse_tools::receive::{Discard, EventListener};
use proofhouse_tools::runtime::{Environment, Runtimes, TokenError, TokenSource, ToolTask};
use proofhouse_wire::CancellationToken;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::limits;

const HEAD: &str = "kind: commonagents.info/v1beta2/tool\nnamespace: demo\nname: example\ndescription: An example.\n";

/// The hosts of the examples.
const HOSTS: [&str; 3] = ["api.example.com", "www.googleapis.com", "example.com"];

/// The hosts of the examples, on this machine.
struct Internet {
    egress: EgressPolicy,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Internet {
    /// Answers every request with what stands for its first line.
    async fn start(answers: &'static [(&'static str, &'static str)]) -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(HOSTS.map(str::to_owned).to_vec()).unwrap();
        let own = own.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![own.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let request = read(&mut stream).await;
                    let answer = answers
                        .iter()
                        .find(|(line, _)| request.starts_with(line))
                        .map_or("{}", |(_, answer)| answer);
                    seen.lock().unwrap().push(request);
                    let text = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: \
                         {}\r\n\r\n{answer}",
                        answer.len()
                    );
                    let _ = stream.write_all(text.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        let egress = EgressPolicy::allowing(["127.0.0.1/32".parse().unwrap()]);
        let egress = HOSTS
            .iter()
            .fold(egress, |egress, host| egress.with_host(host, address));
        Self {
            egress: egress.believing(&certificate.pem()).unwrap(),
            requests,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(&limits(), self.egress.clone()).unwrap()
    }
}

async fn read(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return text;
            }
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().ok())?
        });
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

/// A tool with no error in it.
fn tool(rest: &str) -> Arc<Tool> {
    let text = format!("{HEAD}{rest}");
    let (bundle, findings) = Bundle::read(&text);
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == DiagnosticSeverity::Error)
        .collect();
    assert!(errors.is_empty(), "{text}\n{errors:#?}");
    Arc::new(bundle.tools().next().unwrap().clone())
}

/// The token of `{auth.google()}`.
struct Google;

impl TokenSource for Google {
    fn token<'a>(
        &'a self,
        _: &'a str,
        _: bool,
    ) -> futures_util::future::BoxFuture<'a, Result<String, TokenError>> {
        Box::pin(async { Ok("ya29.token".to_owned()) })
    }
}

fn environment() -> Environment {
    Environment::new(json!({"api_key": "sk-1"}), || {
        "2026-01-01T12:00:00.000Z".to_owned()
    })
    .with(
        Root::Runtime,
        json!({"api_root": "https://agents.example.com"}),
    )
    .with(Root::Agent, json!({"namespace": "demo"}))
    .with_tokens(Arc::new(Google))
}

async fn invoke(internet: &Internet, tool: Arc<Tool>, action: &str, arguments: Value) -> Value {
    let runtimes = Runtimes::new(&limits(), internet.egress.clone()).unwrap();
    let task = ToolTask::new(tool, environment(), runtimes, limits());
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let context = json!({"agent": {"namespace": "demo"}});
    let invoked = task.invoke(action, arguments, context, CancellationToken::new());
    invoked.await.unwrap().value
}

#[tokio::test]
async fn cel() {
    let internet = Internet::start(&[]).await;
    let tool = tool(
        r#"actions:
  - name: format_date
    description: "Returns the current UTC date."
    execute:
      cel:
        expression: "{'date': now, 'namespace': context.agent.namespace}"
"#,
    );
    let result = invoke(&internet, tool, "format_date", json!({})).await;
    assert_eq!(result["namespace"], "demo");
    assert!(result["date"].is_string(), "{result}");
}

#[tokio::test]
async fn stateless_http() {
    let internet = Internet::start(&[("POST /v1/messages ", r#"{"ok": true}"#)]).await;
    let tool = tool(
        r#"settings: {properties: {api_key: {type: string}}}
actions:
  - name: send
    description: Sends a message.
    parameters:
      properties:
        message: {type: string}
        channel: {type: string}
    execute:
      stateless_http:
        method: POST
        url: "https://api.example.com/v1/messages"
        headers:
          Authorization: "Bearer {settings.api_key}"
          Content-Type: "application/json"
        body:
          text: "{parameters.message}"
          channel: "{parameters.channel}"
"#,
    );
    let arguments = json!({"message": "hi", "channel": "#general"});
    let result = invoke(&internet, tool, "send", arguments).await;
    assert_eq!(result, json!({"ok": true}));
    let sent = &internet.requests()[0];
    let lower = sent.to_lowercase();
    assert!(lower.contains("host: api.example.com\r\n"), "{sent}");
    assert!(sent.contains("Bearer sk-1"), "{sent}");
    assert!(
        sent.ends_with(r##"{"text":"hi","channel":"#general"}"##),
        "{sent}"
    );
}

const WEBHOOK: &str = r#"parameters:
  properties:
    owner: {type: string}
    repo: {type: string}
events:
  - name: comment
    message: "{event.author} commented: {event.body}"
    receive:
      webhook:
        filter: >
          event.payload.action == 'created'
          && has(event.payload.issue.pull_request)
          && event.payload.repository.owner.login == parameters.owner
          && event.payload.repository.name == parameters.repo
    parameters:
      author: "event.payload.comment.user.login"
      body: "event.payload.comment.body"
      pr_number: "string(event.payload.issue.number)"
"#;

#[test]
fn webhook() {
    let tool = tool(WEBHOOK);
    let payload = json!({
        "action": "created",
        "issue": {"number": 7, "pull_request": {}},
        "repository": {"name": "site", "owner": {"login": "acme"}},
        "comment": {"user": {"login": "ada"}, "body": "looks good"},
    });
    let mut list = AllowList::default();
    list.seal("owner", json!("acme"));
    list.seal("repo", json!("site"));
    let allowed = AllowedValues::new(&list, &ParameterTypes::of(&tool));
    let event = json!({"payload": payload, "headers": {}});
    let filter = CompiledFilter::of(&tool.events[0]);
    assert_eq!(filter.admit(&event, &allowed), Ok(()));
    let mut elsewhere = event.clone();
    elsewhere["payload"]["repository"]["name"] = json!("another");
    assert_eq!(filter.admit(&elsewhere, &allowed), Err(Discard::Filter));
    let told = compose(&tool.events[0], &event);
    assert_eq!(told.message, "ada commented: looks good");
    assert_eq!(told.event["pr_number"], "7");
    assert!(told.problems.is_empty(), "{:?}", told.problems);
}

#[tokio::test]
async fn subscription() {
    let internet = Internet::start(&[
        (
            "POST /drive/v3/changes/watch ",
            r#"{"resourceId": "r-9", "expiration": "1767276000000"}"#,
        ),
        ("POST /drive/v3/channels/stop ", "{}"),
    ])
    .await;
    let tool = tool(
        r#"parameters: {properties: {document_id: {type: string}}}
events:
  - name: edit
    message: "Document '{event.title}' was edited by {event.editor}"
    receive:
      subscription:
        filter: "event.payload.document_id == parameters.document_id"
        subscribe:
          method: POST
          url: "https://www.googleapis.com/drive/v3/changes/watch"
          headers:
            Authorization: "Bearer {auth.google()}"
          json:
            id: "{subscription.id}"
            type: "web_hook"
            address: "{runtime.api_root}/v1/webhooks/events/google_docs"
            expiration: "{subscription.expires_at_ms}"
            resourceId: "{parameters.document_id}"
        unsubscribe:
          method: POST
          url: "https://www.googleapis.com/drive/v3/channels/stop"
          headers:
            Authorization: "Bearer {auth.google()}"
          json:
            id: "{subscription.id}"
            resourceId: "{subscribe.resource_id}"
    parameters:
      editor: "event.payload.editor_email"
      title: "event.payload.document_title"
      change_summary: "event.payload.change_description"
"#,
    );
    let Receive::Subscription(block) = &tool.events[0].receive else {
        unreachable!("the example");
    };
    let block = block.clone();
    let listener = listener(&tool, json!({"document_id": "doc-1"}));
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let opening = ChannelRequest::new(now, Duration::from_secs(3600)).unwrap();
    let opened = subscribe(&internet.client(), &block, &listener, &opening, now).await;
    let Subscribed::Active(active) = opened else {
        unreachable!("{opened:?}");
    };
    let closed = unsubscribe(
        &internet.client(),
        &block,
        &listener,
        &opening,
        &active.response,
    )
    .await;
    assert_eq!(closed, Unsubscribed::Gone);
    let sent = internet.requests();
    assert!(sent[0].contains("Bearer ya29.token"), "{}", sent[0]);
    assert!(
        sent[0].contains("/v1/webhooks/events/google_docs"),
        "{}",
        sent[0]
    );
    assert!(sent[1].contains(r#""resourceId":"r-9""#), "{}", sent[1]);
}

#[tokio::test]
async fn poll() {
    let internet = Internet::start(&[(
        "GET /feed/f-1 ",
        r#"{"items": [{"title": "Old", "url": "https://example.com/1", "published_at": "2026-01-01T11:00:00Z"},
            {"title": "New", "url": "https://example.com/2", "published_at": "2026-01-01T12:30:00Z"}]}"#,
    )])
    .await;
    let tool = tool(
        r#"settings: {properties: {api_key: {type: string}}}
parameters: {properties: {feed_id: {type: string}}}
events:
  - name: new_item
    message: "New feed item: {event.title} — {event.url}"
    receive:
      poll:
        method: GET
        url: "https://example.com/feed/{parameters.feed_id}"
        headers:
          Authorization: "Bearer {settings.api_key}"
        detect: "response.items.filter(i, i.published_at > poll.last_fetched_at)"
    parameters:
      title: "item.title"
      url: "item.url"
"#,
    );
    let Receive::Poll(block) = &tool.events[0].receive else {
        unreachable!("the example");
    };
    let block = block.clone();
    let listener = listener(&tool, json!({"feed_id": "f-1"}));
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let client = internet.client();
    let state = PollState::default();
    let first = step(
        &client,
        &block,
        &listener,
        &state,
        at("2026-01-01T12:00:00Z"),
        0.5,
    )
    .await;
    assert!(first.problem.is_none(), "{:?}", first.problem);
    let second = step(
        &client,
        &block,
        &listener,
        &first.state,
        at("2026-01-01T13:00:00Z"),
        0.5,
    )
    .await;
    let titles: Vec<&Value> = second
        .items
        .iter()
        .map(|item| &item.item["title"])
        .collect();
    assert_eq!(titles, ["New"]);
    assert!(internet.requests()[0].contains("Bearer sk-1"));
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "written at the place of the call"
)]
fn listener(tool: &Arc<Tool>, parameters: Value) -> EventListener {
    EventListener {
        tool: Arc::clone(tool),
        parameters: parameters.as_object().unwrap().clone(),
        context: Value::Null,
        environment: environment(),
        cancel: CancellationToken::new(),
    }
}

/// Without the certificate authority, the same hosts are not believed.
#[tokio::test]
async fn a_certificate_of_nobody_is_not_believed() {
    let internet = Internet::start(&[]).await;
    let mut untrusting = EgressPolicy::allowing(["127.0.0.1/32".parse().unwrap()]);
    let address = proofhouse_wire::AddressGuard::address_of(&internet.egress, "api.example.com");
    untrusting = untrusting.with_host("api.example.com", address.unwrap());
    let tool = tool(
        "actions: [{name: go, description: Goes., execute: {stateless_http: {method: GET, url: \
         'https://api.example.com/'}}}]\n",
    );
    let runtimes = Runtimes::new(&limits(), untrusting).unwrap();
    let task = ToolTask::new(tool, environment(), runtimes, limits());
    let invoked = task.invoke("go", Map::new(), Value::Null, CancellationToken::new());
    assert!(invoked.await.is_err());
    assert!(internet.requests().is_empty());
}
