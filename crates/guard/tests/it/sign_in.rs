//! Signing in through the guard: clients use the guard's address, and those who authorize hear the server's own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use proofhouse_guard::engine::{AskRoute, GuardSession, GuardSetup};
use proofhouse_guard::policy::Policy;
use proofhouse_guard::proxy::HttpGuard;
use proofhouse_wire::client::{Client, StreamedResponse};
use proofhouse_wire::server::{BoundServer, Handler, Reply, Request};
use proofhouse_wire::{CancellationToken, HeaderMap, Method, StatusCode, WireLimits};
use serde_json::{Value, json};

use crate::support::recorder;

/// An MCP server that wants a token, and the one who gives them, each at a port of its own.
#[derive(Default)]
struct Guarded {
    server: OnceLock<SocketAddr>,
    login: OnceLock<SocketAddr>,
    /// Whether the one who authorizes names itself when it sends people back.
    names_itself: bool,
    seen: Mutex<Vec<(String, String)>>,
}

impl Guarded {
    fn issuer(&self) -> String {
        format!("http://{}/tenant", self.login.get().unwrap())
    }

    fn saw(&self, path: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let at = seen.iter().filter(|(seen, _)| seen == path);
        at.map(|(_, said)| said.clone()).collect()
    }
}

impl Handler for Guarded {
    async fn handle(&self, request: Request) -> Reply {
        let body = String::from_utf8(request.body.clone().unwrap().to_vec()).unwrap();
        let said = request.query.clone().unwrap_or_default() + &body;
        self.seen.lock().unwrap().push((request.path.clone(), said));
        let json = |value: Value| Reply::json(StatusCode::OK, value.to_string());
        let (server, issuer) = (self.server.get().unwrap(), self.issuer());
        match request.path.as_str() {
            "/mcp" if request.header("authorization") == Some("Bearer t-1") => {
                json(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}))
            }
            "/mcp" => {
                let mut reply = Reply::empty(StatusCode::UNAUTHORIZED);
                let bearer = format!(
                    "Bearer resource_metadata=\"http://{server}/.well-known/oauth-protected-resource/mcp\", scope=\"a\""
                );
                for challenge in ["Basic realm=\"other\"", &bearer] {
                    let challenge = challenge.parse().unwrap();
                    reply.headers.append("www-authenticate", challenge);
                }
                reply
            }
            "/.well-known/oauth-protected-resource/mcp" => json(json!({
                "resource": format!("http://{server}/mcp"), "authorization_servers": [issuer],
            })),
            "/tenant/.well-known/openid-configuration" => json(json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize?p=1"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "authorization_response_iss_parameter_supported": self.names_itself,
            })),
            "/tenant/token" => json(json!({"access_token": "t-1", "token_type": "Bearer"})),
            _ => Reply::empty(StatusCode::NOT_FOUND),
        }
    }
}

