//! What the statements are run on: a transaction of one of the databases.

use std::borrow::Cow;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::row::SqlRow;
use crate::error::{Result, StoreError};
use crate::model::limits::{MAX_JSON_BYTES, MAX_NAME_BYTES};

/// A transaction. Statements are in the common language of [`super::dialect`].
#[async_trait]
pub(crate) trait SqlTransaction: Send {
    /// Runs a statement that gives rows.
    async fn query(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<Vec<SqlRow>>;

    /// Runs a statement that gives a number of changed rows.
    async fn execute(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64>;

    /// Runs a statement once for each of these parameters, in this order, without waiting for each answer where there
    /// is a way to be quicker.
    async fn query_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Vec<SqlRow>>>;

    /// Inserts a row for each of these parameters, and gives the number of each that was inserted. The statement ends with
    /// `{inserted …}` and the column that the database numbers.
    async fn insert_each(
        &mut self,
        sql: &'static str,
        params: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<Option<i64>>>;
}

/// A transaction that is being written to.
pub(crate) type Tx<'a> = &'a mut (dyn SqlTransaction + 'a);

/// The statements of one transaction. It may be run again when the transaction was undone.
pub(crate) type TransactionWork<T> =
    Box<dyn for<'a> Fn(Tx<'a>) -> BoxFuture<'a, Result<T>> + Send + Sync>;

/// Whether a transaction changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionMode {
    Read,
    Write,
    /// It changes something with one statement, which needs nobody to begin and end a transaction.
    Single,
    /// It reads with one statement.
    SingleRead,
}

impl TransactionMode {
    /// Whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Self::Read | Self::SingleRead => true,
            Self::Write | Self::Single => false,
        }
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SqlValue<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl From<i64> for SqlValue<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for SqlValue<'_> {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}

impl From<usize> for SqlValue<'_> {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a str> for SqlValue<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for SqlValue<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a> From<&'a String> for SqlValue<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a, T> From<Option<T>> for SqlValue<'a>
where
    SqlValue<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$($crate::sql::transaction::SqlValue::from($value)),*] };
}
pub(crate) use params;

/// A name or a key: short enough for an index, and not empty.
pub(crate) fn name<'a>(what: &str, value: &'a str) -> Result<&'a str> {
    if value.is_empty() {
        return Err(StoreError::Invalid(format!("{what} is empty")));
    }
    short(what, value)
}

/// A word that may be empty, short enough for an index.
pub(crate) fn short<'a>(what: &str, value: &'a str) -> Result<&'a str> {
    if value.len() > MAX_NAME_BYTES {
        return Err(StoreError::TooLarge {
            what: format!("{what}, in bytes,"),
            size: value.len(),
            limit: MAX_NAME_BYTES,
        });
    }
    Ok(value)
}

/// A text for people, cut where it is too long to be worth keeping.
pub(crate) fn truncated(value: &str) -> SqlValue<'_> {
    /// Longer reasons do not help anybody.
    const MAX_REMARK_BYTES: usize = 4096;
    let mut end = value.len().min(MAX_REMARK_BYTES);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    let cut = &value[..end];
    // PostgreSQL cannot hold this character; a reason may quote anything.
    if cut.contains('\0') {
        SqlValue::Text(Cow::Owned(cut.replace('\0', "\u{fffd}")))
    } else {
        SqlValue::Text(Cow::Borrowed(cut))
    }
}

/// Texts as a list of JSON, for `{among}`.
pub(crate) fn list_or_null(texts: Option<&[String]>) -> Option<String> {
    texts.map(|texts| Value::from(texts).to_string())
}

/// JSON as text.
pub(crate) fn json(what: &str, value: &Value) -> Result<SqlValue<'static>> {
    json_text(what, value).map(|text| SqlValue::Text(Cow::Owned(text)))
}

/// JSON as text, not too long.
pub(crate) fn json_text(what: &str, value: &Value) -> Result<String> {
    let text = value.to_string();
    not_too_long(what, &text)?;
    Ok(text)
}

/// Refuses JSON that is too long.
pub(crate) fn not_too_long(what: &str, text: &str) -> Result<()> {
    if text.len() > MAX_JSON_BYTES {
        return Err(StoreError::TooLarge {
            what: format!("{what}, in bytes,"),
            size: text.len(),
            limit: MAX_JSON_BYTES,
        });
    }
    Ok(())
}

/// JSON as text, or nothing.
pub(crate) fn json_or_null(what: &str, value: Option<&Value>) -> Result<SqlValue<'static>> {
    value.map_or(Ok(SqlValue::Null), |value| json(what, value))
}

/// Refuses what one of the databases could not hold, so that both refuse it.
pub(crate) fn check(params: &[SqlValue<'_>]) -> Result<()> {
    for param in params {
        if let SqlValue::Text(text) = param
            && text.contains('\0')
        {
            return Err(StoreError::Invalid(
                "a name holds the character U+0000".to_owned(),
            ));
        }
    }
    Ok(())
}
