//! Signing in through the guard: what OAuth calls the resource is the guard's address for clients, and the server's own for those
//! who authorize.
//!
//! Clients ask for tokens for the address that they use. An authorization server knows the guarded server by its own, so it is put
//! behind the guard, too: its description names endpoints of the guard, which put the server's address in place of the guard's and
//! change nothing else. A person is sent on to the authorization server itself. Some are left where they are, because what their
//! clients sign names them: see `may_be_put_behind`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use proofhouse_wire::client::Client;
use proofhouse_wire::server::{Reply, ReplyBody, Request};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{Bytes, HeaderMap, Method, StatusCode, Url, is_this_machine};
use serde_json::Value;

use super::http::{passed_on, refused, with_headers};
use super::way_back::{WaysBack, redirect};

/// What the paths of authorization servers behind the guard begin with; a number follows.
pub(super) const SIGN_IN: &str = "/.proofhouse/sign-in/";

/// Where an authorization server describes itself, before or after the path of its issuer.
const DESCRIPTIONS: [&str; 2] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];

/// The endpoints that are told what a token is for or where people come back to, and their paths behind the guard.
const ENDPOINTS: [(&str, &str); 5] = [
    ("authorization_endpoint", "authorize"),
    ("token_endpoint", "token"),
    ("pushed_authorization_request_endpoint", "push"),
    ("device_authorization_endpoint", "device"),
    ("registration_endpoint", "register"),
];

/// Where a server describes who lets people in to it, before the path of the server.
const RESOURCE_DOCUMENT: &str = "/.well-known/oauth-protected-resource";

/// The header that tells a client to sign in.
const WWW_AUTHENTICATE: &str = "www-authenticate";

/// What a challenge names the document about signing in with.
const RESOURCE_METADATA: &str = "resource_metadata=\"";

/// How many such documents a server may have besides the well-known ones.
const MAX_ANNOUNCED: usize = 16;

/// The parameter that says what a token is for.
const RESOURCE: &str = "resource";

/// How many authorization servers are put behind the guard.
const MAX_SERVERS: usize = 16;

/// How long an authorization server may take to describe itself before it is left where it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// An authorization server behind the guard.
#[derive(Debug, Clone)]
struct BehindServer {
    issuer: Url,
    /// The endpoints of [`ENDPOINTS`].
    endpoints: [Option<Url>; 5],
    /// How it names itself, where it does so when it sends people back.
    named: Option<String>,
}

/// What is known about those who authorize.
#[derive(Debug)]
pub(super) struct SignIn {
    /// The origin of the guard.
    own: String,
    /// The origin of the guarded server.
    theirs: String,
    servers: Mutex<Vec<BehindServer>>,
    /// Paths of documents about signing in that the server named and that are no well-known ones.
    announced: Mutex<BTreeSet<String>>,
    ways: WaysBack,
}

/// A request that is for an authorization server behind the guard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignInRequest {
    /// Its description, at one of the places for it.
    Description { server: usize, place: usize },
    /// One of its endpoints.
    Endpoint { server: usize, endpoint: usize },
}

impl SignIn {
    pub(super) fn new(address: SocketAddr, theirs: String) -> Self {
        Self {
            own: format!("http://{address}"),
            ways: WaysBack::new(address),
            theirs,
            servers: Mutex::default(),
            announced: Mutex::default(),
        }
    }

    /// The origin of the guard.
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Sends somebody on to the client who came back from an authorization server.
    pub(super) fn arrived(&self, request: &Request) -> Option<Reply> {
        let query = request.query.as_deref()?;
        let arrived = || self.ways.arrived(&request.path, query);
        (request.method == Method::GET).then(arrived)?
    }

    /// Whether there is a document about the guarded server at this path.
    pub(super) fn is_document(&self, path: &str) -> bool {
        let announced = lock(&self.announced);
        is_well_known(path) || announced.contains(path)
    }

    /// A client that must sign in finds the document about it through the guard. `path` is that of the guarded server.
    pub(super) fn rewrite_challenges(&self, headers: &mut HeaderMap, path: &str) {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let challenges: Vec<_> = challenges
            .map(|value| {
                let challenge = value.to_str().ok();
                let rewritten = challenge.and_then(|text| self.rewritten(text, path));
                let rewritten = rewritten.and_then(|text| text.parse().ok());
                rewritten.unwrap_or_else(|| value.clone())
            })
            .collect();
        headers.remove(WWW_AUTHENTICATE);
        for challenge in challenges {
            headers.append(WWW_AUTHENTICATE, challenge);
        }
    }

