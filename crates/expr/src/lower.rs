//! Turns the parser's tree into [`Node`]s, counting depth and nodes as it goes.
//!
//! The recursion here is safe because [`crate::scan`] bounded the tree before it
//! was built; the exact depth is checked on the way down.

use std::collections::BTreeSet;
use std::sync::Arc;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr,
    operators,
};

use serde_json::{Number, Value};

use crate::ExprLimits;
use crate::error::{CompileError, CompileErrorKind};
use crate::functions::{OwnFunctions, Standard, type_named};
use crate::node::{CelOperator, Constant, ConstantPattern, ExprNode, Loop, LoopKind};
use crate::re2::{ParsedPattern, Re2Error};
use crate::scan::IS_BOUND;

pub(crate) struct Lowering<'c> {
    limits: &'c ExprLimits,
    own: &'c OwnFunctions,
    /// Whether `has(name)` asks whether a variable is bound.
    bare_has: bool,
    nodes: usize,
    depth: usize,
    pattern_bytes: u64,
    /// The loop variables in scope, outermost first.
    slots: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) functions: BTreeSet<String>,
    pub(crate) unsupported: BTreeSet<String>,
    /// Calls that are of a function in a namespace, `sets.contains`, unless a variable of that name is bound.
    pub(crate) namespaced: Vec<(usize, String)>,
    pub(crate) pattern_errors: Vec<Re2Error>,
}

type Lowered<T = ExprNode> = Result<T, CompileError>;

impl<'c> Lowering<'c> {
    pub(crate) fn new(limits: &'c ExprLimits, own: &'c OwnFunctions, bare_has: bool) -> Self {
        Self {
            limits,
            own,
            bare_has,
            nodes: 0,
            depth: 0,
            pattern_bytes: 0,
            slots: Vec::new(),
            names: Vec::new(),
            functions: BTreeSet::new(),
            unsupported: BTreeSet::new(),
            namespaced: Vec::new(),
            pattern_errors: Vec::new(),
        }
    }

