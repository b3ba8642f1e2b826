//! HTTP by hand, so that it can be done wrong.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// What is read of one answer.
const MAX_ANSWER: usize = 256 << 10;

/// Nobody waits longer for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// An answer, or as much of it as came.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// 0 when the connection was closed without one.
    pub(crate) status: u16,
    text: String,
}

impl Answer {
    fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        Self {
            status: status.unwrap_or(0),
            text,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (head, _) = self.text.split_once("\r\n\r\n")?;
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn text(&self) -> &str {
        self.text
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }

    /// The JSON of the body; `null` when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

/// A connection.
pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) async fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        let _ = stream.set_nodelay(true);
        Some(Self(stream))
    }

    /// A connection that takes in next to nothing that it does not read.
    pub(crate) async fn narrow(address: SocketAddr) -> Option<Self> {
        let socket = TcpSocket::new_v4().ok()?;
        socket.set_recv_buffer_size(4096).ok()?;
        Some(Self(socket.connect(address).await.ok()?))
    }

    /// `false` when the other end is gone.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        let writing = self.0.write_all(bytes);
        matches!(tokio::time::timeout(PATIENCE, writing).await, Ok(Ok(())))
    }

    /// Reads until the other end closes, enough has come, or the time is over.
    pub(crate) async fn read(&mut self, time: Duration) -> Answer {
        let mut bytes = Vec::new();
        let _ = tokio::time::timeout(time, async {
            let mut piece = vec![0; 16 << 10];
            while let Ok(count @ 1..) = self.0.read(&mut piece).await {
                bytes.extend_from_slice(&piece[..count]);
                if bytes.len() > MAX_ANSWER {
                    break;
                }
            }
        })
        .await;
        Answer::new(&bytes)
    }

    /// Reads the beginning of an answer.
    pub(crate) async fn first(&mut self, time: Duration) -> Answer {
        let mut piece = [0; 4096];
        match tokio::time::timeout(time, self.0.read(&mut piece)).await {
            Ok(Ok(count)) => Answer::new(&piece[..count]),
            _ => Answer::default(),
        }
    }

    /// How much there is to read now, until the other end closes or is silent.
    pub(crate) async fn drain(&mut self) -> usize {
        let (mut total, mut piece) = (0, vec![0; 64 << 10]);
        loop {
            let reading = tokio::time::timeout(Duration::from_millis(500), self.0.read(&mut piece));
            match reading.await {
                Ok(Ok(count @ 1..)) => total += count,
                _ => return total,
            }
        }
    }
}

/// The bytes of a POST of JSON.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// Sends bytes on a connection of their own and reads the answer to its end.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let Some(mut wire) = Wire::open(address).await else {
        return Answer::default();
    };
    // Servers may answer, and close, before they read everything.
    let _ = wire.write(bytes).await;
    wire.read(PATIENCE).await
}

pub(crate) fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Parameters in the envelope of the modern era.
pub(crate) fn enveloped(mut params: Value, client: &str) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    params
}
