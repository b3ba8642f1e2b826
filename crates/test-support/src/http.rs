//! A small HTTP server on the loopback interface that answers as a test tells it to, on threads of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// How long a client may leave the server waiting.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest body that is read.
const MAX_BODY: usize = 64 << 20;

/// What a client asked.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// Such as `POST`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// As it was sent.
    pub body: Vec<u8>,
}

impl SeenRequest {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body, or null where it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What the server does about it.
#[derive(Debug)]
pub enum TestReply {
    /// A good answer.
    Json(Value),
    /// A status, more headers (each with its line end), and a body.
    Plain(u16, &'static str, String),
    /// Nothing, for a while.
    Silence(Duration),
    /// Nothing, until the client leaves.
    Held,
    /// A body without an end, as fast as it goes.
    Endless,
}

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts one. `answer` gets each request and its number, from 0.
    pub fn start(
        answer: impl Fn(&SeenRequest, usize) -> TestReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (requests, stop, answer) =
                (Arc::clone(&requests), Arc::clone(&stop), Arc::new(answer));
            move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                    thread::spawn(move || {
                        // A client that goes away in between is part of the tests.
                        let _ = serve(&mut stream.unwrap(), &requests, &*answer);
                    });
                }
            }
        });
        Self {
            address,
            requests,
            stop,
            thread: Some(thread),
        }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All that it was asked so far.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The listener waits for a connection; here is one.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    stream: &mut TcpStream,
    requests: &Mutex<Vec<SeenRequest>>,
    answer: &impl Fn(&SeenRequest, usize) -> TestReply,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = read(&mut reader)?;
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let (status, headers, text) = match answer(&request, number) {
        TestReply::Json(value) => (200, "content-type: application/json\r\n", value.to_string()),
        TestReply::Plain(status, headers, text) => (status, headers, text),
        TestReply::Silence(time) => {
            thread::sleep(time);
            return Ok(());
        }
        TestReply::Held => {
            while reader.read(&mut [0; 64])? > 0 {}
            return Ok(());
        }
        TestReply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            // The client hangs up long before this is through.
            for _ in 0..4096 {
                stream.write_all(&[b' '; 4096])?;
            }
            return Ok(());
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The head and the body, as far as its length says.
fn read(reader: &mut impl BufRead) -> std::io::Result<SeenRequest> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = SeenRequest {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers: BTreeMap::new(),
        body: Vec::new(),
    };
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        request.headers.insert(name, value);
    }
    let length = request.header("content-length").unwrap_or_default();
    request.body = vec![0; length.parse().unwrap_or(0).min(MAX_BODY)];
    reader.read_exact(&mut request.body)?;
    Ok(request)
}