    pub(crate) fn lower(&mut self, expr: IdedExpr) -> Lowered {
        self.nodes += 1;
        if self.nodes > self.limits.max_nodes {
            return Err(CompileError::new(
                CompileErrorKind::TooLarge,
                format!(
                    "the expression has more than {} parts",
                    self.limits.max_nodes
                ),
            ));
        }
        if self.depth >= self.limits.max_depth {
            return Err(CompileError::new(
                CompileErrorKind::TooDeep,
                format!(
                    "the expression is nested deeper than {}",
                    self.limits.max_depth
                ),
            ));
        }
        self.depth += 1;
        let node = match expr.expr {
            Expr::Literal(literal) => Ok(ExprNode::Constant(constant(literal))),
            Expr::Ident(name) => Ok(self.name(&name)),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) if list.optional_indices.is_empty() => {
                self.all(list.elements)
                    .map(|items| match json_list(&items) {
                        Some(json) => ExprNode::Json(json),
                        None => ExprNode::List(items),
                    })
            }
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(*comprehension),
            Expr::Struct(message) => Err(CompileError::new(
                CompileErrorKind::Unsupported,
                format!(
                    "messages such as `{}{{…}}` are not supported",
                    message.type_name
                ),
            )),
            Expr::List(_) | Expr::Unspecified => Err(syntax("the expression is incomplete")),
        };
        self.depth -= 1;
        node
    }

    fn boxed(&mut self, expr: IdedExpr) -> Lowered<Box<ExprNode>> {
        self.lower(expr).map(Box::new)
    }

    fn all(&mut self, exprs: Vec<IdedExpr>) -> Lowered<Box<[ExprNode]>> {
        exprs.into_iter().map(|expr| self.lower(expr)).collect()
    }

    fn name(&mut self, name: &str) -> ExprNode {
        // A leading dot skips the loop variables.
        if let Some(absolute) = name.strip_prefix('.') {
            return self.variable(absolute);
        }
        match self.slots.iter().rposition(|slot| slot == name) {
            Some(slot) => ExprNode::Slot(slot),
            None => self.variable(name),
        }
    }

    fn variable(&mut self, name: &str) -> ExprNode {
        let type_name = type_named(name);
        let name = self.name_index(name);
        ExprNode::Variable { name, type_name }
    }

    fn name_index(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    fn select(&mut self, select: SelectExpr) -> Lowered {
        // Only the two well-known types have names with dots.
        let may_be_type = matches!(select.field.as_str(), "Timestamp" | "Duration");
        if may_be_type && !select.test && !self.is_slot(&select.operand) {
            let spelled = qualified(&select.operand).map(|path| format!("{path}.{}", select.field));
            if let Some(type_name) = spelled.as_deref().and_then(type_named) {
                return Ok(ExprNode::Constant(Constant::Type(type_name)));
            }
        }
        let operand = self.boxed(*select.operand)?;
        let field = select.field.into_boxed_str();
        Ok(if select.test {
            self.functions.insert(operators::HAS.to_owned());
            ExprNode::Has(operand, field)
        } else {
            ExprNode::Field(operand, field)
        })
    }

    fn is_slot(&self, expr: &IdedExpr) -> bool {
        let mut expr = expr;
        while let Expr::Select(select) = &expr.expr {
            expr = &select.operand;
        }
        matches!(&expr.expr, Expr::Ident(name) if self.slots.contains(name))
    }

    fn map(&mut self, map: MapExpr) -> Lowered {
        let entry = |entry: cel::common::ast::IdedEntryExpr| match entry.expr {
            EntryExpr::MapEntry(entry) if !entry.optional => {
                Ok((self.lower(entry.key)?, self.lower(entry.value)?))
            }
            _ => Err(syntax("optional map entries are not supported")),
        };
        let entries: Lowered<Box<[_]>> = map.entries.into_iter().map(entry).collect();
        entries.map(|entries| match json_map(&entries) {
            Some(json) => ExprNode::Json(json),
            None => ExprNode::Map(entries),
        })
    }

    fn call(&mut self, call: CallExpr) -> Lowered {
        match (call.target, call.args.len()) {
            (Some(target), _) => self.member_call(*target, call.func_name, call.args),
            (None, 1..=3) => match self.operator(&call.func_name, call.args)? {
                Ok(node) => Ok(node),
                Err(args) => self.global_call(call.func_name, args),
            },
            (None, _) => self.global_call(call.func_name, call.args),
        }
    }

    /// The node of an operator, or its arguments back when it is none.
    fn operator(
        &mut self,
        name: &str,
        args: Vec<IdedExpr>,
    ) -> Lowered<Result<ExprNode, Vec<IdedExpr>>> {
        let binary = match name {
            operators::EQUALS => CelOperator::Equal,
            operators::NOT_EQUALS => CelOperator::NotEqual,
            operators::LESS => CelOperator::Less,
            operators::LESS_EQUALS => CelOperator::LessEqual,
            operators::GREATER => CelOperator::Greater,
            operators::GREATER_EQUALS => CelOperator::GreaterEqual,
            operators::IN => CelOperator::In,
            operators::ADD => CelOperator::Add,
            operators::SUBSTRACT => CelOperator::Subtract,
            operators::MULTIPLY => CelOperator::Multiply,
            operators::DIVIDE => CelOperator::Divide,
            operators::MODULO => CelOperator::Remainder,
            operators::INDEX => CelOperator::Index,
            _ => {
                return match (name, <[IdedExpr; 1]>::try_from(args)) {
                    (operators::LOGICAL_NOT, Ok([of])) => Ok(Ok(ExprNode::Not(self.boxed(of)?))),
                    (operators::NEGATE, Ok([of])) => Ok(Ok(ExprNode::Negate(self.boxed(of)?))),
                    (IS_BOUND, Ok([of])) if self.bare_has => self.is_bound(of).map(Ok),
                    (_, Ok([of])) => Ok(Err(vec![of])),
                    (_, Err(args)) => self.logical(name, args),
                };
            }
        };
        match <[IdedExpr; 2]>::try_from(args) {
            Ok([left, right]) => {
                let operands = Box::new((self.lower(left)?, self.lower(right)?));
                Ok(Ok(ExprNode::Binary(binary, operands)))
            }
            Err(args) => Ok(Err(args)),
        }
    }

    fn logical(
        &mut self,
        name: &str,
        args: Vec<IdedExpr>,
    ) -> Lowered<Result<ExprNode, Vec<IdedExpr>>> {
        if name == operators::CONDITIONAL {
            return match <[IdedExpr; 3]>::try_from(args) {
                Ok([condition, then, otherwise]) => Ok(Ok(ExprNode::If(Box::new((
                    self.lower(condition)?,
                    self.lower(then)?,
                    self.lower(otherwise)?,
                ))))),
                Err(args) => Ok(Err(args)),
            };
        }
        if name != operators::LOGICAL_AND && name != operators::LOGICAL_OR {
            return Ok(Err(args));
        }
        match <[IdedExpr; 2]>::try_from(args) {
            Ok([left, right]) => {
                let operands = Box::new((self.lower(left)?, self.lower(right)?));
                Ok(Ok(match name {
                    operators::LOGICAL_AND => ExprNode::And(operands),
                    _ => ExprNode::Or(operands),
                }))
            }
            Err(args) => Ok(Err(args)),
        }
    }

    fn is_bound(&mut self, of: IdedExpr) -> Lowered {
        let Expr::Ident(name) = of.expr else {
            return Err(syntax("has() takes a field, or the name of a variable"));
        };
        self.functions.insert(operators::HAS.to_owned());
        Ok(if self.slots.contains(&name) {
            ExprNode::Constant(Constant::Bool(true))
        } else {
            ExprNode::IsBound(self.name_index(name.trim_start_matches('.')))
        })
    }

    fn global_call(&mut self, name: String, args: Vec<IdedExpr>) -> Lowered {
        let args = self.all(args)?;
        self.functions.insert(name.clone());
        if let Some(own) = self.own.global(&name) {
            return Ok(ExprNode::Own(own, args));
        }
        Ok(match Standard::named(&name) {
            Some(function) if function.is_global() => self.standard(function, false, args)?,
            _ => self.unsupported(name),
        })
    }

    fn member_call(&mut self, target: IdedExpr, name: String, args: Vec<IdedExpr>) -> Lowered {
        // `math.max(…)` calls the registered function `math.max`, whatever `math` is.
        if self.own.any_qualified()
            && !self.is_slot(&target)
            && let Some(path) = qualified(&target)
        {
            let qualified = format!("{path}.{name}");
            if let Some(own) = self.own.global(&qualified) {
                self.functions.insert(qualified);
                return Ok(ExprNode::Own(own, self.all(args)?));
            }
        }
        let standard = Standard::named(&name).filter(|function| function.is_member());
        if standard.is_some_and(|function| !function.takes(args.len()))
            && !self.is_slot(&target)
            && let Some(path) = qualified(&target)
        {
            let root = path.split('.').next().unwrap_or_default();
            let root = self.name_index(root);
            self.namespaced.push((root, format!("{path}.{name}")));
        }
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(target);
        all.extend(args);
        let args = self.all(all)?;
        self.functions.insert(name.clone());
        if let Some(own) = self.own.member(&name) {
            return Ok(ExprNode::Own(own, args));
        }
        Ok(match standard {
            Some(function) => self.standard(function, true, args)?,
            None => self.unsupported(name),
        })
    }

    fn standard(&mut self, function: Standard, member: bool, args: Box<[ExprNode]>) -> Lowered {
        if function == Standard::Matches
            && let [_, ExprNode::Constant(Constant::Text(source))] = &*args
        {
            // A constant pattern is compiled here, once. One that does not
            // compile is still an error of the call, which may never happen.
            let pattern = self.pattern(source)?;
            if let Some(text) = args.into_iter().next() {
                return Ok(ExprNode::Matches(Box::new((text, pattern))));
            }
            return Err(syntax("matches takes a text"));
        }
        Ok(ExprNode::Standard {
            function,
            member,
            args,
        })
    }

    fn pattern(&mut self, source: &str) -> Lowered<ConstantPattern> {
        let parsed = match ParsedPattern::new(source) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.pattern_errors.push(error.clone());
                return Ok(Err(error));
            }
        };
        // Compiling takes time by size, so the patterns of a program have a
        // limit together, twice that of one.
        let limit = self.limits.max_regex_bytes as u64;
        self.pattern_bytes += parsed.cost.bytes.min(limit);
        if self.pattern_bytes > limit * 2 {
            let message = "the patterns of the expression are too large together";
            return Err(CompileError::new(CompileErrorKind::TooLarge, message));
        }
        let compiled = parsed.compile(self.limits.max_regex_bytes).map(Arc::new);
        self.pattern_errors.extend(compiled.clone().err());
        Ok(compiled)
    }

    fn unsupported(&mut self, name: String) -> ExprNode {
        self.unsupported.insert(name);
        ExprNode::Unsupported
    }

    /// The macros are the only source of comprehensions, so their few shapes
    /// are told apart here and run as plain loops.
    fn comprehension(&mut self, comprehension: ComprehensionExpr) -> Lowered {
        let ComprehensionExpr {
            iter_range,
            iter_var,
            iter_var2,
            accu_var,
            loop_step,
            ..
        } = comprehension;
        let range = self.lower(iter_range)?;
        let unknown = || syntax("this kind of loop is not supported");
        let Expr::Call(step) = loop_step.expr else {
            return Err(unknown());
        };
        if iter_var2.is_some() || step.target.is_some() {
            return Err(unknown());
        }
        let slot = self.slots.len();
        self.slots.push(iter_var);
        let kind = self.loop_kind(&accu_var, step);
        self.slots.pop();
        let (name, kind) = kind?.ok_or_else(unknown)?;
        self.functions.insert(name.to_owned());
        Ok(ExprNode::Loop(Box::new(Loop { range, slot, kind })))
    }

    fn loop_kind(
        &mut self,
        accu: &str,
        step: CallExpr,
    ) -> Lowered<Option<(&'static str, LoopKind)>> {
        let is_accu = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == accu);
        let mut args = step.args.into_iter();
        Ok(
            match (
                step.func_name.as_str(),
                args.next(),
                args.next(),
                args.next(),
            ) {
                (operators::LOGICAL_AND, Some(left), Some(test), None) if is_accu(&left) => {
                    Some((operators::ALL, LoopKind::All(self.lower(test)?)))
                }
                (operators::LOGICAL_OR, Some(left), Some(test), None) if is_accu(&left) => {
                    Some((operators::EXISTS, LoopKind::Exists(self.lower(test)?)))
                }
                (operators::ADD, Some(left), Some(items), None) if is_accu(&left) => {
                    let item = self.only(items)?;
                    item.map(|item| (operators::MAP, LoopKind::Append { guard: None, item }))
                }
                (operators::CONDITIONAL, Some(guard), Some(then), Some(otherwise))
                    if is_accu(&otherwise) =>
                {
                    self.guarded(accu, guard, then)?
                }
                _ => None,
            },
        )
    }

    /// `guard ? accu + … : accu`
    fn guarded(
        &mut self,
        accu: &str,
        guard: IdedExpr,
        then: IdedExpr,
    ) -> Lowered<Option<(&'static str, LoopKind)>> {
        let Expr::Call(add) = then.expr else {
            return Ok(None);
        };
        let guard = self.lower(guard)?;
        let mut args = add.args.into_iter();
        let (Some(left), Some(added)) = (args.next(), args.next()) else {
            return Ok(None);
        };
        if add.func_name != operators::ADD
            || !matches!(&left.expr, Expr::Ident(name) if name == accu)
        {
            return Ok(None);
        }
        if matches!(added.expr, Expr::Literal(LiteralValue::Int(_))) {
            return Ok(Some((operators::EXISTS_ONE, LoopKind::ExistsOne(guard))));
        }
        let slot = self.slots.len().saturating_sub(1);
        let guard = Some(guard);
        Ok(self.only(added)?.map(|item| {
            let name = match item {
                ExprNode::Slot(own) if own == slot => operators::FILTER,
                _ => operators::MAP,
            };
            (name, LoopKind::Append { guard, item })
        }))
    }

    /// The one element of the list a `map` or `filter` step appends.
    fn only(&mut self, items: IdedExpr) -> Lowered<Option<ExprNode>> {
        let Expr::List(list) = items.expr else {
            return Ok(None);
        };
        match <[IdedExpr; 1]>::try_from(list.elements) {
            Ok([item]) => self.lower(item).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// The dotted name an expression spells, if it spells one.
fn qualified(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.trim_start_matches('.').to_owned()),
        Expr::Select(select) if !select.test => {
            let mut path = qualified(&select.operand)?;
            path.push('.');
            path.push_str(&select.field);
            Some(path)
        }
        _ => None,
    }
}

