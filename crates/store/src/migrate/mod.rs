//! The schema in steps. A step never changes once it is out; a change of the schema is a new step.

use crate::error::{Result, StoreError};
use crate::sql::row::first;
use crate::sql::transaction::{Tx, params};

/// The steps in order, with their numbers; the version of a database is the number of the last one it has taken.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("0001.sql")),
    (2, include_str!("0002.sql")),
    (3, include_str!("0003.sql")),
    (4, include_str!("0004.sql")),
    (5, include_str!("0005.sql")),
    (6, include_str!("0006.sql")),
    (7, include_str!("0007.sql")),
    (8, include_str!("0008.sql")),
    (9, include_str!("0009.sql")),
    (10, include_str!("0010.sql")),
];

/// The version this program knows.
pub(crate) const NEWEST: i64 = STEPS[STEPS.len() - 1].0;

/// Takes the steps that are missing, up to a version. The caller sees to it that nobody else does so at the same time.
pub(crate) async fn run(tx: Tx<'_>, up_to: i64) -> Result<()> {
    tx.execute(
        "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
        &[],
    )
    .await?;
    let found = version(tx).await?;
    if found > NEWEST {
        return Err(StoreError::NewerSchema {
            found,
            known: NEWEST,
        });
    }
    for &(number, step) in STEPS {
        if number <= found || number > up_to {
            continue;
        }
        for statement in statements(step) {
            tx.execute(statement, &[]).await?;
        }
        let number = number.to_string();
        tx.execute(
            "INSERT INTO meta (key, value) VALUES ('schema_version', $1) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &params![&number],
        )
        .await?;
        tracing::info!(version = %number, "the schema has a new version");
    }
    Ok(())
}

/// The version of the database.
pub(crate) async fn version(tx: Tx<'_>) -> Result<i64> {
    let rows = tx
        .query("SELECT value FROM meta WHERE key = 'schema_version'", &[])
        .await?;
    let Some(mut row) = first(rows) else {
        return Ok(0);
    };
    let text = row.text()?;
    text.parse()
        .map_err(|_| StoreError::Corrupt(format!("the schema version is `{text}`")))
}

/// The statements of a step, which end with a semicolon at the end of a line.
fn statements(step: &'static str) -> impl Iterator<Item = &'static str> {
    step.split(";\n")
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
}
