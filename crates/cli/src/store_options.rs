//! The flag that says where durable state is kept.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use proofhouse_store::{PostgresOptions, SqliteOptions, Store, StoreError, StoreLock};

use crate::output::{CommandError, printable_line, shown_path, talk};

/// Where state is kept without the flag.
const DEFAULT: &str = "proofhouse.db";

/// Where durable state is kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreOptions {
    /// The database: the path of an SQLite file, or a postgres:// URL. Put a URL with a password in the variable
    /// PROOFHOUSE_STORE instead [default: PROOFHOUSE_STORE, or proofhouse.db]
    #[arg(long, value_name = "FILE|URL", global = true)]
    store: Option<String>,
}

/// What the flag says.
#[derive(Debug, PartialEq, Eq)]
enum StoreLocation {
    Sqlite(PathBuf),
    Postgres(String),
}

impl StoreLocation {
    fn read(text: &str) -> Result<Self, CommandError> {
        let has = |pair: &&str| text.contains(*pair);
        if !text.contains("://") && ["host=", "password=", "dbname="].iter().any(has) {
            // As libpq writes it.
            return Ok(Self::Postgres(text.to_owned()));
        }
        let Some((scheme, rest)) = scheme(text) else {
            return Self::file(text);
        };
        match scheme.to_ascii_lowercase().as_str() {
            // The engine knows it in lower case only.
            "postgres" | "postgresql" if rest.starts_with("//") => {
                Ok(Self::Postgres(format!("postgres:{rest}")))
            }
            "sqlite" => Self::file(rest.strip_prefix("//").unwrap_or(rest)),
            // The rest may hold a password, so that it is not repeated.
            _ => Err(CommandError::usage(format!(
                "--store: there is no store `{}:`; name the file of an SQLite database, or a URL that begins with postgres://",
                printable_line(scheme)
            ))),
        }
    }

    fn file(path: &str) -> Result<Self, CommandError> {
        match path {
            "" => Err(CommandError::usage(
                "--store: the name of the file is empty",
            )),
            ":memory:" => Err(CommandError::usage(
                "--store: an in-memory store would lose accepted work; name a file",
            )),
            _ => Ok(Self::Sqlite(path.into())),
        }
    }

    /// A file that is not there.
    fn is_missing(&self) -> bool {
        match self {
            Self::Sqlite(path) => !path.exists(),
            Self::Postgres(_) => false,
        }
    }
}

/// The scheme of what is written like a URL, and what follows its colon. A single letter is a drive.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_known = ["sqlite", "postgres", "postgresql"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    (is_scheme && (is_known || rest.starts_with('/'))).then_some((scheme, rest))
}

/// For people, without what may be a password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(_) => f.write_str("the PostgreSQL store"),
            Self::Sqlite(path) => {
                let shown = path.display().to_string();
                match shown.split_once('@') {
                    Some((before, _)) if before.contains(':') => f.write_str(
                        "the file that --store names (it looks like an address with a password)",
                    ),
                    _ => f.write_str(&printable_line(&shown)),
                }
            }
        }
    }
}

impl StoreOptions {
    /// Whether the flag is given.
    pub(crate) fn is_given(&self) -> bool {
        self.store.is_some()
    }

    fn place(&self) -> Result<StoreLocation, CommandError> {
        #[expect(clippy::disallowed_methods, reason = "the help names the variable")]
        let variable = || std::env::var("PROOFHOUSE_STORE").ok();
        let place = self.store.clone().or_else(variable);
        StoreLocation::read(place.as_deref().unwrap_or(DEFAULT))
    }

    /// Where the first key goes if nothing else is said: beside the file of an SQLite database, else here.
    pub(crate) fn first_key_file(&self) -> Result<PathBuf, CommandError> {
        Ok(match self.place()? {
            StoreLocation::Sqlite(path) => {
                let mut name = path.into_os_string();
                name.push(".first-key");
                name.into()
            }
            StoreLocation::Postgres(_) => PathBuf::from("proofhouse.first-key"),
        })
    }

