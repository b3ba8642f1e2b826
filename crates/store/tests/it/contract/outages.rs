//! What only a server far away can meet: cut connections, a network that swallows everything, a server that is gone.

use std::sync::Arc;
use std::time::Duration;

use proofhouse_store::model::LeaseKind;
use proofhouse_store::{PostgresOptions, PostgresStore, Store};
use proofhouse_test_support::postgres::Postgres;
use proofhouse_test_support::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::contract::place::Place;
use crate::contract::support::{LONG, OVER, append, create, lease, refused};

/// Runs a test with a place of its own and the address of a server, if there is one.
fn with_server(test: &str, case: impl AsyncFnOnce(&Place, String)) {
    let Some(url) = Postgres::shared(test) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let place = Place::postgres(url.clone());
        case(&place, url).await;
        place.remove().await;
    });
}

/// The address with one more setting.
fn with(url: &str, setting: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{setting}")
}

fn options(place: &Place, url: &str) -> PostgresOptions {
    let Place::Postgres { schema, .. } = place else {
        panic!("not on PostgreSQL")
    };
    let mut options = PostgresOptions::url(url);
    options.schema = Some(schema.clone());
    options.connections = 4;
    options.patience = Duration::from_secs(3);
    options
}

async fn store(place: &Place, url: &str) -> Arc<dyn Store> {
    Arc::new(
        PostgresStore::open_postgres(options(place, url))
            .await
            .expect("the store opens"),
    )
}

/// Passes bytes on to a server, unless it is told to swallow them.
struct Proxy {
    url: String,
    swallow: watch::Sender<bool>,
}

impl Proxy {
    async fn before(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let server = config.get_ports()[0];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (swallow, swallowing) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                    continue;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, swallowing.clone()));
                tokio::spawn(pass(from_server, to_client, swallowing.clone()));
            }
        });
        let url = url.replace(&format!(":{server}/"), &format!(":{port}/"));
        Self { url, swallow }
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallowing: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        // What is swallowed is gone for good: the connection never works again.
        if *swallowing.borrow() {
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[test]
fn cut_connections_are_replaced() {
    with_server("cut_connections_are_replaced", async |place, url| {
        // Other tests use this server too, so the connections to cut have a name of their own.
        let store = store(place, &with(&url, "application_name=cut%20me")).await;
        create(&*store, "t1").await;
        place
            .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut me'")
            .await;
        // One call may meet a dead connection; the store finds new ones by itself.
        eventually("the store is back", async || store.health().await.ok()).await;
        store.task("t1").await.unwrap();
    });
}

#[test]
fn a_partition_is_noticed_and_survived() {
    with_server("a_partition_is_noticed_and_survived", async |place, url| {
        let proxy = Proxy::before(&url).await;
        let cut_off = store(place, &proxy.url).await;
        let other = store(place, &url).await;
        create(&*cut_off, "t1").await;
        let old = lease(&*cut_off, "t1", "cut off", OVER).await;
        proxy.swallow.send_replace(true);
        let outcome = tokio::time::timeout(Duration::from_secs(60), cut_off.health()).await;
        refused(outcome.expect("in bounded time"), "unavailable");
        // Meanwhile the other one takes over, and it alone can write.
        let new = lease(&*other, "t1", "other", LONG).await;
        other.append(append("t1", new.held(), 0, 1)).await.unwrap();
        proxy.swallow.send_replace(false);
        eventually("the store is back", async || cut_off.health().await.ok()).await;
        refused(
            cut_off.append(append("t1", old.held(), 1, 1)).await,
            "fenced",
        );
        assert_eq!(other.turns("t1", 0, 10).await.unwrap().len(), 1);
        assert!(
            cut_off
                .acquire(LeaseKind::Task, "t1", "cut off", LONG)
                .await
                .unwrap()
                .is_none()
        );
    });
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Nobody listens at this port: it was given out and given back.
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = format!("postgres://someone:very-secret@127.0.0.1:{port}/postgres");
        let error = refused(
            PostgresStore::open_postgres(PostgresOptions::url(&url)).await,
            "unavailable",
        );
        assert!(!error.to_string().contains("very-secret"), "{error}");
        assert!(!format!("{:?}", PostgresOptions::url(&url)).contains("very-secret"));
        let broken = PostgresOptions::url("postgres://someone:very-secret@127.0.0.1:port/postgres");
        let error = refused(PostgresStore::open_postgres(broken).await, "invalid");
        assert!(!error.to_string().contains("very-secret"), "{error}");
        let mut odd = PostgresOptions::url(&url);
        odd.schema = Some("a\"; DROP SCHEMA public".to_owned());
        refused(PostgresStore::open_postgres(odd).await, "invalid");
    });
}

#[test]
fn a_server_that_cannot_be_written_to_is_unavailable() {
    with_server(
        "a_server_that_cannot_be_written_to_is_unavailable",
        async |place, url| {
            store(place, &url).await.health().await.unwrap();
            let read_only = with(&url, "options=-c%20default_transaction_read_only%3Don");
            let outcome = PostgresStore::open_postgres(options(place, &read_only)).await;
            // It has its schema, so it opens; but it cannot be written to.
            match outcome {
                Ok(store) => {
                    store.stats().await.unwrap();
                    refused(store.health().await, "unavailable");
                }
                Err(error) => assert_eq!(
                    crate::contract::support::kind(&error),
                    "unavailable",
                    "{error}"
                ),
            }
            let wrong = url.replacen("proofhouse:", "proofhouse:wrong", 1);
            refused(
                PostgresStore::open_postgres(options(place, &wrong)).await,
                "unavailable",
            );
        },
    );
}
