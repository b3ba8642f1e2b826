//! A TLS server that answers every request with a refusal: whoever hears it has checked its certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Made for these tests; the authority's key was thrown away. They are good for a hundred years.
pub(crate) const AUTHORITY: &str = include_str!("tls/ca.pem");
const CERTIFICATE: &str = include_str!("tls/server.pem");
const KEY: &str = include_str!("tls/server.key");

/// Answers so many connections, each with one refusal. Returns its port.
pub(crate) fn refusing(connections: usize) -> u16 {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.expect("the test is set up")],
            key.expect("the test is set up"),
        )
        .expect("the test is set up");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("the test is set up");
    let port = listener.local_addr().expect("the test is set up").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let Ok(stream) = stream else { return };
            let connection = ServerConnection::new(Arc::clone(&config));
            let mut tls = StreamOwned::new(connection.expect("the test is set up"), stream);
            let mut buffer = [0; 4096];
            // A client that does not trust the certificate goes away here.
            if tls.read(&mut buffer).is_ok_and(|count| count > 0) {
                let reply =
                    b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = tls.write_all(reply);
                let _ = tls.flush();
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
        }
    });
    port
}
