//! The values an evaluation works with.
//!
//! A value taken from a variable is a view: a reference into the JSON it was
//! bound to, so nothing is copied until something new is built. Lists and maps
//! that are built are shared by reference count, so handing one on costs
//! nothing either; the budget is paid where they are made.

use std::rc::Rc;

use cel::common::types::{CelDuration, CelTimestamp};
use serde_json::Value as Json;

use crate::sets::{Set, Sets};

pub(crate) type JsonMap = serde_json::Map<String, Json>;

/// A CEL value. `'a` is the borrow of the variables and of the program.
#[derive(Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(&'a str),
    OwnText(Rc<str>),
    Bytes(Rc<[u8]>),
    JsonList(&'a [Json]),
    JsonMap(&'a JsonMap),
    List(Rc<[Val<'a>]>),
    Map(Rc<[(Val<'a>, Val<'a>)]>),
    Timestamp(CelTimestamp),
    Duration(CelDuration),
    Type(&'static str),
    /// Sets by name.
    Sets(&'a Sets),
    /// Any one of several values.
    Set(&'a Set),
}

impl<'a> Val<'a> {
    /// A view of `json`.
    pub(crate) fn from_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Val::Null,
            Json::Bool(bool) => Val::Bool(*bool),
            Json::Number(number) => from_number(number),
            Json::String(text) => Val::Text(text),
            Json::Array(items) => Val::JsonList(items),
            Json::Object(map) => Val::JsonMap(map),
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::UInt(_) => "uint",
            Val::Double(_) => "double",
            Val::Text(_) | Val::OwnText(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::JsonList(_) | Val::List(_) => "list",
            Val::JsonMap(_) | Val::Map(_) => "map",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Type(_) => "type",
            Val::Sets(_) => "sets",
            Val::Set(_) => "set",
        }
    }

    /// The text, where this is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Val::Text(text) => Some(text),
            Val::OwnText(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, where this is a list.
    pub(crate) fn as_list(&self) -> Option<ListItems<'a>> {
        match self {
            Val::JsonList(items) => Some(ListItems::Json(items)),
            Val::List(items) => Some(ListItems::Built(Rc::clone(items))),
            _ => None,
        }
    }
}

/// Every integer that fits is an `int`, so that `n + 1` works on it.
pub(crate) fn from_number<'a>(number: &serde_json::Number) -> Val<'a> {
    if let Some(int) = number.as_i64() {
        Val::Int(int)
    } else if let Some(uint) = number.as_u64() {
        Val::UInt(uint)
    } else {
        Val::Double(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// The elements of a list, wherever they live.
pub(crate) enum ListItems<'a> {
    Json(&'a [Json]),
    Built(Rc<[Val<'a>]>),
}

impl<'a> ListItems<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            ListItems::Json(items) => items.len(),
            ListItems::Built(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            ListItems::Json(items) => items.get(index).map(Val::from_json),
            ListItems::Built(items) => items.get(index).cloned(),
        }
    }
}