    fn rewritten(&self, challenge: &str, server_path: &str) -> Option<String> {
        let theirs = format!("{RESOURCE_METADATA}{}/", self.theirs);
        let (before, after) = challenge.split_once(&theirs)?;
        // The document may be anywhere on the server; only what it names so can be asked for.
        let path = after.split(['"', '?', '#']).next().unwrap_or_default();
        let path = format!("/{path}");
        if !is_well_known(&path) && path != server_path {
            let mut announced = lock(&self.announced);
            if announced.len() < MAX_ANNOUNCED {
                announced.insert(path);
            }
        }
        Some(format!("{before}{RESOURCE_METADATA}{}/{after}", self.own))
    }

    /// What a path is for, if it is that of an authorization server behind the guard.
    pub(super) fn request(path: &str) -> Option<SignInRequest> {
        for (place, description) in DESCRIPTIONS.iter().enumerate() {
            if let Some(rest) = path.strip_prefix(description)
                && let Some(number) = rest.strip_prefix(SIGN_IN)
            {
                let server = number.parse().ok()?;
                return Some(SignInRequest::Description { server, place });
            }
        }
        let (number, rest) = path.strip_prefix(SIGN_IN)?.split_once('/')?;
        let server = number.parse().ok()?;
        if rest == DESCRIPTIONS[1].trim_start_matches('/') {
            return Some(SignInRequest::Description { server, place: 2 });
        }
        let endpoint = ENDPOINTS.iter().position(|(_, path)| *path == rest)?;
        Some(SignInRequest::Endpoint { server, endpoint })
    }

    /// Answers a request for an authorization server.
    pub(super) async fn answer(
        &self,
        client: &Client,
        asked: SignInRequest,
        request: Request,
    ) -> Reply {
        match asked {
            SignInRequest::Description { server, place } => {
                let Some(behind) = self.server(server) else {
                    return unknown();
                };
                let Some(url) = places(&behind.issuer).into_iter().nth(place) else {
                    return unknown();
                };
                let headers = passed_on(&request.headers);
                let (reply, body) = match get(client, &url, headers).await {
                    Ok(got) => got,
                    Err(reply) => return *reply,
                };
                let document = serde_json::from_slice(&body).ok();
                let behind = document.and_then(|document| self.put_behind(&document, None));
                reply.with_body(ReplyBody::Whole(behind.map_or(body, Bytes::from)))
            }
            SignInRequest::Endpoint { server, endpoint } => {
                let Some(behind) = self.server(server) else {
                    return unknown();
                };
                self.pass_on(client, (server, endpoint), behind, request)
                    .await
            }
        }
    }

    /// Passes a request on to an endpoint, for the server's own address.
    async fn pass_on(
        &self,
        client: &Client,
        (number, endpoint): (usize, usize),
        behind: BehindServer,
        request: Request,
    ) -> Reply {
        let Some(mut url) = behind.endpoints[endpoint].clone() else {
            return unknown();
        };
        let for_them = |form: &str| {
            let form = self.for_them(form);
            match &behind.named {
                Some(theirs) => {
                    let ours = self.issuer(number);
                    self.ways.through_form(&form, number, theirs, &ours)
                }
                None => form,
            }
        };
        if let Some(query) = request.query.as_deref().map(for_them) {
            let query = match url.query() {
                Some(own) => format!("{own}&{query}"),
                None => query,
            };
            url.set_query(Some(&query));
        }
        let name = ENDPOINTS[endpoint].0;
        if name == "authorization_endpoint" {
            if request.method != Method::GET {
                return refused(StatusCode::METHOD_NOT_ALLOWED, "send people here with GET");
            }
            // A browser goes on by itself, so that the person sees whom they talk to.
            return redirect(&url);
        }
        if request.method != Method::POST {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes POST");
        }
        let body = match &request.body {
            Ok(body) => body,
            Err(problem) => return refused(problem.status(), &problem.to_string()),
        };
        let body = if name == "registration_endpoint" {
            let told = self.ways.registration(body, number);
            told.filter(|_| behind.named.is_some())
                .map_or_else(|| body.clone(), Bytes::from)
        } else {
            match str::from_utf8(body) {
                Ok(form) => for_them(form).into(),
                Err(_) => return refused(StatusCode::BAD_REQUEST, "the body is no form"),
            }
        };
        let headers = passed_on(&request.headers);
        let sent = client.send(Method::POST, url.as_str(), headers, body);
        match sent.await {
            Ok(response) => whole(response).await.map_or_else(
                |reply| *reply,
                |(reply, body)| reply.with_body(ReplyBody::Whole(body)),
            ),
            Err(error) => refused(StatusCode::BAD_GATEWAY, &error.to_string()),
        }
    }

