//! Walks a compiled expression.
//!
//! The `cel` crate parses, but its interpreter is not used for loops, operators
//! and containers: it has no cost limit and no place to put one. It copies every
//! element and every accumulator of a loop, deep-copies operands into the
//! errors that `||` then drops, recurses in equality, and allocates for every
//! comparison; paying for all that from outside means replacing each of those
//! calls anyway. So the tree is walked here, where each step pays from one
//! [`Budget`], and the crate's own conversions and time functions are called as
//! leaves ([`crate::library`]). A property test holds the results to those of
//! the crate's interpreter.

use std::rc::Rc;

use serde_json::Value as Json;

use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::functions::{OwnFunction, Standard};
use crate::json::{from_owned_json, to_json};
use crate::library::{convert, part};
use crate::node::{Constant, ConstantPattern, ExprNode, Loop, LoopKind};
use crate::ops::{self, ELEMENT, HEADER, missing, no_overload};
use crate::patterns::{PatternCache, is_match, unusable};
use crate::value::{JsonMap, Val};
use crate::variables::BoundValue;
use crate::{ExprLimits, Variables};

type EvaluationResult<'a> = Result<Val<'a>, BoxedError>;

/// One evaluation.
pub(crate) struct Machine<'a> {
    pub(crate) names: &'a [String],
    pub(crate) limits: &'a ExprLimits,
    pub(crate) patterns: &'a PatternCache,
    pub(crate) variables: &'a Variables<'a>,
    pub(crate) budget: StepBudget<'a>,
    /// The elements the loops around are at, outermost first.
    pub(crate) slots: Vec<Val<'a>>,
}

