//! An MCP server and its authorization servers, which check what a client says to them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proofhouse_mcp_auth::{
    AuthorizationConfig, Authorizer, AutomaticConsent, SecretText, UnixSeconds,
};
use proofhouse_test_support::http::{SeenRequest, TestReply, TestServer};
use proofhouse_wire::client::Client;
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method, WireLimits};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

/// What can be set about the servers while they run.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    /// The scopes that a request needs, as the challenge says.
    pub(crate) scope: &'static str,
    /// Tokens are not enough, whatever they are.
    pub(crate) insufficient: Option<&'static str>,
    /// The prefix of tokens that count.
    pub(crate) accepts: &'static str,
    pub(crate) expires_in: u64,
    pub(crate) refresh_tokens: bool,
    /// The token endpoint refuses with this error.
    pub(crate) refuses: Option<Value>,
    pub(crate) auth_methods: Value,
    pub(crate) registers: bool,
    /// Which of the two authorization servers is named.
    pub(crate) issuer: &'static str,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            scope: "basic",
            insufficient: None,
            accepts: "",
            expires_in: 3600,
            refresh_tokens: true,
            refuses: None,
            auth_methods: json!(["none"]),
            registers: true,
            issuer: "one",
        }
    }
}

/// The servers: `/mcp`, and authorization servers at `/one` and `/two`.
pub(crate) struct World {
    pub(crate) server: TestServer,
    pub(crate) behaviour: Arc<Mutex<Behaviour>>,
    pub(crate) clock: Arc<AtomicU64>,
}

#[derive(Default)]
struct Issued {
    challenges: BTreeMap<String, String>,
    tokens: u64,
}

impl World {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let behaviour = Arc::new(Mutex::new(behaviour));
        let (known, issued) = (Arc::clone(&behaviour), Mutex::new(Issued::default()));
        let server = TestServer::start(move |request: &SeenRequest, _| {
            let behaviour = known.lock().unwrap().clone();
            answer(request, &behaviour, &mut issued.lock().unwrap())
        });
        Self {
            server,
            behaviour,
            clock: Arc::new(AtomicU64::new(1_000_000)),
        }
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    pub(crate) fn mcp(&self) -> Url {
        Url::parse(&format!("http://{}/mcp", self.server.address())).unwrap()
    }