    /// A document about the guarded server, as clients of the guard need it; nothing where nothing in it has to change.
    pub(super) async fn document(&self, client: &Client, body: &[u8]) -> Option<String> {
        let mut document: Value = serde_json::from_slice(body).ok()?;
        if let Some(issuer) = document.get("issuer").and_then(Value::as_str) {
            // Before there were documents about resources, servers described an authorization server of their own.
            let own = swapped(issuer, &self.theirs, &self.own)?;
            return self.put_behind(&document, Some(own));
        }
        let resource = document.get(RESOURCE)?.as_str()?;
        let resource = swapped(resource, &self.theirs, &self.own)?;
        document[RESOURCE] = Value::from(resource);
        let named = document.get_mut("authorization_servers");
        let named = named.and_then(Value::as_array_mut).into_iter().flatten();
        for issuer in named.take(MAX_SERVERS) {
            let Some(url) = issuer.as_str().and_then(|text| Url::parse(text).ok()) else {
                continue;
            };
            if let Some(description) = self.description(client, &url, issuer).await
                && let Some(number) = self.learn(&description)
            {
                *issuer = Value::from(self.issuer(number));
            }
        }
        Some(document.to_string())
    }

    /// What an authorization server says of itself, at the first of its places that has something.
    async fn description(&self, client: &Client, url: &Url, issuer: &Value) -> Option<Value> {
        if !is_safe(url) {
            return None;
        }
        for place in places(url) {
            let got = tokio::time::timeout(PATIENCE, get(client, &place, HeaderMap::new()));
            let Ok(Ok((reply, body))) = got.await else {
                continue;
            };
            if reply.status.is_success() {
                let document: Value = serde_json::from_slice(&body).ok()?;
                return (document.get("issuer") == Some(issuer)).then_some(document);
            }
        }
        None
    }

    /// The description with endpoints of the guard; nothing where it must stay as it is.
    fn put_behind(&self, description: &Value, issuer: Option<String>) -> Option<String> {
        let number = self.learn(description)?;
        let base = self.issuer(number);
        let mut description = description.clone();
        for (name, path) in ENDPOINTS {
            if description.get(name).is_some_and(Value::is_string) {
                description[name] = Value::from(format!("{base}/{path}"));
            }
        }
        for name in [
            "token_endpoint_auth_methods_supported",
            "pushed_authorization_request_endpoint_auth_methods_supported",
        ] {
            let methods = description.get_mut(name).and_then(Value::as_array_mut);
            if let Some(methods) = methods {
                methods.retain(|method| !is_signed(method));
            }
        }
        // Signed by the authorization server, for the addresses that it has itself.
        if let Some(members) = description.as_object_mut() {
            members.remove("signed_metadata");
        }
        description["issuer"] = Value::from(issuer.unwrap_or(base));
        Some(description.to_string())
    }

    /// Remembers an authorization server, if it may be put behind the guard; its number.
    fn learn(&self, description: &Value) -> Option<usize> {
        let text = |key: &str| description.get(key).and_then(Value::as_str);
        let url = |key: &str| text(key).and_then(|text| Url::parse(text).ok());
        let issuer = url("issuer").filter(is_safe)?;
        if !self.may_be_put_behind(description) {
            return None;
        }
        let named = text("issuer").filter(|_| names_itself(description));
        let endpoints = ENDPOINTS.map(|(name, _)| url(name).filter(is_safe));
        // An endpoint that cannot be used as it is told is left to the client to refuse.
        let mut told = ENDPOINTS.iter().zip(&endpoints);
        let is_usable = told.all(|((name, _), url)| text(name).is_none() || url.is_some());
        if endpoints[1].is_none() || !is_usable {
            return None;
        }
        let mut servers = lock(&self.servers);
        let known = servers.iter().position(|server| server.issuer == issuer);
        let server = BehindServer {
            issuer,
            endpoints,
            named: named.map(str::to_owned),
        };
        if let Some(number) = known {
            servers[number] = server;
            return Some(number);
        }
        if servers.len() >= MAX_SERVERS {
            return None;
        }
        servers.push(server);
        Some(servers.len() - 1)
    }

