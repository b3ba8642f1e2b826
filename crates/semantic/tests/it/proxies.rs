//! A proxy between us and the endpoint: used for other machines, and never for this one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use proofhouse_semantic::{Config, Method, OpenAiSemantic};
use proofhouse_wire::ProxySettings;

use crate::server::{TestServer, judge_of_theft};
use crate::{ask, config, fails};

/// The lines of a head, up to the empty one.
fn head(reader: &mut impl BufRead) -> Vec<String> {
    let lines = reader.lines().map(|line| line.unwrap());
    lines.take_while(|line| !line.is_empty()).collect()
}

/// A proxy that answers the one tunnel it is asked for itself. Gives its address and the heads it got.
fn proxy(allowed: bool) -> (String, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        sender.send(head(&mut reader)).unwrap();
        if !allowed {
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n");
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let request = head(&mut reader);
        let length = request
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        sender.send(request).unwrap();
        let answer = r#"{"choices": [{"message": {"content": "{\"score\": 0.75}"}}]}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        )
        .unwrap();
    });
    (address.to_string(), heads)
}

fn through(address: &str) -> OpenAiSemantic {
    OpenAiSemantic::new(Config {
        proxies: ProxySettings {
            all: format!("http://ada:secret@{address}"),
            ..ProxySettings::default()
        },
        retries: 0,
        ..Config::new("http://models.invalid/v1", "m", Method::Judge)
    })
    .unwrap()
}

#[test]
fn other_machines_are_asked_through_a_tunnel() {
    let (address, heads) = proxy(true);
    assert_eq!(ask(&through(&address), "steal"), Ok(0.75));
    let tunnel = heads.recv().unwrap();
    assert_eq!(tunnel[0], "CONNECT models.invalid:80 HTTP/1.1");
    // `ada:secret`
    let credentials = "Proxy-Authorization: Basic YWRhOnNlY3JldA==".to_owned();
    assert!(tunnel.contains(&credentials), "{tunnel:?}");
    let request = heads.recv().unwrap();
    assert_eq!(request[0], "POST /v1/chat/completions HTTP/1.1");
    assert!(request.contains(&"host: models.invalid".to_owned()));
    assert!(!request.iter().any(|line| line.contains("Basic")));
}

#[test]
fn a_proxy_that_says_no_is_not_gone_around() {
    let (address, heads) = proxy(false);
    let refused = ask(&through(&address), "steal");
    fails(refused, "cannot talk to models.invalid: tunnel error");
    assert_eq!(heads.iter().count(), 1);
}

#[test]
fn this_machine_is_asked_directly() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = OpenAiSemantic::new(Config {
        proxies: ProxySettings {
            all: "http://proxy.invalid:1".to_owned(),
            ..ProxySettings::default()
        },
        ..config(&server, Method::Judge)
    })
    .unwrap();
    assert_eq!(ask(&evaluator, "steal"), Ok(0.9));
}