    pub(crate) fn clock(&self) -> UnixSeconds {
        let clock = Arc::clone(&self.clock);
        Arc::new(move || clock.load(Ordering::SeqCst))
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn authorizer(&self, config: AuthorizationConfig) -> Authorizer {
        let consent = Arc::new(AutomaticConsent::new(client()));
        Authorizer::new(client(), &self.mcp(), config, consent, self.clock())
    }

    /// The requests whose path ends so, with their forms.
    pub(crate) fn forms(&self, path: &str) -> Vec<BTreeMap<String, String>> {
        let requests = self.server.requests();
        let requests = requests.iter().filter(|seen| {
            let of = seen.path.split('?').next().unwrap_or_default();
            of.ends_with(path)
        });
        let pairs = requests.map(|seen| {
            let query = seen.path.split_once('?').map_or("", |(_, query)| query);
            let text = if query.is_empty() {
                String::from_utf8_lossy(&seen.body).into_owned()
            } else {
                query.to_owned()
            };
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect()
        });
        pairs.collect()
    }

    /// A call of the MCP server as a client of it makes one: with the token there is, and again as the authorizer says.
    pub(crate) async fn call(&self, authorizer: &Authorizer) -> Result<u16, String> {
        for _ in 0..4 {
            let token = authorizer
                .token()
                .await
                .map_err(|error| error.to_string())?;
            let mut headers = HeaderMap::new();
            if let Some(token) = &token {
                let value = format!("Bearer {}", token.expose());
                headers.insert("authorization", HeaderValue::from_str(&value).unwrap());
            }
            let url = self.mcp();
            let sent = client()
                .send(Method::POST, url.as_str(), headers, Bytes::new())
                .await
                .unwrap();
            let status = sent.status.as_u16();
            if !matches!(status, 401 | 403) {
                authorizer.accepted();
                return Ok(status);
            }
            let again = authorizer.challenged(status, &sent.headers, token.as_ref());
            if !again.await.map_err(|error| error.to_string())? {
                return Ok(status);
            }
        }
        Ok(0)
    }
}

pub(crate) fn client() -> Client {
    Client::new(WireLimits::default()).unwrap()
}

pub(crate) fn text(token: Option<SecretText>) -> Option<String> {
    token.map(|token| token.expose().to_owned())
}

fn reply(status: u16, headers: &[(&str, String)], body: &Value) -> TestReply {
    let headers = headers.iter();
    let lines: String = headers
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    TestReply::Plain(status, lines.leak(), body.to_string())
}

fn answer(request: &SeenRequest, behaviour: &Behaviour, issued: &mut Issued) -> TestReply {
    let host = request.header("host").unwrap_or_default();
    let base = format!("http://{host}");
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let body = String::from_utf8_lossy(&request.body);
    let form: BTreeMap<String, String> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let get =
        |form: &BTreeMap<String, String>, key: &str| form.get(key).cloned().unwrap_or_default();
    let issuer = if path.contains("two") { "two" } else { "one" };
    match path {
        "/mcp" => {
            let token = request.header("authorization").unwrap_or_default();
            let token = token.strip_prefix("Bearer ").unwrap_or_default();
            let metadata =
                format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
            if token.is_empty() || !token.starts_with(behaviour.accepts) {
                let challenge = format!("Bearer scope=\"{}\", {metadata}", behaviour.scope);
                return reply(401, &[("www-authenticate", challenge)], &json!({}));
            }
            if let Some(scope) = behaviour.insufficient {
                let challenge =
                    format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", {metadata}");
                return reply(403, &[("www-authenticate", challenge)], &json!({}));
            }
            reply(200, &[], &json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        }
        "/.well-known/oauth-protected-resource/mcp" => reply(
            200,
            &[],
            &json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [format!("{base}/{}", behaviour.issuer)],
                "scopes_supported": ["all"],
            }),
        ),
        "/.well-known/oauth-authorization-server/one" | "/two/.well-known/openid-configuration" => {
            let mut metadata = json!({
                "issuer": format!("{base}/{issuer}"),
                "authorization_endpoint": format!("{base}/{issuer}/authorize"),
                "token_endpoint": format!("{base}/{issuer}/token"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": behaviour.auth_methods,
                "authorization_response_iss_parameter_supported": true,
            });
            if behaviour.registers {
                metadata["registration_endpoint"] = format!("{base}/{issuer}/register").into();
            }
            reply(200, &[], &metadata)
        }
        "/one/register" | "/two/register" => {
            let asked: Value = serde_json::from_str(&body).unwrap_or_default();
            if asked["application_type"] != "native" {
                return reply(400, &[], &json!({"error": "invalid_client_metadata"}));
            }
            reply(
                201,
                &[],
                &json!({"client_id": format!("client-of-{issuer}")}),
            )
        }
        "/one/authorize" | "/two/authorize" => {
            if get(&query, "client_id") != format!("client-of-{issuer}") && behaviour.registers {
                return reply(400, &[], &json!({"error": "unauthorized_client"}));
            }
            let code = format!("code-{}", issued.challenges.len());
            issued
                .challenges
                .insert(code.clone(), get(&query, "code_challenge"));
            let back = Url::parse_with_params(
                &get(&query, "redirect_uri"),
                [
                    ("code", code),
                    ("state", get(&query, "state")),
                    ("iss", format!("{base}/{issuer}")),
                ],
            );
            reply(302, &[("location", back.unwrap().into())], &json!({}))
        }
        "/one/token" | "/two/token" => {
            if let Some(refusal) = &behaviour.refuses {
                let status = refusal["status"].as_u64().unwrap_or(400);
                return reply(u16::try_from(status).unwrap(), &[], refusal);
            }
            if get(&form, "grant_type") == "authorization_code" {
                let verifier = get(&form, "code_verifier");
                let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
                if issued.challenges.remove(&get(&form, "code")) != Some(challenge) {
                    return reply(400, &[], &json!({"error": "invalid_grant"}));
                }
            }
            issued.tokens += 1;
            let number = issued.tokens;
            let mut answer = json!({
                "access_token": format!("{issuer}-token-{number}"),
                "token_type": "Bearer",
                "expires_in": behaviour.expires_in,
            });
            if behaviour.refresh_tokens {
                answer["refresh_token"] = format!("{issuer}-refresh-{number}").into();
            }
            reply(200, &[], &answer)
        }
        "/idp/token" => reply(
            200,
            &[],
            &json!({"access_token": "id-jag", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}),
        ),
        _ => reply(404, &[], &json!({})),
    }
}

/// What stands behind `Basic` in a header.
pub(crate) fn basic(header: &str) -> String {
    let text = header.strip_prefix("Basic ").unwrap_or_default();
    String::from_utf8(STANDARD.decode(text).unwrap_or_default()).unwrap_or_default()
}