impl<'a> Machine<'a> {
    pub(crate) fn evaluate(&mut self, node: &'a ExprNode) -> EvaluationResult<'a> {
        self.budget.steps(1)?;
        match node {
            ExprNode::Slot(slot) => Ok(self.slots[*slot].clone()),
            ExprNode::Variable { name, type_name } => self.variable(*name, *type_name),
            ExprNode::Field(operand, name) => self.field(operand, name),
            ExprNode::Constant(constant) => self.constant(constant),
            ExprNode::Json(json) => Ok(Val::from_json(json)),
            ExprNode::And(operands) => self.logical(operands, false),
            ExprNode::Or(operands) => self.logical(operands, true),
            ExprNode::Binary(operator, operands) => {
                let left = self.evaluate(&operands.0)?;
                let right = self.evaluate(&operands.1)?;
                ops::binary(*operator, &left, &right, &mut self.budget)
            }
            ExprNode::Not(operand) => match self.value(operand)? {
                Val::Bool(bool) => Ok(Val::Bool(!bool)),
                other => Err(no_overload("!", &[other])),
            },
            ExprNode::If(parts) => self.conditional(parts),
            ExprNode::Has(operand, name) => {
                let operand = self.evaluate(operand)?;
                if let Val::Sets(sets) = operand {
                    return Ok(Val::Bool(!sets.is_empty(name)));
                }
                let field = ops::field(&operand, name, &mut self.budget)?;
                Ok(Val::Bool(field.is_some()))
            }
            ExprNode::IsBound(name) => Ok(Val::Bool(
                self.variables.bound(&self.names[*name]).is_some(),
            )),
            ExprNode::Negate(operand) => self.negate(operand),
            ExprNode::List(items) => self.list(items),
            ExprNode::Map(entries) => self.map(entries),
            ExprNode::Loop(looped) => self.run(looped),
            ExprNode::Standard {
                function,
                member,
                args,
            } => self.standard(*function, *member, args),
            ExprNode::Matches(parts) => self.matches(&parts.0, &parts.1),
            ExprNode::Own(own, args) => self.own(own, args),
            // A program that holds one is refused before it is run.
            ExprNode::Unsupported => Err(fault(
                EvaluateErrorKind::UnsupportedFunction,
                "unsupported function",
            )),
        }
    }

    /// What an operand is where one value is needed: of a set, its only one.
    fn value(&mut self, node: &'a ExprNode) -> EvaluationResult<'a> {
        match self.evaluate(node)? {
            Val::Set(set) => set.single(),
            value => Ok(value),
        }
    }

    fn variable(&self, name: usize, type_name: Option<&'static str>) -> EvaluationResult<'a> {
        let name = &self.names[name];
        match (self.variables.bound(name), type_name) {
            (Some(BoundValue::Json(json)), _) => Ok(Val::from_json(json)),
            (Some(BoundValue::Sets(sets)), _) => Ok(Val::Sets(sets)),
            (None, Some(type_name)) => Ok(Val::Type(type_name)),
            (None, None) => Err(fault(
                EvaluateErrorKind::UnknownVariable,
                format!("unknown variable: {name}"),
            )),
        }
    }

    fn field(&mut self, operand: &'a ExprNode, name: &'a str) -> EvaluationResult<'a> {
        let operand = self.evaluate(operand)?;
        match ops::field(&operand, name, &mut self.budget)? {
            Some(value) => Ok(value),
            None => Err(missing(name)),
        }
    }

    #[inline(never)]
    fn constant(&mut self, constant: &'a Constant) -> EvaluationResult<'a> {
        Ok(match constant {
            Constant::Null => Val::Null,
            Constant::Bool(bool) => Val::Bool(*bool),
            Constant::Int(int) => Val::Int(*int),
            Constant::UInt(uint) => Val::UInt(*uint),
            Constant::Double(double) => Val::Double(*double),
            Constant::Text(text) => Val::Text(text),
            Constant::Type(name) => Val::Type(name),
            Constant::Bytes(bytes) => {
                self.budget.bytes(bytes.len() + HEADER)?;
                Val::Bytes(Rc::from(&**bytes))
            }
        })
    }

    /// `&&` and `||`: `deciding` is the operand that settles the result, even
    /// beside an error. A spent budget is no error to be settled.
    #[inline(never)]
    fn logical(
        &mut self,
        operands: &'a (ExprNode, ExprNode),
        deciding: bool,
    ) -> EvaluationResult<'a> {
        let left = self.value(&operands.0);
        match &left {
            Ok(Val::Bool(bool)) if *bool == deciding => return left,
            Err(error) if is_final(error) => return left,
            _ => {}
        }
        let right = self.value(&operands.1)?;
        match (left, right) {
            (_, Val::Bool(right)) if right == deciding => Ok(Val::Bool(right)),
            (Ok(Val::Bool(_)), Val::Bool(right)) => Ok(Val::Bool(right)),
            (Err(error), _) => Err(error),
            (Ok(left), right) => {
                let name = if deciding { "||" } else { "&&" };
                Err(no_overload(name, &[left, right]))
            }
        }
    }

    #[inline(never)]
    fn conditional(&mut self, parts: &'a (ExprNode, ExprNode, ExprNode)) -> EvaluationResult<'a> {
        match self.value(&parts.0)? {
            Val::Bool(true) => self.evaluate(&parts.1),
            Val::Bool(false) => self.evaluate(&parts.2),
            other => Err(no_overload("?:", &[other])),
        }
    }

    #[inline(never)]
    fn negate(&mut self, operand: &'a ExprNode) -> EvaluationResult<'a> {
        match self.value(operand)? {
            Val::Int(int) => int
                .checked_neg()
                .map(Val::Int)
                .ok_or_else(|| fault(EvaluateErrorKind::Arithmetic, "'-' is out of range")),
            Val::Double(double) => Ok(Val::Double(-double)),
            other => Err(no_overload("-", &[other])),
        }
    }

    #[inline(never)]
    fn list(&mut self, items: &'a [ExprNode]) -> EvaluationResult<'a> {
        self.budget.bytes(items.len() * ELEMENT + HEADER)?;
        let items: Result<Rc<[_]>, BoxedError> =
            items.iter().map(|item| self.evaluate(item)).collect();
        items.map(Val::List)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [(ExprNode, ExprNode)]) -> EvaluationResult<'a> {
        self.budget.bytes(entries.len() * 2 * ELEMENT + HEADER)?;
        let mut map: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.evaluate(key)?;
            if !matches!(
                key,
                Val::Bool(_) | Val::Int(_) | Val::UInt(_) | Val::Text(_) | Val::OwnText(_)
            ) {
                let message = format!("a {} cannot be a map key", key.type_name());
                return Err(fault(EvaluateErrorKind::Type, message));
            }
            for (known, _) in &map {
                self.budget.steps(1)?;
                if ops::equals(known, &key, &mut self.budget, 0)? {
                    let message = "a map literal has the same key twice";
                    return Err(fault(EvaluateErrorKind::Runtime, message));
                }
            }
            map.push((key, self.evaluate(value)?));
        }
        Ok(Val::Map(map.into()))
    }

    #[inline(never)]
    fn run(&mut self, looped: &'a Loop) -> EvaluationResult<'a> {
        let range = self.value(&looped.range)?;
        let Some(elements) = Elements::of(&range) else {
            let message = format!("cannot loop over a {}", range.type_name());
            return Err(fault(EvaluateErrorKind::Type, message));
        };
        self.slots.push(Val::Null);
        let outcome = match &looped.kind {
            LoopKind::All(test) => self.settle(looped.slot, elements, test, false),
            LoopKind::Exists(test) => self.settle(looped.slot, elements, test, true),
            LoopKind::ExistsOne(test) => self.count(looped.slot, elements, test),
            LoopKind::Append { guard, item } => {
                self.append(looped.slot, elements, guard.as_ref(), item)
            }
        };
        // However the loop ended, its element goes.
        self.slots.truncate(looped.slot);
        outcome
    }

    /// `all` and `exists`: as `&&` and `||` over the elements.
    fn settle(
        &mut self,
        slot: usize,
        elements: Elements<'a>,
        test: &'a ExprNode,
        deciding: bool,
    ) -> EvaluationResult<'a> {
        let mut pending = None;
        for element in elements {
            self.slots[slot] = element;
            match self.value(test) {
                Ok(Val::Bool(bool)) if bool == deciding => return Ok(Val::Bool(deciding)),
                Ok(Val::Bool(_)) => {}
                Ok(other) => pending = Some(self.not_a_test(&other)),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => pending = Some(error),
            }
        }
        pending.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn count(
        &mut self,
        slot: usize,
        elements: Elements<'a>,
        test: &'a ExprNode,
    ) -> EvaluationResult<'a> {
        let mut found = 0_u64;
        for element in elements {
            self.slots[slot] = element;
            if self.test(test)? {
                found += 1;
            }
        }
        Ok(Val::Bool(found == 1))
    }

    fn append(
        &mut self,
        slot: usize,
        elements: Elements<'a>,
        guard: Option<&'a ExprNode>,
        item: &'a ExprNode,
    ) -> EvaluationResult<'a> {
        self.budget.bytes(HEADER)?;
        let mut items = Vec::new();
        for element in elements {
            self.slots[slot] = element;
            if self.test_guard(guard)? {
                // Twice: once while the list grows, once when it is done.
                self.budget.bytes(2 * ELEMENT)?;
                items.push(self.evaluate(item)?);
            }
        }
        Ok(Val::List(items.into()))
    }

    fn test_guard(&mut self, guard: Option<&'a ExprNode>) -> Result<bool, BoxedError> {
        guard.map_or(Ok(true), |guard| self.test(guard))
    }

    fn test(&mut self, test: &'a ExprNode) -> Result<bool, BoxedError> {
        match self.value(test)? {
            Val::Bool(bool) => Ok(bool),
            other => Err(self.not_a_test(&other)),
        }
    }

    #[cold]
    fn not_a_test(&self, other: &Val<'a>) -> BoxedError {
        let message = format!("a loop tests for a bool, not a {}", other.type_name());
        fault(EvaluateErrorKind::Type, message)
    }

    #[inline(never)]
    fn standard(
        &mut self,
        function: Standard,
        member: bool,
        args: &'a [ExprNode],
    ) -> EvaluationResult<'a> {
        match (function, args) {
            (Standard::Size, [of]) => {
                let of = self.value(of)?;
                self.size(&of)
            }
            (Standard::Contains | Standard::StartsWith | Standard::EndsWith, [text, part]) => {
                let text = self.evaluate(text)?;
                let part = self.evaluate(part)?;
                self.search_any(function, &text, &part)
            }
            (Standard::Matches, [text, pattern]) => {
                let text = self.value(text)?;
                let pattern = self.value(pattern)?;
                match (text.as_text(), pattern.as_text()) {
                    (Some(text), Some(source)) => {
                        let pattern = self.patterns.get(source, self.limits, &mut self.budget)?;
                        is_match(&pattern, text, &mut self.budget).map(Val::Bool)
                    }
                    _ => Err(no_overload("matches", &[text, pattern])),
                }
            }
            (Standard::Type, [of]) => Ok(Val::Type(self.value(of)?.type_name())),
            (Standard::Dyn, [of]) => self.evaluate(of),
            (Standard::Convert(name), [of]) => {
                let of = self.value(of)?;
                self.convert(name, of)
            }
            (Standard::Part(name), _) => {
                let args: Result<Vec<_>, _> = args.iter().map(|arg| self.value(arg)).collect();
                // As much as a dozen steps: the call goes through an environment.
                self.budget.steps(12)?;
                part(name, &args?)
            }
            _ => {
                let count = args.len() - usize::from(member);
                let message = format!("'{}' does not take {count} arguments", function.name());
                Err(fault(EvaluateErrorKind::Type, message))
            }
        }
    }

    fn size(&mut self, of: &Val<'a>) -> EvaluationResult<'a> {
        let size = match of {
            Val::Bytes(bytes) => bytes.len(),
            Val::JsonMap(map) => map.len(),
            Val::Map(entries) => entries.len(),
            Val::JsonList(items) => items.len(),
            Val::List(items) => items.len(),
            other => match other.as_text() {
                Some(text) => {
                    self.budget.scan(text.len())?;
                    text.chars().count()
                }
                None => return Err(no_overload("size", std::slice::from_ref(of))),
            },
        };
        Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    }

    /// A search in or for a set holds if it holds for one of its values.
    fn search_any(
        &mut self,
        how: Standard,
        text: &Val<'a>,
        part: &Val<'a>,
    ) -> EvaluationResult<'a> {
        match (text, part) {
            (Val::Set(_), Val::Set(_)) => {
                Err(no_overload(how.name(), &[text.clone(), part.clone()]))
            }
            (Val::Set(set), part) => {
                let test =
                    |text: &Val<'_>, budget: &mut StepBudget<'_>| search(how, text, part, budget);
                set.any(&mut self.budget, test).map(Val::Bool)
            }
            (text, Val::Set(set)) => {
                let test =
                    |part: &Val<'_>, budget: &mut StepBudget<'_>| search(how, text, part, budget);
                set.any(&mut self.budget, test).map(Val::Bool)
            }
            _ => search(how, text, part, &mut self.budget).map(Val::Bool),
        }
    }

    fn convert(&mut self, name: &'static str, of: Val<'a>) -> EvaluationResult<'a> {
        if name == "string" && of.as_text().is_some() {
            return Ok(of);
        }
        self.budget.steps(4)?;
        let len = match &of {
            Val::Bytes(bytes) => bytes.len(),
            other => other.as_text().map_or(0, str::len),
        };
        // What it reads, the text it may build, and the message of an error.
        self.budget.bytes(len.saturating_mul(2) + HEADER)?;
        convert(name, &[of])
    }

