//! Runs statements on a connection. Nothing here waits, so the futures are ready at once.

use std::borrow::Cow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql};

use super::error::translate;
use crate::error::{Result, StoreError};
use crate::sql::dialect::SqlDialect;
use crate::sql::row::SqlRow;
use crate::sql::transaction::{SqlTransaction, SqlValue, TransactionWork, Tx, check};

/// A transaction on a connection.
pub(super) struct SqliteTransaction<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) dialect: &'a SqlDialect,
}

impl SqliteTransaction<'_> {
    fn rows(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<Vec<SqlRow>> {
        check(params)?;
        let text = self.dialect.statement(sql);
        let mut statement = self
            .connection
            .prepare_cached(&text)
            .map_err(|error| translate(&error))?;
        let columns = statement.column_count();
        let mut found = statement
            .query(rusqlite::params_from_iter(params))
            .map_err(|error| translate(&error))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(|error| translate(&error))? {
            let mut cells = Vec::with_capacity(columns);
            for column in 0..columns {
                cells.push(cell(
                    row.get_ref(column).map_err(|error| translate(&error))?,
                )?);
            }
            rows.push(SqlRow::new(cells));
        }
        Ok(rows)
    }

    fn change(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64> {
        check(params)?;
        let text = self.dialect.statement(sql);
        let mut statement = self
            .connection
            .prepare_cached(&text)
            .map_err(|error| translate(&error))?;
        let changed = statement
            .execute(rusqlite::params_from_iter(params))
            .map_err(|error| translate(&error))?;
        Ok(changed as u64)
    }
}

#[async_trait]
impl SqlTransaction for SqliteTransaction<'_> {
    async fn query(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<Vec<SqlRow>> {
        self.rows(sql, params)
    }

    async fn execute(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64> {
        self.change(sql, params)
    }

    async fn query_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Vec<SqlRow>>> {
        params.iter().map(|params| self.rows(sql, params)).collect()
    }

    async fn insert_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Option<i64>>> {
        let mut numbers = Vec::with_capacity(params.len());
        for params in params {
            // A row that is given back is first put into a table of its own, which costs as much as the insert.
            let inserted = self.change(sql, params)? > 0;
            numbers.push(inserted.then(|| self.connection.last_insert_rowid()));
        }
        Ok(numbers)
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Int(value) => ToSqlOutput::Owned(Value::Integer(*value)),
            Self::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Self::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
        })
    }
}

fn cell(value: ValueRef<'_>) -> Result<SqlValue<'static>> {
    Ok(match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Int(value),
        ValueRef::Text(bytes) => SqlValue::Text(Cow::Owned(
            String::from_utf8(bytes.to_vec())
                .map_err(|_| StoreError::Corrupt("a text is not UTF-8".to_owned()))?,
        )),
        ValueRef::Blob(bytes) => SqlValue::Bytes(Cow::Owned(bytes.to_vec())),
        ValueRef::Real(_) => {
            return Err(StoreError::Corrupt("a column holds a fraction".to_owned()));
        }
    })
}

/// Runs work to its end. It never waits, so it is asked once.
pub(super) fn complete<T>(work: &TransactionWork<T>, tx: Tx<'_>) -> Result<T> {
    let mut future = pin!(work(tx));
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(StoreError::Corrupt(
            "a statement waited for something".to_owned(),
        )),
    }
}
