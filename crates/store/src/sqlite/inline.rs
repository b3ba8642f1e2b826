//! Runs transactions on a connection in memory, where they are asked for, by a clock that the caller sets.

use rusqlite::Connection;

use super::error::translate;
use super::transaction::{SqliteTransaction, complete};
use crate::error::Result;
use crate::model::Millis;
use crate::sql::dialect::SqlDialect;
use crate::sql::transaction::TransactionWork;

/// A connection to an empty database, with a table that the clock is read from.
pub(crate) fn open() -> Result<Connection> {
    let connection = super::connection::writer(None)?;
    let made = connection.execute_batch(
        "CREATE TEMP TABLE simulated_clock (now INTEGER NOT NULL); INSERT INTO simulated_clock VALUES (0);",
    );
    made.map_err(|error| translate(&error))?;
    Ok(connection)
}

/// Runs the work in one transaction, at this time.
pub(crate) fn run<T>(
    connection: &mut Connection,
    dialect: &SqlDialect,
    now: Millis,
    work: &TransactionWork<T>,
) -> Result<T> {
    let sql = |connection: &Connection, sql: &str| {
        let run = || connection.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(|error| translate(&error))
    };
    let set = || {
        let mut statement = connection.prepare_cached("UPDATE simulated_clock SET now = ?1")?;
        statement.execute([now])
    };
    set().map_err(|error| translate(&error))?;
    sql(connection, "BEGIN IMMEDIATE")?;
    let outcome = complete(
        work,
        &mut SqliteTransaction {
            connection,
            dialect,
        },
    );
    match &outcome {
        Ok(_) => sql(connection, "COMMIT")?,
        Err(_) if connection.is_autocommit() => {}
        Err(_) => sql(connection, "ROLLBACK")?,
    }
    outcome
}