    /// Whether an authorization server works behind another address. Where all its clients sign for whom their proof is, it does not;
    /// where it names itself when it sends people back, they must be able to come back through the guard.
    fn may_be_put_behind(&self, description: &Value) -> bool {
        let methods = description.get("token_endpoint_auth_methods_supported");
        let is_signed_only = methods
            .and_then(Value::as_array)
            .is_some_and(|methods| !methods.is_empty() && methods.iter().all(is_signed));
        !is_signed_only && (self.ways.are_open() || !names_itself(description))
    }

    fn server(&self, number: usize) -> Option<BehindServer> {
        let servers = lock(&self.servers);
        servers.get(number).cloned()
    }

    /// What clients know an authorization server by.
    fn issuer(&self, number: usize) -> String {
        format!("{}{SIGN_IN}{number}", self.own)
    }

    /// A form or a query with the address of the server in place of the guard's. Everything else stays as it is written.
    fn for_them(&self, form: &str) -> String {
        FormText(form).with(RESOURCE, |resource| {
            swapped(resource, &self.own, &self.theirs)
        })
    }
}

/// A form or a query, as it is written.
pub(super) struct FormText<'f>(pub(super) &'f str);

impl FormText<'_> {
    /// The first value of a key.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        let mut pairs = self.0.split('&').filter_map(pair);
        pairs.find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The same with other values for a key. Everything else stays as it is written.
    pub(super) fn with(&self, key: &str, change: impl Fn(&str) -> Option<String>) -> String {
        let parts = self.0.split('&').map(|part| {
            let pair = pair(part).filter(|(name, _)| name == key);
            match pair.and_then(|(_, value)| change(&value)) {
                Some(changed) => format!("{key}={}", encoded(&changed)),
                None => part.to_owned(),
            }
        });
        parts.collect::<Vec<_>>().join("&")
    }
}

/// An address with another origin, if it has this one.
fn swapped(address: &str, from: &str, to: &str) -> Option<String> {
    let rest = address.strip_prefix(from)?;
    let is_whole = rest.is_empty() || rest.starts_with(['/', '?']);
    is_whole.then(|| format!("{to}{rest}"))
}

/// The key and the value of a part of a form.
fn pair(part: &str) -> Option<(String, String)> {
    let url = Url::parse(&format!("http://form/?{part}")).ok()?;
    let pair = url.query_pairs().next()?;
    Some((pair.0.into_owned(), pair.1.into_owned()))
}

/// Whether an authorization server names itself when it sends people back (RFC 9207).
fn names_itself(description: &Value) -> bool {
    description.get("authorization_response_iss_parameter_supported") == Some(&true.into())
}

/// A value as a form has it.
fn encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Whether a client shows who it is by something that it signs for one address.
fn is_signed(method: &Value) -> bool {
    matches!(
        method.as_str(),
        Some("private_key_jwt" | "client_secret_jwt")
    )
}

/// Where an authorization server may describe itself, in the order in which clients look.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: &str| {
        let mut url = issuer.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    let mut places: Vec<Url> = DESCRIPTIONS
        .iter()
        .map(|description| at(&format!("{description}{path}")))
        .collect();
    places.push(at(&format!("{path}{}", DESCRIPTIONS[1])));
    places.dedup();
    places
}

/// Whether secrets may be sent to an address: encrypted, or not leaving this machine.
fn is_safe(url: &Url) -> bool {
    let is_local = url.host_str().is_some_and(is_this_machine);
    let is_encrypted = url.scheme() == "https" || (url.scheme() == "http" && is_local);
    is_encrypted && url.has_host() && url.username().is_empty() && url.password().is_none()
}

async fn get(client: &Client, url: &Url, headers: HeaderMap) -> Result<(Reply, Bytes), Box<Reply>> {
    let sent = client.send(Method::GET, url.as_str(), headers, Bytes::new());
    match sent.await {
        Ok(response) => whole(response).await,
        Err(error) => Err(Box::new(refused(
            StatusCode::BAD_GATEWAY,
            &error.to_string(),
        ))),
    }
}

/// The whole answer: what a reply begins with, and its body.
pub(super) async fn whole(
    response: proofhouse_wire::client::StreamedResponse,
) -> Result<(Reply, Bytes), Box<Reply>> {
    let reply = with_headers(Reply::empty(response.status), passed_on(&response.headers));
    match response.bytes().await {
        Ok(body) => Ok((reply, body)),
        Err(error) => Err(Box::new(refused(
            StatusCode::BAD_GATEWAY,
            &error.to_string(),
        ))),
    }
}

