//! The compiled form of an expression: what the evaluator walks.
//!
//! Names are resolved once, when the parser's tree is lowered: a loop variable
//! is a slot number, a function is a table entry, a constant pattern is a
//! compiled regular expression.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::functions::{OwnFunction, Standard};
use crate::re2::{Re2Error, Re2Pattern};

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
pub(crate) type ConstantPattern = Result<Arc<Re2Pattern>, Re2Error>;

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
    /// Whether this is what a path names: a variable, and fields of it one in the other.
    pub(crate) fn is_at(&self, variable: usize, path: &[&str]) -> bool {
        match (self, path) {
            (Self::Variable { name, .. }, []) => *name == variable,
            (Self::Field(operand, name), [rest @ .., last]) => {
                **name == **last && operand.is_at(variable, rest)
            }
            (Self::Binary(CelOperator::Index, pair), [rest @ .., last]) => {
                matches!(&pair.1, Self::Constant(Constant::Text(name)) if **name == **last)
                    && pair.0.is_at(variable, rest)
            }
            _ => false,
        }
    }

    /// Has a function look at whatever is compared with what this is true of, before it is compared.
    pub(crate) fn compare_by(&mut self, is_it: &dyn Fn(&Self) -> bool, by: &Arc<OwnFunction>) {
        if let Self::Binary(operator, pair) = self
            && matches!(
                operator,
                CelOperator::Less
                    | CelOperator::LessEqual
                    | CelOperator::Greater
                    | CelOperator::GreaterEqual
            )
        {
            let other = match (is_it(&pair.0), is_it(&pair.1)) {
                (true, false) => Some(&mut pair.1),
                (false, true) => Some(&mut pair.0),
                _ => None,
            };
            if let Some(other) = other {
                let compared = std::mem::replace(other, Self::Unsupported);
                *other = Self::Own(Arc::clone(by), Box::new([compared]));
            }
        }
        let mut each = |node: &mut Self| node.compare_by(is_it, by);
        match self {
            Self::Constant(_)
            | Self::Json(_)
            | Self::Variable { .. }
            | Self::Slot(_)
            | Self::IsBound(_)
            | Self::Unsupported => {}
            Self::Field(operand, _)
            | Self::Has(operand, _)
            | Self::Not(operand)
            | Self::Negate(operand) => each(operand),
            Self::And(pair) | Self::Or(pair) | Self::Binary(_, pair) => {
                each(&mut pair.0);
                each(&mut pair.1);
            }
            Self::If(parts) => {
                each(&mut parts.0);
                each(&mut parts.1);
                each(&mut parts.2);
            }
            Self::List(items) => items.iter_mut().for_each(each),
            Self::Map(entries) => {
                for (key, value) in entries {
                    each(key);
                    each(value);
                }
            }
            Self::Loop(looped) => {
                each(&mut looped.range);
                match &mut looped.kind {
                    LoopKind::All(test) | LoopKind::Exists(test) | LoopKind::ExistsOne(test) => {
                        each(test);
                    }
                    LoopKind::Append { guard, item } => {
                        guard.iter_mut().for_each(&mut each);
                        each(item);
                    }
                }
            }
            Self::Standard { args, .. } | Self::Own(_, args) => args.iter_mut().for_each(each),
            Self::Matches(parts) => each(&mut parts.0),
        }
    }

    /// Collects the fields that are read of what this is true of. The depth of the tree is bounded.
    pub(crate) fn fields_of<'n>(
        &'n self,
        is_it: &dyn Fn(&ExprNode) -> bool,
        fields: &mut BTreeSet<&'n str>,
    ) {
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
                operand.fields_of(is_it, fields);
            }
            ExprNode::Has(operand, _) | ExprNode::Not(operand) | ExprNode::Negate(operand) => {
                operand.fields_of(is_it, fields);
            }
            ExprNode::And(pair) | ExprNode::Or(pair) => {
                pair.0.fields_of(is_it, fields);
                pair.1.fields_of(is_it, fields);
            }
            ExprNode::Binary(operator, pair) => {
                if let (CelOperator::Index, ExprNode::Constant(Constant::Text(name))) =
                    (operator, &pair.1)
                    && is_it(&pair.0)
                {
                    fields.insert(name);
                }
                pair.0.fields_of(is_it, fields);
                pair.1.fields_of(is_it, fields);
            }
            ExprNode::If(parts) => {
                parts.0.fields_of(is_it, fields);
                parts.1.fields_of(is_it, fields);
                parts.2.fields_of(is_it, fields);
            }
            ExprNode::List(items) => items.iter().for_each(|item| item.fields_of(is_it, fields)),
            ExprNode::Map(entries) => {
                for (key, value) in entries {
                    key.fields_of(is_it, fields);
                    value.fields_of(is_it, fields);
                }
            }
            ExprNode::Loop(looped) => {
                looped.range.fields_of(is_it, fields);
                match &looped.kind {
                    LoopKind::All(test) | LoopKind::Exists(test) | LoopKind::ExistsOne(test) => {
                        test.fields_of(is_it, fields);
                    }
                    LoopKind::Append { guard, item } => {
                        if let Some(guard) = guard {
                            guard.fields_of(is_it, fields);
                        }
                        item.fields_of(is_it, fields);
                    }
                }
            }
            ExprNode::Standard { args, .. } | ExprNode::Own(_, args) => {
                args.iter().for_each(|arg| arg.fields_of(is_it, fields));
            }
            ExprNode::Matches(parts) => parts.0.fields_of(is_it, fields),
        }
    }
}
