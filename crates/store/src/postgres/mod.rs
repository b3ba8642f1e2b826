//! The database for several server processes: a pool of connections to one PostgreSQL.

mod address;
mod backend;
mod error;
mod tls;
mod transaction;

use std::time::Duration;

pub(crate) use backend::PostgresBackend;

use crate::migrate;

/// Where the database is and how it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, or `key=value` pairs. It may hold a password. `sslmode` and
    /// `sslrootcert` say whether the connection is encrypted and who the server has to be, as libpq has it.
    pub url: String,
    /// The schema that the tables are in; it is made if it is not there. None is the first of the user's search path.
    pub schema: Option<String>,
    /// How many connections there are at most.
    pub connections: usize,
    /// How long a transaction may take with all its answers, and a connection until it is there. A network that
    /// swallows them must not hold callers for ever.
    pub timeout: Duration,
    /// Stops upgrading at this version of the schema, for tests of upgrades.
    #[doc(hidden)]
    pub up_to_version: i64,
}

impl PostgresOptions {
    /// A store in this database.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: None,
            connections: 16,
            timeout: Duration::from_secs(15),
            up_to_version: migrate::NEWEST,
        }
    }
}

// Without the address, which may hold a password.
impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
