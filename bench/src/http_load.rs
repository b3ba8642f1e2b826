//! Load over HTTP: the same requests over keep-alive connections, each answered before the next.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request without what changes from one to the next.
#[derive(Clone)]
pub(crate) struct Template {
    pub(crate) path: &'static str,
    pub(crate) headers: String,
}

impl Template {
    fn bytes(&self, address: SocketAddr, body: &str) -> Vec<u8> {
        format!(
            "POST {} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{body}",
            self.path,
            self.headers,
            body.len()
        )
        .into_bytes()
    }
}

/// What a load found.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// Sends `count` requests over `connections`, each with an id of its own, and checks that every
/// answer holds `expected`.
pub(crate) async fn run(
    address: SocketAddr,
    template: &Template,
    body: fn(usize) -> String,
    expected: &'static str,
    connections: usize,
    count: usize,
) -> Result<Load, String> {
    let started = Instant::now();
    let mut tasks = Vec::new();
    for connection in 0..connections {
        let template = template.clone();
        tasks.push(tokio::spawn(async move {
            let mut stream = Connection::open(address).await?;
            let mut times = Vec::with_capacity(count / connections);
            for number in 0..count / connections {
                let request = template.bytes(address, &body(connection * count + number));
                let sent = Instant::now();
                let answer = stream.exchange(&request).await?;
                times.push(sent.elapsed());
                if !answer.contains(expected) {
                    return Err(format!("an unexpected answer: {answer}"));
                }
            }
            Ok::<_, String>(times)
        }));
    }
    let mut times = Vec::with_capacity(count);
    for task in tasks {
        times.extend(task.await.map_err(|error| error.to_string())??);
    }
    let took = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Ok(Load {
        per_second: times.len() as f64 / took,
        p50: at(0.5),
        p99: at(0.99),
    })
}

/// Sends one request and returns the head and the body of the answer.
pub(crate) async fn once(
    address: SocketAddr,
    template: &Template,
    body: &str,
) -> Result<String, String> {
    let mut stream = Connection::open(address).await?;
    stream.exchange(&template.bytes(address, body)).await
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(16 << 10),
        })
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<String, String> {
        self.stream
            .write_all(request)
            .await
            .map_err(|error| error.to_string())?;
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await;
            let count = read.map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&self.buffer);
            if is_whole(&text) {
                return Ok(text.into_owned());
            }
            if count == 0 {
                return Err(format!("the connection ended: {text}"));
            }
        }
    }
}

/// Whether an answer has arrived to its end, by its length or its last chunk.
fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    match head.split("content-length: ").nth(1) {
        Some(rest) => {
            let digits = rest.split("\r\n").next().unwrap_or_default();
            digits.trim().parse() == Ok(body.len())
        }
        None if head.contains("transfer-encoding: chunked") => body.ends_with("0\r\n\r\n"),
        None => true,
    }
}