struct Setup {
    guarded: Arc<Guarded>,
    guard: String,
    client: Client,
    cancel: CancellationToken,
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Setup {
    async fn get(&self, url: &str) -> StreamedResponse {
        let none = HeaderMap::new();
        let sent = self
            .client
            .send(Method::GET, url, none, String::new().into());
        sent.await.unwrap()
    }

    async fn json(&self, url: &str) -> Value {
        let body = self.get(url).await.bytes().await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    async fn post(&self, url: &str, token: Option<&str>, body: &str) -> StreamedResponse {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let sent = self
            .client
            .send(Method::POST, url, headers, body.to_owned().into());
        sent.await.unwrap()
    }
}

async fn start(names_itself: bool) -> Setup {
    let cancel = CancellationToken::new();
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let guarded = Arc::new(Guarded {
        names_itself,
        ..Guarded::default()
    });
    for place in [&guarded.server, &guarded.login] {
        let bound = BoundServer::new(local).await.unwrap();
        place.set(bound.address()).unwrap();
        tokio::spawn(bound.serve(Arc::clone(&guarded), WireLimits::default(), cancel.clone()));
    }
    let bound = BoundServer::new(local).await.unwrap();
    let address = bound.address();
    let client = Client::new(WireLimits::default()).unwrap();
    let (recorder, _) = recorder();
    let recorder = recorder.shared();
    let make = move || {
        let setup = GuardSetup {
            server: "web".to_owned(),
            origin: None,
            policy: Arc::new(Policy::default()),
            lock: None,
            watcher: None,
            asks: AskRoute::Nobody,
        };
        GuardSession::new(setup, recorder.clone())
    };
    let url = format!("http://{}/mcp", guarded.server.get().unwrap());
    let guard = HttpGuard::new(&url, address, client.clone(), None, Box::new(make), None).unwrap();
    tokio::spawn(bound.serve(Arc::new(guard), WireLimits::default(), cancel.clone()));
    Setup {
        guarded,
        guard: format!("http://{address}"),
        client,
        cancel,
    }
}

#[tokio::test]
async fn a_client_signs_in_through_the_guard_and_the_token_is_for_the_server() {
    let setup = start(false).await;
    let guard = &setup.guard;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let challenged = setup.post(&format!("{guard}/mcp"), None, list).await;
    assert_eq!(challenged.status, StatusCode::UNAUTHORIZED);
    let challenges: Vec<_> = challenged
        .headers
        .get_all("www-authenticate")
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect();
    let document = format!("{guard}/.well-known/oauth-protected-resource/mcp");
    let bearer = format!("Bearer resource_metadata=\"{document}\", scope=\"a\"");
    assert_eq!(challenges, ["Basic realm=\"other\"", &bearer]);

    let resource = setup.json(&document).await;
    assert_eq!(resource["resource"], format!("{guard}/mcp"));
    let issuer = resource["authorization_servers"][0].as_str().unwrap();
    let path = issuer.strip_prefix(guard.as_str()).unwrap();
    // The description is where the authorization server has it, and nowhere else.
    let elsewhere = format!("{guard}/.well-known/oauth-authorization-server{path}");
    assert_eq!(setup.get(&elsewhere).await.status, StatusCode::NOT_FOUND);
    let described = setup
        .json(&format!("{issuer}/.well-known/openid-configuration"))
        .await;
    assert_eq!(described["issuer"], issuer);
    let theirs = setup.guarded.issuer();

    // People are sent on to the authorization server itself, for the server's own address.
    let encoded = |url: &str| url.replace(':', "%3A").replace('/', "%2F");
    let own = encoded(&format!("{guard}/mcp"));
    let server = format!("http://{}/mcp", setup.guarded.server.get().unwrap());
    let authorize = described["authorization_endpoint"].as_str().unwrap();
    let sent_on = setup
        .get(&format!(
            "{authorize}?client_id=c&resource={own}&state=a%20b"
        ))
        .await;
    assert_eq!(
        (sent_on.status, sent_on.header("location")),
        (
            StatusCode::FOUND,
            Some(
                format!(
                    "{theirs}/authorize?p=1&client_id=c&resource={}&state=a%20b",
                    encoded(&server)
                )
                .as_str()
            )
        )
    );
    let token = described["token_endpoint"].as_str().unwrap();
    let form = format!("grant_type=authorization_code&code=x+y&resource={own}");
    let token = setup.post(token, None, &form).await.bytes().await.unwrap();
    let token: Value = serde_json::from_slice(&token).unwrap();
    assert_eq!(
        setup.guarded.saw("/tenant/token"),
        [format!(
            "grant_type=authorization_code&code=x+y&resource={}",
            encoded(&server)
        )]
    );
    let token = token["access_token"].as_str();
    let answered = setup.post(&format!("{guard}/mcp"), token, list).await;
    assert_eq!(answered.status, StatusCode::OK);
}

#[tokio::test]
async fn people_come_back_through_the_guard_from_one_that_names_itself() {
    let setup = start(true).await;
    let guard = &setup.guard;
    let resource = setup
        .json(&format!("{guard}/.well-known/oauth-protected-resource/mcp"))
        .await;
    let issuer = resource["authorization_servers"][0].as_str().unwrap();
    let described = setup
        .json(&format!("{issuer}/.well-known/openid-configuration"))
        .await;
    let encoded = |url: &str| url.replace(':', "%3A").replace('/', "%2F");
    let client = encoded("http://127.0.0.1:1/back");
    let through = encoded(&format!("{guard}/back"));
    let authorize = described["authorization_endpoint"].as_str().unwrap();
    let sent_on = setup
        .get(&format!("{authorize}?redirect_uri={client}&state=s"))
        .await;
    let theirs = setup.guarded.issuer();
    assert_eq!(
        sent_on.header("location").unwrap(),
        format!("{theirs}/authorize?p=1&redirect_uri={through}&state=s")
    );
    let back = format!("{guard}/back?code=c&state=s&iss={}", encoded(&theirs));
    let arrived = setup.get(&back).await;
    assert_eq!(
        (arrived.status, arrived.header("location").unwrap()),
        (
            StatusCode::FOUND,
            format!(
                "http://127.0.0.1:1/back?code=c&state=s&iss={}",
                encoded(issuer)
            )
            .as_str()
        )
    );
    let again = setup.get(&back).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND, "nobody is expected");
    // The code is only good for the address that it was sent to.
    let token = described["token_endpoint"].as_str().unwrap();
    let form = format!("code=c&redirect_uri={client}");
    setup.post(token, None, &form).await;
    let registration = described["registration_endpoint"].as_str().unwrap();
    setup
        .post(
            registration,
            None,
            r#"{"redirect_uris":["http://127.0.0.1:1/back"]}"#,
        )
        .await;
    assert_eq!(
        setup.guarded.saw("/tenant/token"),
        [format!("code=c&redirect_uri={through}")]
    );
    assert_eq!(
        setup.guarded.saw("/tenant/register"),
        [format!(
            r#"{{"redirect_uris":["http://127.0.0.1:1/back","{guard}/back"]}}"#
        )]
    );
}
