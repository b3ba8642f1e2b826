//! Asks an address what it speaks: the card of an A2A agent, `initialize` of MCP, a run of AG-UI. Only ports of
//! this machine are asked without being named, and never with a run, which may cost something.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use proofhouse_protocol::a2a::card;
use proofhouse_protocol::ag_ui::{AgUiEventType, complete_input};
use proofhouse_protocol::mcp::{
    McpMethod, McpRevision, ToolHeaders, header, headers_of, wrap_params,
};
use proofhouse_protocol::{ACCEPT_JSON_OR_EVENTS, JSON, rpc};
use proofhouse_wire::client::{Client, ClientError, StreamedResponse};
use proofhouse_wire::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, WireLimits};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Where the usual frameworks listen.
pub const PORTS: [u16; 10] = [
    3000, 5000, 8000, 8001, 8080, 8888, 9000, 9999, 10_000, 41_241,
];
/// How long all ports together may take.
const ALL_PORTS: Duration = Duration::from_secs(4);
/// How long an address that was named may take.
const NAMED: Duration = Duration::from_secs(15);
/// How long one answer may take from a port that was not named.
const ANSWER: Duration = Duration::from_secs(1);
/// A card or an answer to `initialize` has a few KiB.
const MAX_BYTES: usize = 256 << 10;

/// What an address speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spoken {
    /// Where it speaks AG-UI.
    pub ag_ui: Option<String>,
    /// Where it speaks A2A.
    pub a2a: Option<String>,
    /// Where it serves MCP.
    pub mcp: Option<String>,
}

impl Spoken {
    /// Whether it speaks nothing that we know.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The protocols, in words.
    #[must_use]
    pub fn protocols(&self) -> String {
        let all = [
            ("AG-UI", &self.ag_ui),
            ("A2A", &self.a2a),
            ("MCP", &self.mcp),
        ];
        let spoken = all.into_iter().filter(|(_, url)| url.is_some());
        let spoken: Vec<&str> = spoken.map(|(name, _)| name).collect();
        spoken.join(" and ")
    }

    /// Where it is, of whichever protocol.
    #[must_use]
    pub fn place(&self) -> &str {
        let url = self
            .ag_ui
            .as_ref()
            .or(self.a2a.as_ref())
            .or(self.mcp.as_ref());
        url.map_or("", String::as_str)
    }
}

/// Why an address cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It is no URL.
    #[error("write a URL that begins with http:// or https://")]
    NoUrl,
    /// Nobody is there.
    #[error(transparent)]
    Unreachable(#[from] ClientError),
}

/// Asks an address that was named.
///
/// # Errors
///
/// Returns an error when it is none, or nobody is there.
pub async fn probe_url(url: &str) -> Result<Spoken, ProbeError> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    if rest.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
        return Err(ProbeError::NoUrl);
    }
    let client = client(NAMED)?;
    client.reach(url).await?;
    let asked = timeout(NAMED, ask(&client, url, true)).await;
    Ok(asked.unwrap_or_default())
}

/// Asks ports of this machine that are open.
pub async fn probe_ports(ports: &[u16]) -> Vec<Spoken> {
    let Ok(client) = client(ANSWER) else {
        return Vec::new();
    };
    let mut asked = JoinSet::new();
    for (place, port) in ports.iter().copied().enumerate() {
        let client = client.clone();
        asked.spawn(async move {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let open = timeout(ANSWER, TcpStream::connect(address)).await;
            if !matches!(open, Ok(Ok(_))) {
                return (place, Spoken::default());
            }
            (
                place,
                ask(&client, &format!("http://{address}/"), false).await,
            )
        });
    }
    let mut found = Vec::new();
    let _ = timeout(ALL_PORTS, async {
        while let Some(spoken) = asked.join_next().await {
            found.extend(spoken.ok().filter(|(_, spoken)| !spoken.is_empty()));
        }
    })
    .await;
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, spoken)| spoken).collect()
}

fn client(patience: Duration) -> Result<Client, ClientError> {
    let limits = WireLimits {
        max_message_bytes: MAX_BYTES,
        max_stream_bytes: MAX_BYTES as u64,
        max_events: 16,
        connect_timeout: patience.min(Duration::from_secs(5)),
        response_timeout: patience,
        idle_timeout: patience,
        ..WireLimits::default()
    };
    Client::new(limits)
}

async fn ask(client: &Client, url: &str, may_run: bool) -> Spoken {
    let base = url.trim_end_matches('/');
    let mut spoken = Spoken::default();
    for path in [card::PATH, card::OLD_PATH] {
        if spoken.a2a.is_none() && has_card(client, &format!("{base}/{path}")).await {
            spoken.a2a = Some(url.to_owned());
        }
    }
    for mcp in [format!("{base}/mcp"), url.to_owned()] {
        // Some give the same answer everywhere; the usual place is enough.
        if spoken.mcp.is_none()
            && (may_run || mcp.ends_with("/mcp"))
            && speaks_mcp(client, &mcp).await
        {
            spoken.mcp = Some(mcp);
        }
    }
    if may_run && spoken.is_empty() && runs(client, url).await {
        spoken.ag_ui = Some(url.to_owned());
    }
    spoken
}

async fn has_card(client: &Client, url: &str) -> bool {
    let answer = client
        .send(Method::GET, url, HeaderMap::new(), Bytes::new())
        .await;
    let Some(card) = json_of(answer.ok()).await else {
        return false;
    };
    card::is_card(&card)
}

/// Whether it answers a handshake, whichever revision it then agrees to, or else a request that needs none.
async fn speaks_mcp(client: &Client, url: &str) -> bool {
    initializes(client, url).await || discovers(client, url).await
}

