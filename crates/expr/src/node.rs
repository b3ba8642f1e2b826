//! The compiled form of an expression: what the evaluator walks.
//!
//! Names are resolved once, when the parser's tree is lowered: a loop variable
//! is a slot number, a function is a table entry, a constant pattern is a
//! compiled regular expression.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::functions::{OwnFunction, Standard};
use crate::patterns::{CompiledPattern, PatternError};

pub(crate) enum ExprNode {
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
    Field(Box<ExprNode>, Box<str>),
    /// `has(operand.name)`
    Has(Box<ExprNode>, Box<str>),
    /// `has(name)`: whether a variable is bound. Not CEL, but people write it.
    IsBound(usize),
    Not(Box<ExprNode>),
    Negate(Box<ExprNode>),
    And(Box<(ExprNode, ExprNode)>),
    Or(Box<(ExprNode, ExprNode)>),
    If(Box<(ExprNode, ExprNode, ExprNode)>),
    Binary(CelOperator, Box<(ExprNode, ExprNode)>),
    List(Box<[ExprNode]>),
    Map(Box<[(ExprNode, ExprNode)]>),
    Loop(Box<Loop>),
    Standard {
        function: Standard,
        member: bool,
        args: Box<[ExprNode]>,
    },
    /// `text.matches('constant')`
    Matches(Box<(ExprNode, ConstantPattern)>),
    Own(Arc<OwnFunction>, Box<[ExprNode]>),
    /// A call of a function nobody knows.
    Unsupported,
}

/// A pattern compiled with the program, or why it could not be.
pub(crate) type ConstantPattern = Result<Arc<CompiledPattern>, PatternError>;

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
pub(crate) enum CelOperator {
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
    pub(crate) range: ExprNode,
    /// Where the element is kept while the rest is evaluated.
    pub(crate) slot: usize,
    pub(crate) kind: LoopKind,
}

pub(crate) enum LoopKind {
    All(ExprNode),
    Exists(ExprNode),
    ExistsOne(ExprNode),
    /// `map` and `filter`: what to append, and when.
    Append {
        guard: Option<ExprNode>,
        item: ExprNode,
    },
}

impl ExprNode {
    /// Collects the fields that are read of a variable. The depth of the tree is bounded.
    pub(crate) fn fields_of<'n>(&'n self, variable: usize, fields: &mut BTreeSet<&'n str>) {
        let is_it =
            |node: &ExprNode| matches!(node, ExprNode::Variable { name, .. } if *name == variable);
        match self {
            ExprNode::Constant(_)
            | ExprNode::Json(_)
            | ExprNode::Variable { .. }
            | ExprNode::Slot(_)
            | ExprNode::IsBound(_)
            | ExprNode::Unsupported => {}
            ExprNode::Field(operand, name) => {
                if is_it(operand) {
                    fields.insert(name);
                }
                operand.fields_of(variable, fields);
            }
            ExprNode::Has(operand, _) | ExprNode::Not(operand) | ExprNode::Negate(operand) => {
                operand.fields_of(variable, fields);
            }
            ExprNode::And(pair) | ExprNode::Or(pair) => {
                pair.0.fields_of(variable, fields);
                pair.1.fields_of(variable, fields);
            }
            ExprNode::Binary(operator, pair) => {
                if let (CelOperator::Index, ExprNode::Constant(Constant::Text(name))) =
                    (operator, &pair.1)
                    && is_it(&pair.0)
                {
                    fields.insert(name);
                }
                pair.0.fields_of(variable, fields);
                pair.1.fields_of(variable, fields);
            }
            ExprNode::If(parts) => {
                parts.0.fields_of(variable, fields);
                parts.1.fields_of(variable, fields);
                parts.2.fields_of(variable, fields);
            }
            ExprNode::List(items) => items
                .iter()
                .for_each(|item| item.fields_of(variable, fields)),
            ExprNode::Map(entries) => {
                for (key, value) in entries {
                    key.fields_of(variable, fields);
                    value.fields_of(variable, fields);
                }
            }
            ExprNode::Loop(looped) => {
                looped.range.fields_of(variable, fields);
                match &looped.kind {
                    LoopKind::All(test) | LoopKind::Exists(test) | LoopKind::ExistsOne(test) => {
                        test.fields_of(variable, fields);
                    }
                    LoopKind::Append { guard, item } => {
                        if let Some(guard) = guard {
                            guard.fields_of(variable, fields);
                        }
                        item.fields_of(variable, fields);
                    }
                }
            }
            ExprNode::Standard { args, .. } | ExprNode::Own(_, args) => {
                args.iter().for_each(|arg| arg.fields_of(variable, fields));
            }
            ExprNode::Matches(parts) => parts.0.fields_of(variable, fields),
        }
    }
}
