//! A small HTTP server on the loopback address that answers as a test tells it to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// What a client asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
}

/// What the server does about it.
pub(crate) enum Reply {
    Json(Value),
    /// A status, more headers (each with its line end), and a body.
    Plain(u16, &'static str, String),
    /// Nothing, for a while.
    Silence(Duration),
    /// A body without an end, as fast as it goes.
    Endless,
}

/// The server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one. `answer` gets each request and its number, from 0.
    pub(crate) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (requests, stop) = (Arc::clone(&requests), Arc::clone(&stop));
            move || {
                for stream in listener.incoming() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // A client that goes away in between is part of the tests.
                    let _ = serve(&mut stream.unwrap(), &requests, &answer);
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

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
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
    requests: &Mutex<Vec<Request>>,
    answer: &impl Fn(&Request, usize) -> Reply,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut authorization) = (0, None);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = Request {
        path,
        authorization,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let (status, headers, text) = match answer(&request, number) {
        Reply::Json(value) => (200, "Content-Type: application/json\r\n", value.to_string()),
        Reply::Plain(status, headers, text) => (status, headers, text),
        Reply::Silence(time) => {
            thread::sleep(time);
            return Ok(());
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            // The client hangs up long before this is through.
            for _ in 0..4096 {
                stream.write_all(&[b' '; 4096])?;
            }
            return Ok(());
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// An answer of a judge.
pub(crate) fn judgement(content: &str) -> Reply {
    Reply::Json(json!({"choices": [{"message": {"role": "assistant", "content": content}}]}))
}

/// The text a judge was asked about, out of its fence.
pub(crate) fn judged(request: &Request) -> String {
    let content = request.body["messages"][1]["content"].as_str().unwrap();
    serde_json::from_str(content.lines().nth(1).unwrap()).unwrap()
}

/// A judge that looks for one word.
pub(crate) fn judge_of_theft(request: &Request, _: usize) -> Reply {
    let score = if judged(request).contains("steal") {
        0.9
    } else {
        0.1
    };
    judgement(&json!({"score": score}).to_string())
}

/// Embeddings of two numbers: the angle to the intent is the number in the text, in degrees.
pub(crate) fn angles(request: &Request, _: usize) -> Reply {
    let texts = request.body["input"].as_array().unwrap().iter();
    let data: Vec<Value> = texts
        .enumerate()
        .map(|(index, text)| {
            let digits = text.as_str().unwrap().split_whitespace().last().unwrap();
            let (sin, cos) = digits.parse::<f64>().unwrap_or(0.0).to_radians().sin_cos();
            json!({"index": index, "embedding": [cos, sin]})
        })
        .collect();
    Reply::Json(json!({"data": data}))
}
