//! Operators on values: equality, order, arithmetic, lookup. Everything that
//! grows with its operands pays for it first.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::budget::StepBudget;
use crate::error::{BoxedError, EvaluateErrorKind, fault};
use crate::library::{compare_times, time_arithmetic};
use crate::node::CelOperator;
use crate::value::{JsonMap, Val};

/// The error of a call or an operator that does not take these types.
#[cold]
pub(crate) fn no_overload(name: &str, args: &[Val<'_>]) -> BoxedError {
    let types: Vec<_> = args.iter().map(Val::type_name).collect();
    fault(
        EvaluateErrorKind::Type,
        format!("no '{name}' for ({})", types.join(", ")),
    )
}

#[cold]
fn no_operator(operator: CelOperator, left: &Val<'_>, right: &Val<'_>) -> BoxedError {
    let types = (left.type_name(), right.type_name());
    fault(
        EvaluateErrorKind::Type,
        format!("no '{}' for ({}, {})", operator.symbol(), types.0, types.1),
    )
}

#[cold]
pub(crate) fn missing(what: &str) -> BoxedError {
    fault(
        EvaluateErrorKind::MissingField,
        format!("no such field: {what}"),
    )
}

/// Applies a binary operator.
pub(crate) fn binary<'a>(
    operator: CelOperator,
    left: &Val<'a>,
    right: &Val<'a>,
    budget: &mut StepBudget<'_>,
) -> Result<Val<'a>, BoxedError> {
    use CelOperator as Op;
    if let (Val::Set(_), _) | (_, Val::Set(_)) = (left, right) {
        return set_operation(operator, left, right, budget);
    }
    match operator {
        Op::Equal => equals(left, right, budget, 0).map(Val::Bool),
        Op::NotEqual => equals(left, right, budget, 0).map(|equal| Val::Bool(!equal)),
        Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => {
            let order =
                compare(left, right, budget)?.ok_or_else(|| no_operator(operator, left, right))?;
            Ok(Val::Bool(match operator {
                Op::Less => order.is_lt(),
                Op::LessEqual => order.is_le(),
                Op::Greater => order.is_gt(),
                _ => order.is_ge(),
            }))
        }
        Op::In => contains(right, left, budget).map(Val::Bool),
        Op::Index => index(left, right, budget),
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Remainder => {
            arithmetic(operator, left, right, budget)
        }
    }
}

/// A binary operator with a set: `==` and `in` are membership, an order holds if it holds for one of the
/// values, and the rest needs a set of one value.
#[cold]
fn set_operation<'a>(
    operator: CelOperator,
    left: &Val<'a>,
    right: &Val<'a>,
    budget: &mut StepBudget<'_>,
) -> Result<Val<'a>, BoxedError> {
    use CelOperator as Op;
    match (operator, left, right) {
        (Op::Equal, ..) => equals(left, right, budget, 0).map(Val::Bool),
        (Op::NotEqual, ..) => equals(left, right, budget, 0).map(|equal| Val::Bool(!equal)),
        (Op::In, value, Val::Set(set)) => set.holds(value, budget).map(Val::Bool),
        (Op::In, Val::Set(_), container) if container.as_list().is_some() => {
            contains(container, left, budget).map(Val::Bool)
        }
        (Op::In, Val::Set(set), container) => {
            let test =
                |value: &Val<'_>, budget: &mut StepBudget<'_>| contains(container, value, budget);
            set.any(budget, test).map(Val::Bool)
        }
        (Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual, Val::Set(set), other)
            if !matches!(other, Val::Set(_)) =>
        {
            let test = |value: &Val<'_>, budget: &mut StepBudget<'_>| {
                Ok(matches!(
                    binary(operator, value, other, budget)?,
                    Val::Bool(true)
                ))
            };
            set.any(budget, test).map(Val::Bool)
        }
        (Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual, other, Val::Set(set))
            if !matches!(other, Val::Set(_)) =>
        {
            let test = |value: &Val<'_>, budget: &mut StepBudget<'_>| {
                Ok(matches!(
                    binary(operator, other, value, budget)?,
                    Val::Bool(true)
                ))
            };
            set.any(budget, test).map(Val::Bool)
        }
        _ => {
            let one = |value: &Val<'a>| match value {
                Val::Set(set) => set.single(),
                other => Ok(other.clone()),
            };
            binary(operator, &one(left)?, &one(right)?, budget)
        }
    }
}

