//! The guard of a client sees every address before it is connected to, on loopback.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proofhouse_wire::client::{Client, ClientError};
use proofhouse_wire::{AddressGuard, Bytes, HeaderMap, Method, WireLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Allows what it is asked a number of times, and then nothing.
struct Patience {
    left: Mutex<usize>,
    asked: Mutex<Vec<IpAddr>>,
}

impl AddressGuard for Patience {
    fn check(&self, address: IpAddr) -> Result<(), proofhouse_wire::AddressDenied> {
        self.asked.lock().expect("no panic").push(address);
        let mut left = self.left.lock().expect("no panic");
        if *left == 0 {
            return Err(proofhouse_wire::AddressDenied(format!(
                "{address} is not allowed any more"
            )));
        }
        *left -= 1;
        Ok(())
    }
}

/// A server that closes after each answer, and counts connections.
async fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream
                .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                .await;
        }
    });
    (port, connections)
}

async fn get(client: &Client, url: &str) -> Result<(), ClientError> {
    let sent = client.send(Method::GET, url, HeaderMap::new(), Bytes::new());
    sent.await.map(drop)
}

#[tokio::test]
async fn every_connection_is_asked_about() {
    for host in ["127.0.0.1", "localhost"] {
        let (port, connections) = server().await;
        let answers = tokio::net::lookup_host((host, port)).await.expect("a name");
        let guard = Arc::new(Patience {
            left: Mutex::new(answers.count()),
            asked: Mutex::default(),
        });
        let client = Client::guarded(WireLimits::default(), guard.clone()).expect("a client");
        let url = format!("http://{host}:{port}/");
        // The name was good the first time; the second time it is asked about again.
        get(&client, &url).await.expect("an answer");
        let error = get(&client, &url).await.expect_err("a refusal");
        assert!(matches!(&error, ClientError::Denied(_)), "{error:?}");
        assert!(error.to_string().contains("is not allowed any more"));
        assert!(client.reach(&url).await.is_err());
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{host}");
        let asked = guard.asked.lock().expect("no panic");
        assert!(asked.iter().all(IpAddr::is_loopback) && asked.len() >= 3);
    }
}