fn unknown() -> Reply {
    refused(
        StatusCode::NOT_FOUND,
        "no authorization server was named that is here",
    )
}

/// Whether clients look here for a document about signing in to the guarded server.
fn is_well_known(path: &str) -> bool {
    let mut places = DESCRIPTIONS.into_iter().chain([RESOURCE_DOCUMENT]);
    places.any(|place| {
        path.strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sign_in() -> SignIn {
        SignIn::new(
            SocketAddr::from(([127, 0, 0, 1], 9090)),
            "https://mcp.example".to_owned(),
        )
    }

    #[test]
    fn only_the_resource_of_a_form_changes() {
        let sign_in = sign_in();
        for (form, theirs) in [
            (
                "a=b%20c&resource=http%3A%2F%2F127.0.0.1%3A9090%2Fmcp&state=x+y",
                "a=b%20c&resource=https%3A%2F%2Fmcp.example%2Fmcp&state=x+y",
            ),
            (
                "resource=http://127.0.0.1:9090",
                "resource=https%3A%2F%2Fmcp.example",
            ),
            // Another port, another host, another parameter.
            (
                "resource=http%3A%2F%2F127.0.0.1%3A90901%2F",
                "resource=http%3A%2F%2F127.0.0.1%3A90901%2F",
            ),
            (
                "redirect_uri=http%3A%2F%2F127.0.0.1%3A9090%2Fmcp",
                "redirect_uri=http%3A%2F%2F127.0.0.1%3A9090%2Fmcp",
            ),
            ("", ""),
        ] {
            assert_eq!(sign_in.for_them(form), theirs);
        }
    }

    #[test]
    fn one_that_would_not_work_behind_another_address_stays_where_it_is() {
        let plain = json!({
            "issuer": "https://login.example/t",
            "authorization_endpoint": "https://login.example/t/authorize?p=1",
            "token_endpoint": "https://login.example/t/token",
            "registration_endpoint": "https://login.example/t/register",
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "signed_metadata": "x.y.z",
        });
        let with = |key: &str, value: Value| {
            let mut description = plain.clone();
            description[key] = value;
            description
        };
        let sign_in = sign_in();
        let behind = sign_in.put_behind(&plain, None).unwrap();
        let behind: Value = serde_json::from_str(&behind).unwrap();
        let base = "http://127.0.0.1:9090/.proofhouse/sign-in/0";
        assert_eq!(
            behind,
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "token_endpoint_auth_methods_supported": ["none"],
            })
        );
        for stays in [
            with(
                "token_endpoint_auth_methods_supported",
                json!(["private_key_jwt"]),
            ),
            with("token_endpoint", "http://login.example/t/token".into()),
            with("token_endpoint", "file:///etc/passwd".into()),
            with("issuer", "http://10.0.0.1/t".into()),
        ] {
            assert_eq!(sign_in.put_behind(&stays, None), None, "{stays}");
        }
        // People cannot come back through a guard on another machine.
        let names_itself = with(
            "authorization_response_iss_parameter_supported",
            true.into(),
        );
        assert!(sign_in.put_behind(&names_itself, None).is_some());
        let away = SignIn::new(SocketAddr::from(([10, 0, 0, 1], 80)), sign_in.theirs);
        assert_eq!(away.put_behind(&names_itself, None), None);
    }

    #[test]
    fn paths_of_those_behind_the_guard_are_told_from_all_others() {
        let description = |server, place| Some(SignInRequest::Description { server, place });
        for (path, asked) in [
            (
                "/.well-known/oauth-authorization-server/.proofhouse/sign-in/3",
                description(3, 0),
            ),
            (
                "/.well-known/openid-configuration/.proofhouse/sign-in/0",
                description(0, 1),
            ),
            (
                "/.proofhouse/sign-in/0/.well-known/openid-configuration",
                description(0, 2),
            ),
            (
                "/.proofhouse/sign-in/12/token",
                Some(SignInRequest::Endpoint {
                    server: 12,
                    endpoint: 1,
                }),
            ),
            ("/.proofhouse/sign-in/12/other", None),
            ("/.proofhouse/sign-in/x/token", None),
            ("/.well-known/oauth-authorization-server", None),
            ("/mcp", None),
        ] {
            assert_eq!(SignIn::request(path), asked, "{path}");
        }
    }
}
