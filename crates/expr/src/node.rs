//! The compiled form of an expression: what the evaluator walks.
//!
//! Names are resolved once, when the parser's tree is lowered: a loop variable
//! is a slot number, a function is a table entry, a constant pattern is a
//! compiled regular expression.

use std::sync::Arc;

use serde_json::Value;

use crate::functions::{OwnFunction, Standard};
use crate::patterns::Pattern;

pub(crate) enum Node {
    Constant(Constant),
    /// A list or map literal of constants.
    Json(Value),
    /// A variable the caller binds: an index into the program's names. Where
    /// nothing is bound, the name may still be that of a type.
    Variable {
        name: usize,
        type_name: Option<&'static str>,
    },
    /// A loop variable, counted from the outermost loop.
    Slot(usize),
    /// `operand.name`
    Field(Box<Node>, Box<str>),
    /// `has(operand.name)`
    Has(Box<Node>, Box<str>),
    /// `has(name)`: whether a variable is bound. Not CEL, but people write it.
    IsBound(usize),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    If(Box<(Node, Node, Node)>),
    Binary(Operator, Box<(Node, Node)>),
    List(Box<[Node]>),
    Map(Box<[(Node, Node)]>),
    Loop(Box<Loop>),
    Standard {
        function: Standard,
        member: bool,
        args: Box<[Node]>,
    },
    /// `text.matches('constant')`
    Matches(Box<(Node, ConstantPattern)>),
    Own(Arc<OwnFunction>, Box<[Node]>),
    /// A call of a function nobody knows.
    Unsupported,
}

/// A pattern compiled with the program, or why it could not be.
pub(crate) type ConstantPattern = Result<Arc<Pattern>, Box<str>>;

pub(crate) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Type(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Index,
}

/// A macro that goes through a list, or through the keys of a map.
pub(crate) struct Loop {
    pub(crate) range: Node,
    /// Where the element is kept while the rest is evaluated.
    pub(crate) slot: usize,
    pub(crate) kind: LoopKind,
}

pub(crate) enum LoopKind {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    /// `map` and `filter`: what to append, and when.
    Append {
        guard: Option<Node>,
        item: Node,
    },
}
