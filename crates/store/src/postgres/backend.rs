//! Runs transactions on connections of a pool, in bounded time, and again when they stood in each other's way.

use std::time::Duration;

use deadpool_postgres::{
    Client, GenericClient, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, IsolationLevel};

use super::PostgresOptions;
use super::address::{Address, TlsMode};
use super::error::{is_transient, translate, translate_pool};
use super::tls::PostgresTls;
use super::transaction::PostgresTransaction;
use crate::error::{Result, StoreError};
use crate::migrate;
use crate::sql::dialect::{Flavor, SqlDialect};
use crate::sql::transaction::{TransactionMode, TransactionWork};

/// How long an upgrade of the schema may take.
const MAX_MIGRATION: Duration = Duration::from_secs(600);

/// How often a transaction is tried when it stood in another's way.
const TRIES: u32 = 8;

/// A pool of connections to one PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresBackend {
    pool: Pool,
    dialect: SqlDialect,
    timeout: Duration,
}

impl PostgresBackend {
    pub(crate) async fn open(options: &PostgresOptions) -> Result<Self> {
        let address = Address::read(&options.url)?;
        let pool = Pool::builder(Manager::from_config(
            config(options, &address)?,
            PostgresTls::new(address.protection, address.roots.as_ref())?,
            ManagerConfig {
                recycling_method: RecyclingMethod::Fast,
            },
        ))
        .max_size(options.connections.max(1))
        .wait_timeout(Some(options.timeout))
        .create_timeout(Some(options.timeout))
        .recycle_timeout(Some(options.timeout))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| StoreError::Invalid(error.to_string()))?;
        let backend = Self {
            pool,
            dialect: SqlDialect::new(Flavor::Postgres),
            timeout: options.timeout,
        };
        tokio::time::timeout(MAX_MIGRATION, backend.migrate(options))
            .await
            .map_err(|_| {
                StoreError::Unavailable(
                    "PostgreSQL: the schema was not upgraded in time".to_owned(),
                )
            })??;
        Ok(backend)
    }

    async fn migrate(&self, options: &PostgresOptions) -> Result<()> {
        let mut client = self.client().await?;
        // A role that may not change the schema can use one that is up to date.
        let version = "SELECT value FROM meta WHERE key = 'schema_version'";
        if let Ok(Some(row)) = client.query_opt(version, &[]).await
            && let Ok(version) = row.try_get::<_, String>(0)
            && version.parse() == Ok(options.up_to_version)
        {
            return Ok(());
        }
        let transaction = client
            .transaction()
            .await
            .map_err(|error| translate(&error))?;
        // Others who start at the same time wait here until the schema is there.
        let mut first = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
             SELECT pg_advisory_xact_lock(7309470, 1);"
            .to_owned();
        if let Some(schema) = &options.schema {
            first.push_str(&format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema)?));
        }
        transaction
            .batch_execute(&first)
            .await
            .map_err(|error| translate(&error))?;
        let mut session = self.session(&transaction);
        migrate::run(&mut session, options.up_to_version).await?;
        transaction
            .commit()
            .await
            .map_err(|error| translate(&error))
    }

    async fn client(&self) -> Result<Client> {
        self.pool
            .get()
            .await
            .map_err(|error| translate_pool(&error))
    }

    fn session<'a, C: GenericClient>(&'a self, client: &'a C) -> PostgresTransaction<'a, C> {
        PostgresTransaction {
            client,
            dialect: &self.dialect,
            transient: false,
        }
    }

    /// Runs the work once. The flag says whether another try may help.
    async fn attempt<T>(
        &self,
        client: &mut Client,
        mode: TransactionMode,
        work: &TransactionWork<T>,
    ) -> Result<T, (StoreError, bool)> {
        let failed = |error: tokio_postgres::Error| (translate(&error), is_transient(&error));
        let builder = client.build_transaction();
        let builder = match mode {
            TransactionMode::Single | TransactionMode::SingleRead => {
                let mut session = self.session(client);
                let outcome = work(&mut session).await;
                let transient = session.transient;
                return outcome.map_err(|error| (error, transient));
            }
            TransactionMode::Write => builder.isolation_level(IsolationLevel::ReadCommitted),
            // All statements see the same state.
            TransactionMode::Read => builder
                .isolation_level(IsolationLevel::RepeatableRead)
                .read_only(true),
        };
        let transaction = builder.start().await.map_err(failed)?;
        let mut session = self.session(&transaction);
        let outcome = work(&mut session).await;
        let transient = session.transient;
        match outcome {
            Ok(output) => {
                transaction.commit().await.map_err(failed)?;
                Ok(output)
            }
            Err(error) => {
                // The error is what counts; a connection that cannot even undo is not used again.
                let _ = transaction.rollback().await;
                Err((error, transient))
            }
        }
    }

    /// Runs the work in one transaction, which is durable when this returns.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        mode: TransactionMode,
        work: TransactionWork<T>,
    ) -> Result<T> {
        let mut tries = 0;
        loop {
            let mut client = self.client().await?;
            let attempt = self.attempt(&mut client, mode, &work);
            match tokio::time::timeout(self.timeout, attempt).await {
                Ok(Ok(output)) => return Ok(output),
                Ok(Err((_, true))) if tries + 1 < TRIES => {
                    tries += 1;
                    drop(client);
                    // One of two that stood in each other's way goes on at once; the other lets it.
                    tokio::time::sleep(Duration::from_millis(u64::from(tries) * 7)).await;
                }
                Ok(Err((_, true))) => {
                    return Err(StoreError::Unavailable(
                        "PostgreSQL: too many deadlocks".to_owned(),
                    ));
                }
                Ok(Err((error, false))) => return Err(error),
                Err(_) => {
                    // Nobody knows what its answer would belong to; and the idle ones may be as dead as this one.
                    drop(Object::take(client));
                    drop(self.pool.retain(|_, _| false));
                    return Err(StoreError::Unavailable(format!(
                        "PostgreSQL: no answer within {} ms",
                        self.timeout.as_millis()
                    )));
                }
            }
        }
    }

    /// Ends; connections that are in use end with their transactions.
    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