    #[inline(never)]
    fn matches(
        &mut self,
        text: &'a ExprNode,
        pattern: &'a ConstantPattern,
    ) -> EvaluationResult<'a> {
        let text = self.value(text)?;
        match (text.as_text(), pattern) {
            (Some(text), Ok(pattern)) => is_match(pattern, text, &mut self.budget).map(Val::Bool),
            (Some(_), Err(error)) => Err(unusable(error)),
            (None, _) => Err(no_overload("matches", &[text, Val::Text("")])),
        }
    }

    #[inline(never)]
    fn own(&mut self, own: &'a OwnFunction, args: &'a [ExprNode]) -> EvaluationResult<'a> {
        let mut given: Vec<Json> = Vec::with_capacity(args.len());
        for arg in args {
            let arg = self.evaluate(arg)?;
            given.push(to_json(&arg, &mut self.budget, 0)?);
        }
        // How long it takes is not known, so the clock is asked on both sides.
        self.budget.look()?;
        let result = (own.body)(&given);
        self.budget.look()?;
        let result = result.map_err(|error| {
            let message = format!("{}: {}", own.name, error.message);
            fault(EvaluateErrorKind::Function, message)
        })?;
        from_owned_json(result, &mut self.budget, 0)
    }
}

/// Whether an error settles the whole expression, so that neither `||` nor `exists` may drop it.
fn is_final(error: &BoxedError) -> bool {
    matches!(
        error.kind,
        EvaluateErrorKind::Budget | EvaluateErrorKind::EmptySet
    )
}