/// A list literal of constants, as JSON that is built once; `None` where JSON
/// would lose a type.
fn json_list(items: &[ExprNode]) -> Option<Value> {
    items.iter().map(json_constant).collect()
}

/// The same for a map literal. A key that is there twice is left to evaluation,
/// where it is an error.
fn json_map(entries: &[(ExprNode, ExprNode)]) -> Option<Value> {
    let mut map = serde_json::Map::new();
    for (key, value) in entries {
        let ExprNode::Constant(Constant::Text(key)) = key else {
            return None;
        };
        if map.insert(key.to_string(), json_constant(value)?).is_some() {
            return None;
        }
    }
    Some(Value::Object(map))
}

fn json_constant(node: &ExprNode) -> Option<Value> {
    Some(match node {
        ExprNode::Json(json) => json.clone(),
        ExprNode::Constant(Constant::Null) => Value::Null,
        ExprNode::Constant(Constant::Bool(bool)) => Value::Bool(*bool),
        ExprNode::Constant(Constant::Int(int)) => Value::from(*int),
        ExprNode::Constant(Constant::Double(double)) => Number::from_f64(*double)?.into(),
        ExprNode::Constant(Constant::Text(text)) => Value::from(&**text),
        _ => return None,
    })
}

fn constant(literal: LiteralValue) -> Constant {
    match literal {
        LiteralValue::Boolean(bool) => Constant::Bool(bool.into_inner()),
        LiteralValue::Bytes(bytes) => Constant::Bytes(bytes.into_inner().into_boxed_slice()),
        LiteralValue::Double(double) => Constant::Double(double.into_inner()),
        LiteralValue::Int(int) => Constant::Int(int.into_inner()),
        LiteralValue::Null => Constant::Null,
        LiteralValue::String(text) => Constant::Text(text.into_inner().into_boxed_str()),
        LiteralValue::UInt(uint) => Constant::UInt(uint.into_inner()),
    }
}

fn syntax(message: impl Into<String>) -> CompileError {
    CompileError::new(CompileErrorKind::Syntax, message)
}