/// `left == right`: numbers by value whatever their types, the rest by type.
pub(crate) fn equals(
    left: &Val<'_>,
    right: &Val<'_>,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<bool, BoxedError> {
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        if left.len() != right.len() {
            return Ok(false);
        }
        budget.scan(left.len())?;
        return Ok(left == right);
    }
    match (left, right) {
        (Val::Set(set), other) | (other, Val::Set(set)) => set.has(other, budget),
        (Val::Null, Val::Null) => Ok(true),
        (Val::Bool(left), Val::Bool(right)) => Ok(left == right),
        (Val::Type(left), Val::Type(right)) => Ok(left == right),
        (Val::Bytes(left), Val::Bytes(right)) => {
            budget.scan(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Val::Timestamp(_), Val::Timestamp(_)) | (Val::Duration(_), Val::Duration(_)) => {
            Ok(compare_times(left, right) == Some(Ordering::Equal))
        }
        (Val::JsonMap(left), Val::JsonMap(right)) if std::ptr::eq(*left, *right) => Ok(true),
        (Val::JsonList(left), Val::JsonList(right)) if std::ptr::eq(*left, *right) => Ok(true),
        (Val::JsonMap(_) | Val::Map(_), Val::JsonMap(_) | Val::Map(_)) => {
            equal_maps(left, right, budget, depth)
        }
        (Val::JsonList(_) | Val::List(_), Val::JsonList(_) | Val::List(_)) => {
            equal_lists(left, right, budget, depth)
        }
        _ => Ok(compare_numbers(left, right) == Some(Ordering::Equal)),
    }
}