/// `contains`, `startsWith` and `endsWith`.
fn search(
    how: Standard,
    text: &Val<'_>,
    part: &Val<'_>,
    budget: &mut StepBudget<'_>,
) -> Result<bool, BoxedError> {
    let (Some(found), Some(wanted)) = (text.as_text(), part.as_text()) else {
        return Err(no_overload(how.name(), &[text.clone(), part.clone()]));
    };
    Ok(match how {
        Standard::StartsWith => {
            budget.scan(wanted.len())?;
            found.starts_with(wanted)
        }
        Standard::EndsWith => {
            budget.scan(wanted.len())?;
            found.ends_with(wanted)
        }
        _ => {
            // Searching is slower than comparing.
            budget.scan(found.len().saturating_mul(2))?;
            found.contains(wanted)
        }
    })
}

/// What a loop goes through: the elements of a list or the keys of a map.
enum Elements<'a> {
    Json(std::slice::Iter<'a, Json>),
    JsonKeys(serde_json::map::Keys<'a>),
    Built(Rc<[Val<'a>]>, usize),
    BuiltKeys(Rc<[(Val<'a>, Val<'a>)]>, usize),
}

impl<'a> Elements<'a> {
    fn of(range: &Val<'a>) -> Option<Self> {
        Some(match range {
            Val::JsonList(items) => Elements::Json(items.iter()),
            Val::JsonMap(map) => Elements::JsonKeys(JsonMap::keys(map)),
            Val::List(items) => Elements::Built(Rc::clone(items), 0),
            Val::Map(entries) => Elements::BuiltKeys(Rc::clone(entries), 0),
            _ => return None,
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Val<'a>;

    fn next(&mut self) -> Option<Val<'a>> {
        match self {
            Elements::Json(items) => items.next().map(Val::from_json),
            Elements::JsonKeys(keys) => keys.next().map(|key| Val::Text(key)),
            Elements::Built(items, at) => {
                *at += 1;
                items.get(*at - 1).cloned()
            }
            Elements::BuiltKeys(entries, at) => {
                *at += 1;
                entries.get(*at - 1).map(|(key, _)| key.clone())
            }
        }
    }
}
