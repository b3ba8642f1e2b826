//! Reads rows, column by column, in the order of the statement.

use serde_json::Value;

use super::transaction::SqlValue;
use crate::error::{Result, StoreError};

/// A row that a statement gave.
#[derive(Debug)]
pub(crate) struct SqlRow(std::vec::IntoIter<SqlValue<'static>>);

impl SqlRow {
    pub(crate) fn new(cells: Vec<SqlValue<'static>>) -> Self {
        Self(cells.into_iter())
    }

    pub(crate) fn int(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(SqlValue::Int(value)) => Ok(value),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    pub(crate) fn int_or_null(&mut self) -> Result<Option<i64>> {
        match self.0.next() {
            Some(SqlValue::Int(value)) => Ok(Some(value)),
            Some(SqlValue::Null) => Ok(None),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.int()? != 0)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        match self.0.next() {
            Some(SqlValue::Text(value)) => Ok(value.into_owned()),
            other => Err(unexpected("a text", other.as_ref())),
        }
    }

    pub(crate) fn text_or_null(&mut self) -> Result<Option<String>> {
        match self.0.next() {
            Some(SqlValue::Text(value)) => Ok(Some(value.into_owned())),
            Some(SqlValue::Null) => Ok(None),
            other => Err(unexpected("a text", other.as_ref())),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>> {
        match self.0.next() {
            Some(SqlValue::Bytes(value)) => Ok(value.into_owned()),
            other => Err(unexpected("bytes", other.as_ref())),
        }
    }

    pub(crate) fn json(&mut self) -> Result<Value> {
        parse(&self.text()?)
    }

    pub(crate) fn json_or_null(&mut self) -> Result<Option<Value>> {
        self.text_or_null()?.map(|text| parse(&text)).transpose()
    }

    /// A word of one of our enums.
    pub(crate) fn word<T>(&mut self, from_word: impl Fn(&str) -> Option<T>) -> Result<T> {
        let word = self.text()?;
        from_word(&word).ok_or_else(|| StoreError::Corrupt(format!("unknown word `{word}`")))
    }
}

fn unexpected(wanted: &str, found: Option<&SqlValue<'_>>) -> StoreError {
    let found = match found {
        None => "no column",
        Some(SqlValue::Null) => "nothing",
        Some(SqlValue::Int(_)) => "a number",
        Some(SqlValue::Text(_)) => "a text",
        Some(SqlValue::Bytes(_)) => "bytes",
    };
    StoreError::Corrupt(format!("expected {wanted}, found {found}"))
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("a stored JSON value: {error}")))
}

/// The only row of a statement that gives one or none.
pub(crate) fn first(rows: Vec<SqlRow>) -> Option<SqlRow> {
    rows.into_iter().next()
}
