//! Which path leads where.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use proofhouse_wire::StatusCode;
use proofhouse_wire::server::{Handler, Reply, Request};
use serde_json::{Value, json};

use super::{API_KEY, DemoApi, lock, mcp, openapi, tokens, weather};

impl Handler for DemoApi {
    async fn handle(&self, request: Request) -> Reply {
        match &request.body {
            Ok(_) => self.route(&request),
            Err(problem) => error(problem.status(), &problem.to_string()),
        }
    }
}

impl DemoApi {
    fn route(&self, request: &Request) -> Reply {
        let path: Vec<String> = request
            .path
            .trim_matches('/')
            .split('/')
            .map(decoded)
            .collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match (request.method.as_str(), path.as_slice()) {
            ("GET", [""]) => json_reply(StatusCode::OK, &self.overview()),
            ("GET", ["openapi.json"]) => {
                json_reply(StatusCode::OK, &openapi::description(&self.origin))
            }
            ("GET", ["weather", city]) => forecast(request, city),
            ("GET", ["notes"]) => {
                let word = query(request, "word").unwrap_or_default();
                json_reply(
                    StatusCode::OK,
                    &json!({"notes": lock(&self.notes).find(&word)}),
                )
            }
            ("POST", ["notes"]) => self.add_note(request),
            ("GET", ["notes", id]) => {
                match id.parse().ok().and_then(|id| lock(&self.notes).get(id)) {
                    Some(note) => json_reply(StatusCode::OK, &note),
                    None => error(StatusCode::NOT_FOUND, "there is no such note"),
                }
            }
            ("DELETE", ["notes", id]) => {
                if id.parse().is_ok_and(|id| lock(&self.notes).remove(id)) {
                    Reply::empty(StatusCode::NO_CONTENT)
                } else {
                    error(StatusCode::NOT_FOUND, "there is no such note")
                }
            }
            ("GET", ["sessions"]) => json_reply(
                StatusCode::OK,
                &json!({"open": lock(&self.sessions).count()}),
            ),
            ("POST", ["sessions"]) => self.open_session(),
            ("POST", ["sessions", id, "add"]) => self.add(request, id),
            ("DELETE", ["sessions", id]) => {
                if lock(&self.sessions).close(id) {
                    Reply::empty(StatusCode::NO_CONTENT)
                } else {
                    error(StatusCode::NOT_FOUND, "there is no such session")
                }
            }
            ("POST", ["oauth", "token"]) => self.token(request),
            ("GET", ["account"]) => self.account(request),
            ("POST", ["mcp"]) => mcp::answer_http(request),
            (_, ["mcp"]) => error(StatusCode::METHOD_NOT_ALLOWED, "POST a message"),
            _ => error(
                StatusCode::NOT_FOUND,
                "there is nothing here; GET / says what there is",
            ),
        }
    }

    fn overview(&self) -> Value {
        json!({
            "service": "proofhouse demo-service",
            "paths": {
                "GET /weather/{city}?days=3": format!("needs the header `Authorization: Bearer {API_KEY}`"),
                "GET, POST /notes; GET, DELETE /notes/{id}": "open to all",
                "POST /sessions; POST /sessions/{id}/add; DELETE /sessions/{id}": "adds up numbers",
                "POST /oauth/token; GET /account": "needs a token by client credentials",
                "GET /openapi.json": "describes weather and notes",
                "POST /mcp": "an MCP server",
            },
        })
    }

    fn add_note(&self, request: &Request) -> Reply {
        let body = body(request);
        let Some(text) = body.get("text").and_then(Value::as_str) else {
            return error(StatusCode::BAD_REQUEST, "send {\"text\": \"…\"}");
        };
        match lock(&self.notes).add(text) {
            Some(note) => json_reply(StatusCode::CREATED, &note),
            None => error(
                StatusCode::INSUFFICIENT_STORAGE,
                "the note is too long, or there are too many",
            ),
        }
    }