fn config(options: &PostgresOptions, address: &Address) -> Result<Config> {
    // The message of the parser does not quote the address.
    let mut config: Config = address
        .rest
        .parse()
        .map_err(|error| StoreError::Invalid(format!("the address of PostgreSQL: {error}")))?;
    let hosts = config.get_hosts();
    // Nobody listens in on a socket of this machine, and the server speaks no TLS there.
    let is_here = !hosts.is_empty() && !hosts.iter().any(|host| matches!(host, Host::Tcp(_)));
    config.ssl_mode(match address.protection {
        _ if is_here => SslMode::Disable,
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
    });
    let mut settings = config
        .get_options()
        .map(|options| format!("{options} "))
        .unwrap_or_default();
    // Statements end before we stop waiting for them, so that a lock is not held for somebody who has gone; a commit is
    // on the disk when it is answered, whatever the server's default is. Statements are short: to compile one takes longer than to
    // run it.
    let timeout = options.timeout.as_millis();
    settings.push_str(&format!(
        "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout={} -c synchronous_commit=on \
         -c jit=off",
        (timeout * 3 / 4).max(1),
        (timeout / 2).max(1),
        (timeout * 2).max(1),
    ));
    if let Some(schema) = &options.schema {
        settings.push_str(&format!(" -c search_path={}", quoted(schema)?));
    }
    config
        .options(settings)
        .connect_timeout(options.timeout)
        .keepalives_idle(Duration::from_secs(10))
        .tcp_user_timeout(options.timeout);
    if config.get_application_name().is_none() {
        config.application_name("proofhouse");
    }
    Ok(config)
}

/// The name of a schema in quotes. Only plain names are taken, so that nothing can be smuggled into a statement.
fn quoted(schema: &str) -> Result<String> {
    let plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    };
    if schema.is_empty() || schema.len() > 63 || !schema.chars().all(plain) {
        return Err(StoreError::Invalid(
            "the name of the schema must be 1 to 63 lower-case letters, digits and underscores"
                .to_owned(),
        ));
    }
    Ok(format!("\"{schema}\""))
}
