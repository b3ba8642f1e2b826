//! `mcp` with servers that others wrote: the reference servers from npm, and the official SDKs of both eras.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of them"
)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proofhouse_test_support::peers::{self, peers};
use proofhouse_tools::runtime::ToolTask;
use proofhouse_wire::{Child, Spawn, WireLine};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::mcp_support::*;

fn node(peers: &Path) -> String {
    peers::node(peers).display().to_string()
}

/// A reference server from npm.
fn reference(peers: &Path, name: &str) -> String {
    let package = format!("mcp-servers/node_modules/@modelcontextprotocol/{name}/dist/index.js");
    peers.join(package).display().to_string()
}

/// The command of a peer that is written in this repository.
fn own(peers: &Path, peer: &str) -> Vec<String> {
    peers::words(peers, peer, "server").to_vec()
}

fn stdio(command: &[String]) -> ToolTask {
    let (program, arguments) = command.split_first().unwrap();
    task(tool(&format!(
        "mcp:\n  transport: stdio\n  command: {}\n  args: {}\n",
        json!(program),
        json!(arguments)
    )))
}

fn http(transport: &str, url: &str) -> ToolTask {
    task(tool(&format!(
        "mcp: {{transport: {transport}, url: \"{url}\"}}"
    )))
}

/// What the tools of the reference server yield, over whatever link.
async fn use_everything(task: ToolTask) {
    let names = names(&task).await;
    assert!(names.len() > 8, "{names:?}");
    let call = async |name: &str, arguments| value(&task, name, arguments).await;
    assert_eq!(call("echo", json!({"message": "hé"})).await, "Echo: hé");
    let sum = call("get-sum", json!({"a": 2, "b": 40})).await;
    assert!(sum.as_str().unwrap().contains("42"), "{sum}");
    let weather = call("get-structured-content", json!({"location": "New York"})).await;
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = call("get-tiny-image", json!({})).await;
    let image = image.as_array().unwrap();
    let image = image.iter().find(|part| part["type"] == "image").unwrap();
    assert_eq!(image["mime_type"], "image/png");
    assert!(image["base64"].as_str().unwrap().len() > 100);
    let links = call("get-resource-links", json!({"count": 2})).await;
    let links = links.as_array().unwrap();
    assert!(
        links.iter().any(|part| part["type"] == "resource_link"),
        "{links:?}"
    );
    let wrong = error(&task, "get-sum", json!({"a": "x"})).await;
    assert!(wrong.is_recoverable(), "{wrong}");
    end(task).await;
}

#[tokio::test]
async fn the_everything_server_over_all_transports() {
    let Some(peers) = peers("the_everything_server_over_all_transports") else {
        return;
    };
    let (node, script) = (node(&peers), reference(&peers, "server-everything"));
    use_everything(stdio(&[node.clone(), script.clone(), "stdio".to_owned()])).await;
    for (kind, transport, path) in [
        ("sse", "sse", "sse"),
        ("streamableHttp", "sse", "mcp"),
        ("streamableHttp", "streamable_http", "mcp"),
    ] {
        let port = free_port().await;
        let spawn = Spawn {
            program: node.clone(),
            arguments: vec![script.clone(), kind.to_owned()],
            environment: vec![("PORT".to_owned(), port.to_string())],
            ..Spawn::default()
        };
        let (child, _stdin, _lines) = spawn.start(&Default::default()).unwrap();
        wait_for(port, &child).await;
        use_everything(http(transport, &format!("http://127.0.0.1:{port}/{path}"))).await;
        child.stop().await;
    }
}