    /// Insists that this process is the only one that serves the store, where there can be only one.
    pub(crate) fn lock(&self) -> Result<Option<StoreLock>, CommandError> {
        match self.place()? {
            StoreLocation::Sqlite(path) => {
                let lock =
                    StoreLock::take(&path).map_err(|error| CommandError::of(&error, false))?;
                if let Some(error) = lock.failure() {
                    let shown = shown_path(&path);
                    talk(&format!(
                        "warning: {shown} cannot be locked ({error}); make sure that only one process uses it"
                    ));
                }
                Ok(Some(lock))
            }
            StoreLocation::Postgres(_) => Ok(None),
        }
    }

    /// Opens the store; an SQLite file is created where there is none, which is told.
    pub(crate) async fn open(&self) -> Result<Arc<Store>, CommandError> {
        self.open_told(talk).await
    }

    /// The same, told in this way.
    pub(crate) async fn open_told(&self, tell: impl Fn(&str)) -> Result<Arc<Store>, CommandError> {
        let place = self.place()?;
        let is_new = place.is_missing();
        let shown = place.to_string();
        let store = open(place).await?;
        if is_new {
            tell(&format!("created a new store: {shown}"));
        }
        Ok(store)
    }

    /// Opens a store that is there.
    pub(crate) async fn open_existing(&self) -> Result<Arc<Store>, CommandError> {
        let place = self.place()?;
        if place.is_missing() {
            return Err(CommandError::usage(format!(
                "{place}: there is no such store; name another with --store, or create one with `proofhouse serve`, \
                 `proofhouse keys create` or, for campaigns, `proofhouse run --name NAME`"
            )));
        }
        open(place).await
    }
}

async fn open(place: StoreLocation) -> Result<Arc<Store>, CommandError> {
    let shown = place.to_string();
    let failed =
        |error: StoreError| CommandError::cannot_run(printable_line(&format!("{shown}: {error}")));
    match place {
        StoreLocation::Postgres(url) => {
            let store = Store::open_postgres(PostgresOptions::url(url)).await;
            Ok(Arc::new(store.map_err(failed)?))
        }
        StoreLocation::Sqlite(path) => {
            let store = Store::open_sqlite(SqliteOptions::file(path)).await;
            Ok(Arc::new(store.map_err(failed)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_urls_are_told_apart() {
        let file = |path: &str| StoreLocation::Sqlite(path.into());
        for (text, place) in [
            ("store.db", file("store.db")),
            ("/var/lib/store.db", file("/var/lib/store.db")),
            ("sqlite:store.db", file("store.db")),
            ("sqlite:///var/store.db", file("/var/store.db")),
            ("C:/stores/store.db", file("C:/stores/store.db")),
            ("10:30.db", file("10:30.db")),
            (
                "Postgresql://u:p@h/d",
                StoreLocation::Postgres("postgres://u:p@h/d".to_owned()),
            ),
        ] {
            assert_eq!(StoreLocation::read(text).unwrap(), place, "{text}");
        }
    }

    #[test]
    fn no_password_is_repeated() {
        for text in [
            "mysql://user:hunter2@host/db",
            "mongodb+srv://user:hunter2@host/db",
            "http:/user:hunter2@host/db",
            "postgres:user:hunter2@host/db",
        ] {
            let refused = StoreLocation::read(text).unwrap_err();
            let said = refused.to_string();
            assert!(
                !said.contains("hunter2") && !said.contains("host"),
                "{said}"
            );
            assert!(said.contains("postgres://"), "{said}");
        }
        let forgotten = StoreLocation::read("user:hunter2@host/db").unwrap();
        assert!(!forgotten.to_string().contains("hunter2"));
        StoreLocation::read(":memory:").unwrap_err();
        let pairs = StoreLocation::read("host=h user=u password=hunter2").unwrap();
        assert!(!pairs.to_string().contains("hunter2"));
        let url = StoreLocation::read("postgres://user:hunter2@host/db").unwrap();
        assert!(!url.to_string().contains("hunter2"));
    }
}