    fn open_session(&self) -> Reply {
        let mut sessions = lock(&self.sessions);
        let seconds = sessions.lifetime().as_secs_f64();
        match sessions.open() {
            Some(id) => {
                let session = json!({"session": {"id": id, "expires_after_seconds": seconds}});
                json_reply(StatusCode::CREATED, &session)
            }
            None => error(
                StatusCode::SERVICE_UNAVAILABLE,
                "there are too many sessions",
            ),
        }
    }

    fn add(&self, request: &Request, id: &str) -> Reply {
        let body = body(request);
        let Some(number) = body.get("number").and_then(Value::as_f64) else {
            return error(StatusCode::BAD_REQUEST, "send {\"number\": 1}");
        };
        match lock(&self.sessions).add(id, number) {
            Some(total) => json_reply(StatusCode::OK, &json!({"total": total})),
            None => error(StatusCode::NOT_FOUND, "the session has ended"),
        }
    }

    /// A token for a client that gives its name and secret in the form or by Basic authentication.
    fn token(&self, request: &Request) -> Reply {
        let form = request.body.as_deref().unwrap_or_default();
        let form = pairs(&String::from_utf8_lossy(form));
        let field = |name: &str| {
            let mut fields = form.iter();
            fields
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        if field("grant_type").as_deref() != Some("client_credentials") {
            let problem = json!({"error": "unsupported_grant_type"});
            return json_reply(StatusCode::BAD_REQUEST, &problem);
        }
        let given = basic(request).or_else(|| field("client_id").zip(field("client_secret")));
        let token = given.and_then(|(client, secret)| lock(&self.tokens).give(&client, &secret));
        match token {
            Some(token) => json_reply(
                StatusCode::OK,
                &json!({
                    "access_token": token,
                    "token_type": "Bearer",
                    "expires_in": tokens::LIFETIME.as_secs(),
                }),
            )
            .with_header("cache-control", "no-store"),
            None => json_reply(
                StatusCode::UNAUTHORIZED,
                &json!({"error": "invalid_client"}),
            ),
        }
    }

    fn account(&self, request: &Request) -> Reply {
        let token = bearer(request).unwrap_or_default();
        if lock(&self.tokens).is_good(token) {
            json_reply(StatusCode::OK, &json!({"account": "demo", "plan": "free"}))
        } else {
            error(
                StatusCode::UNAUTHORIZED,
                "this needs a token of /oauth/token",
            )
        }
    }
}

fn forecast(request: &Request, city: &str) -> Reply {
    if bearer(request) != Some(API_KEY) {
        return error(StatusCode::UNAUTHORIZED, "the key is wrong");
    }
    let days = match query(request, "days").map(|days| days.parse::<u64>()) {
        None => 3,
        Some(Ok(days)) if (1..=weather::MAX_DAYS).contains(&days) => days,
        Some(_) => return error(StatusCode::BAD_REQUEST, "days must be from 1 to 14"),
    };
    json_reply(StatusCode::OK, &weather::forecast(city, days))
}

pub(super) fn json_reply(status: StatusCode, value: &Value) -> Reply {
    Reply::json(status, value.to_string())
}

pub(super) fn error(status: StatusCode, message: &str) -> Reply {
    json_reply(status, &json!({"error": message}))
}

/// The body as JSON; null if it is none.
fn body(request: &Request) -> Value {
    let bytes = request.body.as_deref().unwrap_or_default();
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn bearer(request: &Request) -> Option<&str> {
    request.header("authorization")?.strip_prefix("Bearer ")
}

fn basic(request: &Request) -> Option<(String, String)> {
    let coded = request.header("authorization")?.strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(coded).ok()?).ok()?;
    let (client, secret) = text.split_once(':')?;
    // Both are form-encoded before they are joined.
    Some((decoded(client), decoded(secret)))
}

fn query(request: &Request, name: &str) -> Option<String> {
    let query = request.query.as_deref()?;
    let mut pairs = pairs(query).into_iter();
    pairs.find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The pairs of a query or a form.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (
                decoded(&key.replace('+', " ")),
                decoded(&value.replace('+', " ")),
            )
        })
        .collect()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