#[tokio::test]
async fn the_filesystem_server_reads_and_writes_and_stays_inside() {
    let Some(peers) = peers("the_filesystem_server_reads_and_writes_and_stays_inside") else {
        return;
    };
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mcp-filesystem");
    std::fs::create_dir_all(&home).unwrap();
    let home = home.canonicalize().unwrap().display().to_string();
    let task = stdio(&[
        node(&peers),
        reference(&peers, "server-filesystem"),
        home.clone(),
    ]);
    let path = format!("{home}/note.txt");
    let written = value(
        &task,
        "write_file",
        json!({"path": path, "content": "grüße"}),
    )
    .await;
    assert!(written.to_string().contains("note.txt"), "{written}");
    let read = value(&task, "read_text_file", json!({"path": path})).await;
    assert!(read.to_string().contains("grüße"), "{read}");
    let outside = error(&task, "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(outside.to_json()["error"], "tool_error");
    assert!(outside.message.contains("denied"), "{outside}");
    let missing = error(&task, "read_text_file", json!({})).await;
    assert_eq!(missing.to_json()["error"], "bad_arguments", "{missing}");
    end(task).await;
}

/// What the servers of the SDKs answer.
async fn use_bank(task: ToolTask, peer: &str) {
    let transferred = value(&task, "transfer", json!({"to": "Bob"})).await;
    let text = match transferred.as_str() {
        Some(text) => text,
        // The Python servers also give it as structured content.
        None => transferred["result"].as_str().unwrap_or_default(),
    };
    assert_eq!(text, "transferred to Bob", "{peer}");
    // It asks for everything that this client does not offer; it must be told so and must not hang.
    let audit = error(&task, "audit", json!({})).await;
    assert!(audit.is_recoverable(), "{peer}: {audit}");
    assert_ne!(audit.to_json()["error"], "timeout", "{peer}: {audit}");
    assert_eq!(names(&task).await, ["transfer", "audit"], "{peer}");
    end(task).await;
}

#[tokio::test]
async fn the_sdks_over_stdio_in_both_eras() {
    let Some(peers) = peers("the_sdks_over_stdio_in_both_eras") else {
        return;
    };
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mcp-stdio.log");
    for (peer, filter, modern) in [
        ("mcp-python-1", "cat", false),
        ("mcp-js-1", "cat", false),
        ("mcp-python-2", "cat", true),
        ("mcp-js-2", "cat", true),
        // A server that never gets the question does not answer it, so it must be of the legacy era.
        (
            "mcp-python-2",
            "grep --line-buffered -v server/discover",
            false,
        ),
    ] {
        let command = own(&peers, peer);
        let pipe = format!("{filter} | tee \"$0\" | \"$1\" \"$2\" stdio");
        let task = stdio(&[
            "sh".to_owned(),
            "-c".to_owned(),
            pipe,
            log.display().to_string(),
            command[0].clone(),
            command[1].clone(),
        ]);
        use_bank(task, peer).await;
        let sent = std::io::read_to_string(std::io::Read::take(
            std::fs::File::open(&log).unwrap(),
            1 << 20,
        ));
        assert_era(&sent.unwrap(), modern, peer);
    }
}

#[tokio::test]
async fn the_sdks_over_http_in_both_eras() {
    let Some(peers) = peers("the_sdks_over_http_in_both_eras") else {
        return;
    };
    for (peer, refuse_discover, modern) in [
        ("mcp-python-1", false, false),
        ("mcp-js-1", false, false),
        ("mcp-python-2", false, true),
        ("mcp-js-2", false, true),
        ("mcp-python-2", true, false),
    ] {
        let command = own(&peers, peer);
        let spawn = Spawn {
            program: command[0].clone(),
            arguments: vec![command[1].clone(), "http".to_owned()],
            ..Spawn::default()
        };
        let (child, _stdin, mut lines) = spawn.start(&Default::default()).unwrap();
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next()).await;
        let Ok(Ok(Some(WireLine::Whole(url)))) = line else {
            panic!("{peer}: {line:?} {}", child.stderr());
        };
        let url = String::from_utf8(url).unwrap();
        let relay = Relay::start(&url, refuse_discover).await;
        use_bank(http("streamable_http", &relay.url), peer).await;
        let sent = relay.sent.lock().unwrap().clone();
        assert_era(&sent, modern, peer);
        child.stop().await;
    }
}

fn assert_era(sent: &str, modern: bool, peer: &str) {
    let initialized = sent.contains(r#""initialize""#);
    let enveloped = sent.lines().any(|line| {
        line.contains("tools/call") && line.contains("io.modelcontextprotocol/protocolVersion")
    });
    assert_eq!(
        (initialized, enveloped),
        (!modern, modern),
        "{peer}: {sent}"
    );
    if initialized {
        let asked = sent
            .lines()
            .find(|line| line.contains(r#""initialize""#))
            .unwrap();
        let start = asked.find('{').unwrap();
        let asked: Value = serde_json::from_str(&asked[start..]).unwrap();
        assert_eq!(asked["params"]["protocolVersion"], "2025-11-25");
    }
}

/// Passes requests on, remembers them, and may refuse the question for the era.
struct Relay {
    url: String,
    sent: Arc<Mutex<String>>,
}

impl Relay {
    async fn start(url: &str, refuse_discover: bool) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let sent = Arc::new(Mutex::new(String::new()));
        let relay = Self {
            url: format!("http://{own}/{path}"),
            sent: Arc::clone(&sent),
        };
        let (authority, own) = (authority.to_owned(), own.to_string());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (authority, own, sent) = (authority.clone(), own.clone(), Arc::clone(&sent));
                tokio::spawn(async move {
                    let _ = pass_on(client, &authority, &own, refuse_discover, &sent).await;
                });
            }
        });
        relay
    }
}

async fn pass_on(
    mut client: TcpStream,
    authority: &str,
    own: &str,
    refuse_discover: bool,
    sent: &Mutex<String>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 8192];
    let (head, body) = loop {
        let count = client.read(&mut buffer).await?;
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                break (head.to_owned(), body.to_owned());
            }
        }
        if count == 0 {
            return Ok(());
        }
    };
    {
        let mut sent = sent.lock().unwrap();
        sent.push_str(&body);
        sent.push('\n');
    }
    if refuse_discover && body.contains("server/discover") {
        let refusal = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return client.write_all(refusal).await;
    }
    // One request per connection, so that each is seen; the server must find its own name.
    let head = head.replace(own, authority);
    let request = format!("{head}\r\nconnection: close\r\n\r\n{body}");
    let mut server = TcpStream::connect(authority).await?;
    server.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
        match server.read(&mut buffer).await? {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    // Some servers promise to keep a connection that they then close.
    let answer = String::from_utf8_lossy(&answer).replace("keep-alive", "close");
    client.write_all(answer.as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

async fn wait_for(port: u16, child: &Child) {
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody listens: {}", child.stderr());
}