fn equal_lists(
    left: &Val<'_>,
    right: &Val<'_>,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<bool, BoxedError> {
    let (Some(left), Some(right)) = (left.as_list(), right.as_list()) else {
        return Ok(false);
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    budget.depth(depth)?;
    for at in 0..left.len() {
        budget.steps(1)?;
        let (Some(left), Some(right)) = (left.get(at), right.get(at)) else {
            return Ok(false);
        };
        if !equals(&left, &right, budget, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(
    left: &Val<'_>,
    right: &Val<'_>,
    budget: &mut StepBudget<'_>,
    depth: usize,
) -> Result<bool, BoxedError> {
    if size_of_map(left) != size_of_map(right) {
        return Ok(false);
    }
    budget.depth(depth)?;
    let mut same = |key: &Val<'_>, value: &Val<'_>| {
        budget.steps(1)?;
        match lookup(right, key, budget)? {
            Some(other) => equals(value, &other, budget, depth + 1),
            None => Ok(false),
        }
    };
    match left {
        Val::JsonMap(map) => {
            for (key, value) in *map {
                if !same(&Val::Text(key), &Val::from_json(value))? {
                    return Ok(false);
                }
            }
        }
        Val::Map(entries) => {
            for (key, value) in entries.iter() {
                if !same(key, value)? {
                    return Ok(false);
                }
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn size_of_map(map: &Val<'_>) -> usize {
    match map {
        Val::JsonMap(map) => map.len(),
        Val::Map(entries) => entries.len(),
        _ => 0,
    }
}

fn compare_numbers(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => Some(left.cmp(right)),
        (Val::UInt(left), Val::UInt(right)) => Some(left.cmp(right)),
        (Val::Double(left), Val::Double(right)) => left.partial_cmp(right),
        (Val::Int(left), Val::UInt(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Val::UInt(left), Val::Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Val::Double(left), Val::Int(right)) => left.partial_cmp(&(*right as f64)),
        (Val::Int(left), Val::Double(right)) => (*left as f64).partial_cmp(right),
        (Val::Double(left), Val::UInt(right)) => left.partial_cmp(&(*right as f64)),
        (Val::UInt(left), Val::Double(right)) => (*left as f64).partial_cmp(right),
        _ => None,
    }
}

fn compare(
    left: &Val<'_>,
    right: &Val<'_>,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Ordering>, BoxedError> {
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        budget.scan(left.len().min(right.len()))?;
        return Ok(Some(left.cmp(right)));
    }
    Ok(match (left, right) {
        (Val::Bool(left), Val::Bool(right)) => Some(left.cmp(right)),
        (Val::Bytes(left), Val::Bytes(right)) => {
            budget.scan(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        (Val::Timestamp(_) | Val::Duration(_), _) => compare_times(left, right),
        _ => compare_numbers(left, right),
    })
}

/// `value in container`
fn contains(
    container: &Val<'_>,
    value: &Val<'_>,
    budget: &mut StepBudget<'_>,
) -> Result<bool, BoxedError> {
    if let Some(items) = container.as_list() {
        for at in 0..items.len() {
            budget.steps(1)?;
            let Some(item) = items.get(at) else { break };
            if equals(&item, value, budget, 0)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    match container {
        Val::JsonMap(_) | Val::Map(_) if is_key(value) => {
            Ok(lookup(container, value, budget)?.is_some())
        }
        _ => Err(no_operator(CelOperator::In, value, container)),
    }
}

/// Whether a map can be asked for `value`.
fn is_key(value: &Val<'_>) -> bool {
    matches!(
        value,
        Val::Bool(_) | Val::Int(_) | Val::UInt(_) | Val::Double(_) | Val::Text(_) | Val::OwnText(_)
    )
}

/// The entry of a map; `None` where there is none.
pub(crate) fn lookup<'a>(
    map: &Val<'a>,
    key: &Val<'_>,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Val<'a>>, BoxedError> {
    match map {
        Val::JsonMap(map) => {
            let Some(key) = key.as_text() else {
                return Ok(None);
            };
            budget.scan(key.len())?;
            Ok(json_entry(map, key))
        }
        Val::Map(entries) => {
            for (known, value) in entries.iter() {
                // Built maps are as small as the expression, so a list will do.
                budget.steps(1)?;
                if equals(known, key, budget, 0)? {
                    return Ok(Some(value.clone()));
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn json_entry<'a>(map: &'a JsonMap, key: &str) -> Option<Val<'a>> {
    map.get(key).map(Val::from_json)
}

/// `operand.name`; the second is whether the operand has fields at all.
pub(crate) fn field<'a>(
    operand: &Val<'a>,
    name: &str,
    budget: &mut StepBudget<'_>,
) -> Result<Option<Val<'a>>, BoxedError> {
    match operand {
        Val::JsonMap(map) => Ok(json_entry(map, name)),
        Val::Sets(sets) => sets.require(name).map(|set| Some(Val::Set(set))),
        Val::Set(set) => field(&set.single()?, name, budget),
        Val::Map(_) => lookup(operand, &Val::Text(name), budget),
        _ => Err(fault(
            EvaluateErrorKind::Type,
            format!("a {} has no field '{name}'", operand.type_name()),
        )),
    }
}

/// `operand[key]`
fn index<'a>(
    operand: &Val<'a>,
    key: &Val<'_>,
    budget: &mut StepBudget<'_>,
) -> Result<Val<'a>, BoxedError> {
    if let Some(items) = operand.as_list() {
        let position =
            position(key).ok_or_else(|| no_operator(CelOperator::Index, operand, key))?;
        return usize::try_from(position)
            .ok()
            .and_then(|position| items.get(position))
            .ok_or_else(|| missing(&format!("[{position}] of {} elements", items.len())));
    }
    if let (Val::Sets(sets), Some(name)) = (operand, key.as_text()) {
        return sets.require(name).map(Val::Set);
    }
    match operand {
        Val::JsonMap(_) | Val::Map(_) if is_key(key) => {
            lookup(operand, key, budget)?.ok_or_else(|| match key {
                Val::Int(key) => missing(&key.to_string()),
                Val::UInt(key) => missing(&key.to_string()),
                Val::Double(key) => missing(&key.to_string()),
                Val::Bool(key) => missing(&key.to_string()),
                key => missing(key.as_text().unwrap_or_default()),
            })
        }
        _ => Err(no_operator(CelOperator::Index, operand, key)),
    }
}

/// The list position a number stands for, where it is whole.
fn position(key: &Val<'_>) -> Option<i128> {
    match key {
        Val::Int(int) => Some(i128::from(*int)),
        Val::UInt(uint) => Some(i128::from(*uint)),
        Val::Double(double) if double.trunc() == *double && double.abs() < 1e15 => {
            Some(*double as i128)
        }
        _ => None,
    }
}

fn arithmetic<'a>(
    operator: CelOperator,
    left: &Val<'a>,
    right: &Val<'a>,
    budget: &mut StepBudget<'_>,
) -> Result<Val<'a>, BoxedError> {
    use CelOperator as Op;
    let overflow = || {
        fault(
            EvaluateErrorKind::Arithmetic,
            format!("'{}' is out of range", operator.symbol()),
        )
    };
    let by_zero = || fault(EvaluateErrorKind::Arithmetic, "division by zero");
    let divides = matches!(operator, Op::Divide | Op::Remainder);
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::UInt(_), Val::UInt(0)) if divides => Err(by_zero()),
        (Val::Int(left), Val::Int(right)) => match operator {
            Op::Add => left.checked_add(*right),
            Op::Subtract => left.checked_sub(*right),
            Op::Multiply => left.checked_mul(*right),
            Op::Divide => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }
        .map(Val::Int)
        .ok_or_else(overflow),
        (Val::UInt(left), Val::UInt(right)) => match operator {
            Op::Add => left.checked_add(*right),
            Op::Subtract => left.checked_sub(*right),
            Op::Multiply => left.checked_mul(*right),
            Op::Divide => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }
        .map(Val::UInt)
        .ok_or_else(overflow),
        (Val::Double(left), Val::Double(right)) if operator != Op::Remainder => {
            Ok(Val::Double(match operator {
                Op::Add => left + right,
                Op::Subtract => left - right,
                Op::Multiply => left * right,
                _ => left / right,
            }))
        }
        (Val::Timestamp(_) | Val::Duration(_), _) if matches!(operator, Op::Add | Op::Subtract) => {
            time_arithmetic(operator.symbol(), left, right)
        }
        _ if operator == Op::Add => concatenate(left, right, budget),
        _ => Err(no_operator(operator, left, right)),
    }
}

fn concatenate<'a>(
    left: &Val<'a>,
    right: &Val<'a>,
    budget: &mut StepBudget<'_>,
) -> Result<Val<'a>, BoxedError> {
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        let len = left.len() + right.len();
        budget.bytes(len + HEADER)?;
        let mut text = String::with_capacity(len);
        text.push_str(left);
        text.push_str(right);
        return Ok(Val::OwnText(text.into()));
    }
    if let (Some(left), Some(right)) = (left.as_list(), right.as_list()) {
        let len = left.len() + right.len();
        budget.bytes(len.saturating_mul(ELEMENT) + HEADER)?;
        budget.steps(len as u64 / 4)?;
        let left = (0..left.len()).filter_map(|at| left.get(at));
        let right = (0..right.len()).filter_map(|at| right.get(at));
        let mut items = Vec::with_capacity(len);
        items.extend(left);
        items.extend(right);
        return Ok(Val::List(items.into()));
    }
    if let (Val::Bytes(left), Val::Bytes(right)) = (left, right) {
        budget.bytes(left.len() + right.len() + HEADER)?;
        let bytes: Rc<[u8]> = [&**left, &**right].concat().into();
        return Ok(Val::Bytes(bytes));
    }
    Err(no_operator(CelOperator::Add, left, right))
}

/// What an element of a built list takes.
pub(crate) const ELEMENT: usize = size_of::<Val<'static>>();
/// What anything built takes on top.
pub(crate) const HEADER: usize = 32;

impl CelOperator {
    /// The operator as it is written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            CelOperator::Equal => "==",
            CelOperator::NotEqual => "!=",
            CelOperator::Less => "<",
            CelOperator::LessEqual => "<=",
            CelOperator::Greater => ">",
            CelOperator::GreaterEqual => ">=",
            CelOperator::In => "in",
            CelOperator::Add => "+",
            CelOperator::Subtract => "-",
            CelOperator::Multiply => "*",
            CelOperator::Divide => "/",
            CelOperator::Remainder => "%",
            CelOperator::Index => "[]",
        }
    }
}
