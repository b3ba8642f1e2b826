//! A TLS server that answers every request with a refusal: whoever hears it has checked its certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers so many connections, each with one refusal. Returns its port, and the certificate that vouches for
/// it.
pub(crate) fn refusing(connections: usize) -> (u16, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("the test is set up");
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let encoded = STANDARD.encode(cert.der());
    let authority = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
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
    (port, authority)
}