async fn initializes(client: &Client, url: &str) -> bool {
    let params = json!({
        "protocolVersion": McpRevision::LATEST_WITH_SESSIONS.as_str(), "capabilities": {},
        "clientInfo": client_info(),
    });
    let hello = rpc::request(&json!(1), McpMethod::Initialize.as_str(), Some(&params));
    let Some(answer) = post(client, url, &hello, &[]).await else {
        return false;
    };
    let session = answer.headers.get(header::SESSION_ID).cloned();
    let reply = reply_of(answer).await;
    if let Some(session) = session {
        // A session that was only asked for is not left behind.
        let mut headers = HeaderMap::new();
        headers.insert(header::SESSION_ID, session);
        let _ = client
            .send(Method::DELETE, url, headers, Bytes::new())
            .await;
    }
    reply.is_some_and(|reply| reply["result"]["protocolVersion"].is_string())
}

/// Whether it is of a revision without a handshake, and says what it supports.
async fn discovers(client: &Client, url: &str) -> bool {
    let (method, version) = (McpMethod::ServerDiscover.as_str(), McpRevision::LATEST);
    let params = wrap_params(None, version.as_str(), &json!({}), &client_info());
    let headers = headers_of(method, &params, version.as_str(), &ToolHeaders::default());
    let question = rpc::request(&json!(1), method, Some(&params));
    let Some(answer) = post(client, url, &question, &headers).await else {
        return false;
    };
    let reply = reply_of(answer).await;
    reply.is_some_and(|reply| reply["result"]["supportedVersions"].is_array())
}

fn client_info() -> Value {
    json!({"name": "proofhouse-init", "version": env!("CARGO_PKG_VERSION")})
}

/// The first message of an answer.
async fn reply_of(answer: StreamedResponse) -> Option<Value> {
    if !answer.is_event_stream() {
        return json_of(Some(answer)).await;
    }
    match answer.events().next().await {
        Ok(Some(event)) => serde_json::from_str(&event.data).ok(),
        _ => None,
    }
}

/// Whether it answers an empty conversation with the events of a run.
async fn runs(client: &Client, url: &str) -> bool {
    let input = json!({"threadId": "proofhouse-init", "runId": "proofhouse-init"});
    let Some(answer) = post(client, url, &complete_input(input), &[]).await else {
        return false;
    };
    if !answer.is_event_stream() {
        return false;
    }
    let Ok(Some(event)) = answer.events().next().await else {
        return false;
    };
    let event: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let kind = event["type"].as_str().and_then(AgUiEventType::parse);
    kind.is_some_and(AgUiEventType::may_come_first)
}

async fn post(
    client: &Client,
    url: &str,
    body: &Value,
    more: &[(String, String)],
) -> Option<StreamedResponse> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(JSON));
    headers.insert("accept", HeaderValue::from_static(ACCEPT_JSON_OR_EVENTS));
    for (name, value) in more {
        let name = HeaderName::try_from(name).ok()?;
        headers.insert(name, HeaderValue::try_from(value).ok()?);
    }
    let body = Bytes::from(body.to_string());
    let answer = client.send(Method::POST, url, headers, body).await.ok()?;
    answer.status.is_success().then_some(answer)
}

async fn json_of(answer: Option<StreamedResponse>) -> Option<Value> {
    let answer = answer.filter(|answer| answer.status.is_success())?;
    serde_json::from_slice(&answer.bytes().await.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers every request with the same bytes, and gives its port.
    async fn answering(answer: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let _ = stream.read(&mut request).await;
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn only_those_who_speak_are_found() {
        let card = answering(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
             {\"name\": \"x\", \"url\": \"http://x\", \"skills\": []}",
        )
        .await;
        let mcp = answering(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
             {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"protocolVersion\": \"2025-06-18\"}}",
        )
        .await;
        let page = answering("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>").await;
        let noise = answering("\u{0}\u{1}nonsense").await;
        let found = probe_ports(&[page, mcp, noise, card]).await;
        let at = |port: u16| format!("http://127.0.0.1:{port}/");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].mcp, Some(format!("{}mcp", at(mcp))));
        assert_eq!(found[1].a2a, Some(at(card)));
    }

    #[tokio::test]
    async fn servers_of_every_revision_of_mcp_are_found() {
        for revision in McpRevision::ALL {
            let result = if revision.has_sessions() {
                json!({"protocolVersion": revision.as_str()})
            } else {
                json!({"supportedVersions": [revision.as_str()]})
            };
            let reply = rpc::response(&json!(1), result);
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{reply}"
            );
            let port = answering(answer.leak()).await;
            let url = format!("http://127.0.0.1:{port}/mcp");
            let found = probe_ports(&[port]).await;
            assert_eq!(found.len(), 1, "{revision}");
            assert_eq!(found[0].mcp, Some(url), "{revision}");
        }
    }

    #[tokio::test]
    async fn a_named_agent_is_asked_for_a_run() {
        let agent = answering(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
             data: {\"type\": \"RUN_STARTED\"}\n\n",
        )
        .await;
        let url = format!("http://127.0.0.1:{agent}/");
        assert_eq!(probe_url(&url).await.unwrap().ag_ui, Some(url.clone()));
        assert_eq!(
            probe_ports(&[agent]).await,
            [],
            "a run is not asked for unasked"
        );
        for wrong in ["ftp://x", "http://", "http://a b/"] {
            assert!(probe_url(wrong).await.is_err(), "{wrong}");
        }
    }
}
