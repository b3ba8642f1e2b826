//! Where the stores of a test are: a place of its own, which can be opened more than once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proofhouse_store::{PostgresOptions, PostgresStore, Result, SqliteOptions, SqliteStore, Store};
use proofhouse_test_support::postgres::Postgres;

/// A database of one test.
pub(crate) enum Place {
    Sqlite(tempfile::TempDir),
    Postgres { url: String, schema: String },
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn postgres(url: String) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        Self::Postgres { url, schema }
    }

    /// Opens the store, as one server process would.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        self.try_open(None).await.expect("the store opens")
    }

    pub(crate) async fn try_open(&self, up_to: Option<i64>) -> Result<Arc<dyn Store>> {
        match self {
            Self::Sqlite(directory) => {
                let mut options = SqliteOptions::file(directory.path().join("store.db"));
                options.up_to_version = up_to.unwrap_or(options.up_to_version);
                Ok(Arc::new(SqliteStore::open_sqlite(options).await?))
            }
            Self::Postgres { url, schema } => {
                let mut options = PostgresOptions::url(url.as_str());
                options.schema = Some(schema.clone());
                options.connections = 8;
                options.up_to_version = up_to.unwrap_or(options.up_to_version);
                Ok(Arc::new(PostgresStore::open_postgres(options).await?))
            }
        }
    }

    /// Leaves nothing behind on a server that lives on.
    pub(crate) async fn remove(&self) {
        if let Self::Postgres { schema, .. } = self {
            self.sql(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"))
                .await;
        }
    }

    /// Runs statements behind the back of the store.
    pub(crate) async fn sql(&self, statements: &str) {
        match self {
            Self::Sqlite(directory) => {
                let connection = rusqlite::Connection::open(directory.path().join("store.db"))
                    .expect("the file opens");
                connection
                    .busy_timeout(std::time::Duration::from_secs(30))
                    .expect("it waits");
                connection
                    .execute_batch(statements)
                    .expect("the statements run");
            }
            Self::Postgres { url, schema } => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
                    .await
                    .expect("a connection");
                let connection = tokio::spawn(connection);
                client
                    .batch_execute(&format!("SET search_path = {schema}; {statements}"))
                    .await
                    .expect("the statements run");
                drop(client);
                let _ = connection.await;
            }
        }
    }
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future);
}

pub(crate) fn on_sqlite<F: Future<Output = ()>>(case: impl FnOnce(Arc<Place>) -> F) {
    block_on(case(Arc::new(Place::sqlite())));
}

pub(crate) fn on_postgres<F: Future<Output = ()>>(test: &str, case: impl FnOnce(Arc<Place>) -> F) {
    let Some(url) = Postgres::shared(test) else {
        return;
    };
    let place = Arc::new(Place::postgres(url));
    block_on(async {
        case(Arc::clone(&place)).await;
        place.remove().await;
    });
}
