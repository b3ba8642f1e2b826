//! The flag that says where durable state is kept.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use proofhouse_store::{
    PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store, StoreError,
};

use crate::output::{CommandError, printable_line};

/// Where state is kept without the flag.
const DEFAULT: &str = "proofhouse.db";

/// Where durable state is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreOptions {
    /// Where state is kept: the file of an SQLite database, or a postgres:// URL; without it
    /// PROOFHOUSE_STORE, where a URL with a password belongs [default: proofhouse.db]
    #[arg(long, value_name = "FILE|URL")]
    store: Option<String>,
}

impl StoreOptions {
    fn place(&self) -> String {
        #[expect(clippy::disallowed_methods, reason = "the help names the variable")]
        let variable = || std::env::var("PROOFHOUSE_STORE").ok();
        let place = self.store.clone().or_else(variable);
        place.unwrap_or_else(|| DEFAULT.to_owned())
    }

    /// Opens the store; an SQLite file is created where there is none.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, CommandError> {
        let place = self.place();
        let is_url = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| place.starts_with(scheme));
        match is_url {
            true => {
                let store = PostgresStore::open_postgres(PostgresOptions::url(place)).await;
                let store = store.map_err(|error| failed("the PostgreSQL store", &error))?;
                Ok(Arc::new(store))
            }
            false => {
                let path = PathBuf::from(place.strip_prefix("sqlite:").unwrap_or(&place));
                let shown = path.display().to_string();
                let store = SqliteStore::open_sqlite(SqliteOptions::file(path)).await;
                let store = store.map_err(|error| failed(&shown, &error))?;
                Ok(Arc::new(store))
            }
        }
    }
}

/// A URL may hold a password, so that it is not repeated.
fn failed(place: &str, error: &StoreError) -> CommandError {
    CommandError::cannot_run(printable_line(&format!("{place}: {error}")))
}
