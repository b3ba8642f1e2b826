//! Runs statements in a transaction of PostgreSQL.

use std::borrow::Cow;

use async_trait::async_trait;
use deadpool_postgres::GenericClient;
use futures_util::future::try_join_all;
use tokio_postgres::Statement;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::error::{is_transient, translate};
use crate::error::{Result, StoreError};
use crate::sql::dialect::SqlDialect;
use crate::sql::row::{SqlRow, first};
use crate::sql::transaction::{SqlTransaction, SqlValue, check};

/// Statements that are sent before the answer to the first is waited for.
const PIPELINE: usize = 256;

/// A transaction, or a connection whose next statement is one by itself.
pub(super) struct PostgresTransaction<'a, C: GenericClient> {
    pub(super) client: &'a C,
    pub(super) dialect: &'a SqlDialect,
    /// Whether the last error is one that may go away when the transaction is tried again.
    pub(super) transient: bool,
}

impl<C: GenericClient> PostgresTransaction<'_, C> {
    async fn prepare(&mut self, sql: &'static str) -> Result<Statement> {
        let text = self.dialect.statement(sql);
        let prepared = self.client.prepare_cached(&text).await;
        prepared.map_err(|error| self.failed(&error))
    }

    fn failed(&mut self, error: &tokio_postgres::Error) -> StoreError {
        self.transient = is_transient(error);
        translate(error)
    }
}

#[async_trait]
impl<C: GenericClient> SqlTransaction for PostgresTransaction<'_, C> {
    async fn query(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<Vec<SqlRow>> {
        check(params)?;
        let statement = self.prepare(sql).await?;
        let found = self.client.query(&statement, &borrow(params)).await;
        let found = found.map_err(|error| self.failed(&error))?;
        found.iter().map(row).collect()
    }

    async fn execute(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64> {
        check(params)?;
        let statement = self.prepare(sql).await?;
        let changed = self.client.execute(&statement, &borrow(params)).await;
        changed.map_err(|error| self.failed(&error))
    }

    async fn query_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Vec<SqlRow>>> {
        if params.is_empty() {
            return Ok(Vec::new());
        }
        for params in params {
            check(params)?;
        }
        let statement = self.prepare(sql).await?;
        let mut all = Vec::with_capacity(params.len());
        for chunk in params.chunks(PIPELINE) {
            let borrowed: Vec<_> = chunk.iter().map(|params| borrow(params)).collect();
            let answers = try_join_all(
                borrowed
                    .iter()
                    .map(|params| self.client.query(&statement, params)),
            )
            .await;
            for rows in answers.map_err(|error| self.failed(&error))? {
                all.push(rows.iter().map(row).collect::<Result<Vec<_>>>()?);
            }
        }
        Ok(all)
    }

    async fn insert_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Option<i64>>> {
        let inserted = self.query_each(sql, params).await?.into_iter();
        let numbers = inserted.map(|rows| first(rows).map(|mut row| row.int()).transpose());
        numbers.collect()
    }
}

fn borrow<'a>(params: &'a [SqlValue<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params
        .iter()
        .map(|cell| cell as &(dyn ToSql + Sync))
        .collect()
}

impl ToSql for SqlValue<'_> {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) if *of == Type::INT4 => i32::try_from(*value)?.to_sql(of, out),
            Self::Int(value) => value.to_sql(of, out),
            Self::Text(value) => value.as_ref().to_sql(of, out),
            Self::Bytes(value) => value.as_ref().to_sql(of, out),
        }
    }

    fn accepts(of: &Type) -> bool {
        matches!(*of, Type::INT8 | Type::INT4 | Type::TEXT | Type::BYTEA)
    }

    to_sql_checked!();
}

fn row(row: &tokio_postgres::Row) -> Result<SqlRow> {
    let mut cells = Vec::with_capacity(row.len());
    for (index, column) in row.columns().iter().enumerate() {
        let of = column.type_();
        let cell = match *of {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(index)
                .map(|value| value.map(SqlValue::Int)),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)
                .map(|value| value.map(|value| SqlValue::Int(value.into()))),
            Type::TEXT => row
                .try_get::<_, Option<String>>(index)
                .map(|value| value.map(|value| SqlValue::Text(Cow::Owned(value)))),
            Type::BYTEA => row
                .try_get::<_, Option<Vec<u8>>>(index)
                .map(|value| value.map(|value| SqlValue::Bytes(Cow::Owned(value)))),
            _ => {
                return Err(StoreError::Corrupt(format!(
                    "column `{}` has the type {of}",
                    column.name()
                )));
            }
        };
        let cell = cell.map_err(|error| StoreError::Corrupt(error.to_string()))?;
        cells.push(cell.unwrap_or(SqlValue::Null));
    }
    Ok(SqlRow::new(cells))
}
