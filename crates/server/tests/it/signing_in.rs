//! Signing in to the dashboard with a key: what a browser is given, and how often somebody may do what forms do.

use std::net::SocketAddr;
use std::sync::Arc;

use proofhouse_server::api::ApiConfig;
use proofhouse_server::engine::Engine;
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_server::listen::ConnectionLimits;
use proofhouse_server::metrics::Metrics;
use proofhouse_server::rate::RateQuota;
use proofhouse_store::model::AuditFilter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::bounds::{ask, serve_as};
use crate::engine_support::{MANIFESTS, PATIENCE, World};
use crate::room::sign_in;

/// Serves an engine to holders of a key that may ask so much, and makes one.
async fn serve(
    engine: &Arc<Engine>,
    rate: RateQuota,
) -> (SocketAddr, KeySecret, CancellationToken) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = ApiConfig {
        rate,
        ..ApiConfig::at(socket.local_addr().unwrap())
    };
    let limits = (config, ConnectionLimits::default());
    let (address, stop) = serve_as(engine, socket, limits, Arc::new(Metrics::default()));
    let secret = KeySecret::new().unwrap();
    let order = KeyOrder {
        name: "person",
        scopes: &[KeyScope::TasksRead, KeyScope::TasksOperate],
        ..KeyOrder::default()
    };
    let kept = key_change::keep(engine.store(), &secret, order).await;
    kept.unwrap();
    (address, secret, stop)
}

/// The session that an answer begins, as it is set.
fn session(answer: &str) -> &str {
    let lines = answer.lines();
    let mut set = lines.filter_map(|line| line.strip_prefix("set-cookie: "));
    set.find(|cookie| cookie.starts_with("proofhouse_session="))
        .expect(answer)
}

/// Asks with a cookie, and returns the whole answer.
async fn send(address: SocketAddr, (line, cookie): (&str, &str), body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    let read = tokio::time::timeout(PATIENCE, reading).await;
    read.unwrap().unwrap();
    answer
}

/// A proxy with TLS before the server is not seen by it, but the browser says how it reached the page that it sends a form of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_began_over_tls_is_never_sent_without() {
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let much = RateQuota {
        burst: 100,
        per_second: 100.0,
    };
    let (address, secret, stop) = serve(&engine, much).await;
    for (scheme, is_secure) in [("http", false), ("https", true)] {
        let (_, page) = ask(address, "/dashboard/sign-in", "</html>").await;
        let answer = sign_in(address, &page, (scheme, secret.reveal())).await;
        let cookie = session(&answer);
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        assert_eq!(
            cookie.ends_with("; Secure"),
            is_secure,
            "{scheme}: {cookie}"
        );
    }
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// The rate of a key holds for its forms and for signing in with it as well: each of them writes to the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_and_signing_in_count_against_the_rate_of_a_key() {
    /// Signing in, and a page with a form.
    const ALLOWED: u32 = 2;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let hardly = RateQuota {
        burst: ALLOWED,
        per_second: 1.0 / 60.0,
    };
    let (address, secret, stop) = serve(&engine, hardly).await;
    let (_, form) = ask(address, "/dashboard/sign-in", "</html>").await;
    let answer = sign_in(address, &form, ("http", secret.reveal())).await;
    let cookie = session(&answer).split(';').next().unwrap();
    let page = send(address, ("GET /dashboard", cookie), "").await;
    let (_, token) = page
        .split_once("name=\"form_token\" value=\"")
        .expect(&page);
    let body = format!("form_token={}", token.split('"').next().unwrap());
    let line = "POST /dashboard/tasks/none/interrupt";
    let answer = send(address, (line, cookie), &body).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    let answer = sign_in(address, &form, ("http", secret.reveal())).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(!answer.contains("proofhouse_session="), "{answer}");
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}

/// Whoever has no key cannot fill the audit log: attempts beyond the limit are refused and not noted one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_beyond_the_limit_do_not_fill_the_audit_log() {
    const ATTEMPTS: usize = 60;
    /// Ten at once, and one every two seconds.
    const NOTED: usize = 30;
    let world = World::new(MANIFESTS);
    let engine = Arc::new(world.engine().await);
    let much = RateQuota {
        burst: 1_000,
        per_second: 1_000.0,
    };
    let (address, _, stop) = serve(&engine, much).await;
    let noted = async || {
        let filter = AuditFilter {
            limit: 1_000,
            ..AuditFilter::default()
        };
        let entries = engine.store().audit(filter).await.unwrap();
        let attempts = entries
            .iter()
            .filter(|one| one.entry.contains("session.begin"));
        attempts.count()
    };
    let (_, form) = ask(address, "/dashboard/sign-in", "</html>").await;
    for _ in 0..ATTEMPTS {
        sign_in(address, &form, ("http", "phk_wrong")).await;
    }
    let by_form = noted().await;
    assert!((1..NOTED).contains(&by_form), "{by_form} entries");
    for _ in 0..ATTEMPTS {
        let line = "GET /dashboard/oidc/callback?state=x&code=y";
        let answer = send(address, (line, "proofhouse_away=x"), "").await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let by_both = noted().await;
    assert!(by_both < by_form + NOTED, "{by_both} entries");
    stop.cancel();
    engine.shutdown(PATIENCE).await;
}
